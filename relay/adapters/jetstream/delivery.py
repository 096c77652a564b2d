"""Where a delivered message stands, read from its acknowledgement subject."""

from __future__ import annotations

import re

from schemas.values.value import Value

_DIGITS_MAX = 19
NO_COUNT = -1
_COUNTS = r"\d{1,19}\.(\d{1,19})\.(\d{1,19})\.(\d{1,19})\.(\d{1,19})"
_NANOSECONDS_PER_MS = 1_000_000
_PLACE = re.compile(
    # `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>`; with
    # a domain and an account hash after `ACK`, and perhaps tokens at the end.
    rf"\$JS\.ACK(?:(?:\.[^.]*){{4}}\.{_COUNTS}(?:\..*)?|(?:\.[^.]*){{2}}\.{_COUNTS})\Z",
    re.ASCII | re.DOTALL,
)


class DeliveryPosition(Value, frozen=True):
    """The stream's sequence, the consumer's own count of deliveries, and what is yet to come.

    `time_ms` is when the stream took the message, by its server's clock.
    """

    sequence: int
    delivery: int
    pending: int
    time_ms: int


def place_of(reply: str) -> DeliveryPosition | None:
    """Read an acknowledgement subject; None if it is none."""
    found = _PLACE.match(reply)
    if found is None:
        return None
    sequence, delivery, time, pending = map(int, filter(None, found.groups()))
    return DeliveryPosition(sequence, delivery, pending, time // _NANOSECONDS_PER_MS)


def count_of(text: str) -> int:
    """A count as servers write it; NO_COUNT for anything else."""
    known = text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX
    return int(text) if known else NO_COUNT
