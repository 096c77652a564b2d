"""Gates at an edge: waves, paths, windows, what was taken, and what is under a rollout."""

import pytest

from relay.core.asks.answers import wave_of as wave_said
from relay.core.effects import LoadBlob
from relay.core.events import ObjectObserved
from relay.core.gates import Candidate, admit, wave_of
from relay.core.instant import Instant
from schemas.content.blobs import Reference
from schemas.content.manifest import build_manifest
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import DeltaBody, DeltaHead, Gate, Source, TakenArms
from schemas.records.windows import Window
from schemas.reports.reports import Summary
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import NodePath
from schemas.values.wire import decode
from tests.unit.test_destination import Bench, listed, mail_key, mine

NEW, OLD = (Reference("manifest", letter * 64, 1) for letter in "ab")
HOUR_MS = 3_600_000
# Open from midnight to one; 0 ms is a midnight.
NIGHT = Window("0 0 * * *", 3600, "UTC")
OPEN, CLOSED = 1000, 2 * HOUR_MS
HERE = LabelSelector((Requirement("a", "In", ("b",)),))
ELSEWHERE = LabelSelector((Requirement("a", "In", ("c",)),))
CANARY = Gate(NEW, selector=HERE, name="2.0")
LAST = Gate(OLD, name="1.0")


def asks(gates, taken=(), now_ms=OPEN, profile=None):
    return admit(gates, Candidate(profile or mine(), lambda _profile: ()), taken, now_ms)


def test_the_first_gate_that_admits_gives_content_and_wave():
    assert asks((CANARY, LAST)) == (NEW, "2.0", ())
    assert asks((Gate(NEW, selector=ELSEWHERE, name="2.0"), LAST)) == (OLD, "1.0", ())
    assert asks((Gate(NEW, below=0, name="2.1"), LAST)) == (OLD, "1.0", ())


def test_a_gate_with_a_path_admits_only_at_or_below_it():
    pin = Gate(OLD, path=NodePath.parse("/r"))
    assert asks((pin, CANARY, LAST)) == (OLD, "", ())
    assert asks((Gate(OLD, path=NodePath.parse("/s")), CANARY, LAST)).arm == NEW


def test_who_waits_for_a_window_keeps_the_older_content_and_counts_where_it_waits():
    gates = (Gate(NEW, name="2.0", windows=(NIGHT,)), LAST)
    assert asks(gates, [OLD.address], CLOSED) == (OLD, "2.0", (NIGHT,))
    assert asks(gates, (), CLOSED) == (OLD, "2.0", (NIGHT,))
    assert asks(gates, [OLD.address], OPEN) == (NEW, "2.0", ())


def test_a_window_that_closes_stops_nobody():
    gates = (Gate(NEW, name="2.0", windows=(NIGHT,)), LAST)
    assert asks(gates, [NEW.address], CLOSED) == (NEW, "2.0", ())


def test_a_later_gate_to_the_same_content_leaves_nobody_waiting():
    gates = (Gate(NEW, name="2.0", windows=(NIGHT,)), Gate(NEW, name="2.1"), LAST)
    assert asks(gates, [OLD.address], CLOSED) == (NEW, "2.0", ())


def test_in_which_wave_someone_counts_has_nothing_to_do_with_the_hour():
    gates = (Gate(NEW, selector=ELSEWHERE, name="2.0"), Gate(NEW, name="2.1", windows=(NIGHT,)))
    assert wave_of((*gates, LAST), Candidate(mine(), lambda _profile: ())) == "2.1"


class Edge(Bench):
    """One placement of two revisions, whose gates are set as a rollout would."""

    def __init__(self, **more):
        super().__init__(**more)
        self.arms = [self.content_of(revision) for revision in (1, 2)]

    def content_of(self, revision):
        entries = listed(0, revision)
        stored = build_manifest(entries)
        self.values |= {a: v for blob in stored for a, v in blob.values.items()}
        self.content.keep(entry.address for entry in entries)
        return stored[0].reference

    def gates(self, *gates, generation=2, now_ms=OPEN):
        head = DeltaHead(
            Source(API_PLACEMENT, "s", "", "p0"),
            generation,
            "",
            "",
            b"h" * 32,
            (),
            0,
            rollout_since=2,
        )
        body = DeltaBody((), gates)
        now = Instant(now_ms / 1000, now_ms)
        self.edge.evaluate(mail_key(1), head, body, cause=generation, now=now)
        asked = [effect.reference.address for effect in self.out if isinstance(effect, LoadBlob)]
        self.serve()
        return asked

    def applied(self, health="healthy"):
        for key, wanted in self.edge.wanted.items():
            self.edge.observe(
                ObjectObserved(
                    key, present=True, address=wanted.address, error="", health=health, status=None
                )
            )

    def said(self, now_ms=OPEN):
        return self.edge.summary(mail_key(1), Instant(now_ms / 1000, now_ms))

    @property
    def revision(self):
        [wanted] = self.edge.wanted.values()
        return int(wanted.address[-1])


def two(edge, windows=(NIGHT,)):
    old, new = edge.arms
    return Gate(new, name="2.0", windows=windows), Gate(old, name="1.0")


def test_a_member_is_counted_with_state_and_health_in_its_wave():
    edge = Edge()
    edge.gates(*two(edge))
    assert edge.said().cells == {"2.0/pending/progressing": 1}
    edge.applied("degraded")
    assert edge.said().cells == {"2.0/synced/degraded": 1}
    assert edge.revision == 2


def test_without_names_there_are_no_cells():
    edge = Edge()
    edge.gates(Gate(edge.arms[0]))
    edge.applied()
    assert edge.said().cells == {}
    assert edge.said().states == {"synced": 1}


