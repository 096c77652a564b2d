"""When the centre itself takes a release: before all waves, or after them.

The record says it by one more wave, which admits the centre and nobody else. For a centre that is
upgraded by a person waves wait only if its wire says that it goes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from controllers.core.rollout.centre_order import CentreOrder
from controllers.core.rollout.release_opening import ReleaseMembers, waves_open
from controllers.core.rollout.release_steps import (
    ReleaseStep,
    next_step,
    release_waves,
    to_retry,
)
from relay.core.release_waves import is_of_centre
from schemas.api.leafcast_release import LeafcastReleaseSpec, ReleasePhase
from schemas.records.release_body import ReleaseWave
from schemas.releases.release_manifest import CENTRE_LAST
from schemas.releases.release_version import age_of
from schemas.reports.running import FAILED, UNMANAGED, ReleaseState, Running
from schemas.values.identity import NodePath

_WAITS = "it waits for what the centre says of itself"


@dataclass(frozen=True, slots=True)
class CentreTurn:
    """What is known of the centre.

    `asked` is the order that the manifest names, `order` what the wires allow, and `why_none` why
    they allow none. `own` is what the centre said of itself last; `is_over`, whether the release is
    complete, and nobody asked for it again.
    """

    asked: str
    order: CentreOrder
    why_none: str
    own: Running
    is_over: bool

    def goes(self, version: str) -> str:
        """First or last, as the wire says, and where that leaves the choice, the manifest.

        What takes the tree back goes last then: an older program may not know what was issued.
        """
        takes_back = newer_than(version, self.own)
        return self.order.chosen(CENTRE_LAST if takes_back else self.asked)

    @property
    def edges_first(self) -> bool:
        """Whether nodes go before those above them, as the wire says."""
        return self.order.forced == CENTRE_LAST

    @property
    def because(self) -> str:
        """Why the wire leaves no other order; "" if it does."""
        return f", as {self.order.why}" if self.order.why else ""


class _Said(Enum):
    WAITING = auto()
    HEALTHY = auto()
    BY_HAND = auto()
    FAILED = auto()


def step_of_tree(
    spec: LeafcastReleaseSpec,
    members: Sequence[ReleaseMembers],
    before: Sequence[ReleaseWave],
    running: Running,
    good_since_ms: int | None,
    now_ms: int,
    centre: CentreTurn,
) -> ReleaseStep:
    """What follows for the waves, and for the centre; `before` are those of the record."""
    waves = [wave for wave in before if not is_of_centre(wave)]
    was_open = len(waves) < len(before)
    first = centre.edges_first
    step = next_step(spec, members, waves, running, good_since_ms, now_ms, edges_first=first)
    if spec.aborted:
        return step
    if centre.why_none and not centre.is_over:
        return _stopped(step, spec, waves, centre.why_none, centre)
    if left := _left(spec, centre, was_open=was_open):
        return replace(step, centre_says=f"left as it is: {left}")
    if not centre.own.counts and not before:
        return ReleaseStep(
            (), "Progressing", _WAITS, centre_says=_word(spec, centre.own, step.phase)[1]
        )
    if centre.goes(spec.version) == CENTRE_LAST:
        return _last(step, spec, waves, centre, was_open=was_open)
    return _first(step, spec, waves, centre, was_open=was_open)


def _first(
    step: ReleaseStep,
    spec: LeafcastReleaseSpec,
    waves: Sequence[ReleaseWave],
    centre: CentreTurn,
    *,
    was_open: bool,
) -> ReleaseStep:
    """The centre before all waves; what a person upgrades, only where nodes would not be heard."""
    said, text = _word(spec, centre.own, step.phase)
    if spec.paused and not was_open:
        return replace(step, centre_says=text)
    wave = _centre_wave(spec, 0)
    is_due = said is _Said.BY_HAND and bool(centre.because) and not centre.is_over
    if (said is _Said.WAITING or is_due) and not waves:
        phase: ReleasePhase = "Paused" if spec.paused else "Progressing"
        message = f"the centre goes first: {text}{centre.because}"
        return ReleaseStep((), phase, message, None, None, wave, text)
    return _judged(replace(step, centre=wave, centre_says=text), spec, waves, said, centre)


def _last(
    step: ReleaseStep,
    spec: LeafcastReleaseSpec,
    waves: Sequence[ReleaseWave],
    centre: CentreTurn,
    *,
    was_open: bool,
) -> ReleaseStep:
    """The centre once all waves are through."""
    said, text = _word(spec, centre.own, step.phase)
    if not was_open and step.phase != "Complete":
        last = f"it goes last, after all waves{centre.because}"
        return replace(step, centre_says=text if said is _Said.BY_HAND else last)
    step = replace(step, centre=_centre_wave(spec, -1), centre_says=text)
    return _judged(step, spec, waves, said, centre)


def _left(spec: LeafcastReleaseSpec, centre: CentreTurn, *, was_open: bool) -> str:
    """Why the centre has nothing to do with it; "" if it has."""
    if not NodePath.parse(spec.path).is_root:
        return f"the release is for {spec.path}"
    if not centre.is_over:
        return ""
    if centre.why_none:
        return centre.why_none
    # A person upgraded it since; or the record names no turn of the centre.
    if newer := newer_than(spec.version, centre.own):
        return f"it runs {newer}, which is newer"
    return "" if was_open else "the release was out before the centre was asked"


def _judged(
    step: ReleaseStep,
    spec: LeafcastReleaseSpec,
    waves: Sequence[ReleaseWave],
    said: _Said,
    centre: CentreTurn,
) -> ReleaseStep:
    """What follows once the centre may take it."""
    if said is _Said.FAILED and centre.is_over:
        # All waves are through; the centre got its launcher since, or was asked again.
        message = f"{step.message}, but for the centre; {_remedy(spec)}"
        return replace(step, message=message)
    if said is _Said.FAILED:
        message = f"the centre could not take it; nothing more begins; {_remedy(spec)}"
        return _stopped(step, spec, waves, message, centre)
    if said is _Said.WAITING and step.phase == "Complete" and not centre.is_over:
        return replace(step, phase="Progressing", message=f"the centre: {step.centre_says}")
    return step


def _stopped(
    step: ReleaseStep,
    spec: LeafcastReleaseSpec,
    waves: Sequence[ReleaseWave],
    message: str,
    centre: CentreTurn,
) -> ReleaseStep:
    """Nothing begins beyond the waves that were open."""
    opened = waves_open(release_waves(spec), waves, edges_first=centre.edges_first)
    return replace(step, waves=opened, phase="Failed", message=message, due_seconds=None)


def _remedy(spec: LeafcastReleaseSpec) -> str:
    return to_retry(spec.version, "mend what is wrong there")


def newer_than(version: str, own: Running) -> str:
    """What the centre runs, if that is newer than a release; else ""."""
    return next((it.version for it in own.counts if age_of(it.version) > age_of(version)), "")


def _centre_wave(spec: LeafcastReleaseSpec, beside: int) -> ReleaseWave:
    """One for the centre alone, in the windows of the first or of the last wave."""
    windows = release_waves(spec)[beside].windows
    return ReleaseWave(len(spec.waves) + 1, windows=windows, relays=0, edges=False)


def _word(spec: LeafcastReleaseSpec, own: Running, phase: ReleasePhase) -> tuple[_Said, str]:
    """What the centre says of the release, and in words."""
    said = next(iter(own.counts), None)
    if said is None:
        return _Said.WAITING, "nothing is heard of it yet"
    if said.state in UNMANAGED:
        unpinned = said.state == ReleaseState.UNPINNED
        why = "it pins no publisher" if unpinned else "no launcher runs it"
        if said.version == spec.version:
            todo = ""
        elif phase == "Failed":
            todo = f"; leave it so, as {spec.version} failed elsewhere"
        else:
            todo = f": install {spec.version} there"
        return _Said.BY_HAND, f"by hand, as {why}; it runs {said.version}{todo}"
    if said.wanted != spec.version:
        return _Said.WAITING, f"it runs {said.version}"
    why = next((fault.why for fault in own.faults), "")
    text = f"{said.state}: {why}" if why else said.state
    if said.state in FAILED:
        return _Said.FAILED, text
    return _Said.HEALTHY if said.state == ReleaseState.HEALTHY else _Said.WAITING, text
