"""A report that was lost is missed: child and parent come to the same sum."""

import random
import tracemalloc

import pytest

from relay.core.collectors.collected_results import CollectedResults
from relay.core.content.content import Content
from relay.core.effects import SendReport
from relay.core.link.session import Presence
from relay.core.reports import room
from relay.core.reports.child_reports import UNSENT_MAX, ChildReports, ExpectedCounts
from relay.core.reports.digest import digest_bytes, report_term, run_number
from relay.core.reports.intake import ReportIntake
from relay.core.reports.sender import ReportSender
from schemas.objects.objects import ObjectKey
from schemas.reports.link import Progress
from schemas.reports.reports import (
    PART_MAX_BYTES,
    ObjectResult,
    Report,
    ReportPart,
    Summary,
    decode_report,
    part_key,
)
from schemas.values import codec
from schemas.values.identity import NodePath, short_key
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import decode, replace
from tests.unit.test_reporting import facts, report, reports

NOT_COLLECTED = CollectedResults(Content((), []), None)
KEYS = [short_key(bytes([n]) * 20) for n in range(4)]
FACTS = ExpectedCounts(expected=1, sent=True, generation=9, presence=Presence.IN_STEP, edge=True)


class Link:
    """One child's sender and its parent; messages can be lost, and slots can be read again."""

    def __init__(self, chance):
        self.chance, self.out, self.slots = chance, [], {}
        self.intake = ReportIntake(NodePath(), lambda _child, _key: 9, lambda _key: None)
        self.start_parent()
        self.start_child("r0")

    def start_parent(self):
        self.parent = ChildReports(lambda _child: 0, lambda _child, _key: FACTS, NOT_COLLECTED)
        for slot, data in self.slots.items():
            self.arrive(slot, data)

    def start_child(self, run):
        self.run, self.sender = run, ReportSender(run, self.out)
        self.parent.void_until_repeated("a", run)
        self.sender.begin("p")

    def arrive(self, slot, data):
        said = self.intake.read("a", slot, data)
        if isinstance(said, Report):
            self.parent.take("a", said)
        elif said is not None:
            self.parent.take_part("a", said)

    def send(self, *, lossy=True):
        for effect in self.out:
            assert isinstance(effect, SendReport)
            if lossy and self.chance.random() < 0.2:
                continue
            # As in a stream: what was written last is read last.
            self.slots.pop(effect.key, None)
            self.slots[effect.key] = effect.data
            self.arrive(effect.key, effect.data)
        self.out.clear()

    def say(self, states):
        for key, (state, count) in states.items():
            results = [
                ObjectResult(ObjectKey("", "x", "n", f"{n}"), 1, "d", bytes(30_000))
                for n in range(count)
            ]
            summary = Summary({state: 1}, {"healthy": 1}, {"older": 1})
            self.sender.report(key, summary, results, generation=9, gone=state == "leaving")
        self.sender.assert_invariants()


@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_lost_saying_all_again_brings_both_to_the_same_sum(seed):
    chance = random.Random(seed)
    link, states = Link(chance), {}
    for step in range(40):
        match chance.randrange(6):
            case 0:
                link.start_parent()
                link.parent.void_until_repeated("a", link.run)
            case 1:
                link.start_child(f"r{step + 1}")
                link.say(states)
            case _:
                state = chance.choice(["synced", "failing", "leaving"])
                states[chance.choice(KEYS)] = (state, chance.randrange(5))
                link.say(states)
        link.send()
        link.parent.assert_invariants()
    link.parent.void_until_repeated("a", link.run)
    link.sender.begin("p")
    link.say(states)
    link.send(lossy=False)
    assert link.parent.digest("a") == link.sender.digest
    for slot in link.parent.drop_void("a", link.run):
        link.slots.pop(slot, None)
    link.parent.assert_invariants()
    there = {key for key, (state, _) in states.items() if state != "leaving"}
    assert {key for key in KEYS if link.parent.knows("a", key)} == there
    for key in there:
        assert len(link.parent.results(key)) == states[key][1]
    link.start_parent()
    link.parent.void_until_repeated("a", link.run)
    assert link.parent.digest("a") == link.sender.digest


def test_the_same_is_not_said_twice_and_all_again_in_a_new_session():
    link = Link(random.Random(1))
    states = {KEYS[0]: ("synced", 2)}
    link.say(states)
    first = list(link.out)
    link.sender.progress(5)
    link.say(states)
    link.sender.progress(5)
    assert len(link.out) == len(first) + 1
    said = link.out[-1]
    assert said.key == PROGRESS_KEY
    assert decode(Progress, said.data) == Progress("r0", "p", 5, link.sender.digest)
    link.out.clear()
    link.sender.begin("q")
    link.say(states)
    assert [effect.key for effect in link.out] == [effect.key for effect in first]


