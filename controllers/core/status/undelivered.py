"""What counts of a placement of which the centre cannot send everything in its present form.

Who holds exactly what was sent lacks the rest: an object that never went out is delivered nowhere.
"""

from __future__ import annotations

from schemas.reports.reports import COUNT_MAX, Count, Health, State
from schemas.values.wire import replace

_LACKING: State = "failing"
_NOT_WELL: Health = "unknown"


def undelivered(count: Count) -> Count:
    """The count of a placement whose newest content is at nobody's, as part of it is not sent."""
    states, health = dict(count.summary.states), dict(count.summary.health)
    _move(states, "synced", _LACKING)
    _move(health, "healthy", _NOT_WELL)
    summary = replace(count.summary, states=states, health=health)
    return Count(summary, count.exact, count.waiting_for, count.generation, count.unsaid)


def _move(counts: dict[str, int], before: str, after: str) -> None:
    if moved := counts.pop(before, 0):
        counts[after] = min(counts.get(after, 0) + moved, COUNT_MAX)
