"""Why a node gets no placement: what is issued needs a newer wire than its program speaks. Pure."""

from __future__ import annotations

from schemas.reports.running import ReleaseState

_REMEDIES = {
    ReleaseState.ELSEWHERE: "no launcher runs it: install the release as this one was installed",
    ReleaseState.UNPINNED: "its owner pinned no publisher; there, do: leafcast release pin FILE",
    ReleaseState.IDLE: "no wave of the release admits it: let the release out for it, too",
    ReleaseState.WINDOW: "it waits for the window of its wave",
}


def why_held_back(state: ReleaseState, needed_wire: int) -> str:
    """What a node says of itself that lacks this wire, with the remedy; "" if it says enough.

    `needed_wire` is 0 if it lacks none.
    """
    if not needed_wire or state not in _REMEDIES:
        return ""
    said = f"it gets no placement: what is issued needs wire {needed_wire}, which it does not speak"
    return f"{said}; {_REMEDIES[state]}"
