"""A NATS client that comes back after whatever ends its connection, until it is closed by us.

Subjects and headers are whatever a child put there. The library stops reading for good at bytes
that it does not expect, so these are dealt with here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import ConnectionClosedError
from nats.errors import Error as NatsError
from nats.protocol import parser
from nats.protocol.parser import PERMISSIONS_ERR

PING_SECONDS = 20
"""How often it asks the server for a sign of life; after three without one it connects anew."""
PINGS_UNANSWERED_MAX = 2
HEADER_LINES_MAX = 64
"""Ours are a dozen. To look at all that fit into a message takes long."""
_VERSION = b"NATS/1.0"

# For the library also a form feed ends a subject; for the server it is part of it.
parser.MSG_RE = re.compile(rb"\AMSG +([^ \r\n]+) +(\d+) +(([^ \r\n]+) +)?(\d+)\r\n")
parser.HMSG_RE = re.compile(rb"\AHMSG +([^ \r\n]+) +(\d+) +(([^ \r\n]+) +)?(\d+) +(\d+)\r\n")

TakePlain = Callable[[bytes, bytes], bool]


def command(subject: str, reply: str, headers: str, data: bytes) -> bytes:
    """What publishes a message; `headers` are lines that end with CR LF."""
    if not headers:
        return f"PUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n"
    head = f"NATS/1.0\r\n{headers}\r\n".encode()
    sizes = f"{len(head)} {len(head) + len(data)}"
    return f"HPUB {subject} {reply} {sizes}\r\n".encode() + head + data + b"\r\n"


def losses(client: Client) -> int:
    """How often what was kept for this client in memory may have been lost."""
    ended = client.ended_elsewhere if isinstance(client, ReconnectingClient) else 0
    return client.stats["reconnects"] + ended


def _as_text(raw: bytes) -> bytes:
    return raw.decode(errors="replace").encode()


class ReconnectingClient(Client):
    """Takes an error that the server sends as the loss of the connection, not as the end of it all.

    The library closes for good on most of them, and mostly tells nobody. A server that reloads its
    configuration while a client comes, or is overloaded, sends such errors to clients it knows.
    """

    def __init__(self) -> None:
        super().__init__()
        self._plain: dict[int, TakePlain] = {}
        self.ended_elsewhere = 0

    def servers_ended(self, _servers: frozenset[str]) -> None:
        """Other servers of the cluster ended, and what they kept for this client in memory."""
        self.ended_elsewhere += 1

    @staticmethod
    def _parse_header_lines(raw: bytes) -> dict[str, str]:
        """The headers of a message, as the library reads them; that looks at each character.

        None of too many: a server's own come last, and those before could pass for them.
        """
        headers: dict[str, str] = {}
        lines = raw.split(b"\r\n", HEADER_LINES_MAX + 1)
        for line in lines if len(lines) <= HEADER_LINES_MAX + 1 else ():
            name, colon, value = line.partition(b":")
            name = name.strip()
            if colon and name.isascii() and len(name.split(None, 1)) == 1:
                headers[name.decode()] = value.strip().decode(errors="replace")
        return headers

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        """The headers of a message; damaged ones count as missing."""
        if not headers or not headers.startswith(_VERSION):
            return None
        try:
            return await super()._process_headers(headers)
        except (ValueError, IndexError):
            return None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Any:
        """A message; what is no text in its subject is replaced."""
        try:
            return super()._build_message(sid, subject, reply, data, headers)
        except UnicodeDecodeError:
            return super()._build_message(sid, _as_text(subject), _as_text(reply), data, headers)

    def take_plain(self, subscription: Subscription, take: TakePlain) -> None:
        """Have what comes without headers taken as it is read, before the subscription's queue.

        `take` gets subject and data, and says whether that was all; else the message goes its way.
        """
        self._plain[subscription._id] = take  # noqa: SLF001

    async def publish_all(self, commands: Sequence[bytes]) -> None:
        """Send what `command` made, in one piece."""
        if self.is_closed:
            raise ConnectionClosedError
        await self._send_command(b"".join(commands))
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes
    ) -> None:
        take = None if headers else self._plain.get(sid)
        if take is None or not take(subject, data):
            await super()._process_msg(sid, subject, reply, data, headers)

    async def _process_err(self, err_msg: str) -> None:
        if PERMISSIONS_ERR in err_msg:
            await super()._process_err(err_msg)
        else:
            await self._process_op_err(NatsError(f"nats: {err_msg.strip()}"))

    async def _connect_to_server(self, s: Any) -> None:
        """Connect, with nothing left of an attempt that failed after it had a connection.

        The library would put the new one in its place, and leave the old one to the collector.
        """
        for task in (self._reading_task, self._ping_interval_task, self._flusher_task):
            if task is not None:
                task.cancel()
        if self._transport is not None:
            self._transport.close()  # type: ignore[no-untyped-call] # the library's
        await super()._connect_to_server(s)
