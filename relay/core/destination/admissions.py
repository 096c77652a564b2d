"""By which gate each placement comes to this destination, and for which it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay.core.destination.assignment import Assignment
from relay.core.destination.object_outcome import not_delivered
from relay.core.destination.tally import SAMPLES_MAX
from relay.core.gates import Candidate, GateMatch, admit, arm_name
from relay.core.instant import Instant
from schemas.records.records import Gate, Profile, TakenArms
from schemas.records.windows import next_opening, zone_fault
from schemas.reports.reports import CELL_FORMER, ExceptionSample, Summary, cell
from schemas.values.identity import MailKey
from schemas.values.wire import encode, replace

NO_ZONE = "NoZone"
LOOK_AGAIN_SECONDS = 60.0
"""A clock may be set: so often who waits for a window looks at it."""


class AdmittedArms:
    """What the gates of placements in force said last, and which of their arms were taken.

    Those of placements with windows are noted for the next run: a window that closed meanwhile must
    not take them away.
    """

    def __init__(self, noted: Mapping[MailKey, tuple[str, ...]]) -> None:
        """`noted` is what the former run took."""
        # By placement the names of arms, of those that its gates give.
        self._taken = dict(noted)
        self._noted = dict(noted)
        # Placements with windows.
        self._windowed: dict[MailKey, None] = dict.fromkeys(noted)
        self._admitted: dict[MailKey, GateMatch] = {}
        # When to look at a placement again that waits for a window, in monotonic seconds.
        self._due: dict[MailKey, float] = {}

    def judge(self, key: MailKey, gates: Sequence[Gate], who: Candidate, now: Instant) -> GateMatch:
        """Look at a placement's gates."""
        admission = admit(gates, who, self._taken.get(key, ()), now.wall_ms)
        self._admitted[key] = admission
        given = {arm_name(gate.arm) for gate in gates}
        took = {*self._taken.get(key, ()), arm_name(admission.arm)}
        self._taken[key] = tuple(sorted(took & given))
        self._windowed.pop(key, None)
        if any(gate.windows for gate in gates):
            self._windowed[key] = None
        self._due.pop(key, None)
        if admission.awaits:
            opens = next_opening(admission.awaits, who.profile.labels, now.wall_ms)
            if opens is not None:
                seconds = (opens - now.wall_ms) / 1000
                self._due[key] = now.seconds + min(seconds, LOOK_AGAIN_SECONDS)
        return admission

    def of(self, key: MailKey) -> GateMatch | None:
        """What was said last; None if the gates are not known."""
        return self._admitted.get(key)

    def forget(self, key: MailKey) -> None:
        """The gates are not known any more; what was taken stays taken."""
        self._admitted.pop(key, None)
        self._due.pop(key, None)

    def end(self, key: MailKey) -> None:
        """The placement means nothing here any more."""
        self.forget(key)
        self._taken.pop(key, None)
        self._windowed.pop(key, None)

    def counted(
        self, key: MailKey, summary: Summary, profile: Profile | None, said: Assignment | None
    ) -> Summary:
        """The summary, counted in the wave of the gate that admits it, or for which it waits."""
        if said is None or not summary.states or profile is None:
            return summary
        return in_wave(summary, self.of(key), profile, gated=said.gated)

    def deadline(self) -> float | None:
        """When a placement is to be looked at again, in monotonic seconds."""
        return min(self._due.values(), default=None)

    def due(self, now: float) -> list[MailKey]:
        """The placements to look at again."""
        return [key for key, at in self._due.items() if at <= now]

    def take_note(self) -> bytes | None:
        """What is to be kept for the next run, if it is another than before."""
        taken = {key: self._taken[key] for key in self._windowed}
        if taken == self._noted:
            return None
        self._noted = taken
        return encode(TakenArms(taken))


def in_wave(
    summary: Summary, admission: GateMatch | None, profile: Profile, *, gated: bool
) -> Summary:
    """What one destination says of a placement, with the wave in which it counts.

    Who waits for a window, or has nothing before its wave, is neither well nor ill with what is to
    come.
    """
    if admission is None:
        # Its gates are withheld.
        return replace(summary, cells={CELL_FORMER: 1} if gated else {})
    if admission.awaits and not summary.maintained:
        [health] = summary.health
        health = not_delivered(health, "unknown")
        summary = replace(summary, states={"waiting": 1}, health={health: 1})
        fault = zone_fault(admission.awaits, profile.labels)
        if fault is not None:
            sample = ExceptionSample(1, "", f"{NO_ZONE}: {fault}", 1, str(profile.path))
            said = (sample, *summary.exceptions)[:SAMPLES_MAX]
            summary = replace(summary, exceptions=said)
    elif gated and admission.arm is None and "synced" in summary.states:
        # There is nothing that it could have.
        summary = replace(summary, states={"waiting": 1}, health={"unknown": 1})
    if not admission.wave:
        return summary
    [state], [health] = summary.states, summary.health
    return replace(summary, cells={cell(admission.wave, state, health): 1})
