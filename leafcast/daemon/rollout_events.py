"""What becomes of Rollouts, as events: revisions, waves, failures, commands."""

from __future__ import annotations

from collections.abc import Iterator

from leafcast.daemon.event_log import NORMAL, WARNING, EventLog
from leafcast.daemon.status_events import Status, StatusEvent, follow_statuses
from relay.ports import Clock
from relay.space_port import Interest, Space
from schemas.values.groups import DENATURED_GROUP

ROLLOUTS = Interest(DENATURED_GROUP, "rollouts")
_TOLD = {
    "AwaitingApproval": (NORMAL, "AwaitingApproval"),
    "Paused": (WARNING, "RolloutPaused"),
    "Held": (WARNING, "RolloutHeld"),
    "Aborted": (WARNING, "RolloutAborted"),
    "Complete": (NORMAL, "RolledOut"),
    "Partial": (NORMAL, "RolledOut"),
}
"""Phases that are told, each as a kind and a reason."""


async def follow_rollouts(space: Space, events: EventLog, clock: Clock) -> None:
    """Tell of each Rollout of a space what happens from now on."""
    await follow_statuses(space, ROLLOUTS, "rollout", lambda: events_between, events, clock)


def events_between(before: Status | None, status: Status) -> Iterator[StatusEvent]:
    """What happened between two statuses of a Rollout; what the first list shows was so before."""
    if before is None:
        return
    revision, wave = status.get("revision", 0), status.get("waveName", "")
    if revision != before.get("revision", 0) and status.get("waves"):
        yield StatusEvent(NORMAL, "RevisionBegan", f"revision {revision} goes out by waves")
    elif wave and wave != before.get("waveName", ""):
        yield StatusEvent(NORMAL, "WaveBegan", f'revision {revision} is at wave "{wave}"')
    phase, message = status.get("phase", ""), str(status.get("message", ""))
    if phase in _TOLD and phase != before.get("phase"):
        yield StatusEvent(*_TOLD[phase], message)
    request = status.get("request") or {}
    if request and request.get("id") != (before.get("request") or {}).get("id"):
        refused = request.get("outcome") != "Done"
        said = f"{request.get('action')}: {request.get('message')}"
        yield StatusEvent(WARNING if refused else NORMAL, f"Request{request.get('outcome')}", said)
    late = status.get("late") or 0
    if late > (before.get("late") or 0):
        said = f"{late} fail that revision {revision} was rolled out to"
        yield StatusEvent(WARNING, "LateFailures", said)
