"""How a node's link to its parent was, for who looks at the node itself. Pure."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Any, Literal, NamedTuple

CHANGES_MAX = 100
RECENT_MS = 600_000
"""A link that is lost several times within so long comes and goes."""

LinkState = Literal["starting", "in session", "catching up", "not reached", "not let in", "stopped"]
IN_SESSION: LinkState = "in session"

Json = dict[str, Any]


class LinkChange(NamedTuple):
    """From when on the link was like this."""

    at_ms: int
    state: LinkState


class LinkHistory:
    """The last changes of one run."""

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._changes = deque([LinkChange(started_ms, "starting")], maxlen=CHANGES_MAX)
        self._session_ms: int | None = None

    def note(self, state: LinkState, now_ms: int) -> None:
        """It is like this now."""
        before = self._changes[-1].state
        if state == before:
            return
        if before == IN_SESSION:
            self._session_ms = now_ms
        self._changes.append(LinkChange(now_ms, state))

    def form(self, now_ms: int) -> Json:
        """As JSON says it: `lostTimes` within RECENT_MS, `sessionMs` when it was in session last.

        That is None of a run that was in session never, or is.
        """
        listed = list(self._changes)
        now = listed[-1]
        lost = sum(
            before.state == IN_SESSION and now_ms - change.at_ms <= RECENT_MS
            for before, change in pairwise(listed)
        )
        return {
            "state": now.state,
            "sinceMs": now.at_ms,
            "startedMs": self._started_ms,
            "sessionMs": None if now.state == IN_SESSION else self._session_ms,
            "lostTimes": lost,
            "changes": [{"atMs": it.at_ms, "state": it.state} for it in reversed(listed)],
        }
