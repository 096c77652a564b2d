"""A running centre: its node, its controllers, the spaces they work on, and who runs beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from controllers.centre import Controllers
from controllers.issuing.issuer import Issuer
from controllers.issuing.keys import CentreKeys, load_or_make_keys
from controllers.issuing.nodes import end_bundles, enrol_lost_nodes, nkeys_of, void_bundle
from leafcast.ask.session import INVENTORY_BUCKET, USER_MANAGER, WORKLOADS_BUCKET
from leafcast.backups.centre_streams import CentreServer
from leafcast.backups.restoring import RestoredStream, end_placing, restore_pending
from leafcast.centre.centre_readings import centre_readings
from leafcast.centre.centre_spaces import HeldSpaces, centre_identity, confirming
from leafcast.centre.copying import end_copying, kept_copying, streams_at
from leafcast.centre.pinned_publisher import PinnedPublisher
from leafcast.centre.planned_nodes import register_planned
from leafcast.data_dir import DataDir
from leafcast.members.settings import kept_member
from leafcast.metrics.reading import MetricReading
from leafcast.node.credentials.authorities import Authorities, load_or_make_authorities
from leafcast.node.credentials.certificates import LocalListening
from leafcast.node.credentials.files import load_credentials
from leafcast.node.credentials.kept_store import kept_store
from leafcast.node.listen_settings import kept_listen_settings
from leafcast.node.options import (
    ActiveMember,
    Listening,
    NodeEnvironment,
    NodeHooks,
    NodeIdentity,
    RunBeside,
)
from leafcast.node.runtime import NodeRuntime
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.entrance import Decide
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.durability import DEFAULT_STORE
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_server import EmbeddedServer
from relay.core.effects import Noted
from relay.ports import BusBroken, first_of
from relay.shell.asker import Asker
from relay.shell.driver import Driver
from relay.space_errors import SpaceError
from relay.space_port import Space
from schemas.enrolment.enrolment import NO_WAY_UP, plain_answer
from schemas.records.roots import Roots
from schemas.releases.release_folder import RELEASES
from schemas.values.identity import NodePath, TreeId

VIEW_SECONDS = 0.1
REGISTER_AGAIN_SECONDS = 0.25
NODES_READ_MAX = 64
"""So many nodes of one process show their figures; they have a server each, which is asked."""

T = TypeVar("T")
StartBelow = Callable[[NodeEnvironment, asyncio.TaskGroup], Awaitable[None]]

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class CentreOptions:
    """What a centre is started with, beside its data directory.

    `external` is where its server is, if someone else runs it. With `take_over` hubs and clusters
    of others that are silent become its own. With `temporary` its folder goes with the program,
    however that ends. `relays` run below it in this program, parents first. With `member` it is the
    active one of several, and `beside` runs on its relay.
    """

    external: ServerPlace | None = None
    take_over: bool = False
    temporary: bool = False
    relays: tuple[NodePath, ...] = ()
    member: ActiveMember | None = None
    beside: RunBeside | None = None


async def _no_one_decides(_request: bytes) -> bytes:
    return plain_answer(NO_WAY_UP)


class Centre:
    """The centre of a tree, its state below `place`, which outlives it.

    `nodes` are those that run in this program, the centre's own among them. `controllers`,
    `workloads` and `inventory` are of its last run, None before the first. `started` is set once
    they are there, `up` once all that runs in this program is in session.
    """

    def __init__(
        self,
        place: DataDir,
        options: CentreOptions | None = None,
        progress: Callable[[str], None] = lambda _: None,
        *,
        # Hears what people may want to know of a node.
        note: Callable[[NodePath, Noted], None] = lambda _, __: None,
        # Answers those who ask to be let in.
        decide: Decide = _no_one_decides,
    ) -> None:
        self.place, self.options, self.progress = place, options or CentreOptions(), progress
        self.note, self._decide = note, decide
        self._clock, self._dice = SystemClock(), SystemDice()
        self.nodes: dict[NodePath, NodeRuntime] = {}
        self._runs: dict[NodePath, asyncio.Task[None]] = {}
        self.workloads: Space | None = None
        self.inventory: Space | None = None
        self.controllers: Controllers | None = None
        self.started, self.up = asyncio.Event(), asyncio.Event()
        # Whether it began without a ledger: nodes that it does not know were not removed.
        self.ledger_lost = False
        # What its streams were made of as it began, if that was a backup.
        self.restored: list[RestoredStream] | None = None
        self._listening: LocalListening | None = None
        self._held: HeldSpaces | None = None
        self._is_followed = False
        self._changed = asyncio.Event()

    async def run(self, start_below: StartBelow | None = None) -> None:
        """Start the centre, and what is to run below it; run until cancelled.

        The servers are stopped on the way out.
        """
        async with AsyncExitStack() as stack:
            guard = await stack.enter_async_context(ProcessGuard())
            end_placing(self.place)
            if self.options.temporary:
                guard.remove_at_end(self.place.folder)
            world = self._environment(guard)
            self._listening = self._listens(world.tree)
            self._held = self._holds(world.tree)
            stack.push_async_callback(self._leave_hubs)
            async with asyncio.TaskGroup() as group:
                if self._listening is not None:
                    group.create_task(self._listening.renew(self._servers), name="certificates")
                await self._start(world, group)
                if start_below is not None:
                    await start_below(world, group)
                self.progress("every node is in session with its parent")
                self.up.set()
                self.touch()

    def start_node(self, runtime: NodeRuntime, group: asyncio.TaskGroup) -> None:
        """Run a node in this program, until it is retired or the program ends."""
        self.nodes[runtime.path] = runtime
        self._runs[runtime.path] = group.create_task(runtime.run(), name=str(runtime.path))

    def runs_here(self, path: NodePath) -> bool:
        """Whether the node is one of those that this very program starts."""
        return path in self.nodes

    def hand_over(self) -> None:
        """Whatever runs on this directory next is the same centre: hubs are not given back."""
        self._is_followed = True

    def retire(self, path: NodePath) -> None:
        """End the run of a node that was removed from the tree; one that runs elsewhere is left."""
        if run := self._runs.pop(path, None):
            del self.nodes[path]
            run.cancel()
            self.touch()

    def asker(self) -> Asker:
        """Who asks nodes of the tree; raises BusBroken between runs."""
        node = self.nodes.get(NodePath())
        return running(node.asker if node is not None else None)

    def keys(self) -> CentreKeys:
        return running(self.controllers).keys

    def issuer(self) -> Issuer:
        return running(self.controllers).issuer

    def nkeys(self, path: NodePath) -> tuple[str, ...]:
        """The public keys that the node of a path may have."""
        return nkeys_of(self.issuer(), path)

    def tree_id(self) -> TreeId:
        return self.keys().tree

    def roots(self) -> Roots:
        """The root keys that nodes pin."""
        return self.keys().roots

    def inventory_space(self) -> Space:
        return running(self.inventory)

    def streams(self) -> CentreServer:
        """Where the centre's streams are; raises BusBroken before its server was started."""
        hosted = running(self.nodes.get(NodePath())).hosted
        return streams_at(hosted.server, hosted.seeds)

    async def apply(self, objects: Iterable[Mapping[str, Any]]) -> None:
        """Apply objects to the workload space, one after the other."""
        for obj in objects:
            await running(self.workloads).apply(dict(obj), USER_MANAGER)

    def unready(self) -> dict[str, str]:
        """What keeps the centre from its work now: each part by name, "" if it does its own."""
        centre, controllers = self.nodes.get(NodePath()), self.controllers
        if centre is None or centre.node is None or controllers is None:
            return {"centre": "it is starting", **self.hub_troubles()}
        return {"centre": "", **controllers.unready(), **self.hub_troubles()}

    async def readings(self) -> list[MetricReading]:
        """Its figures as they are now, and those of the first NODES_READ_MAX nodes here."""
        nodes = [self.nodes[path] for path in sorted(self.nodes)[:NODES_READ_MAX]]
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(node.readings()) for node in nodes]
        found = [reading for each in asked for reading in each.result()]
        return [*found, *(centre_readings(self.controllers) if self.controllers else ())]

    def hub_troubles(self) -> dict[str, str]:
        """Why the centre may not write to one of its spaces, by which: `workloads`, `inventory`."""
        return self._held.unready() if self._held is not None else {}

    async def changed(self) -> None:
        """Wait until there may be other things to see than now; for any number of callers.

        It takes a tenth of a second at least.
        """
        changed = self._changed
        await self._clock.sleep(VIEW_SECONDS)
        await changed.wait()

    def touch(self) -> None:
        """Wake who waits for what there is to see."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def renew_certificates(self) -> None:
        """Renew those of servers here that are due, without waiting for the next look.

        Raises ServerFailed, BusBroken, OSError or ValueError.
        """
        if self._listening is not None:
            await self._listening.renew_now(self._servers())

    def listening(self, path: NodePath) -> Listening:
        """How children elsewhere get to a node that runs here."""
        leaf_address = self._listening.leaf_address(path) if self._listening is not None else None
        if self._listening is None or leaf_address is None:
            return Listening()
        return Listening(leaf_address, self._listening.authorities())

    async def registered(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what writes to the centre; again, if its run or its server ends meanwhile."""
        while True:
            try:
                return await work()
            except (BusBroken, SpaceError) as broken:
                if isinstance(broken, SpaceError) and broken.reason != "ServiceUnavailable":
                    raise
                log.warning("what was being registered is registered again: %s", broken)
                await self._clock.sleep(REGISTER_AGAIN_SECONDS)

    def _environment(self, guard: ProcessGuard) -> NodeEnvironment:
        keys = load_or_make_keys(self.place.keys, self._dice)
        store = DEFAULT_STORE if self.options.external else kept_store(self.place.folder).settings()
        member = self.options.member
        return NodeEnvironment(guard, self._clock, self._dice, keys.tree, keys.roots, store, member)

    def _listens(self, tree: TreeId) -> LocalListening | None:
        """How others get to the relays that run here; None if they keep to this machine."""
        settings = kept_listen_settings(self.place.folder)
        if settings is None:
            return None

        def authorities() -> Authorities:
            return load_or_make_authorities(self.place.folder, tree, self._clock.now().wall_ms)

        relays = [NodePath(), *self.options.relays]
        return LocalListening(settings, relays, self.place.node, authorities, self._clock)

    def _holds(self, tree: TreeId) -> HeldSpaces:
        folder, member = self.place.folder, self.options.member
        settings = kept_member(folder) if member is not None else None
        return HeldSpaces(
            centre_identity(tree, folder, self._dice, settings),
            self._clock,
            self._dice,
            self.progress,
            self._note_of_centre,
            self.options.take_over,
            confirming(member),
        )

    async def _leave_hubs(self) -> None:
        """Give the hubs back where the centre ends, and not this run of it alone.

        Another member follows one that ends, unless all were told to end.
        """
        is_followed = self._is_followed
        if self.options.member is not None:
            is_followed = not self.place.is_ending()
        if self._held is not None and not is_followed:
            await self._held.give_back()

    def _note_of_centre(self, reason: str, about: str, detail: str) -> None:
        self.note(NodePath(), Noted(reason, about, detail))

    def _servers(self) -> dict[NodePath, EmbeddedServer | ExternalServer]:
        return {path: node.server for path, node in self.nodes.items() if node.hosted.is_started}

    async def _start(self, world: NodeEnvironment, group: asyncio.TaskGroup) -> None:
        path = NodePath()
        hooks = NodeHooks(
            self._restore, self._run_beside, self._decide, self.touch, partial(self.note, path)
        )
        releases = self.place.folder / RELEASES
        identity = NodeIdentity(path, self.place.node(path), releases=releases)
        serving = self.options.external or self.listening(path)
        self.start_node(NodeRuntime(world, identity, serving=serving, hooks=hooks), group)
        await self.started.wait()
        await self.registered(
            lambda: register_planned(self.place, self.issuer(), self.inventory_space())
        )
        self.progress("the centre is running")

    async def _restore(self) -> None:
        """Make the centre's streams of a backup that `leafcast restore` put here, or of a copy."""
        copying, member = kept_copying(self.place.folder), self.options.member
        self.restored = await restore_pending(
            self.place,
            self.streams(),
            self._clock,
            self.progress,
            MEMBERS if member is not None else 1,
            is_copy=copying is not None and not copying.restored,
        )
        if copying is not None:
            # Before anything is written that what waited has not: then it is a copy no more.
            end_copying(self.place.folder)
            if member is not None:
                await member.tenure.settled()
        if self.restored is not None:
            self.progress("the centre's streams are those of the backup")

    async def _run_beside(self, relay: Driver) -> None:
        if (beside := self.options.beside) is None:
            await self._control(relay)
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._control(relay), name="control")
            group.create_task(beside(relay), name="releases")

    async def _control(self, relay: Driver) -> None:
        """Run the controllers on the centre's relay; they begin anew with each of its runs."""
        centre, held = self.nodes[NodePath()], running(self._held)
        broken = None
        try:
            async with (
                AsyncExitStack() as stack,
                held.open(
                    self.place.spaces(),
                    partial(centre.hosted.space, WORKLOADS_BUCKET, stack, as_written=True),
                    partial(centre.hosted.space, INVENTORY_BUCKET, stack),
                    stack,
                ) as (workloads, inventories),
            ):
                self.workloads, self.inventory = workloads[0], inventories[0]
                self.controllers = await Controllers.open(
                    relay.publisher,
                    workloads,
                    inventories,
                    self._clock,
                    self._dice,
                    self.place.keys,
                    self._note_of_centre,
                )
                releases = self.controllers.releases
                releases.folder = self.place.folder / RELEASES
                publisher = PinnedPublisher(self.place.folder)
                releases.why_not_signed = publisher.why_not
                releases.why_not_back = publisher.why_not_back
                await self._end_bundles(self.controllers.issuer, relay)
                await self._enrol_children(self.controllers.issuer, centre)
                self.started.set()
                await self.controllers.run()
        except* SpaceError as failed:
            broken = first_of(failed)
        if broken is not None:
            raise BusBroken(f"the centre's spaces: {broken}") from broken

    async def _end_bundles(self, issuer: Issuer, relay: Driver) -> None:
        """Void the bundles of a former release for children of the centre that never came."""
        figures = {name: relay.node.figures_of(name) for name in relay.node.children()}
        accepted = {NodePath().child(name): it.nkey for name, it in figures.items() if it}
        for path in await end_bundles(issuer, accepted, self._clock.now().wall_ms):
            self._note_of_centre("BundleVoid", str(path), void_bundle(path))

    async def _enrol_children(self, issuer: Issuer, centre: NodeRuntime) -> None:
        """Let the children in whose records the ledger lost: its server knew them last."""
        self.ledger_lost |= issuer.is_new
        children = [path for path in self.options.relays if path.parent.is_root]
        credentials = {path: load_credentials(self.place.node(path), path) for path in children}
        nkeys = {path: its.nkey for path, its in credentials.items() if its is not None}
        nkeys |= {NodePath().child(name): nkey for name, nkey in centre.hosted.known.nkeys.items()}
        await enrol_lost_nodes(issuer, nkeys)


def running(part: T | None) -> T:
    """A part of the centre's run now; raises BusBroken between runs, when there is none."""
    if part is None:
        raise BusBroken("the centre is starting")
    return part


async def within(seconds: float, work: Awaitable[object]) -> bool:
    """Whether work on a run of the centre is done in time; False, too, if that run ends first."""
    with suppress(TimeoutError, BusBroken, SpaceError):
        async with asyncio.timeout(seconds):
            await work
            return True
    return False