def test_nothing_is_said_before_there_is_a_parent():
    out = []
    sender = ReportSender("r", out)
    sender.report(KEYS[0], Summary(), generation=1)
    sender.progress(1)
    assert not out


def part_of(number, key=None):
    """A later part that is small on the wire, and much in memory."""
    results = [[["", "", "", str(at)], 0] for at in range(5_900)]
    data = codec.pack([key or short_key(bytes(20)), number, "r", 1, 7, results])
    assert len(data) <= PART_MAX_BYTES
    part = decode_report(data)
    assert isinstance(part, ReportPart)
    return part


def test_the_later_parts_of_one_child_take_bounded_memory(monkeypatch):
    bytes_max = 8 * 1024 * 1024
    monkeypatch.setattr(room, "ROOM_BYTES", bytes_max)
    found = reports(facts(edge=False, expected=9))
    tracemalloc.start()
    try:
        taken = sum(found.take_part("a", part_of(number)) for number in range(1, 20))
        assert tracemalloc.get_traced_memory()[0] < bytes_max * 3 // 2
    finally:
        tracemalloc.stop()
    assert 1 < taken < 10
    assert found.refused_of("a") == 19 - taken
    found.assert_invariants()
    # What is said again instead, and what is said no more, gives its room back.
    found.take("a", report(parts=0))
    assert found.take_part("a", part_of(19))
    assert not found.refused_of("a")
    found.assert_invariants()


def test_a_part_that_finds_no_room_belongs_to_the_digest_all_the_same(monkeypatch):
    monkeypatch.setattr(room, "ROOM_BYTES", 3 * 1024 * 1024)
    found, terms = reports(facts(edge=False, expected=9)), 0
    for number in range(1, 4):
        assert found.take_part("a", part_of(number)) == (number == 1)
        terms += report_term(part_key(short_key(bytes(20)), number), run_number("r"), 1)
    assert found.digest("a") == digest_bytes(terms)


def test_what_a_former_run_said_takes_no_room_from_the_present_one(monkeypatch):
    monkeypatch.setattr(room, "ROOM_BYTES", 3 * 1024 * 1024)
    found = reports(facts(edge=False, expected=9))
    assert found.take_part("a", part_of(1))
    found.void_until_repeated("a", "s")
    other = replace(part_of(2), run="s")
    assert found.take_part("a", other)
    assert not found.take_part("a", replace(other, part=3))
    found.drop_void("a", "s")
    found.assert_invariants()


def test_an_edge_has_a_share_of_the_room_of_a_relay(monkeypatch):
    monkeypatch.setattr(room, "ROOM_BYTES", 8 * room.size_of(part_of(1)))
    for below, most in ((0, 1), (1, 9)):
        found = ChildReports(
            lambda child: ord(child) - ord("a"),
            lambda _child, _key: FACTS,
            NOT_COLLECTED,
            lambda _child, below=below: below,
        )
        found.void_until_repeated("a", "r")
        assert sum(found.take_part("a", part_of(number)) for number in range(1, 12)) == most


def edge_link():
    """A link of an edge whose placements were sent."""
    link, an_edge = Link(random.Random(1)), facts(generation=9)
    link.parent = ChildReports(
        lambda _child: 0, lambda _child, _key: an_edge, NOT_COLLECTED, lambda _child: 0
    )
    link.parent.void_until_repeated("a", link.run)
    return link


def test_parts_that_nothing_falls_into_count_at_both_ends():
    # Two of these statuses never fit one part, so most parts of a placement hold nothing.
    link, keys = edge_link(), [short_key(bytes([n]) * 20) for n in range(40)]
    for number, key in enumerate(link.sender.in_turn(keys, below=0)):
        states = [
            ObjectResult(ObjectKey("", "x", "n", f"{number % 40}-{n}"), 1, "d", bytes(33_000))
            for n in range(10)
        ]
        link.sender.report(key, Summary({"synced": 1}), states, generation=9)
    link.send(lossy=False)
    assert link.parent.digest("a") == link.sender.digest
    assert link.parent.refused_of("a") == 0
    found = [it for key in keys for it in link.parent.results(key).values() if it.status]
    assert link.parent.unsaid_of("a") == 400 - len(found) > 0
    link.parent.assert_invariants()


