"""The records that travel up, unsigned: their author is the account they came through.

Reports are state, not events: the last one of each slot counts, and parts stand alone
(protocol.md, "Reports").
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import SourceObject
from schemas.reports.causes import rank_of
from schemas.reports.collectors import Collected
from schemas.reports.states import MAINTAINED, NEVER_JOINED
from schemas.values.codec import fields_end
from schemas.values.identity import MailKey, mail_key_bytes, short_key
from schemas.values.refusals import BadIdentity, CodecError, RecordRefused
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import Natural, WireRecord, decode

PART_MAX_BYTES = 64 * 1024
EXCEPTIONS_MAX = 20
ARMS_MAX = 64
KEPT_COPIES_MAX, REPAIRS_MAX = 5, 5
TEXT_MAX_BYTES = 800
"""Of an object or a reason, so that the longest report of all still fits one part."""
COUNT_MAX = 10**9
"""No count is higher: sums stop there."""
State = Literal[
    "pending",
    "waiting",
    "synced",
    "failing",
    "frozen",
    "leaving",
    "unreachable",
    "never joined",
    "maintenance",
]
Health = Literal["healthy", "progressing", "degraded", "unknown", "never joined", "maintenance"]
ARM_OLDER = "older"
ARM_NOTHING = "nothing"
ARM_OTHER = "other"
"""Arms beyond ARMS_MAX, and those that are none of the placement's, in one count."""
CELLS_MAX = 512
CELL_OTHER, CELL_FORMER = "other", "former"
"""Cells beyond CELLS_MAX, in one count; and destinations that have said nothing yet of the present
step: whoever sees these knows that the waves are not counted whole."""
ORPHANED = "Orphaned"
"""Under which a node says that it holds something newer than the centre knows."""
ARM_WORDS = frozenset({ARM_OLDER, ARM_NOTHING, ARM_OTHER})


class ExceptionSample(WireRecord, frozen=True):
    """Something wrong: where (object or ""), why, how often, and one node where it is so."""

    # 0 for the worst. From AT_WORK on nothing is wrong yet.
    severity: Natural
    object: str
    reason: str
    count: Natural
    path: str

    @property
    def rank(self) -> tuple[int, bool, int, bytes, str]:
        """An order that merging cannot change: severity, dependence, hash; the object at last."""
        text = f"{self.object}\0{self.reason}".encode()
        depends = rank_of(self.object, self.reason)
        return (self.severity, *depends, hashlib.sha256(text).digest(), self.object)


class RepairSample(WireRecord, frozen=True):
    """An object that others changed or deleted at a destination, and that was put right there."""

    # When that was done last there; ms since 1970.
    at_ms: Natural
    object: str
    # The destination's node.
    path: str
    # How often it was done there to this object.
    count: Natural
    # The field that differed last, and who holds it; both empty if it was deleted.
    field: str = ""
    manager: str = ""

    @property
    def rank(self) -> tuple[int, str, str, int, str, str]:
        """An order that merging cannot change: the newest first."""
        return (-self.at_ms, self.path, self.object, self.count, self.field, self.manager)


class Summary(WireRecord, frozen=True):
    """What became of a placement in a subtree: counts of destinations, and what is wrong."""

    states: Mapping[str, Natural] = {}
    health: Mapping[str, Natural] = {}
    arms: Mapping[str, Natural] = {}
    exceptions: tuple[ExceptionSample, ...] = ()
    # The oldest receipt among the destinations; 0 if there is none.
    oldest_ms: Natural = 0
    # Of those whom a gate with a name admits, or would but for its windows: counts by
    # `<gate's name>/<state>/<health>`.
    cells: Mapping[str, Natural] = {}
    # Copies that nobody wants and that are kept, and some of them.
    kept: Natural = 0
    kept_copies: tuple[ExceptionSample, ...] = ()
    # How often copies that are wanted were put right since they were made, and the last times.
    repaired: Natural = 0
    repairs: tuple[RepairSample, ...] = ()

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

    @property
    def maintained(self) -> int:
        """Those at which a person works."""
        return self.states.get(MAINTAINED, 0)

    @property
    def awaited(self) -> int:
        """Those that whoever waits for the placement waits for."""
        return self.joined - self.maintained


class ObjectResult(WireRecord, frozen=True):
    """One object's returned state: exact while a single destination holds it, else only counted."""

    key: ObjectKey
    count: Natural
    destination: str = ""
    status: bytes | None = None
    # What the copy holds of what was sent, by its id; empty if it does not, or not just that.
    content: bytes = b""
    # The copy's own, by which its status counts.
    generation: Natural = 0


class _ReportHead(WireRecord, frozen=True):
    """What all parts of a report begin with."""

    key: MailKey
    part: Natural
    # The reporter's: random, new at each of its starts.
    run: str
    # Grows with each report of a run.
    revision: Natural
    # Of the placement's record that the reporter holds.
    generation: Natural


