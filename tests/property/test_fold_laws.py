"""Laws of the way up: merging, folding in blocks, results in parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.reports.fold import NOTHING, Counted, Fold, Reported, Shapes
from relay.core.reports.parts import split_results
from relay.core.reports.reduce import (
    EMPTY,
    merge,
    merge_all,
    merge_results,
    repeated,
)
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import TABLE_MAX_BYTES, WHOLE, Collected
from schemas.reports.reports import (
    ARM_NOTHING,
    ARM_OLDER,
    ARM_OTHER,
    ARMS_MAX,
    CELL_OTHER,
    CELLS_MAX,
    COUNT_MAX,
    EXCEPTIONS_MAX,
    PART_MAX_BYTES,
    REPAIRS_MAX,
    ExceptionSample,
    ObjectResult,
    RepairSample,
    ReportPart,
    Summary,
)
from schemas.values.identity import short_key
from schemas.values.wire import encode, replace

mail_keys = st.binary(min_size=20, max_size=20).map(short_key)
few = st.integers(0, 5)
big = few | st.just(COUNT_MAX)
states = st.dictionaries(st.sampled_from(["pending", "synced", "failing", "never joined"]), big)
arms = st.sampled_from([ARM_OLDER, ARM_NOTHING, ARM_OTHER]) | st.integers(0, 99).map(
    "a{:02}".format
)
samples = st.builds(
    ExceptionSample,
    st.integers(0, 2),
    st.sampled_from(["", "a", "b", "c\0d"]),
    st.text("xyz\0", max_size=3),
    few,
    st.sampled_from(["/a", "/b"]),
)
gates = st.sampled_from(["9.0", "9.1", "10.0", "8.19", "x", ""])
words = st.sampled_from(["synced", "pending", "waiting"])
cells = st.builds("{}/{}/{}".format, gates, words, st.integers(0, 99)) | st.just(CELL_OTHER)
repairs = st.builds(
    RepairSample,
    few,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["/a", "/b"]),
    few,
    st.sampled_from(["", "x"]),
    st.sampled_from(["", "they"]),
)
raw = st.builds(
    Summary,
    states,
    states,
    st.dictionaries(arms, big, max_size=90),
    st.lists(samples, max_size=40).map(tuple),
    few,
    st.dictionaries(cells, big, max_size=8)
    | st.just({f"{7 + at % 5}.{at}/synced/healthy": 1 for at in range(CELLS_MAX + 9)}),
    big,
    st.lists(samples, max_size=12).map(tuple),
    big,
    st.lists(repairs, max_size=12).map(tuple),
)
summaries = raw.map(lambda summary: merge_all([summary]))


@given(summaries, summaries, summaries)
def test_merging_is_associative(one, two, three):
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@given(summaries, summaries)
def test_merging_is_commutative(one, two):
    assert merge(one, two) == merge(two, one)


@given(summaries)
def test_the_empty_summary_changes_nothing(one):
    assert merge(one, EMPTY) == one == merge(EMPTY, one)


@given(st.lists(summaries, max_size=6), st.randoms(use_true_random=False))
def test_what_is_kept_is_exact_however_the_tree_is_built(leaves, chance):
    """The k least of all exceptions are kept, and each with the sum over all leaves."""
    sums, seen = {}, {}
    for leaf in leaves:
        for sample in leaf.exceptions:
            key = (sample.severity, sample.object, sample.reason)
            sums[key] = min(sums.get(key, 0) + sample.count, COUNT_MAX)
            seen[key] = sample.rank
    pool = list(leaves)
    chance.shuffle(pool)
    while len(pool) > 1:
        some = [pool.pop() for _ in range(chance.randint(2, len(pool)))]
        pool.insert(0, merge_all(some))
    total = merge_all(pool)
    least = sorted(sums, key=seen.__getitem__)[:EXCEPTIONS_MAX]
    assert [(e.severity, e.object, e.reason) for e in total.exceptions] == least
    assert all(e.count == sums[e.severity, e.object, e.reason] for e in total.exceptions)
    for state in {name for leaf in leaves for name in leaf.states}:
        assert total.states.get(state, 0) == min(
            sum(leaf.states.get(state, 0) for leaf in leaves), COUNT_MAX
        )
    assert total.kept == min(sum(leaf.kept for leaf in leaves), COUNT_MAX)
    assert total.repaired == min(sum(leaf.repaired for leaf in leaves), COUNT_MAX)
    newest = sorted((each for leaf in leaves for each in leaf.repairs), key=lambda it: it.rank)
    assert list(total.repairs) == newest[:REPAIRS_MAX]
    whole = sum(sum(leaf.arms.values()) for leaf in leaves)
    assert sum(total.arms.values()) == whole or whole > COUNT_MAX
    assert len(total.arms) <= ARMS_MAX
    assert len(total.cells) <= CELLS_MAX
    whole = sum(sum(leaf.cells.values()) for leaf in leaves)
    assert sum(total.cells.values()) == whole or whole > COUNT_MAX
    for cell in total.cells.keys() - {CELL_OTHER}:
        count = sum(leaf.cells.get(cell, 0) for leaf in leaves)
        assert total.cells[cell] == min(count, COUNT_MAX)
    every = {arm for leaf in leaves for arm in leaf.arms} - {ARM_OTHER}
    for arm in sorted(every, key=lambda arm: (arm.startswith("a"), arm))[: ARMS_MAX - 1]:
        count = sum(leaf.arms.get(arm, 0) for leaf in leaves)
        assert total.arms.get(arm, 0) == min(count, COUNT_MAX)


def test_of_too_many_cells_the_newest_revisions_are_kept():
    many = {f"{at}.0/synced/healthy": 1 for at in range(2 * CELLS_MAX)}
    kept = merge_all([Summary(cells=many)]).cells
    newest = {f"{at}.0/synced/healthy" for at in range(CELLS_MAX + 1, 2 * CELLS_MAX)}
    assert kept == {**dict.fromkeys(newest, 1), CELL_OTHER: CELLS_MAX + 1}


@given(summaries)
def test_whatever_is_summed_can_be_said(one):
    assert encode(merge(one, one))


children = st.integers(0, 3).map(lambda at: at * 30)
puts = st.tuples(children, st.sampled_from(["said", "dated", "out", "void"]), summaries)


@given(st.lists(puts, max_size=20))
def test_the_fold_in_blocks_equals_merging_all(steps):
    fold, model, names = Fold(), {}, [f"c{at}" for at in range(120)]
    shapes = Shapes()
    for at, step, summary in steps:
        if step == "out":
            fold.count(at, None)
            model.pop(at, None)
        elif step == "void":
            fold.report(at, NOTHING)
            fold.count(at, None)
            model.pop(at, None)
            assert not fold.has_row(at)
        else:
            said = shapes.shared(summary)
            fold.report(at, Reported(1, 2, 3, summary.oldest_ms, said))
            fold.count(at, Counted(said, step == "dated"))
            model[at] = replace(summary, oldest_ms=summary.oldest_ms if step == "dated" else 0)
        assert fold.total() == merge_all(model.values())
        fold.assert_invariants()
    assert dict(fold.counting(names)) == {names[at]: counts for at, counts in model.items()}
    for state in ("synced", "unreachable"):
        there = {names[at]: n for at, it in model.items() if (n := it.states.get(state))}
        found = fold.counting(names, state)
        assert {name: summary.states[state] for name, summary in found} == there


@given(summaries, st.integers(1, 50))
def test_what_many_say_is_what_one_says_so_many_times(one, count):
    assert merge_all([repeated(one, count)]) == merge_all([one] * count)


@given(children, summaries, summaries)
def test_a_row_that_is_stale_is_looked_at_once(at, first, second):
    fold = Fold()
    fold.count(at, Counted(first))
    fold.mark_dirty(at)
    fold.assert_invariants()
    assert fold.take_stale() == [at]
    assert fold.count(at, Counted(second)) == (first != second)
    assert fold.take_stale() == []


object_keys = st.builds(ObjectKey, st.just(""), st.just("x"), st.just("n"), st.text("abc"))
results = st.builds(
    ObjectResult, object_keys, st.integers(0, 2), st.text("d"), st.none() | st.binary(max_size=3)
)


@given(st.lists(results, max_size=8), st.integers(0, 8))
def test_merging_results_is_associative_and_counts_all(some, cut):
    whole = merge_results(some)
    parts = [*merge_results(some[:cut]).values(), *merge_results(some[cut:]).values()]
    assert merge_results(parts) == whole
    assert merge_results(reversed(some)) == whole
    for result in some:
        count = sum(other.count for other in some if other.key == result.key)
        assert count == (whole[result.key].count if result.key in whole else 0)


sizes = st.lists(st.integers(0, 30_000), max_size=40)


@given(sizes, mail_keys)
def test_results_in_parts_are_all_there_and_each_part_fits(statuses, key):
    listed = [
        ObjectResult(ObjectKey("", "x", "n", str(at)), 1, "d", bytes(size))
        for at, size in enumerate(statuses)
    ]
    count, parts = split_results(listed)
    assert all(1 <= number <= count for number in parts)
    found = {r.key: r for part in parts.values() for r in part.results}
    assert found == {r.key: r for r in listed}
    assert sum(len(part.results) for part in parts.values()) == len(listed)
    for number, part in parts.items():
        report = ReportPart(key, number, "r" * 64, 2**60, 2**60, *part)
        assert len(encode(report)) <= PART_MAX_BYTES


@pytest.mark.parametrize(("objects", "size"), [(200, 60_000), (1, 70_000), (6000, 500)])
def test_results_that_cannot_all_fit_are_still_counted(objects, size):
    listed = [
        ObjectResult(ObjectKey("", "x", "n", str(at)), 1, "d", bytes(size)) for at in range(objects)
    ]
    _, parts = split_results(listed)
    found = {r.key: r.count for part in parts.values() for r in part.results}
    assert found == {r.key: 1 for r in listed}
    for number, part in parts.items():
        assert (
            len(encode(ReportPart("0" * 32, number, "r" * 64, 2**60, 2**60, *part)))
            <= PART_MAX_BYTES
        )


def test_rows_of_several_collectors_of_one_object_are_all_there():
    listed = [Collected(WHOLE, name * 16, bytes(16), bytes(TABLE_MAX_BYTES)) for name in "abcdef"]
    _, parts = split_results((), listed)
    assert {item for part in parts.values() for item in part.collected} == {*listed}
