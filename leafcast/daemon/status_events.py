"""What becomes of objects of one kind, as events: by their statuses, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from leafcast.daemon.event_log import EventLog
from relay.ports import Clock
from relay.space_port import Interest, Interests, ObjectChange, ObjectsListed, Space, SpaceEvent
from schemas.objects.objects import ObjectKey

Status = Mapping[str, Any]


class StatusEvent(NamedTuple):
    """One event that a status tells; `node` is where it happened."""

    kind: str
    reason: str
    message: str
    node: str = "/"


StatusStory = Callable[[Status | None, Status], Iterable[StatusEvent]]
"""What happened between two statuses of an object.

There is none before if it was there before anybody followed it; an empty one if it is new.
"""


async def follow_statuses(
    space: Space,
    interest: Interest,
    title: str,
    story: Callable[[], StatusStory],
    events: EventLog,
    clock: Clock,
) -> None:
    """Tell of each object of a kind, `TITLE/NAME`, what happens from now on."""
    known: dict[ObjectKey, tuple[StatusStory, Status]] = {}

    def take(key: ObjectKey, obj: Mapping[str, Any], *, listed: bool) -> None:
        between, before = known.get(key) or (story(), None if listed else {})
        status = obj.get("status") or {}
        known[key] = between, status
        about, now_ms = f"{title}/{key.name}", clock.now().wall_ms
        for kind, reason, message, node in between(before, status):
            events.add(now_ms, kind, reason, node=node, about=about, message=message)

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

    await space.follow(Interests({interest}), tell)
