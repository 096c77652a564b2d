"""A whole tree on this machine: real nats-servers, relays at every tier, simulated clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from controllers.centre import Controllers
from controllers.keys import load_or_make_keys
from controllers.nodes import add_node
from leafcast.node_runtime import NodeRuntime, World
from leafcast.views import NodeView, PlacementView, TreeShape, TreeView
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.guard import Guard
from relay.adapters.nats_config import ParentLink
from relay.adapters.nkey_pairs import new_user_nkey
from relay.adapters.simulated_cluster import Settings
from relay.core.book import is_delta
from relay.ports import Space
from schemas.api import GROUP, PATH_ANNOTATION, VERSION
from schemas.identity import NodePath
from schemas.objects import BUILT_IN_KINDS
from schemas.reports import ExceptionSample

USER_MANAGER = "leafcast-apply"
VIEW_SECONDS = 0.1


class LocalTree:
    """A tree laid out as `shape`, its state below `folder`.

    The folder outlives it, unless it is `temporary`: then it goes however the program ends.
    """

    def __init__(
        self,
        shape: TreeShape,
        folder: Path,
        progress: Callable[[str], None] = lambda _: None,
        *,
        temporary: bool = False,
    ) -> None:
        self.shape = shape
        self.up = asyncio.Event()
        self._folder = folder
        self._temporary = temporary
        self._progress = progress
        self._clock, self._dice = SystemClock(), SystemDice()
        self._nodes: dict[NodePath, NodeRuntime] = {}
        self._workloads: Space | None = None
        self._controllers: Controllers | None = None
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Start everything, run until cancelled, and stop the servers on the way out."""
        async with AsyncExitStack() as stack:
            guard = await stack.enter_async_context(Guard())
            if self._temporary:
                guard.remove_at_end(self._folder)
            keys = load_or_make_keys(self._folder / "keys", self._dice)
            roots = {keys.root.key_id: keys.root.public_key}
            world = World(guard, self._clock, self._dice, keys.tree, roots)
            async with asyncio.TaskGroup() as group:
                await self._start_centre(world, stack, group)
                await self._start_tiers(world, group)
                self._progress("every node is in session with its parent")
                self.up.set()
                self._touch()

    async def apply(self, objects: Sequence[Mapping[str, Any]]) -> list[str]:
        """Apply objects to the centre's workload space; says what became of each."""
        assert self._workloads is not None
        kinds = BUILT_IN_KINDS.extended_by(objects)
        said = []
        for obj in objects:
            key = kinds.key_of(obj)
            before = await self._workloads.get(key)
            after = await self._workloads.apply(dict(obj), USER_MANAGER)
            verb = "created" if before is None else _verb(before, after)
            said.append(f"{_title(obj)} {verb}")
        return said

    def view(self) -> TreeView:
        """What is known of the tree now."""
        runtimes = sorted(self._nodes.values(), key=lambda runtime: runtime.path)
        noted: dict[str, int] = {}
        for runtime in runtimes:
            for reason, count in runtime.driver.counters.noted.items() if runtime.driver else ():
                noted[reason] = noted.get(reason, 0) + count
        return TreeView(tuple(map(self._node_view, runtimes)), self._placements(), noted)

    async def changed(self) -> None:
        """Wait until the view may be another; at most ten times a second."""
        await self._clock.sleep(VIEW_SECONDS)
        await self._changed.wait()
        self._changed.clear()

    async def _start_centre(
        self, world: World, stack: AsyncExitStack, group: asyncio.TaskGroup
    ) -> None:
        centre = self._add(NodeRuntime(world, NodePath(), self._folder / "centre"))
        group.create_task(centre.run(), name="centre")
        driver = await centre.running()
        self._progress("the centre is running")
        self._workloads = await centre.space("workloads", stack)
        inventory = await centre.space("inventory", stack)
        controllers = self._controllers = Controllers(
            driver, self._workloads, inventory, self._clock, self._dice, self._folder / "keys"
        )
        await controllers.start()
        group.create_task(controllers.run(), name="controllers")
        for obj in _inventory(self._edges()):
            await inventory.apply(obj, USER_MANAGER)

    async def _start_tiers(self, world: World, group: asyncio.TaskGroup) -> None:
        for tier in self._tiers():
            async with asyncio.TaskGroup() as starting:
                for path in tier:
                    starting.create_task(self._start_node(world, path, group))
            self._progress(f"tier {len(tier[0].names)}: {len(tier)} nodes")

    async def _start_node(self, world: World, path: NodePath, group: asyncio.TaskGroup) -> None:
        assert self._controllers is not None
        issuer = self._controllers.issuer
        entropy = self._dice.entropy(32)
        credentials = await add_node(issuer, world.tree, path, entropy, new_user_nkey)
        above = await self._nodes[path.parent].running()
        await above.until(lambda node: path.name in node.children())
        parent = ParentLink(self._nodes[path.parent].server.leaf_url, credentials.seed)
        settings = Settings() if path in self._edges() else None
        folder = self._folder / path.domain
        node = self._add(NodeRuntime(world, path, folder, parent=parent, attached=settings))
        group.create_task(node.run(), name=str(path))
        driver = await node.running()
        await driver.until(lambda node: node.ready)

    def _add(self, runtime: NodeRuntime) -> NodeRuntime:
        self._nodes[runtime.path] = runtime
        runtime.changed = self._touch
        return runtime

    def _touch(self) -> None:
        self._changed.set()

    def _edges(self) -> list[NodePath]:
        return self._tiers()[-1]

    def _tiers(self) -> list[list[NodePath]]:
        """The nodes below the centre, tier by tier."""
        shape = self.shape
        tier = [NodePath((f"region-{n}",)) for n in range(1, shape.regions + 1)]
        tiers = [tier]
        for depth in range(shape.depth - 3):
            tier = [path.child(f"area-{depth + 1}") for path in tier]
            tiers.append(tier)
        sites = range(1, shape.sites + 1)
        tiers.append([path.child(f"site-{n}") for path in tier for n in sites])
        return tiers

    def _node_view(self, runtime: NodeRuntime) -> NodeView:
        node, driver = runtime.node, runtime.driver
        role = "edge" if runtime.attached else "relay"
        return NodeView(
            path=str(runtime.path),
            role="centre" if runtime.path.is_root else role,
            up=node is not None and node.ready,
            children=len(node.children()) if node else 0,
            mail_written=driver.counters.mail_written if driver else 0,
            blobs_kept=driver.counters.blobs_kept if driver else 0,
            objects_applied=runtime.objects_applied,
        )

    def _placements(self) -> tuple[PlacementView, ...]:
        centre = self._nodes.get(NodePath())
        node = centre.node if centre else None
        views = []
        for held in list(node.records.values()) if node else ():
            if is_delta(held) and not held.record.deleted and node is not None:
                summary = node.summary(held.key)
                views.append(
                    PlacementView(
                        name=held.record.source.name,
                        destinations=summary.destinations,
                        states=summary.states,
                        health=summary.health,
                        complete=summary.complete,
                        exceptions=tuple(map(_sample_text, summary.exceptions)),
                    )
                )
        return tuple(sorted(views, key=lambda view: view.name))


