"""Why objects are still at work: said once that lasts, with what keeps their Pods.

What is on its way says nothing for a while: most of it arrives, and whoever reports would say each
step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from relay.objects.health import pod_trouble
from relay.ports import Clock
from relay.space_errors import SpaceError
from relay.space_port import Space
from relay.syncer.lingering import remaining_text
from relay.syncer.observed import ObservedState
from schemas.objects.objects import DEFINITIONS, NAMESPACES, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.values.refusals import BadSelector

STALLED_SECONDS = 5.0
LOOK_SECONDS_MAX = 60.0
"""Between two looks at the Pods of one object: 5 s at first, each time twice as long."""
LOOKED_AT_MAX = 20
"""How many objects at work are looked at: as many as a report names."""
PODS_MAX = 100
"""Larger ones tell only their own status."""
_WITH_PODS = frozenset(
    {
        ("apps", "daemonsets"),
        ("apps", "deployments"),
        ("apps", "replicasets"),
        ("apps", "statefulsets"),
        ("batch", "jobs"),
    }
)


_HOLDING = frozenset({NAMESPACES, DEFINITIONS})


class StalledObjects:
    """The objects that are neither well nor failing, since when, and what keeps their Pods."""

    def __init__(
        self, space: Space, clock: Clock, tell: Callable[[ObjectKey], Awaitable[None]]
    ) -> None:
        self._space = space
        self._clock = clock
        self._tell = tell
        self._since: dict[ObjectKey, float] = {}
        # When to look next, and what the last look found.
        self._looks: dict[ObjectKey, tuple[float, float]] = {}
        self._pods: dict[ObjectKey, str] = {}
        self._begun = asyncio.Event()

    def see(self, key: ObjectKey, sight: ObservedState | None) -> None:
        """Take in how an object does; None if it is gone, or not looked after any more."""
        if sight is None or sight.health not in ("progressing", "degraded"):
            self._since.pop(key, None)
            self._looks.pop(key, None)
            self._pods.pop(key, None)
        elif key not in self._since:
            now = self._since[key] = self._clock.now().seconds
            self._looks[key] = (now + STALLED_SECONDS, STALLED_SECONDS)
            self._begun.set()

    def reason(self, key: ObjectKey, sight: ObservedState) -> str:
        """Why the object is as it is; "" while it is at work and has not been for long."""
        since = self._since.get(key)
        if since is None:
            return sight.reason
        young = self._clock.now().seconds - since < STALLED_SECONDS
        if young and sight.health == "progressing":
            return ""
        return ": ".join(filter(None, (sight.reason, self._pods.get(key, ""))))

    async def run(self) -> None:
        """Tell of each object once its state lasts, and of its Pods as they change."""
        while True:
            self._begun.clear()
            now = self._clock.now().seconds
            due = sorted((at, key) for key, (at, _) in self._looks.items())[:LOOKED_AT_MAX]
            if not due:
                await self._begun.wait()
                continue
            for at, key in due:
                if at <= now:
                    await self._look(key)
            # What begins meanwhile is due no sooner.
            await self._clock.sleep(min(max(due[0][0] - now, 0.1), STALLED_SECONDS))

    async def _look(self, key: ObjectKey) -> None:
        found = await self._kept_by(key)
        if key not in self._looks:
            return
        pause = self._looks[key][1]
        self._looks[key] = (self._clock.now().seconds + pause, min(2 * pause, LOOK_SECONDS_MAX))
        self._pods[key] = found
        await self._tell(key)

    async def _kept_by(self, key: ObjectKey) -> str:
        """What keeps the first of its Pods that something keeps; "" if that is not to be known."""
        if key.group_resource not in (_WITH_PODS | _HOLDING):
            return ""
        try:
            live = await self._space.get(key)
            if key.group_resource in _HOLDING:
                return await remaining_text(self._space, key, live) if live is not None else ""
            if live is None or _pods_of(live.get("status")) > PODS_MAX:
                return ""
            selector = LabelSelector.from_kubernetes(live["spec"]["selector"])
            listing = await self._space.list("", "pods", namespace=key.namespace, selector=selector)
        except SpaceError:
            # Whoever does not answer says nothing new.
            return self._pods.get(key, "")
        except (BadSelector, KeyError):
            return ""
        return min(filter(None, map(pod_trouble, listing.objects)), default="")


def _pods_of(status: object) -> int:
    """How many Pods a controller says that it has."""
    counts = (
        status.get(name)
        for name in ("replicas", "desiredNumberScheduled", "active")
        if isinstance(status, dict)
    )
    return max((count for count in counts if isinstance(count, int)), default=0)
