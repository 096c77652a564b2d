"""Streams that are looked at by writing: what calls itself healthy may take no writes all the same.

A group of servers can lose its way so that its leader takes what is written, and none of it is ever
agreed on (nats-server issue 8519). Only a write tells that.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.publish import ANSWER_SECONDS
from relay.adapters.jetstream.streams import each
from relay.ports import BusBroken


class ProbedStream(Protocol):
    """A stream that the active member of a node looks at from time to time."""

    async def is_answering(self) -> bool:
        """Whether it answers a write, be it to refuse it. What is written replaces the last one."""
        ...

    async def leader(self) -> str:
        """The server that leads it, "" if none does; raises BusBroken."""
        ...


class OpenStream:
    """A stream that others write, too, so that it has no fence."""

    def __init__(self, connection: Connection, stream: str, subject: str) -> None:
        """What is written at the subject nobody reads."""
        self._connection, self._stream, self._subject = connection, stream, subject

    async def is_answering(self) -> bool:
        try:
            await self._connection.client.request(self._subject, b"", timeout=ANSWER_SECONDS)
        except (NatsError, OSError, TimeoutError):
            return False
        return True

    async def leader(self) -> str:
        return await leader_of(self._connection, self._stream)


async def leader_of(connection: Connection, stream: str) -> str:
    """The server that leads a stream, "" if none does; raises BusBroken."""
    info = await connection.api(f"STREAM.INFO.{stream}")
    return str((info.get("cluster") or {}).get("leader") or "")


async def stuck_streams(probed: Mapping[str, ProbedStream]) -> dict[str, str]:
    """The servers that lead a stream which takes no writes, by that stream."""
    stuck: dict[str, str] = {}

    async def look(stream: str) -> None:
        it = probed[stream]
        # The first may have come amid an election.
        if await it.is_answering() or await it.is_answering():
            return
        with suppress(BusBroken):
            if leader := await it.leader():
                stuck[stream] = leader

    await each(look, tuple(probed))
    return stuck
