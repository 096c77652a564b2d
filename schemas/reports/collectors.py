"""Collectors as they travel: programs down in a blob of each placement, rows up in its reports.

What users write of them is in `schemas.api.collectors`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, Literal

from schemas.content import blobs
from schemas.content.blobs import StoredBlob
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HEALTH_PROGRAMS_MAX, HealthProgram
from schemas.reports.upsync import UpsyncClause
from schemas.values.ordered_values import unpack_values
from schemas.values.wire import Natural, WireRecord, astuple, decode, encode

FieldType = Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "QUANTILE", "TOP", "DISTINCT"]

LIMIT_DEFAULT, LIMIT_MAX = 20, 1000
"""How many rows, or groups, a collector keeps: the least by a fixed order."""
EXPRESSION_MAX_BYTES, RESULT_MAX_BYTES = 4096, 16 * 1024
COLUMNS_MAX = 32
BLANKS_MAX_BYTES = 256 * 1024
"""Of all objects in a set: what their blank rows are made of where they cannot be opened."""
LABEL_PREFIX = "status.kubestellar.io/"
"""Of the labels that say what a CombinedStatus is about."""
COMPLETE_ANNOTATION = "leafcast.io/complete"
PLACEMENT_ANNOTATION = "leafcast.io/placement"
"""The placement of a CombinedStatus, with its kind: two kinds may have one of a name."""
TABLE_MAX_BYTES = 48 * 1024
"""Of one collector's rows of one object, as a report carries them."""
TOP_DEFAULT, TOP_MAX = 5, 20
DISTINCT_HASHES = 256
QUANTILE_ACCURACY = 0.01
QUANTILE_PATTERN = r"0(\.[0-9]{1,6})?|1(\.0{1,6})?"
"""How the part of 1 is written."""
BUCKETS_MAX = 1024
"""Of a QUANTILE: the highest; lower ones are counted in the last of these."""
PROGRAM_CHARACTERS = 16
MEMBERS_BYTES = 16

WHOLE: Final = ObjectKey("", "", "", "")
"""In the place of an object: the collector is over all of the placement, or what arises."""
SCOPE_OBJECT, SCOPE_PLACEMENT = "Object", "Placement"


class Expression(WireRecord, frozen=True):
    """A column, and the expression that gives it."""

    name: str
    definition: str


class CombinedField(WireRecord, frozen=True):
    """A column of a group: how it is combined, of which subject."""

    name: str
    type: FieldType
    subject: str = ""
    # Of a QUANTILE, as it was written: a number from 0 to 1.
    quantile: str = ""
    # Of a TOP: how many.
    top: Natural = TOP_DEFAULT


class Program(WireRecord, frozen=True):
    """One collector. Without anything to collect it is the aggregate of an object's status."""

    name: str
    filter: str = ""
    group_by: tuple[Expression, ...] = ()
    combined: tuple[CombinedField, ...] = ()
    select: tuple[Expression, ...] = ()
    limit: Natural = LIMIT_DEFAULT
    scope: str = SCOPE_OBJECT
    # With one it is over the objects that come up from a destination, one row for each.
    source: UpsyncClause | None = None
    # Whether values of Secrets are there to be read: who runs the space says so.
    reads_secrets: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns: of the groups first."""
        if not self.combined:
            return tuple(item.name for item in self.select)
        groups = (item.name for item in self.group_by)
        return (*groups, *(item.name for item in self.combined))

    @property
    def is_aggregate(self) -> bool:
        """Whether it merges the status itself, as `wantMultiWECReportedState` asks."""
        return not self.combined and not self.select

    @property
    def id(self) -> str:
        """What reports call it: rows of another version of it are not this one's."""
        said = astuple(self)
        # Readers that know no source, or nothing of Secrets, call one without as we do.
        known = said if self.reads_secrets else said[:-1]
        known = known if self.source is not None or self.reads_secrets else known[:-1]
        return hashlib.sha256(encode(known)).hexdigest()[:PROGRAM_CHARACTERS]


