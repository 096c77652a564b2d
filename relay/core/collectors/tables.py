"""Rows of one collector over some destinations, as a value that merges.

The rows kept are the least by key, at most as many as the collector's limit; `cut` is the last key
up to which they are whole, and all beyond it are combined in `rest`. Whoever cuts holds that many
smaller keys, so the rows kept at the end are exact, and so is the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from relay.core.collectors.cells import CELLS, CellSample
from schemas.reports.collectors import (
    COLUMNS_MAX,
    RESULT_MAX_BYTES,
    TABLE_MAX_BYTES,
    CombinedField,
    Program,
)
from schemas.reports.reports import COUNT_MAX, TEXT_MAX_BYTES
from schemas.values.refusals import CodecError, RecordRefused
from schemas.values.wire import Natural, WireRecord, decode, encode
from schemas.values.wire import replace as with_fields

KEY_MAX_BYTES = 2 * RESULT_MAX_BYTES
ERRORS_MAX = 2 * COLUMNS_MAX + 1
FILTER = ""
"""The column of what went wrong in a filter."""


@dataclass(frozen=True, slots=True)
class CollectedRow:
    """A group, or one destination's columns: how many rows it stands for, and what it keeps."""

    count: int
    cells: tuple[Any, ...]


class ColumnError(WireRecord, frozen=True):
    """What went wrong in a column."""

    column: str
    # Whether the row is left out; else a value was no number, and counts as 0.
    of_row: bool
    who: bytes
    # Of the first row.
    text: str
    # For how many rows.
    count: Natural


@dataclass(frozen=True, slots=True)
class CollectedTable:
    """What a collector has of some destinations."""

    # All rows, those filtered out too.
    counted: int = 0
    rows: Mapping[bytes, CollectedRow] = field(default_factory=dict)
    # The last key up to which all rows are here; None: all are.
    cut: bytes | None = None
    # The rows beyond, combined.
    rest: CollectedRow | None = None
    # Whether fewer rows are kept than the limit, because they found no room.
    truncated: bool = False
    errors: Mapping[tuple[str, bool], ColumnError] = field(default_factory=dict)


class Outcome(NamedTuple):
    """What the expressions say of one destination and object."""

    # Whether it has a row.
    kept: bool
    # The key of its group, and a sample for each combined field.
    group: bytes = b""
    samples: tuple[CellSample, ...] = ()
    # Else its columns, as one value.
    columns: bytes = b""
    # Columns and texts: without these there is no row.
    failed: tuple[tuple[str, str], ...] = ()
    # Columns and texts of what counts as 0.
    faults: tuple[tuple[str, str], ...] = ()


class _Row(WireRecord, frozen=True):
    key: bytes
    count: Natural
    cells: tuple[bytes, ...]


class _Table(WireRecord, frozen=True):
    counted: Natural
    rows: tuple[_Row, ...]
    cut: bytes | None
    rest: _Row | None
    truncated: bool
    errors: tuple[ColumnError, ...]


EMPTY = CollectedTable()


