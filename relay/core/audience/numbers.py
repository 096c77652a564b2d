"""Sets of numbers: Python's own where they are few, roaring bitmaps where they are many.

A node without children has one destination, for which it would load libraries of 2 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

FEW_MAX = 64
"""So many numbers are a set of Python, which is as fast and not much larger."""


class Numbers(Protocol):
    """What is asked of either kind. Two that meet are of one kind."""

    def __len__(self) -> int: ...
    def __contains__(self, number: Any, /) -> bool: ...
    def __iter__(self) -> Iterator[int]: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __or__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __xor__(self, other: Any, /) -> Any: ...
    def add(self, number: int, /) -> None: ...
    def discard(self, number: int, /) -> None: ...
    def copy(self) -> Any: ...


MakeNumbers: TypeAlias = Callable[..., Numbers]
"""Makes a set of no number, or of those that it is given."""

FEW: MakeNumbers = set


def many() -> MakeNumbers:
    """Makes bitmaps, whose library is loaded here."""
    from pyroaring import BitMap  # noqa: PLC0415

    return BitMap


def in_order(numbers: Numbers) -> Iterable[int]:
    """The least number first."""
    return sorted(numbers) if isinstance(numbers, set) else numbers


def union(parts: Sequence[Numbers]) -> Numbers:
    """What is in any of them, one at least; not to be changed."""
    made: Numbers = parts[0] if len(parts) == 1 else type(parts[0]).union(*parts)  # type: ignore[attr-defined]
    return made


def between(numbers: Numbers, start: int, stop: int) -> int:
    """How many of them are `start` or above, and below `stop`."""
    if isinstance(numbers, set):
        return sum(start <= number < stop for number in numbers)
    found: int = numbers.range_cardinality(start, stop)  # type: ignore[attr-defined]
    return found


def rank_in(numbers: Numbers) -> Callable[[int], int]:
    """Tells how many of them are a number or below."""
    if isinstance(numbers, set):
        return lambda last: sum(number <= last for number in numbers)
    rank: Callable[[int], int] = numbers.rank  # type: ignore[attr-defined]
    return rank
