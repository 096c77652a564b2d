"""No deletion from ignorance at the centre: what goes, users said; else what a blind list may.

Written anew, from the architecture's words and not from the controllers' code: it knows what users
said, what a space showed last, and which removals by inference RemovalHeld's rule lets pass.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from relay.core import effects as fx
from schemas import codec
from schemas.identity import MailKey, NodePath
from schemas.objects import ObjectKey
from schemas.records import DeltaHead, LocationRecord, NodeRecord, Profile, Record
from tests.simulation.blind_space import Object
from tests.simulation.centre import (
    INVENTORY,
    OF_ELSEWHERE,
    WORKLOADS,
    Model,
    arms_of,
    placement_key,
)
from tests.simulation.content import missing
from tests.simulation.host import Host
from tests.simulation.oracle import CONVERGENCE, NO_IGNORANCE, NO_RESURRECTION
from tests.simulation.oracle_recalling import RecallOracle
from tests.simulation.prescribed import is_meant
from tests.simulation.recalling import open_blob
from tests.simulation.selecting import CRD, KIND, NAMESPACES, selected
from tests.simulation.signatures import read_record
from tests.simulation.spaced_centre import Judge, SpacedCentre
from tests.simulation.world import LawBroken, World

LEAST, SHARE = 10, 0.2
"""So many may go at once of what only a list lacks, or such a share."""


class RemovalOracle(RecallOracle, Judge):
    """The laws of the relay over what was issued, and beside them what may be issued at all."""

    def __init__(self, world: World, centre: SpacedCentre) -> None:
        super().__init__(world, centre)
        self._gained: dict[tuple[str, ObjectKey], float] = {}
        self._unwanted: dict[tuple[str, ObjectKey], float] = {}
        self._shown: dict[str, dict[ObjectKey, None]] = {WORKLOADS: {}, INVENTORY: {}}
        self._accepted: dict[tuple[str, ObjectKey], None] = {}
        self._told_gone: dict[ObjectKey, None] = {}
        self._recovered: dict[str, None] = {}
        self._came_back: dict[str, int] = {}
        self._lacking: dict[str, set[str]] = {}
        self._nobodys: dict[str, None] = {}
        self._after = centre.model
        self._hung: dict[str, NodePath] = {}
        self._between = False
        centre.judge = self

    # What users say, and what the centre sees of it.

    def people_acted(self) -> None:
        """Note what users do not want now; to be called before and after each act."""
        for about in _things(self.centre.model):
            if not self._is_said(*about):
                self._unwanted[about] = self.world.now

    def seen(self, space: str, objects: Iterable[ObjectKey]) -> None:
        if space in self._shown:
            self._shown[space] = dict.fromkeys(objects)
            self._told_gone.clear()
            self._confirm()

    def heard(self, space: str, what: str, key: ObjectKey) -> None:
        if space in self._shown:
            self._shown[space].pop(key, None)
            self._told_gone[key] = None
            if what == "put":
                del self._told_gone[key]
                self._shown[space][key] = None
                self._confirm()

    def read_back(self, records: Sequence[Record]) -> None:
        """Nothing that a node holds is missing from the ledger now."""
        self._follow_moves()
        self.model_changed()
        for record in records:
            self._came_back[record.source.key] = record.generation
            if isinstance(record, DeltaHead | Profile | LocationRecord) and not record.deleted:
                self._recovered[record.source.key] = None
        bare = self.centre.desk.ledger.bare
        self._nobodys = {key: None for key in bare if not self._is_anywhere(key)}
        self.lacks_nothing()

    def pruning(self, host: Host, key: ObjectKey, *, made: bool) -> None:
        """Who went back to what was, with all above, makes it so before it can be told better."""
        if self._losses.all_went_back(host.path):
            self._not_wanted[self._places.of(host.path), key] = self.world.now
        super().pruning(host, key, made=made)

    def _counted(self, key: MailKey) -> None:
        """Where disks were lost, who knows more of itself than the ledger counts by that."""
        ledger = self.centre.desk.ledger.records
        below = self.world.hosts.values() if self._losses.forgot else ()
        nodes = [host.node for host in below if host.node and not host.path.is_root]
        for held in [held for node in nodes for held in node.records.values()]:
            known = ledger.get(held.record.source.key)
            if held.kind == "profile" and (not known or known.generation < held.generation):
                return
        super()._counted(key)

    def _is_anywhere(self, key: MailKey) -> bool:
        """Whether any node below the centre keeps some version of a placement with its content."""
        below = [host for host in self.world.hosts.values() if not host.path.is_root]
        kept = [host.streams.own[key] for host in below if key in host.streams.own]
        return any(read_record(own.data, 0)[1].has_body for own in kept)

    def _sent(self, host: Host, write: fx.WriteMail) -> None:
        """What came back without its content is sent as it is, and later: nobody has more of it."""
        if self._came_back.get(write.key) == write.generation:
            self._lacking[write.key] = missing(host, write)
        elif not missing(host, write) <= self._lacking.get(write.key, set()):
            super()._sent(host, write)

    def accepted(self, placement: str) -> None:
        """What is let go is what was not seen then, of this placement alone."""
        unseen = bool(placement) and _placement(placement) not in self._shown[WORKLOADS]
        for name, key in _things(self.centre.model):
            space = INVENTORY if key.resource in ("synctargets", "locations") else WORKLOADS
            if name == placement and (unseen or not _is_there(key, self._shown[space])):
                self._accepted[name, key] = None
        widgets = [about for about in _things(self.centre.model) if about[1].resource == "widgets"]
        if all(about in self._accepted for about in widgets if about[0] == placement):
            # Their definition is there for them alone.
            self._accepted[placement, CRD] = None
        self._recovered.pop(placement_key(placement), None)

    # What is issued.

    def issuing(self, key: str, record: Record, after: Model, *, anew: bool) -> None:
        if not self._between:
            self.model_changed()
        self._between = isinstance(record, NodeRecord) and record.deleted
        if not anew:
            return
        self._is_above_all(key, record)
        before = dict.fromkeys(_things(self.centre.model))
        now = dict.fromkeys(_things(after))
        gone = [about for about in before if about not in now]
        self._after = after
        for about in gone:
            # While it is read back, a later index says what is gone; no list is believed yet.
            if self.centre.desk.sure:
                self._may_go(about, gone)
            self._recovered.pop(key, None)
        self._nobodys.pop(key, None)
        for about in now:
            if about not in before:
                self._gained[about] = self.world.now
                self._accepted.pop(about, None)

    def issued(self) -> None:
        if self._between:
            # The profile that says where its destination is follows in one go.
            return
        self._follow_moves()
        self.model_changed()

    def _follow_moves(self) -> None:
        """What is wanted of a destination goes with it to where its record says now."""
        for name, target in self.centre.model.targets.items():
            before = self._hung.get(name, target.path)
            self._hung[name] = target.path
            if before != target.path:
                self.said_elsewhere(before, target.path)

    def _is_above_all(self, key: str, record: Record) -> None:
        """Generations never run backwards: nobody below holds what would pass for newer."""
        for host in self.world.hosts.values():
            held = self._highest.get((host.path, key), 0)
            if host.path.is_root or key not in host.streams.own or held < record.generation:
                continue
            if held > record.generation or self.centre.records.get(MailKey(key)) != record:
                what = f"{record.source.name} is issued as {record.generation}, {host.path} has"
                raise LawBroken(NO_RESURRECTION, f"{what} {held}")

    def _may_go(self, about: tuple[str, ObjectKey], gone: list[tuple[str, ObjectKey]]) -> None:
        name, key = about
        said = self._unwanted.get(about, -1.0) >= self._gained.get(about, 0.0)
        if said or about in self._accepted or not self._is_said(name, key):
            return
        if self._mail_key(name, key) in self._nobodys:
            # It came back without its content, which no node has: nothing is taken from anyone.
            return
        if key in self._told_gone or _placement(name) in self._told_gone:
            # It is there again, but the watch, which is late and unbroken, has come to its end.
            return
        why = self._is_too_much(name, key, gone)
        if why:
            raise LawBroken(NO_IGNORANCE, f"{key} of {name or 'the inventory'} goes: {why}")

    def _is_too_much(self, name: str, key: ObjectKey, gone: list[tuple[str, ObjectKey]]) -> str:
        """Why nobody may infer that this is gone; empty if RemovalHeld's rule lets it pass."""
        inventory = key.resource in ("synctargets", "locations")
        shown = self._shown[INVENTORY if inventory else WORKLOADS]
        kinds = {(seen.group, seen.resource) for seen in shown}
        if name.startswith(OF_ELSEWHERE):
            return "it is another space's"
        if _is_there(key, shown) and (
            key.resource == "edgeplacements" or _placement(name) in shown
        ):
            return "it is there to be seen"
        if self._mail_key(name, key) in self._recovered:
            return "it was read back, and nobody said that it goes"
        whole = _placement(name) not in shown and not inventory
        # What an edit does not select any more is said to go, and counts for nothing inferred.
        # The placement itself is none of its objects.
        itself = (name, _placement(name))
        lost = sum(1 for it in gone if it[0] == name and it != itself and self._is_said(*it))
        held = sum(1 for it in _things(self.centre.model) if it[0] == name and it != itself)
        if not inventory and lost > max(LEAST, held * SHARE):
            return f"{lost} of {held} would go at once"
        if inventory or whole:
            crowd = self._crowd(name)
            if crowd:
                return crowd
        if whole and not any(seen.resource == "edgeplacements" for seen in shown):
            return "no placements are seen any more"
        if not whole and key not in shown and (key.group, key.resource) not in kinds:
            return f"no {key.resource} are seen any more"
        if not whole and key in shown and NAMESPACES not in kinds:
            return "no namespaces are seen any more"
        return ""

    def _crowd(self, name: str) -> str:
        """Which placement, if not only this one, would lose too many destinations at once."""
        before, after = self.centre.model, self._after
        for named, placed in before.placements.items():
            reached = [t for t in before.targets.values() if is_meant(before, placed, t)]
            left = after.placements.get(named) if named == name else placed
            lost = [
                target
                for target in reached
                if target.name not in after.targets or not (left and is_meant(after, left, target))
            ]
            if name in ("", named) and len(lost) > max(LEAST, len(reached) * SHARE):
                return f"{named} would lose {len(lost)} of {len(reached)} destinations at once"
        return ""

    def _mail_key(self, name: str, key: ObjectKey) -> str:
        if name:
            return placement_key(name)
        found = self.centre.records.items()
        named = [k for k, r in found if isinstance(r, Profile | LocationRecord)]
        named = [k for k in named if self.centre.records[k].source.name == key.name]
        kind = Profile if key.resource == "synctargets" else LocationRecord
        return next((k for k in named if isinstance(self.centre.records[k], kind)), "")

    def _confirm(self) -> None:
        """What was read back is like all else once everything of it was seen."""
        for name, placed in self.centre.model.placements.items():
            shown = self._shown[WORKLOADS]
            keys = [key for arm in arms_of(placed) for key, _ in arm.contents]
            if _placement(name) in shown and all(key in shown for key in keys):
                self._recovered.pop(placement_key(name), None)
        for _, key in _things(self.centre.model):
            if key in self._shown[INVENTORY]:
                self._recovered.pop(self._mail_key("", key), None)

    def _is_said(self, name: str, key: ObjectKey) -> bool:
        """Whether users want this thing now."""
        if key.resource in ("synctargets", "locations") and not name:
            return key in self.centre.inventory.objects
        objects = self.centre.workloads.objects
        said = objects.get(_placement(name))
        if key == _placement(name) or said is None:
            return said is not None or name.startswith(OF_ELSEWHERE)
        return key in selected(said, objects)

    # After settling.

    def settled(self, *, leftovers: bool = False) -> None:
        faults = self._centre_faults()
        if faults:
            raise LawBroken(CONVERGENCE, "\n    ".join(faults[:12]))
        super().settled(leftovers=leftovers)

    def _centre_faults(self) -> list[str]:
        centre = self.centre
        if not (centre.ready and centre.desk.here and centre.desk.sure):
            return ["the centre is not sure of its ledger"]
        faults = [f"held: {name}: {why}" for name, why in centre.desk.placements.held.items()]
        faults += [f"inventory: {n}: {why}" for n, why in centre.desk.registry.errors.items()]
        objects = centre.workloads.objects
        said = {key.name: obj for key, obj in objects.items() if key.resource == "edgeplacements"}
        there = {n: p for n, p in centre.model.placements.items() if not n.startswith(OF_ELSEWHERE)}
        if said.keys() != there.keys():
            faults.append(f"placements in force {sorted(there)}, said {sorted(said)}")
        for name in sorted(said.keys() & there.keys()):
            wanted = selected(said[name], objects)
            issued = dict(there[name].arm.contents)
            if wanted.keys() != issued.keys():
                more, less = issued.keys() - wanted.keys(), wanted.keys() - issued.keys()
                told = f"{sorted(map(str, more))} too much, {sorted(map(str, less))} missing"
                faults.append(f"{name}: {told}")
            faults += [
                f"{name}: {key} is not what users said"
                for key, content in issued.items()
                if key in wanted and not self._says(content.reference, wanted[key])
            ]
        inventory = {(key.resource, key.name) for key in centre.inventory.objects}
        known = {("synctargets", name) for name in centre.model.targets}
        known |= {("locations", name) for name in centre.model.locations}
        if inventory != known:
            faults.append(f"inventory in force {sorted(known)}, said {sorted(inventory)}")
        return faults

    def _says(self, reference: Any, obj: Object) -> bool:
        plain = open_blob(self.world.root, reference)
        value = codec.unpack(plain, reference.size) if plain is not None else None
        return isinstance(value, Mapping) and value.get("data") == obj.get("data")


def _is_there(key: ObjectKey, shown: Container[ObjectKey]) -> bool:
    """Whether an object is seen, and the Namespace by which it may be selected."""
    namespace = ObjectKey(*NAMESPACES, "", key.namespace)
    return key in shown and (not key.namespace or namespace in shown)


def _placement(name: str) -> ObjectKey:
    return ObjectKey(KIND, "edgeplacements", "", name)


def _things(model: Model) -> Iterable[tuple[str, ObjectKey]]:
    """All that is in force: by placement its objects and itself, and without one the inventory."""
    for name, placed in model.placements.items():
        yield name, _placement(name)
        for arm in arms_of(placed):
            for key, _ in arm.contents:
                yield name, key
    for name in model.targets:
        yield "", ObjectKey(KIND, "synctargets", "", name)
    for name in model.locations:
        yield "", ObjectKey(KIND, "locations", "", name)
