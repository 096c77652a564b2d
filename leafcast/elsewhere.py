"""What nodes say of themselves and of their children when they are asked, tier by tier."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from leafcast.asking import CentreAsks
from relay.asker import AskFailed
from relay.ports import BusBroken, Clock
from schemas.asks import NODE, AskFault
from schemas.identity import NodePath

ASKED_MAX = 500
ASKED_AT_ONCE = 32
ASK_SECONDS_MAX = 8.0

Form = Mapping[str, Any]


async def ask_nodes(
    asks: CentreAsks, clock: Clock, paths: Iterable[NodePath], known: Mapping[NodePath, Form]
) -> dict[NodePath, Form | AskFault]:
    """The `node` answers of those of `paths` whose parents reach them, or why there is none.

    `known` are answers that one has already. An answer has in `clockMs` how far the node's clock
    is ahead of ours. At most ASKED_MAX are asked, and for ASK_SECONDS_MAX seconds: who is missing
    was not asked, or was too late.
    """
    found: dict[NodePath, Form | AskFault] = {}
    limit = asyncio.Semaphore(ASKED_AT_ONCE)

    async def ask(path: NodePath) -> None:
        async with limit:
            before = clock.now().wall_ms
            try:
                answer = await asks.ask(path, NODE, {})
            except AskFailed as failed:
                found[path] = failed.fault
            except BusBroken as broken:
                found[path] = AskFault("Restarting", str(broken), str(path))
            else:
                middle = (before + clock.now().wall_ms) // 2
                found[path] = {**answer, "clockMs": answer.get("nowMs", middle) - middle}

    try:
        async with asyncio.timeout(ASK_SECONDS_MAX):
            for tier in _tiers(sorted(paths)[:ASKED_MAX]):
                async with asyncio.TaskGroup() as group:
                    for path in tier:
                        if path.is_root or _reached(path, {**known, **found}.get(path.parent)):
                            group.create_task(ask(path))
    except TimeoutError:
        pass
    return found


def _tiers(paths: list[NodePath]) -> list[list[NodePath]]:
    tiers: dict[int, list[NodePath]] = {}
    for path in paths:
        tiers.setdefault(len(path.names), []).append(path)
    return [tiers[depth] for depth in sorted(tiers)]


def _reached(path: NodePath, above: Form | AskFault | None) -> bool:
    if above is None or isinstance(above, AskFault):
        return False
    child = above["children"].get(path.name)
    return child is not None and child["inSession"] and child["silentSinceMs"] is None
