"""A whole tree on this machine: real nats-servers, relays at every tier, simulated clusters."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from controllers.centre import Controllers
from controllers.issuer import Issuer
from controllers.keys import load_or_make_keys
from controllers.nodes import (
    NodeCredentials,
    add_node,
    enrol_lost_nodes,
    enrol_node,
    invite_anew,
    node_record,
)
from leafcast.ask.session import INVENTORY_BUCKET, NODE_MANAGER, USER_MANAGER, WORKLOADS_BUCKET
from leafcast.centre.backup import RELAY, SPACE, CentreServer, restore_pending
from leafcast.centre.centre_spaces import HeldSpaces, centre_identity
from leafcast.centre.inventory import edge_objects
from leafcast.centre.planned_nodes import forget_planned, planned_nodes
from leafcast.data_dir import DataDir
from leafcast.local.observation import observe_tree
from leafcast.local.views import TreeShape, TreeView
from leafcast.node.attached_cluster import attachment
from leafcast.node.credentials.authorities import Authorities, load_or_make_authorities
from leafcast.node.credentials.certificates import LocalListening
from leafcast.node.credentials.files import keep_credentials, keep_seed, load_credentials
from leafcast.node.credentials.store_key import kept_store_key
from leafcast.node.listen_settings import kept_listen_settings
from leafcast.node.runtime import LeafOptions, NodeEnvironment, NodeRuntime
from leafcast.space_settings import SIMULATED, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.entrance import Decide
from relay.adapters.jetstream.request_reply import CannotConnect
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.guard import Guard
from relay.adapters.server.nats_config import ParentLink
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.effects import Noted
from relay.ports import BusBroken, Space, SpaceError, first_of
from relay.shell.driver import Driver
from schemas.enrolment.enrolment import NO_WAY_UP, plain_answer
from schemas.values.identity import NodePath, TreeId
from schemas.values.wording import many

VIEW_SECONDS = 0.1
REGISTER_AGAIN_SECONDS = 0.25
INVITED_ANEW_MS = 86_400_000
"""After a restore nodes may come for so long that may have come since the backup."""

T = TypeVar("T")


log = logging.getLogger("leafcast")


async def _no_one_decides(_request: bytes) -> bytes:
    return plain_answer(NO_WAY_UP)


class LocalTree:
    """A tree laid out as `shape`, its state below `folder`, which outlives it."""

    def __init__(  # noqa: PLR0913 - what most trees do without is named
        self,
        shape: TreeShape,
        folder: Path,
        progress: Callable[[str], None] = lambda _: None,
        *,
        # The folder goes with it, however the program ends.
        temporary: bool = False,
        # Where the centre's server is, if someone else runs it.
        external: ServerPlace | None = None,
        # The clusters of edges that are not simulated.
        clusters: Mapping[NodePath, SpaceSetting] | None = None,
        # Hears what people may want to know of a node.
        note: Callable[[NodePath, Noted], None] = lambda _, __: None,
        # Answers those who ask to be let in.
        decide: Decide = _no_one_decides,
        # Whether hubs and clusters of others that are silent become its own.
        take_over: bool = False,
    ) -> None:
        self.shape = shape
        self.up = asyncio.Event()
        self._place = DataDir(folder)
        self._temporary = temporary
        self._external = external
        self._clusters = clusters or {}
        self._progress = progress
        self._clock, self._dice = SystemClock(), SystemDice()
        self.nodes: dict[NodePath, NodeRuntime] = {}
        self._runs: dict[NodePath, asyncio.Task[None]] = {}
        self.workloads: Space | None = None
        self.inventory: Space | None = None
        self.controllers: Controllers | None = None
        self.world: NodeEnvironment | None = None
        self.centre_up = asyncio.Event()
        # Whether the centre began without a ledger: nodes that it does not know were not removed.
        self._ledger_lost = self._restored = False
        self._listening: LocalListening | None = None
        self._changed = asyncio.Event()
        self._note = note
        self._decide, self._take_over = decide, take_over
        self._held: HeldSpaces | None = None

    async def run(self) -> None:
        """Start everything, run until cancelled, and stop the servers on the way out."""
        async with AsyncExitStack() as stack:
            guard = await stack.enter_async_context(Guard())
            if self._temporary:
                guard.remove_at_end(self._place.folder)
            keys = load_or_make_keys(self._place.keys, self._dice)
            store_key = None if self._external else kept_store_key(self._place.folder)
            world = self.world = NodeEnvironment(
                guard, self._clock, self._dice, keys.tree, keys.roots, store_key
            )
            self._listening = self._listens(keys.tree)
            me = centre_identity(keys.tree, self._place.folder, self._dice)
            self._held = HeldSpaces(
                me,
                self._clock,
                self._dice,
                self._progress,
                lambda *said: self._note(NodePath(), Noted(*said)),
                take_over=self._take_over,
            )
            async with asyncio.TaskGroup() as group:
                if self._listening is not None:
                    group.create_task(self._listening.renew(self._servers), name="certificates")
                await self._start_centre(world, group)
                await self._start_tiers(world, group)
                self._progress("every node is in session with its parent")
                self.up.set()
                self._touch()

    async def apply(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Apply objects to the centre's workload space, one after the other."""
        assert self.workloads is not None
        for obj in objects:
            await self.workloads.apply(dict(obj), USER_MANAGER)

    def view(self) -> TreeView:
        """What is known of the tree now."""
        return observe_tree(self.nodes)

    def unready(self) -> dict[str, str]:
        """What keeps the centre from its work now: each part by name, "" if it does its own."""
        centre, controllers = self.nodes.get(NodePath()), self.controllers
        running = centre is not None and centre.node is not None and controllers is not None
        found = {"centre": "" if running else "it is starting"}
        found |= controllers.unready() if running and controllers else {}
        return found | self.hub_troubles()

    def hub_troubles(self) -> dict[str, str]:
        """Why the centre may not write to one of its spaces, by which: `workloads`, `inventory`."""
        return self._held.unready() if self._held is not None else {}

    def counts(self) -> list[int]:
        """How many nodes of each tier below the centre run here."""
        return [sum(path in self.nodes for path in tier) for tier in self.shape.tiers()]

    async def changed(self) -> None:
        """Wait until the view may be another than when this was called; for any number of callers.

        It takes a tenth of a second at least.
        """
        changed = self._changed
        await self._clock.sleep(VIEW_SECONDS)
        await changed.wait()

    def retire(self, path: NodePath) -> None:
        """End the run of a node that was removed from the tree; one that runs elsewhere is left."""
        if run := self._runs.pop(path, None):
            del self.nodes[path]
            run.cancel()
            self._touch()

    async def renew_certificates(self) -> None:
        """Renew those of servers here that are due, without waiting for the next look.

        Raises ServerFailed, BusBroken, OSError or ValueError.
        """
        if self._listening is not None:
            await self._listening.renew_now(self._servers())

    def _listens(self, tree: TreeId) -> LocalListening | None:
        """How others get to the relays that run here; None if they keep to this machine."""
        said = kept_listen_settings(self._place.folder)
        if said is None:
            return None
        tiers = self.shape.tiers()
        relays = [NodePath(), *(path for tier in tiers[:-1] for path in tier)]

        def authorities() -> Authorities:
            return load_or_make_authorities(self._place.folder, tree, self._clock.now().wall_ms)

        return LocalListening(said, relays, self._place.node, authorities, self._clock)

    def _servers(self) -> dict[NodePath, EmbeddedServer | ExternalServer]:
        return {path: node.server for path, node in self.nodes.items() if node.serves}

    async def _start_centre(self, world: NodeEnvironment, group: asyncio.TaskGroup) -> None:
        folder = self._place.node(NodePath())
        runtime = NodeRuntime(
            world,
            NodePath(),
            folder,
            run_task=self._control,
            setup=self._restore,
            external=self._external,
            decide=self._decide,
            changed=self._touch,
            note=partial(self._note, NodePath()),
            **self._leaf_options(NodePath()),
        )
        group.create_task(self._add(runtime).run(), name="centre")
        await self.centre_up.wait()
        await self._registered(self._enrol)
        self._progress("the centre is running")

    async def _restore(self, centre: NodeRuntime) -> None:
        """Make the centre's streams of a backup that `leafcast restore` put here."""
        try:
            if await restore_pending(self._place, streams_of(centre)):
                self._restored = True
                self._progress("the centre's streams are those of the backup")
        except CannotConnect as error:
            raise BusBroken(str(error)) from error

    async def _enrol(self) -> None:
        """Register the nodes that were laid out to run elsewhere, and are not yet in the tree.

        After a restore those that are awaited are invited anew.
        """
        assert self.controllers is not None
        assert self.inventory is not None
        issuer = self.controllers.issuer
        if self._restored:
            await invite_anew(issuer, self._clock.now().wall_ms + INVITED_ANEW_MS)
            self._restored = False
        for planned in planned_nodes(self._place):
            if planned.edge:
                for obj in edge_objects(planned.path):
                    await self.inventory.apply(obj, NODE_MANAGER, create_only=True)
            if node_record(issuer, planned.path) is None:
                await enrol_node(issuer, planned.path, planned.nkey)
        forget_planned(self._place)

    async def _control(self, relay: Driver) -> None:
        """Run the controllers on the centre's relay; they begin anew with each of its runs."""
        centre = self.nodes[NodePath()]
        assert self._held is not None
        broken = None
        try:
            async with (
                AsyncExitStack() as stack,
                self._held.open(
                    self._place.spaces(),
                    partial(centre.space, WORKLOADS_BUCKET, stack, as_written=True),
                    partial(centre.space, INVENTORY_BUCKET, stack),
                    stack,
                ) as spaces,
            ):
                self.workloads, self.inventory = spaces.workloads[0], spaces.inventory[0]
                self.controllers = await Controllers.open(
                    relay.publisher,
                    spaces.workloads,
                    spaces.inventory,
                    self._clock,
                    self._dice,
                    self._place.keys,
                    lambda *said: self._note(NodePath(), Noted(*said)),
                )
                await self._enrol_children(self.controllers.issuer, centre)
                self.centre_up.set()
                await self.controllers.run()
        except* SpaceError as failed:
            broken = first_of(failed)
        if broken is not None:
            raise BusBroken(f"the centre's spaces: {broken}") from broken

    async def _enrol_children(self, issuer: Issuer, centre: NodeRuntime) -> None:
        """Let the children in whose records the ledger lost: its server knew them last."""
        self._ledger_lost |= issuer.is_new
        first = next(iter(self.shape.tiers()), [])
        kept = {path: load_credentials(self._place.node(path), path) for path in first}
        known = {path: its.nkey for path, its in kept.items() if its is not None}
        known |= {NodePath().child(name): nkey for name, nkey in centre.enrolled.items()}
        await enrol_lost_nodes(issuer, known)

    async def _start_tiers(self, world: NodeEnvironment, group: asyncio.TaskGroup) -> None:
        for tier in self.shape.tiers():
            async with asyncio.TaskGroup() as starting:
                for path in tier:
                    starting.create_task(self._start_node(world, path, group))
            self._progress(f"tier {len(tier[0].names)}: {many(len(tier), 'node')}")

    async def _start_node(
        self, world: NodeEnvironment, path: NodePath, group: asyncio.TaskGroup
    ) -> None:
        parent = self.nodes.get(path.parent)
        edge = path in self.shape.edges()
        folder = self._place.node(path)
        if parent is None:
            return
        credentials = await self._registered(lambda: self._credentials(path, folder, edge=edge))
        if credentials is None:
            return
        await parent.until(lambda node: path.name in node.children())
        link = ParentLink((parent.server.leaf_url,), credentials.seed)
        cluster = self._clusters.get(path, SIMULATED)
        attached = attachment(cluster) if edge else None
        runtime = NodeRuntime(
            world,
            path,
            folder,
            parent=link,
            attached=attached,
            keep_seed=partial(keep_seed, folder, path),
            take_over=self._take_over,
            changed=self._touch,
            note=partial(self._note, path),
            **self._leaf_options(path),
        )
        node = self._add(runtime)
        self._runs[path] = group.create_task(node.run(), name=str(path))
        await node.until(lambda node: node.ready)

    def _leaf_options(self, path: NodePath) -> LeafOptions:
        """How children elsewhere get to a node that runs here."""
        if self._listening is None:
            return {}
        leaf_address = self._listening.leaf_address(path)
        return (
            {"leaf_address": leaf_address, "authorities": self._listening.authorities()}
            if leaf_address
            else {}
        )

    async def _registered(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what writes to the centre; again, if its run or its server ends meanwhile."""
        while True:
            try:
                return await work()
            except (BusBroken, SpaceError) as broken:
                if isinstance(broken, SpaceError) and broken.reason != "ServiceUnavailable":
                    raise
                log.warning("what was being registered is registered again: %s", broken)
                await self._clock.sleep(REGISTER_AGAIN_SECONDS)

    async def _credentials(
        self, path: NodePath, folder: Path, *, edge: bool
    ) -> NodeCredentials | None:
        """The node's own from an earlier start; a new node is registered, an edge with inventory.

        None if it was removed from the tree since, or runs elsewhere with another key.
        """
        assert self.controllers is not None
        assert self.inventory is not None
        issuer = self.controllers.issuer
        kept = load_credentials(folder, path)
        record = node_record(issuer, path)
        if kept is not None and record is None and self._ledger_lost:
            await enrol_node(issuer, path, kept.nkey)
            return kept
        if kept is not None:
            return kept if record is not None and kept.nkey in record.nkey.split() else None
        fresh = await add_node(issuer, path, self._dice.entropy(32), new_user_nkey)
        if edge:
            # Before the credentials: for who has them this is not done again, so what people change
            # or remove there stays so.
            for obj in edge_objects(path):
                await self.inventory.apply(obj, NODE_MANAGER, create_only=True)
        keep_credentials(folder, fresh)
        return fresh

    def _add(self, runtime: NodeRuntime) -> NodeRuntime:
        self.nodes[runtime.path] = runtime
        return runtime

    def _touch(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def streams_of(centre: NodeRuntime) -> CentreServer:
    """Where the centre's streams are."""
    seeds = {RELAY: centre.relay_seed, SPACE: centre.space_seed}
    return CentreServer(centre.server.url, seeds)
