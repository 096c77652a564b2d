"""A node's own nats-server: started, supervised, reloaded when children come and go, stopped.

The folder holds everything of it: ports, configuration (with a secret, so readable by the owner
only) and JetStream's store. Restarting on the same folder gives the same server again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

from nats.errors import Error as NatsError

from relay.adapters.server.admin import RELOAD_SECONDS, cut_links, system_connection
from relay.adapters.server.cluster_settings import ClusterSettings
from relay.adapters.server.durability import DEFAULT_STORE, SYNC_SECONDS, Durability, StoreSettings
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.leaf_address import LOOPBACK, LeafAddress
from relay.adapters.server.logged_process import ServerFailed
from relay.adapters.server.nats_config import (
    NO_NEIGHBOURS,
    AccountSeeds,
    Neighbours,
    ServerSettings,
    check_child,
    loses_key,
    write_config,
)
from relay.adapters.server.port_holder import Holder, stranger_on
from relay.adapters.server.ports import PortTaken, ServerPorts, free_ports, keep_ports, kept_ports
from relay.adapters.server.process import ReloadRefused, ServerProcess, server_binary
from relay.adapters.server.store_key import VARIABLE, admit_key
from relay.adapters.server.store_mark import StoreMark, admit_store
from relay.adapters.server.store_space import is_full
from relay.atomic_file import make_folder
from relay.ports import BusBroken, Clock
from schemas.values.identity import NodePath

EVERYWHERE = "0.0.0.0"  # noqa: S104 - with TLS, which the configuration insists on
READY_SECONDS = 60.0
"""A store of a million subjects is back in two seconds; slow disks take their time."""
CRASHES_MAX = 10
BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX = 0.1, 30.0
HEALTHY_SECONDS = 60.0
PORT_ATTEMPTS = 8
KILLED_STARTS_MAX = 3
"""So often a server that is killed as it starts is started again at once."""
PORT_WAIT_SECONDS = 15.0
PORT_RETRY_SECONDS = 0.25
RELOAD_RETRY_SECONDS = 0.5
CUT_AGAIN_SECONDS = 2.0
UPLINK = "UPLINK"
"""The account of the link to the parent, as nats/node.conf calls it."""
STRANGERS = "ENROL"
"""The account of those who ask to be let in, as nats/node.conf calls it: no child's name."""

logger = logging.getLogger(__name__)