def _inventory(edges: Iterable[NodePath]) -> list[dict[str, Any]]:
    """A SyncTarget and a Location for each edge, labelled by region and id."""
    found = []
    for path in edges:
        name = "-".join(path.names)
        labels = {"id": name, "region": path.names[0]}
        sync_target = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "SyncTarget",
            "metadata": {
                "name": name,
                "labels": labels,
                "annotations": {PATH_ANNOTATION: str(path)},
            },
            "spec": {},
        }
        location = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "Location",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "resource": {"group": GROUP, "version": VERSION, "resource": "synctargets"},
                "instanceSelector": {"matchLabels": {"id": name}},
            },
        }
        found += [sync_target, location]
    return found


def _title(obj: Mapping[str, Any]) -> str:
    """`deployment.apps/web`, as kubectl says it."""
    group = str(obj["apiVersion"]).rpartition("/")[0]
    kind = str(obj["kind"]).lower()
    return (
        f"{kind}.{group}/{obj['metadata']['name']}"
        if group
        else f"{kind}/{obj['metadata']['name']}"
    )


def _verb(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return "unchanged" if same else "configured"


def _sample_text(sample: ExceptionSample) -> str:
    where = f" ({sample.count}, e.g. {sample.path})"
    return f"{sample.object}: {sample.reason}{where}" if sample.object else sample.reason + where
