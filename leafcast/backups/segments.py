"""Which pieces of former backups serve again, and what is left to be read and written.

A segment holds messages of one stream, and never changes. A message that was overwritten since lies
in it still, until more than half of a segment is such.

A stream whose disk went back writes other messages under numbers that it used before. These came at
another time: a segment that has one of another time than the stream serves no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from leafcast.backups.stored_messages import runs_of, sequences_of

SEGMENT_BYTES = 4 * 1024 * 1024
"""Of messages; one more may take it above that."""
SMALL_BYTES, SMALL_MAX = 256 * 1024, 16
"""So many small segments of a stream may be there before they become one."""
ALIVE_MIN = 0.5


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece with messages of a stream."""

    piece: str
    # SHA-256 of what is in it, in hex.
    digest: str
    # What the piece takes in its folder, in bytes.
    size: int
    # Ascending.
    sequences: Sequence[int]
    # When the stream took each of them, ms since 1970.
    times: Sequence[int]


@dataclass(frozen=True, slots=True)
class StreamCatalog:
    """What is known of the pieces of one stream."""

    # When the stream was made: another one of the same name shares no sequence with it.
    created: str
    segments: Sequence[Segment] = ()

    def form(self) -> dict[str, Any]:
        """As JSON."""
        segments = [
            [it.piece, it.digest, it.size, runs_of(it.sequences), _steps(it.times)]
            for it in self.segments
        ]
        return {"created": self.created, "segments": segments}

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> StreamCatalog:
        """What JSON says; raises ValueError, KeyError or TypeError."""
        # Former releases noted no times: of those nothing serves again.
        segments = [
            Segment(
                str(piece),
                str(digest),
                int(size),
                tuple(sequences_of(runs)),
                tuple(accumulate(map(int, steps))),
            )
            for piece, digest, size, runs, steps in form["segments"]
        ]
        if any(len(it.sequences) != len(it.times) for it in segments):
            raise ValueError("not each message has a time")
        return cls(str(form["created"]), segments)


def reusable(
    known: StreamCatalog | None,
    created: str,
    alive: Mapping[int, int],
    there: Mapping[str, int],
) -> list[Segment]:
    """The segments that serve again for the messages that are alive.

    `alive` says of each sequence when the stream took it, in ms since 1970, and `there` of each
    piece in the folder what it takes.
    """
    if known is None or known.created != created:
        return []
    found = [it for it in known.segments if there.get(it.piece) == it.size]
    found = [it for it in found if _serves(it, alive)]
    small = [it for it in found if it.size < SMALL_BYTES]
    if len(small) > SMALL_MAX:
        found = [it for it in found if it.size >= SMALL_BYTES]
    return found


def left_to_read(segments: Sequence[Segment], alive: Collection[int]) -> frozenset[int]:
    """The messages that no segment holds."""
    return frozenset(alive).difference(*(it.sequences for it in segments))


def alive_in(segment: Segment, alive: Collection[int]) -> list[int]:
    """Which of its messages count, ascending."""
    return [sequence for sequence in segment.sequences if sequence in alive]


def _serves(segment: Segment, alive: Mapping[int, int]) -> bool:
    known = zip(segment.sequences, segment.times, strict=True)
    same = [alive[sequence] == time_ms for sequence, time_ms in known if sequence in alive]
    return all(same) and len(same) >= ALIVE_MIN * len(segment.sequences)


def _steps(times: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise((0, *times))]
