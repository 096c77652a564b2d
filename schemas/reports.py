"""The records that travel up, unsigned: their author is the account they came through.

Reports are state, not events: the last one of each slot counts, and parts stand alone
(wire.md, "Reports", "Session, cursor, reading").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from schemas.identity import MailKey, mail_key_bytes, short_key
from schemas.objects import ObjectKey
from schemas.refusals import BadIdentity, RecordRefused
from schemas.wire import Meta, Natural, WireRecord, field
from schemas.wire import decode as decode
from schemas.wire import encode as encode

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

# What is longer is refused: it could make the summary of a parent outgrow a message.
Text = Annotated[str, Meta(max_length=TEXT_MAX_CHARACTERS)]
Counts = Mapping[Text, Natural]


class ExceptionSample(WireRecord, frozen=True):
    """Something wrong: where (object or ""), why, how often, and one node where it is so.

    `severity` is 0 for the worst.
    """

    severity: Natural
    object: Text
    reason: Text
    count: Natural
    path: Text

    @property
    def rank(self) -> tuple[int, bytes, str]:
        """An order that merging cannot change: severity, then hash; the object breaks a tie."""
        text = f"{self.object}\0{self.reason}".encode()
        return (self.severity, hashlib.sha256(text).digest(), self.object)


class Summary(WireRecord, frozen=True):
    """What became of a placement in a subtree: counts of destinations, and what is wrong.

    `oldest_ms` is the oldest receipt among the destinations, 0 if there is none. `blocking` names
    nodes that keep the summary from being complete.
    """

    states: Annotated[Counts, Meta(max_length=STATES_MAX)] = field(default_factory=dict)
    health: Annotated[Counts, Meta(max_length=STATES_MAX)] = field(default_factory=dict)
    arms: Annotated[Counts, Meta(max_length=ARMS_MAX)] = field(default_factory=dict)
    exceptions: Annotated[tuple[ExceptionSample, ...], Meta(max_length=EXCEPTIONS_MAX)] = ()
    oldest_ms: Natural = 0
    complete: bool = True
    blocking: Annotated[tuple[Text, ...], Meta(max_length=BLOCKING_MAX)] = ()

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


class ObjectResult(WireRecord, frozen=True):
    """One object's returned state: exact while a single destination holds it, else only counted."""

    key: ObjectKey
    count: Natural
    destination: str = ""
    status: bytes | None = None


class Report(WireRecord, frozen=True):
    """Part 0: all counts of one placement. `answered` is a sequence of the reporter's own mail."""

    key: MailKey
    part: Natural
    epoch: Natural
    revision: Natural
    generation: Natural
    incarnation: str
    answered: Natural
    gone: bool
    parts: Natural
    summary: Summary


class ReportPart(WireRecord, frozen=True):
    """Part 1 and on: results of the objects whose key's hash chose this part."""

    key: MailKey
    part: Natural
    epoch: Natural
    revision: Natural
    generation: Natural
    results: tuple[ObjectResult, ...]


class KeyValues(WireRecord, frozen=True):
    """The values of one label key in a subtree; None is any. `lacking`: someone has none."""

    values: tuple[str, ...] | None
    lacking: bool


class SpaceLabels(WireRecord, frozen=True):
    """The labels of the destinations of one inventory space in a subtree."""

    keys: Mapping[str, KeyValues]


class LabelReport(WireRecord, frozen=True):
    """The slot `_labels`: the label digest of a subtree, by inventory space."""

    epoch: Natural
    revision: Natural
    incarnation: str
    answered: Natural
    spaces: Mapping[str, SpaceLabels]

    @property
    def digest(self) -> bytes:
        """SHA-256 of what it says, whenever it was said."""
        return hashlib.sha256(encode(LabelReport(0, 0, "", 0, self.spaces))).digest()


class Listed(WireRecord, frozen=True):
    """A record that a node, or one below it, holds, though its mailbox does not."""

    key: MailKey
    generation: Natural


class ListPart(WireRecord, frozen=True):
    """The slots `_list0` and on: part of what a node holds beyond its mailbox, when asked."""

    epoch: Natural
    revision: Natural
    part: Natural
    entries: tuple[Listed, ...]


class Heartbeat(WireRecord, frozen=True):
    """Node to parent: its session, its cursor, the digests of its mail and of its reports.

    Epoch 0 asks for a session. `run` is random, new at each start of the node. `has_memory` says
    whether the node may act on deltas that the index does not list yet; `withheld` counts the
    records that it holds and its mailbox does not: it lists them if asked. `home` is random, kept
    where the node keeps its state: while one is heard of, another with the same credentials is told
    to stop. `farewell` is the last word of a run that ends in good order. `question` counts the
    sessions that the run asked for, from 1: it is the same when one is asked for again.
    """

    epoch: Natural
    incarnation: str
    sequence: Natural
    mail_digest: bytes
    report_digest: bytes
    labels_hash: bytes
    index_generation: Natural
    has_memory: bool
    refused: Natural = 0
    withheld: Natural = 0
    last_epoch: Natural = 0
    run: str = ""
    home: str = ""
    farewell: bool = False
    question: Natural = 0


class SessionMessage(WireRecord, frozen=True):
    """Parent to child, the answer to each heartbeat; it only steers reading.

    `run` names the start of the child that is answered; empty when the parent speaks by itself.
    `question` is that of the heartbeat; 0 from who does not know of it.
    """

    incarnation: str
    epoch: Natural
    last_sequence: Natural
    swept_through: Natural
    index_generation: Natural
    want: str
    run: str = ""
    question: Natural = 0


def greeting(incarnation: str) -> bytes:
    """What a parent says by itself, so that a child begins a session with this run of it."""
    return encode(SessionMessage(incarnation, 0, 0, 0, 0, WANT_NONE))


class Done(WireRecord, frozen=True):
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
    order: Natural
    held: str = ""
    fields: bytes = b""
    left: bool = False
    stay: bool = False


class Cursor(WireRecord, frozen=True):
    """The slot `_cursor` of OWN: how far the parent's mail is accepted, by parent incarnation.

    `unproven` names the children of whom a node that lost its memory does not know yet whether they
    hold anything beyond their mailboxes.
    """

    incarnation: str
    sequence: Natural
    index_generation: Natural
    has_memory: bool
    unproven: tuple[str, ...] = ()


class Swept(WireRecord, frozen=True):
    """The slot `_swept` of OWN: up to where tombstones left mailboxes that nobody answered for."""

    incarnation: str
    sequence: Natural


def part_key(key: MailKey, part: int) -> MailKey:
    """The slot of a report part; part 0 has the placement's own."""
    if part == 0:
        return key
    return short_key(hashlib.sha256(f"{key}\0{part}".encode()).digest()[:20])


def decode_report(data: bytes) -> Report | ReportPart:
    """Read a report slot, part 0 or another; raises RecordRefused, whatever the bytes are."""
    place = decode(_Place, data, PART_MAX_BYTES, "report")
    try:
        mail_key_bytes(place.key)
    except BadIdentity as error:
        raise RecordRefused(f"report: {error}") from error
    if place.part:
        return decode(ReportPart, data, PART_MAX_BYTES, "report")
    return decode(Report, data, PART_MAX_BYTES, "report")


class _Place(WireRecord, frozen=True):
    """What the two kinds of reports have in common."""

    key: MailKey
    part: Natural
