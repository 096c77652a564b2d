"""What relays that run elsewhere say of themselves and of their children, asked tier by tier."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from leafcast.asking import CentreAsks
from relay.asker import AskFailed
from relay.ports import BusBroken
from schemas.asks import NODE
from schemas.identity import NodePath

ASKED_MAX = 500
ASKED_AT_ONCE = 32
ASK_SECONDS_MAX = 8.0

Form = Mapping[str, Any]


async def relays_elsewhere(
    asks: CentreAsks, here: Mapping[NodePath, Form], relays: set[NodePath]
) -> dict[NodePath, Form]:
    """The `node` answers of those of `relays` that can be reached, by path.

    `here` are the answers of the nodes that are known already; nobody is asked whose parent does
    not reach it. At most ASKED_MAX are asked, and for ASK_SECONDS_MAX seconds.
    """
    found: dict[NodePath, Form] = {}
    limit = asyncio.Semaphore(ASKED_AT_ONCE)

    async def ask(path: NodePath) -> None:
        async with limit:
            try:
                found[path] = await asks.ask(path, NODE, {})
            except (AskFailed, BusBroken):
                return

    try:
        async with asyncio.timeout(ASK_SECONDS_MAX):
            for tier in _tiers(sorted(relays)[:ASKED_MAX]):
                async with asyncio.TaskGroup() as group:
                    for path in tier:
                        if _reached(path, {**here, **found}.get(path.parent)):
                            group.create_task(ask(path))
    except TimeoutError:
        pass
    return found


def _tiers(paths: list[NodePath]) -> list[list[NodePath]]:
    tiers: dict[int, list[NodePath]] = {}
    for path in paths:
        tiers.setdefault(len(path.names), []).append(path)
    return [tiers[depth] for depth in sorted(tiers)]


def _reached(path: NodePath, above: Form | None) -> bool:
    child = above["children"].get(path.name) if above else None
    return child is not None and child["inSession"] and child["silentSinceMs"] is None
