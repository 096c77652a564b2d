"""What keeps a change of a placement from destinations: its Rollout, a window, or a deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from controllers.core.planning.states import Closed, HeldBack, HoldReasons, Waiting
from controllers.core.rollout import kept_back, layers
from controllers.core.rollout.rejection import told
from controllers.core.status.rollout_holds import (
    Steered,
    places_of,
    remedy_of_rejected,
    why_waves_stand,
)
from controllers.core.translation.placements import Placements
from relay.core.gates import Candidate
from relay.objects.stored_object import timestamp
from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import RolloutStatus
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
    WINDOW,
)
from schemas.records.placements import short_title
from schemas.records.records import Gate, LocationRecord, Profile
from schemas.records.windows import Window, is_open, next_opening
from schemas.values.faults import Fault
from schemas.values.identity import NodePath

_STAY = frozenset({ROLLOUT_HELD, ROLLOUT_INVALID, ROLLOUT_PAUSED})
"""What holds a new revision, too; in all other states it begins with the first wave."""


def steered_of(placements: Placements, name: str) -> Steered | None:
    """What its Rollout makes of a placement, or made before it was deleted; None if none did."""
    rollouts, rejections = placements.workloads.rollouts, placements.rejections
    gates, rollout = placements.gates(name), rollouts.of(name)
    rejected, stranded = rejections.told(name), placements.gone.get(name)
    if gates is None and (rollout is not None or stranded is not None):
        # Nobody gets anything that the ledger does not have.
        gates = (Gate(None),)
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
    return HoldReasons(HeldBack(ROLLOUT_DELETED, "its Rollout was deleted", release))


def of_rollout(steered: Steered, waiting: Waiting, *, is_news: bool) -> HoldReasons:
    """What a Rollout keeps back of a change; `is_news` if that makes another content."""
    if steered.rejected is not None:
        # What is rejected stays back object by object: the rest is of what is to go out.
        steered = replace(steered, newest=steered.target)
    found = why_waves_stand(steered) if is_news or not steered.is_everywhere else None
    if found is not None and (not is_news or found[0] in _STAY):
        return HoldReasons(HeldBack(*found), _places(steered, is_news=is_news))
    places = _places(steered, is_news=is_news)
    if is_news or steered.is_everywhere:
        return HoldReasons(places=places, waiting=waiting)
    said = f'it goes out by the waves of rollout "{steered.rollout}"'
    return HoldReasons(HeldBack("", said), places, waiting, is_going=True)


def of_standing(steered: Steered, now_ms: int) -> HoldReasons:
    """What keeps back what is wanted already."""
    closed = never_open(steered, now_ms)
    return of_rollout(steered, of_gates(steered, closed, now_ms), is_news=False)


def _places(steered: Steered, *, is_news: bool) -> dict[NodePath, HeldBack]:
    """The places that keep what they have, the deepest first, and why."""
    state = steered.state
    places = places_of(state) if state is not None else {}
    if not is_news:
        held = kept_back.places_kept(steered.gates, steered.newest)
        places = {path: reason for path, reason in places.items() if path in held}
    deepest_first = sorted(places.items(), key=lambda it: (-len(it[0].names), it[0]))
    name, verbs = steered.rollout, {PINNED: "unpin"}
    return {
        path: HeldBack(
            reason,
            f'rollout "{name}" keeps what is at {path}',
            f"leafcast rollout {verbs.get(reason, 'unfreeze')} {name} --at {path}",
        )
        for path, reason in deepest_first
    }


def never_open(steered: Steered | None, now_ms: int) -> Closed:
    """Whether the windows of a gate were closed all the time since its wave began."""
    began = _began(steered.state) if steered is not None and steered.state is not None else {}

    def closed(gate: Gate, profile: Profile) -> bool:
        since_ms = began.get(gate.name)
        if not gate.windows or since_ms is None:
            return False
        if is_open(gate.windows, profile.labels, since_ms):
            return False
        opened = next_opening(gate.windows, profile.labels, since_ms)
        return opened is None or opened > now_ms

    return closed


def of_gates(steered: Steered, closed: Closed, now_ms: int) -> Waiting:
    """Who waits for a window of the newest content that is out."""

    def waiting(profile: Profile, locations: tuple[LocationRecord, ...]) -> HeldBack | None:
        who = Candidate(profile, lambda _: locations)
        gate = next((gate for gate in steered.gates if who.matches(gate)), None)
        if gate is None or gate.arm != steered.newest or not closed(gate, profile):
            return None
        return _said(steered.rollout, gate.windows, profile.labels, now_ms)

    return waiting


def of_spec(rollout: str, spec: RolloutSpec, now_ms: int) -> Waiting:
    """Who will wait for a window of a new content; of waves with windows of their own nobody."""
    windows = tuple(window.window for window in spec.windows)
    if any(wave.windows for wave in spec.waves):
        windows = ()

    def waiting(profile: Profile, _locations: tuple[LocationRecord, ...]) -> HeldBack | None:
        if not windows or is_open(windows, profile.labels, now_ms):
            return None
        return _said(rollout, windows, profile.labels, now_ms)

    return waiting


def _said(
    rollout: str, windows: Sequence[Window], labels: Mapping[str, str], now_ms: int
) -> HeldBack:
    opens = next_opening(windows, labels, now_ms)
    when = f"opens at {timestamp(opens)}" if opens is not None else "never opens here"
    said = f'the window of rollout "{rollout}" {when}'
    return HeldBack(WINDOW, said, f"leafcast rollout status {rollout}")


def _began(state: RolloutStatus) -> dict[str, int]:
    """When each wave of the present revision began, by the name of its gate."""
    found = {}
    for gate in (gate for layer in state.layers[:1] for gate in layer.gates):
        at = layers.wave_of(gate.name)
        since = state.waves[at].since if gate.name and at < len(state.waves) else None
        if since is not None:
            found[gate.name] = _milliseconds(since)
    return found


def _milliseconds(text: str) -> int:
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
