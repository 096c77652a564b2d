"""How the link to the parent is, by what a node's own server says of it in its log."""

from __future__ import annotations

from collections.abc import Sequence

NOT_LET_IN, AWAY = "authorization violation", "away"
_OPENED = "leafnode connection created"
_LOST = ("error trying to connect as leafnode", "leafnode connection closed")


def trouble_of(log: Sequence[str]) -> str:
    """What was said last about the link; "" if it is open."""
    trouble = ""
    for line in reversed(log):
        said = line.lower()
        if NOT_LET_IN in said:
            return NOT_LET_IN
        if _OPENED in said:
            return trouble
        if any(loss in said for loss in _LOST):
            trouble = AWAY
    return trouble
