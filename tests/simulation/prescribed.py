"""What the model prescribes: for each edge its objects, for each placement its counts.

Written anew, from the architecture's words and not from the relay's code, so that it can judge it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from schemas.objects.objects import ObjectKey
from schemas.records.records import BUCKETS, bucket
from schemas.values.identity import NodePath
from tests.simulation.centre import Centre
from tests.simulation.customizing import form_of
from tests.simulation.model import Arm, Content, Model, Placed, Rung, Target, placement_key


@dataclass(frozen=True)
class Expected:
    """One placement's counts in a summary that is complete, when nothing is on its way."""

    states: dict[str, int]
    arms: dict[str, int]
    # Under a rollout, by wave and state.
    waves: dict[tuple[str, str], int]


def is_meant(model: Model, placed: Placed, target: Target) -> bool:
    """Whether some alternative of the placement selects the destination."""
    labels = dict(target.labels)
    mine = [at for at in model.locations.values() if at.instances and at.instances.matches(labels)]
    for alternative in placed.alternatives:
        if alternative.over == "synctarget":
            if alternative.selector.matches(labels):
                return True
        elif any(alternative.selector.matches(dict(loc.labels)) for loc in mine):
            return True
    return False


def was_meant(centre: Centre, paths: Iterable[NodePath], placement: str) -> bool:
    """Whether some versions of a placement, of a destination there and of locations ever met."""
    past = centre.past
    located = dict(enumerate(chain.from_iterable(past.locations.values())))
    return any(
        is_meant(Model(locations=located), placed, target)  # type: ignore[arg-type]
        for placed in past.placements.get(placement, ())
        for path in paths
        for target in past.targets.get(path, ())
    )


def was_located(centre: Centre, paths: Iterable[NodePath], name: str) -> bool:
    """Whether some versions of a Location and of a destination there ever met."""
    past = centre.past
    return any(
        at.instances is not None and at.instances.matches(dict(target.labels))
        for at in past.locations.get(name, ())
        for path in paths
        for target in past.targets.get(path, ())
    )


def tier_of(model: Model, target: Target) -> str | None:
    """What a destination's tier is: its own label says it, else its first Location by name."""
    labels = dict(target.labels)
    located = (
        dict(at.labels)
        for _, at in sorted(model.locations.items())
        if at.instances and at.instances.matches(labels)
    )
    return next((said["tier"] for said in (labels, *located) if "tier" in said), None)


def rung_for(placed: Placed, target: Target) -> Rung | None:
    """The first rung that admits a destination, whatever the hour."""
    for rung in placed.rungs:
        by_chance = rung.below >= BUCKETS or bucket(target.destination, placed.salt) < rung.below
        by_label = rung.selector is None or rung.selector.matches(dict(target.labels))
        if by_chance and by_label and rung.path.holds(target.path):
            return rung
    return None


def wave_for(placed: Placed, target: Target) -> str:
    """The wave in which a destination counts; "" in none."""
    rung = rung_for(placed, target)
    return placed.wave if rung is None else rung.wave


def arm_for(placed: Placed, target: Target) -> Arm:
    rung = rung_for(placed, target)
    if rung is not None:
        return rung.arm
    return placed.arm


def claims_at(model: Model, target: Target) -> dict[str, Arm]:
    """The placements that mean a destination, each with its arm."""
    return {
        name: arm_for(placed, target)
        for name, placed in model.placements.items()
        if is_meant(model, placed, target)
    }


_last: list[tuple[object, dict[str, dict[ObjectKey, Content]]]] = []
"""What was chosen last, and for which model: it is asked for many times between two changes."""


def _chosen(model: Model) -> dict[str, dict[ObjectKey, Content]]:
    """By the names of targets, what each holds; not to be changed."""
    parts = (model.targets, model.locations, model.placements)
    asked = tuple(tuple(part.items()) for part in parts)
    if not _last or _last[0][0] != asked:
        _last[:] = [(asked, {n: winners(model, target) for n, target in model.targets.items()})]
    return _last[0][1]


def winners(model: Model, target: Target) -> dict[ObjectKey, Content]:
    """What a destination holds: one content per object."""
    rivals: dict[ObjectKey, list[tuple[str, Content, bool]]] = {}
    for name, arm in claims_at(model, target).items():
        for key, content in arm.contents:
            placed = model.placements[name]
            claim = (placement_key(name), content, placed.is_rolled)
            rivals.setdefault(key, []).append(claim)
    chosen = {}
    for key, claims in rivals.items():
        first = min(claims, key=lambda claim: claim[0])[1].space
        same = [(gated, content) for _, content, gated in claims if content.space == first]
        # What is under a rollout goes no further than its gates.
        chosen[key] = max(same, key=lambda each: (each[0], each[1].revision))[1]
    return chosen


def prescribed(centre: Centre) -> dict[NodePath, dict[ObjectKey, str]]:
    """By edge, the address of each object's content."""
    model, chosen = centre.model, _chosen(centre.model)
    return {
        target.path: {
            key: form_of(content.reference, tier_of(model, target))
            for key, content in chosen[name].items()
        }
        for name, target in model.targets.items()
        if target.path in model.nodes
    }


def expected_summary(
    centre: Centre, name: str, refused: dict[NodePath, dict[ObjectKey, None]]
) -> Expected:
    """The fold over the true state of all edges."""
    model, placed = centre.model, centre.model.placements[name]
    chosen_by = _chosen(model)
    states: dict[str, int] = {}
    arms: dict[str, int] = {}
    waves: dict[tuple[str, str], int] = {}
    for name_of_target, target in model.targets.items():
        if target.path not in model.nodes or not is_meant(model, placed, target):
            continue
        arm, chosen = arm_for(placed, target), chosen_by[name_of_target]
        lost = any(chosen[key].space != content.space for key, content in arm.contents)
        bad = any(key in refused.get(target.path, {}) for key, _ in arm.contents)
        state = "failing" if lost or bad else "synced"
        states[state] = states.get(state, 0) + 1
        root = centre.root_of(name, arm)
        arms[root] = arms.get(root, 0) + 1
        wave = wave_for(placed, target)
        if wave:
            waves[wave, state] = waves.get((wave, state), 0) + 1
    return Expected(states, arms, waves)
