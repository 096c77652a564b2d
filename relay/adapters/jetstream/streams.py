"""The streams of a node and its children's mail consumers, as protocol.md lays them down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from nats.errors import Error as NatsError

from relay.adapters.jetstream.connection import (
    NO_MESSAGE_FOUND,
    NO_STREAM,
    NO_SUITABLE_PEERS,
    Connection,
    JetStreamRefused,
)
from relay.adapters.jetstream.publish import REPLACED_MAX
from relay.ports import BusBroken
from relay.waiting import some_at_once
from schemas.reports.reports import PART_MAX_BYTES
from schemas.reports.upsync import EDGE_MAX_BYTES, EDGE_MAX_OBJECTS
from schemas.values import subjects
from schemas.values.identity import NodePath

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

MESSAGE_MAX_BYTES = 1024 * 1024
MAIL_MAX_BYTES = MESSAGE_MAX_BYTES - 4096
"""Of a message's data, beside its headers; what would go along with more stays behind."""
DUPLICATE_WINDOW_SECONDS = 0.1
"""The least there is: the server keeps the ids of so long in memory, beyond all limits."""
SAID_MAX_BYTES = PART_MAX_BYTES + 1024
"""What children may say in a message: a part of a report, and room for headers."""
STAT_MAX_BYTES = 1024 * 1024 * 1024
"""What children can make their parent store before it has erased what is not to be kept.

Beyond, the oldest goes first; that was read long ago, and a new session says it again.
"""
CONSUMERS_MAX = 5000
"""Said explicitly: without a limit of its own a stream takes 1,000."""
ACK_PENDING_MAX = -1
"""No bound: mail that waits for a snapshot is acknowledged after that, and may be all there is."""
IDLE_HEARTBEAT_SECONDS = 30
ACK_WAIT_SECONDS = 300

COPIES_CONSUMERS_MAX = 1
"""None is made: copies are read by direct get."""

_SECOND = 1_000_000_000
_NAME_IN_USE, _NO_CONSUMER, _NO_MESSAGE, _NO_STORAGE = 10058, 10014, 10057, 10047
_CONSUMER_DIFFERS = 10012
PLACEMENT_ATTEMPTS, PLACEMENT_SECONDS = 20, 0.5
AT_ONCE_MAX = 64


CREATE_SECONDS = 3.0
REPLACING = frozenset({"OWN", "DONE", "STATE"})
"""Streams whose messages each replace the one before (`jetstream_publish.REPLACES`).

What is erased there stays erased also if the server is killed. A replacing message costs time for
each consumer that the stream has, so MAIL, which has one for each child, leaves it to the limit;
and a child that may replace could erase what others reported.
"""


async def make_streams(connection: Connection, path: NodePath, replicas: int = 1) -> None:
    """Make the node's streams, or give those that are there today's settings."""
    for name, captured in subjects.stream_subjects(path).items():
        await make_stream(connection, name, captured, replicas)


async def make_stream(
    connection: Connection, name: str, captured: Iterable[str], replicas: int = 1
) -> None:
    """Make one stream that captures these subjects, or give the one that is there these settings.

    What it holds stays, also under subjects that it captures no more. `replicas` is at how many
    servers it is kept.
    """
    config: dict[str, Any] = {
        "name": name,
        "subjects": list(captured),
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "max_msgs_per_subject": 1,
        "max_msg_size": MESSAGE_MAX_BYTES,
        "max_bytes": -1,
        "max_consumers": CONSUMERS_MAX,
        "allow_direct": True,
        "duplicate_window": int(DUPLICATE_WINDOW_SECONDS * _SECOND),
        **at_members(replicas),
    }
    if name in REPLACING:
        config |= {"max_msgs_per_subject": REPLACED_MAX, "allow_rollup_hdrs": True}
    if name == "STAT":
        config["max_msg_size"] = SAID_MAX_BYTES
        await _make_bounded(connection, name, config, STAT_MAX_BYTES)
    else:
        await _make(connection, name, config)


def at_members(replicas: int) -> dict[str, Any]:
    """What a stream is told that is kept at several servers: batches are taken whole there."""
    return {"num_replicas": replicas, "allow_atomic": True} if replicas > 1 else {}


async def make_copies(
    connection: Connection, path: NodePath, child: str, replicas: int = 1
) -> None:
    """Make the stream of what a child brings up: one of its own, so that it crowds out no other.

    It is called as the child, so that the child's account reaches it and no other. What is too
    much takes the place of the oldest, which is the child's own.
    """
    config: dict[str, Any] = {
        "name": child,
        "subjects": [subjects.copy(path.child(child), "*")],
        "storage": "file",
        "retention": "limits",
        "discard": "old",
        "max_msgs_per_subject": 1,
        "max_msgs": EDGE_MAX_OBJECTS,
        "max_msg_size": MESSAGE_MAX_BYTES,
        "max_consumers": COPIES_CONSUMERS_MAX,
        "allow_direct": True,
        "duplicate_window": int(DUPLICATE_WINDOW_SECONDS * _SECOND),
        **at_members(replicas),
    }
    await _make_bounded(connection, child, config, EDGE_MAX_BYTES)


