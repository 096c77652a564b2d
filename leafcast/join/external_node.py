"""One node below the centre, on a nats-server that someone else runs, until cancelled."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from pathlib import Path

from leafcast.data_dir import DataDir
from leafcast.join.node_commands import NodeCommands
from leafcast.node.attached_cluster import attachment
from leafcast.node.claim_note import ClusterRefused
from leafcast.node.credentials.files import CredentialsUnusable, keep_seed, load_credentials
from leafcast.node.freed_memory import give_back_freed
from leafcast.node.health_endpoint import HealthAddress, HealthEndpoint
from leafcast.node.options import EdgeCluster, NodeEnvironment, NodeIdentity, ParentAccess
from leafcast.node.run_config import RunConfig
from leafcast.node.runtime import NodeRuntime
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.guard import ProcessGuard
from relay.claims.edge_claim import UNCLAIMED
from schemas.releases.release_folder import RELEASES

log = logging.getLogger("leafcast")


async def run_node(
    config: RunConfig,
    folder: Path,
    health: HealthAddress | None = None,
    *,
    take_over: bool = False,
) -> None:
    """Run the relay, or the edge with its cluster.

    Raises CredentialsUnusable, PortTaken, and in a group ClusterRefused.
    """
    path, clock = config.node, SystemClock()
    credentials = load_credentials(folder, path)
    link = config.parent_link(folder, credentials.seed) if credentials is not None else None
    if link is None:
        raise CredentialsUnusable(folder / "credentials.json")
    async with ProcessGuard() as guard:
        world = NodeEnvironment(guard, clock, SystemDice(), config.tree_id, config.root_keys())
        setting = attachment(config.cluster.seen_from(folder))
        runtime = NodeRuntime(
            world,
            NodeIdentity(path, folder, config.home, releases=folder / RELEASES),
            ParentAccess(link, partial(keep_seed, folder, path)),
            EdgeCluster(setting, take_over) if config.edge else None,
            config.server_place(folder),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(runtime.run(), name=str(path))
            group.create_task(_tell(runtime), name="tell")
            group.create_task(_watch_claim(runtime), name="claim")
            group.create_task(give_back_freed(clock), name="memory")
            group.create_task(NodeCommands(runtime, DataDir(folder), clock).run(), name="commands")
            if health is not None:
                endpoint = HealthEndpoint(
                    runtime.unready, clock, health.port, health.host, readings=runtime.readings
                )
                group.create_task(endpoint.run(), name="health")


async def _watch_claim(runtime: NodeRuntime) -> None:
    """End the program if its cluster is another's, and log what else keeps it from its work."""
    claim = runtime.claim
    while claim is not None:
        if refusal := claim.refused_at_start:
            raise ClusterRefused(f"{runtime.path}: {refusal}")
        if claim.held:
            log.info("node %s: the cluster is its own", runtime.path)
        elif claim.reason != UNCLAIMED:
            log.warning("node %s: %s", runtime.path, claim.trouble)
        await claim.changed()


async def _tell(runtime: NodeRuntime) -> None:
    await runtime.until(lambda node: node.ready)
    log.info("node %s is in session with its parent", runtime.path)