AGGREGATE: Final = Program("")
"""What stands for the status of each copy."""


class BlankValue(WireRecord, frozen=True):
    """What one expression gives of an object for a destination that returned nothing."""

    # Counts the filter, then each group, subject and selected column.
    place: Natural
    reachable: bool
    failed: bool
    # Packed; if it `failed`, the text that says why.
    value: bytes

    def __post_init__(self) -> None:
        if self.failed:
            self.value.decode()
        elif len(unpack_values(self.value)) != 1:
            raise ValueError("what an expression gives is one value")


Blanks = tuple[BlankValue, ...]
"""Of one object and program: of each expression that looks at the object."""


class ObjectPrograms(WireRecord, frozen=True):
    """An object, and which of the programs collect over it, by their places."""

    # WHOLE has those that are over what comes up.
    key: ObjectKey
    programs: tuple[Natural, ...]
    # Of a sealed object, what each of its programs needs for blank rows, in their order; empty if
    # nobody could say.
    blanks: tuple[Blanks, ...] = ()

    def __post_init__(self) -> None:
        if self.blanks and len(self.blanks) != len(self.programs):
            raise ValueError(f"blank rows of {len(self.blanks)} of {len(self.programs)} programs")


class ProgramSet(WireRecord, frozen=True):
    """What is collected of one placement: a blob of type `program`."""

    version: Natural
    programs: tuple[Program, ...]
    objects: tuple[ObjectPrograms, ...]
    # Of the kinds of its objects, at most one of each.
    health: tuple[HealthProgram, ...] = ()

    def __post_init__(self) -> None:
        if self.version != 1:
            raise ValueError(f"collectors of version {self.version}, this program reads 1")
        if len(self.health) > HEALTH_PROGRAMS_MAX:
            raise ValueError(f"{len(self.health)} HealthRules, at most {HEALTH_PROGRAMS_MAX}")
        highest = max((at for item in self.objects for at in item.programs), default=-1)
        if highest >= len(self.programs):
            raise ValueError(f"program {highest} of {len(self.programs)}")


class Collected(WireRecord, frozen=True):
    """What one subtree says of one object and one program: rows merged, groups combined."""

    key: ObjectKey
    program: str
    # The sum modulo 2^128 of a hash of each destination that it counts.
    members: bytes
    # A table as `relay.core.collectors` writes it.
    rows: bytes
    # The table that counts while nobody hears from there, if that is another.
    unreached: bytes = b""


def program_set(
    collecting: Mapping[ObjectKey, tuple[Program, ...]],
    blanks: Mapping[ObjectKey, Mapping[Program, Blanks]] | None = None,
    health: tuple[HealthProgram, ...] = (),
) -> StoredBlob:
    """The blob of what is collected, the same whatever the order; with blank rows of objects.

    `health` has the HealthRules of their kinds.

    Beyond BLANKS_MAX_BYTES it has none.
    """
    named = {(p.name, p.id): p for programs in collecting.values() for p in programs}
    places = {key: at for at, key in enumerate(sorted(named))}
    programs = tuple(named[key] for key in sorted(named))
    objects, room = [], BLANKS_MAX_BYTES
    for key in sorted(collecting):
        asked = tuple(sorted(places[p.name, p.id] for p in collecting[key]))
        known = (blanks or {}).get(key, {})
        said = tuple(known.get(programs[at], ()) for at in asked) if any(known.values()) else ()
        size = len(encode(said)) if said else 0
        said = said if size <= room else ()
        room -= size if said else 0
        objects.append(ObjectPrograms(key, asked, said))
    fields = (1, programs, objects, health) if health else (1, programs, objects)
    return blobs.store(blobs.PROGRAM, encode(fields))


def read_program_set(plain: bytes) -> ProgramSet:
    """What such a blob says; raises RecordRefused."""
    return decode(ProgramSet, plain, blobs.BLOB_MAX_BYTES, "program")
