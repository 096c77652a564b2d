"""What keeps a change of a placement from destinations: its Rollout, or that this was deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from controllers.core.planning.arms import HoldReasons, Waiting
from controllers.core.rollout import kept_back
from controllers.core.rollout.rejection import told
from controllers.core.status.rollout_holds import (
    Steered,
    places_of,
    remedy_of_rejected,
    why_waves_stand,
)
from controllers.core.translation.placements import Placements
from schemas.objects.objects import ObjectKey
from schemas.records.hold_reasons import (
    OBJECTS_REFUSED,
    PINNED,
    ROLLOUT_ABORTED,
    ROLLOUT_DELETED,
    ROLLOUT_HELD,
    ROLLOUT_INVALID,
    ROLLOUT_PAUSED,
    UNDONE,
)
from schemas.records.placements import short_title
from schemas.records.records import Gate
from schemas.values.faults import Fault
from schemas.values.identity import NodePath

_STAY = frozenset({ROLLOUT_HELD, ROLLOUT_INVALID, ROLLOUT_PAUSED})
"""What holds a new revision, too; in all other states it begins with the first wave."""


def steered_of(placements: Placements, name: str) -> Steered | None:
    """What its Rollout makes of a placement, or made before it was deleted; None if none did."""
    rollouts, rejections = placements.workloads.rollouts, placements.rejections
    gates, rollout = placements.gates(name), rollouts.of(name)
    if gates is None and rollout is not None:
        # Nobody gets anything that the ledger does not have.
        gates = (Gate(None),)
    rejected, stranded = rejections.told(name), placements.gone.get(name)
    if gates is None or (rollout is None and stranded is None and rejected is None):
        return None
    # One that cannot be read steers nothing, and is there: mended it goes on.
    rollout = rollout or rollouts.unread_of(name)
    known = rejections.of(name) if rejected is not None else None
    return Steered(
        placement=name,
        gates=gates,
        newest=known.wish if known is not None else placements.newest(name),
        rollout=rollout or "",
        target=known.target if known is not None else None,
        rejected=rejected,
        is_stranded=stranded is not None,
        release_counted=rollouts.former.counted(name, placements.workloads.objects.get(name)),
        # A run that just started goes by what the object says.
        state=rollouts.state_of(name) or rollouts.stored_status(rollout or ""),
        invalid=rollouts.invalid.get(rollout or "", ""),
        news=stranded.news if stranded is not None else "",
    )


def why_refused(refused: Mapping[ObjectKey, Fault]) -> dict[ObjectKey, str]:
    """Why objects that cannot go out as they are stay as they went out last."""
    return {key: f"{OBJECTS_REFUSED}: {fault}" for key, fault in refused.items()}


def why_rejected(steered: Steered) -> str:
    """Why objects that were aborted or undone stay back."""
    rejected = steered.rejected
    if rejected is None:
        return ""
    reason = ROLLOUT_ABORTED if rejected.reason == "Aborted" else UNDONE
    return f"{reason}: {told(rejected)}; {remedy_of_rejected(steered)}"


def of_deleted(placement: str) -> HoldReasons:
    """Nothing goes out of a placement whose Rollout was deleted under way."""
    release = f"leafcast rollout release {short_title(placement)}"
    return HoldReasons(f"{ROLLOUT_DELETED}: its Rollout was deleted; {release}")


def of_rollout(steered: Steered, waiting: Waiting, *, is_news: bool) -> HoldReasons:
    """What a Rollout keeps back of a change; `is_news` if that makes another content."""
    if steered.rejected is not None:
        # What is rejected stays back object by object: the rest is of what is to go out.
        steered = replace(steered, newest=steered.target)
    found = why_waves_stand(steered) if is_news or not steered.is_everywhere else None
    if found is not None and (not is_news or found[0] in _STAY):
        reason, said, remedy = found
        return HoldReasons(f"{reason}: {said}; {remedy}", _places(steered, is_news=is_news))
    places = _places(steered, is_news=is_news)
    if is_news or steered.is_everywhere:
        return HoldReasons(places=places, waiting=waiting)
    said = f'it goes out by the waves of rollout "{steered.rollout}"'
    return HoldReasons(said, places, waiting, is_going=True)


def _places(steered: Steered, *, is_news: bool) -> dict[NodePath, str]:
    """The places that keep what they have, the deepest first, and why."""
    state = steered.state
    places = places_of(state) if state is not None else {}
    if not is_news:
        held = kept_back.places_kept(steered.gates, steered.newest)
        places = {path: reason for path, reason in places.items() if path in held}
    deepest_first = sorted(places.items(), key=lambda it: (-len(it[0].names), it[0]))
    return {path: _at_place(steered.rollout, path, reason) for path, reason in deepest_first}


def _at_place(rollout: str, path: NodePath, reason: str) -> str:
    verb = "unpin" if reason == PINNED else "unfreeze"
    said = f'rollout "{rollout}" keeps what is at {path}'
    return f"{reason}: {said}; leafcast rollout {verb} {rollout} --at {path}"