@pytest.mark.parametrize("said_too_much", [False, True])
def test_what_found_no_room_is_asked_for_again_once_all_that_is_said_finds_room(
    monkeypatch, said_too_much
):
    monkeypatch.setattr(room, "ROOM_BYTES", 17 * room.size_of(part_of(1)))
    link = edge_link()
    link.parent.void_until_repeated("a", "r")
    first, second, third = KEYS[:3]
    for key in (first, second, third):
        # What comes last overtook what makes room for it.
        link.parent.take_part("a", part_of(1, key))
        link.parent.take("a", report(1, key=key, parts=1))
    assert link.parent.refused_of("a") == 1
    before = link.parent.digest("a")
    link.parent.make_good("a")
    assert link.parent.digest("a") == before
    if not said_too_much:
        link.parent.take_part("a", replace(part_of(1, first), revision=2, results=()))
    before = link.parent.digest("a")
    link.parent.make_good("a")
    link.parent.assert_invariants()
    assert (link.parent.digest("a") == before) == said_too_much
    assert link.parent.refused_of("a") == said_too_much


@pytest.mark.parametrize("seed", range(20))
def test_nobody_says_more_than_its_parent_takes(monkeypatch, seed):
    monkeypatch.setattr(room, "ROOM_BYTES", 400_000)
    link = Link(random.Random(seed))
    keys = [short_key(bytes([n]) * 20) for n in range(6)]
    for _ in range(40):
        key, count = link.chance.choice(keys), link.chance.randrange(6)
        for each in link.sender.in_turn([key], below=1):
            if each == key:
                link.wanted = {**getattr(link, "wanted", {}), key: count}
            link.say({each: ("synced", link.wanted[each])})
        link.send(lossy=False)
        assert not link.parent.refused_of("a")
        assert link.parent.digest("a") == link.sender.digest
        link.parent.assert_invariants()
    # In the order of keys: whoever lacks something lacks it because of those before it.
    left = 400_000
    for key in keys:
        count = link.wanted.get(key, 0)
        whole = count * 30_400 <= left
        states = [it for it in link.parent.results(key).values() if it.status is not None]
        assert (len(states) == count) == whole
        assert link.parent.unsaid(key) == count - len(states)
        left -= min(count * 30_400, left)


@pytest.mark.parametrize(("status_bytes", "found_room"), [(1000, 5000), (3000, 2467)])
def test_an_edge_is_counted_exactly_in_5_000_placements_that_want_states_back(
    status_bytes, found_room
):
    link, keys = edge_link(), [short_key(n.to_bytes(20, "big")) for n in range(5000)]
    for number, key in enumerate(link.sender.in_turn(keys, below=0)):
        web = ObjectKey("apps", "deployments", "n", f"{number}")
        state = ObjectResult(web, 1, "d", bytes(status_bytes))
        link.sender.report(key, Summary({"synced": 1}), [state], generation=9)
    for effect in link.out:
        said = link.intake.read("a", effect.key, effect.data)
        (link.parent.take if isinstance(said, Report) else link.parent.take_part)("a", said)
    assert link.parent.digest("a") == link.sender.digest
    assert all(link.parent.summary(key).states == {"synced": 1} for key in keys)
    states = [it for key in keys for it in link.parent.results(key).values() if it.status]
    assert len(states) == found_room
    assert link.parent.unsaid_of("a") == 5000 - found_room


def test_of_what_the_parent_did_not_send_no_more_is_reported_than_it_keeps():
    link, keys = Link(random.Random(1)), [short_key(n.to_bytes(20, "big")) for n in range(1500)]
    sent, says = set(), Summary({"synced": 1}, {"healthy": 1}, {"older": 1})
    link.parent = ChildReports(
        lambda _child: 0,
        lambda _child, key: FACTS._replace(sent=key in sent, expected=0),
        NOT_COLLECTED,
    )
    link.parent.void_until_repeated("a", link.run)
    link.sender.settle(lambda key: key in sent)

    def reported(listed):
        for key in listed:
            link.sender.report(key, says, generation=9)
        link.send(lossy=False)
        link.parent.assert_invariants()
        assert link.parent.digest("a") == link.sender.digest
        assert link.parent.refused_of("a") == 0
        return sum(link.parent.knows("a", key) for key in keys)

    assert reported(keys) == UNSENT_MAX
    assert reported(keys[1000:1200]) == UNSENT_MAX
    # What is sent is said, and so is as much again of what is not.
    sent.update(keys[:300])
    for key in keys[:300]:
        link.parent.refresh("a", key)
    assert reported([*keys[:300], *keys[1000:]]) == 300 + UNSENT_MAX
    sent.update(keys)
    for key in keys:
        link.parent.refresh("a", key)
    assert reported(keys) == len(keys)
