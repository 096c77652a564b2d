"""Events on their way to a node: the one queue between the sockets and the core, bounded.

Each child has a lane of its own. A batch takes the same share of each lane, so what one child says
waits for no other. Who costs much has batches of its own, as `FairShares` says. Of a slot that
waits only the last value counts, as in the stream behind it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from relay.core.events import Event, HelloArrived, MailArrived, ReportArrived
from relay.ports import BusBroken
from relay.shell.fair_shares import FairShares
from relay.waiting import SpareTime

INBOX_MAX = 1024
LANE_MAX, LANE_BYTES_MAX = 1024, 1024 * 1024
LANES_BYTES_MAX = 64 * 1024 * 1024
LANE_SHARE = 64
"""How many events of one child a batch holds at most."""
EVENT_BYTES = 200
"""What an event takes besides its data."""

FromChild = ReportArrived | HelloArrived
_HELLO = "_node"


class Lane:
    """What one child said and the node has not taken yet; `bytes` is what it takes up."""

    def __init__(self) -> None:
        self.bytes = 0
        self._waiting: dict[str, FromChild] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= LANE_MAX or self.bytes >= LANE_BYTES_MAX

    def put(self, event: FromChild) -> None:
        """The newest value of a slot comes after all that was said before it."""
        slot = event.key if isinstance(event, ReportArrived) else _HELLO
        former = self._waiting.pop(slot, None)
        self._waiting[slot] = event
        self.bytes += _size(event) - (_size(former) if former is not None else 0)

    def contains(self, event: FromChild) -> bool:
        """Whether an older value of its slot waits."""
        slot = event.key if isinstance(event, ReportArrived) else _HELLO
        return slot in self._waiting

    def take(self, most: int) -> Iterator[FromChild]:
        for slot in list(self._waiting)[:most]:
            event = self._waiting.pop(slot)
            self.bytes -= _size(event)
            yield event

    def assert_invariants(self) -> None:
        """Assert that the count of bytes is that of what waits."""
        assert self.bytes == sum(map(_size, self._waiting.values()))


class Inbox:
    """One reader; many writers, each of which waits while there is no room for what it puts."""

    def __init__(
        self,
        used: Callable[[], float] = time.thread_time,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`used` is the time of the processor that all took so far."""
        self.reading = 0
        """How often the mailbox was read anew; mail of an earlier reading is dropped."""
        self._events: deque[Event] = deque()
        self._lanes: dict[str, Lane] = {}
        self._lanes_bytes = 0
        self._waiting: asyncio.Future[None] | None = None
        self._taken = asyncio.Event()
        self._failure: BaseException | None = None
        self._failed = False
        self._used, self._now = used, now
        self._shares = FairShares()
        self._spare_time = SpareTime(used)
        # Whether the reader is to look elsewhere, or has waited as long as it would.
        self._woken = False
        # Whether the words in the last batch are a heavy child's, what they cost, and whether
        # nothing else was dealt with besides.
        self._given_heavy, self._weighed, self._alone = False, 0.0, True
        # The time of the processor when the last batch was given, or dealt with.
        self._mark = used()

    async def put(self, event: Event) -> None:
        """Put what comes from no child, in order."""
        while len(self._events) >= INBOX_MAX:
            await self._until_taken()
        self._events.append(event)
        self._look()

    def offer(self, event: FromChild) -> bool:
        """Put what a child said into its lane; False if there is no room."""
        lane = self._lanes.setdefault(event.child, Lane())
        if not lane.contains(event) and (lane.full or self._lanes_bytes >= LANES_BYTES_MAX):
            return False
        before = lane.bytes
        lane.put(event)
        self._lanes_bytes += lane.bytes - before
        self._look()
        return True

    async def put_from_child(self, event: FromChild) -> None:
        """The same, and wait for room."""
        while not self.offer(event):
            await self._until_taken()

    async def put_after_former(self, event: FromChild) -> None:
        """The same, and wait also until what waits in its slot is taken.

        So who says the same thing over and over is read as fast as it is dealt with.
        """
        while (lane := self._lanes.get(event.child)) is not None and lane.contains(event):
            await self._until_taken()
        await self.put_from_child(event)

    def is_full_of(self, child: str) -> bool:
        """Whether no room is left for what this child says because of what else it said."""
        lane = self._lanes.get(child)
        return lane is not None and lane.full

    async def next_batch(self, most: int, seconds: float | None = None) -> deque[Event]:
        """What there is, in the order of each writer; empty if nothing comes in so many seconds.

        Raises BusBroken when nothing more will come.
        """
        self._account()
        batch = self._take(most)
        if batch:
            return batch
        if self._lanes:
            return await self._heavy_batch(most, seconds)
        if self._failed:
            raise BusBroken("the bus has ended: its reading failed") from self._failure
        # Also who does not want to wait lets others go on: something may come of that.
        if seconds is None or seconds > 0:
            await self._until_put(seconds)
        else:
            await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
        return self._take(most)

    async def _heavy_batch(self, most: int, seconds: float | None) -> deque[Event]:
        """The next batch while only heavy ones' words wait: others' work goes before them."""
        self._woken = False
        timer = (
            None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.wake)
        )
        try:
            while True:
                if await self._spare_time.round_of_others():
                    self._shares.idle()
                self._account()
                batch = self._take(most)
                if batch or self._woken:
                    return batch
        finally:
            if timer is not None:
                timer.cancel()

    def weigh(self, batch: Iterable[Event]) -> Iterator[Event]:
        """Each event in turn; its child pays for what is used until the next is asked for."""
        self._weighed, self._alone = 0.0, True
        for child, events in groupby(batch, _child_of):
            began, words = self._used(), 0
            for event in events:
                words += 1
                yield event
            if child is None:
                self._alone = False
                continue
            took = self._used() - began
            self._weighed += took
            self._shares.took(child, words, took, self._now())

    def handled(self) -> None:
        """The last batch was dealt with, and what came of it carried out.

        For that, too, a heavy child pays if it alone had the turn, and for what others did while it
        was waited for: else its words would earn it the next turn.
        """
        used = self._used()
        took, self._mark = used - self._mark, used
        heavy = 0.0
        if self._given_heavy:
            heavy = took if self._alone else self._weighed
            self._shares.took_heavy(heavy)
        self._shares.others_took(took - heavy)
        self._given_heavy = False

    def wake(self) -> None:
        """Have a reader that waits look: something may have come to it another way."""
        self._woken = True
        self._look()

    def _look(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def forget_mail(self) -> int:
        """Drop the mail that waits: the mailbox is read anew. The number of that reading."""
        self.reading += 1
        return self.reading

    def _is_current(self, event: Event) -> bool:
        """Whether this is no mail of an earlier reading."""
        return not isinstance(event, MailArrived) or event.reading >= self.reading

    def fail(self, error: BaseException) -> None:
        """Let the reader have what waits, and then BusBroken."""
        self._failure, self._failed = error, True
        self.wake()

    def assert_invariants(self) -> None:
        """Assert that each lane, and the sum over them, counts what waits."""
        for lane in self._lanes.values():
            lane.assert_invariants()
        assert self._lanes_bytes == sum(lane.bytes for lane in self._lanes.values())

    def _account(self) -> None:
        """All that was used since the last batch was dealt with, others used."""
        used = self._used()
        self._shares.others_took(used - self._mark)
        self._mark = used

    def _take(self, most: int) -> deque[Event]:
        heavy = [child for child in self._shares.heavy(self._now()) if child in self._lanes]
        self._given_heavy = bool(heavy) and self._shares.admits_heavy
        if self._given_heavy:
            batch = deque[Event](self._take_from(heavy[0], self._shares.slice_of(heavy[0])))
        else:
            batch = self._take_light(most, frozenset(heavy))
        self._taken.set()
        self._mark = self._used()
        return batch

    def _take_light(self, most: int, heavy: frozenset[str]) -> deque[Event]:
        events = self._events
        batch: deque[Event] = deque()
        while events and len(batch) < most:
            event = events.popleft()
            if self._is_current(event):
                batch.append(event)
        for child in list(self._lanes):
            if len(batch) >= most:
                break
            if child not in heavy:
                batch.extend(self._take_from(child, min(LANE_SHARE, most - len(batch))))
        return batch

    def _take_from(self, child: str, most: int) -> list[FromChild]:
        """So many words of a child; it is the last one's turn next, so nobody is passed over."""
        lane = self._lanes.pop(child)
        before = lane.bytes
        taken = list(lane.take(most))
        self._lanes_bytes += lane.bytes - before
        if lane:
            self._lanes[child] = lane
        return taken

    async def _until_taken(self) -> None:
        self._taken.clear()
        await self._taken.wait()

    async def _until_put(self, seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        waiting = self._waiting = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, self.wake)
        try:
            await waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()


def _child_of(event: Event) -> str | None:
    """Who said it; None if no child did."""
    return event.child if isinstance(event, FromChild) else None


def _size(event: FromChild) -> int:
    return EVENT_BYTES + len(event.data)
