"""The inventory's SyncTargets and Locations are in the ledger as profiles and location records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from controllers.adoption import inventory_objects, write_back
from controllers.core.conditions import merged
from controllers.core.inventory import REGISTERED, tombstone
from controllers.core.notes import Notes
from controllers.core.registry import LOCATIONS, Registry, target_key
from controllers.following import RETRY_SECONDS, Gathering, Informer, KindName, identity_of
from controllers.issuing import Issuer
from controllers.status_writing import write_status
from relay.ports import Change, Clock, Interest, Interests, Kind, Object, Space, Unserved
from schemas.api import GROUP, Condition, Destination, Location
from schemas.objects import ObjectKey
from schemas.records import LocationRecord, Profile, Record
from schemas.selectors import LabelSelector

_INTERESTS = (Interest(GROUP, "synctargets"), Interest(GROUP, LOCATIONS))


class MailboxController:
    """The reconciler of one inventory space; what it decides is in `Registry`.

    `told` hears when Locations changed, `moved` when Locations or SyncTargets did.
    """

    def __init__(self, issuer: Issuer, space: Space, clock: Clock) -> None:
        self._issuer = issuer
        self._space = space
        self._clock = clock
        self.told: Callable[[], None] = lambda: None
        self.moved: Callable[[], None] = lambda: None
        self.notes = Notes()
        self.unplaced: dict[str, str] = {}
        """Why nothing reaches a SyncTarget that is valid, by name."""
        self._registry = self._registry_of("")
        self._waiting: Gathering[ObjectKey] = Gathering(clock)

    @property
    def known(self) -> bool:
        """Whether the space was listed."""
        return self._registry.known

    @property
    def errors(self) -> Mapping[str, str]:
        """What is wrong with SyncTargets and Locations, and what is held of them."""
        return self._registry.errors

    @property
    def locations(self) -> Mapping[str, Location]:
        return self._registry.inventory.locations

    def pairs(self, selectors: Sequence[LabelSelector]) -> Iterator[Destination]:
        """The pairs of a Location that one of the selectors matches and a SyncTarget there."""
        return self._registry.inventory.pairs(selectors, self._registry.identity)

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken, and SpaceError if the space is another."""
        identity = await identity_of(self._space, self._clock)
        self.notes.spaces.add(identity)
        self._registry = self._registry_of(identity)
        async with asyncio.TaskGroup() as group:
            informer = Informer(self._space, Interests(_INTERESTS), self, self._clock)
            group.create_task(informer.run(), name="inventory")
            group.create_task(self._register_all(), name="register")

    async def caught_up(self) -> None:
        """Wait until the ledger says what the space holds now."""
        await self._waiting.worked_off(await self._space.revision())

    def believes(self, identity: str) -> bool:
        """Whether a list of the space of this identity says what is there."""
        return self._registry.believes(identity)

    def served(self, kinds: tuple[Kind, ...]) -> None:
        """Its two kinds are there, or nothing is."""

    def not_served(self, told: Unserved) -> None:
        """Say why a kind cannot be read."""
        self._registry.errors[f"{told.interest.resource}/Unserved"] = told.message

    def ready(self, _first: Mapping[ObjectKey, Object]) -> bool:
        """Its two kinds are all that is of interest."""
        return True

    def listed(self, objects: Mapping[ObjectKey, Object], kind: KindName | None) -> None:
        """Take all objects of the space, or all of one kind."""
        for resource in {kind[1]} if kind else {item.resource for item in _INTERESTS}:
            self._registry.errors.pop(f"{resource}/Unserved", None)
        self._waiting.add(self._registry.listed(objects, kind))
        self.moved()

    def synced(self) -> None:
        """What was read so far is all there was."""

    def read_to(self, revision: str) -> None:
        """Note that all that the space held at this revision was told."""
        self._waiting.read_to(revision)

    def changed(self, change: Change) -> None:
        """Take a change of the space."""
        if change.kind == "deleted":
            self._waiting.add(self._registry.deleted(change.key))
        else:
            self._waiting.add(self._registry.put(change.key, change.object))

    def issued(self, records: Iterable[Record]) -> None:
        """Look again at SyncTargets whose nodes came or went."""
        self._waiting.add(self._registry.nodes_changed(records))

    def accept_removals(self) -> None:
        """Let held removals pass."""
        self._waiting.add(self._registry.accept())

    def strangers(self) -> list[Record]:
        """Profiles and Locations in force that another inventory space said."""
        return self._registry.strangers()

    async def adopt(self) -> int:
        """Write what another space said into this one, and register it here; how many objects.

        What is there already stays as it is. Nobody is without Location or profile meanwhile.
        """
        strangers = self.strangers()
        count = await write_back(self._space, inventory_objects(strangers))
        await self.caught_up()
        self._registry.taking_over = True
        self._waiting.add(self._registry.all_targets())
        await self._waiting.worked_off()
        await self._issuer.issue(
            [tombstone("profile", record) for record in strangers if isinstance(record, Profile)]
            + [tombstone("location", r) for r in strangers if isinstance(r, LocationRecord)]
        )
        self.notes.settle(record.source.key for record in strangers)
        self._registry.taking_over = False
        return count

    def _registry_of(self, identity: str) -> Registry:
        return Registry(identity, self._issuer.tree, self._issuer.records, self.notes)

    async def _register_all(self) -> None:
        while True:
            keys = await self._waiting.take()
            drafts, conditions = self._registry.next(keys)
            if drafts:
                await self._issuer.issue(drafts)
            self._note_unplaced(keys, conditions)
            self.moved()
            if any(key.resource == LOCATIONS for key in keys):
                self.told()
            await self._write(conditions)

    def _note_unplaced(
        self, keys: Iterable[ObjectKey], conditions: Mapping[str, Condition]
    ) -> None:
        for key in keys:
            if key == target_key(key.name):
                self.unplaced.pop(key.name, None)
        for name, said in conditions.items():
            self.unplaced.pop(name, None)
            if said.status != "True" and f"synctarget/{name}" not in self.errors:
                self.unplaced[name] = said.message

    async def _write(self, conditions: Mapping[str, Condition]) -> None:
        """Say what is wrong; that nothing is wrong is said only to who was told otherwise."""
        for name, said in conditions.items():
            key = target_key(name)
            obj = self._registry.objects.get(key)
            status = (obj or {}).get("status") or {}
            listed = status.get("conditions") or []
            told = any(item.get("type") == REGISTERED for item in listed)
            if said.status == "True" and not told:
                continue
            now_ms = self._clock.now().wall_ms
            new = {**status, "conditions": merged(listed, [said], now_ms)}
            if not await write_status(self._space, key, obj, new):
                await self._clock.sleep(RETRY_SECONDS)
                self._waiting.add([key])
