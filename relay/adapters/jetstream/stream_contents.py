"""What a stream holds of each subject: listed, read, and made anew elsewhere.

Sequences of a stream that is made anew go on above those it had, as after mending: whoever knows a
place in it finds that the stream went on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from relay.adapters.jetstream.connection import Connection, JetStreamRefused
from relay.adapters.jetstream.publish import Outgoing, header_lines
from relay.adapters.jetstream.stream_copy import StreamCopy
from relay.adapters.jetstream.stream_reader import Stored, StreamReader, Take
from relay.adapters.jetstream.streams import delete_stream
from relay.ports import Clock

_NO_STREAM = 10059
# What the server says of a stream beside what it was told, and where it began to count.
_OF_THIS_ONE = ("metadata", "first_seq")


@dataclass(frozen=True, slots=True)
class StreamForm:
    """A stream without its messages."""

    config: Mapping[str, Any]
    # When it was made: another one of the same name counts anew.
    created: str
    last: int


async def stream_form(connection: Connection, stream: str) -> StreamForm | None:
    """A stream's settings and standing; None if there is none. Raises BusBroken."""
    try:
        info = await connection.api(f"STREAM.INFO.{stream}")
    except JetStreamRefused as error:
        if error.code != _NO_STREAM:
            raise
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

    await StreamReader(connection, clock, stream, headers_only=True).read_all(take)
    return newest


async def read_from(
    connection: Connection, clock: Clock, stream: str, first: int, take: Take
) -> None:
    """Read all messages from a sequence on, with their data, in order; raises BusBroken."""
    await StreamReader(connection, clock, stream, first=first).read_all(take)


async def make_anew(
    connection: Connection, stream: str, form: StreamForm, messages: Iterable[Stored]
) -> None:
    """Make a stream of these messages in the place of the one that is there; raises BusBroken.

    They come in the order of their sequences; headers that expect something must be left out.
    """
    await delete_stream(connection, stream)
    config = {**form.config, "first_seq": form.last + 1}
    await connection.api(f"STREAM.CREATE.{stream}", **config)
    copy = await StreamCopy.begun(connection, _as_it_was)
    for stored in messages:
        await copy.take(stored)
    await copy.flush()


def _as_it_was(stored: Stored) -> Outgoing:
    return Outgoing(stored.subject, stored.data, header_lines(stored.headers))
