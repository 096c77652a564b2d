"""What becomes of Rollouts, as events: revisions, waves, failures, commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from leafcast.daemon.event_log import NORMAL, WARNING, EventLog
from relay.ports import Clock
from relay.space_port import Interest, Interests, ObjectChange, ObjectsListed, Space, SpaceEvent
from schemas.objects.objects import ObjectKey
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


class _Event(NamedTuple):
    kind: str
    reason: str
    message: str


async def follow_rollouts(space: Space, events: EventLog, clock: Clock) -> None:
    """Tell of each Rollout of a space what happens from now on."""
    known: dict[ObjectKey, Mapping[str, Any]] = {}

    def take(key: ObjectKey, obj: Mapping[str, Any], *, listed: bool) -> None:
        before, status = known.get(key), obj.get("status") or {}
        known[key] = status
        if before is None and listed:
            # What the first list shows was so before.
            return
        about, now_ms = f"rollout/{key.name}", clock.now().wall_ms
        for kind, reason, message in events_between(before or {}, status):
            events.add(now_ms, kind, reason, node="/", about=about, message=message)

    async def tell(event: SpaceEvent) -> None:
        match event:
            case ObjectsListed(_, objects):
                for key in known.keys() - objects.keys():
                    del known[key]
                for key, obj in objects.items():
                    take(key, obj, listed=True)
            case ObjectChange("deleted", key):
                known.pop(key, None)
            case ObjectChange(_, key, obj):
                take(key, obj, listed=False)
            case _:
                return

    await space.follow(Interests({ROLLOUTS}), tell)


def events_between(before: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[_Event]:
    """What happened between two statuses of a Rollout."""
    revision, wave = status.get("revision", 0), status.get("waveName", "")
    if revision != before.get("revision", 0) and status.get("waves"):
        yield _Event(NORMAL, "RevisionBegan", f"revision {revision} goes out by waves")
    elif wave and wave != before.get("waveName", ""):
        yield _Event(NORMAL, "WaveBegan", f'revision {revision} is at wave "{wave}"')
    phase, message = status.get("phase", ""), str(status.get("message", ""))
    if phase in _TOLD and phase != before.get("phase"):
        yield _Event(*_TOLD[phase], message)
    request = status.get("request") or {}
    if request and request.get("id") != (before.get("request") or {}).get("id"):
        refused = request.get("outcome") != "Done"
        said = f"{request.get('action')}: {request.get('message')}"
        yield _Event(WARNING if refused else NORMAL, f"Request{request.get('outcome')}", said)
    late = status.get("late") or 0
    if late > (before.get("late") or 0):
        said = f"{late} fail that revision {revision} was rolled out to"
        yield _Event(WARNING, "LateFailures", said)
