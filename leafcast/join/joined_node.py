"""A node that joined a tree: its life in the foreground, and what it says."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from leafcast.data_dir import DataDir
from leafcast.join.folder import GRANT_FILE, JoinedFolder
from leafcast.join.kept_grant import KeptGrant, write_grant
from leafcast.join.node_commands import NodeCommands
from leafcast.join.withdrawal import Withdrawal
from leafcast.node.claim_note import ClusterRefused
from leafcast.node.credentials.node_certificate import NodeCertificate
from leafcast.node.credentials.own_certificate import OwnCertificate, renew_in_time
from leafcast.node.freed_memory import give_back_freed
from leafcast.node.health_endpoint import HealthAddress, HealthEndpoint
from leafcast.node.listen_settings import ListenSettings
from leafcast.node.options import (
    EdgeCluster,
    Listening,
    NodeEnvironment,
    NodeHooks,
    NodeIdentity,
    ParentAccess,
)
from leafcast.node.runtime import NodeRuntime
from relay.adapters.jetstream.stream_rekey import rekey_streams
from relay.adapters.server.durability import DEFAULT_STORE, StoreSettings
from relay.adapters.server.external_server import ExternalServer
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.link_trouble import NOT_LET_IN, LinkNews
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.upgrade_probe import cause_at
from relay.atomic_file import atomic_write
from relay.claims.edge_claim import UNCLAIMED, EdgeClaim
from relay.core.effects import Noted
from relay.core.upstream import EXPIRED_VIEW, FRESH_VIEW, STALE_VIEW
from relay.ports import Clock, Dice, first_of
from schemas.releases.release_folder import RELEASES
from schemas.values.faults import Unusable
from schemas.values.identity import NodePath

logger = logging.getLogger(__name__)

AUTHORITIES_FILE = "authorities.pem"
LOOK_SECONDS = 0.2
REFUSED_SECONDS = 3.0
_STOPPED = "stopped"


class JoinFailed(Unusable):
    """The node cannot join, or may not go on; says why and what to do."""

    word = "node "


@dataclass(frozen=True, slots=True)
class JoinOptions:
    """What the start line names beside the tree.

    `cluster` is an edge's, None at a relay; `proxy` is the URL of one to go out through, "" for
    none; `listens` says how a relay's children dial in.
    """

    cluster: EdgeCluster | None = None
    health: HealthAddress | None = None
    proxy: str = ""
    listens: ListenSettings | None = None
    store: StoreSettings = DEFAULT_STORE


class JoinedNode:
    """One node of a tree that runs elsewhere; `say` tells the user what becomes of it."""

    def __init__(
        self,
        grant: KeptGrant,
        place: JoinedFolder,
        options: JoinOptions,
        clock: Clock,
        dice: Dice,
        say: Callable[[str], None],
    ) -> None:
        self.grant = grant
        self._place = place
        self._options = options
        listens = options.listens
        self._own = OwnCertificate(listens) if listens and listens.own_files else None
        self._clock = clock
        self._dice = dice
        self._say = say

    async def run(self) -> None:
        """Run until cancelled; raises JoinFailed if the tree does not let the node in."""
        grant, options, failure = self.grant, self._options, None
        try:
            async with ProcessGuard() as guard:
                world = NodeEnvironment(
                    guard, self._clock, self._dice, grant.tree, grant.roots, options.store
                )
                runtime = self._runtime(world)
                async with asyncio.TaskGroup() as group:
                    group.create_task(runtime.run(), name=str(grant.path))
                    group.create_task(self._watch(runtime), name="watch")
                    group.create_task(give_back_freed(self._clock), name="memory")
                    commands = NodeCommands(runtime, DataDir(self._place.folder), self._clock)
                    group.create_task(commands.run(), name="commands")
                    if self._own is not None:
                        group.create_task(self._renew(runtime, self._own), name="certificate")
                    if (health := options.health) is not None:
                        endpoint = HealthEndpoint(
                            runtime.unready,
                            self._clock,
                            health.port,
                            health.host,
                            readings=runtime.readings,
                        )
                        group.create_task(endpoint.run(), name="health")
        except* (JoinFailed, ClusterRefused) as refused:
            failure = first_of(refused)
        if failure is not None:
            raise failure

    def _runtime(self, world: NodeEnvironment) -> NodeRuntime:
        """The node itself, which is not started yet."""
        grant, place = self.grant, self._place
        former = tuple(dict.fromkeys((*grant.former, *place.former)))
        runtime = NodeRuntime(
            world,
            NodeIdentity(
                grant.path, place.node_folder, place.bound_home, former, place.folder / RELEASES
            ),
            ParentAccess(self._link(), self._keep_seed, self._keep_authorities),
            self._options.cluster,
            self._listening(),
            NodeHooks(set_up=lambda: self._arrive(runtime), note=self._tell),
        )
        return runtime

    def _link(self) -> ParentRemote:
        """The way to the parent; whom to believe there lies in a file for the server."""
        grant, file = self.grant, self._place.folder / AUTHORITIES_FILE
        if not grant.authorities:
            return ParentRemote(grant.dialled, grant.seed, proxy=self._options.proxy)
        atomic_write(file, grant.authorities)
        return ParentRemote(grant.dialled, grant.seed, authorities=file, proxy=self._options.proxy)

    def _listening(self) -> Listening:
        """How children get to a relay: by a certificate of the tree's or the user's, or a proxy."""
        settings, folder = self._options.listens, self._place.node_folder
        if settings is None:
            return Listening()
        if settings.behind_proxy or settings.own_files is not None:
            leaf_address = settings.leaf_address(0, NodePath(), settings.own_files)
            return Listening(leaf_address, settings.authorities_text())
        certificate = NodeCertificate(folder, settings.hosts)
        leaf_address = settings.leaf_address(0, NodePath(), certificate.files)
        return Listening(leaf_address, certificate=certificate)

    async def _renew(self, runtime: NodeRuntime, own: OwnCertificate) -> None:
        """Take up the certificates that the user puts in the place of the one before."""
        await runtime.running()
        servers, now = {self.grant.path: runtime.server}, self._clock.now
        await renew_in_time(lambda: own.renew_now(servers, now().wall_ms), self._clock)

    async def _arrive(self, runtime: NodeRuntime) -> None:
        """Carry over what the streams of a node keep that was moved here; raises BusBroken."""
        left = self._place.arriving
        if not left:
            return
        self._say(f"{self.grant.path} hung at {left[-1]}, and takes along what it keeps")
        seed, url = runtime.hosted.seeds.relay, runtime.server.url
        count = await rekey_streams(url, seed, self._clock, left, self.grant.path)
        while not self._keep(replace(self._place, arriving=())):
            await self._clock.sleep(REFUSED_SECONDS)
        self._say(f"{self.grant.path} has all it kept; records and blobs carried over: {count}")

    async def _watch(self, runtime: NodeRuntime) -> None:
        """Tell when the node is in session, and when its parent cannot be reached any more."""
        await runtime.running()
        admitted, told, link = self._place.admitted, "starting", LinkNews()
        unclaimed, withdrawal = "", Withdrawal()
        # The parent may be about to let the newest key in.
        patient_until = self._clock.now().seconds + REFUSED_SECONDS
        while True:
            stopped = runtime.node is not None and runtime.node.stopped
            link.look(runtime.server.log)
            trouble = _STOPPED if stopped else link.trouble
            ready = runtime.node is not None and runtime.node.ready
            patient = trouble == NOT_LET_IN and self._clock.now().seconds <= patient_until
            if trouble == NOT_LET_IN and not admitted and not patient:
                raise _void(self.grant)
            if self._is_withdrawn(withdrawal, runtime, is_refused=trouble == NOT_LET_IN):
                raise _withdrawn(self.grant)
            if (claim := runtime.claim) is not None:
                unclaimed = self._tell_of_cluster(claim, unclaimed)
            if ready and not admitted:
                admitted = self._keep(replace(self._place, admitted=True))
            if ready and runtime.node is not None:
                await self._learn(runtime.server, runtime.node.parent_addresses)
            cause = ("", "") if stopped else link.cause
            news = trouble + cause[0]
            if news != told and (trouble or ready) and not patient:
                told = news
                self._say(await self._news(trouble, *cause))
            await self._clock.sleep(LOOK_SECONDS)

    def _is_withdrawn(
        self, withdrawal: Withdrawal, runtime: NodeRuntime, *, is_refused: bool
    ) -> bool:
        """Whether an edge was taken out of the tree, and holds nothing any more."""
        node = runtime.node
        if node is None or self.grant.relay:
            return False
        return withdrawal.look(
            is_destination=node.has_profile,
            holds=runtime.objects_applied > 0,
            is_refused=is_refused,
            now=self._clock.now().seconds,
        )

    def _tell_of_cluster(self, claim: EdgeClaim, told: str) -> str:
        """Say why nothing can be done in its cluster, once; what was said last.

        Raises ClusterRefused if it was given one that is not its own.
        """
        if refusal := claim.refused_at_start:
            raise ClusterRefused(f"{self.grant.path}: {refusal}")
        trouble = claim.trouble if claim.reason != UNCLAIMED else ""
        if trouble != told:
            self._say(f"{self.grant.path}: {trouble or 'its cluster is its own'}")
        return trouble

    def _tell(self, noted: Noted) -> None:
        """A person has to know, of what the node notes, why it does nothing or lags behind."""
        if noted.reason in (EXPIRED_VIEW, STALE_VIEW, FRESH_VIEW):
            self._say(f"{self.grant.path}: {noted.detail}")

    async def _learn(
        self, server: EmbeddedServer | ExternalServer, addresses: tuple[str, ...]
    ) -> None:
        """Dial the parent also where it says that it listens, now and from the next start on."""
        learnt = self.grant.learnt(addresses)
        if learnt == self.grant or not isinstance(server, EmbeddedServer):
            return
        try:
            write_grant(self._place.folder / GRANT_FILE, learnt)
            await server.dial(learnt.dialled)
        except (OSError, ServerFailed) as error:
            logger.debug("addresses of the parent are not taken up yet: %s", error)
        else:
            self.grant = learnt

    def _keep_seed(self, seed: str) -> None:
        """Start with another key next time; raises OSError."""
        self.grant = replace(self.grant, seed=seed)
        write_grant(self._place.folder / GRANT_FILE, self.grant)

    def _keep_authorities(self, authorities: str) -> None:
        """Believe others at the parent next time; raises OSError."""
        self.grant = replace(self.grant, authorities=authorities)
        write_grant(self._place.folder / GRANT_FILE, self.grant)

    def _keep(self, place: JoinedFolder) -> bool:
        """Write down what the folder is from now on; False while the disk takes nothing."""
        try:
            place.keep()
        except OSError as error:
            logger.debug("%s cannot be written: %s", place.folder, error)
            return False
        self._place = place
        return True

    async def _news(self, trouble: str, cause: str, remedy: str) -> str:
        if not trouble:
            return f"{self.grant.path} is in session with its parent"
        if trouble == NOT_LET_IN:
            return f"{_void(self.grant)}; until then it keeps what it has"
        if trouble == _STOPPED:
            return _other_run(self.grant)
        why = await cause_at(self.grant.dialled, cause, remedy, self._options.proxy)
        return f"its parent {self.grant.path.parent} is not reached{why}; trying again"


def _void(grant: KeptGrant) -> JoinFailed:
    reason = (
        f"its parent {grant.path.parent} does not know its key: the node was removed, moved or "
        "revoked, another one took its place, or it is of another tree"
    )
    remedy = (
        "if it was moved, join with the token of its new place; else make one with "
        f"`leafcast node add {grant.path} --replace` at the tree it is to join"
    )
    return JoinFailed(grant.path, reason, remedy)


def _withdrawn(grant: KeptGrant) -> JoinFailed:
    reason = (
        "it was removed from the tree, or moved: it is no destination any more, holds nothing, and "
        f"its parent {grant.path.parent} does not know its key"
    )
    remedy = (
        f"`leafcast node add {grant.path}` at the tree lets it in again, with the data directory "
        "that it has; else delete that"
    )
    return JoinFailed(grant.path, reason, remedy)


def _other_run(grant: KeptGrant) -> str:
    """That another run with the same identity is up, and what to do."""
    anew = (
        f"make a token with `leafcast node add {grant.path} --replace`, which voids this key once "
        "it is used"
    )
    return (
        f"{grant.path} runs elsewhere with the same key, so this run does nothing; stop one of "
        f"them (if its machine is cut off, wait 90 seconds), or {anew}"
    )
