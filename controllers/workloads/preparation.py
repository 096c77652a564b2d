"""Translations are prepared in turns: a dear placement delays itself, and not the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from controllers.core.translation.placements import Placements
from controllers.core.translation.preparing import prepare, unread, waiting
from relay.ports import Clock
from relay.waiting import in_turns

PREPARED_SECONDS_MAX = 1.0
"""After so long what is prepared goes out, and the rest is gone on with later."""
SHARE_SECONDS = 0.05
"""So long one is prepared before the next one has its turn."""
WALKS_MAX = 16
"""So often one is prepared anew that changed meanwhile; what is left is done where it is issued."""


@dataclass(slots=True)
class _Walk:
    """How far one is prepared: once to its end, and again if it changed meanwhile."""

    # The rest of the walk; None before the first one and after each.
    steps: Iterator[None] | None = None
    changed: bool = True
    number: int = 0
    spent: float = 0.0

    @property
    def goes_on(self) -> bool:
        """Whether there is something to do."""
        return self.steps is not None or (self.changed and self.number < WALKS_MAX)

    def next(self, begin: Callable[[], Iterator[None]]) -> Iterator[None]:
        """What is left of the walk, or the next walk."""
        if self.steps is None:
            self.steps, self.changed, self.number = begin(), False, self.number + 1
        return self.steps


class Preparation:
    """Who took least so far is first; who waits goes on next time where it is."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Of those that wait, and of nobody else between two rounds.
        self._walks: dict[str, _Walk] = {}
        self._waiting: frozenset[str] = frozenset()

    def changed(self, names: Iterable[str]) -> None:
        """Take it that these are not what they were: what came anew is to be prepared, too."""
        for name in names:
            if (walk := self._walks.get(name)) is not None:
                walk.changed = True

    async def prepare(
        self, placements: Placements, names: frozenset[str], is_sealed: Callable[[str], bool]
    ) -> frozenset[str]:
        """Those of these that are to be asked for again, as they are not prepared yet."""
        known = unread(placements, names)
        walks = {name: self._walks.setdefault(name, _Walk()) for name in names}
        at_work = deque(
            sorted(
                (name for name, walk in walks.items() if walk.goes_on),
                key=lambda name: (walks[name].spent, name),
            )
        )
        ends = self._seconds + PREPARED_SECONDS_MAX
        while at_work:
            name = at_work.popleft()
            begin = partial(prepare, placements, name, is_sealed)
            if not await self._go_on(walks[name], begin):
                at_work.append(name)
            if self._seconds >= ends:
                break
        now = unread(placements, names)
        # What they select since is read the next time.
        unprepared = {name for name, keys in now.items() if keys - known.get(name, frozenset())}
        # Who waited, and is not asked for this time, is prepared as little as before.
        unprepared.update(at_work, self._waiting - names)
        all_names = names | self._waiting
        self._waiting = waiting(placements, unprepared, all_names) if unprepared else frozenset()
        for name in names - self._waiting:
            del self._walks[name]
        return self._waiting & names

    @property
    def _seconds(self) -> float:
        return self._clock.now().seconds

    async def _go_on(self, walk: _Walk, begin: Callable[[], Iterator[None]]) -> bool:
        """Whether all of it is done, and not only its share."""
        began = self._seconds
        while walk.goes_on:
            async with aclosing(in_turns(walk.next(begin), self._clock)) as turns:
                async for _ in turns:
                    if (spent := self._seconds - began) >= SHARE_SECONDS:
                        walk.spent += spent
                        return False
            walk.steps = None
        return True
