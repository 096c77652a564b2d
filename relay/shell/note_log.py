"""What a node noted, for people: lines in the log.

Of each thing so much is written that nobody can flush the rest.
"""

from __future__ import annotations

import logging

from relay.core.effects import Noted
from relay.ports import Clock
from schemas.values.identity import NodePath

LINES_MAX, WINDOW_SECONDS = 20, 60.0
"""How many lines of one reason and subject are written in a while."""
SUBJECTS_MAX = 100
"""So many are told apart at a time; of all others each reason has a while for itself."""

log = logging.getLogger("leafcast.relay")


class NoteLog:
    """Of each reason and subject: since when the while counts, and what was noted in it."""

    def __init__(self, path: NodePath, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._noted: dict[tuple[str, str], tuple[float, int]] = {}

    def write(self, noted: Noted) -> None:
        now = self._clock.now().seconds
        about = self._told_apart(noted, now)
        since, count = self._noted.get(about, (now, 0))
        if now - since >= WINDOW_SECONDS:
            self._end(about, count)
            since, count = now, 0
        self._noted[about] = since, count + 1
        if count < LINES_MAX:
            self._line(noted.reason, noted.subject, noted.detail)

    def _told_apart(self, noted: Noted, now: float) -> tuple[str, str]:
        about = noted.reason, noted.subject
        if about in self._noted or len(self._noted) < SUBJECTS_MAX:
            return about
        for former, (since, count) in list(self._noted.items()):
            if now - since >= WINDOW_SECONDS:
                self._end(former, count)
                del self._noted[former]
        return about if len(self._noted) < SUBJECTS_MAX else (noted.reason, "")

    def _end(self, about: tuple[str, str], count: int) -> None:
        if count > LINES_MAX:
            self._line(*about, f"{count - LINES_MAX} more like these")

    def _line(self, reason: str, subject: str, detail: str) -> None:
        log.info("%s: %s: %s: %s", self._path, reason, subject, detail)