class EmbeddedServer:
    """A nats-server that runs from `async with` on, and again soon after each crash.

    If it cannot be brought back the block is cancelled and ends with ServerFailed (in a group).
    """

    def __init__(  # noqa: PLR0913 - what most servers do without is named
        self,
        folder: Path,
        path: NodePath,
        seeds: AccountSeeds,
        neighbours: Neighbours = NO_NEIGHBOURS,
        *,
        guard: ProcessGuard,
        clock: Clock,
        leaf_address: LeafAddress | None = None,
        store: StoreSettings = DEFAULT_STORE,
    ) -> None:
        parent = neighbours.parent
        self.path = path
        self._leaf_address = leaf_address
        self._entrance = neighbours.entrance
        self._store = store
        self._cluster = neighbours.cluster
        self._name = _server_name(path, neighbours)
        self._folder = folder
        self._config = folder / "nats.conf"
        self._store_dir = folder / "jetstream"
        self._nkeys = seeds.public()
        self._system_seed = seeds.system
        self._guard = guard
        self._clock = clock
        self._parent = parent
        self._children = dict(neighbours.children)
        self._is_open = True
        self._ports = ServerPorts(0, 0)
        self._process: ServerProcess | None = None
        self._starts = self._meant = 0
        self._began = 0.0
        self._started = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._supervisor: asyncio.Task[None] | None = None
        self._cutter: asyncio.Task[None] | None = None
        self._reload_lock = asyncio.Lock()
        self._changes_wanted = self._changes_done = 0
        # As the server read them last.
        self._read = NO_NEIGHBOURS
        # Children of whom the server may have links open that are good no more.
        self._to_cut: set[str] = set()

    @property
    def url(self) -> str:
        """Where clients connect; the same for the life of the folder."""
        return f"nats://127.0.0.1:{self._ports.client}"

    @property
    def leaf_url(self) -> str:
        """Where children's servers on this machine connect; the same for the life of the folder."""
        scheme = "nats" if self._leaf_address is None or self._leaf_address.tls is None else "tls"
        return f"{scheme}://{LOOPBACK}:{self._leaf_port}"

    @property
    def leaf_urls(self) -> tuple[str, ...]:
        """Where children's servers connect, wherever they are."""
        return self._leaf_address.urls if self._leaf_address is not None else (self.leaf_url,)

    @property
    def _leaf_port(self) -> int:
        leaf_address = self._leaf_address
        return (
            leaf_address.port
            if leaf_address is not None and leaf_address.tls is not None
            else self._ports.leaf
        )

    @property
    def parents_known(self) -> int:
        """At how many addresses it may find its parent."""
        return len(self._parent.urls) if self._parent is not None else 0

    @property
    def served(self) -> str:
        """A digest of the children that it lets in now, of their keys, and of links to be cut."""
        served = sorted(self._read.children.items()), sorted(self._to_cut)
        return blake2b(repr(served).encode(), digest_size=8).hexdigest()

    @property
    def reaches_by(self) -> ClusterSettings | None:
        """How it reaches the other members, as it read that last."""
        return self._read.cluster

    @property
    def pid(self) -> int:
        """The process of the run now, or of the last one."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> list[str]:
        """The last lines the server said in this run."""
        return self._process.log if self._process else []

    @property
    def starts(self) -> int:
        """How often it was started, but not to `listen`, and became ready; above 1: it crashed."""
        return self._starts - self._meant

    @property
    def is_durable(self) -> bool:
        """Whether what it acknowledges is on the disk: else its parent must have it still.

        Members of one node lose power together, and what two of them acknowledged is in force.
        """
        alone = self._parent is not None and self._cluster is None
        return not alone or self._store.durability is Durability.DISK

    @property
    def sync_seconds(self) -> int | None:
        """For how long what it acknowledged may not be on the disk yet."""
        return 0 if self.is_durable else SYNC_SECONDS

    @property
    def up_seconds(self) -> float:
        """For how long it has run since it was started last."""
        return self._clock.now().seconds - self._began

    async def next_start(self, seen: int) -> int:
        """Wait until `starts` is above `seen`, which it may be already; its value then."""
        while self._starts <= seen:
            await self._started.wait()
        return self._starts

    async def __aenter__(self) -> Self:
        make_folder(self._folder)
        try:
            await self._first_start()
        except BaseException:
            await self._stop()
            raise
        await self._tasks.__aenter__()
        self._supervisor = self._tasks.create_task(self._supervise(), name=f"server:{self.path}")
        self._cutter = self._tasks.create_task(self._keep_cutting(), name=f"links:{self.path}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._supervisor is not None
        assert self._cutter is not None
        self._supervisor.cancel()
        self._cutter.cancel()
        try:
            # Only a cancellation is the group's business: it may be its own, for a lost server.
            mine = isinstance(error, asyncio.CancelledError)
            await self._tasks.__aexit__(*((kind, error, trace) if mine else (None, None, None)))
        finally:
            await self._stop()

    async def reload(self) -> None:
        """Have the server read its configuration as it should be now; return when it has.

        Calls that come while one is under way share the next. Raises ReloadRefused, ServerFailed.
        """
        self._changes_wanted += 1
        mine = self._changes_wanted
        async with self._reload_lock:
            if self._changes_done >= mine:
                return
            process = await self._up()
            including = self._changes_wanted
            wanted = self._wanted
            self._write_config()
            # A new account's imports are dead until the reload after the one that made it (2.15.1).
            for _ in range(2 if wanted.children.keys() - self._read.children.keys() else 1):
                if not await self._read_again(process):
                    await self._up()  # It crashed; what it starts with is what was written.
                    break
            self._read, self._changes_done = wanted, including

    async def _read_again(self, process: ServerProcess) -> bool:
        until = self._clock.now().seconds + RELOAD_SECONDS
        while True:
            try:
                return await process.reload()
            except ReloadRefused as refused:
                if not refused.for_now or self._clock.now().seconds > until:
                    raise
            await self._clock.sleep(RELOAD_RETRY_SECONDS)

    @property
    def store_failed(self) -> bool:
        """Whether a stream could not be written in this run: it keeps nothing until the next."""
        return self._process is not None and self._process.store_failed

    @property
    def is_encrypted(self) -> bool:
        """Whether what it stores is."""
        return self._store.key is not None

    @property
    def wiped(self) -> bool:
        """Whether its store was removed while it ran: it goes on from open files for a while."""
        try:
            return self._starts > 0 and not any(self._store_dir.iterdir())
        except FileNotFoundError:
            return True

    async def renew(self) -> bool:
        """Start the server anew if its disk has room; else nothing is done.

        A folder that was removed is made again, with the same ports: children know them.
        """
        make_folder(self._folder)
        if is_full(self._folder):
            return False
        keep_ports(self._folder, self._ports)
        seen, process = self._starts, await self._up()
        await process.stop()
        await self.next_start(seen)
        return True

    async def link_with(self, seed: str) -> None:
        """Be known to the parent by another key: the link is made anew. Raises as `reload`."""
        assert self._parent is not None
        self._parent = replace(self._parent, seed=seed)
        await self.reload()

    async def dial(self, urls: tuple[str, ...]) -> None:
        """Dial the parent at any of these: the link is made anew. Raises as `reload`."""
        assert self._parent is not None
        self._parent = replace(self._parent, urls=urls)
        await self.reload()

    async def redial(self) -> None:
        """Cut the link to the parent, so that the next one of its addresses is dialled.

        A link whose other end lost its power stays open for two minutes. Raises BusBroken.
        """
        await self._up()
        try:
            async with system_connection(self.url, self._system_seed) as system:
                await cut_links(system, UPLINK)
        except (NatsError, OSError, ValueError, LookupError) as error:
            raise BusBroken(f"the server of {self.path} does not dial anew: {error!r}") from error

    async def become(self, neighbours: Neighbours) -> None:
        """Link to these from now on, if they are others; what it is a member of stays.

        What failed before is done, too. Raises as `reload`, or BusBroken if a link stays open.
        """
        self._parent, self._entrance = neighbours.parent, neighbours.entrance
        children = dict(neighbours.children)
        for name, keys in self._children.items():
            if name not in children or loses_key(keys, children[name]):
                self._to_cut.add(name)
        self._children = children
        await self._follow_wanted()

    async def route_by(self, cluster: ClusterSettings) -> None:
        """Reach the other members so from now on, as the same member; raises as `reload`."""
        self._cluster = cluster
        await self._follow_wanted()

    async def keep_door(self, *, is_open: bool) -> None:
        """Let children and strangers in, or nobody until it is open again: their links are cut.

        Raises as `become`.
        """
        self._is_open = is_open
        if not is_open:
            self._to_cut |= {*self._children, STRANGERS}
        await self._follow_wanted()

    async def _follow_wanted(self) -> None:
        if self._wanted != self._read:
            await self.reload()
        for name in sorted(self._to_cut):
            await self._cut_links(name)

    async def listen(self, leaf_address: LeafAddress) -> None:
        """Let children elsewhere in from now on: the server is started anew."""
        self._leaf_address = leaf_address
        self._meant += 1
        seen, process = self._starts, await self._up()
        await process.stop()
        await self.next_start(seen)

    async def add_child(self, name: str, nkey: str) -> None:
        """Open an account for the child's public nkey; twice is harmless, another key replaces it.

        Two keys, with a space between, are both good; with none ("") its link is cut. Raises
        BadIdentity, BadNkey or BadServerSettings, and then nothing has changed; BusBroken if its
        link stays open.
        """
        old = self._children.get(name)
        if old != nkey:
            check_child(self._settings(self._children), name, nkey)
            self._children[name] = nkey
        is_lost = loses_key(old or "", nkey)
        if is_lost:
            self._to_cut.add(name)
        if self._read.children.get(name) != self._good_keys(name):
            await self.reload()
        if is_lost or name in self._to_cut:
            await self._cut_links(name)

    async def remove_child(self, name: str) -> None:
        """Close the child's account, cut its connections and its leaf link; twice is harmless.

        Raises BusBroken if its link stays open.
        """
        self._children.pop(name, None)
        self._to_cut.add(name)
        if name in self._read.children:
            await self.reload()
        await self._cut_links(name)

    async def _first_start(self) -> None:
        kept = kept_ports(self._folder)
        if kept is not None:
            self._ports = kept
            return await self._start_on_kept_ports(strangers_wait=False)
        for attempt in range(PORT_ATTEMPTS):
            self._ports = free_ports(self._folder, attempt)
            if await self._start():
                keep_ports(self._folder, self._ports)
                return None
            if self._leaf_address is not None and (
                other := await self._stranger_on(self._leaf_address.port)
            ):
                raise PortTaken(self._ports, self._folder, other)
        raise PortTaken(self._ports, self._folder)

    async def _start_on_kept_ports(self, *, strangers_wait: bool = True) -> None:
        """The last holder of the ports may be about to end; wait for it, with a limit.

        Another program's end is waited for only by a server that ran already.
        """
        until = self._clock.now().seconds + PORT_WAIT_SECONDS
        while not await self._start():
            stranger = await self._stranger()
            late = self._clock.now().seconds > until
            if late or (stranger is not None and not strangers_wait):
                raise PortTaken(self._ports, self._folder, stranger)
            await self._clock.sleep(PORT_RETRY_SECONDS)

    async def _stranger(self) -> Holder | None:
        """Another program that listens on one of the ports."""
        own = self._leaf_address
        outside = own.port if own is not None else self._leaf_port
        routes = [self._cluster.port] if self._cluster is not None else []
        for port in (self._ports.client, self._leaf_port, outside, *routes):
            if found := await self._stranger_on(port):
                return found
        return None

    @property
    def _mark(self) -> StoreMark | None:
        """The mark of its store; None as long as it is alone."""
        cluster = self._cluster
        if cluster is None:
            return None
        name = cluster.cluster_name(self.path)
        return StoreMark(cluster.tree, str(self.path), name, cluster.member)

    async def _stranger_on(self, port: int) -> Holder | None:
        return await stranger_on(port, self._config, self._name or self.path.domain)

    async def _start(self, kills_borne: int = KILLED_STARTS_MAX) -> bool:
        """Run the server until it is ready; False if a port is taken.

        Raises ServerFailed, StoreKeyRefused, and what admit_store raises.
        """
        admit_store(self._folder, self._store_dir, self._mark)
        admit_key(self._folder, self._store.key)
        self._write_config()
        self._read = self._wanted
        environment = self._store.key.environment if self._store.key is not None else {}
        process = self._process = ServerProcess(
            self._guard, server_binary(), self._config, environment
        )
        if not await process.until_ready(READY_SECONDS):
            if process.port_taken:
                return False
            if process.killed and kills_borne:
                return await self._start(kills_borne - 1)
            raise ServerFailed(f"the nats-server of {self.path} ended as it started", process.log)
        self._starts += 1
        self._began = self._clock.now().seconds
        started, self._started = self._started, asyncio.Event()
        started.set()
        return True

    async def _supervise(self) -> None:
        delay = BACKOFF_SECONDS_MIN
        crashes = 0
        while True:
            began = self._clock.now().seconds
            assert self._process is not None
            await self._process.ended.wait()
            if self._clock.now().seconds - began > HEALTHY_SECONDS:
                delay, crashes = BACKOFF_SECONDS_MIN, 0
            crashes += 1
            if crashes > CRASHES_MAX:
                raise ServerFailed(f"the nats-server of {self.path} does not stay up", self.log)
            logger.warning(
                "the nats-server of %s ended; starting it again in %.1f s", self.path, delay
            )
            await self._clock.sleep(delay)
            delay = min(2 * delay, BACKOFF_SECONDS_MAX)
            try:
                await self._start_on_kept_ports()
            except PortTaken:
                raise
            except OSError as error:  # Its configuration finds no room, or no folder: no crash.
                logger.warning("the nats-server of %s cannot be started: %s", self.path, error)
                crashes -= 1

    async def _up(self) -> ServerProcess:
        """The run that serves now, or the next one."""
        while True:
            process = self._process
            if process and process.ready.is_set() and not process.ended.is_set():
                return process
            await self.next_start(self._starts)

    async def _stop(self) -> None:
        if self._process is not None:
            await self._process.stop()

    def _settings(self, children: Mapping[str, str]) -> ServerSettings:
        leaf_address = self._leaf_address
        tls = leaf_address.tls if leaf_address is not None else None
        return ServerSettings(
            path=self.path,
            port=self._ports.client,
            leaf_host=LOOPBACK if tls is None else EVERYWHERE,
            leaf_port=self._leaf_port,
            tls=tls,
            websocket_port=leaf_address.port if leaf_address is not None and tls is None else 0,
            store_dir=self._store_dir,
            nkeys=self._nkeys,
            parent=self._parent,
            children=children,
            name=self._name,
            entrance=self._entrance if self._is_open else "",
            store_key_variable=VARIABLE if self._store.key is not None else "",
            durable=self.is_durable,
            cluster=self._cluster,
        )

    def _write_config(self) -> None:
        write_config(self._config, self._settings(self._wanted.children))

    @property
    def _wanted(self) -> Neighbours:
        """What it is to link to now; behind a closed door no key is good."""
        if not self._is_open:
            nobody = dict.fromkeys(self._children, "")
            return Neighbours(self._parent, nobody, cluster=self._cluster)
        return Neighbours(self._parent, dict(self._children), self._entrance, self._cluster)

    def _good_keys(self, child: str) -> str | None:
        """With which a child is let in now; behind a closed door with none."""
        keys = self._children.get(child)
        return keys if self._is_open or keys is None else ""

    async def _cut_links(self, child: str) -> None:
        """Cut those links of a child that are good no more; raises BusBroken."""
        await self._up()
        self._to_cut.discard(child)
        is_cut = False
        try:
            async with system_connection(self.url, self._system_seed) as system:
                keys = (self._good_keys(child) or "").split()
                await cut_links(system, child, keys)
            is_cut = True
        except (NatsError, OSError, ValueError, LookupError) as error:
            said = f"the server of {self.path} does not say that it cut the links of {child}"
            raise BusBroken(f"{said}: {error!r}") from error
        finally:
            if not is_cut:
                self._to_cut.add(child)

    async def _keep_cutting(self) -> None:
        """Cut later what could not be cut in time; not before the key is void, or it dials anew."""
        while True:
            await self._clock.sleep(CUT_AGAIN_SECONDS)
            for child in sorted(self._to_cut):
                if self._read.children.get(child) == self._good_keys(child):
                    with suppress(BusBroken):
                        await self._cut_links(child)


def _server_name(path: NodePath, neighbours: Neighbours) -> str:
    """Its own among all that share its links; "": its path's."""
    if neighbours.cluster is not None:
        return neighbours.cluster.server_name(path)
    return neighbours.parent.server_name if neighbours.parent is not None else ""
