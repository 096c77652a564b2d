"""What a node's streams keep goes on under its new path; done again, it ends the same.

Only what the node keeps for itself is carried over: mail and reports of children are none of a node
that has no children.
"""

from __future__ import annotations

from collections.abc import Iterable

from relay.adapters.jetstream.connection import NO_STREAM, Connection
from relay.adapters.jetstream.publish import (
    REPLACES,
    Outgoing,
    Publisher,
    header_lines,
    kept_headers,
)
from relay.adapters.jetstream.stream_copy import StreamCopy
from relay.adapters.jetstream.stream_reader import Stored, StreamReader
from relay.adapters.jetstream.streams import REPLACING, make_stream, purge
from relay.ports import Clock
from schemas.values import subjects
from schemas.values.identity import NodePath


async def rekey_streams(
    url: str, seed: str, clock: Clock, former: Iterable[NodePath], path: NodePath
) -> int:
    """Move what is kept under former paths to the path; how many messages that were.

    Nothing else may use the streams meanwhile. Raises BusBroken; what was done till then stays.
    """
    connection = Connection(url, seed, f"leafcast {path} moving", "_INBOX.moving")
    await connection.open()
    try:
        publisher = Publisher(connection)
        await publisher.start()
        kept = subjects.kept_for_itself(path)
        return sum(
            [
                await _rekey(connection, publisher, clock, stream, old, path)
                for stream in kept
                for old in former
            ]
        )
    finally:
        await connection.close()


async def _rekey(
    connection: Connection,
    publisher: Publisher,
    clock: Clock,
    stream: str,
    former: NodePath,
    path: NodePath,
) -> int:
    """Copy first, erase then, and only at last take the old subjects out of the stream."""

    def moved(stored: Stored) -> Outgoing | None:
        subject = subjects.parse(stored.subject)
        if subject.path != former:
            return None
        headers = kept_headers(stored.headers) | (REPLACES if stream in REPLACING else {})
        renamed = subjects.Subject(path, subject.tail, subject.key)
        return Outgoing(str(renamed), stored.data, header_lines(headers))

    if await connection.api_or_none(f"STREAM.INFO.{stream}", NO_STREAM) is None:
        return 0
    old, new = (subjects.stream_subjects(each)[stream] for each in (former, path))
    await make_stream(connection, stream, (*old, *new))
    copy = StreamCopy(publisher, moved)
    await StreamReader(connection, clock, stream).read_all(copy.take)
    await copy.flush()
    for pattern in old:
        await purge(connection, stream, pattern)
    await make_stream(connection, stream, new)
    return copy.copied
