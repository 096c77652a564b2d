"""Who reads which child's words: each is read once and in order, whoever reads them."""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from relay.adapters.jetstream.child_reports import ChildReportsReader
from relay.adapters.jetstream.loudness import (
    LOUD_BYTES,
    LOUD_SHARE,
    LOUD_WORDS,
    WINDOW_SECONDS,
    Loudness,
)
from relay.adapters.jetstream.read_places import ReadPlaces
from relay.adapters.jetstream.stream_reader import Stored
from relay.core.instant import Instant
from relay.shell.inbox import LANE_MAX, Inbox
from schemas.values import subjects
from schemas.values.identity import NodePath, short_key

CHILDREN = "abc"
CHILD = st.sampled_from(CHILDREN)


class Reading(RuleBasedStateMachine):
    """A stream, a common reader that leaves out who is apart, and readers of one child each."""

    def __init__(self):
        super().__init__()
        self.places, self.stream, self.apart, self.known = ReadPlaces(), [], {}, set()
        self.read = {child: [] for child in CHILDREN}

    @rule(child=CHILD)
    def said(self, child):
        self.stream.append(child)

    @rule(child=CHILD)
    def joined(self, child):
        self.known.add(child)

    @rule(most=st.integers(0, 20))
    def read_together(self, most):
        names = sorted(self.known - self.apart.keys()) if self.apart else None
        first = self.places.first(names)
        reached = min(first + most, len(self.stream) + 1)
        for sequence in range(first, reached):
            child = self.stream[sequence - 1]
            mine = names is None or child in names
            if mine and sequence >= self.places.of(child):
                self.read[child].append(sequence)
        self.places.read(reached, names)

    @rule(child=CHILD)
    def parted(self, child):
        if child not in self.apart:
            self.apart[child] = self.places.of(child)
            self.places.goes_on(child, self.apart[child])

    @rule(child=CHILD)
    def read_apart(self, child):
        if child in self.apart:
            of_child = self.said_by(child)
            self.read[child] += [at for at in of_child if at >= self.apart[child]]
            self.apart[child] = len(self.stream) + 1

    @rule(child=CHILD)
    def came_back(self, child):
        if child in self.apart:
            self.places.goes_on(child, self.apart.pop(child))

    @invariant()
    def what_is_read_is_read_once_and_in_order(self):
        for child in CHILDREN:
            read = self.read[child]
            assert read == self.said_by(child)[: len(read)]

    def teardown(self):
        for child in CHILDREN:
            self.came_back(child)
        self.read_together(len(self.stream))
        assert all(self.read[child] == self.said_by(child) for child in CHILDREN)

    def said_by(self, child):
        return [at for at, said in enumerate(self.stream, 1) if said == child]


TestReading = Reading.TestCase
TestReading.settings = settings(stateful_step_count=60)


def test_who_says_what_an_edge_says_is_not_loud():
    loudness = Loudness()
    assert not any(loudness.heard("edge", 500, number / 20) for number in range(1000))


def test_who_says_very_much_in_a_second_is_loud_by_words_and_by_bytes():
    loudness = Loudness()
    assert any(loudness.heard("loud", 100, 0.0) for _ in range(LOUD_WORDS + 1))
    assert loudness.heard("large", LOUD_BYTES, 0.0)
    assert not loudness.heard("loud", 100, WINDOW_SECONDS)


def test_nobody_is_loud_who_says_no_more_than_many_others():
    loudness, children = Loudness(), [f"c{number}" for number in range(100)]
    assert not any(loudness.heard(child, 100, 0.0) for child in children * LOUD_WORDS * 2)


class Clock:
    """Stands still."""

    def now(self):
        return Instant(0.0, 0)


class Read:
    """What a node's common reader reads of some children; who is apart is read by nobody."""

    def __init__(self) -> None:
        self.inbox, self.apart, self._last = Inbox(), [], 0
        self._reports = ChildReportsReader(None, Clock(), NodePath(), self.inbox)
        self._reports._read_apart = self._part

    async def hears(self, words):
        """Whether the reader gets through all these, though the node takes nothing."""

        async def read():
            async with asyncio.TaskGroup() as group:
                for child, slot in words:
                    self._last += 1
                    subject = subjects.stat(NodePath((child,)), short_key(slot.to_bytes(20, "big")))
                    await self._reports._take(Stored(subject, b"r", {}, self._last), group)

        reading = asyncio.create_task(read())
        for _ in range(len(words)):
            await asyncio.sleep(0)
        try:
            return reading.done()
        finally:
            reading.cancel()

    async def _part(self, child):
        self.apart.append(child)


async def test_of_many_that_flood_together_none_holds_up_who_reads_all():
    read, floods = Read(), [f"c{number}" for number in range(LOUD_SHARE + 3)]
    words = [(child, slot) for slot in range(LANE_MAX + 10) for child in floods]
    assert await read.hears([*words, ("quiet", 1)])
    assert sorted(read.apart) == sorted(floods)
    read.inbox.assert_invariants()


async def test_so_many_are_read_by_themselves_and_no_more(monkeypatch):
    monkeypatch.setattr("relay.adapters.jetstream.child_reports.APART_MAX", 2)
    read, floods = Read(), [f"c{number}" for number in range(LOUD_SHARE + 3)]
    words = [(child, slot) for slot in range(LANE_MAX + 10) for child in floods]
    assert not await read.hears(words)
    assert read.apart == floods[:2]
