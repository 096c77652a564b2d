"""Copies of what arises at edges: a child writes its own at its parent, and the parent reads them.

Each child's lie in a stream of its own, called as the child (`streams.make_copies`).
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import (
    Connection,
    JetStreamRefused,
    checked,
    counts_in,
    status_of,
)
from relay.adapters.jetstream.delivery import count_of
from relay.adapters.jetstream.publish import sequence_of
from relay.adapters.jetstream.uplink import Uplink
from relay.ports import BusBroken, CopiesPage, CopiesPlace, StoredCopy
from schemas.values import subjects
from schemas.values.identity import NodePath

ANSWER_SECONDS = 10.0
PUT_SECONDS = 60.0
"""A megabyte over a slow link takes a while."""
PAGE_BYTES, PAGE_COPIES = 1024 * 1024, 512
_SEQUENCE, _SUBJECT, _TIME = "Nats-Sequence", "Nats-Subject", "Nats-Time-Stamp"
_PENDING = "Nats-Num-Pending"


class OwnCopies:
    """What a node brings up, as account UPLINK of its own server."""

    def __init__(self, uplink: Uplink, path: NodePath) -> None:
        self._uplink = uplink
        self._path = path

    async def place(self) -> CopiesPlace | None:
        answer = await self._uplink.ask("up.copies", ANSWER_SECONDS)
        if answer is None:
            return None
        try:
            info = checked("up.copies", answer)
            last, count = counts_in("up.copies", info.get("state"), "last_seq", "messages")
        except JetStreamRefused:
            return None
        return CopiesPlace(str(info.get("created", "")), last, count)

    async def put(self, key: str, data: bytes) -> int:
        subject = subjects.copy(self._path, key)
        answer = await self._uplink.ask(subject, PUT_SECONDS, data)
        if answer is None:
            return 0
        try:
            return sequence_of(subject, answer)
        except BusBroken:
            return 0

    async def erase(self, key: str, before: int) -> bool:
        wanted = {"filter": subjects.copy(self._path, key)} if key else {"seq": before}
        answer = await self._uplink.ask("up.erase", ANSWER_SECONDS, json.dumps(wanted).encode())
        if answer is None:
            return False
        try:
            return checked("up.erase", answer).get("success") is True
        except JetStreamRefused:
            return False


async def read_copies(connection: Connection, path: NodePath, child: str, first: int) -> CopiesPage:
    """A page of what the child brought up; raises BusBroken if the server does not deliver it."""
    said = await _direct(
        connection, "STAT", {"last_by_subj": subjects.node_self(path.child(child))}
    )
    hello = said[0] if said and not status_of(said[0]) else None
    pattern = subjects.copy(path.child(child), "*")
    wanted = {
        "seq": first,
        "next_by_subj": pattern,
        "batch": PAGE_COPIES,
        "max_bytes": PAGE_BYTES,
    }
    found = [message for message in await _direct(connection, child, wanted) if message.data]
    copies = tuple(copy for message in found if (copy := _stored(message)) is not None)
    left = count_of((found[-1].headers or {}).get(_PENDING, "0")) if found else 0
    return CopiesPage(
        copies,
        copies[-1].sequence + 1 if copies and left else 0,
        hello.data if hello is not None else b"",
        _written_ms(hello) if hello is not None else 0,
    )


async def _direct(connection: Connection, stream: str, wanted: dict[str, object]) -> list[Msg]:
    """What a direct get answers, one message or a batch; nothing if there is no such stream."""
    await connection.ready()
    client = connection.client
    inbox, found = client.new_inbox(), list[Msg]()
    over = asyncio.Event()

    async def take(message: Msg) -> None:
        if status_of(message) in ("404", "503", "408", "413", "204") or "batch" not in wanted:
            over.set()
        if message.data:
            found.append(message)

    subscription = await client.subscribe(inbox, cb=take)
    try:
        body = json.dumps(wanted).encode()
        await client.publish(f"$JS.API.DIRECT.GET.{stream}", body, reply=inbox)
        async with asyncio.timeout(ANSWER_SECONDS):
            await over.wait()
    except (NatsError, OSError, TimeoutError) as error:
        raise BusBroken(f"the stream {stream} cannot be read: {error}") from error
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()
    return found


def _stored(message: Msg) -> StoredCopy | None:
    headers = message.headers or {}
    key = headers.get(_SUBJECT, "").rpartition(".")[2]
    sequence = count_of(headers.get(_SEQUENCE, "0"))
    if not key or not sequence:
        return None
    return StoredCopy(sequence, key, message.data, _written_ms(message))


def _written_ms(message: Msg) -> int:
    """When the server took it: RFC 3339, of up to nanoseconds."""
    text = (message.headers or {}).get(_TIME, "")
    try:
        return int(datetime.fromisoformat(text[:19] + "+00:00").timestamp() * 1000)
    except ValueError:
        return 0
