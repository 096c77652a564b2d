"""Laws of the way up: merging, folding in blocks, results in parts, label digests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.fold import Counted, Fold, Reported, Shapes
from relay.core.labels import (
    LabelCount,
    SelectorIndex,
    digest_may_match,
    fit_digests,
    merge_digests,
)
from relay.core.parts import split_results
from relay.core.reduce import (
    COUNT_MAX,
    EMPTY,
    merge,
    merge_all,
    merge_results,
    times,
    unreachable,
)
from schemas.objects import ObjectKey
from schemas.reports import (
    EXCEPTIONS_MAX,
    LABEL_DIGEST_MAX_BYTES,
    PART_MAX_BYTES,
    ExceptionSample,
    KeyValues,
    ObjectResult,
    ReportPart,
    SpaceLabels,
    Summary,
    encode,
)
from schemas.wire import replace
from tests.property.wire_records import label_sets, mail_keys, selectors

few = st.integers(0, 5)
big = few | st.just(COUNT_MAX)
states = st.dictionaries(st.sampled_from(["pending", "synced", "failing", "never joined"]), big)
samples = st.builds(
    ExceptionSample,
    st.integers(0, 2),
    st.sampled_from(["", "a", "b", "c\0d"]),
    st.text("xyz\0", max_size=3),
    few,
    st.sampled_from(["/a", "/b"]),
)
raw = st.builds(
    Summary,
    states,
    states,
    states,
    st.lists(samples, max_size=40).map(tuple),
    few,
    st.booleans(),
    st.lists(st.text("pq", max_size=5), max_size=30).map(tuple),
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
    assert total.complete == all(leaf.complete for leaf in leaves)


@given(summaries)
def test_whatever_is_summed_can_be_said(one):
    assert encode(merge(one, one))
    assert encode(unreachable(merge(one, one)))


children = st.integers(0, 3).map(lambda at: at * 30)
puts = st.tuples(children, st.sampled_from(["said", "dated", "blocks", "out"]), summaries)


@given(st.lists(puts, max_size=20))
def test_the_fold_in_blocks_equals_merging_all(steps):
    fold, model, names = Fold("/"), {}, [f"c{at}" for at in range(120)]
    shapes = Shapes()
    for at, step, summary in steps:
        if step == "out":
            fold.count(at, None)
            model.pop(at, None)
        else:
            said = shapes.shared(summary)
            fold.report(at, Reported(1, 2, 3, 4, summary.oldest_ms, current=True, said=said))
            dated, blocks = step != "said", step == "blocks"
            fold.count(at, Counted(said, dated, blocks))
            counts = replace(summary, oldest_ms=summary.oldest_ms if dated else 0)
            if blocks:
                counts = replace(counts, complete=False, blocking=(f"/c{at}",))
            model[at] = counts
        assert fold.total(names) == merge_all(model.values())
        assert fold.open == sum(not counts.complete for counts in model.values())
    assert dict(fold.counting(names)) == {names[at]: counts for at, counts in model.items()}


@given(summaries, st.integers(1, 50))
def test_what_many_say_is_what_one_says_so_many_times(one, count):
    assert merge_all([times(one, count)]) == merge_all([one] * count)


@given(children, summaries, summaries)
def test_a_row_that_is_stale_keeps_the_fold_open_until_it_is_looked_at(at, first, second):
    fold = Fold("/")
    assert fold.count(at, Counted(first))
    fold.stale(at)
    assert fold.open == 1
    assert fold.take_stale() == [at]
    assert fold.count(at, Counted(second)) == (first != second)
    assert fold.open == (not second.complete)
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
    found = {r.key: r for part in parts.values() for r in part}
    assert found == {r.key: r for r in listed}
    assert sum(map(len, parts.values())) == len(listed)
    for number, part in parts.items():
        report = ReportPart(key, number, 2**60, 2**60, 2**60, part)
        assert len(encode(report)) <= PART_MAX_BYTES


@pytest.mark.parametrize(("objects", "size"), [(200, 60_000), (1, 70_000), (6000, 500)])
def test_results_that_cannot_all_fit_are_still_counted(objects, size):
    listed = [
        ObjectResult(ObjectKey("", "x", "n", str(at)), 1, "d", bytes(size)) for at in range(objects)
    ]
    _, parts = split_results(listed)
    found = {r.key: r.count for part in parts.values() for r in part}
    assert found == {r.key: 1 for r in listed}
    for number, part in parts.items():
        assert (
            len(encode(ReportPart("0" * 32, number, 2**60, 2**60, 2**60, part))) <= PART_MAX_BYTES
        )


@given(st.lists(st.tuples(st.booleans(), label_sets), max_size=8), selectors)
def test_counted_labels_never_say_no_when_one_matches_and_are_exact_for_one(steps, selector):
    count, held = LabelCount(), []
    for add, labels in steps:
        if add or labels not in held:
            count.add(labels)
            held.append(labels)
        else:
            count.remove(labels)
            held.remove(labels)
        truth = any(selector.matches(one) for one in held)
        assert count.may_match(selector) or not truth
        if len(held) <= 1:
            assert count.may_match(selector) == truth
        assert digest_may_match(count.summary(), selector) or not truth


@given(st.lists(st.lists(label_sets, max_size=4), max_size=4), selectors)
def test_a_digest_of_subtrees_never_says_no_when_a_member_matches(subtrees, selector):
    digests = []
    for members in subtrees:
        count = LabelCount()
        for labels in members:
            count.add(labels)
        digests.append(count.summary())
    merged = merge_digests(digests)
    assert digest_may_match(merged, selector) or not any(
        selector.matches(labels) for members in subtrees for labels in members
    )


def test_a_digest_of_one_is_exact_and_many_values_become_any():
    count = LabelCount()
    for at in range(300):
        count.add({"host": f"h{at}"})
    assert count.summary().keys["host"] == KeyValues(None, lacking=False)
    half = [
        SpaceLabels({"k": KeyValues(tuple(f"{n}{at}" for at in range(200)), False)}) for n in "ab"
    ]
    assert merge_digests(half).keys["k"].values is None
    assert merge_digests(half[:1]) == SpaceLabels(
        {"k": KeyValues(tuple(sorted(half[0].keys["k"].values)), False)}
    )


def test_a_digest_fits_by_giving_up_the_keys_with_most_values():
    long = {
        f"k{n}": KeyValues(tuple(f"{'v' * 50}{at}" for at in range(n)), lacking=False)
        for n in range(10, 250, 10)
    }
    digests = {"inv": SpaceLabels(long), "other": SpaceLabels({"env": KeyValues(("a",), True)})}
    fitted = fit_digests(digests)
    assert sum(len(encode(labels)) for labels in fitted.values()) <= LABEL_DIGEST_MAX_BYTES
    given_up = [int(k[1:]) for k, held in fitted["inv"].keys.items() if held.values is None]
    kept = [int(k[1:]) for k, held in fitted["inv"].keys.items() if held.values is not None]
    assert min(given_up) > max(kept)
    assert fitted["other"] == digests["other"]
    small = {"inv": SpaceLabels({"env": KeyValues(("a",), True)})}
    assert fit_digests(small) == small


@given(
    st.lists(st.tuples(st.integers(0, 4), st.none() | selectors), max_size=12),
    st.lists(label_sets, min_size=1, max_size=3),
)
def test_the_index_of_selectors_finds_what_trying_all_finds(steps, asked):
    index, model = SelectorIndex(), {}
    for item, selector in steps:
        index.put(item, selector)
        model.pop(item, None)
        if selector is not None:
            model[item] = selector
    for labels in asked:
        found = list(index.matching(labels))
        assert sorted(found) == sorted(i for i, s in model.items() if s.matches(labels))
    for item in range(5):
        index.put(item, None)
    assert not index._by_pair
