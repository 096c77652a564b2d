"""A whole tree on this machine: real nats-servers, relays at every tier, simulated clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from controllers.issuing.node_credentials import NodeCredentials
from controllers.issuing.nodes import add_node, enrol_nodes, node_record
from leafcast.ask.session import NODE_MANAGER
from leafcast.centre.centre import Centre, CentreOptions
from leafcast.centre.inventory import edge_objects
from leafcast.data_dir import DataDir
from leafcast.local.views import NodeRow, PlacementView, TreeShape, TreeView
from leafcast.node.attached_cluster import attachment
from leafcast.node.credentials.files import keep_credentials, keep_seed, load_credentials
from leafcast.node.options import (
    EdgeCluster,
    NodeEnvironment,
    NodeHooks,
    NodeIdentity,
    ParentAccess,
)
from leafcast.node.runtime import NodeRuntime
from leafcast.space_settings import SIMULATED, SpaceSetting
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.records.accepted import is_delta
from relay.core.view import NodeView
from schemas.records.placements import placement_of
from schemas.reports.reports import ExceptionSample
from schemas.values.identity import NodePath
from schemas.values.wording import many, namespace_first


class LocalTree:
    """A centre with the nodes of `shape` below it, all in this program; their state outlives it.

    `clusters` are those of edges that are not simulated.
    """

    def __init__(
        self,
        shape: TreeShape,
        centre: Centre,
        clusters: Mapping[NodePath, SpaceSetting] | None = None,
    ) -> None:
        self.shape = shape
        self.centre = centre
        self.up = centre.up
        self._clusters = clusters or {}

    async def run(self) -> None:
        """Start everything, run until cancelled, and stop the servers on the way out."""
        await self.centre.run(self._start_tiers)

    def view(self) -> TreeView:
        """What is known of the tree now."""
        nodes, centre = self.centre.nodes, self.centre.nodes.get(NodePath())
        rows = tuple(_node_view(nodes[path]) for path in sorted(nodes))
        node = centre.node if centre else None
        return TreeView(rows, _placements(node) if node else ())

    async def _start_tiers(self, world: NodeEnvironment, group: asyncio.TaskGroup) -> None:
        for tier in self.shape.tiers():
            async with asyncio.TaskGroup() as starting:
                for path in tier:
                    starting.create_task(self._start_node(world, path, group))
            self.centre.progress(f"tier {len(tier[0].names)}: {many(len(tier), 'node')}")

    async def _start_node(
        self, world: NodeEnvironment, path: NodePath, group: asyncio.TaskGroup
    ) -> None:
        centre = self.centre
        parent = centre.nodes.get(path.parent)
        if parent is None:
            return
        edge, folder = path in self.shape.edges(), centre.place.node(path)
        credentials = await centre.registered(
            lambda: self._credentials(world, path, folder, edge=edge)
        )
        if credentials is None:
            return
        await parent.until(lambda node: path.name in node.children())
        link = ParentRemote((parent.server.leaf_url,), credentials.seed)
        setting = attachment(self._clusters.get(path, SIMULATED))
        runtime = NodeRuntime(
            world,
            NodeIdentity(path, folder),
            ParentAccess(link, partial(keep_seed, folder, path)),
            EdgeCluster(setting, centre.options.take_over) if edge else None,
            centre.listening(path),
            NodeHooks(changed=centre.touch, note=partial(centre.note, path)),
        )
        centre.start_node(runtime, group)
        await runtime.until(lambda node: node.ready)

    async def _credentials(
        self, world: NodeEnvironment, path: NodePath, folder: Path, *, edge: bool
    ) -> NodeCredentials | None:
        """The node's own from an earlier start; a new node is registered, an edge with inventory.

        None if it was removed from the tree since, or runs elsewhere with another key.
        """
        issuer = self.centre.issuer()
        kept = load_credentials(folder, path)
        record = node_record(issuer, path)
        if kept is not None and record is None and self.centre.ledger_lost:
            await enrol_nodes(issuer, {path: kept.nkey})
            return kept
        if kept is not None:
            return kept if record is not None and kept.nkey in record.nkey.split() else None
        fresh = await add_node(issuer, path, world.dice.entropy(32), new_user_nkey)
        if edge:
            # Before the credentials: for who has them this is not done again, so what people change
            # or remove there stays so.
            for obj in edge_objects(path):
                await self.centre.inventory_space().apply(obj, NODE_MANAGER, create_only=True)
        keep_credentials(folder, fresh)
        return fresh


def local_tree(
    shape: TreeShape,
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
    *,
    temporary: bool = False,
    clusters: Mapping[NodePath, SpaceSetting] | None = None,
) -> LocalTree:
    """A tree of its own in a folder, which goes with it if it is temporary."""
    options = CentreOptions(temporary=temporary, relays=shape.relays())
    return LocalTree(shape, Centre(DataDir(folder), options, progress), clusters)


def _sample_text(sample: ExceptionSample) -> str:
    """What is wrong, in one line."""
    where = f" ({sample.count}, e.g. {sample.path})"
    said = ": ".join(filter(None, (namespace_first(sample.object), sample.reason)))
    return said + where


def _node_view(runtime: NodeRuntime) -> NodeRow:
    node, driver = runtime.node, runtime.driver
    role = "edge" if runtime.attached else "relay"
    return NodeRow(
        path=str(runtime.path),
        role="centre" if runtime.path.is_root else role,
        up=node is not None and node.ready,
        mail_written=driver.counters.mail_written if driver else 0,
        blobs_kept=driver.counters.blobs_kept if driver else 0,
        objects_applied=runtime.objects_applied,
    )


def _placements(node: NodeView) -> tuple[PlacementView, ...]:
    views = []
    for held in list(node.records.values()):
        if is_delta(held):
            count = node.count(held.key)
            summary = count.summary
            views.append(
                PlacementView(
                    name=placement_of(held.record.source) or held.record.source.name,
                    destinations=summary.destinations,
                    states=summary.states,
                    health=summary.health,
                    complete=count.exact,
                    exceptions=tuple(map(_sample_text, summary.exceptions)),
                )
            )
    return tuple(sorted(views, key=lambda view: view.name))
