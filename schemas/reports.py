"""The records that travel up, unsigned: their author is the account they came through.

Reports are state, not events: the last one of each slot counts, and parts stand alone
(wire.md, "Reports", "Session, cursor, reading").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from schemas import codec
from schemas.identity import BadIdentity, MailKey, mail_key_bytes, short_key
from schemas.objects import ObjectKey
from schemas.shape import ShapeError, from_array, to_array

PART_MAX_BYTES = 64 * 1024
STATES_MAX = 16
EXCEPTIONS_MAX = 20
BLOCKING_MAX = 20
ARMS_MAX = 64
TEXT_MAX_CHARACTERS = 1100
LABEL_VALUES_MAX = 256
LABEL_DIGEST_MAX_BYTES = 32 * 1024
LIST_ENTRIES_MAX = 1200
LIST_PARTS_MAX = 16

NEVER_JOINED: Final = "never joined"
"""The state, and the health, of a destination whose node was added and has never been heard of."""
State = Literal["pending", "synced", "failing", "leaving", "unreachable", "never joined"]
Health = Literal["healthy", "progressing", "degraded", "unknown", "never joined"]
ARM_OLDER = "older"
ARM_NOTHING = "nothing"

WANT_NONE, WANT_LIST, WANT_AGAIN, WANT_STOP = "none", "list", "again", "stop"
WANT_SAY = "say"

T = TypeVar("T")


class ReportRefused(ValueError):
    """Bytes from below that are no report; `reason` names the place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ExceptionSample:
    """Something wrong: where (object or ""), why, how often, and one node where it is so.

    `severity` is 0 for the worst.
    """

    severity: int
    object: str
    reason: str
    count: int
    path: str

    @property
    def rank(self) -> tuple[int, bytes, str]:
        """An order that merging cannot change: severity, then hash; the object breaks a tie."""
        text = f"{self.object}\0{self.reason}".encode()
        return (self.severity, hashlib.sha256(text).digest(), self.object)


@dataclass(frozen=True, slots=True)
class Summary:
    """What became of a placement in a subtree: counts of destinations, and what is wrong.

    `oldest_ms` is the oldest receipt among the destinations, 0 if there is none. `blocking` names
    nodes that keep the summary from being complete.
    """

    states: Mapping[str, int] = field(default_factory=dict, hash=False)
    health: Mapping[str, int] = field(default_factory=dict, hash=False)
    arms: Mapping[str, int] = field(default_factory=dict, hash=False)
    exceptions: tuple[ExceptionSample, ...] = ()
    oldest_ms: int = 0
    complete: bool = True
    blocking: tuple[str, ...] = ()

    @property
    def destinations(self) -> int:
        return sum(self.states.values())

    @property
    def joined(self) -> int:
        """The destinations that anything can be expected of."""
        return self.destinations - self.never_joined

    @property
    def never_joined(self) -> int:
        return self.states.get(NEVER_JOINED, 0)


@dataclass(frozen=True, slots=True)
class ObjectResult:
    """One object's returned state: exact while a single destination holds it, else only counted."""

    key: ObjectKey
    count: int
    destination: str = ""
    status: bytes | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Part 0: all counts of one placement. `answered` is a sequence of the reporter's own mail."""

    key: MailKey
    part: int
    epoch: int
    revision: int
    generation: int
    incarnation: str
    answered: int
    gone: bool
    parts: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class ReportPart:
    """Part 1 and on: results of the objects whose key's hash chose this part."""

    key: MailKey
    part: int
    epoch: int
    revision: int
    generation: int
    results: tuple[ObjectResult, ...]


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The values of one label key in a subtree; None is any. `lacking`: someone has none."""

    values: tuple[str, ...] | None
    lacking: bool


@dataclass(frozen=True, slots=True)
class SpaceLabels:
    """The labels of the destinations of one inventory space in a subtree."""

    keys: Mapping[str, KeyValues] = field(hash=False)


@dataclass(frozen=True, slots=True)
class LabelReport:
    """The slot `_labels`: the label digest of a subtree, by inventory space."""

    epoch: int
    revision: int
    incarnation: str
    answered: int
    spaces: Mapping[str, SpaceLabels] = field(hash=False)

    @property
    def digest(self) -> bytes:
        """SHA-256 of what it says, whenever it was said."""
        return hashlib.sha256(encode(LabelReport(0, 0, "", 0, self.spaces))).digest()


@dataclass(frozen=True, slots=True)
class Listed:
    """A record that a node, or one below it, holds, though its mailbox does not."""

    key: MailKey
    generation: int


@dataclass(frozen=True, slots=True)
class ListPart:
    """The slots `_list0` and on: part of what a node holds beyond its mailbox, when asked."""

    epoch: int
    revision: int
    part: int
    entries: tuple[Listed, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Node to parent: its session, its cursor, the digests of its mail and of its reports.

    Epoch 0 asks for a session. `run` is random, new at each start of the node. `has_memory` says
    whether the node may act on deltas that the index does not list yet; `withheld` counts the
    records that it holds and its mailbox does not: it lists them if asked. `home` is random, kept
    where the node keeps its state: while one is heard of, another with the same credentials is told
    to stop. `farewell` is the last word of a run that ends in good order. `question` counts the
    sessions that the run asked for, from 1: it is the same when one is asked for again.
    """

    epoch: int
    incarnation: str
    sequence: int
    mail_digest: bytes
    report_digest: bytes
    labels_hash: bytes
    index_generation: int
    has_memory: bool
    refused: int = 0
    withheld: int = 0
    last_epoch: int = 0
    run: str = ""
    home: str = ""
    farewell: bool = False
    question: int = 0


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """Parent to child, the answer to each heartbeat; it only steers reading.

    `run` names the start of the child that is answered; empty when the parent speaks by itself.
    `question` is that of the heartbeat; 0 from who does not know of it.
    """

    incarnation: str
    epoch: int
    last_sequence: int
    swept_through: int
    index_generation: int
    want: str
    run: str = ""
    question: int = 0


