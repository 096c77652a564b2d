"""A node's server starts with the children that it had, so that a restart reloads for none of them.

The file beside the server's data holds names and public keys; the node's records decide in the end.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from relay.atomic_file import atomic_write
from schemas.values.codec import from_json

FILE = "children.json"


class Server(Protocol):
    """What opens and closes accounts of children; see relay.adapters.server.nats_server."""

    async def add_child(self, name: str, nkey: str) -> None: ...

    async def remove_child(self, name: str) -> None: ...


class KnownChildren:
    """The children of one node as its server knew them last; a damaged file is as none."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._changing = 0
        self._kept = _read(self._file)
        self.nkeys = dict(self._kept)

    def put(self, name: str, nkey: str | None) -> None:
        """Keep a child, or forget it (None)."""
        with self.changing():
            if nkey is None:
                self.nkeys.pop(name, None)
            else:
                self.nkeys[name] = nkey

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Write the file when the last of such blocks ends: 2,000 children may come at once."""
        self._changing += 1
        try:
            yield
        finally:
            self._changing -= 1
            if not self._changing and self.nkeys != self._kept:
                self._write()

    def _write(self) -> None:
        self._kept = dict(self.nkeys)
        atomic_write(self._file, json.dumps(self.nkeys), durable=False)

    def told_of(self, server: Server) -> RememberingServer:
        """The server, with each change of its children kept here."""
        return RememberingServer(server, self)


class RememberingServer:
    """Passes on to a server, and keeps what it did; implements the same."""

    def __init__(self, server: Server, known: KnownChildren) -> None:
        self._server = server
        self._known = known
        self._unconfirmed = set(known.nkeys)

    async def add_child(self, name: str, nkey: str) -> None:
        self._unconfirmed.discard(name)
        with self._known.changing():
            await self._server.add_child(name, nkey)
            self._known.put(name, nkey)

    async def remove_child(self, name: str) -> None:
        self._known.put(name, None)
        await self._server.remove_child(name)

    async def forget_others(
        self, children: Container[str], confirm: Callable[[], Awaitable[None]]
    ) -> None:
        """Close the accounts kept of children that the node's records do not know any more.

        A child that is added meanwhile stays: who lost its records is told of each child anew.
        `confirm` raises BusBroken where another member of the node may be the active one.
        """
        for name in sorted(self._unconfirmed):
            if name not in children:
                await confirm()
                if name in self._unconfirmed:
                    self._unconfirmed.discard(name)
                    await self.remove_child(name)


def _read(file: Path) -> dict[str, str]:
    try:
        nkeys = from_json(file.read_bytes())
        return {str(name): str(nkey) for name, nkey in nkeys.items()}
    except (OSError, ValueError, AttributeError):
        return {}
