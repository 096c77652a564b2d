"""Keys that wait to be reconciled, gathered in bursts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Generic, TypeAlias, TypeVar

from relay.ports import Clock
from relay.shell.distribution import Distribution
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import number_of

RETRY_SECONDS = 1.0
"""After so long a reconciler tries again what failed."""
QUIET_SECONDS = 0.02
"""How long it must be quiet within a burst."""
BURST_SECONDS = 0.2
GATHER_MAX_SECONDS = 0.2
HOLD_SECONDS = 5.0
"""So long one word holds a queue."""
HOLDS_SECONDS = 60.0

STATUS_FIRST_SECONDS = 0.03
"""A status stands back for the deltas that it speaks of; reports come far later."""

ALL = ""
"""In a queue of names: all there are."""

DURATIONS = tuple(10.0**power for power in range(-3, 4))
"""Bounds, in seconds, of how long a key waited and of how long work took."""

T = TypeVar("T")

Reconcile: TypeAlias = Callable[[frozenset[T]], Awaitable[Collection[T]]]
"""Brings what these keys name up to date; returns those to be tried again."""


class QueueFigures:
    """What a queue did so far: how many keys were added anew, and how many were tried again."""

    def __init__(self) -> None:
        self.adds = self.retries = 0
        # From when a key was added until it was taken, and from then until all of that was done.
        self.waits, self.works = Distribution(DURATIONS), Distribution(DURATIONS)


class WorkQueue(Generic[T]):
    """Keys that wait for work: each once, however often it was added; bursts are gathered.

    One worker takes them; that it takes again says that it is done with what it took before.
    """

    def __init__(self, clock: Clock, first: float = 0.0) -> None:
        self._clock = clock
        # So many seconds what comes alone waits for company.
        self._first = first
        # With when each was added.
        self._items: dict[T, float] = {}
        self._added = asyncio.Event()
        self._taken_at = float("-inf")
        # Whether what was taken is worked on.
        self._is_working = False
        self.figures = QueueFigures()
        self._revision = 0
        self._taken = self._done = 0
        self._moved = asyncio.Event()
        # What is to be added later and when, and who does it.
        self._later: dict[T, float] = {}
        self._group: asyncio.TaskGroup | None = None
        # Who holds it, since when and until when.
        self._holds: dict[str, tuple[float, float]] = {}
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._free = asyncio.Event()
        self._free.set()

    @property
    def depth(self) -> int:
        """How many keys wait."""
        return len(self._items)

    @property
    def working_seconds(self) -> float:
        """For how long what was taken last has been worked on; 0 while nothing is."""
        return self._clock.now().seconds - self._taken_at if self._is_working else 0.0

    def add(self, items: Iterable[T]) -> None:
        before, now = len(self._items), self._clock.now().seconds
        for item in items:
            self._items.setdefault(item, now)
        if len(self._items) > before:
            self.figures.adds += len(self._items) - before
            self._added.set()

    async def take(self) -> frozenset[T]:
        """Wait for the first, then until it is quiet for a moment, or has gone on for long.

        With more right behind it, or soon after, it is a burst.
        """
        self._done = self._taken
        self._moved.set()
        if self._is_working:
            self._is_working = False
            self.figures.works.observe(self._clock.now().seconds - self._taken_at)
        await self._added.wait()
        await self._free.wait()
        alone = self._clock.now().seconds - self._taken_at > BURST_SECONDS
        quiet, waited = self._first if alone else QUIET_SECONDS, 0.0
        while self._added.is_set() and waited < GATHER_MAX_SECONDS:
            self._added.clear()
            await self._clock.sleep(quiet)
            waited, quiet = waited + quiet, QUIET_SECONDS
        self._added.clear()
        now = self._taken_at = self._clock.now().seconds
        self._is_working = True
        for added in self._items.values():
            self.figures.waits.observe(now - added)
        taken = frozenset(self._items)
        self._items.clear()
        self._taken += 1
        return taken

    async def work(self, reconcile: Reconcile[T]) -> None:
        """Reconcile what is added, until cancelled; what failed is tried again a second later."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                while True:
                    for item in await reconcile(await self.take()):
                        self.figures.retries += 1
                        self.add_later(item, RETRY_SECONDS)
            finally:
                # Who holds it as its run ends holds nothing.
                self._group, self._is_working = None, False

    def add_later(self, item: T, seconds: float) -> None:
        """Add it after so many seconds, while `work` runs, unless it is added sooner anyway."""
        if self._group is None:
            self.add((item,))
            return
        due = self._clock.now().seconds + seconds
        if due < self._later.get(item, float("inf")) - QUIET_SECONDS:
            self._later[item] = due
            self._group.create_task(self._add_later(item, seconds, due), name="later")

    def pause(self, name: str) -> None:
        """Take nothing until `resume`, if `work` runs: what is added belongs together.

        It ends by itself after HOLD_SECONDS, if it is not said again, and in any case after
        HOLDS_SECONDS.
        """
        if self._group is None:
            return
        now = self._clock.now().seconds
        began, _ = self._holds.get(name, (now, now))
        until = min(now + HOLD_SECONDS, began + HOLDS_SECONDS)
        self._holds[name] = (began, until)
        self._free.clear()
        self._end_timer(name)
        ending = self._end_hold(name, until - now, until)
        self._timers[name] = self._group.create_task(ending, name="hold")

    def resume(self, name: str) -> None:
        self._end_timer(name)
        self._holds.pop(name, None)
        if not self._holds:
            self._free.set()

    def read_to(self, revision: str) -> None:
        """Note that all that a space held at this revision was added."""
        self._revision = number_of(revision)
        self._moved.set()

    async def read(self, revision: str) -> None:
        """Wait until a space was read to the revision."""
        while self._revision < number_of(revision):
            await self._move()

    async def wait_caught_up(self, revision: str = "") -> None:
        """Wait until a space was read to the revision, and what was added by then is done."""
        await self.read(revision)
        last = self._taken + bool(self._items)
        while self._done < last:
            await self._move()

    async def _add_later(self, item: T, seconds: float, due: float) -> None:
        await self._clock.sleep(seconds)
        if self._later.get(item) == due:
            del self._later[item]
            self.add([item])

    async def _end_hold(self, name: str, seconds: float, until: float) -> None:
        await self._clock.sleep(seconds)
        if self._holds.get(name, (0.0, 0.0))[1] == until:
            self.resume(name)

    def _end_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    async def _move(self) -> None:
        await self._moved.wait()
        self._moved.clear()