def greeting(incarnation: str) -> bytes:
    """What a parent says by itself, so that a child begins a session with this run of it."""
    return encode(SessionMessage(incarnation, 0, 0, 0, 0, WANT_NONE))


@dataclass(frozen=True, slots=True)
class Done:
    """What a syncer applied: kept in its own DONE stream, and the only licence to prune.

    `held` and `fields` are the digest and the marks of the fields that it held in the object then.
    One that is `left` was there before and stays as it was; one that is to `stay` is not deleted
    when it is wanted no more.
    """

    key: ObjectKey
    uid: str
    address: str
    placements: tuple[str, ...]
    made: bool
    order: int
    held: str = ""
    fields: bytes = b""
    left: bool = False
    stay: bool = False


@dataclass(frozen=True, slots=True)
class Cursor:
    """The slot `_cursor` of OWN: how far the parent's mail is accepted, by parent incarnation.

    `unproven` names the children of whom a node that lost its memory does not know yet whether they
    hold anything beyond their mailboxes.
    """

    incarnation: str
    sequence: int
    index_generation: int
    has_memory: bool
    unproven: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Swept:
    """The slot `_swept` of OWN: up to where tombstones left mailboxes that nobody answered for."""

    incarnation: str
    sequence: int


def part_key(key: MailKey, part: int) -> MailKey:
    """The slot of a report part; part 0 has the placement's own."""
    if part == 0:
        return key
    return short_key(hashlib.sha256(f"{key}\0{part}".encode()).digest()[:20])


def decode_report(data: bytes) -> Report | ReportPart:
    """Read a report slot, part 0 or another; raises ReportRefused, whatever the bytes are."""
    try:
        value = codec.unpack(data, PART_MAX_BYTES)
        is_first = isinstance(value, tuple) and len(value) > 1 and value[1] == 0
        report = from_array(Report, value) if is_first else from_array(ReportPart, value)
        mail_key_bytes(report.key)
        if isinstance(report, Report):
            _check_bounds(report.summary)
    except (ShapeError, codec.CodecError, BadIdentity) as error:
        raise ReportRefused(f"report: {error}") from error
    return report


def _check_bounds(summary: Summary) -> None:
    """Refuse what would make the summary of a parent outgrow a message."""
    for what, listed, most in (
        ("states", summary.states, STATES_MAX),
        ("health", summary.health, STATES_MAX),
        ("exceptions", summary.exceptions, EXCEPTIONS_MAX),
        ("blocking", summary.blocking, BLOCKING_MAX),
        ("arms", summary.arms, ARMS_MAX),
    ):
        if len(listed) > most:
            raise ReportRefused(f"report: {len(listed)} {what}, at most {most}")
    texts = [text for e in summary.exceptions for text in (e.object, e.reason, e.path)]
    words = (*summary.states, *summary.health, *summary.arms)
    longest = max(map(len, (*texts, *summary.blocking, *words)), default=0)
    if longest > TEXT_MAX_CHARACTERS:
        raise ReportRefused(f"report: a text over {TEXT_MAX_CHARACTERS} characters")


def encode(record: object) -> bytes:
    return codec.pack(to_array(record))


def decode(kind: type[T], data: bytes, limit: int = codec.RECORD_MAX_BYTES) -> T:
    """Read a record of the kind; raises ReportRefused, whatever the bytes are."""
    try:
        return from_array(kind, codec.unpack(data, limit))
    except (ShapeError, codec.CodecError) as error:
        raise ReportRefused(f"{kind.__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Count:
    """What a node counts of a placement over its subtree; it is not sent."""

    summary: Summary
    # Whether no more and no less is meant; else it reads "at least".
    exact: bool
    # Children that keep it from being exact, a few of them.
    waiting_for: tuple[str, ...] = ()
