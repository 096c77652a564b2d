"""Selectors of a placement that match nobody: mostly a slip, which others beside them hide."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from controllers.core.rollout.waves import labels_text
from schemas.records.records import OVER_LOCATION, Alternative

AlternativeMatches = Callable[[Alternative], bool]
"""Whether an alternative means any destination that there is."""


def empty_selectors(meant: Sequence[Alternative], matches: AlternativeMatches) -> tuple[str, ...]:
    """Those that match nobody, as long as another one matches somebody.

    That all of them match nobody is told otherwise, and may be meant.
    """
    found = [matches(each) for each in meant]
    if not any(found):
        return ()
    return tuple(_text(at, each) for at, each in enumerate(meant) if not found[at])


def _text(at: int, alternative: Alternative) -> str:
    labels = labels_text(alternative.selector)
    if alternative.over == OVER_LOCATION:
        return f"spec.locationSelectors[{at}] ({labels}) matches no Location that has a SyncTarget"
    return f"spec.clusterSelectors[{at}] ({labels}) matches no SyncTarget"
