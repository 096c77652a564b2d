"""Streams that are looked at by writing: what calls itself healthy may take no writes all the same.

A group of servers can lose its way so that its leader takes what is written, and none of it is ever
agreed on (nats-server issue 8519). Only a write tells that.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Protocol

from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.publish import ANSWER_SECONDS
from relay.adapters.jetstream.streams import each, stream_names
from relay.ports import BusBroken
from schemas.values.subjects import FENCE_KEY

IN_TURN_MAX = 16
"""So many of the children's streams are looked at each time: each look is written to disks."""


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


class CopiesStream:
    """The stream of what one child brings up, which sees itself whether it has all that it wrote.

    So nothing is written there: to purge what nobody wrote is agreed on like a write, and changes
    neither a count nor a sequence.
    """

    def __init__(self, connection: Connection, stream: str) -> None:
        self._connection, self._stream = connection, stream

    async def is_answering(self) -> bool:
        verb, nothing = f"$JS.API.STREAM.PURGE.{self._stream}", {"filter": FENCE_KEY}
        try:
            await self._connection.client.request(
                verb, json.dumps(nothing).encode(), timeout=ANSWER_SECONDS
            )
        except (NatsError, OSError, TimeoutError):
            return False
        return True

    async def leader(self) -> str:
        return await leader_of(self._connection, self._stream)


class ProbedInTurn:
    """Streams of which some are looked at each time: there may be one for each child."""

    def __init__(self, connection: Connection, pattern: str) -> None:
        """Those that capture some of the subjects."""
        self._connection, self._pattern = connection, pattern
        self._last = ""

    async def next(self, again: Collection[str]) -> dict[str, ProbedStream]:
        """Whom to look at now, with those of them that are to be looked at again.

        Raises BusBroken.
        """
        names = sorted(await stream_names(self._connection, self._pattern))
        later = [name for name in names if name > self._last]
        chosen = (later or names)[:IN_TURN_MAX]
        self._last = chosen[-1] if chosen else ""
        looked_at = [*chosen, *(name for name in names if name in again)]
        return {name: CopiesStream(self._connection, name) for name in looked_at}


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
