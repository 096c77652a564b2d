"""The process of one region or edge in the latency benchmark: its relay, and its raw node.

It is led by lines on its input, and says on its output when something is there: `applied` (a new
version at an edge) and `stored` (a raw message at an edge), each with the machine's monotonic time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.counts import is_synced
from benchmarks.raw_chain import RawNode
from leafcast.node.freed_memory import search_rarely
from leafcast.node.options import EdgeCluster, NodeEnvironment, NodeIdentity, ParentAccess
from leafcast.node.runtime import NodeRuntime
from leafcast.space_settings import SpaceSetting
from leafcast.spaces import open_space
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.spaces.simulated_cluster import Settings
from relay.core.records.accepted import is_delta
from relay.core.view import NodeView
from relay.shell.driver import Driver
from relay.space_port import Space
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, MailKey, NodePath, TreeId
from tests.memory_tree import config_map


def arms(node: NodeView, count: int) -> frozenset[str]:
    """The content that all of so many destinations have; none while one has not."""
    for key, held in node.records.items():
        if is_delta(held):
            found = node.count(MailKey(key))
            if is_synced(found, count):
                return frozenset(found.summary.arms)
    return frozenset()


def _say(*words: object) -> None:
    print(*words, flush=True)


async def _tell_applied(driver: Driver) -> None:
    last: frozenset[str] = frozenset()
    while True:
        found = arms(driver.node, 1)
        if found not in (frozenset(), last):
            _say("applied", time.monotonic())
            last = found
        await driver.progress()


async def _obey(verbs: dict[str, Callable[[], Awaitable[None]]]) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        await verbs[line.decode().strip()]()
        _say("done")


def _attached(kubeconfig: str) -> Settings | SpaceSetting:
    return SpaceSetting("kubeconfig", kubeconfig) if kubeconfig else Settings()


async def _stored(
    kubeconfig: str, stack: AsyncExitStack, group: asyncio.TaskGroup
) -> Callable[[], None]:
    """What to do with a raw message at an edge: tell of it, or write it to the edge's cluster."""
    if not kubeconfig:
        return lambda: _say("stored", time.monotonic())
    setting = SpaceSetting("kubeconfig", kubeconfig)
    space = await open_space(setting, _never, SystemClock(), SystemDice(), stack)
    count = itertools.count()

    async def write() -> None:
        await space.apply(config_map("raw", "aside", text=f"{next(count)}"), "raw")

    def came() -> None:
        group.create_task(write())

    return came


async def _never() -> Space:
    raise AssertionError("an API server was named")


async def run(said: dict[str, str]) -> None:
    path, folder = NodePath.parse(said["path"]), Path(said["folder"])
    children = said["children"].split()
    async with ProcessGuard() as guard, AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        roots = Roots({KeyId(said["root"]): bytes.fromhex(said["root_key"])})
        world = NodeEnvironment(guard, SystemClock(), SystemDice(), TreeId(said["tree"]), roots)
        link = ParentRemote((said["leaf_url"],), said["seed"])
        attached = None if children else _attached(said["kubeconfig"])
        cluster = EdgeCluster(attached) if attached is not None else None
        runtime = NodeRuntime(world, NodeIdentity(path, folder), ParentAccess(link), cluster)
        task = group.create_task(runtime.run())
        driver = await runtime.running()
        await driver.until(lambda node: node.ready)
        raw = RawNode(
            path,
            runtime.server.url,
            folder,
            children,
            await _stored(said["kubeconfig"], stack, group),
        )
        telling = None if children else group.create_task(_tell_applied(driver))
        search_rarely()
        _say("ready", runtime.server.leaf_url)
        await _obey({"open": raw.open, "serve": raw.serve})
        await raw.close()
        if telling is not None:
            telling.cancel()
        task.cancel()


if __name__ == "__main__":
    asyncio.run(run(json.loads(Path(sys.argv[1]).read_text())))
