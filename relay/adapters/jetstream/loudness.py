"""Who says so much that it is read by itself: by what came in a second, and by all else in it."""

from __future__ import annotations

from collections import Counter

LOUD_WORDS = 1_000
"""An edge says a few in a second, and a relay with thousands of placements about as many."""
LOUD_BYTES = 4 * 1024 * 1024
WORD_BYTES = LOUD_BYTES // LOUD_WORDS
LOUD_SHARE = 8
"""Nobody is loud who said less than one in so many."""
WINDOW_SECONDS = 1.0


class Loudness:
    """What each child said in this second; times are monotonic seconds."""

    def __init__(self) -> None:
        self._began = float("-inf")
        self._said = Counter[str]()
        self._all = 0

    def heard(self, child: str, size: int, now: float) -> bool:
        """A word of so many bytes came; whether its child is loud."""
        if now - self._began >= WINDOW_SECONDS:
            self._began, self._all = now, 0
            self._said.clear()
        # Many bytes are as much work as many words.
        weight = WORD_BYTES + size
        self._all += weight
        self._said[child] += weight
        said = self._said[child]
        return said > LOUD_BYTES and said * LOUD_SHARE >= self._all