def test_who_gets_nothing_before_its_wave_counts_as_waiting():
    edge = Edge()
    edge.gates(Gate(edge.arms[0], selector=ELSEWHERE, name="1.0"), Gate(None), generation=1)
    said = edge.said()
    assert (said.states, said.health, said.cells) == ({"waiting": 1}, {"unknown": 1}, {})
    edge.gates(Gate(edge.arms[0], name="1.0"), Gate(None))
    assert edge.said().states == {"pending": 1}
    edge.applied()
    assert (edge.said().states, edge.said().health) == ({"synced": 1}, {"healthy": 1})
    # What it has is still to be removed.
    edge.gates(Gate(None), generation=3)
    assert edge.said().states == {"leaving": 1}


def test_who_waits_is_neither_synced_nor_failing_with_what_it_has():
    edge = Edge()
    edge.gates(Gate(edge.arms[0], name="1.0"), generation=1)
    edge.applied("degraded")
    edge.gates(*two(edge), now_ms=CLOSED)
    said = edge.said(CLOSED)
    assert (said.states, said.cells) == ({"waiting": 1}, {"2.0/waiting/degraded": 1})
    assert said.arms == {edge.arms[0].address: 1}
    assert edge.revision == 1


def test_it_looks_again_when_the_window_opens_and_every_minute_as_clocks_are_set():
    edge = Edge()
    edge.gates(*two(edge), now_ms=CLOSED)
    assert edge.edge.deadline() == CLOSED / 1000 + 60
    late = 24 * HOUR_MS - 30_000
    edge.gates(*two(edge), now_ms=late)
    assert edge.edge.deadline() == 24 * HOUR_MS / 1000
    assert edge.edge.admissions.due(24 * HOUR_MS / 1000) == [mail_key(1)]
    edge.gates(*two(edge), now_ms=24 * HOUR_MS)
    assert edge.revision == 2
    assert edge.edge.deadline() is None


def test_what_was_taken_stays_taken_in_the_next_run_though_its_window_closed():
    edge = Edge()
    edge.gates(*two(edge))
    note = edge.edge.admissions.take_note()
    assert edge.edge.admissions.take_note() is None
    again = Edge(taken=decode(TakenArms, note).arms)
    again.gates(*two(again), now_ms=CLOSED)
    assert again.revision == 2
    assert again.edge.admissions.take_note() is None


def test_without_windows_nothing_is_noted_and_what_ends_is_forgotten():
    edge = Edge()
    edge.gates(*two(edge, windows=()))
    assert edge.edge.admissions.take_note() is None
    edge.gates(*two(edge))
    assert edge.edge.admissions.take_note() is not None
    edge.edge.drop(mail_key(1))
    assert decode(TakenArms, edge.edge.admissions.take_note()).arms == {}


def test_windows_that_come_later_take_nothing_back():
    edge = Edge()
    edge.gates(*two(edge, windows=()))
    edge.gates(*two(edge), generation=3, now_ms=CLOSED)
    assert edge.revision == 2


def test_an_abort_takes_back_the_newest_alone_though_the_window_of_the_one_before_is_closed():
    edge = Edge()
    oldest, middle, newest = *edge.arms, edge.content_of(3)
    before = (Gate(middle, name="2.0", windows=(NIGHT,)), Gate(oldest, name="1.0"))
    edge.gates(*before)
    edge.gates(Gate(newest, name="3.0", windows=(NIGHT,)), *before, generation=3)
    assert edge.revision == 3
    edge.gates(*before, generation=4, now_ms=CLOSED)
    assert edge.revision == 2
    # What no gate gives any more is not remembered: an undo to it waits for its window.
    edge.gates(Gate(oldest, name="1.0"), generation=5, now_ms=CLOSED)
    edge.gates(*before, generation=6, now_ms=CLOSED)
    assert edge.revision == 1


def test_a_destination_without_zone_waits_and_says_so():
    edge = Edge()
    edge.gates(*two(edge, windows=(Window("* * * * *", 60),)))
    [sample] = edge.said().exceptions
    assert sample.reason.startswith("NoZone: it has no label zone")
    assert edge.said().states == {"waiting": 1}


@pytest.mark.parametrize("several", [False, True])
def test_of_several_arms_an_edge_fetches_only_its_own(several):
    edge = Edge()
    old, new = edge.arms
    gates = (Gate(new, selector=ELSEWHERE), Gate(old)) if several else (Gate(old),)
    hint = Reference("object", "9" * 64, 5)
    head = DeltaHead(Source(API_PLACEMENT, "s", "", "p0"), 1, "", "", b"h" * 32, (), 0)
    body = DeltaBody((old, new, hint), gates)
    edge.edge.evaluate(mail_key(1), head, body, cause=1, now=Instant(0, 0))
    asked = {effect.reference for effect in edge.out}
    assert (hint in asked) is not several
    assert new not in asked


def test_one_whose_gates_are_withheld_has_said_nothing_of_the_present_step():
    edge = Edge()
    edge.gates(*two(edge))
    edge.applied()
    head = DeltaHead(
        Source(API_PLACEMENT, "s", "", "p0"), 3, "", "", b"h" * 32, (), 0, rollout_since=2
    )
    edge.edge.evaluate(mail_key(1), head, None, cause=3, now=Instant(0, 0))
    assert edge.said().cells == {"former": 1}
    assert edge.revision == 2


@pytest.mark.parametrize(
    ("cells", "wave"),
    [({"2.1/synced/healthy": 1}, "2.1"), ({}, ""), ({"former": 1}, "")],
)
def test_an_answer_names_the_wave_of_a_destination(cells, wave):
    summary = Summary({"synced": 1}, {"healthy": 1}, {"arm": 1}, cells=cells)
    assert wave_said(summary) == wave
