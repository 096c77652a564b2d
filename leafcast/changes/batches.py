"""Batches that were judged wait here to be written, part by part, while their command asks for it.

What is written was judged by this very process: a command names the batch, and no object. Nothing
of it goes out before the last is written. A command that is gone asks no more: what it left is
forgotten, and what was held back goes on by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from leafcast.ask.asked_space import refusal_form
from leafcast.changes.turns import in_turns
from relay.ports import BusBroken, Clock, Dice, SpaceError
from relay.space_port import Object
from schemas.values.identity import random_id

BATCHES_MAX = 64
BYTES_MAX = 256 * 1024 * 1024
"""Of all batches that wait, as they were handed over."""
IDLE_SECONDS = 30.0
"""A batch that nobody asked for in so long gives way to others, if there are too many."""
FORGOTTEN_SECONDS = 1800.0
"""How long a person may think about what was judged."""
PART_SECONDS, PART_BYTES = 2.0, 1_000_000
"""After so long, or so many bytes of objects, a part of a batch is answered for."""
HOLD_AGAIN_SECONDS = 2.0

Json = dict[str, Any]
Step = Callable[[], Awaitable[Object | None]]
"""Writes one thing; the object as it is then, or None of one that is gone. Raises SpaceError."""


class TooMany(Exception):
    """More batches wait than there is room for."""


class NotJudged(Exception):
    """A batch that nobody judged, or that is forgotten, or already written."""


class Pausing(Protocol):
    """What issues what is written, and waits for the last of it."""

    def pause(self, name: str) -> None: ...

    def resume(self, name: str) -> None: ...

    def confirm_removals(self, placement: str, copies: int) -> None: ...


@dataclass(slots=True)
class Batch:
    """What is to be written, in rounds: nothing of one leans on another of it.

    A round is begun once the one before it is done; none is begun after a refusal, unless the batch
    goes on: it is `cut_short` then. `pages` are what else its command is to be told of it, in turn.
    """

    rounds: Sequence[Sequence[Step]]
    size: int
    goes_on: bool = False
    at_once: int = 1
    pages: Sequence[str] = ()
    done: int = 0
    cut_short: bool = False
    asked_at: float = 0.0
    held_at: float | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Batches:
    """The batches of one daemon."""

    def __init__(self, pausing: Callable[[], Pausing], clock: Clock, dice: Dice) -> None:
        """`pausing` raises BusBroken while the centre starts: then nothing is held back."""
        self._pausing = pausing
        self._clock = clock
        self._dice = dice
        self._batches: dict[str, Batch] = {}

    def keep(self, batch: Batch) -> str:
        """The name of a batch from now on; raises TooMany."""
        self._make_room(batch.size)
        name = random_id(self._dice.entropy(16))
        self._batches[name] = batch
        batch.asked_at = self._now()
        return name

    def page(self, name: Any, number: int) -> str:
        """A page of what is to be told of a batch; "" behind the last one. Raises NotJudged."""
        pages = self._batch(name).pages
        return pages[number] if 0 <= number < len(pages) else ""

    async def write(self, name: Any, confirmed: Mapping[str, int]) -> Json:
        """Write on for a while: `{results, done, warning}`.

        A result is `{after}` or `{refused}`, or None of what was not begun. With the last one a
        person's word on removals counts, unless the batch was cut short: so many copies of each
        placement. Raises NotJudged.
        """
        batch = self._batch(name)
        results: list[Json | None] = []
        async with batch.lock:
            # Another question may have written the last of it meanwhile.
            batch = self._batch(name)
            until, size = self._now() + PART_SECONDS, 0
            while batch.done < len(batch.rounds) and self._now() < until and size < PART_BYTES:
                self._hold(name, batch)
                outcomes = await _written(batch.rounds[batch.done], batch)
                results += outcomes
                size += len(json.dumps(outcomes))
                batch.done += 1
                batch.asked_at = self._now()
                is_refused = any(it is None or "refused" in it for it in outcomes)
                if (is_refused and not batch.goes_on) or name not in self._batches:
                    batch.done, batch.cut_short = len(batch.rounds), True
            if batch.done < len(batch.rounds):
                return {"results": results, "done": False, "warning": ""}
            self._batches.pop(name, None)
        # What was confirmed follows from the whole change: of a part of it other copies would go.
        warning = self._end(name, {} if batch.cut_short else confirmed)
        return {"results": results, "done": True, "warning": warning}

    def end(self, name: Any) -> None:
        """Forget a batch, whether it was written or not."""
        batch = self._batches.pop(name, None) if isinstance(name, str) else None
        if batch is not None and batch.held_at is not None:
            self._end(name, {})

    def _batch(self, name: Any) -> Batch:
        self._forget()
        if not isinstance(name, str) or name not in self._batches:
            raise NotJudged(name)
        batch = self._batches[name]
        batch.asked_at = self._now()
        return batch

    def _hold(self, name: str, batch: Batch) -> None:
        """Have nothing of it go out, said again as long as it is written."""
        if batch.held_at is not None and self._now() - batch.held_at <= HOLD_AGAIN_SECONDS:
            return
        batch.held_at = self._now()
        with suppress(BusBroken):
            self._pausing().pause(name)

    def _end(self, name: str, confirmed: Mapping[str, int]) -> str:
        """Let what was written go out; why what was confirmed cannot be let go, if it cannot."""
        try:
            pausing = self._pausing()
        except BusBroken as error:
            return f"{error}; try again in a moment" if confirmed else ""
        for placement, copies in confirmed.items():
            pausing.confirm_removals(placement, copies)
        pausing.resume(name)
        return ""

    def _forget(self) -> None:
        before = self._now() - FORGOTTEN_SECONDS
        for name, batch in list(self._batches.items()):
            if batch.asked_at < before and not batch.lock.locked():
                self.end(name)

    def _make_room(self, size: int) -> None:
        """Raises TooMany if those that wait are still asked for."""
        self._forget()
        idle = sorted(
            (batch.asked_at, name)
            for name, batch in self._batches.items()
            if batch.asked_at < self._now() - IDLE_SECONDS and not batch.lock.locked()
        )
        for _, name in [*idle, (0.0, "")]:
            total = size + sum(batch.size for batch in self._batches.values())
            if len(self._batches) < BATCHES_MAX and total <= BYTES_MAX:
                return
            self.end(name)
        raise TooMany

    def _now(self) -> float:
        return self._clock.now().seconds


async def _written(steps: Sequence[Step], batch: Batch) -> list[Json | None]:
    """What came of a round; where the batch does not go on nothing is begun after a refusal."""
    refused = False

    async def write(step: Step) -> Json | None:
        nonlocal refused
        if refused:
            return None
        try:
            return {"after": await step()}
        except SpaceError as error:
            refused = not batch.goes_on
            return {"refused": refusal_form(error)}

    return await in_turns(steps, write, batch.at_once)
