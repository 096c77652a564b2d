"""What all edges hold of a kind: each that is reached is asked, some at once, by their paths.

What they brought up lies at their parents, which are asked instead: leafcast.ask.upsynced.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leafcast.ask.failures import CallFailed
from leafcast.ask.object_readers import objects_at
from leafcast.ask.pages import persistently
from leafcast.ask.session import Session
from leafcast.ask.upsynced import CopiesWanted
from schemas.reports.states import NEVER_JOINED

ASKED_AT_ONCE = 16
_REACHED = frozenset({"up", "catching up", "stale"})
_NOT_THERE = "NotFound"
"""An edge's cluster does not serve the kind: it holds none."""

Object = dict[str, Any]


@dataclass(slots=True)
class Edges:
    """The edges of a tree: those that can be asked, and why others cannot."""

    reached: list[str] = field(default_factory=list)
    # Also those that were asked, and did not answer.
    silent: dict[str, str] = field(default_factory=dict)
    never_joined: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many edges are expected to answer."""
        return len({*self.reached, *self.silent})


async def edges_of_tree(session: Session) -> Edges:
    """Who is there now; raises CallFailed."""
    found = Edges()
    for node in (await session.call("tree"))["nodes"]:
        path, state = str(node["path"]), str(node["state"])
        if node["role"] != "edge":
            continue
        if state == NEVER_JOINED:
            found.never_joined.append(path)
        elif state in _REACHED and node["silent_since_ms"] is None:
            found.reached.append(path)
        else:
            found.silent[path] = f"{state}{_since(node['silent_since_ms'])}"
    found.reached.sort()
    return found


def _since(since_ms: int | None) -> str:
    if since_ms is None:
        return ""
    moment = dt.datetime.fromtimestamp(since_ms // 1000, dt.UTC).isoformat()
    return f" since {moment.replace('+00:00', 'Z')}"


async def objects_of_edges(
    session: Session, edges: Edges, wanted: CopiesWanted
) -> AsyncGenerator[tuple[str, list[Object]]]:
    """What each edge holds, by path; who does not answer is noted in `edges`.

    No more answers are held than there are questions at once.
    """
    for at in range(0, len(edges.reached), ASKED_AT_ONCE):
        paths = edges.reached[at : at + ASKED_AT_ONCE]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_asked(session, path, wanted)) for path in paths]
        for path, task in zip(paths, tasks, strict=True):
            match task.result():
                case CallFailed() as failed:
                    edges.silent[path] = failed.message.removeprefix(f"{path} ")
                case objects:
                    yield path, objects


async def _asked(session: Session, path: str, wanted: CopiesWanted) -> list[Object] | CallFailed:
    """What an edge answers; it is asked again where that may help."""
    try:
        return await persistently(session, lambda: objects_at(session, path, wanted))
    except CallFailed as error:
        return [] if error.code == _NOT_THERE else error


def brought_up(placements: Sequence[Mapping[str, Any]], group: str, resource: str) -> bool:
    """Whether one of these placements has edges bring up objects of this kind."""
    for placement in placements:
        spec = placement.get("spec")
        for clause in (spec.get("upsync") if isinstance(spec, Mapping) else None) or ():
            named = clause.get("resources") or ()
            meant = str(clause.get("apiGroup") or "")
            if meant == group and (resource in named or "*" in named):
                return True
    return False
