"""One member of a node: its server runs always, and the node while this member is the active one.

To become active is a start like any other: the state of the node is laid into this member's folder,
and the node is made anew of that and of its streams. Whoever is not active any more ends its run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from leafcast.members.admission import Admission
from leafcast.members.former_runs import FormerRuns
from leafcast.members.member_node import LONE_SECONDS, MemberNode, Standing
from leafcast.members.membership import (
    TRUSTED,
    MembershipDamaged,
    Succession,
    kept_membership,
)
from leafcast.members.outcast import until_outcast
from leafcast.members.replacing import ActiveSide, Replacing
from leafcast.members.sealed_state import StateUnreadable, opened, sealed, sealed_to
from leafcast.members.settings import MEMBERSHIP_FILE, MemberSettings
from leafcast.members.state_files import StateFiles
from leafcast.members.steps import Replaced, carry_out, forget_routes
from leafcast.metrics.reading import MetricReading
from leafcast.node.credentials.account_seeds import account_seeds
from leafcast.node.credentials.kept_store import kept_store
from leafcast.node.health_endpoint import HealthAddress, HealthEndpoint
from leafcast.node.kept_store import STORE_LOOK_SECONDS, keep_store
from leafcast.node.member_forms import (
    APPLIED,
    CHILDREN,
    ENCRYPTED,
    LISTENS,
    NONE,
    SERVERS,
    STORE_FULL,
    VERSION,
)
from leafcast.node.options import ActiveMember
from relay.adapters.jetstream.connection import CLUSTER_ANSWER_SECONDS, Connection
from relay.adapters.jetstream.fence import Tenure
from relay.adapters.jetstream.jetstream_leader import until_led
from relay.adapters.jetstream.lease_stream import LeaseKeeper, LeaseStream
from relay.adapters.jetstream.member_presence import (
    ACTIVE,
    HEARD,
    MemberPresence,
)
from relay.adapters.jetstream.server_watch import ServerWatch
from relay.adapters.jetstream.state_stream import StateStream
from relay.adapters.jetstream.stream_probes import ProbedStream, stuck_streams
from relay.adapters.server.cluster_settings import MEMBERS
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nats_server import EmbeddedServer
from relay.core.effects import Noted
from relay.members.lease import MemberLease
from relay.ports import BusBroken, Clock, Dice, first_of
from schemas.values.identity import random_id

SETTLE_SECONDS = 0.5
"""How often it is looked for files that changed, beside each write that waits for them."""
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 0.25, 5.0
"""After a turn: what ended it at once may do so again and again."""
PROBE_SECONDS, WIDEN_SECONDS = 30.0, 3.0
DOOR_LOOK_SECONDS = 1.0

_SPACE = "SPACE"
"""The account of spaces, as nats/node.conf has it; all other streams are of RELAY."""
_ENDS_TURN = (BusBroken, StateUnreadable, MembershipDamaged, ServerFailed, OSError)

log = logging.getLogger("leafcast")


@dataclass(frozen=True, slots=True)
class _Machine:
    """What a member has always, active or not."""

    server: EmbeddedServer
    connection: Connection
    system: Connection
    presence: MemberPresence
    servers: ServerWatch


@dataclass(frozen=True, slots=True)
class _State:
    """The node's state: as a stream, and as files here."""

    stream: StateStream
    files: StateFiles


