"""A space that behaves like a live cluster: workloads start, some fail, namespaces hold things.

It wraps another space. Two timers an object at most, in one task, so that a process can hold many.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from relay.objects import simulated_controllers
from relay.objects.stored_object import timestamp
from relay.ports import Clock, Dice
from relay.space_errors import NOT_FOUND, SpaceError, reason_suppressed
from relay.space_port import Interests, Object, ObjectChange, ObjectsListed, Space, SpaceEvent
from relay.waiting import until_due
from relay.wrapped_space import WrappedSpace
from schemas.objects.objects import BUILT_IN_KINDS, NAMESPACES, KindTable, ObjectKey

RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ApplyRefusal:
    """Applies of this resource whose name matches the glob are refused with the message."""

    resource: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Settings:
    """How the cluster behaves: times in seconds; `refuse` and `slow_names` are for tests."""

    startup_seconds: tuple[float, float] = (0.5, 3.0)
    deadline_seconds: float = 10.0
    refuse: tuple[ApplyRefusal, ...] = ()
    slow_seconds: float = 0.0
    slow_names: tuple[str, ...] = field(default=("*",))


class SimulatedCluster(WrappedSpace[Space]):
    """A space that `run` brings to life."""

    def __init__(
        self, space: Space, clock: Clock, dice: Dice, settings: Settings | None = None
    ) -> None:
        super().__init__(space)
        self._clock = clock
        self._dice = dice
        self.settings = settings or Settings()
        self._kinds: KindTable = BUILT_IN_KINDS
        self._due: dict[ObjectKey, tuple[float, str, int]] = {}
        self._timers: list[tuple[float, ObjectKey]] = []
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Live until cancelled."""
        async with asyncio.TaskGroup() as group:
            following = self._space.follow(Interests(None), self._told)
            group.create_task(following, name="cluster:watch")
            group.create_task(self._age(), name="cluster:time")

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        """As every space; what the settings name is refused."""
        name = str((obj.get("metadata") or {}).get("name", ""))
        slow = any(fnmatchcase(name, glob) for glob in self.settings.slow_names)
        if self.settings.slow_seconds and slow:
            await self._clock.sleep(self.settings.slow_seconds)
        if name and obj.get("kind") and obj.get("apiVersion"):
            self._refuse(self._kinds.key_of(obj))
        applied = await self._space.apply(
            obj, manager, create_only=create_only, force=force, dry_run=dry_run
        )
        self._kinds = self._kinds.extended_by([applied])
        return applied

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        """As every space; what a Namespace holds goes with it."""
        gone = await self._space.delete(key, uid)
        if gone and key.group_resource == NAMESPACES:
            listing = await self._space.list(namespace=key.name)
            for obj in listing.objects:
                await self._space.delete(self._kinds.key_of(obj), obj["metadata"]["uid"])
        return gone

    def _refuse(self, key: ObjectKey) -> None:
        for refusal in self.settings.refuse:
            if refusal.resource == key.resource and fnmatchcase(key.name, refusal.name):
                raise SpaceError("Forbidden", f"{key}: {refusal.message}")

    async def _told(self, event: SpaceEvent) -> None:
        match event:
            case ObjectsListed(_, objects):
                self._kinds = self._kinds.extended_by(objects.values())
                for key, obj in objects.items():
                    await self._notice(key, obj)
            case ObjectChange("deleted", key):
                self._due.pop(key, None)
            case ObjectChange(_, key, obj):
                await self._notice(key, obj)
            case _:
                return

    async def _notice(self, key: ObjectKey, obj: Object) -> None:
        """Begin to bring the object to life, unless it lives or that has begun already."""
        if not simulated_controllers.is_simulated(obj) or simulated_controllers.is_settled(obj):
            return
        uid, generation = obj["metadata"]["uid"], obj["metadata"].get("generation", 1)
        held = self._due.get(key)
        if held and held[1:] == (uid, generation):
            return
        if simulated_controllers.settles_at_once(obj):
            await self._write(key, obj, "ended")
            return
        due = self._clock.now().seconds + self._startup(obj)
        self._due[key] = (due, uid, generation)
        heapq.heappush(self._timers, (due, key))
        self._wake.set()
        await self._write(key, obj, "starting")

    def _startup(self, obj: Object) -> float:
        if simulated_controllers.is_broken(obj):
            return self.settings.deadline_seconds
        shortest, longest = self.settings.startup_seconds
        return shortest + (longest - shortest) * self._dice.fraction()

    async def _age(self) -> None:
        """End what is due; one task for all objects."""
        while True:
            self._wake.clear()
            now = self._clock.now().seconds
            while self._timers and self._timers[0][0] <= now:
                due, key = heapq.heappop(self._timers)
                held = self._due.get(key)
                if held and held[0] == due:
                    await self._end(key, held)
            await until_due(self._wake, self._clock, self._timers[0][0] if self._timers else None)

    async def _end(self, key: ObjectKey, held: tuple[float, str, int]) -> None:
        try:
            obj = await self._space.get(key)
            if obj and obj["metadata"]["uid"] == held[1]:
                await self._write(key, obj, "ended")
        except SpaceError:
            again = self._clock.now().seconds + RETRY_SECONDS
            self._due[key] = (again, *held[1:])
            heapq.heappush(self._timers, (again, key))
            return
        if self._due.get(key) == held:
            del self._due[key]

    async def _write(self, key: ObjectKey, obj: Object, stage: simulated_controllers.Stage) -> None:
        moment = timestamp(self._clock.now().wall_ms)
        address = "10." + ".".join(str(byte) for byte in self._dice.entropy(3))
        status = simulated_controllers.status_at(obj, stage, moment, address)
        with reason_suppressed(NOT_FOUND):
            await self._space.set_status(key, status)
