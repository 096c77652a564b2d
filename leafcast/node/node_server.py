"""A node's nats-server as its relay finds it: the process, its accounts, and the children it knew.

The server may be ours, or someone else's; what is stored is looked after only where it is ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from pathlib import Path

from leafcast.node.credentials.account_seeds import account_seeds, keep_seeds
from leafcast.node.credentials.own_certificate import validity
from leafcast.node.credentials.server_trust import ServerStep, ServerTrust
from leafcast.node.kept_store import STORE_LOOK_SECONDS, keep_store, left_to_others
from leafcast.node.known_children import KnownChildren
from leafcast.node.options import Listening, NodeEnvironment, NodeIdentity
from leafcast.node.redialling import Redialling
from relay.adapters.jetstream.connection import CLUSTER_ANSWER_SECONDS, Connection
from relay.adapters.jetstream.fence import FencedPublisher, take_fence
from relay.adapters.jetstream.jetstream_leader import until_led
from relay.adapters.jetstream.stream_mending import mend_if_damaged
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.nats_config import Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import entrance_pair
from relay.adapters.server.server_figures import ServerFigures, server_figures
from relay.adapters.server.store_space import free_bytes
from relay.adapters.spaces.bucket import Bucket, Kept, fence_of, mark_of_loss, stream_of
from relay.adapters.spaces.connection import Client, space_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.core.effects import Noted
from relay.ports import BusBroken, Clock
from relay.space_errors import SpaceError

SYNC_LOOK_SECONDS = 60.0
REDIAL_LOOK_SECONDS = 1.0
SEVERAL = 2
LISTEN_AFTER_SECONDS = 1.0
OPEN_ATTEMPTS_MAX, OPEN_PAUSE_SECONDS = 20, 0.1
SERVER_HOME_CHARACTERS = 8
"""Of a node's home in its server's name: a parent keeps one link of each name, the newest."""

log = logging.getLogger("leafcast")


class NodeServer:
    """The server of one node; nothing starts before `serving`."""

    def __init__(
        self,
        world: NodeEnvironment,
        identity: NodeIdentity,
        place: Listening | ServerPlace,
        trust: ServerTrust,
        note: Callable[[Noted], None],
    ) -> None:
        self._world, self._identity, self._place = world, identity, place
        self.path = identity.path
        self._trust, self._note = trust, note
        self.seeds = account_seeds(identity.folder, world.dice)
        self.known = KnownChildren(identity.folder)
        self._server: EmbeddedServer | ExternalServer | None = None
        self._closing = AsyncExitStack()
        self._listen_requested = asyncio.Event()
        self._removals = 0
        self._mended: set[str] = set()
        self._fenced: dict[str, FencedPublisher] = {}

    @property
    def server(self) -> EmbeddedServer | ExternalServer:
        """The server itself; raises BusBroken before it was started."""
        if self._server is None:
            raise BusBroken(f"node {self.path} has no server yet")
        return self._server

    @property
    def is_started(self) -> bool:
        return self._server is not None

    @property
    def is_external(self) -> bool:
        """Whether someone else runs it."""
        return isinstance(self._place, ServerPlace)

    @property
    def leaf_urls(self) -> tuple[str, ...]:
        """Where servers of children dial in, or will once there is a certificate."""
        leaf_address, member = self._leaf_address, self._world.member
        if member is not None:
            return member.leaf_urls
        return leaf_address.urls if leaf_address is not None else self.server.leaf_urls

    @property
    def _leaf_address(self) -> LeafAddress | None:
        return self._place.leaf_address if isinstance(self._place, Listening) else None

    @asynccontextmanager
    async def serving(
        self, link: ParentRemote | None, *, lets_in: bool
    ) -> AsyncIterator[asyncio.TaskGroup]:
        """Run the server, linked to a parent's if there is one; work beside it goes into the group.

        With `lets_in` those who ask to be let in below the node get as far as to ask.
        """
        path = self.path
        entrance = entrance_pair(self._world.tree)[1] if lets_in else ""
        neighbours = Neighbours(link, self.known.nkeys, entrance)
        async with (
            self._new(neighbours) as self._server,
            AsyncExitStack() as self._closing,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(self._keep_store(), name=f"store {path}")
            group.create_task(self._listen(), name=f"listen {path}")
            group.create_task(self._look_at_sync(), name=f"sync {path}")
            yield group

    def _new(
        self, neighbours: Neighbours
    ) -> AbstractAsyncContextManager[EmbeddedServer | ExternalServer]:
        identity, world = self._identity, self._world
        if world.member is not None:
            return lent(world.member.server, neighbours)
        if isinstance(self._place, ServerPlace):
            return ExternalServer(self._place, identity.path, self.seeds, neighbours)
        link = neighbours.parent
        if link is not None and identity.home:
            # Under a name that a copy of this folder elsewhere has not.
            name = f"{identity.path.domain}.{identity.home[:SERVER_HOME_CHARACTERS]}"
            neighbours = replace(neighbours, parent=replace(link, server_name=name))
        return EmbeddedServer(
            identity.folder,
            identity.path,
            self.seeds,
            neighbours,
            guard=world.guard,
            clock=world.clock,
            leaf_address=None if self._trust.awaits_certificate else self._leaf_address,
            store=world.store,
        )

    async def client(self, stack: AsyncExitStack, name: str) -> Client:
        """A connection to account SPACE, open until the stack is closed."""
        label = f"leafcast {self.path} {name}"
        connection = space_connection(self.server.url, self.seeds.space, label)
        client, member = await stack.enter_async_context(connection), self._world.member
        if member is not None:
            when_ended = member.servers.when_ended
            when_ended.append(client.servers_ended)
            stack.callback(when_ended.remove, client.servers_ended)
        return client

    async def _mend(self, bucket: str, *, is_made: bool = False) -> None:
        """Make a bucket whole whose files are damaged: what cannot be read is lost.

        Once in the life of the process, before anybody writes to it. The server had left out one
        that holds something as it was just made. One of a trio is whole at another member.
        """
        if bucket in self._mended or self._world.member is not None:
            return
        label = f"leafcast {self.path} mending"
        connection = Connection(self.server.url, self.seeds.space, label, "_INBOX.mending")
        await connection.open()
        try:
            names = stream_of(bucket), mark_of_loss(bucket)
            if await mend_if_damaged(connection, self._world.clock, *names, is_made=is_made):
                self._mended.add(bucket)
        finally:
            await connection.close()

    async def space(
        self, bucket: str, stack: AsyncExitStack, *, as_written: bool = False
    ) -> EmbeddedSpace:
        """An embedded space on this server, open until the stack is closed."""
        world = self._world
        await self._mend(bucket)
        space = EmbeddedSpace(
            await self.client(stack, bucket),
            bucket,
            world.clock,
            world.dice,
            domain=self.path.domain,
            kept=Kept(world.replicas, await self._behind_fence(bucket)),
            as_written=as_written,
        )
        for attempt in range(OPEN_ATTEMPTS_MAX):
            try:
                await space.make()
                await self._mend(bucket, is_made=True)
                await space.open()
                break
            except SpaceError:
                # A server that takes in a new child serves nobody for a moment.
                if attempt + 1 == OPEN_ATTEMPTS_MAX:
                    raise
                await world.clock.sleep(OPEN_PAUSE_SECONDS)
        return space

    async def _behind_fence(self, bucket: str) -> FencedPublisher | None:
        """What writes to a bucket as the active member; None if the node has no members.

        One fence for all who write there in this tenure; its connection ends with the server.
        """
        world = self._world
        if world.member is None:
            return None
        if bucket not in self._fenced:
            label, tenure = f"leafcast {self.path} {bucket}", world.member.tenure
            url, seed, again = self.server.url, self.seeds.space, CLUSTER_ANSWER_SECONDS
            connection = Connection(url, seed, label, "_INBOX.fence", again)
            await connection.open()
            self._closing.push_async_callback(connection.close)
            await until_led(connection, world.clock, [stream_of(bucket)])
            await tenure.confirm()
            domain = self.path.domain
            await Bucket(connection.client, bucket, domain, Kept(world.replicas)).open()
            fence = await take_fence(
                connection, tenure, stream_of(bucket), fence_of(bucket), replaces=True
            )
            publisher = FencedPublisher(connection, fence, tenure)
            self._fenced[bucket] = tenure.probed[stream_of(bucket)] = publisher
        return self._fenced[bucket]

    async def follow(self, step: ServerStep) -> None:
        """Show and believe what the files say; raises BusBroken, ServerFailed."""
        if step is ServerStep.LISTEN:
            self._listen_requested.set()
        elif step is ServerStep.RELOAD:
            await self.server.reload()

    def standing(self) -> dict[str, object]:
        """How the node is where it runs: see host_status, and of the user's own certificate."""
        status = host_status(self._world.clock, self._identity.folder, self._server)
        leaf_address = self._leaf_address
        if (
            self._trust.certificate is None
            and leaf_address is not None
            and leaf_address.tls is not None
        ):
            status |= validity(leaf_address.tls)
        if self._server is not None and self._server.sync_seconds is not None:
            status |= {
                "durable": int(self._server.is_durable),
                "syncSeconds": self._server.sync_seconds,
            }
        return {**status, "storeRemovals": self._removals}

    @property
    def starts(self) -> int | None:
        """How often a server of its own was started; None of one that someone else runs."""
        return self._server.starts if isinstance(self._server, EmbeddedServer) else None

    async def figures(self) -> ServerFigures | None:
        """What the server counts; None if it does not tell it soon, or was not started."""
        if self._server is None:
            return None
        return await server_figures(self._server.url, self.seeds.system)

    async def look_for_parent(
        self, is_linked: Callable[[], bool], is_silent: Callable[[], bool]
    ) -> None:
        """Have the server dial elsewhere where a parent of several addresses answers no more."""
        redialling, clock = Redialling(self._world.dice), self._world.clock
        while isinstance(self.server, EmbeddedServer):
            await clock.sleep(REDIAL_LOOK_SECONDS)
            linked = is_linked() or self.server.parents_known < SEVERAL
            if redialling.is_due(clock.now().seconds, is_linked=linked, is_silent=is_silent()):
                try:
                    await self.server.redial()
                except BusBroken as error:
                    log.debug("%s", error)

    async def until_wiped(self) -> None:
        """Raise BusBroken when its store was removed: what the node remembers is there no more."""
        while isinstance(self.server, EmbeddedServer):
            await self._world.clock.sleep(STORE_LOOK_SECONDS)
            if self.server.wiped:
                raise BusBroken(f"what it stores in {self._identity.folder} was removed")

    async def restore_wiped(self) -> None:
        """Begin with an empty store where it was removed."""
        if isinstance(self.server, EmbeddedServer) and self.server.wiped:
            folder = self._identity.folder
            detail = "what it stores was removed while it ran: it begins again with nothing"
            self._note(Noted("StoreRemoved", str(folder), detail))
            if await self.server.renew():
                self._removals += 1
                keep_seeds(folder, self.seeds)

    async def _listen(self) -> None:
        """Start the server anew once there is a first certificate, and that was answered."""
        await self._listen_requested.wait()
        await self._world.clock.sleep(LISTEN_AFTER_SECONDS)
        leaf_address = self._leaf_address
        if leaf_address is not None and isinstance(self.server, EmbeddedServer):
            await self.server.listen(leaf_address)

    async def _look_at_sync(self) -> None:
        """Know when a server that someone else runs has on its disk what it acknowledged."""
        while isinstance(self.server, ExternalServer):
            await self.server.ask_about_sync()
            await self._world.clock.sleep(SYNC_LOOK_SECONDS)

    async def _keep_store(self) -> None:
        """Keep the store of a server of our own, and tell of one that its member keeps.

        Looked at by itself: a node that has nothing to write does not notice.
        """
        server, world = self.server, self._world
        if isinstance(server, EmbeddedServer):
            renew = server.renew if world.member is None else left_to_others
            await keep_store(server, self._identity.folder, world.clock, self._note, renew)


@asynccontextmanager
async def lent(server: EmbeddedServer, neighbours: Neighbours) -> AsyncIterator[EmbeddedServer]:
    """A server that runs already, with these neighbours; it goes on after that."""
    await server.become(neighbours)
    yield server


def host_status(
    clock: Clock, folder: Path, server: EmbeddedServer | ExternalServer | None
) -> dict[str, object]:
    """`nowMs` and `diskFree`; of a server of ours also `storeBytes`, `serverStarts`, `serverUpMs`.

    `serverUpMs` is how long ago it was started last.
    """
    # A folder that was removed as the node runs is made again on the disk that it was on.
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    status: dict[str, object] = {
        "nowMs": clock.now().wall_ms,
        "diskFree": free_bytes(existing),
    }
    if isinstance(server, EmbeddedServer):
        status |= {
            "storeBytes": _stored(folder / "jetstream"),
            "serverStarts": server.starts,
            "serverUpMs": int(server.up_seconds * 1000),
        }
    return status


def _stored(store: Path) -> int:
    size = 0
    for file in store.rglob("*"):
        with suppress(OSError):  # The server removes files as it goes.
            size += file.stat().st_size if file.is_file() else 0
    return size
