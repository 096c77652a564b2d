"""What becomes of a rollout next: from its spec, what is counted, its state and the time.

Nothing opens but after exact counts of what is open now; who is admitted stays admitted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from controllers.core.rollout import layers, recovery, revisions, wave_health, waves
from controllers.core.rollout.culprits import culprits
from controllers.core.rollout.empty_waves import of_nobody
from controllers.core.rollout.facts import RolloutFacts
from controllers.core.rollout.rejection import NOTHING, rejection_of, taken
from controllers.core.rollout.requests import handle, ignored
from controllers.core.rollout.revisions import (
    TOO_MANY,
    aborted,
    begun,
    emptied,
    finished,
    has_room,
    settled,
)
from controllers.core.rollout.state import (
    arm_of,
    changed,
    is_under_way,
    paced,
    present,
    target_of,
    with_wave,
)
from controllers.core.rollout.wave_health import WaveTally
from relay.core.instant import Instant
from relay.objects.stored_object import timestamp
from schemas.api.rollout_spec import RolloutSpec, seconds_of
from schemas.api.rollout_status import RolloutStatus, WaveStatus
from schemas.reports.reports import CELL_OTHER

_TURNS_MAX = 64


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of the centre knows of a rollout: how long the present wave was seen to be good.

    Times are by the monotonic clock. What lies between two runs counts for nothing.
    """

    seen_at: float
    # The revision and the wave that it speaks of.
    wave: tuple[int, int] = (0, 0)
    soaked: float = 0.0
    lasted: float = 0.0
    # Whether the time from `seen_at` on counts: for the soak, and for the deadline.
    is_good: bool = False
    is_running: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The state from now on, and in how many seconds to look again if nothing changes before."""

    state: RolloutStatus
    run: Run
    wake: float | None = None


def begin_run(state: RolloutStatus | None, now: Instant) -> Run:
    """What a centre that just started knows."""
    wave = present(state) if state is not None else None
    if state is None or wave is None:
        return Run(now.seconds)
    of = (state.revision, state.wave)
    return Run(now.seconds, of, float(wave.soaked), float(wave.lasted))


def decide(
    spec: RolloutSpec, facts: RolloutFacts, state: RolloutStatus | None, run: Run, now: Instant
) -> Decision:
    """Go on as far as what is known allows; `state` None is a rollout that nothing is known of."""
    if state is None:
        # A request of a state that is lost is not taken for one of this.
        state = ignored(recovery.begin(spec, facts, now.wall_ms), facts.request)
        run = begin_run(state, now)
    if facts.is_gone and state.revision:
        state = emptied(state)
    state = recovery.read_across(spec, facts, state)
    passed = max(now.seconds - run.seen_at, 0.0)
    run = replace(
        run,
        seen_at=now.seconds,
        soaked=run.soaked + passed * run.is_good,
        lasted=run.lasted + passed * run.is_running,
        is_good=False,
        is_running=False,
    )
    before, state = state, handle(spec, facts, state, now.wall_ms)
    if state != before:
        run = begin_run(state, now)
    turn = _Turn(spec, facts, now, run)
    state = turn.take_target(state)
    state = turn.go_on(state)
    state = revisions.trimmed(_timed(state, turn.run), spec.history)
    return Decision(state, turn.run, turn.wake)


def _timed(state: RolloutStatus, run: Run) -> RolloutStatus:
    """The state with the time that counted, from which another run goes on."""
    wave = present(state)
    if wave is None or not is_under_way(state) or run.wave != (state.revision, state.wave):
        return state
    return with_wave(state, changed(wave, soaked=int(run.soaked), lasted=int(run.lasted)))


class _Turn:
    """One decision: the state goes through it; what it learns of time is in `run` and `wake`."""

    def __init__(self, spec: RolloutSpec, facts: RolloutFacts, now: Instant, run: Run) -> None:
        self.run = run
        self.wake: float | None = None
        self._spec = spec
        self._facts = facts
        self._now = now

    # Revisions.

    def take_target(self, state: RolloutStatus) -> RolloutStatus:
        """Begin a revision if the space wants another content than it did."""
        wanted = self._facts.wanted
        if wanted is None or state.phase == "Held" or wanted.over != rejection_of(state):
            # What is made over another state comes anew, over this one.
            return state
        target, agrees = wanted.target, bool(state.wish) and wanted.wish is None
        if target == target_of(state) and not agrees:
            is_gone = state.waiting_for == TOO_MANY
            state = taken(changed(state, waiting_for="") if is_gone else state, wanted)
            return settled(state) if _is_back(state) else state
        newest = state.layers[0].manifest if state.layers else ""
        known = changed(state, target=target.address, target_size=target.size, waiting_for="")
        known = taken(known, wanted)
        if target.address == (newest or NOTHING.address) and state.revision:
            if state.phase != "Aborted":
                return known
            if layers.reaches_all(state.layers):
                return settled(known)
        if not has_room(state, target):
            return changed(state, waiting_for=TOO_MANY)
        return begun(self._spec, self._facts, known, target, self._now.wall_ms)

    # Waves.

    def go_on(self, state: RolloutStatus) -> RolloutStatus:
        """Take all steps that may be taken now."""
        state = self._counted(state)
        for _ in range(_TURNS_MAX):
            if not is_under_way(state) or state.paused or _has_failed(state):
                return _paused(state)
            before, state = state, self._step(state)
            if state == before:
                return state
        return state

    def _counted(self, state: RolloutStatus) -> RolloutStatus:
        """Show what is counted of each wave."""
        count = self._facts.count
        if count is None or not state.waves or self._facts.gates != layers.gates_of(state):
            return changed(state, complete=False) if state.complete else state
        listed = state.waves
        # The last counts of what was given up tell why.
        if state.layers[0].revision == state.revision:
            listed = tuple(
                changed(wave, **asdict(self._tally(state, at))) if wave.step else wave
                for at, wave in enumerate(listed)
            )
        late = None
        if state.phase in ("Complete", "Partial"):
            late = sum(self._tally(state, at).failing for at in range(len(listed)))
        return changed(state, waves=listed, complete=self._is_exact(state), late=late)

    def _tally(self, state: RolloutStatus, at: int) -> WaveTally:
        assert self._facts.count is not None
        cells = self._facts.count.summary.cells
        return wave_health.tally(cells, waves.gate_name(state.revision, at), self._spec.success.of)

    def _is_exact(self, state: RolloutStatus) -> bool:
        """Whether what is counted is all that is open now, and no more and no less."""
        count = self._facts.count
        if count is None or self._facts.gates != layers.gates_of(state):
            return False
        # All members are in cells of their own gates.
        is_whole = count.exact and not count.summary.cells.get(CELL_OTHER)
        return is_whole and not self._is_outrun()

    def _is_outrun(self) -> bool:
        count = self._facts.count
        return count is not None and wave_health.is_outrun(count.summary.exceptions)

    def _step(self, state: RolloutStatus) -> RolloutStatus:
        wave = present(state)
        assert wave is not None
        if self.run.wave != (state.revision, state.wave):
            self.run = begin_run(state, self._now)
        if wave.phase in ("Done", "Promoted"):
            return self._next_wave(state)
        if wave.step == 0:
            return self._first_step(state, wave)
        if not self._is_exact(state):
            # Time that nobody can judge is no soak, but it goes on for those who wait.
            self.run = replace(self.run, is_running=not self._is_outrun())
            return state
        return self._judged(state, wave, self._tally(state, state.wave - 1))

    def _first_step(self, state: RolloutStatus, wave: WaveStatus) -> RolloutStatus:
        judged = state.wave > 1 and state.waves[state.wave - 2].phase == "Done"
        if judged and self._is_exact(state) and self._lacks(state, state.wave - 2):
            return _back(state)
        if wave.definition.approval == "before" and not wave.approved_before:
            return _at_phase(state, wave, "AwaitingApproval")
        if judged and not self._is_exact(state):
            return _at_phase(state, wave, "Progressing")
        if reason := self._facts.blocked():
            return changed(state, phase="Waiting", waiting_for=reason)
        state = changed(state, waiting_for="")
        definitions = [each.definition for each in state.waves]
        steps = waves.steps_of(definitions, state.wave - 1, self._facts.members)
        wave = changed(wave, steps=steps, since=timestamp(self._now.wall_ms))
        self.run = replace(self.run, is_running=True)
        return self._opened(_at_phase(state, wave, "Progressing"))

    def _lacks(self, state: RolloutStatus, at: int) -> str:
        """Why a wave is not good; "" if it is."""
        found = self._tally(state, at)
        return wave_health.failure(self._spec, found) or wave_health.shortfall(self._spec, found)

    def _opened(self, state: RolloutStatus) -> RolloutStatus:
        """Take the next step of the present wave."""
        wave = present(state)
        assert wave is not None
        state = with_wave(state, changed(wave, step=wave.step + 1))
        gate = waves.gate_of(self._spec, state.waves, state.wave - 1, state.revision, state.salt)
        return changed(state, layers=layers.opened(state.layers, gate))

    def _judged(self, state: RolloutStatus, wave: WaveStatus, found: WaveTally) -> RolloutStatus:
        """What exact counts of the present step make of the wave."""
        wave = changed(wave, reason="")
        if reason := wave_health.failure(self._spec, found):
            return self._failed(state, wave, reason)
        if wave_health.shortfall(self._spec, found):
            self.run = replace(self.run, soaked=0.0, is_running=found.waiting == 0)
            left = self._left(wave)
            if left is not None and left <= 0:
                text = wave.definition.deadline or self._spec.deadline or ""
                return self._failed(state, wave, f"it was not good within {text}")
            if left is not None and self.run.is_running:
                self._wake_in(left)
            return _at_phase(state, changed(wave, soaked=0), "Progressing")
        if wave.step < len(wave.steps):
            return self._next_step(state, wave)
        return self._soaked(state, wave, found)

    def _next_step(self, state: RolloutStatus, wave: WaveStatus) -> RolloutStatus:
        after = wave.steps[wave.step].after
        self.run = replace(self.run, is_running=True)
        if self.run.lasted < after:
            self._wake_in(after - self.run.lasted)
            return _at_phase(state, wave, "Progressing")
        return self._opened(_at_phase(state, wave, "Progressing"))

    def _soaked(self, state: RolloutStatus, wave: WaveStatus, found: WaveTally) -> RolloutStatus:
        soak = seconds_of(wave.definition.soak) or 0.0
        # Nobody can break what nobody has.
        if found.members and self.run.soaked < soak:
            self.run = replace(self.run, is_good=True)
            self._wake_in(soak - self.run.soaked)
            return _at_phase(state, wave, "Soaking")
        self.run = replace(self.run, is_good=True)
        if wave.approved_after:
            return with_wave(state, changed(wave, phase="Done"))
        if not found.members and (reason := self._of_nobody(state, wave)):
            return self._untried(state, changed(wave, reason=reason))
        if wave.definition.approval == "after":
            return _at_phase(state, wave, "AwaitingApproval")
        return with_wave(state, changed(wave, phase="Done"))

    def _of_nobody(self, state: RolloutStatus, wave: WaveStatus) -> str:
        """Why nobody tries what the wave lets out; "" if that is meant so."""
        # Who is pinned or frozen is no member, whatever a share draws.
        kept = bool(state.pins or state.freezes)
        is_proved = kept or any(each.members for each in state.waves[: state.wave - 1])
        return of_nobody(
            self._spec,
            wave.definition,
            self._facts.matches,
            self._facts.members,
            is_proved=is_proved,
        )

    def _untried(self, state: RolloutStatus, wave: WaveStatus) -> RolloutStatus:
        """A wave of nobody waits for a person; by waves that were corrected it begins again."""
        listed, _ = waves.expanded(self._spec, self._facts.label_values)
        arm = arm_of(state.layers[0])
        if arm is not None and listed != tuple(each.definition for each in state.waves):
            return begun(self._spec, self._facts, state, arm, self._now.wall_ms)
        return _at_phase(state, wave, "AwaitingApproval")

    def _next_wave(self, state: RolloutStatus) -> RolloutStatus:
        if state.wave < len(state.waves):
            at = state.wave
            name = state.waves[at].name
            return changed(state, wave=at + 1, wave_name=name, phase="Progressing")
        return finished(state)

    def _failed(self, state: RolloutStatus, wave: WaveStatus, reason: str) -> RolloutStatus:
        if found := self._culprits(state):
            reason = f"{reason}: {found}"
        state = with_wave(state, changed(wave, phase="Failed", reason=reason, soaked=0))
        if self._spec.on_failure == "abort" and len(state.layers) > 1:
            return aborted(state, self._now.wall_ms, keep=False)
        return changed(state, phase="Paused")

    def _culprits(self, state: RolloutStatus) -> str:
        """Which objects of the present wave's members are not as they should be, where and why."""
        assert self._facts.count is not None
        gate = waves.gate_name(state.revision, state.wave - 1)
        samples = self._facts.count.summary.exceptions
        return culprits(samples, lambda paths: self._facts.in_wave(gate, paths))

    # Time.

    def _left(self, wave: WaveStatus) -> float | None:
        """How long the wave still may not be good; what its rate makes it wait is not counted."""
        deadline = seconds_of(wave.definition.deadline or self._spec.deadline)
        return None if deadline is None else deadline + paced(wave) - self.run.lasted

    def _wake_in(self, seconds: float) -> None:
        self.wake = max(seconds, 0.0) if self.wake is None else min(self.wake, max(seconds, 0.0))


def _paused(state: RolloutStatus) -> RolloutStatus:
    held = is_under_way(state) and (state.paused or _has_failed(state))
    return changed(state, phase="Paused") if held and state.phase != "Paused" else state


def _has_failed(state: RolloutStatus) -> bool:
    wave = present(state)
    return wave is not None and wave.phase == "Failed"


def _is_back(state: RolloutStatus) -> bool:
    """Whether all went back by an abort to what the space wants."""
    newest = state.layers[0] if state.layers else None
    return (
        state.phase == "Aborted"
        and not state.wish
        and newest is not None
        and newest.revision != state.revision
        and newest.manifest == state.target
        and layers.reaches_all(state.layers)
    )


def _at_phase(state: RolloutStatus, wave: WaveStatus, phase: str) -> RolloutStatus:
    return changed(with_wave(state, changed(wave, phase=phase)), phase=phase)


def _back(state: RolloutStatus) -> RolloutStatus:
    """The former wave again: it is judged until the next begins, for which people may wait long."""
    state = changed(state, wave=state.wave - 1, wave_name=state.waves[state.wave - 2].name)
    wave = present(state)
    assert wave is not None
    return _at_phase(state, changed(wave, soaked=0), "Progressing")
