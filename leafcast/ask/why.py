"""Why a copy is not as it is meant, asked of the centre, which asks the nodes on the way."""

from __future__ import annotations

from typing import Any

from leafcast.ask.session import Session

WHY_SECONDS = 60.0


async def asked_why(session: Session, path: str, **named: Any) -> dict[str, Any]:
    """The answer of the verb `why` of a destination, and of what is named; raises CallFailed.

    That is `placement`, or `object`: group, resource, namespace and name.
    """
    answer: dict[str, Any] = await session.call("why", seconds=WHY_SECONDS, path=path, **named)
    return answer
