"""A relay of several members: what of its folder is the relay's, and how it is run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from leafcast.data_dir import DataDir
from leafcast.join.folder import GRANT_FILE
from leafcast.join.joined_node import AUTHORITIES_FILE
from leafcast.join.kept_grant import KeptGrant, read_grant, write_grant
from leafcast.join.node_commands import NodeCommands
from leafcast.members.member_node import Standing
from leafcast.members.membership import FILE as MEMBERSHIP_FILE
from leafcast.members.settings import MemberSettings
from leafcast.metrics.reading import MetricReading
from leafcast.node.credentials.account_seeds import SEEDS_FILE
from leafcast.node.credentials.node_certificate import CERTIFICATE_FILES
from leafcast.node.known_children import FILE as CHILDREN_FILE
from leafcast.node.known_children import KnownChildren
from leafcast.node.member_forms import STORE_FULL
from leafcast.node.options import (
    ActiveMember,
    Listening,
    NodeEnvironment,
    NodeHooks,
    NodeIdentity,
    ParentAccess,
)
from leafcast.node.runtime import NodeRuntime
from leafcast.upgrades.member_keeper import MemberReleases
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.member_presence import (
    ACTIVE,
    CLOCK_TROUBLE,
    MEMBER,
    MemberPresence,
)
from relay.adapters.jetstream.uplink import PROBE_SECONDS
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import entrance_pair
from relay.atomic_file import atomic_write
from relay.core.effects import Noted
from relay.members.parent_reach import ParentReach
from relay.ports import BusBroken, Clock, Dice
from schemas.values.identity import NodePath

_HOME_BYTES = 16
LEARN_SECONDS = 1.0
REACH_LOOK_SECONDS, SELDOM_SECONDS = 3.0, 9.0
REACHES = "reachesParentSeconds"
"""What a member of a relay says of itself: for how long its own server has reached the parent."""

log = logging.getLogger("leafcast")


def relay_state(path: NodePath) -> tuple[str, ...]:
    """Patterns of the files of a member's folder that are the relay's, and not one member's."""
    within = (SEEDS_FILE, CHILDREN_FILE, *CERTIFICATE_FILES)
    return (GRANT_FILE, MEMBERSHIP_FILE, *(f"{path.domain}/{it}" for it in within))


