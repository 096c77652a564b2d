"""One node on this machine: its nats-server, its relay, and at an edge its cluster and its syncer.

A run that the bus ends begins again from what the streams hold, after a growing pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

from leafcast.metrics.reading import MetricReading
from leafcast.node.answers import AnsweringNode, answerers
from leafcast.node.attached_cluster import AttachedCluster
from leafcast.node.claim_note import ClaimNote
from leafcast.node.credentials.key_at_parent import KeyAtParent
from leafcast.node.credentials.server_trust import ServerTrust
from leafcast.node.known_children import RememberingServer
from leafcast.node.member_change import ReplacementRefused
from leafcast.node.member_forms import member_forms
from leafcast.node.node_readings import EdgeFigures, NodeFigures, node_readings
from leafcast.node.node_server import NodeServer
from leafcast.node.options import (
    EdgeCluster,
    Listening,
    NodeEnvironment,
    NodeHooks,
    NodeIdentity,
    ParentAccess,
)
from leafcast.space_settings import SpaceSetting
from leafcast.upgrades.keeper import ReleaseKeeper
from relay.adapters.installed import installed_version
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.tls.refusals import CertificateUnusable
from relay.claims.claim import EdgeIdentity
from relay.claims.edge_claim import EdgeClaim
from relay.core.config import NodeConfig
from relay.core.view import NodeView
from relay.ports import BusBroken, first_of
from relay.shell.asker import Asker, AskFailed
from relay.shell.driver import Driver
from relay.syncer.customized_content import customized_address
from schemas.records.asks import AskFault
from schemas.values.identity import random_id

RESTART_SECONDS_MIN, RESTART_SECONDS_MAX = 0.25, 10.0
NOT_IN_SESSION = "its parent does not answer, or has not told it all yet"

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of a node's relay: from its bus being opened until that ends it."""

    bus: JetStreamBus
    driver: Driver
    asker: Asker
    cluster: AttachedCluster | None

    @property
    def node(self) -> NodeView | None:
        """What the node knows, once it began."""
        return self.driver.node if self.driver.started.is_set() else None


