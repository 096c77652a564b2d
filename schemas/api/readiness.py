"""When a placement counts as ready though not all of its destinations can be reached."""

from __future__ import annotations

from schemas.api.amounts import Amount
from schemas.api.shared import ApiValue

MAX_UNAVAILABLE = "10%"


class Readiness(ApiValue):
    """What may be away, or empty, while the condition Ready is True."""

    max_unavailable: Amount = MAX_UNAVAILABLE
    """How many destinations may be unreachable, or which share of them, rounded down: 10% if
    absent."""
    allow_empty: bool = False
    """Whether it is ready while it selects no destination, or no object."""
