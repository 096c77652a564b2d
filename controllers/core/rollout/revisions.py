"""The revisions of a placement: how one begins and ends, numbered, and kept to go back to."""

from __future__ import annotations

from typing import Literal

from controllers.core.rollout import layers, waves
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.rejection import rejecting
from controllers.core.rollout.state import (
    ChangeCause,
    arm_of,
    changed,
    contents_of,
    is_under_way,
    reference,
)
from relay.objects.stored_object import timestamp
from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import Layer, Revision, RolloutOutcome, RolloutStatus, RolloutStep
from schemas.content.blobs import Reference

GOOD = frozenset({"Complete", "Partial", "Promoted"})
"""How a revision ended that went through its waves."""


def revision(state: RolloutStatus, number: int) -> Revision | None:
    """The revision of this number, if it is remembered."""
    return next((item for item in state.history if item.number == number), None)


def next_number(state: RolloutStatus) -> int:
    """A number that no revision had."""
    return max((state.revision, *(item.number for item in state.history))) + 1


def entry(number: int, arm: Reference | None, now_ms: int, change: ChangeCause) -> Revision:
    """What is remembered of a revision that begins."""
    return Revision(
        number=number,
        manifest=arm.address if arm is not None else "",
        size=arm.size if arm is not None else 0,
        time=timestamp(now_ms),
        user=change.user,
        cause=change.cause,
    )


def ended(state: RolloutStatus, number: int, outcome: RolloutOutcome) -> RolloutStatus:
    """The state in which a revision has this outcome."""
    history = tuple(
        changed(item, outcome=outcome) if item.number == number else item for item in state.history
    )
    return changed(state, history=history)


def trimmed(state: RolloutStatus, limit: int) -> RolloutStatus:
    """The state without the oldest revisions, but with all that someone has, or is pinned to."""
    in_use = {layer.revision for layer in state.layers} | {pin.revision for pin in state.pins}
    in_use |= {layer.revision for freeze in state.freezes for layer in freeze.layers}
    newest = {item.number for item in state.history[-limit - 1 :]}
    kept = tuple(item for item in state.history if item.number in in_use | newest)
    return state if kept == state.history else changed(state, history=kept)


def former(state: RolloutStatus) -> Revision | None:
    """What `undo` without a number goes back to: the last good revision of other content."""
    now = revision(state, state.revision)
    for item in reversed(state.history):
        good = item.outcome in GOOD
        if item.number < state.revision and good and now and item.manifest != now.manifest:
            return item
    return None


def roots(state: RolloutStatus) -> frozenset[Reference]:
    """All contents that the state names: none of them may be swept."""
    return frozenset(reference(*each) for each in contents_of(state))


TOO_MANY = f"{layers.CONTENTS_MAX} contents are out at once; the newest one waits"


def has_room(state: RolloutStatus, arm: Reference) -> bool:
    """Whether one more content may be out at once."""
    return len(layers.contents(_left(state)) | {arm.address}) <= layers.CONTENTS_MAX


def begun(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus, arm: Reference, now_ms: int
) -> RolloutStatus:
    """A revision with this content, from its first wave on, over what there is."""
    found, together = waves.expanded(spec, facts.label_values)
    number = next_number(state)
    if is_under_way(state):
        state = ended(state, state.revision, "Superseded")
    begun_now = entry(number, arm, now_ms, facts.change)
    left = _left(state)
    return changed(
        state,
        revision=number,
        over_revision=left[0].revision or None if left else None,
        phase="Progressing",
        wave=1,
        wave_name=found[0].name,
        waves=waves.wave_statuses(found),
        history=(*state.history, begun_now),
        layers=(layers.empty(number, arm), *left),
        late=None,
        ungrouped=together,
    )


def finished(state: RolloutStatus) -> RolloutStatus:
    """The state after the last wave."""
    promoted = any(wave.phase == "Promoted" for wave in state.waves)
    partial = not layers.reaches_all(state.layers)
    phase: Literal["Partial", "Complete"] = "Partial" if partial else "Complete"
    outcome: RolloutOutcome = "Promoted" if promoted and not partial else phase
    return changed(ended(state, state.revision, outcome), phase=phase)


def aborted(state: RolloutStatus, now_ms: int, *, keep: bool) -> RolloutStatus:
    """The state in which the revision under way is given up; `keep`: not by who has it.

    All go back to the last revision that proved good: of one that another one superseded on its
    way nobody knows that it is.
    """
    number = state.revision
    below = _proven(state)
    state = ended(state, number, "Aborted")
    if below:
        state = rejecting(state, arm_of(below[0]), number, now_ms, undone=False)
    left = state.layers if keep else below
    return changed(state, phase="Aborted", paused=False, layers=left)


def _proven(state: RolloutStatus) -> tuple[Layer, ...]:
    """The layers below the newest one, from the last on that went through its waves."""
    below = state.layers[1:]
    known = {item.number: item.outcome for item in state.history}
    good = (at for at, it in enumerate(below) if known.get(it.revision) in GOOD)
    return below[next(good, len(below) - 1) :] if below else ()


def at_once(state: RolloutStatus) -> RolloutStatus:
    """A revision that was just begun, let out to everyone, whatever they have and wait for."""
    number = state.revision
    gate = changed(layers.ALL, name=waves.gate_name(number, 0))
    [wave] = waves.wave_statuses([waves.EVERYONE])
    wave = changed(wave, phase="Promoted", steps=(RolloutStep(below=gate.below),), step=1)
    return finished(
        changed(
            state,
            layers=(changed(state.layers[0], gates=(gate,)),),
            waves=(wave,),
            wave_name=wave.name,
            ungrouped=0,
        )
    )


def emptied(state: RolloutStatus) -> RolloutStatus:
    """The state once the placement was deleted: nobody has anything, and it would begin anew."""
    if is_under_way(state):
        state = ended(state, state.revision, "Aborted")
    nothing = (layers.base(0, None),)
    return RolloutStatus(
        phase="Waiting",
        history=state.history,
        pins=state.pins,
        freezes=tuple(changed(freeze, layers=nothing) for freeze in state.freezes),
        layers=nothing,
        salt=state.salt,
        request=state.request,
    )


def settled(state: RolloutStatus) -> RolloutStatus:
    """The state after an abort, once the space wants what everyone went back to."""
    number = state.layers[0].revision
    return changed(
        state,
        revision=number,
        over_revision=None,
        phase="Complete",
        waves=(),
        wave=0,
        wave_name="",
    )


def _left(state: RolloutStatus) -> tuple[Layer, ...]:
    """What a new revision lies over: of one that everyone has no more than its content."""
    # What was superseded before its first gate opened nobody has.
    listed = [layer for layer in state.layers if layer.gates]
    kept = layers.pruned(listed)
    ended = state.phase in ("Complete", "Partial")
    # Who waits for a window goes on waiting, as long as there is room for what they have.
    crowded = len(layers.contents(kept)) >= layers.CONTENTS_MAX
    if listed and ended and (crowded or nobody_waits(state)):
        gates = tuple(changed(gate, windows=()) for gate in listed[0].gates)
        kept = layers.pruned([changed(listed[0], gates=gates), *listed[1:]])
    if ended and kept and layers.admits_all(kept[0].gates):
        return (changed(kept[0], gates=(layers.ALL,)),)
    return kept


def nobody_waits(state: RolloutStatus) -> bool:
    """Whether all who may have what went out have it, whatever its windows."""
    return bool(state.complete) and not any(wave.waiting for wave in state.waves)
