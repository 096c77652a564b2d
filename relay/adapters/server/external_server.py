"""A node's nats-server that someone else runs: its configuration file is ours, its process is not.

The server and this program see the same folder. When a child comes or goes the file is written
again, and the server is asked, as its system account, to read it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from nats.errors import Error as NatsError

from relay.adapters.jetstream.server_url import with_authorities
from relay.adapters.server.admin import (
    ConfigRefused,
    cut_links,
    reload_config,
    sync_seconds,
    system_connection,
)
from relay.adapters.server.durability import Durability
from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.server.nats_config import (
    NO_NEIGHBOURS,
    AccountSeeds,
    Neighbours,
    ServerSettings,
    check_child,
    loses_key,
    write_config,
)
from relay.ports import BusBroken
from schemas.values.identity import NodePath

_ONLY_AT_A_START = "config reload not supported"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a server runs that someone else started."""

    # For clients.
    url: str
    # For servers of children.
    leaf_url: str
    # The file that it is started with.
    config: Path
    # Where it keeps JetStream's data, as the server names it.
    store_dir: Path
    # What it listens on.
    host: str = "0.0.0.0"  # noqa: S104 - in a network of its own; accounts need keys
    port: int = 4222
    leaf_port: int = 7422
    tls: TlsFiles | None = None
    # A file with those who may have signed the certificate.
    authorities: Path | None = None
    # Where the server finds the key of its store in its environment.
    store_key_variable: str = ""
    durability: Durability = Durability.PERIODIC

    def authorities_text(self) -> str:
        """Whom children are to believe; "" for the authorities of their system."""
        return self.authorities.read_text(encoding="utf-8") if self.authorities else ""


class ExternalServer:
    """Lets children in and out of a server that runs elsewhere; in `async with` nothing starts."""

    def __init__(
        self,
        place: ServerPlace,
        path: NodePath,
        seeds: AccountSeeds,
        neighbours: Neighbours = NO_NEIGHBOURS,
    ) -> None:
        self.path = path
        self._entrance = neighbours.entrance
        self.url = with_authorities(place.url, place.authorities)
        self.leaf_url = place.leaf_url
        self.leaf_urls = (place.leaf_url,)
        self.log: list[str] = []
        """Nothing: what the server says is with the one who runs it."""
        self._place = place
        self._system_seed = seeds.system
        self._nkeys = seeds.public()
        self._parent = neighbours.parent
        self._children = dict(neighbours.children)
        self._changing = asyncio.Lock()
        self.sync_seconds: int | None = None
        """For how long what it acknowledged may not be on the disk yet, as it said last."""

    @property
    def is_durable(self) -> bool:
        """Whether it is to have on the disk what it acknowledges."""
        return self._parent is None or self._place.durability is Durability.DISK

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The server goes on: it is not ours."""

    async def ask_about_sync(self) -> None:
        """Learn `sync_seconds`: the server runs on what its file said as it was started.

        If that was another, the file says from now on what it should: no reload takes that up.
        """
        with suppress(NatsError, OSError, TimeoutError):
            async with system_connection(self.url, self._system_seed) as system:
                self.sync_seconds = await sync_seconds(system)
            if self.sync_seconds is not None and self.is_durable != (self.sync_seconds == 0):
                self.write_config()

    def write_config(self) -> None:
        """Write the file that the server is to run on."""
        write_config(self._place.config, self._settings(self._children))

    async def add_child(self, name: str, nkey: str) -> None:
        """Open an account for the child's public nkey; twice is harmless, another key replaces it.

        Raises BadIdentity, BadNkey or BadServerSettings, or BusBroken if the server does not read
        its configuration; then nothing has changed.
        """
        async with self._changing:
            old = self._children.get(name)
            if old == nkey:
                return
            check_child(self._settings(self._children), name, nkey)
            cut = name if loses_key(old or "", nkey) else None
            # A new account's imports are dead until the reload after the one that made it (2.15.1).
            await self._change({**self._children, name: nkey}, times=2, cut=cut)

    async def link_with(self, seed: str) -> None:
        """Be known to the parent by another key: the link is made anew. Raises BusBroken."""
        async with self._changing:
            assert self._parent is not None
            self._parent = replace(self._parent, seed=seed)
            await self._change(self._children, times=1, cut=None)

    async def remove_child(self, name: str) -> None:
        """Close the child's account and cut its leaf link; twice is harmless. Raises BusBroken."""
        async with self._changing:
            rest = {child: key for child, key in self._children.items() if child != name}
            await self._change(rest, times=1 if name in self._children else 0, cut=name)

    async def reload(self) -> None:
        """Have the server read its certificate again; raises BusBroken."""
        async with self._changing:
            await self._change(self._children, times=1, cut=None)

    async def _change(self, children: Mapping[str, str], *, times: int, cut: str | None) -> None:
        before = self._children
        self._children = dict(children)
        try:
            self.write_config()
            async with system_connection(self.url, self._system_seed) as system:
                for _ in range(times):
                    await reload_config(system)
                if cut is not None:
                    await cut_links(system, cut, children.get(cut, "").split())
        except (ConfigRefused, NatsError, OSError, TimeoutError) as error:
            self._children = before
            self.write_config()
            said = f"the server of {self.path} does not reload: {error}"
            if isinstance(error, ConfigRefused) and _ONLY_AT_A_START in str(error):
                said += ": start that nats-server again, on its file as it is now"
            raise BusBroken(said) from error

    def _settings(self, children: Mapping[str, str]) -> ServerSettings:
        return ServerSettings(
            path=self.path,
            host=self._place.host,
            leaf_host=self._place.host,
            tls=self._place.tls,
            port=self._place.port,
            leaf_port=self._place.leaf_port,
            store_dir=self._place.store_dir,
            nkeys=self._nkeys,
            parent=self._parent,
            children=children,
            entrance=self._entrance,
            store_key_variable=self._place.store_key_variable,
            durable=self.is_durable,
        )