class RelayMember:
    """The relay in one member's folder; see leafcast.members.member_node.MemberNode."""

    def __init__(self, folder: Path, settings: MemberSettings, clock: Clock, dice: Dice) -> None:
        self.folder = folder
        self.server_folder = folder / settings.path.domain
        self.state = relay_state(settings.path)
        shown = (f"{settings.path.domain}/{it}" for it in CERTIFICATE_FILES)
        self.server_files = frozenset((GRANT_FILE, *shown))
        self._settings = settings
        self._clock, self._dice = clock, dice
        self._runtime: NodeRuntime | None = None
        self._reach = ParentReach(clock.now().seconds)
        self._releases = MemberReleases(folder, lambda: self._settings, clock)

    @property
    def _grant(self) -> KeptGrant:
        """As the file says now: another member may have changed it while it was active."""
        return read_grant(self.folder / GRANT_FILE)

    @property
    def _home(self) -> str:
        """The same for all members, so that the parent takes one for the successor of another."""
        secret = self._settings.cluster.password.encode()
        return blake2b(secret, digest_size=_HOME_BYTES, person=b"home").hexdigest()

    def take(self, settings: MemberSettings) -> None:
        self._settings = settings

    def listen(self, urls: tuple[str, ...]) -> None:
        """That of a relay is said by its members alone."""

    def why_not(self) -> str:
        return "" if (self.folder / GRANT_FILE).exists() else "it waits for the state of its node"

    def neighbours(self) -> Neighbours:
        cluster = self._settings.cluster
        if self.why_not():
            return Neighbours(cluster=cluster)
        grant = self._grant
        return Neighbours(
            self._link(grant),
            KnownChildren(self.server_folder).nkeys,
            entrance_pair(grant.tree)[1],
            cluster,
        )

    def out_of_step(self) -> str:
        return self._releases.out_of_step

    async def stand(
        self,
        server: EmbeddedServer,
        seeds: AccountSeeds,
        standing: Callable[[], Standing],
        presence: MemberPresence,
    ) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reach_parent(server, seeds, standing), name="reach")
            keeping = self._releases.keep(server.url, seeds.relay, presence)
            group.create_task(keeping, name="releases")

    async def _reach_parent(
        self, server: EmbeddedServer, seeds: AccountSeeds, standing: Callable[[], Standing]
    ) -> None:
        """Ask the parent by this member's own server: who stands by knows no other way.

        Often only while the node hangs on it: each question crosses a site's link.
        """
        label = f"leafcast {self._settings.path} {self._settings.name} reach"
        asking = Connection(server.url, seeds.uplink, label, "_INBOX.reach")
        await asking.open()
        try:
            while True:
                is_answered = await asking.request("up.info", seconds=PROBE_SECONDS) is not None
                self._reach.asked(self._clock.now().seconds, is_answered=is_answered)
                is_linked = self._runtime is not None and self._runtime.is_linked
                is_urgent = standing().role == ACTIVE and not is_linked
                await self._clock.sleep(REACH_LOOK_SECONDS if is_urgent else SELDOM_SECONDS)
        finally:
            await asking.close()

    def kept_back_by(self) -> str:
        return ""

    def facts(self) -> Mapping[str, Any]:
        now = self._clock.now().seconds
        return {REACHES: self._reach.seconds(now), **self._releases.facts()}

    def why_others(self) -> str:
        if not self._reach.is_aside(self._clock.now().seconds):
            return ""
        return f"it does not reach the parent {self._settings.path.parent}, and another one does"

    async def _step_aside(self, runtime: NodeRuntime, presence: MemberPresence) -> None:
        """Raise BusBroken once the parent is reached by another member's server alone."""
        self._reach.active(self._clock.now().seconds)
        while True:
            await self._clock.sleep(REACH_LOOK_SECONDS)
            # On one machine it may hear the parent by the server of another member.
            if self._settings.others and runtime.is_linked:
                continue
            others = {
                str(it[MEMBER]): seconds
                for it in await presence.look_at_others()
                if isinstance(seconds := it.get(REACHES), float)
                # Who cannot take the lease would leave the node with no active member.
                and not it.get(STORE_FULL)
                and not it.get(CLOCK_TROUBLE)
            }
            now = self._clock.now().seconds
            if name := self._reach.better_one(now, others):
                self._reach.step_aside(now)
                raise BusBroken(
                    f"this one alone does not reach the parent {self._settings.path.parent}, and "
                    f"member {name} does: look at the network of this machine"
                )

    def _link(self, grant: KeptGrant) -> ParentRemote:
        """The way to the parent; whom to believe there lies in a file for the server."""
        if not grant.authorities:
            return ParentRemote(grant.dialled, grant.seed)
        file = self.folder / AUTHORITIES_FILE
        # A run that was active and is not any more may have left there what the grant says no more.
        if not file.exists() or file.read_text(encoding="utf-8") != grant.authorities:
            atomic_write(file, grant.authorities)
        return ParentRemote(grant.dialled, grant.seed, authorities=file)

    def _listening(self) -> Listening:
        """How children elsewhere get to each member."""
        settings, folder = self._settings, self.server_folder
        return Listening(settings.leaf_address(folder), certificate=settings.certificate(folder))

    async def run(self, member: ActiveMember) -> None:
        grant = self._grant
        async with ProcessGuard() as guard:
            world = NodeEnvironment(
                guard, self._clock, self._dice, grant.tree, grant.roots, member=member
            )
            runtime = NodeRuntime(
                world,
                NodeIdentity(grant.path, self.server_folder, self._home, grant.former),
                ParentAccess(self._link(grant), self._keep_seed, self._keep_authorities),
                serving=self._listening(),
                hooks=NodeHooks(run_task=self._releases.lead, note=self._note),
            )
            self._runtime = runtime
            async with asyncio.TaskGroup() as group:
                group.create_task(runtime.run(), name=str(grant.path))
                group.create_task(
                    self._learn(runtime, member.server, grant.dialled), name="addresses"
                )
                group.create_task(self._step_aside(runtime, member.presence), name="aside")
                commands = NodeCommands(runtime, DataDir(self.folder), self._clock)
                group.create_task(commands.run(), name="commands")

    def unready(self) -> Mapping[str, str]:
        return self._runtime.unready() if self._runtime is not None else {}

    async def readings(self) -> Sequence[MetricReading]:
        return await self._runtime.readings() if self._runtime is not None else ()

    async def _learn(
        self, runtime: NodeRuntime, server: EmbeddedServer, dialled: tuple[str, ...]
    ) -> None:
        """Dial the parent also where it says that it listens, here and at the other members."""
        await runtime.running()
        while True:
            node, grant = runtime.node, self._grant
            learnt = grant.learnt(node.parent_addresses) if node and node.ready else grant
            # The file may say already what the server failed to take up.
            if learnt != grant or learnt.dialled != dialled:
                try:
                    if learnt != grant:
                        write_grant(self.folder / GRANT_FILE, learnt)
                    await server.dial(learnt.dialled)
                    dialled = learnt.dialled
                except (OSError, ServerFailed) as error:
                    log.debug("addresses of the parent are not taken up yet: %s", error)
            await self._clock.sleep(LEARN_SECONDS)

    def _keep_authorities(self, authorities: str) -> None:
        """Believe others at the parent from now on; raises OSError."""
        write_grant(self.folder / GRANT_FILE, replace(self._grant, authorities=authorities))

    def _keep_seed(self, seed: str) -> None:
        """Be known to the parent by another key from the next start on; raises OSError."""
        write_grant(self.folder / GRANT_FILE, replace(self._grant, seed=seed))

    def _note(self, noted: Noted) -> None:
        log.info("%s: %s %s: %s", self._settings.path, noted.reason, noted.subject, noted.detail)
