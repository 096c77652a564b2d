"""The inventory's SyncTargets and Locations are in the ledger as profiles and location records."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from controllers.core.conditions import merged
from controllers.core.inventory.label_brakes import Weights
from controllers.core.inventory.properties import CONFIG_MAPS
from controllers.core.inventory.records import REGISTERED
from controllers.core.inventory.registry import LOCATIONS, Registry, target_key
from controllers.issuing.issuer import Issuer
from controllers.spaces.following import listed_objects
from controllers.spaces.informer import SpaceInformer, SpaceReconciler, identity_of
from controllers.spaces.status_writing import put_status
from controllers.work_queue import ALL, PlacementQueues, WorkQueue
from relay.ports import Clock
from relay.space_errors import SpaceError
from relay.space_port import Interest, Interests, Object, ObjectChange, Space, Unserved
from schemas.api.shared import Condition
from schemas.objects.objects import GroupResource, ObjectKey
from schemas.records.records import INVENTORY_MARK, DeltaHead, Record
from schemas.values.groups import GROUP, PROPERTIES_NAMESPACE
from schemas.values.identity import MailKey, NodePath

_INTERESTS = (
    Interest(GROUP, "synctargets"),
    Interest(GROUP, LOCATIONS),
    Interest(*CONFIG_MAPS, namespace=PROPERTIES_NAMESPACE),
)

LATE_SECONDS, LOOK_SECONDS = 1.0, 600.0
"""So long after the end of a maintenance it is looked at again, and so often meanwhile."""


InventoryKey = ObjectKey | NodePath
"""A SyncTarget or Location; or a node that came or went."""


class MailboxController(SpaceReconciler[InventoryKey]):
    """The reconciler of one inventory space; what it decides is in `Registry`."""

    def __init__(
        self,
        issuer: Issuer,
        space: Space,
        clock: Clock,
        queue: WorkQueue[InventoryKey],
        spaces: set[str],
        placements: Sequence[PlacementQueues],
        weights: Weights,
    ) -> None:
        super().__init__(space, clock, queue)
        self._issuer = issuer
        # The identities of the inventory spaces that are followed; it adds its own.
        self._spaces = spaces
        # In these all placements are looked at again when destinations changed.
        self._slices = [queues.slices for queues in placements]
        self._statuses = [queues.statuses for queues in placements]
        # Knows what removals weigh.
        self._weights = weights
        # What waits for a placement that is to hold it first, or until placements are known.
        self._deferred: frozenset[ObjectKey] = frozenset()
        issuer.listen(self._ledger_changed)
        issuer.brakes.listen(lambda: self._queue.add(self.registry.braked() | self._deferred))
        # Why nothing reaches a SyncTarget that is valid, by name.
        self.unplaced: dict[str, str] = {}
        # What is decided of its SyncTargets and Locations.
        self.registry = self._registry_of("")
        self._continuity = issuer.continuity("")

    async def listing(self) -> dict[ObjectKey, Object]:
        """All that the space shows of SyncTargets, Locations and properties; raises SpaceError."""
        objects: dict[ObjectKey, Object] = {}
        for item in _INTERESTS:
            objects |= await listed_objects(self.space, item.group, item.resource, item.namespace)
        return objects

    @property
    def unready(self) -> str:
        """What keeps it from being told of SyncTargets and Locations now; "" if nothing does."""
        return self.unread([(GROUP, "synctargets"), (GROUP, LOCATIONS)])

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken, and SpaceError if the space is another."""
        identity = await identity_of(self.space, self.clock)
        self._spaces.add(identity)
        self.registry = self._registry_of(identity)
        # The same API server may hold workloads, which are known for themselves.
        self._continuity = self._issuer.continuity(
            f"{identity}{INVENTORY_MARK}" if identity else ""
        )
        async with asyncio.TaskGroup() as group:
            self._informer = SpaceInformer(
                self.space, identity, Interests(_INTERESTS), self, self.clock
            )
            group.create_task(self._informer.run(), name="inventory")
            group.create_task(self._queue.work(self.reconcile), name="register")

    def not_served(self, event: Unserved) -> None:
        """Say why a kind cannot be read."""
        if event.interest.group_resource == CONFIG_MAPS:
            self.registry.properties.not_listed()
        self.registry.errors[f"{event.interest.resource}/Unserved"] = event.message

    def listed(self, objects: Mapping[ObjectKey, Object], kind: GroupResource | None) -> None:
        """Take all objects of the space, or all of one kind."""
        for resource in {kind[1]} if kind else {item.resource for item in _INTERESTS}:
            self.registry.errors.pop(f"{resource}/Unserved", None)
        if self._informer is not None:
            self._continuity.read_at(self._informer.listed_at)
        self._queue.add(self.registry.listed(objects, kind))
        self._look_at_slices()

    def changed(self, change: ObjectChange) -> None:
        """Take a change of the space."""
        self._continuity.saw(change, is_defined=True)
        if change.kind == "deleted":
            self._queue.add(self.registry.deleted(change.key))
        else:
            self._queue.add(self.registry.put(change.key, change.object))

    def accept_removals(self, only: Collection[ObjectKey] | None = None) -> None:
        """Let held removals pass, or of these only those of some objects."""
        self._queue.add(self.registry.accept(only))

    def release(self, slot: MailKey, placement: MailKey) -> None:
        """Let go of what the record in this slot holds for a placement, if it is of this space."""
        self._queue.add(self.registry.release(slot, placement))

    def look_at_deferred(self) -> bool:
        """Look again at what waited for placements to be known, or to hold it; whether any did."""
        self._queue.add(self._deferred)
        return bool(self._deferred)

    def look_at_all(self) -> None:
        """Look again at every SyncTarget: places may have become free."""
        self._queue.add(self.registry.all_targets())

    async def reconcile(self, keys: frozenset[InventoryKey]) -> list[InventoryKey]:
        """Register these, and say in conditions what is wrong; those to be tried again."""
        try:
            self.registry.lost = await self._continuity.lost(
                self.space, lambda: self.registry.unseen
            )
        except SpaceError:
            return [*keys]
        if self._continuity.fell():
            keys |= self.registry.doubt()
        objects = {key for key in keys if isinstance(key, ObjectKey)}
        objects |= self.registry.targets_at(key for key in keys if isinstance(key, NodePath))
        now_ms, brake = self.clock.now().wall_ms, self._issuer.brakes.brake
        held = dict(brake.held)
        work = self.registry.next(objects, now_ms)
        self._deferred = self._deferred - objects | work.deferred
        for key, seconds in self.registry.maintenance_ends(objects, now_ms).items():
            # A clock may be set.
            self._queue.add_later(key, min(seconds + LATE_SECONDS, LOOK_SECONDS))
        if work.drafts or work.deleted:
            await self._issuer.issue(work.drafts, work.deleted)
        issued = bool(work.drafts or work.deleted)
        await self._continuity.keep(issued=issued, whole=self.registry.is_whole)
        self._weights.brakes_changed({key for key, _ in held.items() ^ brake.held.items()})
        self._look_later(now_ms)
        self._note_unplaced(objects, work.conditions)
        self._look_at_slices()
        if any(key.resource == LOCATIONS for key in objects):
            for queue in self._statuses:
                queue.add([ALL])
        return [*await self._write(work.conditions), *work.deferred]

    def _look_later(self, now_ms: int) -> None:
        """Look again at what is held when some of it is to go by itself."""
        due, held = self._issuer.brakes.brake.due.values(), self.registry.braked()
        if due and held:
            self._queue.add_later(min(held), max(min(due) - now_ms, 0) / 1000)

    def _ledger_changed(self, records: Sequence[Record]) -> None:
        """Go on with what waited for a placement to hold it."""
        if self._deferred and any(isinstance(record, DeltaHead) for record in records):
            self._queue.add(self._deferred)

    def _registry_of(self, identity: str) -> Registry:
        keys = self._issuer.keys.sealing
        brakes = self._issuer.brakes, self._weights
        return Registry(
            identity,
            self._issuer.tree,
            self._issuer.records,
            self._spaces,
            lambda: keys.announced,
            brakes,
        )

    def _look_at_slices(self) -> None:
        for queue in self._slices:
            queue.add([ALL])

    def _note_unplaced(
        self, keys: Iterable[ObjectKey], conditions: Mapping[str, Condition]
    ) -> None:
        for key in keys:
            if key == target_key(key.name):
                self.unplaced.pop(key.name, None)
        for name, said in conditions.items():
            self.unplaced.pop(name, None)
            if said.status != "True" and f"synctarget/{name}" not in self.registry.errors:
                self.unplaced[name] = said.message

    async def _write(self, conditions: Mapping[str, Condition]) -> list[InventoryKey]:
        """Say what is wrong; that nothing is wrong is said only to who was told otherwise."""
        failed: list[InventoryKey] = []
        for name, said in conditions.items():
            key = target_key(name)
            obj = self.registry.objects.get(key)
            status = (obj or {}).get("status") or {}
            listed = status.get("conditions") or []
            known = any(item.get("type") == REGISTERED for item in listed)
            if said.status == "True" and not known:
                continue
            now_ms = self.clock.now().wall_ms
            new = {**status, "conditions": merged(listed, [said], now_ms)}
            if await put_status(self.space, key, obj, new) is not None:
                failed.append(key)
        return failed
