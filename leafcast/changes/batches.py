"""Batches that were judged wait here to be written, part by part, while their command asks for it.

What is written was judged by this very process: a command names the batch, and no object. Nothing
of it goes out while it is written, for a minute at most: what takes longer goes out in pieces. A
command that is gone asks no more: what it left is forgotten, and what was held back goes on by
itself.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from controllers.centre import Controllers
from leafcast.ask.api import ApiError
from leafcast.ask.asked_space import refusal_form
from leafcast.ask.unanswered import is_unanswered
from leafcast.changes.forms import NOBODY_KNOWS
from relay.ports import BusBroken, Clock, Dice
from relay.shell.centre_watch import AppliedBatch
from relay.space_errors import UNAVAILABLE, SpaceError
from relay.space_port import Object
from relay.waiting import some_at_once, work_group
from schemas.objects.objects import ObjectKey
from schemas.values.identity import random_id
from schemas.values.traceparent import TraceContext

BATCHES_MAX = 32
"""Each may be written at the same time: the daemon answers twice as many questions at once."""
BYTES_MAX = 256 * 1024 * 1024
"""Of all batches that wait, as they were handed over."""
IDLE_SECONDS = 30.0
"""A batch that nobody asked for in so long gives way to others, if there are too many."""
FORGOTTEN_SECONDS = 1800.0
"""How long a person may think about what was judged."""
PART_SECONDS, PART_BYTES = 2.0, 1_000_000
"""After so long, or so many bytes of objects, a part of a batch is answered for."""
HOLD_AGAIN_SECONDS = 2.0
_UNKNOWN = "the server of the space did not answer: whether it was written is not known"

log = logging.getLogger("leafcast.changes")

Json = dict[str, Any]
WriteStep = Callable[[], Awaitable[Object | None]]
"""Writes one thing; the object as it is then, or None of one that is gone. Raises SpaceError."""


@dataclass(slots=True)
class Batch:
    """What is to be written, in rounds: nothing of one leans on another of it.

    A round is begun once the one before it is done; none is begun after a refusal, unless the batch
    goes on: it is `cut_short` then. `pages` are what else its command is to be told of it, in turn.
    """

    rounds: Sequence[Sequence[WriteStep]]
    size: int
    goes_on: bool = False
    at_once: int = 1
    pages: Sequence[str] = ()
    # What it writes, if that may be traced, in which span of its caller's, and when it was judged
    # (ms since 1970).
    keys: Sequence[ObjectKey] = ()
    caller: TraceContext | None = None
    judged_ms: int = field(init=False, default=0)
    applied: AppliedBatch | None = field(init=False, default=None)
    done: int = field(init=False, default=0)
    cut_short: bool = field(init=False, default=False)
    asked_at: float = field(init=False, default=0.0)
    is_held: bool = field(init=False, default=False)
    is_being_written: bool = field(init=False, default=False)


class Batches:
    """The batches of one daemon."""

    def __init__(self, pausing: Callable[[], Controllers], clock: Clock, dice: Dice) -> None:
        """`pausing` raises BusBroken while the centre starts: then nothing is held back."""
        self._pausing = pausing
        self._clock = clock
        self._dice = dice
        self._batches: dict[str, Batch] = {}

    def keep(self, batch: Batch) -> str:
        """The name of a batch from now on; raises ApiError."""
        self._make_room(batch.size)
        name = random_id(self._dice.entropy(16))
        self._batches[name] = batch
        now = self._clock.now()
        batch.asked_at, batch.judged_ms = now.seconds, now.wall_ms
        return name

    def page(self, name: Any, number: int) -> str:
        """A page of what is to be told of a batch; "" behind the last one. Raises ApiError."""
        pages = self._batch(name).pages
        return pages[number] if 0 <= number < len(pages) else ""

    async def write(self, name: Any, confirmed: Mapping[str, int]) -> Json:
        """Write on for a while: `{results, done, warning}`.

        A result is `{after}` or `{refused}`, or None of what was not begun. With the last one a
        person's word on removals counts, unless the batch was cut short: so many copies of each
        placement. Raises ApiError.
        """
        batch = self._batch(name)
        if batch.is_being_written:
            message = "another question has this batch written"
            raise ApiError("Busy", message, "wait for its answer")
        batch.is_being_written = True
        try:
            async with work_group() as group:
                holding = group.create_task(self._keep_held(name, batch))
                results = await self._write_part(name, batch)
                holding.cancel()
        finally:
            batch.is_being_written = False
        if batch.done < len(batch.rounds):
            return {"results": results, "done": False, "warning": ""}
        self._batches.pop(name, None)
        if batch.applied is not None:
            with suppress(BusBroken):
                self._pausing().watch.acknowledged(batch.applied)
        # What was confirmed follows from the whole change: of a part of it other copies would go.
        warning = self._end(name, {} if batch.cut_short else confirmed)
        return {"results": results, "done": True, "warning": warning}

    async def _write_part(self, name: str, batch: Batch) -> list[Json | None]:
        """Write until the time of a part is over, or its answer is large enough."""
        results: list[Json | None] = []
        until, size = self._now() + PART_SECONDS, 0
        self._hold(name, batch)
        while batch.done < len(batch.rounds) and self._now() < until and size < PART_BYTES:
            outcomes = await _written(batch.rounds[batch.done], batch)
            results += outcomes
            size += len(json.dumps(outcomes))
            batch.done += 1
            batch.asked_at = self._now()
            is_refused = any(it is None or "refused" in it for it in outcomes)
            if (is_refused and not batch.goes_on) or name not in self._batches:
                batch.done, batch.cut_short = len(batch.rounds), True
        return results

    def end(self, name: Any) -> None:
        """Forget a batch, whether it was written or not."""
        batch = self._batches.pop(name, None) if isinstance(name, str) else None
        if batch is not None and batch.is_held:
            self._end(name, {})

    def _batch(self, name: Any) -> Batch:
        self._forget()
        if not isinstance(name, str) or name not in self._batches:
            message = "nobody judged this batch, or it was forgotten"
            raise ApiError(NOBODY_KNOWS, message, "run the command again")
        batch = self._batches[name]
        batch.asked_at = self._now()
        return batch

    def _hold(self, name: str, batch: Batch) -> None:
        """Have nothing of it go out for some seconds."""
        batch.is_held = True
        with suppress(BusBroken):
            pausing = self._pausing()
            pausing.pause(name)
            if batch.keys and batch.applied is None:
                batch.applied = pausing.watch.writing(batch.keys, batch.judged_ms, batch.caller)

    async def _keep_held(self, name: str, batch: Batch) -> None:
        """Say so again as long as it is written: a single object may take longer."""
        while True:
            await self._clock.sleep(HOLD_AGAIN_SECONDS)
            self._hold(name, batch)

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
            if batch.asked_at < before and not batch.is_being_written:
                self.end(name)

    def _make_room(self, size: int) -> None:
        """End idle batches, the oldest first, if that makes room; raises ApiError."""
        if size > BYTES_MAX:
            message = f"a change of {size} bytes with what there is now, at most {BYTES_MAX}"
            raise ApiError("TooLarge", message, "say less at a time")
        self._forget()
        idle = sorted(
            (batch.asked_at, name)
            for name, batch in self._batches.items()
            if batch.asked_at < self._now() - IDLE_SECONDS and not batch.is_being_written
        )
        left = {name: batch.size for name, batch in self._batches.items()}
        for _, name in idle:
            if _has_room(left, size):
                break
            del left[name]
        if not _has_room(left, size):
            message = "too many changes wait to be written"
            raise ApiError("Busy", message, "try again in a moment")
        for name in self._batches.keys() - left.keys():
            self.end(name)

    def _now(self) -> float:
        return self._clock.now().seconds


def _has_room(sizes: Mapping[str, int], size: int) -> bool:
    """Whether another batch of that size may wait beside these."""
    return len(sizes) < BATCHES_MAX and size + sum(sizes.values()) <= BYTES_MAX


async def _written(steps: Sequence[WriteStep], batch: Batch) -> list[Json | None]:
    """What came of a round; where the batch does not go on nothing is begun after a refusal."""
    refused = False

    async def write(step: WriteStep) -> Json | None:
        nonlocal refused
        if refused:
            return None
        try:
            return {"after": await step()}
        except SpaceError as error:
            refused = not batch.goes_on
            return {"refused": refusal_form(error)}
        except Exception as error:
            if isinstance(error, BusBroken) or is_unanswered(error):
                refused = not batch.goes_on
                return {"refused": refusal_form(SpaceError(UNAVAILABLE, _UNKNOWN))}
            # What was written beside it is answered for all the same.
            log.exception("a change could not be written")
            refused = not batch.goes_on
            text = f"{type(error).__name__}: {error}; the daemon's log shows where"
            return {"refused": refusal_form(SpaceError("InternalError", text))}

    return await some_at_once(steps, write, batch.at_once)
