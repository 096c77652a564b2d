"""One end of a leaf link that says whatever it likes: what a node runs that was broken into."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Protocol

import nkeys

READ_BYTES = 64 * 1024


async def let_in(server: Leafed, seed: str) -> None:
    """Dial in as a child does, and leave; raises ConnectionError if the server knows no such key.

    Nothing but a leaf link is let in with a child's key.
    """
    leaf = RawLeaf()
    try:
        await leaf.open(int(server.leaf_url.rpartition(":")[2]), seed, {})
        await leaf.taken_in()
    finally:
        leaf.close()


class Leafed(Protocol):
    """A server that listens for leaf links."""

    @property
    def leaf_url(self) -> str: ...


class RawLeaf:
    """A link to a server's leaf port, past every rule that a nats-server keeps at its own end.

    `heard` is all that came over it.
    """

    def __init__(self) -> None:
        self.heard = b""
        self._writer: asyncio.StreamWriter | None = None
        self._reader: asyncio.StreamReader | None = None

    async def open(self, port: int, seed: str, claims: Mapping[str, object]) -> None:
        """Dial in with a node's seed; `claims` are said of the own server besides."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        line = await self._reader.readline()
        nonce = json.loads(line.removeprefix(b"INFO "))["nonce"]
        pair = nkeys.from_seed(seed.encode())
        said = {
            "nkey": pair.public_key.decode(),
            "sig": base64.urlsafe_b64encode(pair.sign(nonce.encode())).rstrip(b"=").decode(),
            "server_id": "EVIL",
            "proto": 1,
            "name": "evil",
            "version": "2.15.1",
            "headers": True,
            **claims,
        }
        self._send(b"CONNECT " + json.dumps(said).encode() + b"\r\n")

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()

    def listen(self, subject: str) -> None:
        self._send(f"LS+ {subject}\r\n".encode())

    def say(self, subject: str, body: bytes, reply: str = "") -> None:
        head = " ".join(filter(None, ("LMSG", subject, reply, str(len(body)))))
        self._send(head.encode() + b"\r\n" + body + b"\r\n")

    def announce(self, subject: str, size: int) -> None:
        """Begin a message of so many bytes, and say none of them."""
        self._send(f"LMSG {subject} {size}\r\n".encode())

    async def taken_in(self) -> None:
        """Wait until the server has dealt with all before; what came meanwhile is heard.

        Raises ConnectionError if the server closes the link.
        """
        assert self._reader is not None
        before = self.heard.count(b"PONG\r\n")
        self._send(b"PING\r\n")
        async with asyncio.timeout(60):
            while self.heard.count(b"PONG\r\n") == before:
                piece = await self._reader.read(READ_BYTES)
                if not piece:
                    raise ConnectionError(f"the server closed the link: {self.heard[-200:]!r}")
                self.heard += piece

    async def hears(self, text: bytes) -> None:
        """Wait until this came over the link; what a stream answers comes in its own time."""
        async with asyncio.timeout(60):
            while text not in self.heard:
                await self.taken_in()

    def _send(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)
