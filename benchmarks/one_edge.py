"""The process of one edge: it loads what an edge needs, and nothing that measures."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from leafcast.node.freed_memory import give_back_freed
from leafcast.node.options import EdgeCluster, NodeEnvironment, NodeIdentity, ParentAccess
from leafcast.node.runtime import NodeRuntime
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.spaces.simulated_cluster import Settings
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId

EDGE = NodePath(("edge",))


async def run_edge(file: Path) -> None:
    """Be the edge that a file describes, until nothing more is to be read."""
    said = json.loads(file.read_text())
    async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
        roots = Roots({KeyId(said["root"]): bytes.fromhex(said["root_key"])})
        world = NodeEnvironment(guard, SystemClock(), SystemDice(), TreeId(said["tree"]), roots)
        link = ParentRemote((said["url"],), said["seed"])
        folder = Path(said["folder"])
        identity, cluster = NodeIdentity(EDGE, folder), EdgeCluster(Settings())
        edge = NodeRuntime(world, identity, ParentAccess(link), cluster)
        task = group.create_task(edge.run())
        # As each node does that joined.
        giving = group.create_task(give_back_freed(world.clock))
        driver = await edge.running()
        await driver.until(lambda node: node.ready)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        task.cancel()
        giving.cancel()


if __name__ == "__main__":
    asyncio.run(run_edge(Path(sys.argv[1])))