class TableAlgebra:
    """The merge of one program's tables: associative, commutative, with EMPTY as identity.

    Of the objects of a destination most say the same: what was made or written last is kept.
    """

    def __init__(self, program: Program) -> None:
        self._limit = max(program.limit, 1)
        self._fields: tuple[CombinedField, ...] = program.combined
        self._kinds = tuple(CELLS[item.type] for item in program.combined)
        self._selects = not program.combined
        self._made: tuple[Outcome, bytes, CollectedTable] | None = None
        self._wrote: tuple[CollectedTable, int, bytes] | None = None

    @property
    def empty(self) -> CollectedTable:
        return EMPTY

    def leaf(self, outcome: Outcome, who: bytes, place: bytes = b"") -> CollectedTable:
        """One destination's table; `place` tells its rows of several objects apart."""
        made = self._made
        if made is None or made[0] is not outcome or made[1] != who + place:
            made = self._made = (outcome, who + place, self._leaf(outcome, who, place))
        return made[2]

    def _leaf(self, outcome: Outcome, who: bytes, place: bytes) -> CollectedTable:
        errors = {
            (column, of_row): ColumnError(column, of_row, who + place, text, 1)
            for of_row, listed in ((True, outcome.failed), (False, outcome.faults))
            for column, text in listed
        }
        if not outcome.kept:
            return CollectedTable(1, errors=errors)
        if self._selects:
            return CollectedTable(
                1, {who + place: CollectedRow(1, (outcome.columns,))}, errors=errors
            )
        pairs = zip(self._kinds, outcome.samples, strict=True)
        row = CollectedRow(1, tuple(kind.of(sample, who + place) for kind, sample in pairs))
        return CollectedTable(1, {outcome.group: row}, errors=errors)

    def merge(self, tables: Sequence[CollectedTable]) -> CollectedTable:
        """The table of disjoint sets of rows."""
        if len(tables) == 1:
            return tables[0]
        grouped: dict[bytes, list[CollectedRow]] = {}
        rests, cuts, errors = [], [], dict[tuple[str, bool], ColumnError]()
        counted, truncated = 0, False
        for table in tables:
            counted += table.counted
            truncated = truncated or table.truncated
            for key, row in table.rows.items():
                grouped.setdefault(key, []).append(row)
            if table.rest is not None:
                rests.append(table.rest)
            if table.cut is not None:
                cuts.append(table.cut)
            for place, error in table.errors.items():
                held = errors.get(place)
                errors[place] = error if held is None else _both(held, error)
        rows = {
            key: listed[0] if len(listed) == 1 else self._combined(listed)
            for key, listed in grouped.items()
        }
        whole = CollectedTable(
            min(counted, COUNT_MAX),
            rows,
            min(cuts, default=None),
            self._combined(rests) if rests else None,
            truncated,
            errors,
        )
        return self._cut(whole, self._limit)

    def times(self, table: CollectedTable, count: int) -> CollectedTable:
        """The table of so many disjoint sets of rows, at least one, of which each says the same."""
        if count == 1:
            return table
        return CollectedTable(
            min(table.counted * count, COUNT_MAX),
            {key: self._times(row, count) for key, row in table.rows.items()},
            table.cut,
            None if table.rest is None else self._times(table.rest, count),
            table.truncated,
            {
                place: with_fields(error, count=min(error.count * count, COUNT_MAX))
                for place, error in table.errors.items()
            },
        )

    def many(self, outcome: Outcome, whos: Sequence[bytes]) -> CollectedTable:
        """The table of destinations that all have this outcome, in the order of their keys."""
        # Only these are told from each other by who they are.
        few = max((item.top for item in self._fields if item.type == "TOP"), default=1)
        if self._selects:
            few = self._limit
        first = [self.leaf(outcome, who) for who in whos[:few]]
        if len(whos) > few:
            first.append(self.times(self.leaf(outcome, whos[few]), len(whos) - few))
        return self.merge(first) if first else EMPTY

    def write(self, table: CollectedTable, room: int = TABLE_MAX_BYTES) -> bytes:
        """The table's bytes, with fewer rows if all find no room."""
        wrote = self._wrote
        if wrote is None or wrote[0] is not table or wrote[1] != room:
            wrote = self._wrote = (table, room, self._written(table, room))
        return wrote[2]

    def _written(self, table: CollectedTable, room: int) -> bytes:
        data = encode(self._said(table))
        rows = len(table.rows)
        while len(data) > room and rows:
            rows //= 2
            table = self._cut(table, rows, truncated=True)
            data = encode(self._said(table))
        if len(data) > room:
            data = encode(self._said(CollectedTable(table.counted, truncated=True)))
        return data

    def read(self, data: bytes) -> CollectedTable:
        """What such bytes say; raises RecordRefused, whatever they are."""
        said = decode(_Table, data, TABLE_MAX_BYTES, "rows")
        keys = [row.key for row in said.rows]
        if len(keys) > self._limit:
            raise RecordRefused(f"{len(keys)} rows, at most {self._limit}")
        if any(first >= second for first, second in pairwise(keys)):
            raise RecordRefused("rows that are not in ascending order")
        if said.cut is not None and keys and keys[-1] > said.cut:
            raise RecordRefused("rows beyond the last one that is whole")
        if len(said.errors) > ERRORS_MAX or said.counted > COUNT_MAX:
            raise RecordRefused("more is said than there can be")
        for error in said.errors:
            _check_error(error)
        try:
            rows = {row.key: self._read_row(row) for row in said.rows}
            rest = None if said.rest is None else self._read_row(said.rest)
        except CodecError as error:
            raise RecordRefused(f"rows: {error}") from error
        errors = {(item.column, item.of_row): item for item in said.errors}
        return CollectedTable(said.counted, rows, said.cut, rest, said.truncated, errors)

    def of_one(self, table: CollectedTable) -> CollectedTable:
        """What one destination says, so that it hides no row of others, whatever it says.

        Where it has no room for its rows those of others would be cut with them. So of groups it
        counts beyond these, and it is told that something found no room.
        """
        if table.cut is None or (not table.truncated and len(table.rows) == self._limit):
            return table
        if self._selects:
            return replace(table, cut=None, truncated=True)
        beyond = [*table.rows.values(), *([] if table.rest is None else [table.rest])]
        rest = self._combined(beyond) if beyond else None
        return CollectedTable(table.counted, {}, None, rest, truncated=True, errors=table.errors)

    def _combined(self, rows: Sequence[CollectedRow]) -> CollectedRow:
        count = min(sum(row.count for row in rows), COUNT_MAX)
        if self._selects:
            return CollectedRow(
                count, (min(row.cells[0] for row in rows),) if rows[0].cells else ()
            )
        pairs = enumerate(zip(self._kinds, self._fields, strict=True))
        return CollectedRow(
            count, tuple(kind.merge([row.cells[at] for row in rows], f) for at, (kind, f) in pairs)
        )

    def _times(self, row: CollectedRow, count: int) -> CollectedRow:
        if self._selects:
            return CollectedRow(min(row.count * count, COUNT_MAX), row.cells)
        pairs = zip(self._kinds, row.cells, strict=True)
        cells = tuple(kind.times(cell, count) for kind, cell in pairs)
        return CollectedRow(min(row.count * count, COUNT_MAX), cells)

    def _cut(self, table: CollectedTable, limit: int, *, truncated: bool = False) -> CollectedTable:
        """Keep the first so many rows, and none beyond what is whole."""
        cut = table.cut
        if len(table.rows) > limit:
            ranked = sorted(table.rows)
            last = ranked[limit - 1] if limit else b""
            cut = last if cut is None else min(cut, last)
        elif cut is None or all(key <= cut for key in table.rows):
            return table
        kept = {key: row for key, row in table.rows.items() if key <= cut and limit}
        beyond = [row for key, row in table.rows.items() if key not in kept]
        if self._selects:
            beyond = [CollectedRow(row.count, ()) for row in beyond]
        if table.rest is not None:
            beyond.append(table.rest)
        rest = self._combined(beyond)
        return CollectedTable(
            table.counted, kept, cut, rest, table.truncated or truncated, table.errors
        )

    def _said(self, table: CollectedTable) -> _Table:
        return _Table(
            table.counted,
            tuple(self._said_row(key, table.rows[key]) for key in sorted(table.rows)),
            table.cut,
            None if table.rest is None else self._said_row(b"", table.rest),
            table.truncated,
            tuple(table.errors[place] for place in sorted(table.errors)),
        )

    def _said_row(self, key: bytes, row: CollectedRow) -> _Row:
        if self._selects:
            return _Row(key, row.count, row.cells)
        pairs = zip(self._kinds, row.cells, strict=True)
        return _Row(key, row.count, tuple(kind.write(cell) for kind, cell in pairs))

    def _read_row(self, row: _Row) -> CollectedRow:
        if row.count > COUNT_MAX or len(row.key) > KEY_MAX_BYTES:
            raise CodecError("", "a row out of bounds")
        if self._selects:
            if len(row.cells) > 1:
                raise CodecError("", "a row of more than its columns")
            return CollectedRow(row.count, row.cells)
        if len(row.cells) != len(self._kinds):
            raise CodecError("", f"{len(row.cells)} columns instead of {len(self._kinds)}")
        pairs = zip(self._kinds, row.cells, strict=True)
        return CollectedRow(row.count, tuple(kind.read(cell) for kind, cell in pairs))


def _both(first: ColumnError, second: ColumnError) -> ColumnError:
    least = min(first, second, key=lambda item: (item.who, item.text))
    count = min(first.count + second.count, COUNT_MAX)
    return with_fields(least, count=count)


def _check_error(error: ColumnError) -> None:
    texts = (error.column, error.text)
    if any(len(text.encode()) > TEXT_MAX_BYTES for text in texts):
        raise RecordRefused(f"a text over {TEXT_MAX_BYTES} bytes")
    if error.count > COUNT_MAX or len(error.who) > KEY_MAX_BYTES:
        raise RecordRefused("an error out of bounds")
