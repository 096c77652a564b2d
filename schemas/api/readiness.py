"""When a placement counts as ready though not all of its destinations can be reached."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator, WithJsonSchema

from schemas.api.shared import ApiValue
from schemas.records.shares import checked_amount, checked_share

Share = Annotated[str, AfterValidator(checked_share)]
Amount = Annotated[Any, PlainValidator(checked_amount), WithJsonSchema({})]
"""A number of destinations, or a share of them such as `2%`."""
MAX_UNAVAILABLE = "10%"


class Readiness(ApiValue):
    """What may be away, or empty, while the condition Ready is True."""

    max_unavailable: Amount = MAX_UNAVAILABLE
    """How many destinations may be unreachable, or which share of them, rounded down: 10% if
    absent."""
    allow_empty: bool = False
    """Whether it is ready while it selects no destination, or no object."""
