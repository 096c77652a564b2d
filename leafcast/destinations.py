"""The destinations of a placement below nodes that run elsewhere: relay by relay, page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from leafcast.session import CallFailed, Session
from schemas.asks import STATUS
from schemas.identity import NodePath

LISTED_MAX = 10_000

Form = dict[str, Any]


async def destinations_below(
    session: Session, key: str, paths: Iterable[str]
) -> tuple[list[Form], list[str]]:
    """A form for each destination below these relays, and the relays that did not answer.

    `key` is the placement's mail key. After LISTED_MAX destinations the relays that are left count
    as not asked.
    """
    found: list[Form] = []
    silent: list[str] = []
    waiting = deque(map(NodePath.parse, paths))
    while waiting and len(found) < LISTED_MAX:
        path = waiting.popleft()
        after = ""
        while True:
            asked: dict[str, Any] = {"placement": key, "after": after}
            try:
                answer = await session.call("ask", path=str(path), verb=STATUS, **asked)
            except CallFailed:
                silent.append(str(path))
                break
            for child in answer["children"]:
                if child["destination"]:
                    found.append(_form(path.child(child["name"]), child))
                else:
                    waiting.append(path.child(child["name"]))
            after = answer["next"]
            if not after:
                break
    return found, [*silent, *map(str, waiting)]


def _form(path: NodePath, child: Form) -> Form:
    worst = child["exceptions"][0] if child["exceptions"] else {"object": "", "reason": ""}
    return {
        "path": str(path),
        "state": next(iter(child["states"]), ""),
        "health": next(iter(child["health"]), ""),
        "complete": child["complete"],
        "silent_since_ms": child["silentSinceMs"],
        "left": child.get("left", False),
        "object": worst["object"],
        "reason": worst["reason"],
    }
