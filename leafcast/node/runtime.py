"""One node on this machine: its nats-server, its relay, and at an edge its cluster and its syncer.

A run that the bus ends begins again from what the streams hold, after a growing pause.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from leafcast.node.answers import answerers
from leafcast.node.attached_cluster import AttachedCluster
from leafcast.node.certificate_lists import overlap
from leafcast.node.claim_note import ClaimNote
from leafcast.node.credentials.files import CredentialsUnusable
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.credentials.own_certificate import validity
from leafcast.node.credentials.own_key import OwnKey
from leafcast.node.host_status import host_status
from leafcast.node.known_children import KnownChildren
from leafcast.space_settings import SpaceSetting
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.jetstream.entrance import Decide, Entrance, EntranceKeys
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.guard import Guard
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.nats_config import AccountSeeds, ParentLink
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import (
    entrance_pair,
    new_user_nkey,
    private_key,
    seed_entropy,
)
from relay.adapters.server.process import ServerFailed
from relay.adapters.server.store_key import StoreKey
from relay.adapters.spaces.connection import Client, space_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.adapters.spaces.simulated_cluster import Settings
from relay.adapters.tls.refusals import CertificateUnusable
from relay.atomic_file import atomic_write, make_folder
from relay.claims.claim import EdgeIdentity
from relay.claims.edge_claim import EdgeClaim
from relay.core.config import NodeConfig
from relay.core.effects import Noted
from relay.core.node import Node
from relay.ports import BusBroken, Clock, CopiesPage, Dice, Space, SpaceError, first_of
from relay.shell.asker import Asker, AskFailed
from relay.shell.driver import Driver
from relay.syncer.customized_content import customized_address
from schemas.records.asks import AskFault
from schemas.records.records import AskRecord
from schemas.records.roots import Roots
from schemas.records.signed_answers import signed
from schemas.values.codec import from_json
from schemas.values.identity import NodePath, TreeId, random_id

RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.25, 10.0
STORE_LOOK_SECONDS = 1.0
LISTEN_AFTER_SECONDS = 1.0
ANSWERED_SECONDS = 0.5
OPEN_ATTEMPTS_MAX, OPEN_PAUSE_SECONDS = 20, 0.1
SEEDS_FILE = "accounts.json"
SERVER_HOME_CHARACTERS = 8
"""Of a node's home in its server's name: a parent keeps one link of each name, the newest."""
NOT_IN_SESSION = "its parent does not answer, or has not told it all yet"

log = logging.getLogger("leafcast")


class LeafOptions(TypedDict, total=False):
    """What a node is told of how children elsewhere get to it."""

    leaf_address: LeafAddress
    authorities: str
    certificate: NodeCertificate


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """What all nodes of one program share."""

    guard: Guard
    clock: Clock
    dice: Dice
    tree: TreeId
    roots: Roots
    store_key: StoreKey | None = None


class NodeRuntime:
    """Runs one node: its server, its relay, and at an edge its cluster and its syncer."""

    def __init__(  # noqa: PLR0913 - what most nodes do without is named
        self,
        world: NodeEnvironment,
        path: NodePath,
        folder: Path,
        *,
        parent: ParentLink | None = None,
        # Gives it a workload execution cluster, which it may take over from another edge.
        attached: Settings | SpaceSetting | None = None,
        # Work on the relay that starts and ends with each of its runs.
        run_task: Callable[[Driver], Coroutine[Any, Any, None]] | None = None,
        # Tells this folder from another one with the same credentials.
        home: str = "",
        # The paths at which it hung before.
        former: tuple[NodePath, ...] = (),
        take_over: bool = False,
        # Must have succeeded before the first run.
        setup: Callable[[NodeRuntime], Coroutine[Any, Any, None]] | None = None,
        # Where the node's server is, if someone else runs it.
        external: ServerPlace | None = None,
        # How children elsewhere get to it, and (PEM text) whom they are to believe.
        leaf_address: LeafAddress | None = None,
        authorities: str = "",
        certificate: NodeCertificate | None = None,
        # Answers, at the centre, those who ask to be let in.
        decide: Decide | None = None,
        # Writes down another key, by which the parent is to know it from the next start on.
        keep_seed: Callable[[str], None] | None = None,
        # Writes down whom to believe at the parent.
        keep_authorities: Callable[[str], None] = lambda _: None,
        changed: Callable[[], None] = lambda: None,
        # Hears what people may want to know of.
        note: Callable[[Noted], None] = lambda _: None,
    ) -> None:
        self.path = path
        self._leaf_address, self._listen_requested = leaf_address, asyncio.Event()
        self._certificate = certificate or (NodeCertificate.kept(folder) if external else None)
        if certificate is not None and certificate.there:
            authorities = certificate.authorities.read_text(encoding="utf-8")
        self.authorities = authorities or (external.authorities_text() if external else "")
        self._decide, self.attached = decide, attached is not None
        self._world, self._folder, self._parent = world, folder, parent
        self._target, self._external = attached, external
        self._run_task, self._setup = run_task, setup
        self._home, self._former = home, former
        self.claim = self._own_claim(take_over=take_over)
        self.asker: Asker | None = None
        self._answered_asks, self._known = dict[str, int](), KnownChildren(folder)
        self._own_key: OwnKey | None = None
        if parent is not None and keep_seed is not None:
            self._own_key = OwnKey(folder, parent.seed, keep_seed, world.clock, world.dice)
        self._keep_authorities = keep_authorities
        self._key_change_requested, self._next_nkey = asyncio.Event(), ""
        self._seeds = account_seeds(folder, world.dice)
        self._server: EmbeddedServer | ExternalServer | None = None
        self._driver: Driver | None = None
        self._attached: AttachedCluster | None = None
        self._bus: JetStreamBus | None = None
        self._running, self._state_changed, self._removals = asyncio.Event(), asyncio.Event(), 0
        self._changed, self._note = changed, note

    @property
    def server(self) -> EmbeddedServer | ExternalServer:
        """The node's own server; raises BusBroken before it was started."""
        if self._server is None:
            raise BusBroken(f"node {self.path} has no server yet")
        return self._server

    @property
    def serves(self) -> bool:
        """Whether its server was started."""
        return self._server is not None

    @property
    def driver(self) -> Driver | None:
        """The relay of the run now; None between runs."""
        return self._driver

    @property
    def node(self) -> Node | None:
        """The state machine of the run now."""
        return self._driver.node if self._driver and self._driver.started.is_set() else None

    @property
    def enrolled(self) -> Mapping[str, str]:
        """The public keys of the children that the server knew last, by name."""
        return self._known.nkeys

    def certificate_request(self) -> str:
        """What the tree's authority is to sign anew; "" if it signs nothing for this server."""
        own = self._certificate
        return own.request() if own is not None else ""

    async def take_certificate(self, certificate: str, authorities: str) -> None:
        """Have the server show it from now on, under the links that are open; raises AskFailed.

        With its first one the server lets children in from elsewhere. Without one only the
        authorities change.
        """
        path, own = str(self.path), self._certificate
        if certificate and own is None:
            raise AskFailed(AskFault("Unwanted", f"{path} has no certificate of the tree's", path))
        try:
            news = self._believe_at_parent(authorities)
            first = bool(certificate) and own is not None and not own.there
            if certificate and own is not None:
                own.take(certificate, authorities, self._world.clock.now().wall_ms)
                self.authorities, news = authorities, True
            elif overlap(self.authorities, authorities):
                if own is not None:
                    atomic_write(own.authorities, authorities)
                self.authorities = authorities
            if first and self._leaf_address is not None:
                self._listen_requested.set()
            elif news:
                await self.server.reload()
        except (CertificateUnusable, BusBroken, ServerFailed, OSError) as error:
            raise AskFailed(AskFault("BadCertificate", str(error), path)) from error

    def _believe_at_parent(self, authorities: str) -> bool:
        """Go over to another list, if it comes of the one believed now; whether it is another."""
        file = self._parent.authorities if self._parent is not None else None
        if file is None or (before := file.read_text(encoding="utf-8")) == authorities:
            return False
        if not overlap(before, authorities):
            return False
        self._keep_authorities(authorities)
        atomic_write(file, authorities)
        return True

    @property
    def leaf_urls(self) -> tuple[str, ...]:
        """Where servers of children dial in, or will once there is a certificate."""
        return self._leaf_address.urls if self._leaf_address is not None else self.server.leaf_urls

    @property
    def objects_applied(self) -> int:
        return self._attached.applied if self._attached else 0

    @property
    def objects_kept(self) -> int:
        return self._attached.kept if self._attached else 0

    def _own_claim(self, *, take_over: bool) -> EdgeClaim | None:
        """The claim of an edge on a cluster that others reach, too; raises DataDirUnusable."""
        if not isinstance(self._target, SpaceSetting):
            return None
        note = ClaimNote(self._folder, self._world.dice)
        former = tuple(map(str, self._former))
        me = EdgeIdentity(str(self._world.tree), str(self.path), note.edge, former)
        return EdgeClaim(me, note, self._world.clock, take_over=take_over)

    @property
    def claim_standing(self) -> Mapping[str, str]:
        return self.claim.standing if self.claim is not None else {}

    @property
    def cluster(self) -> Space | None:
        """The cluster of an edge, while it runs."""
        return self._attached.space if self._attached else None

    async def rekey(self, arguments: Mapping[str, str]) -> Mapping[str, str]:
        """Its key at its parent, and what is to take its place: `{nkey, next}`.

        With `make` the next one is made, with `use` it is taken once this was answered. Raises
        AskFailed.
        """
        key = self._own_key
        if key is None:
            reason = "its key is not its own to change"
            raise AskFailed(AskFault("NotSupported", reason, str(self.path)))
        said = {"nkey": key.nkey, "next": ""}
        if "make" in arguments:
            said["next"] = key.make_next()
        if use := arguments.get("use"):
            self._next_nkey = use
            self._key_change_requested.set()
        return said

    def sign(self, record: AskRecord, answer: Mapping[str, object]) -> Mapping[str, object]:
        """The answer as this node's own, by its key at its parent; the centre has none."""
        if self._parent is None:
            return answer
        seed = self._own_key.seed if self._own_key is not None else self._parent.seed
        return signed(seed_entropy(seed), self._world.tree, record, answer)

    async def _change_over(self, key: OwnKey) -> None:
        """Use the next key when told to; what was answered before goes out first."""
        while True:
            await self._key_change_requested.wait()
            self._key_change_requested.clear()
            await self._world.clock.sleep(ANSWERED_SECONDS)
            try:
                await key.use(self._next_nkey, self.server)
            except (BusBroken, OSError, ServerFailed) as error:
                log.warning("node %s keeps its key: %s", self.path, error)

    async def read_copies(self, child: str, first: int) -> CopiesPage:
        """What a child brought up; see relay.ports.Bus."""
        return await self._bus.read_copies(child, first) if self._bus else CopiesPage()

    def unready(self) -> dict[str, str]:
        """What keeps the node from its work now: each part by name, "" if it does its own."""
        linked = self._bus is not None and self._bus.linked
        in_session = "" if linked and self.node is not None and self.node.ready else NOT_IN_SESSION
        found = {"session": in_session} if self._parent is not None else {}
        return {**found, **(self._attached.unready() if self._attached else {})}

    async def running(self) -> Driver:
        """The relay of the run there is then, once that has started."""
        while not (self._running.is_set() and self._driver and self._driver.started.is_set()):
            await self._state_changed.wait()
        return self._driver

    async def until(self, met: Callable[[Node], bool]) -> None:
        """Wait until the node meets the condition, in this run or in one that follows it.

        A run that the bus ended would be waited on for ever.
        """
        while not met((await self.running()).node):
            await self._state_changed.wait()

    @property
    def space_seed(self) -> str:
        """What opens the server's account SPACE."""
        return self._seeds.space

    @property
    def commands_seed(self) -> str:
        """With which commands ask this server's centre, and reach no more."""
        return self._seeds.commands

    @property
    def relay_seed(self) -> str:
        """What opens the server's account RELAY, which holds the node's streams."""
        return self._seeds.relay

    async def client(self, stack: AsyncExitStack, name: str) -> Client:
        """A connection to account SPACE of this node's server, open until the stack is closed."""
        label = f"leafcast {self.path} {name}"
        return await stack.enter_async_context(
            space_connection(self.server.url, self._seeds.space, label)
        )

    async def space(
        self, bucket: str, stack: AsyncExitStack, *, as_written: bool = False
    ) -> EmbeddedSpace:
        """An embedded space on this node's server, open until the stack is closed."""
        client = await self.client(stack, bucket)
        space = EmbeddedSpace(
            client,
            bucket,
            self._world.clock,
            self._world.dice,
            domain=self.path.domain,
            as_written=as_written,
        )
        for attempt in range(OPEN_ATTEMPTS_MAX):
            try:
                await space.open()
                break
            except SpaceError:
                # A server that takes in a new child serves nobody for a moment.
                if attempt + 1 == OPEN_ATTEMPTS_MAX:
                    raise
                await self._world.clock.sleep(OPEN_PAUSE_SECONDS)
        return space

    async def run(self) -> None:
        """Run the server, the relay and the edge's parts until cancelled."""
        async with self._new_server() as self._server, asyncio.TaskGroup() as group:
            group.create_task(self._keep_store(), name=f"store {self.path}")
            group.create_task(self._listen(), name=f"listen {self.path}")
            if self._own_key is not None:
                group.create_task(self._change_over(self._own_key), name=f"key {self.path}")
            await self._run_relay()

    async def _listen(self) -> None:
        """Start the server anew once there is a first certificate, and that was answered."""
        await self._listen_requested.wait()
        await self._world.clock.sleep(LISTEN_AFTER_SECONDS)
        if self._leaf_address is not None and isinstance(self.server, EmbeddedServer):
            await self.server.listen(self._leaf_address)

    def _new_server(self) -> EmbeddedServer | ExternalServer:
        children = self._known.nkeys
        if self._external is not None:
            return ExternalServer(
                self._external,
                self.path,
                self._seeds,
                parent=self._parent,
                children=children,
                entrance=self._entrance_nkey(),
            )
        return EmbeddedServer(
            self._folder,
            self.path,
            self._seeds,
            guard=self._world.guard,
            clock=self._world.clock,
            parent=self._named_link(),
            children=children,
            leaf_address=self._leaf_address
            if self._certificate is None or self._certificate.there
            else None,
            entrance=self._entrance_nkey(),
            store_key=self._world.store_key,
        )

    def _entrance_nkey(self) -> str:
        """The key of those who ask to be let in below this node; nothing hangs below an edge."""
        return "" if self.attached else entrance_pair(self._world.tree)[1]

    def _named_link(self) -> ParentLink | None:
        """The link to the parent, under a name that a copy of this folder elsewhere has not."""
        if self._parent is None or not self._home:
            return self._parent
        name = f"{self.path.domain}.{self._home[:SERVER_HOME_CHARACTERS]}"
        return replace(self._parent, server_name=name)

    async def _run_relay(self) -> None:
        pause = RESTART_SECONDS_MIN
        while True:
            began = self._world.clock.now().seconds
            try:
                await self._run_once()
            except* (BusBroken, OSError) as broken:  # The disk of its folder may be full, or gone.
                log.warning("node %s starts again: %s", self.path, first_of(broken))
            self._running.clear()
            await self._make_store_again()
            if self._world.clock.now().seconds - began > RESTART_SECONDS_MAX:
                pause = RESTART_SECONDS_MIN
            await self._world.clock.sleep(pause)
            pause = min(2 * pause, RESTART_SECONDS_MAX)

    async def _keep_store(self) -> None:
        """A server of our own that cannot write starts again once its disk has room.

        Looked at by itself: a node that has nothing to write does not notice. What happens to the
        server is noted, too.
        """
        server, told, starts = self.server, False, 1
        while not isinstance(server, ExternalServer):
            await self._world.clock.sleep(STORE_LOOK_SECONDS)
            if not server.store_failed or server.wiped:
                told = False
            elif await server.renew():
                starts = server.starts
                log.warning("node %s: its server was started again: there is room now", self.path)
                self._note(Noted("DiskHasRoom", str(self._folder), "there is room again"))
            elif not told:
                told = True
                log.error("node %s: its disk %s is full: make room there", self.path, self._folder)
                self._note(Noted("DiskFull", str(self._folder), "its disk is full: make room"))
            if server.starts > starts:
                starts = server.starts
                said = "it ended by itself or was killed, and was started again"
                self._note(Noted("ServerRestarted", "nats-server", said))

    async def _notice_wiping(self) -> None:
        """End the run when its store was removed: what it remembers of it is there no more."""
        while isinstance(self.server, EmbeddedServer):
            await self._world.clock.sleep(STORE_LOOK_SECONDS)
            if self.server.wiped:
                raise BusBroken(f"what it stores in {self._folder} was removed")

    async def _make_store_again(self) -> None:
        if isinstance(self.server, EmbeddedServer) and self.server.wiped:
            said = "what it stores was removed while it ran: it begins again with nothing"
            self._note(Noted("StoreRemoved", str(self._folder), said))
            if await self.server.renew():
                self._removals += 1
                _keep_seeds(self._folder, self._seeds)

    async def _run_once(self) -> None:
        world = self._world
        if self._setup is not None:
            await self._setup(self)
            self._setup = None
        uplink = self._seeds.uplink if self._parent is not None else None
        address = BusAddress(self.server.url, self._seeds.relay, uplink, self._seeds.system)
        server = self._known.told_of(self.server)
        bus = self._bus = JetStreamBus(
            self.path, address, server, clock=world.clock, dice=world.dice
        )
        run = random_id(world.dice.entropy(16))
        config = NodeConfig(
            self.path,
            world.tree,
            world.roots,
            run,
            self.attached,
            self._home,
            self._former,
            leaf_urls=self.leaf_urls,
            customize=customized_address,
            private_keys=self._private_keys,
        )
        driver = self._driver = Driver(
            bus, config, world.clock, on_wants=self._wants, on_noted=self._note
        )
        answers = answerers(self, self.standing)
        asker = self.asker = Asker(
            bus, lambda: driver.node, world.clock, answers, self._answered_asks
        )
        try:
            async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                if self._target is not None:
                    attached = self._attached = AttachedCluster(
                        self._target, world.clock, world.dice, world.tree, self.claim
                    )
                    await attached.start(self, driver, bus, stack, group)
                group.create_task(driver.run(), name=f"relay {self.path}")
                self._running.set()
                group.create_task(self._watch(driver), name=f"watch {self.path}")
                await driver.started.wait()
                self._announce_change()
                group.create_task(self._notice_wiping(), name=f"wiped {self.path}")
                # A laid-out node has its children's accounts before it has heard of any of them.
                told = self._external is None and not self.path.is_root
                if told or driver.node.children():
                    await server.forget_others(driver.node.children())
                group.create_task(asker.run(), name=f"asker {self.path}")
                if not self.attached:
                    group.create_task(self._let_in(), name=f"entrance {self.path}")
                if self._run_task is not None:
                    group.create_task(self._run_task(driver), name=f"beside {self.path}")
        except asyncio.CancelledError:
            await driver.leave()
            raise
        finally:
            await bus.close()

    def _private_keys(self) -> tuple[bytes, ...]:
        """What opens what is sealed to this node: they follow from its key at its parent."""
        if self._own_key is not None:
            return self._own_key.private_keys()
        return (private_key(self._parent.seed),) if self._parent is not None else ()

    async def _let_in(self) -> None:
        """Take the requests of those who ask to be let in below this node."""
        uplink = self._seeds.uplink if self._parent is not None else None
        keys = EntranceKeys(self._seeds.relay, uplink)
        clock = self._world.clock
        await Entrance(self.path, self.server.url, keys, clock, self._decide).run()

    def _wants(self, node: Node) -> None:
        if self._attached is not None:
            self._attached.want(node)

    def standing(self) -> dict[str, object]:
        """How the node is where it runs, also while it cannot be asked."""
        said = host_status(self._world.clock, self._folder, self._server)
        if self._bus is not None:
            said["serverVersion"] = self._bus.server_version
        if (
            self._certificate is None
            and self._leaf_address is not None
            and self._leaf_address.tls is not None
        ):
            said |= validity(self._leaf_address.tls)
        return {**said, "storeRemovals": self._removals}

    async def _watch(self, driver: Driver) -> None:
        while True:
            await driver.progress()
            self._announce_change()

    def _announce_change(self) -> None:
        """Wake who waits for what this node is, or what there is to be seen of it."""
        changed, self._state_changed = self._state_changed, asyncio.Event()
        changed.set()
        self._changed()


def account_seeds(folder: Path, dice: Dice) -> AccountSeeds:
    """The seeds of the server's own accounts: made once, kept beside the server's data.

    Raises CredentialsUnusable.
    """
    path = folder / SEEDS_FILE
    if path.exists():
        return _kept_seeds(path)
    seeds = AccountSeeds(*(new_user_nkey(dice.entropy(32))[0] for _ in range(4)))
    make_folder(folder)
    _keep_seeds(folder, seeds)
    return seeds


def _keep_seeds(folder: Path, seeds: AccountSeeds) -> None:
    atomic_write(folder / SEEDS_FILE, json.dumps(asdict(seeds)))


def _kept_seeds(file: Path) -> AccountSeeds:
    try:
        seeds = AccountSeeds(**from_json(file.read_bytes()))
        seeds.public()
    except (ValueError, TypeError, AttributeError) as error:
        raise CredentialsUnusable(file) from error
    return seeds
