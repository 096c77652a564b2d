"""Watermarks: up to where a node's reports reflect its mail.

A relay passes on what its mail leads to, and waits until the children in step have answered it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class Answers:
    """What one child has still to answer: places in its mailbox, each with its cause in ours."""

    def __init__(self) -> None:
        # Pairs (place in the child's mailbox, cause), both ascending: a later place with an
        # earlier cause makes those before it needless.
        self._due: deque[tuple[int, int]] = deque()

    def expect(self, sequence: int, cause: int) -> None:
        """The child was written at `sequence` because of our mail at `cause`."""
        while self._due and self._due[-1][1] >= cause:
            self._due.pop()
        self._due.append((sequence, cause))

    def answered(self, through: int) -> None:
        """The child's reports reflect its mailbox up to here."""
        while self._due and self._due[0][0] <= through:
            self._due.popleft()

    def first_cause(self) -> int | None:
        """The first place in our mail that is not answered; None if all is."""
        return self._due[0][1] if self._due else None


class Watermark:
    """The highest place in the own mail up to which all is answered; it never falls in a run."""

    def __init__(self) -> None:
        self._incarnation = ""
        self._through = 0

    def advance(self, incarnation: str, judged: int, open_causes: Iterable[int]) -> int:
        """All is judged up to `judged`; what these causes led to is still open."""
        if incarnation != self._incarnation:
            self._incarnation, self._through = incarnation, 0
        for cause in open_causes:
            judged = min(judged, cause - 1)
            if judged <= self._through:
                # Mostly the first child that is asked holds it up: the others need not be.
                return self._through
        self._through = max(self._through, judged)
        return self._through
