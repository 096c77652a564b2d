"""When a placement counts as ready though not all of its destinations can be reached."""

from __future__ import annotations

from schemas.api.amounts import Amount
from schemas.api.shared import Value

MAX_UNAVAILABLE = "10%"


class Readiness(Value):
    """What may be away, or empty, while the condition Ready is True."""

    # A share is rounded down.
    max_unavailable: Amount = MAX_UNAVAILABLE
    allow_empty: bool = False
