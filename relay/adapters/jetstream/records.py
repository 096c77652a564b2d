"""What is said in a message's subject and headers, so that a restarting relay need not open it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from relay.adapters.jetstream.delivery import count_of
from relay.adapters.jetstream.publish import (
    EXPECTED_SEQUENCE,
    REPLACES,
    Outgoing,
    header_line,
    header_lines,
)
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.jetstream.streams import MAIL_MAX_BYTES
from relay.core.effects import StoreOwn, WriteMail
from relay.core.events import HelloArrived, MailSlot, OwnRecord, ReportArrived
from schemas.content.carried import with_carried
from schemas.reports.reports import Done, messages_of, said_in
from schemas.values import subjects
from schemas.values.identity import DEPTH_MAX, MailKey, NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.wire import encode

_YES, _NO = "1", "0"
HOPS_MAX = 2 * DEPTH_MAX
_HASH_BYTES = 32
_REPLACES = header_lines(REPLACES)

logger = logging.getLogger(__name__)


def outgoing_own(path: NodePath, write: StoreOwn) -> Outgoing:
    """A record for OWN."""
    headers = f"{_told(write)}{_REPLACES}{subjects.HEADER_SEQUENCE}: {write.sequence}\r\n"
    if write.incarnation:
        headers += header_line(subjects.HEADER_INCARNATION, write.incarnation)
    return Outgoing(subjects.own(path, write.key), write.data or b"", headers)


def outgoing_done(path: NodePath, key: str, done: Done) -> Outgoing:
    """What became of an object, for DONE."""
    return Outgoing(subjects.done(path, key), encode(done), _REPLACES)


def own_record(stored: Stored) -> OwnRecord:
    """Read a record back; headers that are damaged count as missing."""
    return OwnRecord(
        key=subjects.parse(stored.subject).key,
        data=stored.data,
        incarnation=stored.headers.get(subjects.HEADER_INCARNATION, ""),
        sequence=max(count_of(stored.headers.get(subjects.HEADER_SEQUENCE, "")), 0),
        hops=hops_of(stored.headers),
    )


def outgoing_mail(path: NodePath, letters: Iterable[WriteMail]) -> Iterator[Outgoing]:
    """Messages for MAIL, that the stream takes only if each slot is as the writer believes."""
    mailboxes: dict[str, str] = {}
    for write in letters:
        mailbox = mailboxes.get(write.child)
        if mailbox is None:
            mailbox = mailboxes[write.child] = subjects.mail(path.child(write.child), "")
        headers = f"{_told(write)}{EXPECTED_SEQUENCE}: {write.expected}\r\n"
        message = with_carried(write.data, write.carried)
        fits = len(message) <= MAIL_MAX_BYTES
        yield Outgoing(mailbox + write.key, message if fits else write.data, headers)


def _told(write: StoreOwn | WriteMail) -> str:
    """The header lines that say of a record what is the same wherever it is kept."""
    hops = write.hops
    timed = (
        f"{subjects.HEADER_ORIGIN}: {hops[0]}\r\n"
        f"{subjects.HEADER_HOPS}: {','.join(map(str, hops))}\r\n"
        if hops
        else ""
    )
    trace = header_line(subjects.HEADER_TRACE, write.trace) if write.trace else ""
    return (
        f"{subjects.HEADER_GENERATION}: {write.generation}\r\n"
        f"{subjects.HEADER_HASH}: {write.payload_hash.hex()}\r\n"
        f"{subjects.HEADER_HAS_BODY}: {_YES if write.has_body else _NO}\r\n"
        f"{trace}{timed}"
    )


def hops_of(headers: Mapping[str, str]) -> tuple[int, ...]:
    """The times of a record's hops, for people; none if they are not readable."""
    parts = headers.get(subjects.HEADER_HOPS, "").split(",")
    return tuple(int(part) for part in parts[:HOPS_MAX] if part.isdecimal() and len(part) < 16)


def mail_slot(stored: Stored) -> MailSlot | None:
    """Read a slot's headers back; None if they are damaged: then it is to be written again."""
    try:
        subject = subjects.parse(stored.subject)
        generation = count_of(stored.headers[subjects.HEADER_GENERATION])
        payload_hash = bytes.fromhex(stored.headers[subjects.HEADER_HASH])
        has_body = stored.headers[subjects.HEADER_HAS_BODY]
    except (ValueError, KeyError) as error:
        logger.warning("the slot %s in MAIL is unreadable: %s", stored.subject, error)
        return None
    if generation < 0 or len(payload_hash) not in (0, _HASH_BYTES) or has_body not in (_YES, _NO):
        logger.warning("the slot %s in MAIL has strange headers", stored.subject)
        return None
    child, key = subject.path.name, MailKey(subject.key)
    return MailSlot(child, key, stored.sequence, generation, payload_hash, has_body == _YES)


def outgoing_reports(path: NodePath, said: Mapping[str, bytes]) -> dict[str, bytes]:
    """Messages for the parent's STAT, by subject."""
    return {subjects.stat(path, slot): data for slot, data in messages_of(said).items()}


def reported(stored: Stored, former: int = 0) -> list[ReportArrived | HelloArrived]:
    """A child's report part, with the progress after it, or hello; none on any other subject.

    Up to the sequence `former` it lay there when the bus was started.
    """
    try:
        subject = subjects.parse(stored.subject)
    except BadIdentity as error:
        logger.warning("a report on a strange subject: %s", error)
        return []
    child = subject.path.name
    if subject.tail == "_node":
        former_ms = stored.time_ms if stored.sequence <= former else None
        return [HelloArrived(child, stored.data, former_ms)]
    # What came along has no message of its own that could be erased.
    return [
        ReportArrived(child, slot, data, stored.sequence if slot == subject.key else 0)
        for slot, data in said_in(subject.key, stored.data)
    ]
