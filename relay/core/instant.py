"""A moment, as decisions are told of it: apart from events, for those who need no other."""

from __future__ import annotations

from typing import NamedTuple


class Instant(NamedTuple):
    """A reading of the node's clocks."""

    # Only ever grows.
    seconds: float
    # Since 1970.
    wall_ms: int
