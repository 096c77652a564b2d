"""What benchmarks wait for: that everyone has it, and the count is exact."""

from __future__ import annotations

from schemas.reports.reports import Count


def is_synced(count: Count, destinations: int, former: Count | None = None) -> bool:
    """Whether so many have all of it, and no one has the former content."""
    summary = count.summary
    changed = former is None or summary.arms.keys().isdisjoint(former.summary.arms)
    return count.exact and changed and summary.states == {"synced": destinations}