class NodeRuntime:
    """Runs one node: its server (`hosted`), its relay, and at an edge its cluster and its syncer.

    Without an uplink it is a centre, without a cluster a relay.
    """

    def __init__(
        self,
        world: NodeEnvironment,
        identity: NodeIdentity,
        uplink: ParentAccess | None = None,
        cluster: EdgeCluster | None = None,
        serving: Listening | ServerPlace | None = None,
        hooks: NodeHooks | None = None,
    ) -> None:
        self.path = identity.path
        self._world, self._identity = world, identity
        self._uplink, self._cluster = uplink, cluster
        self._hooks = hooks or NodeHooks()
        place = serving or Listening()
        self._trust = ServerTrust(identity, place, uplink)
        self._key = KeyAtParent(world, identity, uplink)
        self.hosted = NodeServer(world, identity, place, self._trust, self._hooks.note)
        self.claim = self._own_claim()
        # What the members of a node run, they say together: see leafcast.upgrades.member_keeper.
        self._keeper: ReleaseKeeper | None = None
        if world.member is None:
            self._keeper = ReleaseKeeper(
                identity.releases,
                installed_version("leafcast"),
                world.clock,
                of_centre=identity.path.is_root,
            )
        self._answered_asks = dict[str, int]()
        self._is_set_up = self._hooks.set_up is None
        self._run: NodeRun | None = None
        self._running, self._state_changed = asyncio.Event(), asyncio.Event()

    @property
    def server(self) -> EmbeddedServer | ExternalServer:
        """The node's own server; raises BusBroken before it was started."""
        return self.hosted.server

    @property
    def attached(self) -> bool:
        """Whether it is an edge, with a cluster."""
        return self._cluster is not None

    @property
    def role(self) -> str:
        """Centre, relay or edge."""
        return "centre" if self.path.is_root else "edge" if self.attached else "relay"

    @property
    def driver(self) -> Driver | None:
        """The relay of the last run; None before the first."""
        return self._run.driver if self._run is not None else None

    @property
    def node(self) -> NodeView | None:
        """What the node knows in the run now."""
        return self._run.node if self._run is not None else None

    @property
    def asker(self) -> Asker | None:
        """Who asks nodes below, and answers; None before the first run."""
        return self._run.asker if self._run is not None else None

    async def _take_certificate(self, certificate: str, authorities: str) -> None:
        """Have the server show it from now on, under the links that are open; raises AskFailed.

        With its first one the server lets children in from elsewhere. Without one only the
        authorities change.
        """
        path, now_ms = str(self.path), self._world.clock.now().wall_ms
        if certificate and self._trust.certificate is None:
            raise AskFailed(AskFault("Unwanted", f"{path} has no certificate of the tree's", path))
        try:
            await self.hosted.follow(self._trust.take(certificate, authorities, now_ms))
        except (CertificateUnusable, BusBroken, ServerFailed, OSError) as error:
            raise AskFailed(AskFault("BadCertificate", str(error), path)) from error

    @property
    def objects_applied(self) -> int:
        return self._attached.applied if self._attached is not None else 0

    def _own_claim(self) -> EdgeClaim | None:
        """The claim of an edge on a cluster that others reach, too; raises DataDirUnusable."""
        cluster, identity = self._cluster, self._identity
        if cluster is None or not isinstance(cluster.setting, SpaceSetting):
            return None
        note = ClaimNote(identity.folder, self._world.dice)
        former = tuple(map(str, identity.former))
        me = EdgeIdentity(str(self._world.tree), str(self.path), note.edge, former)
        return EdgeClaim(me, note, self._world.clock, take_over=cluster.take_over)

    @property
    def _attached(self) -> AttachedCluster | None:
        return self._run.cluster if self._run is not None else None

    async def members(self) -> list[dict[str, Any]]:
        """How its members stand, see member_forms; nothing if it has but one."""
        member, run = self._world.member, self._run
        if member is None or run is None:
            return []
        facts, change = await member.presence.look(), member.replacing.change
        try:
            return member_forms(facts, await run.bus.member_servers(), change)
        except BusBroken:
            return member_forms(facts, (), change)

    async def replace_member(self, wish: Mapping[str, str]) -> dict[str, Any]:
        """Have a machine take the place of a lost member; raises AskFailed."""
        path = str(self.path)
        if self._world.member is None:
            raise AskFailed(AskFault("Conflict", f"{path} runs on one machine", path))
        try:
            return await self._world.member.replacing.answer(wish)
        except ReplacementRefused as refused:
            raise AskFailed(AskFault(refused.word, str(refused), path)) from refused
        except BusBroken as error:
            raise AskFailed(AskFault("NotReady", str(error), path)) from error

    def unready(self) -> dict[str, str]:
        """What keeps the node from its work now: each part by name, "" if it does its own."""
        run, cluster = self._run, self._attached
        is_linked = run is not None and run.bus.linked
        is_ready = is_linked and self.node is not None and self.node.ready
        session = {"session": "" if is_ready else NOT_IN_SESSION} if self._uplink else {}
        return {**session, **(cluster.unready() if cluster is not None else {})}

    async def readings(self) -> list[MetricReading]:
        """Its figures as they are now."""
        cluster, hosted = self._attached, self.hosted
        edge = None
        if cluster is not None:
            edge = EdgeFigures(cluster.applied, cluster.kept, cluster.results)
        found = NodeFigures(
            str(self.path),
            self.role,
            self._identity.folder,
            self.driver,
            edge,
            await hosted.figures(),
            hosted.starts,
        )
        return list(node_readings(found))

    async def running(self) -> Driver:
        """The relay of the run there is then, once that has started."""
        while not (self._running.is_set() and self._run and self._run.driver.started.is_set()):
            await self._state_changed.wait()
        return self._run.driver

    async def until(self, met: Callable[[NodeView], bool]) -> None:
        """Wait until the node meets the condition, in this run or in one that follows it.

        A run that the bus ended would be waited on for ever.
        """
        while not met((await self.running()).node):
            await self._state_changed.wait()

    def standing(self) -> dict[str, object]:
        """How the node is where it runs, also while it cannot be asked."""
        standing = self.hosted.standing()
        return standing | ({"serverVersion": self._run.bus.server_version} if self._run else {})

    def _answered_standing(self) -> dict[str, object]:
        """The same and more, as it answers when it is asked."""
        cluster = self._attached
        return {
            "role": self.role,
            "leafUrls": list(self.hosted.leaf_urls),
            "authorities": self._trust.authorities,
            "certificateRequest": self._trust.request(),
            "objectsApplied": self.objects_applied,
            "objectsKept": cluster.kept if cluster is not None else 0,
            **(self.claim.standing if self.claim is not None else {}),
            **self.standing(),
        }

    async def run(self) -> None:
        """Run the server, the relay and the edge's parts until cancelled."""
        link = self._uplink.link if self._uplink is not None else None
        telemetry = self._world.telemetry
        telling = telemetry.telling(self._hooks.note) if telemetry else nullcontext()
        with telling:
            await self._serve(link)

    async def _serve(self, link: ParentRemote | None) -> None:
        # Nothing hangs below an edge.
        async with self.hosted.serving(link, lets_in=not self.attached) as group:
            group.create_task(self._key.change_over(lambda: self.server), name=f"key {self.path}")
            looking = self.hosted.look_for_parent(lambda: self.is_linked, self._is_parent_silent)
            group.create_task(looking, name="redialling")
            await self._run_relay()

    @property
    def is_linked(self) -> bool:
        """Whether its parent answers it; the centre has none, and lacks none."""
        return self._uplink is None or (self._run is not None and self._run.bus.linked)

    def _is_parent_silent(self) -> bool:
        return self._run is not None and self._run.bus.is_parent_silent

    async def _run_relay(self) -> None:
        pause = RESTART_SECONDS_MIN
        while True:
            began = self._world.clock.now().seconds
            try:
                await self._run_once()
            except* (BusBroken, OSError) as broken:  # The disk of its folder may be full, or gone.
                log.warning("node %s starts again: %s", self.path, first_of(broken))
            self._running.clear()
            await self.hosted.restore_wiped()
            if self._world.clock.now().seconds - began > RESTART_SECONDS_MAX:
                pause = RESTART_SECONDS_MIN
            await self._world.clock.sleep(pause)
            pause = min(2 * pause, RESTART_SECONDS_MAX)

    async def _run_once(self) -> None:
        if not self._is_set_up and self._hooks.set_up is not None:
            await self._hooks.set_up()
            self._is_set_up = True
        path, server = self.path, self.hosted.known.told_of(self.server)
        run = self._run = self._new_run(server)
        bus, driver = run.bus, run.driver
        try:
            async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
                if run.cluster is not None:
                    await run.cluster.start(self.hosted, driver, bus, stack, group)
                telemetry = self._world.telemetry
                spans = (
                    telemetry.of_node(driver, self.role, self._world.clock) if telemetry else None
                )
                if spans is not None:
                    group.create_task(spans.run(), name=f"spans {path}")
                group.create_task(driver.run(), name=f"relay {path}")
                self._running.set()
                group.create_task(self._watch(driver), name=f"watch {path}")
                await driver.started.wait()
                self._announce_change()
                group.create_task(self.hosted.until_wiped(), name=f"wiped {path}")
                # A laid-out node has its children's accounts before it has heard of any of them.
                is_laid_out = self.hosted.is_external or self._world.member is not None
                is_told = not is_laid_out and not path.is_root
                if is_told or driver.node.children():
                    await server.forget_others(driver.node.children(), self._world.confirm)
                group.create_task(run.asker.run(), name=f"asker {path}")
                if not self.attached:
                    group.create_task(self._let_in(), name=f"entrance {path}")
                if self._keeper is not None:
                    group.create_task(self._keeper.run(driver), name=f"releases {path}")
                if self._hooks.run_task is not None:
                    group.create_task(self._hooks.run_task(driver), name=f"beside {path}")
        except asyncio.CancelledError:
            await driver.leave()
            raise
        finally:
            await bus.close()

    def _new_run(self, server: RememberingServer) -> NodeRun:
        """Its parts, none of them started."""
        world, seeds, identity = self._world, self.hosted.seeds, self._identity
        address = BusAddress(
            self.server.url,
            seeds.relay,
            self._uplink_seed,
            seeds.system,
            world.replicas,
            world.member.others if world.member is not None else (),
        )
        bus = JetStreamBus(
            self.path,
            address,
            server,
            clock=world.clock,
            dice=world.dice,
            tenure=world.member.tenure if world.member is not None else None,
        )
        config = NodeConfig(
            self.path,
            world.tree,
            world.roots,
            random_id(world.dice.entropy(16)),
            self.attached,
            identity.home,
            identity.former,
            # One machine is dialled where the grants of its children say: as by a proxy's address.
            leaf_urls=self.hosted.leaf_urls if world.member is not None else (),
            customize=customized_address,
            private_keys=self._key.private_keys,
        )
        driver = Driver(bus, config, world.clock, on_wants=self._wants, on_noted=self._hooks.note)
        cluster = None
        if self._cluster is not None:
            setting = self._cluster.setting
            cluster = AttachedCluster(setting, world.clock, world.dice, world.tree, self.claim)
        answering = AnsweringNode(
            self.path,
            driver,
            lambda: cluster.space if cluster is not None else None,
            bus.read_copies,
            self._key.rekey,
            self._key.sign,
            self._take_certificate,
            self._answered_standing,
            self.members,
            self.replace_member,
        )
        answers, asked = answerers(answering), self._answered_asks
        asker = Asker(bus, lambda: driver.node, driver.count_junk, world.clock, answers, asked)
        return NodeRun(bus, driver, asker, cluster)

    @property
    def _uplink_seed(self) -> str | None:
        return self.hosted.seeds.uplink if self._uplink is not None else None

    async def _let_in(self) -> None:
        """Take the requests of those who ask to be let in below this node."""
        # Here, as an edge lets nobody in.
        from relay.adapters.jetstream.entrance import Entrance, EntranceKeys  # noqa: PLC0415

        keys = EntranceKeys(self.hosted.seeds.relay, self._uplink_seed)
        clock, decide = self._world.clock, self._hooks.decide
        await Entrance(self.path, self.server.url, keys, clock, decide).run()

    def _wants(self, node: NodeView) -> None:
        if self._attached is not None:
            self._attached.want(node)

    async def _watch(self, driver: Driver) -> None:
        while True:
            await driver.progress()
            self._announce_change()

    def _announce_change(self) -> None:
        """Wake who waits for what this node is, or what there is to be seen of it."""
        changed, self._state_changed = self._state_changed, asyncio.Event()
        changed.set()
        self._hooks.changed()
