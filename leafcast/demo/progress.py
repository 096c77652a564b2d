"""How far a demo has come: figures and step times, from what the tree shows and nothing else.

All counts are of destinations. A destination is synced once all placements on it are; but the
centre is told counts for each placement, not for each destination. With several placements, as many
destinations lack something as lack it of the placement that lacks most: where all placements go to
the same destinations that is the minimum over them, and nothing is done before all of them are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leafcast.demo.workload import Workload
from leafcast.local.views import PlacementView, TreeShape, TreeView
from schemas.values.wording import some_of

EXCEPTIONS_MAX = 10
NODES_NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of destinations; `complete` if they are exact and none is still to be told of."""

    destinations: int
    synced: int
    healthy: int
    complete: bool

    @property
    def all_synced(self) -> bool:
        return self.complete and self.destinations > 0 and self.synced >= self.destinations

    @property
    def all_healthy(self) -> bool:
        return self.all_synced and self.healthy >= self.destinations


@dataclass(slots=True)
class DemoProgress:
    """One run's steps; times are monotonic seconds, None for what has not come to be."""

    shape: TreeShape
    workload: Workload
    # When the program began to start servers.
    began: float
    up: float | None = None
    # Just before the first object went to the centre.
    applied: float | None = None
    synced: float | None = None
    healthy: float | None = None

    def observe(self, view: TreeView, now: float) -> None:
        """Note what has come to be; a step once done stays done."""
        if self.applied is None:
            return
        figures = self.figures(view)
        if self.synced is None and figures.all_synced:
            self.synced = now
        if self.healthy is None and figures.all_healthy:
            self.healthy = now

    def figures(self, view: TreeView) -> Figures:
        """The counts of all placements as one (see the module)."""
        shown = {placement.name: placement for placement in view.placements}
        found = [shown[name] for name in self.workload.placements if name in shown]
        told = len(found) == len(self.workload.placements)
        destinations = max((placement.destinations for placement in found), default=0)
        unsynced = max((p.destinations - p.synced for p in found), default=0)
        unhealthy = max((p.destinations - p.healthy for p in found), default=0)
        return Figures(
            destinations=destinations or self.shape.destinations,
            synced=max(destinations - unsynced, 0) if told else 0,
            healthy=max(destinations - unhealthy, 0) if told else 0,
            complete=told and all(map(self._told, found)),
        )

    def seconds(self) -> dict[str, float | None]:
        """How long each step took, to the millisecond."""
        return {
            "tree_up": _between(self.began, self.up),
            "apply_to_all_synced": _between(self.applied, self.synced),
            "apply_to_all_healthy": _between(self.applied, self.healthy),
        }

    def document(self, view: TreeView) -> dict[str, Any]:
        """The result, as the demo says it in JSON. Mail with the index is not counted."""
        figures = self.figures(view)
        return {
            "destinations": figures.destinations,
            "synced": figures.synced,
            "healthy": figures.healthy,
            "mail_written_by_centre": mail_written_by_centre(view),
            "seconds": self.seconds(),
        }

    def missing(self, view: TreeView) -> Iterator[str]:
        """What has not come to be, a line each, the worst exceptions last."""
        if self.up is None:
            yield from self._nodes_missing(view)
            return
        shown = {placement.name: placement for placement in view.placements}
        for name in self.workload.placements:
            placement = shown.get(name)
            if placement is None:
                yield f"placement {name}: the centre has not sent it out yet"
            elif not placement.destinations:
                remedy = "locations here have the labels region: region-1 and id: region-1-site-1"
                yield f"placement {name}: no location matches its locationSelectors; {remedy}"
            elif not (self._told(placement) and has_all(placement)):
                yield lacking(placement)
                yield from (f"  {said}" for said in placement.exceptions[:EXCEPTIONS_MAX])

    def _nodes_missing(self, view: TreeView) -> Iterator[str]:
        waiting = [node.path for node in view.nodes if not node.up]
        up = sum(node.up for node in view.nodes)
        yield f"the tree is not up: {up} of {self.shape.nodes} nodes are in session"
        if waiting:
            yield f"  waiting: {some_of(waiting, NODES_NAMED_MAX)}"

    def _told(self, placement: PlacementView) -> bool:
        """Whether the counts are exact, and include all destinations that are known beforehand."""
        at_least = self.shape.destinations if placement.name in self.workload.everywhere else 1
        return placement.complete and placement.destinations >= at_least


def has_all(placement: PlacementView) -> bool:
    """Whether all destinations are delivered to and working."""
    return min(placement.synced, placement.healthy) >= placement.destinations


def lacking(placement: PlacementView) -> str:
    """One line on a placement that is not everywhere yet."""
    total = placement.destinations
    said = f"placement {placement.name}: of {total} destinations {placement.synced} are synced and "
    said += f"{placement.healthy} healthy"
    return said if placement.complete else f"{said}; some have not reported yet"


def mail_written_by_centre(view: TreeView) -> int:
    """Messages that the centre wrote to its children's mailboxes, without the index."""
    return sum(node.mail_written for node in view.nodes if node.role == "centre")


def seconds_text(seconds: float | None) -> str:
    """A duration for people: `0.42 s`, `12.3 s`, `-` for None."""
    if seconds is None:
        return "-"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 3)
