"""Pages of what a node has: asked for again where that may help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from leafcast.ask.failures import AWAY, BadAnswer
from leafcast.ask.session import CallFailed, Session
from schemas.values.identity import NodePath

ATTEMPTS, AGAIN_SECONDS = 3, 0.5
LISTED_MAX = 10_000
"""So many nodes or destinations are listed at most: who answers may be anyone."""
_PASSING = AWAY | {"Busy", "NoAnswer", "NotReady"}
"""Why a question may have an answer in a moment."""
WRONG_QUESTION = "BadArguments"

Page = TypeVar("Page")


def may_answer_soon(failed: CallFailed) -> bool:
    """Whether to ask again may help."""
    return failed.code in _PASSING


async def persistently(session: Session, ask: Callable[[], Awaitable[Page]]) -> Page:
    """What is answered in the end: it is asked again where that may help. Raises CallFailed."""
    for attempt in range(ATTEMPTS):
        try:
            return await ask()
        except CallFailed as failed:
            if not may_answer_soon(failed) or attempt + 1 == ATTEMPTS:
                raise
            await session.clock.sleep(AGAIN_SECONDS * 2**attempt)
    raise AssertionError


async def page_at(
    session: Session, path: NodePath | str, verb: str, read: Callable[[Any], Page], **arguments: Any
) -> Page:
    """What a node answers, as `read` reads it, which raises BadAnswer. Raises CallFailed."""
    answer = await session.call("ask", path=str(path), verb=verb, **arguments)
    try:
        return read(answer)
    except BadAnswer as error:
        said = f"what {path} answers is no answer: {error}"
        raise CallFailed("ask", "BadAnswer", said, "see its log") from error


async def asked_page(
    session: Session, path: NodePath, verb: str, read: Callable[[Any], Page], **arguments: Any
) -> Page:
    """The same, asked again where that may help."""
    return await persistently(session, lambda: page_at(session, path, verb, read, **arguments))
