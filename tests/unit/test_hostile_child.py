"""A child that was broken into, or whose key was stolen, speaks for itself alone, and in bounds."""

import os
import tracemalloc

import pytest

from leafcast.ask.destinations import ASKED_MAX, destinations_below, nodes_below
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.downstream import NOTED_MAX_CHARACTERS
from relay.core.effects import AddChild, Noted, SendWelcome
from relay.core.events import HelloArrived, MailArrived, ReportArrived
from relay.core.reports import room
from relay.core.reports.child_reports import UNSENT_MAX
from schemas.records.records import API_NODE, NodeRecord, Source, encode_payload
from schemas.reports.link import Hello
from schemas.reports.reports import ExceptionSample, Report, Summary
from schemas.values.identity import NodePath, mail_key, short_key
from schemas.values.wire import encode
from tests.simulation.soak import memory_of
from tests.unit.meeting import PATH, SIGNER, TERM, TREE, Meeting

KEY = short_key(bytes(20))
HUGE = 100 * 1024 * 1024


@pytest.mark.parametrize(
    "event",
    [lambda data: ReportArrived("emea", KEY, data), lambda data: HelloArrived("emea", data)],
    ids=["report", "hello"],
)
def test_a_summary_of_100_mb_is_refused_before_it_is_opened(event):
    meeting, data = Meeting(), b"\x9a" + bytes(HUGE)
    tracemalloc.start()
    try:
        effects = meeting.tell(meeting.centre, event(data))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert [e.reason for e in effects if isinstance(e, Noted)] == ["BadReport"]


@pytest.mark.parametrize("names", [("", "h"), ("r" * 65, "h"), ("run", "h" * 65)])
def test_a_hello_names_run_and_home_in_few_bytes(names):
    meeting = Meeting()
    hello = Hello(*names, "", 0, b"", 0)
    effects = meeting.tell(meeting.centre, HelloArrived("emea", encode(hello)))
    assert [e.reason for e in effects if isinstance(e, Noted)] == ["BadReport"]
    assert not [e for e in effects if isinstance(e, SendWelcome)]


def test_a_refusal_repeats_little_of_what_a_child_said():
    meeting = Meeting()
    meeting.join("one", "here")
    sample = ExceptionSample(0, "", "", 1, "/" + "x" * 60_000)
    said = Report(KEY, 0, "one", 1, 7, False, 0, Summary(exceptions=(sample,)))
    effects = meeting.tell(meeting.centre, ReportArrived("emea", KEY, encode(said)))
    (noted,) = [effect for effect in effects if isinstance(effect, Noted)]
    assert len(noted.detail) <= NOTED_MAX_CHARACTERS


def test_reports_on_placements_that_a_child_was_never_sent_take_no_room(monkeypatch):
    noted = 100
    monkeypatch.setattr(room, "ROOM_BYTES", noted * room.PART_MIN_BYTES * room.EDGE_SHARE // 2)
    meeting = Meeting()
    meeting.join("one", "here")

    def say(count):
        for _ in range(count):
            key = short_key(os.urandom(20))
            said = Report(key, 0, "one", 1, 7, False, 0, Summary({"synced": 1}))
            meeting.tell(meeting.centre, ReportArrived("emea", key, encode(said)))

    say(UNSENT_MAX + noted)
    before = memory_of(meeting.centre)
    say(100)
    assert memory_of(meeting.centre) - before < 1_000, "of a million there would be more"


def test_runs_without_end_of_who_counts_for_nothing_yet_have_no_report_looked_at_again():
    meeting, looked_at = Meeting(), []
    reports = meeting.centre._reports
    refresh = reports.refresh_child
    reports.refresh_child = lambda name: (looked_at.append(name), refresh(name))
    for number in range(20):
        hello = Hello(f"run{number}", "here", "", 0, b"", 0)
        meeting.tell(meeting.centre, HelloArrived("emea", encode(hello)))
    assert len(looked_at) <= 1


def told_of(meeting, node, sequence, path):
    """What a relay does about a signed record of a child at this path."""
    nkey = new_user_nkey(os.urandom(32))[1]
    source = Source(API_NODE, TREE, "", str(path))
    record = NodeRecord(source, 2**40, TERM.hex(), "", NodePath.parse(path), nkey)
    data = SIGNER.seal("node", encode_payload(record)).encode()
    key = mail_key(API_NODE, TREE, "", str(path))
    return meeting.tell(node, MailArrived(sequence, key, data, 0))


def test_a_relay_opens_its_server_to_its_own_children_only():
    meeting = Meeting()
    node = meeting.join("one", "here")
    effects = told_of(meeting, node, 12, f"{PATH}/s1")
    assert [e.path for e in effects if isinstance(e, AddChild)] == [NodePath.parse(f"{PATH}/s1")]
    for sequence, path in enumerate(("/apac/s1", "/emea", "/emea-2/s1"), start=13):
        effects = told_of(meeting, node, sequence, path)
        assert not [e for e in effects if isinstance(e, AddChild)]
        assert [e.reason for e in effects if isinstance(e, Noted)] == ["NotMine"]


class Lying:
    """A session in which a relay answers whatever it likes."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    async def call(self, _verb, **_):
        self.asked += 1
        return self.answer(self.asked)


def child(name, destination=""):
    none = {"exceptions": [], "states": {}, "health": {}, "silentSinceMs": None}
    return {"name": name, "destination": destination, "exact": True, **none}


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: {"children": [], "next": f"{n:09}"},
        lambda n: {"children": [child("a")], "next": "a"},
        lambda n: {"children": [child(f"r{n}-{i}") for i in range(9)], "next": ""},
    ],
    ids=["pages", "depth", "breadth"],
)
async def test_a_relay_that_names_ever_more_is_not_asked_without_end(answer):
    session = Lying(answer)
    await destinations_below(session, KEY, ["/emea"])
    assert session.asked <= ASKED_MAX


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"children": 1, "next": ""},
        {"children": [child("../x")], "next": ""},
        {"children": [{"name": "a"}], "next": ""},
        {"children": [child("a.b", "d")], "next": ""},
        {"children": [{**child("a", "d"), "states": {"synced": -1}}], "next": ""},
        {"children": [{**child("a", "d"), "health": {"healthy": True}}], "next": ""},
        {"children": [{**child("a"), "exceptions": ["x"]}], "next": ""},
    ],
    ids=str,
)
async def test_a_relay_that_answers_nonsense_counts_as_silent(answer):
    found, silent = await destinations_below(Lying(lambda _: answer), KEY, ["/emea"])
    assert (found, silent) == ([], ["/emea"])


async def test_nodes_below_a_relay_elsewhere_are_told_as_those_here_are():
    site = {**child("s1", "d1"), "states": {"synced": 1}, "health": {"healthy": 1}}
    away = {**child("s2", "d2"), "states": {"unreachable": 1}, "silentSinceMs": 7, "left": True}
    answers = [
        {"children": [{**child("r1"), "states": {"synced": 2}}], "next": ""},
        {"children": [site, away], "next": ""},
    ]
    found, silent = await nodes_below(Lying(lambda n: answers[n - 1]), KEY, ["/emea"])
    told = [(it["path"], it["role"], it["state"], it["destinations"]) for it in found]
    assert told == [
        ("/emea/r1", "relay", "up", 2),
        ("/emea/r1/s1", "edge", "up", 1),
        ("/emea/r1/s2", "edge", "stopped", 1),
    ]
    assert silent == []
