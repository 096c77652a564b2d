"""What a group keeps for each combined column, and how two of them become one.

Every merge is associative and commutative, to the bit: sums are integers in units of the least
double there is, and rounded by whoever shows them. Of TOP and DISTINCT the first of a fixed order
are kept, of QUANTILE the highest buckets; what merging drops was dropped by whoever dropped it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from schemas.reports.collectors import (
    BUCKETS_MAX,
    DISTINCT_HASHES,
    TOP_MAX,
    CombinedField,
    FieldType,
)
from schemas.reports.reports import COUNT_MAX
from schemas.values import codec
from schemas.values.ordered_values import pack_values
from schemas.values.refusals import CodecError

UNIT_BITS = 1074
"""An integer here says so many times the least double: each double is one of these."""
NUMBER_MAX_BYTES = 300
HASH_BYTES = 8
BUCKET_MAX = 1 << 21

CellValue = Any
"""Of a type of its own for each type of field; hashable, and the same however it was made."""


class CellSample(NamedTuple):
    """What one row gives for a column: a number in units, a QUANTILE's bucket, or any value."""

    number: int | None = None
    bucket: int | None = None
    value: Any = None


def in_units(number: float) -> int:
    """A finite number, exactly."""
    top, bottom = number.as_integer_ratio()
    return top * ((1 << UNIT_BITS) // bottom)


def from_units(units: int) -> float:
    """The nearest double; infinite if there is none so large."""
    return _nearest(Fraction(units, 1 << UNIT_BITS))


def average(cell: CellValue) -> float:
    """The exact average of an AVG that has values, rounded once."""
    units, count = cell
    return _nearest(Fraction(units, count << UNIT_BITS))


def _nearest(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def quantile_bucket(cell: CellValue, rank: Fraction) -> int | None:
    """The bucket in which a QUANTILE's value of this rank (0 to 1) lies; None without values."""
    total = sum(count for _, count in cell)
    if not total:
        return None
    wanted, seen = rank * (total - 1), 0
    for bucket, count in cell:
        seen += count
        if seen > wanted:
            return int(bucket)
    return int(cell[-1][0])


def is_upper_bound(cell: CellValue, bucket: int | None) -> bool:
    """Whether lower buckets than this one of a QUANTILE may be counted in it, for want of room."""
    # Whoever dropped some kept as many as there may be, and so do all who merge that.
    return len(cell) == BUCKETS_MAX and bucket == cell[0][0]


def distinct_estimate(cell: CellValue) -> int:
    """How many values there were, exactly if they are few."""
    if len(cell) < DISTINCT_HASHES:
        return len(cell)
    highest: int = cell[-1]
    return (DISTINCT_HASHES - 1) * (1 << 8 * HASH_BYTES) // highest


class CellKind(NamedTuple):
    """How one type of field is made, merged, multiplied, written and read."""

    of: Callable[[CellSample, bytes], CellValue]
    merge: Callable[[Sequence[CellValue], CombinedField], CellValue]
    times: Callable[[CellValue, int], CellValue]
    write: Callable[[CellValue], bytes]
    read: Callable[[bytes], CellValue]


def _number_bytes(units: int) -> bytes:
    if not units:
        return b"\0\0\0"
    shift = (units & -units).bit_length() - 1
    odd = units >> shift
    return shift.to_bytes(2, "big") + odd.to_bytes(odd.bit_length() // 8 + 1, "big", signed=True)


def _read_number(raw: bytes) -> int:
    if not 2 < len(raw) <= NUMBER_MAX_BYTES:
        raise CodecError("", f"a number of {len(raw)} bytes")
    shift = int.from_bytes(raw[:2], "big")
    if shift > 2 * UNIT_BITS:
        raise CodecError("", "a number that no double comes near")
    return int.from_bytes(raw[2:], "big", signed=True) * (1 << shift)


def _write_average(cell: CellValue) -> bytes:
    units, count = cell
    return codec.pack([_number_bytes(units), count])


def _items(raw: bytes, most: int) -> Sequence[Any]:
    listed = codec.unpack(raw)
    if not isinstance(listed, tuple) or len(listed) > most:
        raise CodecError("", f"not a list of at most {most}")
    return listed


def _read_average(raw: bytes) -> CellValue:
    match _items(raw, 2):
        case (bytes(number), int(count)) if 0 <= count <= COUNT_MAX:
            return _read_number(number), count
        case _:
            raise CodecError("", "not a sum and a count")


def _of_average(sample: CellSample, _who: bytes) -> CellValue:
    return (0, 0) if sample.number is None else (sample.number, 1)


def _merge_buckets(cells: Sequence[CellValue], _field: CombinedField) -> CellValue:
    counts: dict[int, int] = {}
    for cell in cells:
        for bucket, count in cell:
            counts[bucket] = counts.get(bucket, 0) + count
    ranked = sorted(counts.items())
    if len(ranked) > BUCKETS_MAX:
        low, ranked = ranked[:-BUCKETS_MAX], ranked[-BUCKETS_MAX:]
        ranked[0] = (ranked[0][0], ranked[0][1] + sum(count for _, count in low))
    return tuple(ranked)


def _of_bucket(sample: CellSample, _who: bytes) -> CellValue:
    return () if sample.bucket is None else ((sample.bucket, 1),)


def _write_pairs(cell: CellValue) -> bytes:
    return codec.pack([list(pair) for pair in cell])


def _read_buckets(raw: bytes) -> CellValue:
    pairs = _items(raw, BUCKETS_MAX)
    for pair in pairs:
        match pair:
            case (int(bucket), int(count)) if abs(bucket) <= BUCKET_MAX and 0 < count <= COUNT_MAX:
                pass
            case _:
                raise CodecError("", "not a bucket and its count")
    _ascend([pair[0] for pair in pairs])
    return pairs


def _merge_top(cells: Sequence[CellValue], field: CombinedField) -> CellValue:
    entries = {entry for cell in cells for entry in cell}
    return tuple(sorted(entries, key=lambda entry: (-entry[0], entry[1]))[: field.top])


def _of_top(sample: CellSample, who: bytes) -> CellValue:
    return () if sample.number is None else ((sample.number, who),)


def _write_top(cell: CellValue) -> bytes:
    return codec.pack([[_number_bytes(units), who] for units, who in cell])


def _read_top(raw: bytes) -> CellValue:
    found = []
    for entry in _items(raw, TOP_MAX):
        match entry:
            case (bytes(number), bytes(who)):
                found.append((_read_number(number), who))
            case _:
                raise CodecError("", "not a number and who says it")
    return tuple(found)


def _merge_hashes(cells: Sequence[CellValue], _field: CombinedField) -> CellValue:
    return tuple(sorted({each for cell in cells for each in cell})[:DISTINCT_HASHES])


def _of_hash(sample: CellSample, _who: bytes) -> CellValue:
    if sample.value is None:
        return ()
    digest = hashlib.sha256(pack_values([sample.value])).digest()
    return (int.from_bytes(digest[:HASH_BYTES], "big"),)


def _write_hashes(cell: CellValue) -> bytes:
    return b"".join(each.to_bytes(HASH_BYTES, "big") for each in cell)


def _read_hashes(raw: bytes) -> CellValue:
    if len(raw) % HASH_BYTES or len(raw) > DISTINCT_HASHES * HASH_BYTES:
        raise CodecError("", "not a list of hashes")
    starts = range(0, len(raw), HASH_BYTES)
    found = tuple(int.from_bytes(raw[at : at + HASH_BYTES], "big") for at in starts)
    _ascend(found)
    return found


def _ascend(listed: Sequence[int]) -> None:
    if any(first >= second for first, second in pairwise(listed)):
        raise CodecError("", "not in ascending order")


def _known(cells: Sequence[CellValue]) -> list[int]:
    return [cell for cell in cells if cell is not None]


def _same(cell: CellValue, _count: int) -> CellValue:
    return cell


_LEAST = CellKind(
    of=lambda sample, _who: sample.number,
    merge=lambda cells, _field: min(_known(cells), default=None),
    times=_same,
    write=lambda cell: b"" if cell is None else _number_bytes(cell),
    read=lambda raw: _read_number(raw) if raw else None,
)
CELLS: Mapping[FieldType, CellKind] = {
    "COUNT": CellKind(
        of=lambda _sample, _who: None,
        merge=lambda _cells, _field: None,
        times=_same,
        write=lambda _cell: b"",
        read=lambda _raw: None,
    ),
    "SUM": CellKind(
        of=lambda sample, _who: sample.number or 0,
        merge=lambda cells, _field: sum(cells),
        times=lambda cell, count: cell * count,
        write=_number_bytes,
        read=_read_number,
    ),
    "AVG": CellKind(
        of=_of_average,
        merge=lambda cells, _field: (
            sum(units for units, _ in cells),
            min(sum(count for _, count in cells), COUNT_MAX),
        ),
        times=lambda cell, count: (cell[0] * count, cell[1] * count),
        write=_write_average,
        read=_read_average,
    ),
    "MIN": _LEAST,
    "MAX": _LEAST._replace(merge=lambda cells, _field: max(_known(cells), default=None)),
    "QUANTILE": CellKind(
        of=_of_bucket,
        merge=_merge_buckets,
        times=lambda cell, count: tuple((bucket, each * count) for bucket, each in cell),
        write=_write_pairs,
        read=_read_buckets,
    ),
    "TOP": CellKind(of=_of_top, merge=_merge_top, times=_same, write=_write_top, read=_read_top),
    "DISTINCT": CellKind(
        of=_of_hash, merge=_merge_hashes, times=_same, write=_write_hashes, read=_read_hashes
    ),
}
