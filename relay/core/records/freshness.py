"""Whether the view that the parent shows is an old one, by the node's own monotonic clock."""

from __future__ import annotations

from schemas.records.snapshots import NO_SNAPSHOT, SnapshotRecord

STALE_AFTER_SECONDS = 1200.0


class ViewAge:
    """How far the newest snapshot's time lags, beside the least lag of this run.

    Clocks need not agree: only how the lag grows counts. The centre's may be set back.
    """

    def __init__(self, now: float) -> None:
        self._started = now
        self._rank = NO_SNAPSHOT
        # Seconds of the newest snapshot's own time, and the least that ours was ahead of one.
        self._newest: float | None = None
        self._least = 0.0

    def observe(self, record: SnapshotRecord, now: float) -> None:
        """A verified snapshot was shown."""
        if record.rank <= self._rank:
            return
        time, former = record.time_ms / 1000, self._newest
        if former is None or time < former:
            self._least = now - time
        self._rank, self._newest = record.rank, time
        self._least = min(self._least, now - time)

    def stale(self, now: float) -> bool:
        """Whether the newest is 20 minutes older than one that a good parent would show."""
        if self._newest is None:
            return now - self._started >= STALE_AFTER_SECONDS
        return now - self._newest - self._least >= STALE_AFTER_SECONDS
