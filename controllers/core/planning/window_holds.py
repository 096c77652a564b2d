"""Who waits for a window of a Rollout, as far as the centre can tell: it was never open yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from controllers.core.planning.arms import Closed, Waiting
from controllers.core.rollout import layers
from controllers.core.status.rollout_holds import Steered
from relay.core.gates import Candidate
from relay.objects.stored_object import timestamp
from schemas.api import RolloutSpec, RolloutStatus
from schemas.records.hold_reasons import WINDOW
from schemas.records.records import Gate, LocationRecord, Profile
from schemas.records.windows import Window, is_open, next_opening


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

    def waiting(profile: Profile, locations: tuple[LocationRecord, ...]) -> str:
        who = Candidate(profile, lambda _: locations)
        gate = next((gate for gate in steered.gates if who.matches(gate)), None)
        if gate is None or gate.arm != steered.newest or not closed(gate, profile):
            return ""
        return _said(steered.rollout, gate.windows, profile.labels, now_ms)

    return waiting


def of_spec(rollout: str, spec: RolloutSpec, now_ms: int) -> Waiting:
    """Who will wait for a window of a new content; of waves with windows of their own nobody."""
    windows = tuple(window.window for window in spec.windows)
    if any(wave.windows for wave in spec.waves):
        windows = ()

    def waiting(profile: Profile, _locations: tuple[LocationRecord, ...]) -> str:
        if not windows or is_open(windows, profile.labels, now_ms):
            return ""
        return _said(rollout, windows, profile.labels, now_ms)

    return waiting


def _said(rollout: str, windows: Sequence[Window], labels: Mapping[str, str], now_ms: int) -> str:
    opens = next_opening(windows, labels, now_ms)
    when = f"opens at {timestamp(opens)}" if opens is not None else "never opens here"
    return f'{WINDOW}: the window of rollout "{rollout}" {when}; leafcast rollout status {rollout}'


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
