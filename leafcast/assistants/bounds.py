"""An answer that an assistant can take: JSON of a bounded length, its lists cut to fit. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

ANSWER_CHARACTERS_MAX = 40_000
TEXT_CHARACTERS_MAX = 4_000
_LISTED_MAX = 200


def bounded(form: Any) -> str:
    """The value as JSON; what is left out is told in its place."""
    listed = _LISTED_MAX
    while len(text := json.dumps(_cut(form, listed), ensure_ascii=False)) > ANSWER_CHARACTERS_MAX:
        if not listed:
            return text[:ANSWER_CHARACTERS_MAX] + " ... cut: ask for less"
        listed //= 2
    return text


def _cut(value: Any, listed: int) -> Any:
    match value:
        case str() if len(value) > TEXT_CHARACTERS_MAX:
            return value[:TEXT_CHARACTERS_MAX] + " ... cut"
        case Mapping():
            kept = {name: _cut(each, listed) for name, each in [*value.items()][: listed + 1]}
            left = len(value) - len(kept)
            return {**kept, "...": f"{left} more"} if left else kept
        case list() | tuple():
            rest = len(value) - listed
            cut = [_cut(each, listed) for each in value[:listed]]
            return [*cut, f"... and {rest} more"] if rest > 0 else cut
        case _:
            return value
