"""Where a rollout goes on: from what the ledger shows, where its status says less, or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from controllers.core.rollout import layers, revisions, waves
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.rejection import NOTHING, Rejection, accepting
from controllers.core.rollout.revisions import begun
from controllers.core.rollout.state import ChangeCause, arm_of, changed, is_under_way
from schemas.api.rollout_spec import RolloutSpec, Wave
from schemas.api.rollout_status import (
    LayerGate,
    RejectedObjects,
    RolloutStatus,
    RolloutStep,
    WaveStatus,
)
from schemas.records.records import Gate

UNKNOWN_PROGRESS = (
    "neither the ledger nor this status says how far it was: nothing opens; with resume everyone "
    "gets what the space holds now, so put the former content there first if that is not good"
)


def begin(spec: RolloutSpec, facts: RolloutFacts, now_ms: int) -> RolloutStatus:
    """The state of a rollout of which its object says nothing."""
    # What shares were drawn with, or are from now on.
    drawn = (gate.salt for gate in reversed(facts.gates or ()) if gate.salt and gate.name)
    state = RolloutStatus(salt=next(drawn, facts.uid))
    if facts.gates is None:
        if facts.is_lost:
            return changed(state, phase="Held", waiting_for=UNKNOWN_PROGRESS)
        # A placement that is new goes by waves over nothing.
        return changed(state, layers=(layers.base(0, None),))
    found = layers.read_layers(facts.gates)
    if len(found) == 1 and found[0].revision == 0:
        # The first content that a rollout finds is revision 1.
        found = (changed(found[0], revision=1),)
    state = changed(
        state,
        layers=found,
        freezes=layers.read_freezes(facts.gates),
    )
    state = _remembered(state, now_ms, facts.change)
    named = [gate for gate in facts.gates if gate.name]
    if named:
        return _rejecting(_resumed(spec, facts, state, now_ms), facts.rejection)
    newest = state.layers[0]
    state = changed(
        state,
        revision=newest.revision,
        phase="Complete",
        target=newest.manifest,
        target_size=newest.size,
    )
    return _rejecting(revisions.ended(state, newest.revision, "Complete"), facts.rejection)


def read_across(spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus) -> RolloutStatus:
    """What the ledger shows opened was opened, though the status may not say so."""
    named = [gate for gate in facts.gates or () if gate.name]
    newest = max(map(layers.revision_of, named), default=0)
    if newest > state.revision and facts.gates is not None:
        known = changed(state, layers=layers.read_layers(facts.gates), paused=False)
        found = _resumed(spec, facts, _remembered(known, 0, ChangeCause()), 0)
        return _rejecting(found, facts.rejection)
    if newest < state.revision or not is_under_way(state):
        return state
    for gate in named:
        if layers.revision_of(gate) == newest:
            state = _widened(state, gate)
    return state


def resumed_from_nothing(state: RolloutStatus, facts: RolloutFacts, now_ms: int) -> RolloutStatus:
    """A person lets everyone have what the space holds now: the one way on without any memory."""
    assert facts.target is not None
    number = revisions.next_number(state)
    entry = revisions.entry(number, facts.target, now_ms, facts.change)
    state = changed(
        accepting(state),
        revision=number,
        phase="Complete",
        waiting_for="",
        target=facts.target.address,
        target_size=facts.target.size,
        layers=(layers.base(number, facts.target),),
        history=(*state.history, entry),
    )
    return revisions.ended(state, number, "Complete")


def _rejecting(state: RolloutStatus, known: Rejection | None) -> RolloutStatus:
    """The state with what the ledger remembers as rejected, if it is of what goes out.

    If it is of what lies below, the newest revision was given up, and who has it keeps it.
    """
    newest, *older = (layer.manifest or NOTHING.address for layer in state.layers)
    if known is None or known.target.address not in (newest, *older):
        return state
    if known.target.address != newest:
        state = changed(revisions.ended(state, state.revision, "Aborted"), phase="Aborted")
    return changed(
        state,
        wish=known.wish.address,
        wish_size=known.wish.size,
        target=known.target.address,
        target_size=known.target.size,
        rejected=state.rejected or RejectedObjects(reason="Aborted"),
    )


def _remembered(state: RolloutStatus, now_ms: int, change: ChangeCause) -> RolloutStatus:
    """The state with a history that has all revisions of its layers."""
    known = {item.number for item in state.history}
    found = [
        revisions.entry(layer.revision, arm_of(layer), now_ms, change)
        for layer in reversed(state.layers)
        if layer.revision not in known
    ]
    listed = sorted((*state.history, *found), key=lambda item: item.number)
    return changed(state, history=tuple(listed))


def _resumed(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus, now_ms: int
) -> RolloutStatus:
    """The newest revision as far as its gates say: it is judged again, from the last one on.

    If its gates are of other waves than those that the Rollout has now, it begins again.
    """
    newest = state.layers[0]
    found, together = waves.expanded(spec, facts.label_values)
    if len(newest.gates) == 1 and layers.reaches_all(state.layers):
        found, together = (found if len(found) == 1 else (waves.EVERYONE,)), 0
    state = changed(state, target=newest.manifest, target_size=newest.size)
    if (arm := arm_of(newest)) is not None and not all(_is_of(found, it) for it in newest.gates):
        return begun(spec, facts, state, arm, now_ms)
    last = max(min(max(layers.wave_of(gate.name) for gate in newest.gates), len(found) - 1), 0)
    statuses = waves.wave_statuses(found)
    listed = []
    for at, wave in enumerate(statuses):
        gate = next((it for it in newest.gates if layers.wave_of(it.name) == at), None)
        listed.append(_as_opened(wave, gate, is_present=at == last) if at <= last else wave)
    older = state.layers[1].revision if len(state.layers) > 1 else None
    return changed(
        state,
        revision=newest.revision,
        over_revision=older,
        phase="Progressing",
        wave=last + 1,
        wave_name=found[last].name,
        waves=tuple(listed),
        ungrouped=together,
    )


def _is_of(found: Sequence[Wave], gate: LayerGate) -> bool:
    """Whether a gate may be one of these waves."""
    at = layers.wave_of(gate.name)
    return at < len(found) and waves.labels_of(found[at]) == (gate.over, gate.selector)


def _as_opened(wave: WaveStatus, gate: LayerGate | None, *, is_present: bool) -> WaveStatus:
    if gate is None:
        return changed(wave, phase="Done", step=0)
    steps = [RolloutStep(below=gate.below)]
    end = waves.end_of(wave.definition)
    if gate.below < end:
        steps.append(RolloutStep(below=end))
    phase = "Progressing" if is_present else "Done"
    return changed(wave, phase=phase, steps=tuple(steps), step=1, approved_before=True)


def _widened(state: RolloutStatus, gate: Gate) -> RolloutStatus:
    at = layers.wave_of(gate.name)
    if at >= len(state.waves):
        return state
    wave = state.waves[at]
    below = wave.steps[wave.step - 1].below if wave.step else 0
    if gate.below <= below:
        return state
    (read,) = layers.read_layers([gate])
    opened = _as_opened(wave, read.gates[0], is_present=True)
    listed = tuple(
        opened if place == at else changed(each, phase="Done") if place < at else each
        for place, each in enumerate(state.waves)
    )
    return changed(
        state,
        waves=listed,
        wave=at + 1,
        wave_name=wave.name,
        layers=layers.opened(state.layers, read.gates[0]),
    )
