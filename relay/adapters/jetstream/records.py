"""What is said in a message's subject and headers, so that a restarting relay need not open it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from relay.adapters.jetstream.publish import EXPECTED_SEQUENCE, REPLACES, Outgoing
from relay.adapters.jetstream.reading import Stored
from relay.core.effects import StoreOwn, WriteMail
from relay.core.events import HeartbeatArrived, MailSlot, OwnRecord, ReportArrived
from relay.ports import BusBroken
from schemas import subjects
from schemas.identity import DEPTH_MAX, MailKey, NodePath
from schemas.refusals import BadIdentity
from schemas.reports import Done, encode

_YES, _NO = "1", "0"
HOPS_MAX = 2 * DEPTH_MAX

logger = logging.getLogger(__name__)


def outgoing_own(path: NodePath, write: StoreOwn) -> Outgoing:
    """A record for OWN."""
    headers = _told(write) | REPLACES | {subjects.HEADER_SEQUENCE: str(write.sequence)}
    if write.incarnation:
        headers[subjects.HEADER_INCARNATION] = write.incarnation
    return Outgoing(subjects.own(path, write.key), write.data or b"", headers)


def outgoing_done(path: NodePath, key: str, done: Done) -> Outgoing:
    """What became of an object, for DONE."""
    return Outgoing(subjects.done(path, key), encode(done), REPLACES)


def own_record(stored: Stored) -> OwnRecord:
    """Read a record back; raises BusBroken if its headers are damaged."""
    try:
        return OwnRecord(
            key=subjects.parse(stored.subject).key,
            data=stored.data,
            incarnation=stored.headers.get(subjects.HEADER_INCARNATION, ""),
            sequence=int(stored.headers.get(subjects.HEADER_SEQUENCE, "0")),
            hops=hops_of(stored.headers),
        )
    except ValueError as error:
        raise BusBroken(f"the record {stored.subject} in OWN is unreadable: {error}") from error


def outgoing_mail(path: NodePath, write: WriteMail) -> Outgoing:
    """A message for MAIL, that the stream takes only if the slot is as the writer believes."""
    headers = _told(write) | {EXPECTED_SEQUENCE: str(write.expected)}
    if write.more:
        headers[subjects.HEADER_MORE] = _YES
    return Outgoing(subjects.mail(path.child(write.child), write.key), write.data, headers)


def _told(write: StoreOwn | WriteMail) -> dict[str, str]:
    """What is said of a record wherever it is kept."""
    told = {
        subjects.HEADER_GENERATION: str(write.generation),
        subjects.HEADER_HASH: write.payload_hash.hex(),
        subjects.HEADER_HAS_BODY: _YES if write.has_body else _NO,
    }
    if write.trace:
        told[subjects.HEADER_TRACE] = write.trace
    if write.hops:
        told[subjects.HEADER_ORIGIN] = str(write.hops[0])
        told[subjects.HEADER_HOPS] = ",".join(map(str, write.hops))
    return told


def hops_of(headers: Mapping[str, str]) -> tuple[int, ...]:
    """The times of a record's hops, for people; none if they are not readable."""
    parts = headers.get(subjects.HEADER_HOPS, "").split(",")
    return tuple(int(part) for part in parts[:HOPS_MAX] if part.isdecimal() and len(part) < 16)


def says_more(headers: Mapping[str, str]) -> bool:
    """Whether a message of MAIL goes together with the one after it."""
    return headers.get(subjects.HEADER_MORE) == _YES


def mail_slot(stored: Stored) -> MailSlot:
    """Read a slot's headers back; raises BusBroken if they are damaged."""
    try:
        subject = subjects.parse(stored.subject)
        return MailSlot(
            child=subject.path.name,
            key=MailKey(subject.key),
            sequence=stored.sequence,
            generation=int(stored.headers[subjects.HEADER_GENERATION]),
            payload_hash=bytes.fromhex(stored.headers[subjects.HEADER_HASH]),
            has_body=stored.headers[subjects.HEADER_HAS_BODY] == _YES,
            more=says_more(stored.headers),
        )
    except (ValueError, KeyError) as error:
        raise BusBroken(f"the slot {stored.subject} in MAIL has no headers: {error}") from error


def reported(stored: Stored) -> ReportArrived | HeartbeatArrived | None:
    """A child's report part or heartbeat; None if the subject is neither's."""
    try:
        subject = subjects.parse(stored.subject)
    except BadIdentity as error:
        logger.warning("a report on a strange subject: %s", error)
        return None
    if subject.tail == "_node":
        return HeartbeatArrived(subject.path.name, stored.data)
    return ReportArrived(subject.path.name, subject.key, stored.data, stored.sequence)
