"""What users of the field know and Leafcast does not do yet, by name, so that it can say so.

One table of each sort: once something is there, its entry is taken out, and that is all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PLACEMENT_FIELDS = ("upsync",)


def fields_not_supported(spec: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a placement's spec, as written, that say something and do nothing yet."""
    yield from (f"spec.{field}" for field in _PLACEMENT_FIELDS if spec.get(field))
