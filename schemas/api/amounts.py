"""Fields that hold a number of destinations, or a share of them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, PlainValidator, WithJsonSchema

from schemas.records.shares import checked_amount, checked_share

Share = Annotated[str, AfterValidator(checked_share)]
Amount = Annotated[Any, PlainValidator(checked_amount), WithJsonSchema({})]
"""A number of destinations, or a share of them such as `2%`."""
