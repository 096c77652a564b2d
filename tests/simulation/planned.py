"""What a plan says of all that changed since the tree was settled last, held against what became.

It is the plan's own comparison of two states, and what lies in the clusters of a tree that suffered
faults meanwhile. Rollouts, what waits for others and what is customized are left out: a plan tells
where those end, and the clusters are looked at on their way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from controllers.core.planning.plan import plan
from controllers.core.planning.states import Delivery, PlannedState
from controllers.core.planning.verdicts import CREATE, DELETE, UPDATE, PlannedAction
from schemas.objects.objects import ObjectKey
from schemas.records.moves import former_paths
from schemas.records.records import LocationRecord, Profile
from schemas.values import wire
from schemas.values.identity import MailKey, NodePath
from tests.simulation.centre import Centre
from tests.simulation.customizing import is_template
from tests.simulation.host import Host
from tests.simulation.model import (
    Placed,
    arms_of,
    keys_of,
    manifest_entry,
    placement_key,
)

T = TypeVar("T")
R = TypeVar("R", Profile, LocationRecord)
Held = Mapping[ObjectKey, str]
NOTHING = PlannedState({}, {}, {})


class Planned:
    """Compares each settled state with the one before."""

    def __init__(self) -> None:
        self._state = NOTHING
        self._placed: dict[str, Placed] = {}
        # By host, where it hung and what its cluster held.
        self._held: dict[Host, tuple[NodePath, Held]] = {}
        # Whose clusters did not take all that was sent.
        self._refusing: set[Host] = set()

    def faults(self, centre: Centre, held: Mapping[Host, Held]) -> list[str]:
        """Where another thing became of an object than a plan of the change would have said.

        To be called in each settled state, with what the clusters hold then; a fault stays one.
        """
        state, placed, there = self._next(centre), dict(centre.model.placements), self._held
        said = _said(self._state, state)
        left_out = {
            key
            for each in (*self._placed.values(), *placed.values())
            if _is_left_out(each)
            for key in keys_of(each)
        }
        faults, occupied = [], {path for path, _ in there.values()}
        carried = _carried(self._state.profiles, state.profiles)
        for host, objects in held.items():
            new: tuple[NodePath, Held] = (host.path, {})
            path, had = there.get(host, new)
            if host in self._refusing or host.space.refused_for_good:
                continue
            is_new = host not in there and path in occupied
            if path != host.path or path in carried or is_new:
                # Another cluster hangs here than did, as a plan cannot know.
                continue
            became, planned = _became(had, objects), said.get(path, {})
            faults += [
                f"plan says {planned.get(key, 'none')} of {key} at {path}, and it is {is_so}"
                for key in sorted(became.keys() | planned.keys())
                if key not in left_out and not is_template(key.name)
                if (is_so := became.get(key, "none")) != planned.get(key, "none")
            ]
        if not faults:
            self._state, self._placed = state, placed
            self._refusing = {host for host in held if host.space.refused_for_good}
            self._held = {host: (host.path, held[host]) for host in held}
        return faults

    def _next(self, centre: Centre) -> PlannedState:
        model, before = centre.model, self._state
        nodes, records = model.nodes, centre.in_force.items()
        profiles = {key: _timeless(it) for key, it in records if isinstance(it, Profile)}
        profiles = {key: it for key, it in profiles.items() if it.path in nodes}
        locations = {key: _timeless(it) for key, it in records if isinstance(it, LocationRecord)}
        placements = {
            placement_key(name): self._delivery(name, placed)
            for name, placed in model.placements.items()
            if not _is_left_out(placed)
        }
        return PlannedState(
            _same(before.placements, placements),
            _same(before.profiles, profiles),
            _same(before.locations, locations),
        )

    def _delivery(self, name: str, placed: Placed) -> Delivery:
        key = placement_key(name)
        if self._placed.get(name) == placed and key in self._state.placements:
            return self._state.placements[key]
        entries = {at: manifest_entry(at, content) for at, content in placed.arm.contents}
        return Delivery(name, key, placed.alternatives, entries)


def _carried(before: Mapping[MailKey, Profile], after: Mapping[MailKey, Profile]) -> set[NodePath]:
    """Where destinations hang that say they took their cluster along.

    One whose path was edited after it was moved says so, too.
    """
    return {
        it.path
        for key, it in after.items()
        if key in before
        and before[key].path != it.path
        and before[key].path in former_paths(it.annotations)
    }


def _said(
    before: PlannedState, after: PlannedState
) -> dict[NodePath, dict[ObjectKey, PlannedAction]]:
    said: dict[NodePath, dict[ObjectKey, PlannedAction]] = {}
    for row in plan(before, after, {}).rows():
        if row.action in (CREATE, DELETE, UPDATE):
            said.setdefault(row.path, {})[row.key] = row.action
    return said


def _became(had: Held, has: Held) -> dict[ObjectKey, PlannedAction]:
    return (
        dict.fromkeys(had.keys() - has.keys(), DELETE)
        | dict.fromkeys(has.keys() - had.keys(), CREATE)
        | {key: UPDATE for key in had.keys() & has.keys() if had[key] != has[key]}
    )


def _is_left_out(placed: Placed) -> bool:
    return len(arms_of(placed)) > 1 or bool(placed.is_rolled or placed.after)


def _timeless(record: R) -> R:
    """Whenever it was issued."""
    return wire.replace(record, generation=0, term="", trace="")


def _same(before: Mapping[MailKey, T], now: dict[MailKey, T]) -> Mapping[MailKey, T]:
    """What did not change is the same value, as a plan wants it."""
    kept = {key: before[key] if before.get(key) == it else it for key, it in now.items()}
    return before if kept == before else kept
