"""What the ledger lacks of one inventory space: the mailbox controller's decisions.

Nothing is decided before the space was listed whole. What only a list no longer shows is held where
that looks like blindness.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controllers.core.access.keyring import Keyring
from controllers.core.conditions import condition
from controllers.core.inventory.label_brakes import LabelBrakes, Weights
from controllers.core.inventory.make_before_break import MoveGuards
from controllers.core.inventory.properties import (
    CONFIG_MAPS,
    DestinationProperties,
    is_properties,
)
from controllers.core.inventory.records import REGISTERED, location_draft, register
from controllers.core.inventory.where import InventoryIndex
from controllers.core.ledger.destination_counts import hold_destinations
from controllers.core.ledger.ledger import Draft, same
from controllers.core.ledger.node_moves import left_nodes, node_in
from controllers.core.ledger.removal import LOST, OUTDATED, HeldRemoval, hold_records, named
from schemas.api.inventory import Location, SyncTarget
from schemas.api.parsing import parse_wish
from schemas.api.shared import Condition
from schemas.objects.objects import Object, ObjectKey, is_terminating
from schemas.records.maintenance import maintenance_of
from schemas.records.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    Profile,
    Record,
    Source,
)
from schemas.values.faults import InvalidObject
from schemas.values.identity import MailKey, NodePath, TreeId

_GROUP = "edge.kubestellar.io"
_TARGETS, LOCATIONS = "synctargets", "locations"
_APIS = {_TARGETS: API_SYNC_TARGET, LOCATIONS: API_LOCATION}
_RESOURCES = {api: resource for resource, api in _APIS.items()}

ObjectKeys = frozenset[ObjectKey]


@dataclass(frozen=True, slots=True)
class RegistryWork:
    """What the ledger lacks, what is deleted with it, and conditions of SyncTargets by name.

    What is `deferred` is to be looked at again: a placement is to hold it first.
    """

    drafts: tuple[Draft, ...] = ()
    deleted: tuple[MailKey, ...] = ()
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    deferred: ObjectKeys = frozenset()


class Registry:
    """The SyncTargets and Locations of the space of one identity, beside the records in force.

    What comes from the space returns the objects to look at again.
    """

    def __init__(
        self,
        identity: str,
        tree: TreeId,
        records: Mapping[MailKey, Record],
        spaces: AbstractSet[str] = frozenset(),
        keyring: Callable[[], Keyring] | None = None,
        brakes: tuple[LabelBrakes, Weights] | None = None,
    ) -> None:
        self.identity = identity
        # What is wrong, and what is held, by name.
        self.errors: dict[str, str] = {}
        self.objects: dict[ObjectKey, Object] = {}
        self.inventory = InventoryIndex(identity)
        self.known = False
        self._tree = tree
        self._records = records
        self._holding = MoveGuards(records)
        # What holds removals by labels, and what weighs them; a change that is tried holds none.
        self._brakes = brakes
        # The identities of all inventory spaces that are followed.
        self._spaces = spaces
        self._keyring = keyring or (lambda: Keyring(tree))
        self._targets: dict[str, SyncTarget] = {}
        self._hanging: dict[NodePath, set[str]] = defaultdict(set)
        self._unseen: set[ObjectKey] = set()
        # Of these, what the space lost: nobody deleted it.
        self.lost: ObjectKeys = frozenset()
        # Those of which the space may show an older state: it fell back, and did not agree since
        # with what is issued of them.
        self.doubted: set[ObjectKey] = set()
        # SyncTargets that were deleted while their nodes are there.
        self._taken: set[ObjectKey] = set()
        # Those that were weighed last, and are not to go: a list alone may have told of some.
        self._weighed: ObjectKeys = frozenset()
        # Those whose losses are not known yet.
        self._undecided: ObjectKeys = frozenset()
        self.properties = DestinationProperties(self.errors)

    def trial(
        self, objects: Mapping[ObjectKey, Object], ledger: Mapping[MailKey, Record]
    ) -> Registry:
        """The same of its own, to try a change on; `objects` are all that the space shows now."""
        trial = Registry(self.identity, self._tree, ledger, self._spaces, self._keyring)
        trial.listed(objects)
        # Who keeps a placement for a while, as it moves, loses it in the end.
        trial._holding = MoveGuards({})
        trial._unseen = {*self._unseen}
        return trial

    # What the space says.

    @property
    def unseen(self) -> ObjectKeys:
        """What a list did not show, and the ledger has."""
        return frozenset(self._unseen)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing of what is in force, and nothing is doubted."""
        return not (self._unseen or self.doubted)

    def listed(
        self, objects: Mapping[ObjectKey, Object], kind: tuple[str, str] | None = None
    ) -> ObjectKeys:
        """Take all objects of the space, or all of one kind: group and resource."""
        ours = {key: obj for key, obj in objects.items() if is_inventory(key)}
        touched: set[ObjectKey] = set()
        if kind in (None, CONFIG_MAPS):
            touched |= {target_key(name) for name in self.properties.listed(objects)}
        for key in self.objects.keys() - ours.keys():
            if kind in (None, key.group_resource):
                touched |= self._forget(key)
        for key, obj in ours.items():
            touched |= self._put(key, obj)
        listed = {k for k in self._in_ledger() if kind in (None, k.group_resource)}
        self._unseen = (self._unseen - listed) | (listed - ours.keys())
        self.known = True
        return frozenset(touched | self._unseen)

    def put(self, key: ObjectKey, obj: Object) -> ObjectKeys:
        """Take an object's present state, as an unbroken watch says it."""
        if is_properties(key):
            return frozenset([target_key(key.name)] if self.properties.put(key.name, obj) else ())
        touched = frozenset(self._put(key, obj) if is_inventory(key) else ())
        # What somebody writes now is not old; a status is no such thing, and touches nothing.
        self.doubted -= touched & {key}
        return touched

    def deleted(self, key: ObjectKey) -> ObjectKeys:
        """Take it that an object is gone: an unbroken watch said so."""
        if is_properties(key):
            return frozenset([target_key(key.name)] if self.properties.deleted(key.name) else ())
        if not is_inventory(key):
            return frozenset()
        self._unseen.discard(key)
        target = self._targets.get(key.name) if key.resource == _TARGETS else None
        if target is not None and target.path is not None and self._is_node(target.path):
            # Its node stays, and would be emptied: that is weighed.
            self._taken.add(key)
        return frozenset(self._forget(key))

    def targets_at(self, paths: Iterable[NodePath]) -> ObjectKeys:
        """The SyncTargets that claim these paths."""
        return frozenset(target_key(name) for p in paths for name in self._hanging.get(p, ()))

    def waiting(self) -> dict[ObjectKey, Record]:
        """What is not there any more, or doubted, and stays in force: the records, by object."""
        keys = self._unseen | self._taken | self.doubted
        found = ((key, self._records.get(self._key(key))) for key in keys)
        return {key: record for key, record in found if record is not None}

    def doubt(self) -> ObjectKeys:
        """Take it that the space shows an older state: what differs waits for a person."""
        self.doubted = {*self.objects, *self._in_ledger()}
        return frozenset(self.doubted)

    def accept(self, only: Collection[ObjectKey] | None = None) -> ObjectKeys:
        """Let what is held now pass, or of that only what is of some objects."""
        waiting = self._unseen | self._taken | self.doubted
        passing = waiting if only is None else waiting & set(only)
        self._unseen -= passing
        self._taken -= passing
        self.doubted -= passing
        return frozenset(passing)

    # What is issued.

    def release(self, slot: MailKey, placement: MailKey) -> ObjectKeys:
        """Let go of what the record in this slot holds for a placement."""
        record = self._records.get(slot)
        if record is None or record.source.space != self.identity:
            return frozenset()
        resource = _RESOURCES.get(record.source.api)
        if resource is None:
            return frozenset()
        self._holding.release(slot, placement)
        return frozenset([ObjectKey(_GROUP, resource, "", record.source.name)])

    def braked(self) -> ObjectKeys:
        """The objects whose records hold what an edit of labels takes, or stay themselves."""
        slots = self._brakes[0].slots() if self._brakes is not None else ()
        found = (
            ObjectKey(_GROUP, _RESOURCES[record.source.api], "", record.source.name)
            for slot in slots
            if (record := self._records.get(slot)) is not None
            and record.source.space == self.identity
        )
        return frozenset((*found, *self._taken, *self._weighed))

    def next(self, keys: Iterable[ObjectKey], now_ms: int) -> RegistryWork:
        """What to issue and delete for these, all of one moment."""
        if not self.known:
            return RegistryWork()
        # What is held is weighed anew with all that is said of labels now.
        looked_at = frozenset(keys) | self.braked()
        drafts, left, conditions = self._wanted(looked_at, now_ms)
        deferred: ObjectKeys = frozenset()
        if self._brakes is not None:
            brakes, weights = self._brakes
            braked, slots = brakes.with_holds(drafts, weights, now_ms)
            drafts = [it for it in braked if not same(it.record, self._records.get(it.slot))]
            deferred = frozenset(key for key in looked_at if self._key(key) in slots)
        gone = (*left, *self._gone(looked_at, now_ms))
        self._say_doubted()
        return RegistryWork(tuple(drafts), gone, conditions, deferred | self._undecided)

    def maintenance_ends(self, keys: Iterable[ObjectKey], now_ms: int) -> dict[ObjectKey, float]:
        """The seconds until the maintenance of these SyncTargets ends, where there is one."""
        named = ((key, self._targets.get(key.name)) for key in keys if key.resource == _TARGETS)
        said = {key: maintenance_of(it.metadata.annotations) for key, it in named if it is not None}
        left = ((key, it.until_ms - now_ms) for key, it in said.items())
        return {key: ms / 1000 for key, ms in left if ms > 0}

    def all_targets(self) -> ObjectKeys:
        """All SyncTargets of the space."""
        return frozenset(target_key(name) for name in self._targets)

    # Deciding.

    def _wanted(
        self, keys: ObjectKeys, now_ms: int
    ) -> tuple[list[Draft], list[MailKey], dict[str, Condition]]:
        named = sorted(key.name for key in keys if key.resource == _TARGETS)
        changed = [self._targets[name] for name in named if name in self._targets]
        rivals = {name for item in changed if item.path for name in self._hanging[item.path]}
        unplaced = {item.name for item in changed if item.path is None}
        placed, conditions = register(
            self.identity,
            [self._targets[name] for name in sorted(rivals | unplaced)],
            self._is_node,
            self._properties_of,
            self._boxes_for,
            now_ms,
        )
        # By path, destinations in force that a space said which nobody follows.
        ours = {self.identity, *self._spaces}
        profiles = (it for it in self._records.values() if isinstance(it, Profile))
        taken = {it.path: it for it in profiles if it.source.space not in ours}
        drafts = [d for d in placed if not self._is_taken(d, taken, conditions)]
        for key in sorted(keys):
            location = self.inventory.locations.get(key.name) if key.resource == LOCATIONS else None
            if location is not None:
                drafts.append(location_draft(self.identity, location))
        for name in named:
            if message := self.errors.get(f"synctarget/{name}"):
                said = f"{message}; its last good state stays in force"
                conditions[name] = condition(REGISTERED, "False", "Invalid", said)
        drafts = self._holding.with_holds(drafts, now_ms)
        news = [draft for draft in drafts if not same(draft.record, self._records.get(draft.slot))]
        news = self._believed(keys, news)
        moved = [
            (former.path, draft.record)
            for draft in news
            if isinstance(draft.record, Profile)
            and isinstance(former := self._records.get(draft.slot), Profile)
        ]
        return news, left_nodes(self._records, self._tree, moved), conditions

    def _believed(self, keys: ObjectKeys, news: list[Draft]) -> list[Draft]:
        """What of these drafts goes out; of what is doubted none does, until they agree."""
        if not self.doubted:
            return news
        differing = {draft.slot for draft in news}
        for key in self.doubted & keys:
            slot = self._key(key)
            if slot not in differing and (slot not in self._records or self._stays(key)):
                self.doubted.discard(key)
        doubted = {self._key(key) for key in self.doubted}
        return [draft for draft in news if draft.slot not in doubted]

    def _say_doubted(self) -> None:
        for resource in (_TARGETS, LOCATIONS):
            keys = [key for key in self.doubted if key.resource == resource]
            if keys:
                where = f"{resource}/RemovalHeld"
                said = f"{OUTDATED}: {named(keys)}"
                self.errors[where] = "; ".join(filter(None, (self.errors.get(where), said)))

    def _is_taken(
        self, draft: Draft, taken: Mapping[NodePath, Profile], conditions: dict[str, Condition]
    ) -> bool:
        """Whether a destination of another inventory space hangs where this one should.

        Beside it the new one would be selected by no Location of the other space.
        """
        record = draft.record
        if not isinstance(record, Profile):
            return False
        other = taken.get(record.path)
        if other is None:
            return False
        message = (
            f'{record.path} is the place of "{other.source.name}", registered by an inventory that '
            f"is lost; `leafcast accept --space {other.source.space}` puts this one in its place"
        )
        conditions[record.source.name] = condition(REGISTERED, "False", "PathTaken", message)
        return True

    def _gone(self, keys: ObjectKeys, now_ms: int) -> list[MailKey]:
        """What is not there, or lost its place; what is only unseen may be held."""
        held = self._held() | self._held_taken(now_ms) | self.doubted
        found = [self._key(key) for key in sorted(keys - held) if not self._stays(key)]
        return [key for key in found if key in self._records]

    def _held(self) -> ObjectKeys:
        """What is unseen, and shall not go for that alone."""
        known = self._in_ledger() if self._unseen else set()
        self._unseen &= known
        crowds = hold_destinations(self._records.values(), {self._key(k) for k in self._unseen})
        held: ObjectKeys = frozenset()
        for resource in (_TARGETS, LOCATIONS):
            self.errors.pop(f"{resource}/RemovalHeld", None)
            unseen = {key for key in self._unseen if key.resource == resource}
            if not unseen:
                continue
            verdict = self._verdict(resource, unseen, known, crowds)
            if verdict.items:
                held |= verdict.items
                self.errors[f"{resource}/RemovalHeld"] = verdict.reason
        return held

    def _held_taken(self, now_ms: int) -> ObjectKeys:
        """SyncTargets that were deleted, and whose nodes would lose much.

        One that a list alone does not show was deleted perhaps before this run began.
        """
        self._undecided = self._weighed = frozenset()
        self._taken &= self._in_ledger() if self._taken else set()
        taken = frozenset(self._taken).union(filter(self._has_node, self._unseen))
        if not taken or self._brakes is None:
            self._taken.clear()
            return frozenset()
        brakes, weights = self._brakes
        try:
            reason = brakes.held_without({self._key(key) for key in taken}, weights, now_ms)
        except LookupError:
            self._undecided = taken
            return self._undecided
        if not reason:
            self._taken.clear()
            return frozenset()
        self.errors[f"{_TARGETS}/RemovalHeld"] = reason
        self._weighed = taken
        return taken

    def _has_node(self, key: ObjectKey) -> bool:
        """Whether an object is a SyncTarget in force, and its node is there."""
        record = self._records.get(self._key(key))
        return isinstance(record, Profile) and self._is_node(record.path)

    def _verdict(
        self,
        resource: str,
        unseen: set[ObjectKey],
        known: set[ObjectKey],
        crowds: HeldRemoval[MailKey],
    ) -> HeldRemoval[ObjectKey]:
        """Which of what is unseen of one kind is held, by its own number, or by what it takes."""
        alike = [key for key in known if key.resource == resource]
        seen_any = any(key.resource == resource for key in self.objects)
        verdict = hold_records(alike, unseen, resource, seen_any=seen_any)
        if lost := unseen & self.lost:
            verdict = HeldRemoval(verdict.items | lost, verdict.reason or LOST)
        crowded = {key for key in unseen if self._key(key) in crowds.items}
        if crowded - verdict.items:
            verdict = HeldRemoval(verdict.items | crowded, verdict.reason or crowds.reason)
        return verdict

    def _stays(self, key: ObjectKey) -> bool:
        if f"{key.resource[:-1]}/{key.name}" in self.errors:
            return True
        if key.resource == LOCATIONS:
            return key.name in self.inventory.locations
        target = self._targets.get(key.name)
        if target is None or target.path is None:
            return False
        rivals = [self._targets[name] for name in self._hanging[target.path]]
        drafts, _ = register(self.identity, rivals, self._is_node)
        return any(draft.record.source.name == key.name for draft in drafts)

    def _key(self, key: ObjectKey) -> MailKey:
        return Source(_APIS[key.resource], self.identity, "", key.name).key

    def _properties_of(self, name: str) -> Mapping[str, str]:
        held = self._records.get(self._key(target_key(name)))
        return self.properties.of(name, held.properties if isinstance(held, Profile) else {})

    def _is_node(self, path: NodePath) -> bool:
        return node_in(self._records, self._tree, path) is not None

    def _boxes_for(self, path: NodePath) -> tuple[bytes, bytes]:
        """The fleet keys for the node at a path, of which the key is known."""
        node = node_in(self._records, self._tree, path)
        return self._keyring().boxes(node.nkey if node is not None else "")

    def _in_ledger(self) -> set[ObjectKey]:
        return {
            ObjectKey(_GROUP, _RESOURCES[record.source.api], "", record.source.name)
            for record in self._records.values()
            if record.source.api in _RESOURCES and record.source.space == self.identity
        }

    # What is known of the space.

    def _put(self, key: ObjectKey, obj: Object) -> set[ObjectKey]:
        """Take an object's state; what is to be looked at again."""
        if is_terminating(obj):
            return self._forget(key)
        self._unseen.discard(key)
        self._taken.discard(key)
        before = self.objects.get(key)
        self.objects[key] = obj
        if before is not None and _timeless(before) == _timeless(obj):
            return set()
        name = f"{key.resource[:-1]}/{key.name}"
        try:
            parsed = parse_wish(obj)
        except InvalidObject as error:
            self.errors[name] = "; ".join(str(fault) for fault in error.faults)
            return {key}
        self.errors.pop(name, None)
        touched = {key}
        if isinstance(parsed, SyncTarget):
            touched |= self._unhang(key.name)
            self._targets[key.name] = parsed
            self.inventory.put_target(parsed)
            if parsed.path:
                # Whoever loses the path to it is none any more.
                touched |= {target_key(other) for other in self._hanging[parsed.path]}
                self._hanging[parsed.path].add(key.name)
        elif isinstance(parsed, Location):
            self.inventory.locations[key.name] = parsed
        return touched

    def _forget(self, key: ObjectKey) -> set[ObjectKey]:
        self.objects.pop(key, None)
        self.errors.pop(f"{key.resource[:-1]}/{key.name}", None)
        touched = {key}
        if key.resource == _TARGETS:
            touched |= self._unhang(key.name)
            self._targets.pop(key.name, None)
            self.inventory.remove_target(key.name)
        else:
            self.inventory.locations.pop(key.name, None)
        return touched

    def _unhang(self, name: str) -> set[ObjectKey]:
        """Take a SyncTarget from its path; whoever else claims that path is looked at again."""
        target = self._targets.get(name)
        if target is None or target.path is None:
            return set()
        others = self._hanging[target.path]
        others.discard(name)
        if not others:
            del self._hanging[target.path]
        return {target_key(other) for other in others}


def target_key(name: str) -> ObjectKey:
    """The key of a SyncTarget."""
    return ObjectKey(_GROUP, _TARGETS, "", name)


def is_inventory(key: ObjectKey) -> bool:
    """Whether an object is a SyncTarget or a Location."""
    return key.group == _GROUP and key.resource in _APIS


def _timeless(obj: Object) -> Object:
    """What counts: spec, labels, annotations, and which object it is."""
    metadata = obj.get("metadata", {})
    named = {field: metadata.get(field) for field in ("uid", "labels", "annotations")}
    return {"spec": obj.get("spec"), **named}
