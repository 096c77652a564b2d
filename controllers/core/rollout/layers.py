"""Who has which content: layers of a placement's delta, newest first.

A layer is a revision and the gates that were opened for it. The oldest is everyone's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from controllers.core.rollout.state import arm_of, changed, reference
from controllers.core.rollout.waves import status_window
from schemas.api.rollout_status import (
    Freeze,
    Layer,
    LayerGate,
    Pin,
    RolloutStatus,
)
from schemas.content.blobs import Reference
from schemas.records.records import BUCKETS, CENTRE, OVER_LOCATION, OVER_SYNC_TARGET, Gate
from schemas.records.windows import Window
from schemas.values.identity import NodePath

P = TypeVar("P", Pin, Freeze)

CONTENTS_MAX = 4
PINS_MAX = 64
FREEZES_MAX = 16
ALL = LayerGate(name="", below=BUCKETS, over=OVER_SYNC_TARGET)
"""The gate of the oldest layer."""


def base(revision: int, arm: Reference | None) -> Layer:
    """The layer that is everyone's."""
    manifest, size = (arm.address, arm.size) if arm is not None else ("", 0)
    return Layer(revision=revision, manifest=manifest, size=size, gates=(ALL,))


def empty(revision: int, arm: Reference) -> Layer:
    """The layer of a revision of which no gate is open yet."""
    return Layer(revision=revision, manifest=arm.address, size=arm.size, gates=())


def gates_of(state: RolloutStatus) -> tuple[Gate, ...]:
    """The gates of the placement's delta: pins, freezes, layers. None if nothing may go out."""
    found = [*_pinned(state), *_frozen(state.freezes)]
    for layer in pruned(state.layers):
        for gate in layer.gates:
            found.append(_gate(layer, gate, CENTRE))
            if found[-1].admits_all:
                return tuple(found)
    return ()


def _pinned(state: RolloutStatus) -> Iterator[Gate]:
    known = {item.number: item for item in state.history}
    for pin in _deepest_first(state.pins):
        revision = known[pin.revision]
        arm = reference(revision.manifest, revision.size) if revision.manifest else None
        yield Gate(arm, path=NodePath.parse(pin.path))


def _frozen(freezes: Sequence[Freeze]) -> Iterator[Gate]:
    for freeze in _deepest_first(freezes):
        path = NodePath.parse(freeze.path)
        for layer in freeze.layers:
            for gate in layer.gates:
                # What is frozen is of no wave, so nobody counts it as one's member.
                yield _gate(layer, changed(gate, name=""), path)


def _deepest_first(placed: Iterable[P]) -> list[P]:
    """What is nearest to a destination counts."""
    return sorted(placed, key=lambda each: (-len(NodePath.parse(each.path).names), each.path))


def freeze_around(freezes: Sequence[Freeze], path: NodePath) -> tuple[Layer, ...]:
    """The layers that a place has because it lies in one that is frozen; none if it does not."""
    around = (it for it in _deepest_first(freezes) if NodePath.parse(it.path).holds(path))
    return next((it.layers for it in around), ())


def _gate(layer: Layer, gate: LayerGate, path: NodePath) -> Gate:
    return Gate(
        arm_of(layer),
        below=gate.below,
        salt=gate.salt,
        over=OVER_LOCATION if gate.over == OVER_LOCATION else OVER_SYNC_TARGET,
        selector=gate.selector,
        name=gate.name,
        path=path,
        windows=tuple(Window(item.cron, item.duration, item.zone) for item in gate.windows),
    )


def opened(layers: Sequence[Layer], gate: LayerGate) -> tuple[Layer, ...]:
    """The layers with this gate opened, or widened, in the newest one.

    Those below stay as they are, though nobody may reach them: an abort goes back to them.
    """
    newest = layers[0]
    others = [each for each in newest.gates if each.name != gate.name]
    return (changed(newest, gates=(*others, gate)), *layers[1:])


def pruned(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers without gates, and without contents, that nobody reaches any more."""
    seen: list[LayerGate] = []
    found: list[Layer] = []
    for layer in layers:
        kept = tuple(gate for gate in layer.gates if not any(_covers(it, gate) for it in seen))
        seen += layer.gates
        # The newest may wait for its first gate.
        if kept or not found:
            found.append(changed(layer, gates=kept))
        if admits_all(kept):
            break
    return tuple(found)


def _covers(newer: LayerGate, older: LayerGate) -> bool:
    """Whether whoever passes the older gate passes the newer one before."""
    if newer.windows:
        # Who passed the older one while it was open has what that gave until the newer one opens.
        return False
    same = newer.selector is None or (newer.over, newer.selector) == (older.over, older.selector)
    if not same:
        return False
    if newer.below >= BUCKETS:
        return True
    return newer.salt == older.salt and 0 < older.below <= newer.below


def admits_all(gates: Iterable[LayerGate]) -> bool:
    """Whether everyone passes one of these gates now."""
    return any(_is_for_all(gate) and not gate.windows for gate in gates)


def reaches_all(layers: Sequence[Layer]) -> bool:
    """Whether everyone gets the newest content, once its window opens."""
    return any(map(_is_for_all, layers[0].gates))


def _is_for_all(gate: LayerGate) -> bool:
    return gate.selector is None and gate.below >= BUCKETS


def contents(layers: Iterable[Layer]) -> set[str]:
    """The contents that these layers name."""
    return {layer.manifest for layer in layers}


# What the ledger shows.


def read_layers(gates: Sequence[Gate]) -> tuple[Layer, ...]:
    """The layers that a delta's gates are of, without what is bound to a place."""
    plain = [gate for gate in gates if gate.path.is_root]
    found: list[Layer] = []
    for (revision, _), group in groupby(plain, key=lambda gate: (revision_of(gate), gate.arm)):
        listed = list(group)
        arm = listed[0].arm
        number = max(revision, 0)
        if revision < 0:
            # The oldest has no name; it is older than what lies before it.
            number = max(found[-1].revision - 1, 0) if found else 0
        layer = base(number, arm)
        found.append(changed(layer, gates=tuple(map(_read_gate, listed))))
    return tuple(found)


def read_freezes(gates: Sequence[Gate]) -> tuple[Freeze, ...]:
    """What a delta's gates keep at places, as freezes: which ones were pins nobody can tell."""
    places = sorted({gate.path for gate in gates if not gate.path.is_root})
    found = []
    for path in places:
        there = [
            Gate(gate.arm, gate.below, gate.salt, gate.over, gate.selector, windows=gate.windows)
            for gate in gates
            if gate.path == path
        ]
        found.append(Freeze(path=str(path), layers=read_layers(there)))
    return tuple(found)


def revision_of(gate: Gate) -> int:
    """The number of the revision that a gate is of; -1 if it has no name."""
    number, _, _ = gate.name.partition(".")
    return int(number) if number.isdecimal() else -1


def wave_of(name: str) -> int:
    """The number of the wave that a gate of this name is of, from 0."""
    _, _, number = name.partition(".")
    return int(number) if number.isdecimal() else 0


def _read_gate(gate: Gate) -> LayerGate:
    return LayerGate(
        name=gate.name,
        below=gate.below,
        salt=gate.salt,
        over=gate.over,
        selector=gate.selector,
        windows=tuple(map(status_window, gate.windows)),
    )