class Report(_ReportHead, frozen=True):
    """Part 0: all counts of one placement."""

    # Nothing of the placement is there any more, and the reporter forgot it.
    gone: bool
    # How many parts of results there are besides.
    parts: Natural
    summary: Summary
    # What collectors collected, if that is little; else it is in later parts.
    collected: tuple[Collected, ...] = ()
    # How many results and collectors' rows of it found no room in later parts.
    unsaid: Natural = 0


class ReportPart(_ReportHead, frozen=True):
    """Part 1 and on: results of the objects whose key's hash chose this part."""

    results: tuple[ObjectResult, ...]
    collected: tuple[Collected, ...] = ()


class Repaired(WireRecord, frozen=True):
    """How often an object was put right since it was made here, and what was amiss the last time.

    `field` differed, and `manager` holds it, as far as known; both are empty if it was deleted.
    """

    count: Natural
    at_ms: Natural
    field: str = ""
    manager: str = ""


class Ended(WireRecord, frozen=True):
    """That an object has done what it is for: what it said of itself then, unless that is much."""

    status: bytes | None = None


class Lost(WireRecord, frozen=True):
    """How often in a row an object was gone and made again, when last, and what takes it."""

    count: Natural
    at_ms: Natural
    by: str = ""


class Done(WireRecord, frozen=True):
    """What a syncer applied: kept in its own DONE stream, and the only licence to prune."""

    key: ObjectKey
    uid: str
    address: str
    placements: tuple[str, ...]
    made: bool
    order: Natural
    # The digest and the marks of the fields that it held in the object then.
    held: str = ""
    fields: bytes = b""
    # Whether it was there before, and stays as it was.
    left: bool = False
    # Whether it is not deleted when it is wanted no more.
    stay: bool = False
    # What the object itself says becomes of it then, and what who asked for it said; "" if nothing.
    on_removal: str = ""
    asked: str = ""
    # Whether nothing wants it, and it is kept as it is.
    kept: bool = False
    repaired: Repaired | None = None
    # If what was applied came to a good end: it is not made again once its cluster takes it.
    ended: Ended | None = None
    lost: Lost | None = None
    # The object of the source that it was made from, if known.
    made_from: SourceObject | None = None
    # Without some fields that nobody said, as its space does not know them: a mark of those unsaid.
    lesser: bytes = b""


def newest_repairs(repairs: Iterable[RepairSample]) -> tuple[RepairSample, ...]:
    """The last ones: each is of another copy, so that none adds to another."""
    return tuple(sorted(repairs, key=lambda repair: repair.rank)[:REPAIRS_MAX])


def cell(gate: str, state: str, health: str) -> str:
    """The cell of destinations of a gate with a name."""
    return f"{gate}/{state}/{health}"


class Cell(NamedTuple):
    """What a cell counts."""

    gate: str
    state: str
    health: str

    @classmethod
    def parse(cls, text: str) -> Cell | None:
        """Read `7.0/synced/healthy`; None of anything else, CELL_OTHER too."""
        parts = text.split("/")
        return cls(*parts) if len(parts) == len(cls._fields) else None


def part_key(key: MailKey, part: int) -> MailKey:
    """The slot of a report part; part 0 has the placement's own."""
    if part == 0:
        return key
    return short_key(hashlib.sha256(f"{key}\0{part}".encode()).digest()[:20])


def decode_report(data: bytes) -> Report | ReportPart:
    """Read a report slot, part 0 or another; raises RecordRefused, whatever the bytes are."""
    head = decode(_ReportHead, data, PART_MAX_BYTES, "report")
    try:
        mail_key_bytes(head.key)
    except BadIdentity as error:
        raise RecordRefused(f"report: {error}") from error
    if head.part:
        return decode(ReportPart, data, PART_MAX_BYTES, "report")
    return decode(Report, data, PART_MAX_BYTES, "report")


@dataclass(frozen=True, slots=True)
class Count:
    """What is counted of a placement in a subtree, and how far that can be relied on."""

    summary: Summary
    # Whether no more and no less is meant; else it reads "at least".
    exact: bool
    # Children that keep it from being exact, at most 20.
    waiting_for: tuple[str, ...] = ()
    # Of the placement's record here, which the count is of.
    generation: int = 0
    # How many returned states and collectors' rows found no room on the way here.
    unsaid: int = 0


_PAIR = b"\x92"


def messages_of(said: Mapping[str, bytes]) -> dict[str, bytes]:
    """The messages by slot, in their order; a progress at the end goes with what is before it."""
    messages = dict(said)
    slots = list(messages)[-2:]
    if len(slots) < 2 or slots[1] != PROGRESS_KEY:
        return messages
    report, progress = messages[slots[0]], messages[PROGRESS_KEY]
    if report and progress and len(_PAIR + report + progress) <= PART_MAX_BYTES:
        messages[slots[0]] = _PAIR + report + progress
        del messages[PROGRESS_KEY]
    return messages


def said_in(slot: str, message: bytes) -> list[tuple[str, bytes]]:
    """What is said, by slots, in order; whatever the bytes are."""
    if message[:1] != _PAIR:
        return [(slot, message)]
    try:
        end = fields_end(message, 1)
    except CodecError:
        return [(slot, message)]  # Its reader refuses it.
    return [(slot, message[1:end]), (PROGRESS_KEY, message[end:])]
