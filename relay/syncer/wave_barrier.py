"""Whose turn it is: which objects wait for others of their placements, and what is said of that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from relay.core.destination.claims import DesiredObject
from relay.ports import Clock
from relay.syncer.observed import ObservedState
from relay.syncer.plan import is_applied
from relay.syncer.stalled import STALLED_SECONDS
from relay.syncer.waves import UnfinishedObject, Waves
from schemas.objects.objects import ObjectKey
from schemas.objects.order import FIRST_WAVE, wave_of
from schemas.reports.reports import Done


class WaveBarrier:
    """The objects that wait, since when and for which."""

    def __init__(self, clock: Clock, tell: Callable[[ObjectKey], Awaitable[None]]) -> None:
        self._clock = clock
        self._tell = tell
        self._waves = Waves()
        self._since: dict[ObjectKey, float] = {}
        self._begun = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._since)

    def put(
        self,
        key: ObjectKey,
        wanted: DesiredObject | None,
        done: Done | None,
        sight: ObservedState | None,
    ) -> list[ObjectKey]:
        """Take in how an object stands; names the others whose turn may have come or gone.

        `sight` is None while it is not known to be as it was applied.
        """
        if wanted is not None:
            well = sight is not None and sight.health == "healthy" and is_applied(wanted, done)
            standing = None if well else UnfinishedObject(wanted.placements, wanted.order)
            return self._waves.put(key, wanted.placements, wanted.order, standing)
        if done is not None and not done.kept:
            left = UnfinishedObject(done.placements, done.order, left=True)
            return self._waves.put(key, done.placements, done.order, left)
        return self._waves.put(key, (), 0, None)

    def waits(self, key: ObjectKey, wanted: DesiredObject | None, done: Done | None) -> bool:
        """Whether the object's turn is still to come; what was applied is repaired at any time."""
        blocked = not is_applied(wanted, done) and self._waves.blocker(key) is not None
        if not blocked:
            self._since.pop(key, None)
        elif key not in self._since:
            self._since[key] = self._clock.now().seconds
            self._begun.set()
        return blocked

    def waits_for(self, key: ObjectKey) -> tuple[ObjectKey, str] | None:
        """The object that it waits for, and in words which; None unless that lasts."""
        since = self._since.get(key)
        if since is None or self._clock.now().seconds - since < STALLED_SECONDS:
            return None
        blocker = self._waves.blocker(key)
        if blocker is None:
            return None
        wave = wave_of(self._waves.order(blocker))
        return blocker, str(blocker) if wave == FIRST_WAVE else f"{blocker} of wave {wave}"

    async def run(self) -> None:
        """Tell of each object that waits once that lasts, and then as what it waits for changes."""
        while True:
            self._begun.clear()
            if not self._since:
                await self._begun.wait()
            await self._clock.sleep(STALLED_SECONDS)
            for key in list(self._since):
                await self._tell(key)
