"""Writes what a node notes to the log, of each reason so much that nobody can flush the rest."""

from __future__ import annotations

import logging

from relay.core.effects import Noted
from relay.ports import Clock
from schemas.identity import NodePath

LINES_MAX, WINDOW_SECONDS = 20, 60.0
"""How many lines of one reason are written in a while."""

log = logging.getLogger("leafcast.relay")


class NoteLog:
    """Of each reason: since when the while counts, and what was noted in it."""

    def __init__(self, path: NodePath, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._noted: dict[str, tuple[float, int]] = {}

    def write(self, noted: Noted) -> None:
        now = self._clock.now().seconds
        since, count = self._noted.get(noted.reason, (now, 0))
        if now - since >= WINDOW_SECONDS:
            if count > LINES_MAX:
                self._line(noted.reason, "", f"{count - LINES_MAX} more like these")
            since, count = now, 0
        self._noted[noted.reason] = since, count + 1
        if count < LINES_MAX:
            self._line(noted.reason, noted.subject, noted.detail)

    def _line(self, reason: str, subject: str, detail: str) -> None:
        log.info("%s: %s: %s: %s", self._path, reason, subject, detail)
