"""A tree of real decisions and no I/O: the centre's placements and inventory, and edges by path.

What edges hold is kept as their syncers would leave it, so that a plan can be held against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.core.inventory.registry import Registry
from controllers.core.planning.dry_run import CentreState, DryRun, dry_run
from controllers.core.planning.plan import Plan, plan
from controllers.core.translation.placements import Placements
from leafcast.ask.session import in_inventory
from relay.core.audience.audience import Audience
from relay.core.content.content import Content
from relay.core.destination.destination import LocalDestination
from relay.core.destination.inputs import FormerRun, SignedInventory
from relay.core.effects import Effect, LoadBlob
from relay.core.events import BlobArrived
from relay.core.instant import Instant
from relay.objects.policies import PolicyUnknown, policies_of
from relay.syncer.customized_content import customized_address
from relay.syncer.plan import with_namespaces
from schemas.content.blobs import OBJECT_MAX_BYTES, open_value
from schemas.objects.objects import ObjectKey
from schemas.records.records import (
    DeltaBody,
    DeltaHead,
    LocationRecord,
    Profile,
    Record,
)
from schemas.values import codec
from schemas.values.identity import ContentHash, MailKey, NodePath, TreeId

NOW = Instant(5.0, 5)
TREE = TreeId("t" * 26)

Object = dict[str, Any]


class Edge:
    """The destination at one path, and what its cluster holds: by key, what was applied."""

    def __init__(self, fleet: Fleet, path: NodePath) -> None:
        self.path = path
        self.copies: dict[ObjectKey, str] = {}
        self.lasting: set[ObjectKey] = set()
        self._fleet = fleet
        self._out: list[Effect] = []
        self._content = Content((), self._out)
        inventory = SignedInventory(self._selects, fleet.located)
        self._edge = LocalDestination(
            path, inventory, self._content, FormerRun(), customized_address
        )
        self._deltas: set[MailKey] = set()

    def frozen(self) -> set[MailKey]:
        """The placements that cannot be customized here."""
        return {key for key in self._deltas if "frozen" in self._edge.summary(key, NOW).states}

    def kept_by(self, placements: set[MailKey]) -> set[ObjectKey]:
        """What is wanted by one of these."""
        wanted = self._edge.wanted.items()
        return {key for key, want in wanted if not placements.isdisjoint(want.placements)}

    def left_alone(self) -> set[ObjectKey]:
        """What is not kept in step."""
        wanted = with_namespaces(self._edge.wanted)
        created = {key for key, want in wanted.items() if want.create_only}
        return created | self.lasting

    def left_behind(self) -> set[ObjectKey]:
        """What is there and not wanted."""
        return self.copies.keys() - with_namespaces(self._edge.wanted).keys()

    def follow(self) -> None:
        """Take all that is in force, and apply it."""
        self._content.keep(self._fleet.store)
        for key in [*self._fleet.gone]:
            self._edge.put_profile(key, None)
        for key, record in self._fleet.ledger.items():
            if isinstance(record, Profile):
                self._edge.put_profile(key, record)
        self._edge.read_properties()
        heads = {k: r for k, r in self._fleet.ledger.items() if isinstance(r, DeltaHead)}
        for key in self._deltas - heads.keys():
            self._edge.drop(key)
        self._deltas = set(heads)
        for key, head in heads.items():
            cause = self._fleet.generation
            self._edge.evaluate(key, head, self._fleet.body(key), cause=cause, now=Instant(0.0, 0))
        self._serve()
        self._edge.resolve()
        self._apply()

    def _selects(self, profile: Profile, key: MailKey) -> bool:
        return self._fleet.audience.bears_on(profile, key)

    def _serve(self) -> None:
        while self._out:
            wanted = self._out.pop()
            if isinstance(wanted, LoadBlob):
                value = self._fleet.store[wanted.reference.address]
                event = BlobArrived(wanted.reference, value, True)
                for owner in self._content.arrived(event, 0.0):
                    self._edge.content_ready(owner.key)

    def _apply(self) -> None:
        wanted = with_namespaces(self._edge.wanted)
        for key, want in wanted.items():
            lasting = want.placements and self._fleet.is_left_alone(key, want.reference)
            if key not in self.copies or not (want.create_only or lasting):
                self.copies[key] = want.address
            elif lasting and not want.create_only and key not in self.lasting:
                # The annotation that says so is kept in step.
                self.copies[key] += " left alone"
            (self.lasting.add if lasting else self.lasting.discard)(key)
        for key in self.copies.keys() - wanted.keys() - self.lasting:
            del self.copies[key]


class Fleet:
    """The centre and its edges."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.ledger: dict[MailKey, Record] = {}
        self.store: dict[ContentHash, bytes] = {}
        self.gone: set[MailKey] = set()
        self.generation = 0
        self.audience = Audience(NodePath())
        self._bodies: dict[MailKey, DeltaBody] = {}
        self._kinds: dict[ContentHash, Any] = {}
        self._revision = 0
        self.objects: dict[ObjectKey, Object] = {}
        self.inventory: dict[ObjectKey, Object] = {}
        self.placements = Placements("wds", {}, self.ledger)
        self.placements.listed({})
        self.registry = Registry("inv", TREE, self.ledger)
        self.registry.listed({})
        self.edges = {path: Edge(self, NodePath.parse(path)) for path in paths}

    # What a plan says.

    def plan(
        self, changes: Mapping[ObjectKey, Object | None], named: frozenset[ObjectKey] = frozenset()
    ) -> tuple[DryRun, Plan]:
        inventory = {key: obj for key, obj in changes.items() if in_inventory(key)}
        workloads = {key: obj for key, obj in changes.items() if key not in inventory}
        stage = CentreState(
            self.placements, self.registry, dict(self.ledger), dict(self.objects), self.inventory
        )
        trial = dry_run(stage, workloads, inventory, named)
        values = {**self.store, **trial.stored}
        contents = {it.address: open_value(it, values[it.address]) for it in trial.wanted}
        return trial, plan(trial.before, trial.after, contents, named)

    # What is done.

    def apply(self, changes: Mapping[ObjectKey, Object | None]) -> None:
        """Write and delete these, as an unbroken watch shows them one by one; then all settles."""
        names: set[str] = set()
        places: set[ObjectKey] = set()
        for key, obj in changes.items():
            part = self.inventory if in_inventory(key) else self.objects
            before = part.pop(key, None)
            if obj is not None:
                part[key] = self._written(obj, before)
            elif before is None:
                continue
            if in_inventory(key):
                of, touched = self.registry, places
            else:
                of, touched = self.placements, names
            touched |= of.deleted(key) if obj is None else of.put(key, part[key])
        self._issue_inventory(places)
        self._issue(names)
        self.settle()

    def settle(self) -> None:
        self.audience = Audience(NodePath())
        for key, record in self.ledger.items():
            if isinstance(record, LocationRecord):
                self.audience.put_location(key, record)
            elif isinstance(record, DeltaHead):
                self.audience.put_placement(key, record.alternatives)
        for edge in self.edges.values():
            edge.follow()

    def located(self, profile: Profile) -> list[LocationRecord]:
        found = (self.ledger[key] for key in self.audience.located_at(profile))
        return [record for record in found if isinstance(record, LocationRecord)]

    def body(self, key: MailKey) -> DeltaBody:
        return self._bodies[key]

    def is_left_alone(self, key: ObjectKey, reference: Any) -> bool:
        plain = open_value(reference, self.store[reference.address])
        try:
            return not policies_of(key, codec.unpack(plain, OBJECT_MAX_BYTES)).overwrite
        except PolicyUnknown:
            return False

    def copies(self) -> dict[str, dict[ObjectKey, str]]:
        return {path: dict(edge.copies) for path, edge in self.edges.items()}

    def unsure(self) -> dict[str, set[ObjectKey]]:
        """By path the objects of placements that are frozen there, and what stays for good."""
        found = {}
        for path, edge in self.edges.items():
            frozen = edge.frozen()
            keys = edge.kept_by(frozen) | {
                key
                for name, issued in self.placements.standing().items()
                if self.placements.source(name).key in frozen
                for key in issued.entries or ()
            }
            spaces = {ObjectKey("", "namespaces", "", key.namespace) for key in keys}
            found[path] = edge.left_behind() | keys | spaces
        return found

    def _written(self, obj: Object, before: Object | None) -> Object:
        self._revision += 1
        uid = before["metadata"]["uid"] if before else f"u{self._revision}"
        own = {"uid": uid, "resourceVersion": str(self._revision)}
        return {**obj, "metadata": {**obj["metadata"], **own}}

    def _issue(self, names: set[str]) -> None:
        works = self.placements.next(names)
        records = []
        for work in works:
            if work.draft is None:
                del self.ledger[work.key]
                continue
            records.append(self._record(work.draft))
        self.placements.issued(works, records)

    def _issue_inventory(self, keys: set[ObjectKey]) -> None:
        work = self.registry.next(keys, 0)
        for slot in work.deleted:
            del self.ledger[slot]
            self.gone.add(slot)
        for draft in work.drafts:
            self._record(draft)
            self.gone.discard(draft.slot)

    def _record(self, draft: Any) -> Record:
        self.generation += 1
        record: Record = draft.stamped(self.generation)
        self.ledger[draft.slot] = record
        self.store |= draft.blobs
        if draft.body is not None:
            self._bodies[draft.slot] = draft.body.value
        return record
