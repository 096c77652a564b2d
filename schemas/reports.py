"""The records that travel up, unsigned: their author is the account they came through.

Reports are state, not events: the last one of each slot counts, and parts stand alone
(protocol.md, "Reports").
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
EXCEPTIONS_MAX = 20
ARMS_MAX = 64
TEXT_MAX_BYTES = 800
"""Of an object or a reason, so that the longest report of all still fits one part."""
COUNT_MAX = 10**9
"""No count is higher: sums stop there."""

NEVER_JOINED: Final = "never joined"
"""The state, and the health, of a destination whose node was added and has never been heard of."""
State = Literal["pending", "synced", "failing", "leaving", "unreachable", "never joined"]
Health = Literal["healthy", "progressing", "degraded", "unknown", "never joined"]
ARM_OLDER = "older"
ARM_NOTHING = "nothing"
ARM_OTHER = "other"
"""Arms beyond ARMS_MAX, and those that are none of the placement's, in one count."""
ARM_WORDS = frozenset({ARM_OLDER, ARM_NOTHING, ARM_OTHER})

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

    `oldest_ms` is the oldest receipt among the destinations, 0 if there is none.
    """

    states: Mapping[str, int] = field(default_factory=dict, hash=False)
    health: Mapping[str, int] = field(default_factory=dict, hash=False)
    arms: Mapping[str, int] = field(default_factory=dict, hash=False)
    exceptions: tuple[ExceptionSample, ...] = ()
    oldest_ms: int = 0

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
    """Part 0: all counts of one placement."""

    key: MailKey
    part: int
    # The reporter's: random, new at each of its starts.
    run: str
    # Grows with each report of a run.
    revision: int
    # Of the placement's record that the reporter holds.
    generation: int
    # Nothing of the placement is there any more, and the reporter forgot it.
    gone: bool
    # How many parts of results there are besides.
    parts: int
    summary: Summary


@dataclass(frozen=True, slots=True)
class ReportPart:
    """Part 1 and on: results of the objects whose key's hash chose this part."""

    key: MailKey
    part: int
    run: str
    revision: int
    generation: int
    results: tuple[ObjectResult, ...]


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
    except (ShapeError, codec.CodecError, BadIdentity) as error:
        raise ReportRefused(f"report: {error}") from error
    return report


def encode(record: object) -> bytes:
    return codec.pack(to_array(record))


def decode(kind: type[T], data: bytes, limit: int = codec.RECORD_MAX_BYTES) -> T:
    """Read a record of the kind; raises ReportRefused, whatever the bytes are."""
    try:
        return from_array(kind, codec.unpack(data, limit))
    except (ShapeError, codec.CodecError) as error:
        raise ReportRefused(f"{kind.__name__}: {error}") from error
