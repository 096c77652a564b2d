"""What a person is shown of a running tree: plain values, made by the tree, drawn by the views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.values.identity import NodePath

REGIONS_MAX = 16
SITES_MAX = 64
DEPTH_MIN, DEPTH_MAX = 3, 8
SERVERS_MAX = 128
TIMEOUT_SECONDS_MAX = 3600.0
"""What one machine is asked to carry, and how long anyone waits for it to come up."""


@dataclass(frozen=True, slots=True)
class TreeShape:
    """How a demo's tree is laid out: `depth` tiers in all, 3 being centre, regions and sites.

    Tiers beyond the third are added between region and site, one relay below each region's.
    """

    regions: int = 2
    sites: int = 3
    depth: int = 3

    @property
    def destinations(self) -> int:
        return self.regions * self.sites

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> TreeShape:
        """What a form of a tree says; raises ValueError, KeyError or TypeError."""
        return cls(*map(int, form["shape"]))

    def form(self) -> dict[str, Any]:
        """It as `tree.json` says it."""
        return {"shape": [self.regions, self.sites, self.depth]}

    @property
    def nodes(self) -> int:
        """All places of the tree; each has a nats-server."""
        return 1 + self.regions * (self.depth - 2) + self.destinations

    def servers(self, members: int) -> int:
        """How many there are where the centre and each relay have so many members."""
        return self.nodes + (members - 1) * (1 + len(self.relays()))

    def tiers(self) -> list[list[NodePath]]:
        """The nodes below the centre, tier by tier."""
        if not self.regions:
            return []
        tier = [NodePath((f"region-{n}",)) for n in range(1, self.regions + 1)]
        tiers = [tier]
        for depth in range(self.depth - 3):
            tier = [path.child(f"area-{depth + 1}") for path in tier]
            tiers.append(tier)
        sites = range(1, self.sites + 1)
        tiers.append([path.child(f"site-{n}") for path in tier for n in sites])
        return tiers

    def relays(self) -> tuple[NodePath, ...]:
        """The nodes below the centre that have others below them, parents first."""
        return tuple(path for tier in self.tiers()[:-1] for path in tier)

    def edges(self) -> list[NodePath]:
        """The sites, each with a cluster."""
        return next(iter(self.tiers()[-1:]), [])


CENTRE_ALONE = TreeShape(0, 1, DEPTH_MIN)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node: `role` is centre, relay or edge; `up` once it is in session with its parent."""

    path: str
    role: str
    up: bool
    mail_written: int
    blobs_kept: int
    objects_applied: int


@dataclass(frozen=True, slots=True)
class PlacementView:
    """One placement, as the centre knows it; counts are of destinations."""

    name: str
    destinations: int
    states: Mapping[str, int]
    health: Mapping[str, int]
    complete: bool
    exceptions: tuple[str, ...] = ()

    @property
    def synced(self) -> int:
        return self.states.get("synced", 0)

    @property
    def healthy(self) -> int:
        return self.health.get("healthy", 0)


@dataclass(frozen=True, slots=True)
class TreeView:
    """The whole tree at a moment, the centre first, children after their parents."""

    nodes: tuple[NodeRow, ...]
    placements: tuple[PlacementView, ...]