async def _make_bounded(
    connection: Connection, name: str, config: dict[str, Any], most: int
) -> None:
    try:
        await _make(connection, name, {**config, "max_bytes": most})
    except JetStreamRefused as error:
        if error.code != _NO_STORAGE:
            raise
        # A server that is told of no `max_file_store` sets aside no more than its disk has free.
        await _make(connection, name, config)


async def _make(connection: Connection, name: str, config: dict[str, Any]) -> None:
    """Make it, or give it these settings."""
    await create_or_update(
        lambda: connection.api(f"STREAM.CREATE.{name}", **config),
        lambda: connection.api(f"STREAM.UPDATE.{name}", **config),
        JetStreamRefused,
        lambda error: error.code,
    )


async def create_or_update(
    create: Callable[[], Awaitable[object]],
    update: Callable[[], Awaitable[object]],
    refusal: type[E],
    code_of: Callable[[E], int | None],
) -> None:
    """Create a stream, or update the one of its name; what else is refused is raised.

    It is tried again while a leader that was just elected may not know all members.
    """
    for attempt in range(PLACEMENT_ATTEMPTS):
        try:
            await create()
        except refusal as error:
            if code_of(error) == _NAME_IN_USE:
                await update()
                return
            if code_of(error) != NO_SUITABLE_PEERS or attempt + 1 == PLACEMENT_ATTEMPTS:
                raise
        else:
            return
        await asyncio.sleep(PLACEMENT_SECONDS)  # noqa: TID251 - no decision hangs on it


async def make_mail_consumer(
    connection: Connection, path: NodePath, child: str, replicas: int = 1
) -> str:
    """Make the child's consumer on MAIL; one that is there goes on where it is.

    Returns the name of the server that has it, "" of one in no cluster.

    Its state is kept in memory: a file of each, written after each delivery, takes the server as
    long as all else that it does for a change. It is nothing that need be kept, as each session of
    the child says from where it reads; but a server that starts again has no such consumer.
    """
    filter_ = subjects.child_mail(path.child(child))
    config = {
        "name": child,
        "durable_name": child,
        "deliver_subject": subjects.deliveries(child),
        "filter_subject": filter_,
        "deliver_policy": "all",
        "ack_policy": "all",
        "ack_wait": ACK_WAIT_SECONDS * _SECOND,
        "max_ack_pending": ACK_PENDING_MAX,
        "flow_control": True,
        "idle_heartbeat": IDLE_HEARTBEAT_SECONDS * _SECOND,
        "mem_storage": True,
        # Else it would be at as many servers as the stream is, which takes eight times as long.
        **({"num_replicas": 1} if replicas > 1 else {}),
    }
    verb = f"CONSUMER.CREATE.MAIL.{child}.{filter_}"
    try:
        made = await connection.api(verb, CREATE_SECONDS, stream_name="MAIL", config=config)
    except JetStreamRefused as error:
        if error.code != _CONSUMER_DIFFERS:
            raise
        # One that kept its state in a file.
        await _delete_mail_consumer(connection, child)
        made = await connection.api(verb, CREATE_SECONDS, stream_name="MAIL", config=config)
    return str((made.get("cluster") or {}).get("leader") or "")


async def give_up_mail_consumers(connection: Connection, children: Iterable[str]) -> None:
    """Ask for them to be deleted; no answer is waited for: none comes of a server that is gone.

    `mail_consumers` tells when they are. Raises BusBroken.
    """
    await connection.ready()
    try:
        for child in children:
            await connection.client.publish(f"$JS.API.CONSUMER.DELETE.MAIL.{child}")
    except (NatsError, OSError) as error:
        raise BusBroken(f"mailboxes could not be given up: {error}") from error


async def mail_consumers(connection: Connection) -> frozenset[str]:
    """The children that have a consumer on MAIL, be it at a server that is gone.

    Raises BusBroken.
    """
    names: set[str] = set()
    offset = 0
    while True:
        page = await connection.api("CONSUMER.NAMES.MAIL", offset=offset)
        found = page.get("consumers") or []
        names.update(found)
        offset += len(found)
        if offset >= page["total"] or not found:
            return frozenset(names)


async def _delete_mail_consumer(connection: Connection, child: str) -> None:
    await connection.api_or_none(f"CONSUMER.DELETE.MAIL.{child}", _NO_CONSUMER)


