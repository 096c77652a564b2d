"""When the centre itself takes a release: before all waves, or after them.

The record says it by one more wave, which admits the centre and nobody else. A centre that is
upgraded by a person is waited for by no wave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from controllers.core.rollout.release_steps import (
    ReleaseMembers,
    ReleaseStep,
    next_step,
    release_waves,
    waves_open,
)
from relay.core.release_waves import is_of_centre
from schemas.api.leafcast_release import LeafcastReleaseSpec, ReleasePhase
from schemas.records.release_body import ReleaseWave
from schemas.releases.release_manifest import CENTRE_LAST
from schemas.releases.release_refused import ReleaseRefused
from schemas.releases.release_version import version_order
from schemas.reports.running import FAILED, UNMANAGED, ReleaseState, Running
from schemas.values.identity import NodePath

_WAITS = "it waits for what the centre says of itself"


@dataclass(frozen=True, slots=True)
class CentreTurn:
    """What is known of the centre.

    `order` is that of the manifest, `own` what the centre said of itself last. `is_over` is whether
    the release is complete, and nobody asked for it again.
    """

    order: str
    own: Running
    is_over: bool


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
    step = next_step(spec, members, waves, running, good_since_ms, now_ms)
    if spec.aborted:
        return step
    if not NodePath.parse(spec.path).is_root:
        return replace(step, centre_says=f"left as it is: the release is for {spec.path}")
    newer = _newer(spec, centre.own)
    if centre.is_over and (newer or not was_open):
        # A person upgraded it since; or the record names no turn of the centre.
        out = "the release was out before the centre was asked"
        why = f"it runs {newer}, which is newer" if newer else out
        return replace(step, centre_says=f"left as it is: {why}")
    said, text = _word(spec, centre.own)
    if not centre.own.counts and not before:
        return ReleaseStep((), "Progressing", _WAITS, centre_says=text)
    if centre.order == CENTRE_LAST or newer:
        # What takes the tree back is taken by the centre last: what it has issued by then an older
        # program may not know.
        wave = _centre_wave(spec, -1)
        if not was_open and step.phase != "Complete":
            text = text if said is _Said.BY_HAND else "it goes last, after all waves"
            return replace(step, centre_says=text)
    elif spec.paused and not was_open:
        return replace(step, centre_says=text)
    else:
        wave = _centre_wave(spec, 0)
        if said is _Said.WAITING and not waves:
            phase: ReleasePhase = "Paused" if spec.paused else "Progressing"
            return ReleaseStep((), phase, f"the centre goes first: {text}", None, None, wave, text)
    return _judged(replace(step, centre=wave, centre_says=text), spec, waves, said, centre)


def _judged(
    step: ReleaseStep,
    spec: LeafcastReleaseSpec,
    waves: Sequence[ReleaseWave],
    said: _Said,
    centre: CentreTurn,
) -> ReleaseStep:
    """What follows once the centre may take it."""
    if said is _Said.FAILED:
        message = "the centre could not take it; nothing more begins"
        opened = waves_open(release_waves(spec), waves)
        return replace(step, waves=opened, phase="Failed", message=message, due_seconds=None)
    if said is _Said.WAITING and step.phase == "Complete" and not centre.is_over:
        return replace(step, phase="Progressing", message=f"the centre: {step.centre_says}")
    return step


def _newer(spec: LeafcastReleaseSpec, own: Running) -> str:
    """What the centre runs, if that is newer than the release; else ""."""
    try:
        wanted = version_order(spec.version)
        return next((it.version for it in own.counts if version_order(it.version) > wanted), "")
    except ReleaseRefused:
        return ""


def _centre_wave(spec: LeafcastReleaseSpec, beside: int) -> ReleaseWave:
    """One for the centre alone, in the windows of the first or of the last wave."""
    windows = release_waves(spec)[beside].windows
    return ReleaseWave(len(spec.waves) + 1, windows=windows, relays=0, edges=False)


def _word(spec: LeafcastReleaseSpec, own: Running) -> tuple[_Said, str]:
    """What the centre says of the release, and in words."""
    said = next(iter(own.counts), None)
    if said is None:
        return _Said.WAITING, "nothing is heard of it yet"
    if said.state in UNMANAGED:
        unpinned = said.state == ReleaseState.UNPINNED
        why = "it pins no publisher" if unpinned else "no launcher runs it"
        is_done = said.version == spec.version
        todo = "" if is_done else f": install {spec.version} there"
        return _Said.BY_HAND, f"by hand, as {why}; it runs {said.version}{todo}"
    if said.wanted != spec.version:
        return _Said.WAITING, f"it runs {said.version}"
    why = next((fault.why for fault in own.faults), "")
    text = f"{said.state}: {why}" if why else said.state
    if said.state in FAILED:
        return _Said.FAILED, text
    return _Said.HEALTHY if said.state == ReleaseState.HEALTHY else _Said.WAITING, text
