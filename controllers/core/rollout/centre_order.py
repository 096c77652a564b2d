"""Whether the centre takes a release before all others or after them, by the wires of both. Pure.

Whoever goes first speaks with those that have not gone yet: each must read what the other says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.releases.release_manifest import CENTRE_FIRST, CENTRE_LAST, ReleaseManifest
from schemas.releases.release_version import age_of, version_order
from schemas.releases.release_wires import Wires


@dataclass(frozen=True, slots=True)
class CentreOrder:
    """`may` are the orders that work; `why_not` says of each other one why it does not."""

    may: tuple[str, ...]
    why_not: Mapping[str, str]

    @property
    def forced(self) -> str:
        """The only order that works; "" if there are two, or none."""
        return self.may[0] if len(self.may) == 1 else ""

    def chosen(self, asked: str) -> str:
        """The order that is asked for, if it works, else the one that does; "" if none does."""
        return asked if asked in self.may else self.forced

    @property
    def why(self) -> str:
        """Why the other order than the only one does not work; "" if there are two, or none."""
        other = CENTRE_LAST if self.forced == CENTRE_FIRST else CENTRE_FIRST
        return self.why_not[other] if self.forced else ""


def centre_order(now: Wires, release: Wires) -> CentreOrder:
    """Which orders work; `now` is what the centre, and so its tree, speaks."""
    why_not = {CENTRE_FIRST: _why_not_first(now, release), CENTRE_LAST: _why_not_last(now, release)}
    return CentreOrder(
        tuple(order for order, why in why_not.items() if not why),
        {order: why for order, why in why_not.items() if why},
    )


def why_no_order(
    now: Wires,
    runs: str,
    release: ReleaseManifest,
    others: Iterable[ReleaseManifest],
) -> str:
    """Why a release cannot go out in either order, and what to go through; "" if it can.

    `runs` is the centre's version, "" if that is not known; `others` are the releases at hand.
    """
    found = centre_order(now, release.wires)
    if found.may:
        return ""
    said = f"it speaks {release.wires}, and the centre {now}"
    return f"{said}: {found.why_not[CENTRE_FIRST]}; {_way(now, runs, release, others)}"


def _why_not_first(now: Wires, release: Wires) -> str:
    if not now.reads(release.lowest):
        return f"a centre with it issues wire {release.lowest}, which nodes now do not read"
    if not release.reads(now.highest):
        return f"nodes now say wire {now.highest}, which a centre with it does not read"
    return ""


def _why_not_last(now: Wires, release: Wires) -> str:
    if not now.reads(release.highest):
        return f"nodes with it say wire {release.highest}, which the centre now does not read"
    if not release.reads(now.lowest):
        return f"the centre now issues wire {now.lowest}, which nodes with it do not read"
    return ""


def _way(now: Wires, runs: str, release: ReleaseManifest, others: Iterable[ReleaseManifest]) -> str:
    """What leads there: a release at hand, the one that it follows, or what one must speak."""
    between = [
        it.version
        for it in others
        if centre_order(now, it.wires).may and centre_order(it.wires, release.wires).may
    ]
    if between:
        return f"go through {max(between, key=version_order)} first"
    follows = release.upgrades_from
    if age_of(follows) > age_of(runs):
        return f"go through {follows} first, which it follows"
    lower, upper = sorted((now, release.wires))
    needed = Wires(*sorted((lower.highest, upper.lowest)))
    return f"go through a release first that speaks {needed}"
