"""Whether a person works at this place now: then it keeps what it has, and repairs nothing.

Its signed profile says until when. It ends by the place's own clock, whoever can be reached.
"""

from __future__ import annotations

from relay.core.destination.object_outcome import sample
from relay.core.destination.tally import SAMPLES_MAX, PlacementOutcome
from relay.core.instant import Instant
from schemas.records.maintenance import NONE, maintenance_of
from schemas.records.records import Profile
from schemas.reports.reports import Summary
from schemas.reports.states import AT_WORK, MAINTAINED
from schemas.values.wire import replace

WORD = "Maintenance"
LOOK_SECONDS = 60.0
"""A clock may be set: so often it is looked at."""


class PlaceMaintenance:
    """The maintenance of one destination."""

    def __init__(self) -> None:
        self.is_on = False
        self._said = self._told = NONE
        self._due: float | None = None
        self._news = False

    def put(self, profile: Profile | None) -> None:
        """Take what the profile in force says; `look` follows it."""
        self._said = NONE if profile is None else maintenance_of(profile.annotations)

    def look(self, now: Instant) -> bool:
        """Whether it begins or ends now, or something else is said of it."""
        is_on = self._said.is_on(now.wall_ms)
        left = (self._said.until_ms - now.wall_ms) / 1000
        self._due = now.seconds + min(left, LOOK_SECONDS) if is_on else None
        self._news = self._news or is_on != self.is_on
        told = self._said if is_on else NONE
        changes, self.is_on, self._told = told != self._told, is_on, told
        return changes

    def take_news(self) -> bool:
        """Whether what the syncer may do is another than when this was asked last."""
        news, self._news = self._news, False
        return news

    def deadline(self) -> float | None:
        """When to look again, in monotonic seconds."""
        return self._due

    def shown(self, said: PlacementOutcome | None, now_ms: int, path: str) -> Summary:
        """What the place says of a placement; meanwhile it is counted, and not waited for."""
        summary = Summary() if said is None else said.summary(now_ms)
        if not self.is_on or "leaving" in summary.states or not summary.states:
            return summary
        why = sample(AT_WORK, "", f"{WORD}: {self._said}", path)
        return replace(
            summary,
            states={MAINTAINED: 1},
            health={MAINTAINED: 1},
            exceptions=(why, *summary.exceptions)[:SAMPLES_MAX],
        )