async def erase_child(
    connection: Connection, path: NodePath, child: str, through: Mapping[str, int] | None = None
) -> None:
    """Delete the child's consumer, its mail, its reports and its copies.

    With `through` only what lies up to these sequences of MAIL and STAT.
    """
    await _delete_mail_consumer(connection, child)
    whole, last = path.child(child), through or {}
    await purge(connection, "MAIL", subjects.child_mail(whole), last.get("MAIL"))
    await purge(connection, "STAT", subjects.stat(whole, "*"), last.get("STAT"))
    await purge(connection, "STAT", subjects.node_self(whole), last.get("STAT"))
    await delete_stream(connection, child)


async def last_sequences(connection: Connection, streams: Iterable[str]) -> dict[str, int]:
    """Up to where each of the streams goes now; raises BusBroken."""
    answers = {name: await connection.api(f"STREAM.INFO.{name}") for name in streams}
    return {name: int(answer["state"]["last_seq"]) for name, answer in answers.items()}


async def last_message(
    connection: Connection, stream: str, subject: str
) -> Mapping[str, Any] | None:
    """What the stream's leader keeps last under a subject: `seq`, `data` in Base64, and more.

    None if it finds none. Raises BusBroken.
    """
    verb = f"STREAM.MSG.GET.{stream}"
    answer = await connection.api_or_none(verb, NO_MESSAGE_FOUND, last_by_subj=subject)
    return None if answer is None else answer["message"]


async def delete_stream(connection: Connection, stream: str) -> None:
    """Delete a stream, if it is there."""
    await connection.api_or_none(f"STREAM.DELETE.{stream}", NO_STREAM)


async def purge(
    connection: Connection, stream: str, subject: str, through: int | None = None
) -> None:
    """Erase what is kept under the subject, or of that what lies up to a sequence."""
    # The server keeps what lies at `seq`.
    bound = {} if through is None else {"seq": through + 1}
    await connection.api(f"STREAM.PURGE.{stream}", filter=subject, **bound)


async def purge_all(connection: Connection, stream: str, slots: Iterable[str]) -> None:
    """Erase what is kept under each of the subjects; raises BusBroken if the server does not."""
    await each(lambda subject: purge(connection, stream, subject), slots)


async def purge_through(connection: Connection, stream: str, ends: Mapping[str, int]) -> None:
    """Erase of each subject what is kept up to a sequence; raises BusBroken as before."""
    # Up to 0 it would erase all.
    begun = [subject for subject, end in ends.items() if end > 0]
    await each(lambda subject: purge(connection, stream, subject, ends[subject]), begun)


async def delete_message(connection: Connection, stream: str, sequence: int) -> bool:
    """Delete one message; False if it is not there, for instance because it was overwritten."""
    verb = f"STREAM.MSG.DELETE.{stream}"
    return await connection.api_or_none(verb, _NO_MESSAGE, seq=sequence, no_erase=True) is not None


async def delete_messages(connection: Connection, stream: str, sequences: Iterable[int]) -> None:
    """Delete messages, those that are still there; raises BusBroken if the server does not."""
    await each(lambda sequence: delete_message(connection, stream, sequence), sequences)


async def stream_names(connection: Connection, subject: str = "") -> list[str]:
    """The streams of the account, or those that capture some of a subject; raises BusBroken."""
    names: list[str] = []
    wanted: dict[str, Any] = {"subject": subject} if subject else {}
    while True:
        page: dict[str, Any] = await connection.api("STREAM.NAMES", offset=len(names), **wanted)
        names += page.get("streams") or []
        if len(names) >= page["total"] or not page.get("streams"):
            return names


async def each(act: Callable[[T], Awaitable[object]], those: Iterable[T]) -> None:
    """Do this with each of those, with some at once; raises BusBroken."""
    await some_at_once(list(those), act, AT_ONCE_MAX)


class ChildrenHeard(NamedTuple):
    """The children of which STAT holds a hello, and the sequence of what it took last."""

    names: frozenset[str]
    last: int


async def children_heard(connection: Connection, path: NodePath) -> ChildrenHeard:
    """Whom STAT has heard of; raises BusBroken."""
    kept, last = await kept_under(connection, "STAT", subjects.children_selves(path))
    return ChildrenHeard(frozenset(subjects.parse(subject).path.name for subject in kept), last)


async def kept_under(
    connection: Connection, stream: str, subject: str
) -> tuple[dict[str, int], int]:
    """How many messages a stream counts of each subject that matches, and where it ends.

    Raises BusBroken. The server counts what it lost to a damaged file, too.
    """
    kept: dict[str, int] = {}
    last: int | None = None
    while True:
        answer = await connection.api(
            f"STREAM.INFO.{stream}", subjects_filter=subject, offset=len(kept)
        )
        found = answer["state"].get("subjects") or {}
        last = int(answer["state"].get("last_seq") or 0) if last is None else last
        kept.update(found)
        if not found or len(kept) >= int(answer.get("total") or 0):
            return kept, last
