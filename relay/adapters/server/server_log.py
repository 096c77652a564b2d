"""What a nats-server says in its log, and of whom: who connects has it say what he likes there.

He needs no key for that: who is not let in is named. So a line is believed only as what the server
says of itself, or of a link that it dialled; and no flood of others pushes these out.

Its log has a form, and ends each message with a line break. When it crashes, its runtime writes
neither: a line comes in pieces, which are put together here, shown, and believed nowhere.
"""

from __future__ import annotations

import re
from collections import deque
from heapq import merge
from typing import NamedTuple

LINES_MAX = 200
"""Of those that say how it is with the server, and of those about others who connect."""
DIALLED_MAX = 16
DIALLED = "Leafnode connection created for account"
_LINE = re.compile(
    r"(?:\[\d+\] \S+ \S+ )?\[[A-Z]{3}\] (?:\S+ - (?P<link>[a-z_]+:\d+) - )?(?P<text>.*)", re.DOTALL
)
QUOTED, _MORE = "quoted", "  | "
"""Of a message what comes behind its first line, and of a crash all: it may be anybody's."""
PIECES_MAX = 64 * 1024
"""Characters of a line that comes in pieces."""
CRASH_LINES_MAX = 16
"""Of a crash the first ones count: what follows is where each of its threads was."""
_CRASHES = ("panic: ", "fatal error: ", "runtime: ", "unexpected fault ", "SIG")


class Said(NamedTuple):
    """A line without its time; `link` is the connection it is about, "" if it is the server."""

    link: str
    text: str

    @property
    def dialled(self) -> bool:
        """Whether the server tells that it dialled this link, as it does first of such a one."""
        return self.link.startswith("lid") and self.text.startswith(DIALLED)


def said_in(line: str) -> Said:
    """What a line says; what has not the form of one is of the server, as when it crashes."""
    if line.startswith(_MORE):
        return Said(QUOTED, line)
    found = _LINE.match(line)
    return Said("", line) if found is None else Said(found["link"] or "", found["text"])


class ServerLog:
    """The last messages of one server, those about strangers apart."""

    def __init__(self) -> None:
        self._count = 0
        self._own: deque[tuple[int, str]] = deque(maxlen=LINES_MAX)
        self._others: deque[tuple[int, str]] = deque(maxlen=LINES_MAX)
        self._dialled: deque[str] = deque(maxlen=DIALLED_MAX)
        # What has no end yet.
        self._pieces = ""
        # How much more is kept of a crash; None before one.
        self._crash_left: int | None = None

    @property
    def lines(self) -> list[str]:
        """In the order in which they were said."""
        last = _shown(self._pieces) if self._pieces else []
        return [line for _, line in merge(self._own.copy(), self._others.copy())] + last

    def take(self, message: str) -> Said:
        """Keep a message, and tell what it says; a piece of one says nothing.

        A line break in it is of whoever is quoted: what follows is shown as what it is.
        """
        if self._pieces and _LINE.match(message):
            # Another thread of a server that crashes: what it says was not said by the crash.
            self._end_pieces()
        if not self._pieces and message.endswith("\n"):
            return self._keep(message)
        self._pieces += message
        if message.endswith("\n") or len(self._pieces) > PIECES_MAX:
            self._end_pieces()
        return Said(QUOTED, message)

    def _end_pieces(self) -> None:
        self._keep(self._pieces)
        self._pieces = ""

    def _keep(self, message: str) -> Said:
        lines = _shown(message)
        said = said_in(lines[0])
        if said.dialled:
            self._dialled.append(said.link)
        if not _LINE.match(message):
            lines = self._of_crash(lines)
        kept = self._own if not said.link or said.link in self._dialled else self._others
        for line in lines:
            self._count += 1
            kept.append((self._count, line))
        return said

    def _of_crash(self, lines: list[str]) -> list[str]:
        """As many as are still to be kept, if the server crashes."""
        if self._crash_left is None and lines[0].startswith(_CRASHES):
            self._crash_left = CRASH_LINES_MAX
        if self._crash_left is None:
            return lines
        lines = [line for line in lines if line.strip()][: self._crash_left]
        self._crash_left -= len(lines)
        return lines


def _shown(message: str) -> list[str]:
    first, *more = message.rstrip("\n").split("\n")
    return [first, *(_MORE + line for line in more)]
