"""The destinations of a placement below nodes that run elsewhere: relay by relay, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from leafcast.session import CallFailed, Session
from schemas.asks import STATUS
from schemas.identity import BadIdentity, NodePath

LISTED_MAX, ASKED_MAX = 10_000, 2_000

Form = dict[str, Any]


async def destinations_below(
    session: Session, key: str, paths: Iterable[str]
) -> tuple[list[Form], list[str]]:
    """A form for each destination below these relays, and the relays that did not answer.

    `key` is the placement's mail key. After LISTED_MAX destinations, or ASKED_MAX questions, the
    relays that are left count as not asked: who answers may be anyone.
    """
    found: list[Form] = []
    silent: list[str] = []
    waiting = deque(map(NodePath.parse, paths))
    asked = 0
    while waiting and len(found) < LISTED_MAX and asked < ASKED_MAX:
        path, after = waiting.popleft(), ""
        while asked < ASKED_MAX:
            asked += 1
            question: dict[str, Any] = {"placement": key, "after": after}
            try:
                answer = await session.call("ask", path=str(path), verb=STATUS, **question)
                edges, relays, following = _page(path, answer)
            except (CallFailed, BadAnswer):
                silent.append(str(path))
                break
            found += edges
            waiting += relays
            if following <= after:
                break
            after = following
    return found[:LISTED_MAX], [*silent, *map(str, waiting)]


class BadAnswer(ValueError):
    """What a relay answered is no page of its children."""


def _page(path: NodePath, answer: Any) -> tuple[list[Form], list[NodePath], str]:
    """The edges and the relays that a page names, and where the next one begins; BadAnswer."""
    edges: list[Form] = []
    relays: list[NodePath] = []
    try:
        for child in answer["children"]:
            below = path.child(child["name"])
            if child["destination"]:
                edges.append(_form(below, child))
            else:
                relays.append(below)
        return edges, relays, str(answer["next"])
    except (KeyError, TypeError, AttributeError, IndexError, BadIdentity) as error:
        raise BadAnswer(str(path)) from error


def _form(path: NodePath, child: Form) -> Form:
    worst = child["exceptions"][0] if child["exceptions"] else {"object": "", "reason": ""}
    since = child["silentSinceMs"]
    return {
        "path": str(path),
        "state": str(next(iter(child["states"]), "")),
        "health": str(next(iter(child["health"]), "")),
        "complete": child["complete"] is True,
        "silent_since_ms": since if isinstance(since, int) else None,
        "left": child.get("left") is True,
        "object": str(worst["object"]),
        "reason": str(worst["reason"]),
    }
