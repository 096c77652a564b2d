"""Translations are prepared in turns: a dear placement delays itself, and not the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import aclosing

from controllers.core.translation.placements import Placements
from controllers.core.translation.preparing import prepare, waiting
from relay.ports import Clock
from relay.turns import in_turns

PREPARED_SECONDS_MAX = 1.0
"""After so long what is prepared goes out, and the rest is gone on with later."""
SHARE_SECONDS = 0.05
"""So long one is prepared before the next one has its turn."""


class Preparation:
    """Who took least so far is first; what was done is remembered by whom it was done for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent: dict[str, float] = {}

    async def prepare(
        self, placements: Placements, names: frozenset[str], is_sealed: Callable[[str], bool]
    ) -> frozenset[str]:
        """Those of these that are to be asked for again, as they are not prepared yet."""
        ends = self._seconds + PREPARED_SECONDS_MAX
        at_work = deque(
            (name, prepare(placements, name, is_sealed))
            for name in sorted(names, key=lambda name: (self._spent.get(name, 0.0), name))
        )
        while at_work:
            name, steps = at_work.popleft()
            began = self._seconds
            if await self._go_on(steps):
                self._spent.pop(name, None)
            else:
                self._spent[name] = self._spent.get(name, 0.0) + self._seconds - began
                at_work.append((name, steps))
            if self._seconds >= ends:
                break
        return waiting(placements, (name for name, _ in at_work), names) if at_work else frozenset()

    @property
    def _seconds(self) -> float:
        return self._clock.now().seconds

    async def _go_on(self, steps: Iterator[None]) -> bool:
        """Whether all of it is done, and not only its share."""
        ends = self._seconds + SHARE_SECONDS
        async with aclosing(in_turns(steps, self._clock)) as turns:
            async for _ in turns:
                if self._seconds >= ends:
                    return False
        return True
