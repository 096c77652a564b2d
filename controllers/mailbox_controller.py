"""The inventory's SyncTargets and Locations are in the ledger as profiles and location records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from controllers.adoption import inventory_objects, write_back
from controllers.core.conditions import condition, merged
from controllers.core.drafts import Draft, same
from controllers.core.inventory import REGISTERED, location_draft, register, tombstone
from controllers.core.removal import READ_BACK, Held, hold_records
from controllers.core.where import Inventory
from controllers.following import RETRY_SECONDS, Gathering, follow, revision_of
from controllers.issuing import Issuer
from controllers.ledger_notes import LedgerNotes
from controllers.nodes import node_record
from controllers.status_writing import write_status
from relay.ports import Change, Clock, Object, Space
from schemas.api import Condition, Destination, Location, SyncTarget, parse_kind
from schemas.faults import InvalidObject
from schemas.identity import MailKey, NodePath
from schemas.objects import ObjectKey
from schemas.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
    Source,
)
from schemas.selectors import LabelSelector
from schemas.signing import RecordKind

_GROUP = "edge.kubestellar.io"
_TARGETS, _LOCATIONS = "synctargets", "locations"
_APIS = {_TARGETS: API_SYNC_TARGET, _LOCATIONS: API_LOCATION}


class MailboxController:
    """The reconciler of one inventory space.

    `told` hears when Locations changed, `moved` when Locations or SyncTargets did. `known` is true
    once the space was listed.
    """

    def __init__(self, issuer: Issuer, space: Space, clock: Clock) -> None:
        self.known = False
        self._inventory = Inventory()
        self.errors: dict[str, str] = {}
        self._targets: dict[str, SyncTarget] = {}
        self._hanging: dict[NodePath, set[str]] = defaultdict(set)
        self._objects: dict[ObjectKey, Object] = {}
        self._unseen: set[ObjectKey] = set()
        self._issuer = issuer
        self._space = space
        self._clock = clock
        self.told: Callable[[], None] = lambda: None
        self.moved: Callable[[], None] = lambda: None
        self.notes = LedgerNotes()
        self._taking_over = False
        self._identity = ""
        self._waiting: Gathering[ObjectKey] = Gathering(clock)

    @property
    def locations(self) -> dict[str, Location]:
        return self._inventory.locations

    def pairs(self, selectors: Sequence[LabelSelector]) -> Iterator[Destination]:
        """The pairs of a Location that one of the selectors matches and a SyncTarget there."""
        return self._inventory.pairs(selectors, self._identity)

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken."""
        self._identity = await self._space.identity()
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(self._space, self._clock, self), name="inventory")
            group.create_task(self._register_all(), name="register")

    async def caught_up(self) -> None:
        """Wait until the ledger says what the space holds now."""
        await self._waiting.worked_off(await revision_of(self._space))

    def listed(self, objects: Mapping[ObjectKey, Object], revision: str) -> None:
        """Take a whole list of the space."""
        ours = {key: obj for key, obj in objects.items() if _is_inventory(key)}
        for key in self._objects.keys() - ours.keys():
            self._forget(key)
        for key, obj in ours.items():
            self._put(key, obj)
        self._unseen = self._in_ledger() - ours.keys()
        self.known = True
        self.moved()
        self._waiting.add(self._unseen)
        self._waiting.read_to(revision)

    def changed(self, change: Change) -> None:
        """Take a change of the space."""
        if _is_inventory(change.key):
            self._unseen.discard(change.key)
            if change.kind == "deleted":
                self._forget(change.key)
            else:
                self._put(change.key, change.object)
        self._waiting.read_to(change.revision)

    def issued(self, records: Iterable[Record]) -> None:
        """Look again at SyncTargets whose nodes came or went."""
        nodes = [record.path for record in records if isinstance(record, NodeRecord)]
        for path in nodes:
            self._waiting.add(_target_key(name) for name in self._hanging.get(path, ()))

    def accept_removals(self) -> None:
        """Let held removals pass."""
        unseen, self._unseen = self._unseen, set()
        self.notes.settle(self._key(key) for key in unseen)
        self._waiting.add(unseen)

    def strangers(self) -> list[Record]:
        """Profiles and Locations in force that another inventory space said."""
        records = [
            r for r in self._issuer.records.values() if isinstance(r, Profile | LocationRecord)
        ]
        return [r for r in records if not r.deleted and r.source.space != self._identity]

    async def adopt(self) -> int:
        """Write what another space said into this one, and register it here; how many objects.

        What is there already stays as it is. Nobody is without Location or profile meanwhile.
        """
        strangers = self.strangers()
        count = await write_back(self._space, inventory_objects(strangers))
        await self.caught_up()
        self._taking_over = True
        self._waiting.add(_target_key(name) for name in self._targets)
        await self._waiting.worked_off()
        await self._issuer.issue(
            [tombstone("profile", record) for record in strangers if isinstance(record, Profile)]
            + [tombstone("location", r) for r in strangers if isinstance(r, LocationRecord)]
        )
        self.notes.settle(record.source.key for record in strangers)
        self._taking_over = False
        return count

    async def _register_all(self) -> None:
        while True:
            keys = await self._waiting.take()
            drafts, conditions = self._wanted(keys)
            drafts += self._gone(keys)
            if drafts:
                await self._issuer.issue(drafts)
            self.moved()
            if any(key.resource == _LOCATIONS for key in keys):
                self.told()
            await self._write(conditions)

    def _wanted(self, keys: Iterable[ObjectKey]) -> tuple[list[Draft], dict[str, Condition]]:
        """What the ledger lacks of these, and conditions of SyncTargets."""
        named = [key.name for key in keys if key.resource == _TARGETS]
        changed = [self._targets[name] for name in named if name in self._targets]
        rivals = {name for item in changed if item.path for name in self._hanging[item.path]}
        unplaced = {item.name for item in changed if item.path is None}
        registration = register(
            self._identity,
            [self._targets[name] for name in sorted(rivals | unplaced)],
            self._is_node,
        )
        conditions = dict(registration.conditions)
        drafts = [draft for draft in registration.drafts if not self._is_taken(draft, conditions)]
        for key in keys:
            location = self.locations.get(key.name) if key.resource == _LOCATIONS else None
            if location is not None:
                drafts.append(location_draft(self._identity, location))
        for name in named:
            if message := self.errors.get(f"synctarget/{name}"):
                said = f"{message}; its last good state stays in force"
                conditions[name] = condition(REGISTERED, "False", "Invalid", said)
        records = self._issuer.records
        news = [draft for draft in drafts if not same(draft.record, records.get(draft.slot))]
        return news, conditions

    def _is_taken(self, draft: Draft, conditions: dict[str, Condition]) -> bool:
        """Whether a destination of another inventory space hangs where this one should.

        Beside it the new one would be selected by no Location of the other space.
        """
        record = draft.record
        if self._taking_over or not isinstance(record, Profile):
            return False
        other = next((r for r in self.strangers() if getattr(r, "path", None) == record.path), None)
        if other is None:
            return False
        message = (
            f'{record.path} is the place of "{other.source.name}", registered by an inventory that '
            "is lost; run `leafcast adopt --inventory`, which puts this one in its place"
        )
        conditions[record.source.name] = condition(REGISTERED, "False", "PathTaken", message)
        return True

    def _gone(self, keys: frozenset[ObjectKey]) -> list[Draft]:
        """Tombstones for what is not there, or lost its place; what is only unseen may be held."""
        held = self._held()
        drafts = []
        for key in sorted(keys - held):
            record = self._issuer.records.get(self._key(key))
            if record is not None and not record.deleted and not self._stays(key):
                kind: RecordKind = "profile" if key.resource == _TARGETS else "location"
                drafts.append(tombstone(kind, record))
        return drafts

    def _held(self) -> frozenset[ObjectKey]:
        """What is unseen, and shall not go for that alone."""
        held: frozenset[ObjectKey] = frozenset()
        for resource in (_TARGETS, _LOCATIONS):
            self.errors.pop(f"{resource}/RemovalHeld", None)
            unseen = {key for key in self._unseen if key.resource == resource}
            if not unseen:
                continue
            known = [key for key in self._in_ledger() if key.resource == resource]
            seen_any = any(key.resource == resource for key in self._objects)
            verdict = hold_records(known, unseen, resource, seen_any=seen_any)
            recovered = {key for key in unseen if self._key(key) in self.notes.recovered}
            if recovered - verdict.items:
                verdict = Held(verdict.items | recovered, verdict.reason or READ_BACK)
            if verdict.items:
                held |= verdict.items
                self.errors[f"{resource}/RemovalHeld"] = verdict.reason
        return held

    def _stays(self, key: ObjectKey) -> bool:
        if f"{key.resource[:-1]}/{key.name}" in self.errors:
            return True
        if key.resource == _LOCATIONS:
            return key.name in self.locations
        target = self._targets.get(key.name)
        if target is None or target.path is None:
            return False
        rivals = [self._targets[name] for name in self._hanging[target.path]]
        drafts = register(self._identity, rivals, self._is_node).drafts
        return any(draft.record.source.name == key.name for draft in drafts)

    def _key(self, key: ObjectKey) -> MailKey:
        return Source(_APIS[key.resource], self._identity, "", key.name).key

    def _is_node(self, path: NodePath) -> bool:
        return node_record(self._issuer, self._issuer.tree, path) is not None

    def _in_ledger(self) -> set[ObjectKey]:
        resources = {api: resource for resource, api in _APIS.items()}
        return {
            ObjectKey(_GROUP, resources[record.source.api], "", record.source.name)
            for record in self._issuer.records.values()
            if record.source.api in resources
            and record.source.space == self._identity
            and not record.deleted
        }

    def _put(self, key: ObjectKey, obj: Object) -> None:
        if obj.get("metadata", {}).get("deletionTimestamp"):
            self._forget(key)
            return
        self._unseen.discard(key)
        self.notes.settle([self._key(key)])
        before = self._objects.get(key)
        self._objects[key] = obj
        if before is not None and _timeless(before) == _timeless(obj):
            return
        name = f"{key.resource[:-1]}/{key.name}"
        self._waiting.add([key])
        try:
            parsed = parse_kind({field: obj[field] for field in obj if field != "status"})
        except InvalidObject as error:
            self.errors[name] = "; ".join(str(fault) for fault in error.faults)
            return
        self.errors.pop(name, None)
        if isinstance(parsed, SyncTarget):
            self._unhang(key.name)
            self._targets[key.name] = parsed
            self._inventory.put_target(parsed)
            if parsed.path:
                self._hanging[parsed.path].add(key.name)
        elif isinstance(parsed, Location):
            self.locations[key.name] = parsed

    def _forget(self, key: ObjectKey) -> None:
        self._objects.pop(key, None)
        self.errors.pop(f"{key.resource[:-1]}/{key.name}", None)
        self._waiting.add([key])
        if key.resource == _TARGETS:
            self._unhang(key.name)
            self._targets.pop(key.name, None)
            self._inventory.remove_target(key.name)
        else:
            self.locations.pop(key.name, None)

    def _unhang(self, name: str) -> None:
        """Take a SyncTarget from its path; whoever else claims that path is looked at again."""
        target = self._targets.get(name)
        if target is None or target.path is None:
            return
        self._hanging[target.path].discard(name)
        self._waiting.add(_target_key(other) for other in self._hanging[target.path])

    async def _write(self, conditions: Mapping[str, Condition]) -> None:
        """Say what is wrong; that nothing is wrong is said only to who was told otherwise."""
        for name, said in conditions.items():
            key = _target_key(name)
            obj = self._objects.get(key)
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


def _target_key(name: str) -> ObjectKey:
    return ObjectKey(_GROUP, _TARGETS, "", name)


def _is_inventory(key: ObjectKey) -> bool:
    return key.group == _GROUP and key.resource in _APIS


def _timeless(obj: Object) -> Object:
    """What counts: spec, labels, annotations, and which object it is."""
    metadata = obj.get("metadata", {})
    named = {field: metadata.get(field) for field in ("uid", "labels", "annotations")}
    return {"spec": obj.get("spec"), **named}
