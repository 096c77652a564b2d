"""What a workload description space wants now: its objects, and its placements where valid.

A placement that becomes invalid keeps its last good state; what a list no longer shows is
remembered as unseen, which is less than deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from controllers.core.rollout.rollouts import Rollouts
from controllers.core.workloads.collectors import (
    COLLECTORS,
    COMBINED,
    Collectors,
    names_too_much,
)
from controllers.core.workloads.customizers import CUSTOMIZERS, faults_text, is_customizer
from controllers.core.workloads.dependencies import Dependencies
from controllers.core.workloads.health_rules import HEALTH_RULES, HealthRules
from controllers.core.workloads.missing_references import Lack, MissingReferences
from controllers.core.workloads.read_objects import ReadObjects
from controllers.core.workloads.releases import LeafcastReleases
from controllers.core.workloads.renature import DENATUREDS, Renatured, is_denatured
from controllers.core.workloads.selection import KindScope, rules_of
from controllers.core.workloads.space_settings import SpaceSettings
from controllers.core.workloads.transforms import TRANSFORMS, Transforms
from controllers.core.workloads.unread_kinds import UnreadKind, hidden
from controllers.core.workloads.what import WhatResolver, is_partial
from schemas.api.parsing import parse_wish
from schemas.api.placement import AS_WRITTEN, Cleaning, EdgePlacement
from schemas.api.policy import BindingPolicy
from schemas.content.manifest import WANT_MULTI, WANT_SINGLETON
from schemas.objects.objects import (
    BUILT_IN_KINDS,
    DEFINITIONS,
    NAMESPACES,
    GroupResource,
    Object,
    ObjectKey,
    is_terminating,
    takes_status,
)
from schemas.objects.source_objects import generation_of, number_of
from schemas.records.placements import KINDS, placement_at, placement_key, placement_with_result
from schemas.reports.collectors import AGGREGATE, Program
from schemas.values.faults import Fault, InvalidObject
from schemas.values.groups import RELEASES, ROLLOUTS

_PLACEMENTS = frozenset((kind.group, kind.resource) for kind in KINDS)
CONTROL_KINDS = frozenset(
    {
        *_PLACEMENTS,
        *((kind.group, kind.result) for kind in KINDS),
        NAMESPACES,
        DEFINITIONS,
        DENATUREDS,
        CUSTOMIZERS,
        COLLECTORS,
        COMBINED,
        HEALTH_RULES,
        TRANSFORMS,
        RELEASES,
        ROLLOUTS,
    }
)
"""What is followed whatever placements say."""
WIDE_SHARE = 0.8

_OF_EACH_WRITE = ("resourceVersion", "managedFields")

FROZEN = "Frozen"

Placement = EdgePlacement | BindingPolicy


def slices_among(keys: Iterable[ObjectKey]) -> frozenset[str]:
    """The placements among whose objects these say where they go."""
    return frozenset(name for key in keys if (name := placement_with_result(key)) is not None)


def reaches_among(objects: Iterable[Object]) -> frozenset[KindScope]:
    """What kinds of objects the placements among these may select."""
    found: set[KindScope] = set()
    for obj in objects:
        try:
            parsed = parse_wish(obj)
        except InvalidObject:
            continue
        if isinstance(parsed, EdgePlacement | BindingPolicy):
            found |= {clause.reach for clause in rules_of(parsed.spec).clauses}
    return frozenset(found)


class Workloads:
    """The present state of one space; each change returns the placements that it touches.

    Placements go by the names of `schemas.records.placements`.
    """

    def __init__(self) -> None:
        self.resolver = WhatResolver()
        self.missing = MissingReferences()
        # The kinds that the space does not show now.
        self.unread: dict[GroupResource, UnreadKind] = {}
        self.renatured = Renatured()
        self.collectors = Collectors()
        self.health_rules = HealthRules()
        self.transforms = Transforms()
        self.releases = LeafcastReleases()
        # Of what is read at the centre alone, and lies nowhere else.
        self.read: dict[GroupResource, ReadObjects[Any, Any]] = {
            COLLECTORS: self.collectors,
            HEALTH_RULES: self.health_rules,
            TRANSFORMS: self.transforms,
            RELEASES: self.releases,
        }
        self.settings = SpaceSettings()
        self.dependencies = Dependencies()
        self.rollouts = Rollouts()
        self.placements: dict[str, Placement] = {}
        self.objects: dict[str, Object] = {}
        # Placements that are deleted while something still holds them there.
        self.leaving: dict[str, Object] = {}
        self.invalid: dict[str, str] = {}
        self.unseen: set[ObjectKey] = set()
        self.unseen_namespaces: set[str] = set()
        self.unseen_placements: set[str] = set()
        # Of these, what went with its definition: nobody said that it is to go.
        self.undefined: set[ObjectKey] = set()
        # Of these, placements too, what the space lost: what it stored is damaged, or older.
        self.lost: frozenset[ObjectKey] = frozenset()
        # Placements of which it may show an older state: it fell back, and did not agree since with
        # what is issued of them.
        self.doubted: set[str] = set()
        # The kinds that were listed whole, by a space that went on from where it was known.
        self.trusted: frozenset[tuple[str, str]] = frozenset()
        # Whether objects of all kinds are told that could be selected.
        self.sees_all = False
        self._accepted: dict[str, frozenset[ObjectKey]] = {}

    def inherit(self, other: Workloads) -> None:
        """Take over, after a list, what no list tells: what is unseen, and what was good last."""
        self.missing.serve(other.missing.served or ())
        self.settings.by_tools = other.settings.by_tools
        self.unseen, self.unseen_namespaces = {*other.unseen}, {*other.unseen_namespaces}
        self.unseen_placements = {*other.unseen_placements}
        self.undefined = {*other.undefined}
        self.lost = other.lost
        self.trusted = other.trusted
        self._accepted = dict(other._accepted)
        for name in self.invalid.keys() & other.placements.keys():
            self._take(name, other.placements[name])

    def listed(
        self,
        objects: Mapping[ObjectKey, Object],
        issued: Mapping[str, Collection[ObjectKey]],
        kind: tuple[str, str] | None = None,
    ) -> frozenset[str]:
        """Take all objects, or all of one kind: group and resource.

        `issued` says which objects each placement in the ledger holds.
        """
        shown = self.resolver.objects.keys() if kind is None else self.resolver.of_kind(kind)
        for key in shown - objects.keys():
            if not self.renatured.hide(key, None):
                self._remove_object(key)
        gone = self._unlisted(objects) if kind in (None, DENATUREDS) else frozenset()
        self._unlist_control(objects, issued.keys(), kind)
        for key in sorted(objects, key=lambda key: key.group_resource != DEFINITIONS):
            self.put(key, objects[key])
        self._accepted.clear()
        there = {key for keys in issued.values() for key in keys}
        plain = {key for key in there if not self.renatured.holds(key)}
        listed = {key for key in plain if kind in (None, key.group_resource)}
        self.unseen = (self.unseen - listed) | (listed - objects.keys()) | (plain & gone)
        # What is shown and goes with its definition is as good as gone.
        self.unseen |= listed & self.undefined
        self.unseen &= there
        if kind in (None, NAMESPACES):
            self.unseen_namespaces = {
                key.namespace
                for key in there
                if ObjectKey(*NAMESPACES, "", key.namespace) not in objects
            }
        return frozenset((*issued, *self.objects, *self.leaving))

    def shown(self, kind: GroupResource) -> dict[ObjectKey, dict[str, Any]]:
        """What is known of the objects of a kind."""
        if (listed := self.read.get(kind)) is None:
            return {key: {**self.resolver.objects[key]} for key in self.resolver.of_kind(kind)}
        return {ObjectKey(*kind, "", name): {**obj} for name, obj in listed.objects.items()}

    def partial(self, name: str) -> frozenset[ObjectKey]:
        """Objects that a placement selects and of which only the metadata is known."""
        selected = self.resolver.selection(name)
        return frozenset(key for key in selected if is_partial(self.resolver.objects[key]))

    def cleaning_of(self, name: str) -> Cleaning:
        """By which rule a placement's objects are cleaned."""
        placement = self.placements.get(name)
        return placement.spec.cleaning if placement is not None else AS_WRITTEN

    def thin(self, keys: Iterable[ObjectKey]) -> None:
        """Keep no more than the metadata of what no placement selects: there may be much of it."""
        for key in keys:
            if key.group_resource not in CONTROL_KINDS and not self.renatured.holds(key):
                self.resolver.thin(key)

    def deleted(self, key: ObjectKey) -> frozenset[str]:
        """Take it that an object is gone: an unbroken watch said so."""
        self._seen(key)
        if (placement := placement_at(key)) is not None:
            return frozenset({placement, *self._related_to(placement), *self._forget(placement)})
        if is_denatured(key):
            return self._now(self.renatured.remove(key.name))
        if (listed := self.read.get(key.group_resource)) is not None:
            return self._concerned(key, listed.remove(key.name))
        if key.group_resource == ROLLOUTS:
            return self.rollouts.deleted(key.name)
        if is_customizer(key):
            return self.resolver.customizers.remove(key)
        if self.renatured.hide(key, None):
            return self._again(key)
        return self._remove_object(key)

    def vanished(self, key: ObjectKey, *, stays: bool = False) -> frozenset[str]:
        """Take it that an object goes with its definition: it is not seen any more.

        A placement `stays` while something holds it there.
        """
        placement = placement_at(key)
        leaving = self.leaving.get(placement or "")
        touched = self.deleted(key)
        self.undefined.add(key)
        if placement is None:
            self.unseen.add(key)
            return touched
        self.unseen_placements.add(placement)
        if stays and leaving is not None:
            self.leaving[placement] = leaving
        return touched

    def is_undefined(self, placement: str) -> bool:
        """Whether a placement went with the definition of its kind."""
        return placement_key(placement) in self.undefined

    def put(self, key: ObjectKey, obj: Object) -> frozenset[str]:
        """Take an object's present state."""
        if self._goes_with_definition(key, obj):
            return self.vanished(key)
        self._seen(key)
        if is_denatured(key):
            kinds = BUILT_IN_KINDS.extended_by(self._definitions())
            return self._now(self.renatured.put(key.name, obj, kinds, self.resolver.objects))
        if is_customizer(key):
            return self.resolver.customizers.put(key, obj)
        if self.renatured.hide(key, obj):
            return self._again(key)
        if (listed := self.read.get(key.group_resource)) is not None:
            return self._concerned(key, listed.put(key.name, obj))
        if key.group_resource == ROLLOUTS:
            return self.rollouts.put(key.name, obj)
        name = placement_at(key)
        if name is None:
            return self._put_object(key, obj)
        self.rollouts.former.put(name, obj)
        former = self._related_to(name)
        if is_terminating(obj):
            waiting = self._forget(name)
            self.leaving[name] = obj
        else:
            self.leaving.pop(name, None)
            self.objects[name] = obj
            waiting = self._read(name, obj)
        return frozenset({name, *former, *waiting, *self._related_to(name)})

    def put_status(self, key: ObjectKey, obj: Object) -> str | None:
        """Take the present state of a placement of which only the status is another.

        The placement's name; None, and nothing is taken, if it is none, or more of it is another.
        """
        name = placement_at(key)
        former = self.objects.get(name) if name is not None else None
        if name is None or former is None or _said(former) != _said(obj):
            return None
        self.objects[name] = obj
        return name

    def keep_kinds(self, kinds: AbstractSet[tuple[str, str]]) -> None:
        """Forget the objects of all other kinds: nothing is told of them any more."""
        for kind in self.unread.keys() - kinds:
            del self.unread[kind]
        for kind in self.resolver.kinds() - kinds:
            for key in self.resolver.of_kind(kind):
                if not self.renatured.hide(key, None):
                    self._remove_object(key)

    def lack(self, name: str) -> Lack | None:
        """What is missing for a placement to be as it was meant; None if nothing is."""
        if faults := self.frozen(name):
            return Lack(FROZEN, faults_text(faults))
        return self.missing.of(name, self.resolver.count(name), self._hidden(name))

    def _hidden(self, name: str) -> list[tuple[str, str]]:
        """What a placement may select of kinds that the space does not show now."""
        if not self.unread:
            return []
        rules, namespaces = self.resolver.rules(name), self.resolver.namespaces
        return [*hidden(self.unread, rules, self.resolver.selected_kinds(name), namespaces)]

    def wide(self, name: str) -> tuple[int, int] | None:
        """How many objects a placement selects, and of how many, if it is almost all there are.

        Who is the only one to select anything, or says whose its objects are, means it. Where kinds
        are named, all objects must be known to tell.
        """
        selected, known = self.resolver.count(name), self.resolver.selectable
        if self.resolver.is_alone(name) or self.resolver.is_explicit(name):
            return None
        judged = self.sees_all or not self.resolver.names_kinds(name)
        return (selected, known) if judged and selected > WIDE_SHARE * known else None

    def frozen(self, name: str) -> tuple[Fault, ...]:
        """What of a placement could be customized nowhere: as long as it is so nothing goes out."""
        resolver = self.resolver
        shown = ((key, resolver.objects[key]) for key in sorted(resolver.selection(name)))
        return resolver.customizers.faults(shown)

    def generations(self, names: Iterable[str]) -> dict[str, int]:
        """Which metadata.generation the placements of these names are at, if they are there."""
        return {it: generation_of(self.objects[it]) for it in names if it in self.objects}

    def accept(self, objects: Iterable[ObjectKey], placement: str) -> None:
        """Take it that what this placement lacks of these is gone; of others it says nothing."""
        self._accepted[placement] = frozenset(objects)
        self.unseen_placements.discard(placement)
        self.undefined.discard(placement_key(placement))
        self.doubted.discard(placement)

    @property
    def unseen_keys(self) -> frozenset[ObjectKey]:
        """All that a list did not show, with placements, and Namespaces of what is in force."""
        namespaces = {ObjectKey(*NAMESPACES, "", name) for name in self.unseen_namespaces}
        return frozenset({*self.unseen, *map(placement_key, self.unseen_placements), *namespaces})

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing of what is in force, and nothing is doubted."""
        lost = self.lost & self.unseen_keys
        return not (self.unseen or self.unseen_placements or lost or self.doubted)

    def lost_among(self, keys: AbstractSet[ObjectKey]) -> frozenset[ObjectKey]:
        """Those of these that the space lost, or whose Namespace it lost."""
        namespaces = {key.name for key in self.lost if key.group_resource == NAMESPACES}
        namespaces &= self.unseen_namespaces
        return frozenset(key for key in keys if key in self.lost or key.namespace in namespaces)

    def knows(self, followed: AbstractSet[GroupResource], written: Mapping[ObjectKey, str]) -> bool:
        """Whether each of these is known, as it was written (by its version), or later.

        What no placement may select is not `followed`, and need not be known.
        """
        asked = followed - (CONTROL_KINDS - _PLACEMENTS - {ROLLOUTS})
        return all(
            number_of(self._version_of(key)) >= number_of(version)
            for key, version in written.items()
            if key.group_resource in asked
        )

    def _version_of(self, key: ObjectKey) -> str:
        """The version of an object that is known; "" if it is not."""
        if key.group_resource == ROLLOUTS:
            obj = self.rollouts.objects.get(key.name)
        elif (placement := placement_at(key)) is not None:
            obj = self.objects.get(placement)
        else:
            obj = self.resolver.objects.get(key)
        return str(obj["metadata"].get("resourceVersion") or "") if obj else ""

    def is_accepted(self, placement: str) -> bool:
        """Whether someone let this placement's removals pass since the last whole list."""
        return placement in self._accepted

    def inferred(self, name: str, losses: Iterable[ObjectKey]) -> frozenset[ObjectKey]:
        """Which of a placement's losses nobody said: no deletion, no edit, and nobody accepted."""
        accepted = self._accepted.get(name, frozenset())
        return frozenset(
            key
            for key in losses
            if key not in accepted
            and (
                key in self.unseen
                or (
                    key.namespace in self.unseen_namespaces
                    and self.resolver.lacks_namespace(key, name)
                )
            )
        )

    def needed_by(self, objects: Iterable[ObjectKey]) -> frozenset[ObjectKey]:
        """The definitions of these objects' kinds, unless a deletion of them was said."""
        needed = {self.resolver.definition_of(key) for key in objects}
        shown = self.resolver.objects
        return frozenset(key for key in needed if key in shown or key in self.unseen)

    def _unlist_control(
        self,
        objects: Mapping[ObjectKey, Object],
        issued: AbstractSet[str],
        kind: tuple[str, str] | None,
    ) -> None:
        """Let go of what says what becomes of others and is not listed; note unseen placements."""
        if kind in (None, CUSTOMIZERS):
            for key in self.resolver.customizers.listed():
                if key not in objects:
                    self.resolver.customizers.remove(key)
        by_kind: dict[GroupResource, ReadObjects[Any, Any] | Rollouts]
        by_kind = {**self.read, ROLLOUTS: self.rollouts}
        for of, listed in by_kind.items():
            for name in [*listed.objects] if kind in (None, of) else ():
                if ObjectKey(*of, "", name) not in objects:
                    listed.remove(name)
        known = {*self.objects, *self.leaving, *issued, *self.unseen_placements}
        looked_at = {name for name in known if kind in (None, placement_key(name).group_resource)}
        unlisted = {name for name in looked_at if placement_key(name) not in objects}
        for name in unlisted:
            self._forget(name)
        self.unseen_placements = (self.unseen_placements - looked_at) | (unlisted & issued)

    def _unlisted(self, objects: Mapping[ObjectKey, Object]) -> frozenset[ObjectKey]:
        """Let go of Denatureds that a list does not show; the keys under which nothing is left."""
        names = self.renatured.names() - {key.name for key in objects if is_denatured(key)}
        gone = set()
        for name in names:
            left = self.renatured.remove(name)
            self._set(left)
            gone |= {key for key, obj in left.items() if obj is None}
        return frozenset(gone)

    def _now(self, changed: Mapping[ObjectKey, Object | None]) -> frozenset[str]:
        """Take it that this is what there is under these keys, as someone said."""
        for key in changed:
            self._seen(key)
        return self._set(changed)

    def _set(self, changed: Mapping[ObjectKey, Object | None]) -> frozenset[str]:
        touched: frozenset[str] = frozenset()
        for key, obj in changed.items():
            touched |= self._remove_object(key) if obj is None else self._put_object(key, obj)
        return touched

    def _concerned(self, key: ObjectKey, touched: frozenset[Any]) -> frozenset[str]:
        """The placements that what touched these concerns; collectors name them, others kinds."""
        is_named = key.group_resource == COLLECTORS
        return touched if is_named else self.resolver.selecting_kinds(touched)

    def _again(self, key: ObjectKey) -> frozenset[str]:
        """The placements that want an object: what lies beside it changed."""
        return self.resolver.put(key, self.resolver.objects[key])

    def _definitions(self) -> Iterable[Object]:
        return (self.resolver.objects[key] for key in self.resolver.of_kind(DEFINITIONS))

    def _read(self, name: str, obj: Object) -> frozenset[str]:
        """Take what a placement says, if that is valid; the others that it touches."""
        try:
            placement = parse_wish(obj)
        except InvalidObject as error:
            self.invalid[name] = "; ".join(str(fault) for fault in error.faults)
            return frozenset()
        self.invalid.pop(name, None)
        if isinstance(placement, EdgePlacement | BindingPolicy):
            return self._take(name, placement)
        return frozenset()

    def _take(self, name: str, placement: Placement) -> frozenset[str]:
        """Take what a placement says; the others that it touches."""
        self.placements[name] = placement
        self._put_rules(name, placement)
        self.missing.put(name, placement.spec)
        self.collectors.put_placement(name, placement.spec)
        return self.dependencies.put(name, placement.metadata.annotations)

    def _put_object(self, key: ObjectKey, obj: Object) -> frozenset[str]:
        return self.resolver.put(key, obj) | self._namespace_of(key) | self._space_says(key, obj)

    def _remove_object(self, key: ObjectKey) -> frozenset[str]:
        return self.resolver.remove(key) | self._namespace_of(key) | self._space_says(key, None)

    def _space_says(self, key: ObjectKey, obj: Object | None) -> frozenset[str]:
        """Take what who runs the space says of all of it; the placements that this touches."""
        if not self.settings.put(key, obj):
            return frozenset()
        for name, placement in self.placements.items():
            self._put_rules(name, placement)
        return frozenset(self.placements)

    def _put_rules(self, name: str, placement: Placement) -> None:
        self.resolver.put_placement(name, self.settings.limited(rules_of(placement.spec)))

    def _collectors_of(self, name: str) -> dict[ObjectKey, tuple[Program, ...]]:
        return self.collectors.of(name, self.resolver.collectors(name))

    def left_out_collectors(self, name: str) -> tuple[str, ...]:
        """The collectors that a placement has no room for, why, and what to do."""
        left_out = self.collectors.within_budget(self._collectors_of(name))[1]
        return (*left_out, *filter(None, [names_too_much(self._merged(name))]))

    def collecting(self, name: str) -> dict[ObjectKey, tuple[Program, ...]]:
        """What is collected of each object that a placement selects."""
        named, _ = self.collectors.within_budget(self._collectors_of(name))
        found = {key: tuple(map(self.settings.allowed, each)) for key, each in named.items()}
        merged = self._merged(name)
        for key in () if names_too_much(merged) else merged:
            found[key] = (*found.get(key, ()), AGGREGATE)
        return found

    def _merged(self, name: str) -> list[ObjectKey]:
        """The objects of a placement of which the status of all copies is to be merged."""
        found = list[ObjectKey]()
        for key, flags in self.resolver.selection(name).items():
            # Where anyone wants all copies merged, those of who wants one status are, too.
            wanted = flags & WANT_MULTI or (
                flags & WANT_SINGLETON and self.resolver.selecting_with(key, WANT_MULTI)
            )
            if wanted and takes_status(key):
                found.append(key)
        return found

    def _related_to(self, name: str) -> set[str]:
        """The placements to look at again when one comes, changes or goes."""
        return {*self.resolver.differing(name), *self.resolver.merging_with(name)}

    def _namespace_of(self, key: ObjectKey) -> frozenset[str]:
        """The placements that name the object's Namespace, if that came or went with it."""
        name = key.name if key.group_resource == NAMESPACES else key.namespace
        if not name:
            return frozenset()
        there = ObjectKey(*NAMESPACES, "", name) in self.resolver.objects
        if there or self.resolver.is_inside(name):
            return self.missing.put_namespace(name)
        return self.missing.remove_namespace(name)

    def _goes_with_definition(self, key: ObjectKey, obj: Object) -> bool:
        """Whether an object is a definition that goes, or one of its kind that goes with it."""
        if not is_terminating(obj):
            return False
        if key.group_resource == DEFINITIONS:
            return True
        is_plain = key.group_resource not in CONTROL_KINDS
        return is_plain and self.resolver.definition_of(key) in self.undefined

    def _seen(self, key: ObjectKey) -> None:
        self.unseen.discard(key)
        self.undefined.discard(key)
        if key.group_resource == NAMESPACES:
            self.unseen_namespaces.discard(key.name)
        if (placement := placement_at(key)) is not None:
            self.unseen_placements.discard(placement)

    def _forget(self, name: str) -> frozenset[str]:
        """Take it that a placement is gone; the others that this touches."""
        self.objects.pop(name, None)
        self.leaving.pop(name, None)
        self.placements.pop(name, None)
        self.invalid.pop(name, None)
        self.resolver.remove_placement(name)
        self.missing.remove(name)
        self.collectors.remove_placement(name)
        return self.dependencies.remove(name)


def _said(obj: Object) -> tuple[dict[str, Any], dict[str, Any]]:
    """What people say in an object: all but its status, and what each write changes."""
    outside = {field: said for field, said in obj.items() if field not in ("metadata", "status")}
    metadata = obj["metadata"].items()
    return outside, {field: said for field, said in metadata if field not in _OF_EACH_WRITE}
