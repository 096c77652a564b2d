"""Where the time of a change went, asked of the centre, which asks the nodes on its path."""

from __future__ import annotations

from typing import Any

from leafcast.ask.session import Session

TRACE_SECONDS = 60.0


async def asked_trace(
    session: Session, placement: str, generation: int = 0, path: str = ""
) -> dict[str, Any]:
    """The answer of the verb `trace`; raises CallFailed."""
    asked = {"placement": placement, "generation": generation, "path": path}
    answer: dict[str, Any] = await session.call("trace", seconds=TRACE_SECONDS, **asked)
    return answer