class Member:
    """One run of the process of one member."""

    def __init__(
        self,
        settings: MemberSettings,
        node: MemberNode,
        clock: Clock,
        dice: Dice,
        health: HealthAddress | None = None,
    ) -> None:
        self._settings, self._node, self._health = settings, node, health
        self._clock, self._dice = clock, dice
        self._settling = asyncio.Lock()
        self._lease: MemberLease | None = None
        self._runs = FormerRuns(node.folder)
        self._active_since: float | None = None
        self._hears_since: float | None = None
        self._stuck: Mapping[str, str] = {}
        # Whether another member was active since this process began.
        self._follows = False
        # Files that changed, and that the server did not read since.
        self._unread: set[str] = set()
        # In the turns before this one.
        self._heard_before = clock.now().seconds

    async def run(self) -> None:
        """Serve, and be active or stand by, until cancelled.

        Raises Replaced, in a group, once another machine has this member's place.
        """
        settings, node = self._settings, self._node
        seeds = account_seeds(node.server_folder, self._dice)
        async with AsyncExitStack() as stack:
            guard = await stack.enter_async_context(ProcessGuard())
            server = EmbeddedServer(
                node.server_folder,
                settings.path,
                seeds,
                node.neighbours(),
                guard=guard,
                clock=self._clock,
                leaf_address=settings.leaf_address(node.server_folder),
                store=kept_store(node.folder).settings(),
            )
            await stack.enter_async_context(server)
            label = f"leafcast {settings.path} {settings.name}"
            url, again = server.url, CLUSTER_ANSWER_SECONDS
            connection = Connection(url, seeds.relay, label, "_INBOX.member", again)
            await connection.open()
            stack.push_async_callback(connection.close)
            system = Connection(server.url, seeds.system, f"{label} system", "_INBOX.servers")
            await system.open()
            stack.push_async_callback(system.close)
            servers = ServerWatch(system, self._clock, MEMBERS)
            servers.when_ended.append(lambda _: connection.read_anew())
            await servers.start()
            facts = partial(self._facts, server, servers, version("leafcast"))
            presence = MemberPresence(connection, settings.path, settings.name, self._clock, facts)
            await presence.start()
            async with asyncio.TaskGroup() as group:
                group.create_task(presence.compare_clocks(), name="clocks")
                folder, clock = node.server_folder, self._clock
                keeping = keep_store(server, folder, clock, self._note, server.renew)
                group.create_task(keeping, name="store")
                standing = node.stand(server, seeds, partial(self._standing, server), presence)
                group.create_task(standing, name="standing")
                group.create_task(servers.run(), name="servers")
                group.create_task(self._keep_door(server), name="door")
                group.create_task(self._answer_health(server), name="health")
                group.create_task(self._look_outside(server), name="outside")
                machine = _Machine(server, connection, system, presence, servers)
                pause = AGAIN_SECONDS
                while True:
                    began = clock.now().seconds
                    await self._take_turns(machine)
                    is_short = clock.now().seconds - began < AGAIN_SECONDS_MAX
                    pause = min(2 * pause, AGAIN_SECONDS_MAX) if is_short else AGAIN_SECONDS
                    await clock.sleep(pause)

    async def _answer_health(self, server: EmbeddedServer) -> None:
        if (health := self._health) is not None:
            await HealthEndpoint(
                lambda: self._unready(server),
                self._clock,
                health.port,
                health.host,
                role=lambda: self._standing(server).role,
                readings=lambda: self._readings(server),
            ).run()

    async def _readings(self, server: EmbeddedServer) -> Sequence[MetricReading]:
        """While it stands by there is no node to tell of."""
        is_active = self._standing(server).role == ACTIVE
        return await self._node.readings() if is_active else ()

    def _unready(self, server: EmbeddedServer) -> dict[str, str]:
        """What keeps this member from its work now, which is to be active, or ready to be so."""
        standing = self._standing(server)
        none = f"no member is active since {standing.silent_seconds:.0f} s"
        room = f"the disk of {self._node.server_folder} is full"
        behind = self._node.out_of_step()
        return {
            "members": none if standing.role == NONE else "",
            "server": room if server.store_failed else "",
            **({"step": behind} if behind else {}),
            **(self._node.unready() if standing.role == ACTIVE else {}),
        }

    async def _look_outside(self, server: EmbeddedServer) -> None:
        """Raise Replaced once others show, where nobody is heard, that it is no member any more."""
        members = await until_outcast(
            lambda: self._settings, lambda: self._standing(server).silent_seconds, self._clock
        )
        raise Replaced(self._settings, members, is_certain=False)

    async def _keep_door(self, server: EmbeddedServer) -> None:
        """Let no children in while this member is a lone one, so that they dial another."""
        is_open, who = True, f"member {self._settings.name} of {self._settings.path}"
        while True:
            await self._clock.sleep(DOOR_LOOK_SECONDS)
            may_open = not self._standing(server).is_lone
            if may_open is is_open:
                continue
            try:
                await server.keep_door(is_open=may_open)
            except (BusBroken, ServerFailed, OSError) as error:
                log.warning("%s: its door cannot be changed: %s", who, error)
                continue
            is_open = may_open
            why = "an active member is heard" if is_open else f"none for {LONE_SECONDS:.0f} s"
            log.warning(
                "%s %s its door to children: %s", who, "opens" if is_open else "closed", why
            )

    def _facts(
        self, server: EmbeddedServer, servers: ServerWatch, release: str
    ) -> Mapping[str, Any]:
        """What it says of itself to the other members."""
        return {
            **self._node.facts(),
            **self._standing(server).facts(),
            HEARD: self._heard_seconds(),
            CHILDREN: server.served,
            SERVERS: [name.rpartition(".")[2] for name in servers.running],
            LISTENS: self._settings.listens,
            APPLIED: self._applied(server),
            STORE_FULL: server.store_failed,
            VERSION: release,
            ENCRYPTED: server.is_encrypted,
        }

    def _applied(self, server: EmbeddedServer) -> tuple[int, int]:
        """The last change of the members that its server follows, too."""
        settings = self._settings
        return settings.applied if server.reaches_by == settings.cluster else (0, 0)

    def _note(self, noted: Noted) -> None:
        log.info("member %s: %s %s", self._settings.name, noted.reason, noted.detail)

    def _standing(self, server: EmbeddedServer) -> Standing:
        now = self._clock.now().seconds
        if self._active_since is None:
            return Standing(silent_seconds=now - self._last_heard())
        heard = 0.0 if self._hears_since is None else now - self._hears_since
        # What was asked, and its answer, are lost with the server that had them; and before this
        # one heard, with a member that was active before and that nobody reaches.
        return Standing(
            active_seconds=now - self._active_since,
            hears_seconds=min(heard, server.up_seconds),
            stuck=self._stuck,
        )

    def _hears(self) -> None:
        self._hears_since = self._clock.now().seconds

    def _last_heard(self) -> float:
        """When there was a sign of an active member last, or else this one began."""
        if self._lease is None:
            return self._heard_before
        return max(self._heard_before, self._lease.heard_at)

    def _heard_seconds(self) -> float | None:
        """How long ago the holder of the lease was heard in this turn; None if it was not."""
        if self._lease is None or self._lease.heard_at == float("-inf"):
            return None
        return self._clock.now().seconds - self._lease.heard_at

    async def _take_turns(self, machine: _Machine) -> None:
        """Stand by until this member may be active, be so, and give the lease back."""
        path, clock, connection = self._settings.path, self._clock, machine.connection
        run = random_id(self._dice.entropy(16))
        if self._heard_seconds() is not None:
            self._runs.forget()
        lease = self._lease = MemberLease(self._settings.name, run, self._runs.begin(run))
        leases = LeaseStream(connection, path, MEMBERS)
        keeper = LeaseKeeper(leases, lease, clock, machine.presence, self._node.why_others)
        stream = StateStream(connection, clock, path, MEMBERS)
        state = _State(stream, StateFiles(self._node.folder, self._node.state))
        try:
            await until_led(connection, clock)
            await self._stand_by(machine.server, keeper, state)
            self._follows |= self._heard_seconds() is not None
            self._active_since = clock.now().seconds
            await self._be_active(machine, keeper, state)
        except* _ENDS_TURN as broken:
            why: object = first_of(broken)
            if machine.server.store_failed:
                why = f"its disk {self._node.server_folder} is full: make room there ({why})"
            ends = ": " if self._active_since is None else " has lost its tenure: "
            log.warning("member %s of %s%s%s", self._settings.name, path, ends, why)
        finally:
            self._heard_before = clock.now().seconds if self._active_since else self._last_heard()
            self._active_since, self._hears_since, self._stuck = None, None, {}
            # Whatever ended it: nothing that the lease allowed is under way any more.
            await keeper.give_back()

    async def _stand_by(self, server: EmbeddedServer, keeper: LeaseKeeper, state: _State) -> None:
        """Wait for the lease; meanwhile the files follow the state, and the server follows them."""
        who = f"member {self._settings.name} of {self._settings.path}"
        log.info("%s stands by", who)
        admission = Admission(who, self._node, self._why_not, state.stream, state.files)
        changes: asyncio.Queue[tuple[str, bytes | None]] = asyncio.Queue()

        async def changed(name: str, data: bytes | None) -> None:
            changes.put_nowait((name, data))

        laying = self._lay_changes(server, state.files, changes, admission.laid)
        async with asyncio.TaskGroup() as group:
            following = (
                group.create_task(state.stream.follow(changed), name="state"),
                group.create_task(laying, name="files"),
            )
            await admission.wait()
            while server.store_failed:
                await self._clock.sleep(STORE_LOOK_SECONDS)
            await keeper.take()
            for task in following:
                task.cancel()

    def _why_not(self) -> str:
        change = kept_membership(self._node.folder)
        if change is not None and change.said and change.came == self._settings.name:
            return "it has to catch up first"
        return self._node.why_not()

    async def _lay_changes(
        self,
        server: EmbeddedServer,
        files: StateFiles,
        changes: asyncio.Queue[tuple[str, bytes | None]],
        laid: asyncio.Event,
    ) -> None:
        """Have the files and the server be as the state says; what fails ends the turn."""
        while True:
            name, data = await changes.get()
            if files.lay(name, None if data is None else self._opened(name, data)):
                self._unread.add(name)
            laid.set()
            if changes.empty():
                await self._follow_files(server)

    async def _carry_out(self, server: EmbeddedServer) -> None:
        """Have this member and its server be as a change of the members wants them now.

        Raises Replaced, MembershipDamaged, OSError or ServerFailed.
        """
        folder = self._node.folder
        if (change := kept_membership(folder)) is None:
            return
        self._settings = carry_out(folder, self._settings, change)
        self._node.take(self._settings)
        await server.route_by(self._settings.cluster)
        forget_routes(folder, self._settings)

    async def _follow_files(self, server: EmbeddedServer) -> None:
        """Have the server link to, show and believe what its files say.

        Raises as `_carry_out`, or BusBroken if a link stays open.
        """
        await self._carry_out(server)
        # Who is believed at the parent is written to a file of its own as this is asked.
        await server.become(self._node.neighbours())
        if not self._unread.isdisjoint(self._node.server_files):
            await server.reload()
        self._unread.clear()

    async def _be_active(self, machine: _Machine, keeper: LeaseKeeper, state: _State) -> None:
        """Run the node for as long as the lease is held."""
        log.info("member %s of %s is active", self._settings.name, self._settings.path)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self._run_node(machine, keeper, state), name="node")
            full = group.create_task(self._until_full(machine.server), name="full")
            await keeper.keep()
            full.cancel()
            log.warning(
                "member %s of %s has lost the lease", self._settings.name, self._settings.path
            )
            running.cancel()

    async def _until_full(self, server: EmbeddedServer) -> None:
        """Raise BusBroken once its disk takes nothing: another member is active then."""
        while not server.store_failed:
            await self._clock.sleep(STORE_LOOK_SECONDS)
        raise BusBroken("another member is active meanwhile")

    async def _run_node(self, machine: _Machine, keeper: LeaseKeeper, state: _State) -> None:
        async def settled() -> None:
            await self._settle(state)

        async def needs_nothing() -> None:
            """What is written to the state waits for no file."""

        token, probed = keeper.lease.run, dict[str, ProbedStream]()
        # Who led the streams' cluster may have been lost with the member before.
        await until_led(machine.connection, self._clock)
        await keeper.confirm()
        await state.stream.make()
        kept = await state.stream.take(Tenure(token, keeper.confirm, needs_nothing, probed))
        if kept:
            texts = {name: self._opened(name, data) for name, data in kept.items()}
            self._unread |= state.files.lay_all(texts)
            await self._follow_files(machine.server)
            to = self._sealed_to().keys()
            if any(sealed_to(data) != to for data in kept.values()):
                state.files.forget()
        if why := self._why_not():
            raise BusBroken(why)
        await settled()
        tenure = Tenure(token, keeper.confirm, settled, probed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_settled(state), name="settling")
            group.create_task(self._probe(tenure), name="probes")
            leases = LeaseStream(machine.connection, self._settings.path, MEMBERS)
            group.create_task(self._keep_wide(leases), name="wide lease")
            replacing = self._replacing(machine, state, tenure)
            group.create_task(replacing.run(), name="members")
            member = ActiveMember(
                tenure,
                machine.server,
                self._settings.leaf_urls,
                self._settings.others,
                machine.presence,
                machine.servers,
                self._hears,
                replacing,
                self._follows,
            )
            await self._node.run(member)
            raise BusBroken("the node ended its run")

    def _replacing(self, machine: _Machine, state: _State, tenure: Tenure) -> Replacing:
        own = ActiveSide(
            self._node.folder,
            self._node.server_folder,
            lambda: self._settings,
            tenure,
            machine.presence,
            machine.servers,
            machine.connection,
            machine.system,
            partial(self._account, machine.server),
            self._node.listen,
            partial(self._commit, state),
            partial(self._carry_out, machine.server),
        )
        return Replacing(own, kept_membership(own.folder), self._clock, self._dice)

    @asynccontextmanager
    async def _account(self, server: EmbeddedServer, name: str) -> AsyncIterator[Connection]:
        """A connection as an account of its own server that has streams; raises BusBroken."""
        seeds = account_seeds(self._node.server_folder, self._dice)
        seed = seeds.space if name == _SPACE else seeds.relay
        label = f"leafcast {self._settings.path} {self._settings.name} streams"
        connection = Connection(server.url, seed, label, "_INBOX.streams")
        await connection.open()
        try:
            yield connection
        finally:
            await connection.close()

    def _sealed_to(self) -> Mapping[str, bytes]:
        """To whose keys the state of the node is sealed: to that of no member that is lost."""
        change = kept_membership(self._node.folder)
        return change.keys if change is not None else self._settings.keys

    async def _probe(self, tenure: Tenure) -> None:
        """Look, by writing, whether each stream takes what is written."""
        while True:
            await self._clock.sleep(PROBE_SECONDS)
            probed = dict(tenure.probed)
            for each in tenure.in_turn.values():
                with suppress(BusBroken):
                    probed |= await each.next(self._stuck)
            stuck = await stuck_streams(probed)
            for stream in stuck.keys() - self._stuck.keys():
                log.warning(
                    "stream %s of %s takes no writes, and its leader %s calls it healthy: start "
                    "the process of that member anew, and its server with it",
                    *(stream, self._settings.path, stuck[stream]),
                )
            self._stuck = stuck

    async def _keep_wide(self, leases: LeaseStream) -> None:
        """Have the lease at all servers: where two keep it, to lose one of them leaves none."""
        while True:
            await leases.widen()
            await self._clock.sleep(WIDEN_SECONDS)

    async def _keep_settled(self, state: _State) -> None:
        while True:
            await self._clock.sleep(SETTLE_SECONDS)
            await self._settle(state)

    async def _settle(self, state: _State) -> None:
        """Have the stream hold what the files do; raises BusBroken."""
        async with self._settling:
            if changes := _changes(state.files):
                await self._put(state, changes, self._sealed_to())
                state.files.know(changes)

    async def _commit(self, state: _State, change: Succession) -> None:
        """Have the stream hold a change of the members, and the file after it; raises BusBroken.

        A file that is in no stream would be carried out where it lies, and by nobody else. With the
        first step all is sealed anew: what one write leaves out, the next one to be active does.
        """
        async with self._settling:
            if change.step == TRUSTED:
                state.files.forget()
            changes = _changes(state.files)
            changes.pop(MEMBERSHIP_FILE, None)
            await self._put(state, {MEMBERSHIP_FILE: change.text(), **changes}, change.keys)
            state.files.know(changes)
            try:
                state.files.lay(MEMBERSHIP_FILE, change.text())
            except OSError as error:
                raise BusBroken(f"the members cannot be written down: {error}") from error

    async def _put(
        self, state: _State, changes: Mapping[str, str | None], to: Mapping[str, bytes]
    ) -> None:
        kept = {
            name: sealed(name, text.encode(), to, self._dice)
            for name, text in changes.items()
            if text is not None
        }
        await state.stream.put(kept, changes.keys() - kept.keys())

    def _opened(self, name: str, data: bytes) -> str:
        """The text of a file of the node's; raises StateUnreadable or Replaced."""
        to = sealed_to(data)
        is_closed = bool(to) and self._settings.name not in to
        if is_closed and (name == MEMBERSHIP_FILE or not self._is_in()):
            raise Replaced(self._settings, ", ".join(sorted(to)))
        return opened(name, data, self._settings.name, self._settings.key).decode()

    def _is_in(self) -> bool:
        """Whether it came, or stayed, by a change of the members: the rest is sealed anew later."""
        change = kept_membership(self._node.folder)
        if change is None:
            return self._settings.applied > (0, 0)
        return self._settings.name in change.machines


def _changes(files: StateFiles) -> dict[str, str | None]:
    """What differs from what the stream holds; raises BusBroken."""
    try:
        return files.changes()
    except (OSError, ValueError) as error:
        raise BusBroken(f"the files of the node cannot be read: {error}") from error