class PlacementQueues:
    """What is to be looked at of one workload description space, by names of placements."""

    def __init__(self, clock: Clock, *, finalizing: bool) -> None:
        self.translations: WorkQueue[str] = WorkQueue(clock)
        self.statuses: WorkQueue[str] = WorkQueue(clock, STATUS_FIRST_SECONDS)
        self.slices: WorkQueue[str] = WorkQueue(clock)
        # What says in its own status what is wrong with it.
        self.own_statuses: WorkQueue[ObjectKey] = WorkQueue(clock, STATUS_FIRST_SECONDS)
        # By names of Rollouts.
        self.rollouts: WorkQueue[str] = WorkQueue(clock)
        # By names of LeafcastReleases.
        self.releases: WorkQueue[str] = WorkQueue(clock, STATUS_FIRST_SECONDS)
        # None where nothing has finalizers.
        self.finalizers: WorkQueue[str] | None = WorkQueue(clock) if finalizing else None

    def by_name(self) -> Mapping[str, WorkQueue[str] | WorkQueue[ObjectKey]]:
        """All of them."""
        found: dict[str, WorkQueue[str] | WorkQueue[ObjectKey]] = {
            "translations": self.translations,
            "statuses": self.statuses,
            "slices": self.slices,
            "own_statuses": self.own_statuses,
            "rollouts": self.rollouts,
            "releases": self.releases,
        }
        return found if self.finalizers is None else {**found, "finalizers": self.finalizers}

    def translated(self, names: Iterable[str]) -> None:
        """What follows from the ledger is to be looked at."""
        listed = tuple(names)
        for queue in (self.statuses, self.slices, self.finalizers):
            if queue is not None:
                queue.add(listed)
