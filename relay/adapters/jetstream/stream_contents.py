"""What a stream holds of each subject: listed, read, and made anew elsewhere.

Sequences of a stream that is made anew go on above those it had, as after mending: whoever knows a
place in it finds that the stream went on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from relay.adapters.jetstream.connection import NO_STREAM, Connection
from relay.adapters.jetstream.fence import is_erased
from relay.adapters.jetstream.publish import Outgoing, header_lines, kept_headers
from relay.adapters.jetstream.stream_copy import StreamCopy
from relay.adapters.jetstream.stream_reader import Stored, StreamReader, Take
from relay.adapters.jetstream.streams import at_members, delete_stream, last_message
from relay.ports import BusBroken, Clock
from schemas.values import subjects

BEHIND_MAX = 40
BEHIND_SECONDS = 0.25
"""Between two looks at a stream of which the reading server lacked the end."""
# What the server says of a stream beside what it was told, and where it began to count.
_OF_THIS_ONE = ("metadata", "first_seq")
# What a stream is told that is kept at several servers: one that is made anew lies at one.
_AT_SEVERAL = ("num_replicas", "allow_atomic", "placement")


@dataclass(frozen=True, slots=True)
class StreamForm:
    """A stream without its messages."""

    config: Mapping[str, Any]
    # When it was made: another one of the same name counts anew.
    created: str
    last: int


async def stream_form(connection: Connection, stream: str) -> StreamForm | None:
    """A stream's settings and standing; None if there is none. Raises BusBroken."""
    info = await connection.api_or_none(f"STREAM.INFO.{stream}", NO_STREAM)
    if info is None:
        return None
    config = {name: value for name, value in info["config"].items() if name not in _OF_THIS_ONE}
    return StreamForm(config, str(info["created"]), int(info["state"]["last_seq"]))


@dataclass(frozen=True, slots=True)
class MessagePlace:
    """Where a message lies in a stream."""

    sequence: int
    # When the stream took it, ms since 1970.
    time_ms: int


async def newest_places(
    connection: Connection, clock: Clock, stream: str
) -> dict[str, MessagePlace]:
    """By subject, the place of what the stream keeps; no data is read. Raises BusBroken."""
    newest: dict[str, MessagePlace] = {}

    async def take(stored: Stored) -> None:
        newest[stored.subject] = MessagePlace(stored.sequence, stored.time_ms)

    await read_from(connection, clock, stream, 1, take, headers_only=True)
    return newest


async def read_from(
    connection: Connection,
    clock: Clock,
    stream: str,
    first: int,
    take: Take,
    *,
    headers_only: bool = False,
) -> None:
    """Read all messages from a sequence on, in order; raises BusBroken.

    So also where a stream is at several servers, and one is behind.
    """
    for _ in range(BEHIND_MAX):
        newest = await last_message(connection, stream, ">")
        last = int(newest["seq"]) if newest is not None else 0
        reader = StreamReader(connection, clock, stream, first=first, headers_only=headers_only)
        await reader.read_all(take)
        first = reader.next_sequence
        if first > last:
            return
        await clock.sleep(BEHIND_SECONDS)
    raise BusBroken(f"the server that reads the stream {stream} is behind the others")


async def make_anew(
    connection: Connection,
    stream: str,
    form: StreamForm,
    messages: Iterable[Stored],
    replicas: int = 1,
) -> None:
    """Make a stream of these messages in the place of the one that is there; raises BusBroken.

    It lies at so many servers, wherever the one was that it is made of. Messages come in the order
    of their sequences, and expect nothing.
    """
    await delete_stream(connection, stream)
    config = {name: value for name, value in form.config.items() if name not in _AT_SEVERAL}
    config |= {"first_seq": form.last + 1, **at_members(replicas)}
    await connection.api(f"STREAM.CREATE.{stream}", **config)
    copy = await StreamCopy.begun(connection, _as_it_was)
    for stored in messages:
        await copy.take(stored)
    await copy.flush()


def is_of_members(stored: Stored) -> bool:
    """Whether a message is one member's word to the others of its node: fences and erasures.

    A node that runs once would take a fence for something that it keeps.
    """
    return is_erased(stored) or stored.subject.rpartition(".")[2] == subjects.FENCE_KEY


def _as_it_was(stored: Stored) -> Outgoing:
    return Outgoing(stored.subject, stored.data, header_lines(kept_headers(stored.headers)))
