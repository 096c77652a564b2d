"""The state of a rollout is its object's status, as a value that is replaced and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from schemas.api.rollout_status import Layer, RolloutStatus, WaveStatus
from schemas.api.shared import ApiValue
from schemas.content.blobs import MANIFEST, Reference
from schemas.values.identity import ContentHash, NodePath

V = TypeVar("V", bound=ApiValue)

UNDER_WAY = frozenset({"Waiting", "Progressing", "Soaking", "AwaitingApproval", "Paused"})
"""Phases in which a revision goes out; in the others nothing is to be done for it."""


def changed(value: V, **fields: object) -> V:
    """The value with these fields, by their names here; unknown ones are mistakes."""
    assert fields.keys() <= type(value).model_fields.keys(), fields.keys()
    return value.model_copy(update=fields)


def is_under_way(state: RolloutStatus) -> bool:
    """Whether a revision goes out now, or waits to."""
    return state.revision > 0 and state.phase in UNDER_WAY and bool(state.waves)


def is_sound(state: RolloutStatus) -> bool:
    """Whether a status that lay where others write can be gone on from.

    Raises ValueError if it names what cannot be: a content, a place.
    """
    for manifest, size in contents_of(state):
        reference(manifest, size)
    for path in (*(pin.path for pin in state.pins), *(each.path for each in state.freezes)):
        NodePath.parse(path)
    known = {item.number for item in state.history}
    steps = all(wave.step <= len(wave.steps) for wave in state.waves)
    present = bool(state.wave) == bool(state.waves) and state.wave <= len(state.waves)
    listed = present and all(pin.revision in known for pin in state.pins)
    layered = bool(state.layers) or state.phase == "Held"
    return steps and listed and layered


def contents_of(state: RolloutStatus) -> frozenset[tuple[str, int]]:
    """The addresses and sizes of all contents that the state names."""
    found = {(item.manifest, item.size) for item in state.history}
    found |= {(layer.manifest, layer.size) for layer in state.layers}
    found |= {(item.manifest, item.size) for it in state.freezes for item in it.layers}
    found |= {(state.target, state.target_size), (state.wish, state.wish_size)}
    return frozenset(each for each in found if each[0])


def arm_of(layer: Layer) -> Reference | None:
    """The content of a layer; None is nothing at all."""
    return reference(layer.manifest, layer.size) if layer.manifest else None


def reference(manifest: str, size: int) -> Reference:
    """The manifest's root of this address."""
    return Reference(MANIFEST, ContentHash(manifest), size)


def target_of(state: RolloutStatus) -> Reference | None:
    """What the space wanted when the rollout last heard of it."""
    return reference(state.target, state.target_size) if state.target else None


def present(state: RolloutStatus) -> WaveStatus | None:
    """The wave that is under way; None before the first."""
    return state.waves[state.wave - 1] if 0 < state.wave <= len(state.waves) else None


def paced(wave: WaveStatus) -> int:
    """How many seconds of the wave its present step was to wait for."""
    return wave.steps[wave.step - 1].after if wave.step else 0


def with_wave(state: RolloutStatus, wave: WaveStatus) -> RolloutStatus:
    """The state with the present wave as it is now."""
    return changed(state, waves=replaced(state.waves, state.wave - 1, wave))


def replaced(values: Sequence[V], at: int, value: V) -> tuple[V, ...]:
    """The values with another one at this place."""
    return (*values[:at], value, *values[at + 1 :])


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """Who changed the content last, and why, as far as the placement tells."""

    user: str = ""
    cause: str = ""
