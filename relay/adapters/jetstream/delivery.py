"""Where a delivered message stands, read from its acknowledgement subject."""

from __future__ import annotations

from dataclasses import dataclass

_COUNTS, _DIGITS_MAX = 5, 19
NO_COUNT = -1
_PLAIN_TOKENS = 9
"""`$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`; with a
domain and an account hash after `ACK`, and perhaps a token at the end, there are 11 or more."""


@dataclass(frozen=True, slots=True)
class Place:
    """The stream's sequence, the consumer's own count of deliveries, and what is yet to come."""

    sequence: int
    delivery: int
    pending: int


def place_of(reply: str) -> Place | None:
    """Read an acknowledgement subject; None if it is none."""
    tokens = reply.split(".")
    if len(tokens) < _PLAIN_TOKENS or tokens[:2] != ["$JS", "ACK"]:
        return None
    counts = tokens[4:9] if len(tokens) == _PLAIN_TOKENS else tokens[6:11]
    if len(counts) != _COUNTS:
        return None
    _, sequence, delivery, _, pending = map(count_of, counts)
    if min(sequence, delivery, pending) < 0:
        return None
    return Place(sequence, delivery, pending)


def count_of(text: str) -> int:
    """A count as servers write it; NO_COUNT for anything else."""
    known = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
    return int(text) if known else NO_COUNT
