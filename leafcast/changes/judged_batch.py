"""A batch that the centre judged: what it would do, and to have it written, part by part."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from leafcast.ask.asked_space import refusal_of
from leafcast.ask.session import CallFailed, NotRunning, Session
from leafcast.changes.forms import END, JUDGE_SECONDS, WRITE, WRITE_SECONDS, unpack
from relay.space_errors import SpaceError
from relay.space_port import Object


@dataclass(slots=True)
class JudgedBatch:
    """What the daemon keeps of a batch under a name; "" is one of which nothing is written."""

    session: Session
    name: str
    # Why what a person confirmed is not let go, once all is written.
    warning: str = field(default="", init=False)
    _done: bool = field(default=False, init=False)

    async def written(
        self, confirmed: Mapping[str, int] | None = None
    ) -> AsyncIterator[tuple[int, Object | SpaceError | None]]:
        """Have it written: the number of each step, and the object as it is then.

        None of one that is gone, or why it was refused; what was not begun after a refusal is left
        out. Of the placements in `confirmed` so many copies may go by it. Raises CallFailed.
        """
        number = 0
        while not self._done:
            answer = await self.session.call(
                WRITE, seconds=WRITE_SECONDS, batch=self.name, confirmed=dict(confirmed or {})
            )
            self._done, self.warning = answer["done"], answer["warning"]
            for result in unpack(answer["results"]):
                if result is not None:
                    yield number, _outcome(result)
                number += 1

    async def aclose(self) -> None:
        """Have the daemon forget what was not written."""
        if self.name and not self._done:
            with suppress(CallFailed, NotRunning):
                await self.session.call(END, batch=self.name)


async def asked_to_judge(session: Session, verb: str, **arguments: Any) -> Mapping[str, Any]:
    """What the daemon says of a batch; raises SpaceError, CallFailed."""
    answer: Mapping[str, Any] = await session.call(verb, seconds=JUDGE_SECONDS, **arguments)
    if "refused" in answer:
        raise refusal_of(answer["refused"])
    return answer


def _outcome(result: Mapping[str, Any]) -> Object | SpaceError | None:
    if "refused" in result:
        return refusal_of(result["refused"])
    after: Object | None = result["after"]
    return after
