"""Of what a node notes the log has so much that no flood of one thing pushes out the others."""

import logging

import pytest

from relay.core.effects import Noted
from relay.core.instant import Instant
from relay.shell.note_log import LINES_MAX, SUBJECTS_MAX, WINDOW_SECONDS, NoteLog
from schemas.values.identity import NodePath


class Clock:
    seconds = 0.0

    def now(self):
        return Instant(self.seconds, 0)


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, "leafcast.relay")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_child_that_says_junk_hides_no_line_of_another(said):
    clock, junk = Clock(), Noted("BadReport", "evil", "junk")
    log = NoteLog(NodePath(), clock)
    for _ in range(1000):
        log.write(junk)
    log.write(Noted("BadReport", "other", "an old program"))
    assert said() == [
        *["/: BadReport: evil: junk"] * LINES_MAX,
        "/: BadReport: other: an old program",
    ]
    clock.seconds += WINDOW_SECONDS
    log.write(junk)
    assert said()[-2:] == [
        f"/: BadReport: evil: {1000 - LINES_MAX} more like these",
        "/: BadReport: evil: junk",
    ]


def test_subjects_without_end_are_told_apart_no_more(said):
    clock = Clock()
    log = NoteLog(NodePath(), clock)
    for number in range(10_000):
        log.write(Noted("Unreadable", f"own {number}", "damaged"))
    assert len(said()) == SUBJECTS_MAX + LINES_MAX
    log.write(Noted("BadReport", "evil", "junk"))
    assert said()[-1] == "/: BadReport: evil: junk"
    clock.seconds += WINDOW_SECONDS
    log.write(Noted("Unreadable", "own 10000", "damaged"))
    assert len(log._noted) == 1
    assert said()[-2].endswith(f"{10_000 - SUBJECTS_MAX - LINES_MAX} more like these")
