"""A stream with damaged messages is made anew of those that can be read.

The server counts a damaged message for ever: it delivers and erases none. What is written under
the same subject later it acknowledges and loses, or keeps and never acknowledges. So the stream is
copied aside, and back once the copy is whole. Whoever ends amid that goes on at the next start.

What a consumer counts as still to come tells of damage by chance: at the end of the stream, where
somebody writes, the server sets it to nothing, and it forgets what it found lost when it loaded the
file before. What it counts under each subject includes both.

A stream that several servers keep is never mended: what is damaged at one is whole at the others.
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from relay.adapters.jetstream.connection import NO_MESSAGE_FOUND, Connection, JetStreamRefused
from relay.adapters.jetstream.publish import Outgoing, header_lines, kept_headers
from relay.adapters.jetstream.stream_copy import StreamCopy
from relay.adapters.jetstream.stream_reader import Stored, StreamDamaged, StreamReader
from relay.adapters.jetstream.streams import (
    delete_stream,
    each,
    kept_under,
    last_message,
    stream_names,
)
from relay.ports import BusBroken, Clock

MARKED_SECONDS = 24 * 3600
LOOKS = 3
"""Whose message is being replaced as we look is counted right the next time."""
_SPARE, _WHOLE, _HEADERS = "_MEND", "_whole", "Lc-Mended"
_NO_MORE_CONSUMERS = 10026

logger = logging.getLogger(__name__)


async def mend_if_damaged(
    connection: Connection, clock: Clock, stream: str, mark: str, *, is_made: bool
) -> bool:
    """Look through a stream, and mend it if it needs that, with the `mark`; raises BusBroken.

    False if there is none: the server leaves out one whose settings are damaged, until it is made.
    It has its messages again then, but for those behind a damaged one, and says nothing of these:
    a stream that was just made (`is_made`) and holds some is mended, whatever can be read.
    """
    await go_on_mending(connection, clock)
    if stream not in await stream_names(connection):
        return False
    if is_made and await holds_messages(connection, stream):
        await mend_stream(connection, clock, stream, mark)
        return True
    for damaged in await damaged_streams(connection, clock, (stream,)):
        await mend_stream(connection, clock, damaged, mark)
    return True


def kept_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """What we said of a stream, without what the server said of it."""
    return {name: said for name, said in metadata.items() if not name.startswith("_nats.")}


async def holds_messages(connection: Connection, stream: str) -> bool:
    """Whether a stream that is there holds any; raises BusBroken."""
    info = await connection.api(f"STREAM.INFO.{stream}")
    return bool(info["state"]["messages"])


async def damaged_streams(
    connection: Connection, clock: Clock, streams: Iterable[str]
) -> list[str]:
    """Look through these streams, and say which need to be mended; raises BusBroken.

    Others may have written to them in this run of the server, and may do so now.
    """
    damaged: list[str] = []

    async def look_through(stream: str) -> None:
        try:
            await _look_through(connection, clock, stream)
        except StreamDamaged as damage:
            logger.error("%s", damage)  # noqa: TRY400 - it says all
            damaged.append(stream)
        except JetStreamRefused as error:
            if error.code != _NO_MORE_CONSUMERS:
                raise
            # One of a former run is there for some seconds more: the next start looks.
            logger.warning("%s is not looked through: %s", stream, error)

    await each(look_through, streams)
    return damaged


async def _look_through(connection: Connection, clock: Clock, stream: str) -> None:
    """Read a stream to its end; raises StreamDamaged, or BusBroken."""
    found: Counter[str] = Counter()

    async def take(stored: Stored) -> None:
        found[stored.subject] += 1

    await StreamReader(connection, clock, stream, headers_only=True).read_all(take)
    if lost := await _lost_subjects(connection, stream, found):
        raise StreamDamaged(stream, len(lost))


async def _lost_subjects(
    connection: Connection, stream: str, found: Mapping[str, int]
) -> list[str]:
    """Under which subjects less can be read than the stream counts, of which so many were found."""
    state = (await connection.api(f"STREAM.INFO.{stream}"))["state"]
    if state["messages"] == state.get("num_subjects", 0) <= len(found):
        return []
    lost: list[str] = []

    async def look_at(subject: str) -> None:
        if await _has_lost(connection, stream, subject):
            lost.append(subject)

    kept, _ = await kept_under(connection, stream, ">")
    # What is not among those found may have been written, or replaced, since.
    await each(look_at, [it for it, count in kept.items() if count > found.get(it, 0)])
    return lost


async def _has_lost(connection: Connection, stream: str, subject: str) -> bool:
    """Whether less can be read under a subject than the stream counts, each time."""
    for _ in range(LOOKS):
        kept, _ = await kept_under(connection, stream, subject)
        if await _can_read(connection, stream, subject, kept.get(subject, 0)):
            return False
    return True


async def _can_read(connection: Connection, stream: str, subject: str, count: int) -> bool:
    """Whether so many messages can be read under a subject."""
    first = 1
    for _ in range(count):
        answer = await connection.api_or_none(
            f"STREAM.MSG.GET.{stream}", NO_MESSAGE_FOUND, seq=first, next_by_subj=subject
        )
        if answer is None:
            return False
        first = int(answer["message"]["seq"]) + 1
    return True


async def mend_stream(
    connection: Connection,
    clock: Clock,
    stream: str,
    mark: str | None = None,
    *,
    without: str = "",
) -> None:
    """Keep of a stream what can be read; nothing else may use it meanwhile. Raises BusBroken.

    For a day a message under the subject `mark` says that the stream lost some. What lies under the
    subject `without` is left out, since it holds of the whole stream only.
    """
    info = await connection.api(f"STREAM.INFO.{stream}")
    spare = f"{stream}{_SPARE}"
    await delete_stream(connection, spare)
    config: dict[str, Any] = {"name": spare, "subjects": [_aside(stream, ">")], "storage": "file"}
    await connection.api(f"STREAM.CREATE.{spare}", **config)
    aside = await StreamCopy.begun(connection, partial(_put_aside, stream, without))
    with suppress(StreamDamaged):
        await StreamReader(connection, clock, stream).read_all(aside.take)
    if mark is not None:
        await aside.take(Stored(mark, b"", {"Nats-TTL": f"{MARKED_SECONDS}s"}, 0))
    await aside.flush()
    kept = info["config"] | {"metadata": kept_metadata(info["config"].get("metadata") or {})}
    told = json.dumps({"config": kept, "last": info["state"]["last_seq"]}).encode()
    await aside.publisher.publish([Outgoing(_aside(stream, _WHOLE), told)])
    logger.warning(
        "%s: %d of its %d messages can be read, and are kept",
        stream,
        aside.copied,
        info["state"]["messages"],
    )
    await _bring_back(connection, clock, stream)


async def go_on_mending(connection: Connection, clock: Clock) -> None:
    """End what an earlier run began; raises BusBroken."""
    for spare in await stream_names(connection):
        if spare.endswith(_SPARE):
            await _bring_back(connection, clock, spare.removesuffix(_SPARE))


async def _bring_back(connection: Connection, clock: Clock, stream: str) -> None:
    """Make the stream of its copy, if that is whole; its sequence goes on where it was."""
    spare = f"{stream}{_SPARE}"
    whole = await _note_of_whole(connection, stream)
    if whole is not None:
        await delete_stream(connection, stream)
        config = {**whole["config"], "first_seq": whole["last"] + 1}
        await connection.api(f"STREAM.CREATE.{stream}", **config)
        back = await StreamCopy.begun(connection, partial(_brought_back, stream))
        # What is damaged of the copy, too, is lost; all else of it is kept.
        with suppress(StreamDamaged):
            await StreamReader(connection, clock, spare).read_all(back.take)
        await back.flush()
    elif stream not in await stream_names(connection):
        raise BusBroken(
            f"the stream {stream} is gone, and its copy {spare} does not say whether it is whole: "
            f"restore a backup of the node, or delete {spare} to go on without what it holds"
        )
    await delete_stream(connection, spare)


async def _note_of_whole(connection: Connection, stream: str) -> dict[str, Any] | None:
    """What the copy of a stream says once it is whole: its `config`, and its `last` sequence."""
    note = await last_message(connection, f"{stream}{_SPARE}", _aside(stream, _WHOLE))
    if note is None:
        return None
    told: dict[str, Any] = json.loads(b64decode(note["data"]))
    return told


def _put_aside(stream: str, without: str, stored: Stored) -> Outgoing | None:
    if stored.subject == without:
        return None
    headers = {_HEADERS: json.dumps(dict(stored.headers))}
    return Outgoing(_aside(stream, stored.subject), stored.data, header_lines(headers))


def _brought_back(stream: str, stored: Stored) -> Outgoing | None:
    """The message as it was put aside; None of the one that says that the copy is whole."""
    subject = stored.subject.removeprefix(_aside(stream, ""))
    if subject == _WHOLE:
        return None
    headers = json.loads(dict(stored.headers)[_HEADERS])
    return Outgoing(subject, stored.data, header_lines(kept_headers(headers)))


def _aside(stream: str, subject: str) -> str:
    return f"mend.{stream}.{subject}"
