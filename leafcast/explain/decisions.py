"""What the centre decides about a copy, as stages: by the predicates that decide it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from controllers.core.planning.holdings import of_deleted, of_standing
from controllers.core.planning.states import HeldBack
from controllers.core.rollout.state import present
from controllers.core.status.rollout_holds import Steered
from controllers.core.workloads.missing_references import Lack
from controllers.core.workloads.space import FROZEN
from controllers.core.workloads.unread_kinds import KINDS_LACKED
from leafcast.explain.facts import Explanation
from leafcast.show.holds import milliseconds
from leafcast.show.stages import CopyStage, stage_of_hold
from relay.core.gates import Candidate
from schemas.records.hold_reasons import (
    CUSTOMIZATION_FROZEN,
    INVALID,
    MAINTENANCE,
    MOVING,
    OBJECTS_REFUSED,
    OF_ROLLOUTS,
    OVERRIDDEN,
    REMOVAL_HELD,
    SECRETS_UNOPENED,
    WAITING,
    WINDOW,
)
from schemas.records.maintenance import maintenance_of
from schemas.records.placements import short_title, title
from schemas.records.records import LocationRecord, Profile
from schemas.records.windows import zone_fault
from schemas.values.faults import Fault
from schemas.values.wording import namespace_first

Form = Mapping[str, Any]

_TOLD_OTHERWISE = OF_ROLLOUTS | {
    # The destination says it, and better; or it is about removals, or told by itself.
    CUSTOMIZATION_FROZEN,
    MAINTENANCE,
    MOVING,
    OBJECTS_REFUSED,
    OVERRIDDEN,
    REMOVAL_HELD,
    SECRETS_UNOPENED,
    WAITING,
    WINDOW,
}


def of_spaces(troubles: Mapping[str, str]) -> Iterator[Explanation]:
    """Hubs that the centre may not work on."""
    for hub, why in sorted(troubles.items()):
        yield Explanation(CopyStage.SPACE, f"{hub}: {why}", "leafcast doctor")


def of_lack(
    placement: str, lack: Lack | None, near: Explanation | None, *, selects_nothing: bool
) -> Iterator[Explanation]:
    """What a placement lacks, if that may be why nothing comes of it.

    `near` is why the object is not selected that comes nearest to it.
    """
    if lack is None:
        return
    see = f"leafcast describe {short_title(placement)}"
    if lack.reason == FROZEN:
        yield Explanation(CopyStage.FROZEN, lack.message, f"mend the object; {see}")
    elif lack.reason in KINDS_LACKED:
        yield Explanation(CopyStage.SPACE, lack.message, see)
    elif selects_nothing and near is not None:
        yield replace(near, said=f"no object is selected; {near.said}")
    elif selects_nothing:
        yield Explanation(CopyStage.NOT_SELECTED, lack.message, f"apply what is missing; {see}")


def of_holds(
    placement: str,
    forms: Sequence[Form],
    profile: Profile,
    refused: Mapping[Any, Fault],
    now_ms: int,
) -> Iterator[Explanation]:
    """What holds the placement wherever it goes, or all at this place.

    `refused` are its objects that cannot go out as they are, or the one that is asked about.
    """
    for form in forms:
        if form["reason"] not in _TOLD_OTHERWISE:
            yield _of_form(form)
    since = {form["reason"]: _since(form) for form in forms}
    for key, fault in sorted(refused.items())[:1]:
        said = f"{OBJECTS_REFUSED}: {namespace_first(str(key))}: {fault.path}: {fault.message}"
        remedy = fault.remedy or f"mend it; leafcast describe {short_title(placement)}"
        yield Explanation(CopyStage.HELD, said, remedy, since.get(OBJECTS_REFUSED))
    maintenance = maintenance_of(profile.annotations)
    if maintenance.is_on(now_ms):
        yield Explanation(
            CopyStage.HELD,
            f"{MAINTENANCE}: a person works at {profile.path} {maintenance}",
            f"it ends by itself; sooner: leafcast maintenance off {profile.path}",
            at=str(profile.path),
        )


def of_removal(forms: Sequence[Form]) -> Iterator[Explanation]:
    """What holds a removal that the centre would carry out."""
    for form in forms:
        if form["reason"] == REMOVAL_HELD:
            said = f"{REMOVAL_HELD}: {form.get('message', '')}"
            yield Explanation(CopyStage.LEAVING, said, str(form.get("remedy", "")), _since(form))


def of_rollout(
    steered: Steered,
    profile: Profile,
    locations: tuple[LocationRecord, ...],
    forms: Sequence[Form],
    now_ms: int,
    *,
    is_rejected: bool,
) -> Iterator[Explanation]:
    """What its Rollout keeps of the newest content from a destination.

    `is_rejected` of what was aborted or undone, and is asked about.
    """
    if not steered.rollout and steered.rejected is None:
        held = of_deleted(steered.placement).everywhere
        if held is not None and not steered.is_everywhere:
            yield _of_held(held, forms)
        return
    if is_rejected:
        yield from (_of_form(form) for form in forms if form["reason"] in _REJECTED)
    want = steered.newest if steered.rejected is None else steered.target
    reasons = of_standing(steered, now_ms)
    who = Candidate(profile, lambda _: locations)
    gate = next((gate for gate in steered.gates if who.matches(gate)), None)
    if want is None or gate is None:
        return
    if gate.arm == want:
        held = reasons.waiting(profile, locations)
    else:
        held = reasons.at(profile, locations) or reasons.going or HeldBack("", _NOT_YET)
    if held is None:
        return
    windows = gate.windows if gate.arm == want else ()
    if fault := zone_fault(windows, profile.labels):
        said, _, remedy = fault.partition("; ")
        said = f"its windows open at times of the place, and {said}"
        yield Explanation(CopyStage.WINDOW, said, remedy, at=str(profile.path))
    yield _with_message(_of_held(held, forms), steered)


_REJECTED = frozenset({"RolloutAborted", "Undone"})
_NOT_YET = "the gates give it another content"


def _with_message(found: Explanation, steered: Steered) -> Explanation:
    """Of one that waits for its turn also what that waits for."""
    state = steered.state
    if found.stage is not CopyStage.GATE or state is None or found.remedy:
        return found
    wave = present(state)
    since = milliseconds(wave.since) if wave is not None and wave.since else None
    said = f"{found.said}: {state.message}" if state.message else found.said
    remedy = f"leafcast rollout status {steered.rollout}"
    return Explanation(CopyStage.GATE, said, remedy, since)


def _of_held(held: HeldBack, forms: Iterable[Form]) -> Explanation:
    form = next((form for form in forms if form["reason"] == held.reason), None)
    stage = stage_of_hold(held.reason) if held.reason else CopyStage.GATE
    said = f"{held.reason}: {held.said}" if stage is CopyStage.HELD else held.said
    return Explanation(stage, said, held.remedy, _since(form) if form is not None else None)


def _of_form(form: Form) -> Explanation:
    reason = form["reason"]
    said = ": ".join(filter(None, (reason, str(form.get("message", "")))))
    return Explanation(stage_of_hold(reason), said, str(form.get("remedy", "")), _since(form))


def _since(form: Form) -> int | None:
    return milliseconds(str(form.get("since") or ""))


def invalid(placement: str, problem: str) -> Iterator[Explanation]:
    """That a placement, or an object of it, cannot be read."""
    if problem:
        said, _, remedy = problem.partition("; ")
        about = f"{INVALID}: {title(placement)}: {said}"
        yield Explanation(CopyStage.HELD, about, remedy or "correct it and apply it")
