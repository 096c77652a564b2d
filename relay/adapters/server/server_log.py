"""What a nats-server says in its log, and of whom: who connects has it say what he likes there.

He needs no key for that: who is not let in is named. So a line is believed only as what the server
says of itself, or of a link that it dialled; and no flood of others pushes these out.
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
"""Of a message what comes behind its first line: it may be anybody's."""


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

    @property
    def lines(self) -> list[str]:
        """In the order in which they were said."""
        return [line for _, line in merge(self._own.copy(), self._others.copy())]

    def take(self, message: str) -> Said:
        """Keep a message, and tell what it says.

        A line break in it is of whoever is quoted: what follows is shown as what it is.
        """
        first, *more = message.rstrip("\n").split("\n")
        said = said_in(first)
        if said.dialled:
            self._dialled.append(said.link)
        kept = self._own if not said.link or said.link in self._dialled else self._others
        for line in (first, *(_MORE + line for line in more)):
            self._count += 1
            kept.append((self._count, line))
        return said
