"""What an edge says beside the merge of a status: of how many copies which generation counts.

A copy's observedGeneration is a number of its own API server, so that the least of several says
nothing. An edge knows whether its copy holds what was sent, and whether that was looked at: these
are counted, by the ways to merge that relays know, under a field that no status has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.values.fields import conditions_of, mapping_at
from schemas.values.merging import CONDITIONS, FIELDS, SAME, MergeNode

FIELD = "leafcast.io/in-force"
CONTENT, COPIES, OBSERVED_BY = "content", "copies", "observed"
WHOLE = ""
"""Under it stands what counts of the status itself, beside the types of its conditions."""
OBSERVED = "observedGeneration"
_NO_TEXTS = ("", "", "")


def in_force_node(status: Any, content: bytes, generation: int) -> MergeNode:
    """How one copy counts: it holds the `content` that was sent, or b"", in its `generation`."""
    observed = {WHOLE: _counted(good=_is_observed(status, generation))}
    for type_, item in conditions_of(status).items():
        if OBSERVED in item:
            observed[type_] = _counted(good=_is_observed(item, generation))
    fields: dict[str, MergeNode] = {
        CONTENT: (SAME, content.hex()),
        COPIES: (CONDITIONS, {WHOLE: _counted(good=bool(content))}),
        OBSERVED_BY: (CONDITIONS, observed),
    }
    return (FIELDS, fields)


def says_generations(status: Any) -> bool:
    """Whether a status says anywhere which generation it is of."""
    match status:
        case Mapping():
            return OBSERVED in status or any(map(says_generations, status.values()))
        case list() | tuple():
            return any(map(says_generations, status))
        case _:
            return False


def _is_observed(said: Any, generation: int) -> bool:
    seen = mapping_at(said).get(OBSERVED)
    if isinstance(seen, str) and seen.isascii() and seen.isdecimal():
        seen = int(seen)
    return isinstance(seen, int) and not isinstance(seen, bool) and seen >= generation


def _counted(*, good: bool) -> tuple[Any, ...]:
    """As conditions are counted: how many say False, True and anything else."""
    return (int(not good), int(good), 0, _NO_TEXTS)
