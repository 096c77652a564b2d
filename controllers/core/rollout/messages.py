"""What a rollout says of itself: what it waits for, which command helps, and its conditions."""

from __future__ import annotations

from collections.abc import Iterator

from controllers.core.conditions import (
    STANDING,
    Truth,
    condition,
    ready,
    reconciling,
    stalled,
)
from controllers.core.rollout import layers, wave_health
from controllers.core.rollout.empty_waves import EMPTY, approval_text
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.kept_back import kept_in_waves
from controllers.core.rollout.recovery import UNKNOWN_PROGRESS
from controllers.core.rollout.state import changed, is_under_way, present, target_of
from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import RolloutStatus, WaveStatus
from schemas.api.shared import Condition
from schemas.values.wording import many

ROLLED_OUT, HELD, PARTIAL = "RolledOut", "RolloutHeld", "Partial"
PAUSED, LATE, GROUPED = "Paused", "LateFailures", "TooManyGroups"
OWNED = (
    *(ROLLED_OUT, HELD, PARTIAL, PAUSED, LATE, GROUPED),
    *(EMPTY, "Blocked", "Valid", "Superfluous", *STANDING),
)
_GOES_ON = ("Waiting", "Progressing", "Soaking")
_COMMAND = "leafcast rollout"


def with_message(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus, name: str
) -> RolloutStatus:
    """The state with what it waits for, and the command to run if it waits for a person."""
    message, command = _message(spec, facts, state, name)
    return changed(state, message=message, next=command)


def conditions(state: RolloutStatus) -> Iterator[Condition]:
    """What is to be known of it, for people and programs."""
    done: Truth = "True" if state.phase in ("Complete", "Partial") else "False"
    yield condition(ROLLED_OUT, done, state.phase, state.message)
    yield from _standing(state)
    if state.phase == "Held":
        yield condition(HELD, "True", "ProgressUnknown", UNKNOWN_PROGRESS)
    if state.phase == "Partial":
        yield condition(PARTIAL, "True", "WavesEnd", state.message)
    if state.phase == "Paused":
        reason = "Asked" if state.paused else "WaveFailed"
        yield condition(PAUSED, "True", reason, state.message)
    if state.waiting_for and state.phase != "Held":
        yield condition("Blocked", "True", "Waits", state.waiting_for)
    if state.late:
        said = f"{state.late} fail that were rolled out to; nothing is undone by itself"
        yield condition(LATE, "True", "FailedLater", said)
    if state.ungrouped:
        said = f"{state.ungrouped} values of a label found no wave of their own: they go together"
        yield condition(GROUPED, "True", "TooManyWaves", said)


def _standing(state: RolloutStatus) -> tuple[Condition, ...]:
    """Whether it is through, goes on by itself, or waits for a person."""
    said = "; ".join(filter(None, (state.message, state.next)))
    if state.phase in ("Complete", "Partial"):
        return ready(state.phase, said)
    if state.phase in _GOES_ON:
        return reconciling(state.phase, said)
    failed = state.phase == "Paused" and not state.paused
    return stalled("WaveFailed" if failed else state.phase, said)


def _message(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus, name: str
) -> tuple[str, str]:
    if state.phase == "Held":
        return UNKNOWN_PROGRESS, f"{_COMMAND} resume {name}"
    if state.revision == 0:
        return f'placement "{spec.placement.name}" is not there, or selects nothing yet', ""
    wave = present(state)
    if state.phase in ("Complete", "Partial", "Aborted"):
        late = f"; {state.late} fail since" if state.late else ""
        failed = _failed(wave) if state.phase == "Aborted" else ""
        failed = _left_out(facts, state) if state.phase == "Partial" else failed
        why = f": {failed}" if failed else ""
        return f"revision {state.revision} is {state.phase.lower()}{why}{late}", ""
    if wave is None or not is_under_way(state):
        return "", ""
    if state.paused:
        return "paused by a person", f"{_COMMAND} resume {name}"
    if failed := _failed(wave):
        return failed, f"{_COMMAND} abort {name}"
    if wave.phase == "AwaitingApproval":
        return approval_text(wave), f"{_COMMAND} approve {name} {wave.name}"
    if state.waiting_for:
        return state.waiting_for, ""
    return _progress(spec, facts, state, wave), ""


def _left_out(facts: RolloutFacts, state: RolloutStatus) -> str:
    """Whom the waves leave out, and how many these are if it is known."""
    number = None
    if facts.count is not None and facts.gates == layers.gates_of(state):
        # How many are at a place of their own the counts do not tell.
        at_places = None if state.pins or state.freezes else 0
        number = kept_in_waves(facts.gates, target_of(state), facts.count, at_places)
    they = many(number, "destination") if number is not None else "some destinations"
    kept = "keeps what it has" if number == 1 else "keep what they have"
    return f"its waves leave {they} out, which {kept}"


def _failed(wave: WaveStatus | None) -> str:
    """Why a wave failed, "" if it did not."""
    if wave is None or wave.phase != "Failed":
        return ""
    return f'wave "{wave.name}" failed: {wave.reason}'


def _progress(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus, wave: WaveStatus
) -> str:
    step = f", step {wave.step} of {len(wave.steps)}" if len(wave.steps) > 1 else ""
    where = f'wave "{wave.name}"{step}'
    if facts.gates != layers.gates_of(state):
        return f"{where} is being opened"
    if not state.complete:
        waiting = facts.count.waiting_for if facts.count is not None else ()
        heard = f": {', '.join(waiting[:3])} still to answer" if waiting else ""
        return f"{where}: its counts are not exact yet{heard}"
    if wave.phase == "Soaking":
        return f"{where} is good, and soaks for {wave.definition.soak}"
    lack = wave_health.shortfall(spec, wave_health.tallied(wave))
    return f"{where}: {lack}" if lack else f"{where} is good; more begin as its rate allows"
