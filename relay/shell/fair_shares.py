"""Whose words a node takes next, by what each child's words cost the processor lately."""

from __future__ import annotations

from dataclasses import dataclass

ALLOWED_SECONDS = 0.05
"""So much a child may cost before it is heavy."""
ALLOWED_SHARE = 0.02
"""So much of each second is forgiven."""
REMEMBERED_SECONDS = 0.15
"""More than this is not held against a child: it is light again after five seconds."""
HEAVY_SHARE = 0.25
"""Of the time of the processor, while others have work to do."""
SLICE_SECONDS = 0.002
"""What the words of a heavy child in one turn are to cost."""
FIRST_GUESS_SECONDS = 0.0001
"""What a word costs of whom nobody knows it yet."""
_NEWEST_WEIGHT = 0.25


@dataclass(slots=True)
class _Cost:
    """What a child cost lately, as of a moment, and each of its words."""

    seconds: float = 0.0
    at: float = 0.0
    each: float = FIRST_GUESS_SECONDS


class FairShares:
    """Whose words are taken next: who costs little at once, who costs much in what is left.

    What a child costs is the processor's time for its words, without what each turn costs whatever
    is said in it. Beyond an allowance it is heavy: its words are taken in slices, from all heavy
    ones by turns, and while others have work to do they all together have a quarter of the time.
    Nobody waits if the processor would be idle. Costs are seconds of the processor, moments are
    monotonic seconds.
    """

    def __init__(self) -> None:
        self._costs: dict[str, _Cost] = {}
        self._heavy: dict[str, None] = {}
        # What the heavy ones may use before others have used something again.
        self._credit = SLICE_SECONDS

    def heavy(self, now: float) -> list[str]:
        """Who cost more lately than is taken without a wait, by turns."""
        for child in list(self._heavy):
            if _left(self._costs[child], now) <= ALLOWED_SECONDS:
                del self._heavy[child]
        return list(self._heavy)

    @property
    def admits_heavy(self) -> bool:
        """Whether it is the turn of one of the heavy children."""
        return self._credit > 0

    def slice_of(self, child: str) -> int:
        """How many words of a child a turn takes: at least one."""
        cost = self._costs.get(child)
        each = cost.each if cost is not None else FIRST_GUESS_SECONDS
        return max(1, int(SLICE_SECONDS / max(each, 1e-9)))

    def took(self, child: str, words: int, seconds: float, now: float) -> None:
        """So many words of a child, and nothing else, were dealt with in so long."""
        cost = self._costs.get(child)
        if cost is None:
            cost = self._costs[child] = _Cost()
        cost.each += (seconds / max(words, 1) - cost.each) * _NEWEST_WEIGHT
        cost.seconds = min(_left(cost, now) + seconds, REMEMBERED_SECONDS)
        cost.at = now
        if cost.seconds > ALLOWED_SECONDS:
            # It is the last one's turn next.
            self._heavy.pop(child, None)
            self._heavy[child] = None

    def took_heavy(self, seconds: float) -> None:
        """That was the turn of a heavy child, with all that came of it."""
        self._credit = max(self._credit - seconds, -REMEMBERED_SECONDS)

    def others_took(self, seconds: float) -> None:
        """All else took so long."""
        earned = seconds * HEAVY_SHARE / (1 - HEAVY_SHARE)
        self._credit = min(self._credit + earned, SLICE_SECONDS)

    def idle(self) -> None:
        """Nobody else had anything to do."""
        self._credit = SLICE_SECONDS


def _left(cost: _Cost, now: float) -> float:
    return max(0.0, cost.seconds - ALLOWED_SHARE * max(0.0, now - cost.at))
