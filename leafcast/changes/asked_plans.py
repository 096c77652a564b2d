"""A plan at the centre, as the command line asks for it, and reads it by pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from leafcast.ask.session import CallFailed, Session
from leafcast.changes.forms import Written, pack_change
from leafcast.changes.wishes import PlannedWrite
from schemas.objects.objects import ObjectKey

PLAN_SECONDS = 600.0

Form = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A plan that the centre keeps; `summary` has its counts, its notes and its first rows."""

    session: Session
    number: int
    summary: Form

    async def rows(self) -> AsyncGenerator[Form]:
        """All rows, removals first; they can be asked for once. Raises CallFailed."""
        while True:
            answer = await self._call("plan-rows")
            for row in answer["rows"]:
                yield row
            if not answer["rows"]:
                return

    async def rows_at(self, path: str) -> list[Form]:
        """The rows of one destination; raises CallFailed."""
        return list((await self._call("plan-rows-at", path=path))["rows"])

    async def objects(self, path: str) -> dict[ObjectKey, Form]:
        """Of each row at a destination, by its key: the object `before`, `after`, if it is `kept`.

        Raises CallFailed.
        """
        answer = await self._call("plan-objects", path=path)
        return {ObjectKey(*form["key"]): form for form in answer["objects"]}

    async def _call(self, verb: str, **args: Any) -> Any:
        return await self.session.call(verb, seconds=PLAN_SECONDS, plan=self.number, **args)


@asynccontextmanager
async def planned(
    session: Session, written: Written, named: Iterable[ObjectKey]
) -> AsyncIterator[PlannedChange]:
    """Have the centre plan a change, and forget it in the end. Raises CallFailed."""
    change = pack_change(written, named)
    summary = await session.call("plan-make", seconds=PLAN_SECONDS, change=change)
    number = summary.pop("plan")
    try:
        yield PlannedChange(session, number, summary)
    finally:
        with suppress(CallFailed):
            await session.call("plan-end", plan=number)


@asynccontextmanager
async def planned_writes(
    session: Session, writes: Iterable[PlannedWrite]
) -> AsyncIterator[PlannedChange]:
    """The same of what a batch would write."""
    asked = list(writes)
    news = {write.wish.key: write.after for write in asked if write.verb != "unchanged"}
    async with planned(session, news, dict.fromkeys(write.wish.key for write in asked)) as made:
        yield made


async def losses(session: Session, written: Written) -> list[Form]:
    """What a change would take of which placements; raises CallFailed."""
    change = pack_change(written, ())
    answer = await session.call("plan-weigh", seconds=PLAN_SECONDS, change=change)
    return list(answer["losses"])
