"""What a child may report is bounded, and a merge of it is taken at the next hop."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.core.gates import GateNames
from relay.core.reports.intake import ReportIntake, bounded, own_arms, own_cells
from relay.core.reports.reduce import merge_all, repeated
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import (
    ARM_NOTHING,
    ARM_OLDER,
    ARM_OTHER,
    ARMS_MAX,
    CELL_FORMER,
    CELLS_MAX,
    COUNT_MAX,
    EXCEPTIONS_MAX,
    KEPT_COPIES_MAX,
    PART_MAX_BYTES,
    REPAIRS_MAX,
    TEXT_MAX_BYTES,
    ExceptionSample,
    ObjectResult,
    RepairSample,
    Report,
    ReportPart,
    Summary,
    part_key,
)
from schemas.reports.states import NEVER_JOINED
from schemas.values.identity import NodePath, short_key
from schemas.values.refusals import RecordRefused
from schemas.values.wire import encode, replace

REGION, KEY = NodePath.parse("/r"), short_key(bytes(20))
ARMS = tuple(f"{at:064x}" for at in range(200))

counts = st.sampled_from([0, 1, 7, COUNT_MAX])
states = st.dictionaries(st.sampled_from(["pending", "synced", "failing", "unreachable"]), counts)
health = st.dictionaries(st.sampled_from(["healthy", "degraded", NEVER_JOINED]), counts)
texts = st.sampled_from(["", "x", "é" * (TEXT_MAX_BYTES // 2), "\0" * TEXT_MAX_BYTES])
samples = st.builds(
    ExceptionSample,
    st.integers(0, 2),
    texts,
    st.builds(lambda text, at: f"{at}{text}"[:400], texts, st.integers(0, 99)),
    counts,
    st.sampled_from(["/r/c", "/r/c/d", "/r/c/" + "/".join(["n" * 63] * 14)]),
)
words = st.sampled_from([ARM_OLDER, ARM_NOTHING, ARM_OTHER])
WAVES = frozenset({*(f"7.{at}" for at in range(30)), "w" * 32})


@st.composite
def with_cells(draw, summary):
    """The same, with cells that tell of no more than its other counts do."""
    left = [Counter(summary.states), Counter(summary.health)]
    cells = {}
    for wave, state, each in draw(st.lists(st.tuples(waves, *map(st.sampled_from, WORDS)))):
        most = min(left[0][state], left[1][each])
        taken = draw(st.integers(0, most)) if most < COUNT_MAX else most
        if taken:
            cells[f"{wave}/{state}/{each}"] = cells.get(f"{wave}/{state}/{each}", 0) + taken
            left[0][state] -= taken
            left[1][each] -= taken
    return replace(summary, cells=cells)


waves = st.sampled_from([*sorted(WAVES), "6.0", "gone"])
WORDS = (("pending", "synced", "failing", "waiting"), ("healthy", "degraded", "unknown"))
plain = st.builds(
    Summary,
    states,
    health,
    st.dictionaries(words | st.sampled_from(ARMS), counts, max_size=ARMS_MAX),
    st.lists(samples, max_size=EXCEPTIONS_MAX).map(tuple),
    st.integers(0, 2**62),
)


def is_of_destinations(summary):
    """Whether no more of them are well or ill than there are."""
    return sum(summary.health.values()) <= summary.destinations or summary.destinations >= COUNT_MAX


summaries = plain.filter(is_of_destinations).flatmap(with_cells)


def report(summary, generation=5, parts=0, run="r"):
    return Report(KEY, 0, run, 1, generation, False, parts, summary)


NAMES = GateNames(frozenset(ARMS), WAVES)


def intake(owner=REGION, sent=5, names=NAMES):
    return ReportIntake(owner, lambda _child, _key: sent, lambda _key: names)


def read(said, owner=REGION, child="c", slot=KEY, **known):
    return intake(owner, **known).read(child, slot, encode(said))


@given(st.lists(summaries, max_size=5), st.integers(1, 2000))
def test_a_merge_of_what_is_taken_is_taken_at_the_next_hop(said, many):
    taken = [read(report(summary)).summary for summary in said]
    merged = bounded(merge_all(repeated(summary, many) for summary in taken))
    assert len(encode(report(merged))) <= PART_MAX_BYTES
    assert read(report(merged), NodePath(), "r").summary == merged


@given(summaries, st.sets(st.sampled_from(ARMS), max_size=100))
def test_arms_that_are_none_of_the_placement_are_other_and_none_is_lost(summary, known):
    arms = own_arms(summary.arms, frozenset(known))
    assert set(arms) <= known | {ARM_OLDER, ARM_NOTHING, ARM_OTHER}
    whole = sum(summary.arms.values())
    assert sum(arms.values()) == whole or whole > COUNT_MAX


@given(summaries)
def test_cells_of_other_waves_are_of_a_former_step_and_none_is_lost(summary):
    cells = own_cells(summary.cells, WAVES)
    assert {text.partition("/")[0] for text in cells} <= WAVES | {CELL_FORMER}
    assert sum(cells.values()) == sum(summary.cells.values())
    assert own_cells(summary.cells, frozenset()) == {}
    assert own_cells({**summary.cells, CELL_FORMER: 2}, frozenset()) == {CELL_FORMER: 2}


def test_the_longest_report_of_all_is_taken():
    """Cells are never left out: what wave is how far is worth more than the last exceptions."""
    path, why = "/r/c/" + "/".join(["n" * 63] * 14), "y" * TEXT_MAX_BYTES
    samples = [
        ExceptionSample(0, f"{at}".ljust(TEXT_MAX_BYTES), why, 7, path)
        for at in range(EXCEPTIONS_MAX)
    ]
    arms = dict.fromkeys(ARMS[:ARMS_MAX], COUNT_MAX)
    names = [f"{at:032}" for at in range(CELLS_MAX - 1)]
    cells = {f"{name}/unreachable/{NEVER_JOINED}": 10**6 for name in names}
    whole = Summary({"unreachable": COUNT_MAX}, {NEVER_JOINED: COUNT_MAX}, arms, tuple(samples))
    repairs = [RepairSample(1, why, path, 1, why, why)] * REPAIRS_MAX
    said = replace(whole, oldest_ms=2**62, cells=cells, repairs=tuple(repairs), repaired=9)
    said = bounded(replace(said, kept=99, kept_copies=tuple(samples[:KEPT_COPIES_MAX])))
    assert len(encode(report(said))) <= PART_MAX_BYTES
    taken = read(report(said), names=GateNames(frozenset(ARMS), frozenset(names))).summary
    assert (taken.cells, len(taken.exceptions)) == (cells, len(said.exceptions))
    assert len(said.exceptions) >= 9


@given(st.text(), st.text())
def test_texts_are_cut_so_that_they_are_taken(obj, reason):
    sample = ExceptionSample(0, obj * 200, reason * 200, 1, "/r/c")
    cut = bounded(Summary(exceptions=(sample,)))
    assert read(report(cut)).summary == cut
    assert sample.object.startswith(cut.exceptions[0].object)


def repair(**changes):
    return replace(RepairSample(1, "a", "/r/c", 1), **changes)


def wrong(**changes):
    sample = ExceptionSample(0, "", "", 1, "/r/c")
    return Summary(exceptions=(replace(sample, **changes),))


@pytest.mark.parametrize(
    "said",
    [
        report(Summary({"fine": 1})),
        report(Summary(health={"fine": 1})),
        report(Summary({"synced": COUNT_MAX + 1})),
        report(Summary({"synced": 1}, {"healthy": 2})),
        report(Summary({"synced": 1, "pending": 1}, {"healthy": 2, "degraded": 1})),
        report(Summary(arms={ARM_OLDER: COUNT_MAX + 1})),
        report(Summary(arms=dict.fromkeys(ARMS[: ARMS_MAX + 1], 1))),
        report(wrong(path="/r")),
        report(wrong(path="/r/cc")),
        report(wrong(path="nowhere")),
        report(wrong(severity=2**62)),
        report(wrong(count=COUNT_MAX + 1)),
        report(wrong(reason="x" * (TEXT_MAX_BYTES + 1))),
        report(wrong(object="é" * TEXT_MAX_BYTES)),
        report(Summary(exceptions=wrong().exceptions * (EXCEPTIONS_MAX + 1))),
        report(Summary({"synced": 1}, {"healthy": 1}, cells={"7.0/synced/healthy": 2})),
        report(Summary({"synced": 1}, {"healthy": 1}, cells={"7.0/failing/healthy": 1})),
        report(Summary({"synced": 1}, {"healthy": 1}, cells={"7.0/synced/degraded": 1})),
        report(Summary({"synced": 1}, {"healthy": 1}, cells={"7.0/synced": 1})),
        report(Summary({"synced": 1}, {"healthy": 1}, cells={"7.0": 1})),
        report(Summary(cells={f"7.{at}/synced/healthy": 0 for at in range(CELLS_MAX + 1)})),
        report(Summary(kept=COUNT_MAX + 1)),
        report(Summary(kept=1, kept_copies=wrong(count=2).exceptions)),
        report(Summary(kept=9, kept_copies=wrong().exceptions * (KEPT_COPIES_MAX + 1))),
        report(Summary(kept=1, kept_copies=wrong(path="/r/other").exceptions)),
        report(Summary(repaired=COUNT_MAX + 1)),
        report(Summary(repaired=9, repairs=(repair(),) * (REPAIRS_MAX + 1))),
        report(Summary(repaired=1, repairs=(repair(path="/r/other"),))),
        report(Summary(repaired=1, repairs=(repair(field="x" * (TEXT_MAX_BYTES + 1)),))),
        report(Summary(), generation=6),
        report(Summary(), parts=10_000),
        report(Summary(), run=""),
        report(Summary(), run="r" * 65),
        ReportPart(KEY, 0, "r", 1, 5, ()),
    ],
)
def test_what_no_child_may_say_is_refused(said):
    with pytest.raises(RecordRefused):
        read(said)


def test_a_report_in_another_slot_than_its_own_is_refused():
    for data, slot, sent in (
        (report(Summary()), part_key(KEY, 1), 5),
        (ReportPart(KEY, 1, "r", 1, 5, ()), KEY, 5),
        (ReportPart(KEY, 10_000, "r", 1, 5, ()), part_key(KEY, 10_000), 5),
    ):
        with pytest.raises(RecordRefused):
            intake(sent=sent).read("c", slot, encode(data))
    result = ObjectResult(ObjectKey("", "x", "n", "a"), COUNT_MAX + 1, "d")
    with pytest.raises(RecordRefused):
        read(ReportPart(KEY, 1, "r", 1, 5, (result,)), slot=part_key(KEY, 1))


@given(st.binary(max_size=300), st.sampled_from([KEY, "_progress", "_other"]))
def test_any_bytes_are_a_report_or_refused(data, slot):
    try:
        said = intake().read("c", slot, data)
    except RecordRefused:
        return
    assert said is None or slot in (KEY, "_progress")
