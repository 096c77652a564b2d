"""The laws of rollouts: what an edge may take, and what a wave's counts say.

| law | what is asked |
| --- | --- |
| Only through an open gate | an edge takes only what some version of a placement gave just it |
| Nobody goes back | unless users abort, undo, pin or relabel, no edge takes an older content |
| Exactly once counting | in an exact count each member of a wave is in one of its cells |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from schemas.objects.objects import ObjectKey
from schemas.reports.reports import CELL_OTHER, Cell, Summary
from schemas.values.identity import NodePath
from tests.simulation.centre import Centre
from tests.simulation.customizing import form_of
from tests.simulation.laws import EXACTLY_ONCE, GATES, NO_WAY_BACK
from tests.simulation.model import TIERS, Placed, Target
from tests.simulation.prescribed import arm_for, wave_for
from tests.simulation.world import LawBroken


class Waves:
    """What was taken so far through gates."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre
        # The newest source revision that was written of an object, by where.
        self._newest: dict[tuple[NodePath, ObjectKey], int] = {}

    def forget(self, path: NodePath) -> None:
        """The edge does not know any more what it had."""
        for at in [at for at in self._newest if at[0] == path]:
            del self._newest[at]

    def applying(
        self,
        paths: Iterable[NodePath],
        key: ObjectKey,
        address: str,
        placements: Iterable[str],
    ) -> None:
        """An edge that hangs, or hung, at these paths writes an object for these placements."""
        past, paths = self._centre.past, list(paths)
        versions = [each for name in placements for each in past.placements.get(name, ())]
        if not any(placed.is_rolled for placed in versions):
            return
        targets = [target for path in paths for target in past.targets.get(path, ())]
        if not any(_gives(p, target, key, address) for p in versions for target in targets):
            raise LawBroken(GATES, f"{paths[0]} takes a {key} that no gate ever gave it")
        revision = self._centre.revisions[key, address]
        newest = self._newest.get((paths[0], key), 0)
        if revision < newest and self._centre.relapsed < newest:
            what = f"{paths[0]} takes {key} of revision {revision} after {newest}"
            raise LawBroken(NO_WAY_BACK, what)
        self._newest[paths[0], key] = revision


def check_exact(
    name: str,
    placed: Placed,
    summary: Summary,
    meant: list[Target],
    holds: Callable[[Target], bool] | None,
) -> None:
    """An exact count has each member once in its wave, and none synced that lacks its content."""
    members = Counter(wave for target in meant if (wave := wave_for(placed, target)))
    counted, synced = Counter[str](), Counter[str]()
    for text, count in summary.cells.items():
        cell = Cell.parse(text)
        if cell is None:
            raise LawBroken(EXACTLY_ONCE, f"{name}: {count} members in the cell {CELL_OTHER}")
        counted[cell.gate] += count if cell.state != "leaving" else 0
        synced[cell.gate] += count if cell.state == "synced" else 0
    if +counted != +members:
        what = f"{name}: exactly {dict(summary.cells)}, and the members are {dict(members)}"
        raise LawBroken(EXACTLY_ONCE, what)
    holding = Counter(wave_for(placed, t) for t in meant if holds is None or holds(t))
    for wave, count in synced.items():
        if count > holding[wave]:
            what = f"{name}: {count} of wave {wave} are synced, and {holding[wave]} hold it"
            raise LawBroken(EXACTLY_ONCE, what)


def by_state(summary: Summary) -> dict[tuple[str, str], int]:
    """The cells without health."""
    found = Counter[tuple[str, str]]()
    for text, count in summary.cells.items():
        cell = Cell.parse(text)
        found[(cell.gate, cell.state) if cell is not None else (text, "")] += count
    return dict(+found)


def _gives(placed: Placed, target: Target, key: ObjectKey, address: str) -> bool:
    contents = dict(arm_for(placed, target).contents)
    content = contents.get(key)
    return content is not None and any(
        form_of(content.reference, tier) == address for tier in TIERS
    )
