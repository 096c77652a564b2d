"""The what resolver: from a space's objects and its placements to each placement's object set.

It is incremental: one object's change costs a test against the placements that may want it by its
name, a label, its Namespace or its resource, a Namespace's change of labels a test of the objects
in it. The order in which objects and placements become known does not matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from controllers.core.workloads.customizers import Customizers
from controllers.core.workloads.executing_count import is_counted
from controllers.core.workloads.selection import ANY, Clause, KindScope, Rules, never_selected
from schemas.content.manifest import CREATE_ONLY, WANT_MULTI, WANT_SINGLETON
from schemas.objects.objects import (
    DEFINITIONS,
    NAMESPACES,
    GroupResource,
    Object,
    ObjectKey,
    is_terminating,
    texts_of,
)
from schemas.objects.selectors import IN, LabelSelector

_NONE: frozenset[str] = frozenset()

_ALL = ("all", "")
PARTIAL = "PartialObjectMetadata"
"""The kind of an object of which only the metadata is known, as the Kubernetes API names it."""
_KEPT_METADATA = ("name", "namespace", "labels", "uid", "resourceVersion")

_Hint = tuple[str, str]
_NO_HINTS: frozenset[_Hint] = frozenset()


class WhatResolver:
    """Holds the objects and the rules of one space.

    Each change returns the placements whose object set, or one of whose objects, is now another.
    """

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, Mapping[str, Any]] = {}
        # Those that carry a count of their copies.
        self.counted: set[ObjectKey] = set()
        self.customizers = Customizers()
        self._rules: dict[str, Rules] = {}
        self._wanting: dict[_Hint, set[str]] = defaultdict(set)
        self._selected: dict[str, dict[ObjectKey, int]] = {}
        self._selecting: dict[ObjectKey, set[str]] = defaultdict(set)
        self._bearing: dict[_Hint, set[ObjectKey]] = defaultdict(set)
        # How many of a kind each one selects.
        self._kinds: dict[GroupResource, Counter[str]] = defaultdict(Counter)
        self._crds: dict[GroupResource, ObjectKey] = {}
        self._of_kind: dict[GroupResource, set[ObjectKey]] = defaultdict(set)
        self._reaches: Counter[KindScope] = Counter()  # of all clauses: most are of a few forms
        self._kept: set[ObjectKey] = set()  # objects that no placement can select
        self._create_only: set[str] = set()  # placements that say it of some object

    def put(self, key: ObjectKey, obj: Mapping[str, Any]) -> frozenset[str]:
        """Learn of an object's present state; one that is terminating counts as gone."""
        if is_terminating(obj):
            return self.remove(key)
        before = self.objects.get(key)
        self.objects[key] = obj
        self._index(key, before, obj)
        self._of_kind[key.group, key.resource].add(key)
        (self._kept.add if never_selected(key, obj) else self._kept.discard)(key)
        (self.counted.add if is_counted(obj) else self.counted.discard)(key)
        changed = self._evaluate(key)
        if key.group_resource == DEFINITIONS:
            changed |= self._learn_crd(key, obj)
        if _is_namespace(key) and (before is None or _labels(before) != _labels(obj)):
            changed |= self._evaluate_inside(key.name)
        return frozenset(changed)

    def remove(self, key: ObjectKey) -> frozenset[str]:
        """Learn that an object is gone."""
        before = self.objects.pop(key, None)
        if before is None:
            return _NONE
        self._index(key, before, None)
        changed = set(self._selecting.get(key, ()))
        for name in changed:
            self._drop(key, name)
        self._kept.discard(key)
        self.counted.discard(key)
        self._of_kind[key.group, key.resource].discard(key)
        if not self._of_kind[key.group, key.resource]:
            del self._of_kind[key.group, key.resource]
        if _is_namespace(key):
            changed |= self._evaluate_inside(key.name)
        for kind in [kind for kind, crd in self._crds.items() if crd == key]:
            del self._crds[kind]
            changed |= set(self._kinds.get(kind, ()))
        return frozenset(changed)

    def put_placement(self, name: str, rules: Rules) -> None:
        """Learn of a placement's rules."""
        if self._rules.get(name) == rules:
            return
        self.remove_placement(name)
        self._rules[name] = rules
        self._reaches.update(clause.reach for clause in rules.clauses)
        if any(clause.flags & CREATE_ONLY for clause in rules.clauses):
            self._create_only.add(name)
        self._selected[name] = {}
        hints = _hints(rules)
        for hint in hints:
            self._wanting[hint].add(name)
        for key in self._candidates(hints):
            self._test(key, name)

    def remove_placement(self, name: str) -> None:
        """Learn that a placement is gone."""
        rules = self._rules.pop(name, None)
        if rules is None:
            return
        self._reaches -= Counter(clause.reach for clause in rules.clauses)
        self._create_only.discard(name)
        for hint in _hints(rules):
            self._wanting[hint].discard(name)
            if not self._wanting[hint]:
                del self._wanting[hint]
        for key in list(self._selected[name]):
            self._drop(key, name)
        del self._selected[name]

    def thin(self, key: ObjectKey) -> None:
        """Keep no more than an object's metadata, if no placement selects it."""
        obj = self.objects.get(key)
        if obj is not None and key not in self._selecting and not is_partial(obj):
            metadata = {name: obj["metadata"].get(name) for name in _KEPT_METADATA}
            self.objects[key] = {"kind": PARTIAL, "metadata": metadata}

    def of_kind(self, kind: GroupResource) -> frozenset[ObjectKey]:
        """The objects of a kind: group and resource."""
        return frozenset(self._of_kind.get(kind, ()))

    def kinds(self) -> frozenset[GroupResource]:
        """The kinds of which there are objects."""
        return frozenset(self._of_kind)

    @property
    def reaches(self) -> frozenset[KindScope]:
        """What kinds of objects the placements may select, in all the forms that they say it."""
        return frozenset(self._reaches)

    @property
    def namespaces(self) -> dict[str, Mapping[str, str]]:
        """The labels of each Namespace that is known."""
        return {key.name: _labels(self.objects[key]) for key in self.of_kind(NAMESPACES)}

    def rules(self, name: str) -> Rules:
        """What a placement selects; nothing if it is not known."""
        return self._rules.get(name, Rules())

    def selected_kinds(self, name: str) -> frozenset[GroupResource]:
        """The kinds of the objects that a placement selects."""
        return frozenset(key.group_resource for key in self._selected.get(name, ()))

    def selection(self, name: str) -> dict[ObjectKey, int]:
        """The objects a placement selects now, with their flags, and the CRDs that these need.

        A definition that stays at home does not come along.
        """
        selected = dict(self._selected.get(name, {}))
        for kind, crd in self._crds.items():
            if crd in self._kept:
                continue
            if name in self._kinds.get(kind, ()) and not self._rules[name].brings_up(crd):
                selected.setdefault(crd, 0)
        return selected

    def collectors(self, name: str) -> dict[ObjectKey, frozenset[str]]:
        """The StatusCollectors that a placement names for each object that it selects."""
        rules = self._rules.get(name)
        if rules is None or not any(clause.collectors for clause in rules.clauses):
            return {}
        named = {
            key: rules.collectors_of(key, _labels(self.objects[key]), self._namespace_labels(key))
            for key in self._selected[name]
        }
        return {key: names for key, names in named.items() if names}

    def count(self, name: str) -> int:
        """How many objects a placement selects; definitions that only come along do not count."""
        return len(self._selected.get(name, ()))

    def selecting(self, key: ObjectKey) -> list[str]:
        """The placements that select an object, in order."""
        return sorted(self._selecting.get(key, ()))

    @property
    def carried(self) -> Mapping[ObjectKey, Collection[str]]:
        """The objects that placements select, each with these."""
        return self._selecting

    def is_inside(self, namespace: str) -> bool:
        """Whether an object of this namespace is there."""
        return ("namespace", namespace) in self._bearing

    def definition_of(self, key: ObjectKey) -> ObjectKey:
        """The definition of an object's kind: the one that is shown, else by how such are named."""
        named = ObjectKey(*DEFINITIONS, "", f"{key.resource}.{key.group}")
        return self._crds.get(key.group_resource, named)

    def selecting_with(self, key: ObjectKey, flag: int) -> list[str]:
        """The placements that select an object with this flag, in order."""
        return sorted(
            name for name in self._selecting.get(key, ()) if self._selected[name][key] & flag
        )

    @property
    def selectable(self) -> int:
        """How many objects are known that a placement could select."""
        return len(self.objects) - len(self._kept)

    def names_kinds(self, name: str) -> bool:
        """Whether a placement says of what kinds or groups its objects are, in all clauses."""
        rules = self._rules.get(name)
        return rules is not None and all(clause.names_kinds for clause in rules.clauses)

    def is_explicit(self, name: str) -> bool:
        """Whether a placement says of which Namespaces, names or labels its objects are, always."""
        rules = self._rules.get(name)
        return rules is not None and all(clause.is_explicit for clause in rules.clauses)

    def is_alone(self, name: str) -> bool:
        """Whether no other placement selects anything."""
        return not any(found for other, found in self._selected.items() if other != name)

    def selecting_kinds(self, kinds: Iterable[GroupResource]) -> frozenset[str]:
        """The placements that select some object of these kinds."""
        listed = frozenset(kinds)
        if DEFINITIONS in listed:  # They go with the objects that need them.
            return frozenset(self._rules)
        return frozenset(name for kind in listed for name in self._kinds.get(kind, ()))

    def differing(self, name: str) -> dict[str, list[ObjectKey]]:
        """Placements that differ from this one in createOnly, each with the objects, in order."""
        found: dict[str, list[ObjectKey]] = {}
        if not self._create_only:
            return found
        for key, flags in self._selected.get(name, {}).items():
            for other in self._selecting[key]:
                if (self._selected[other][key] ^ flags) & CREATE_ONLY:
                    found.setdefault(other, []).append(key)
        return {other: sorted(found[other]) for other in sorted(found)}

    def merging_with(self, name: str) -> set[str]:
        """Placements that want one status back of an object of which this one wants all merged."""
        rules = self._rules.get(name)
        if rules is None or not any(clause.flags & WANT_MULTI for clause in rules.clauses):
            return set()
        return {
            other
            for key, flags in self._selected[name].items()
            if flags & WANT_MULTI
            for other in self.selecting_with(key, WANT_SINGLETON)
        }

    def lacks_namespace(self, key: ObjectKey, name: str) -> bool:
        """Whether a placement would select the object, were its Namespace known to match."""
        obj, rules = self.objects.get(key), self._rules.get(name)
        if (
            obj is None
            or rules is None
            or ObjectKey(*NAMESPACES, "", key.namespace) in self.objects
        ):
            return False
        return rules.in_any_namespace().flags_of(key, _labels(obj), None) is not None

    def _candidates(self, hints: frozenset[_Hint]) -> Iterable[ObjectKey]:
        """The objects that rules with these hints may select."""
        if _ALL in hints:
            return self.objects
        return {key for hint in hints for key in self._bearing.get(hint, ())}

    def _index(
        self, key: ObjectKey, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> None:
        """Find the object by what it bears now, and by nothing that it bore before."""
        bore = _borne(key, before) if before is not None else _NO_HINTS
        bears = _borne(key, after) if after is not None else _NO_HINTS
        for hint in bears - bore:
            self._bearing[hint].add(key)
        for hint in bore - bears:
            self._bearing[hint].discard(key)
            if not self._bearing[hint]:
                del self._bearing[hint]

    def _evaluate(self, key: ObjectKey) -> set[str]:
        """Test an object against all that may want it; who selects or selected it is changed."""
        changed = set(self._selecting.get(key, ()))
        maybe = set(changed)
        for hint in (*_borne(key, self.objects[key]), _ALL):
            maybe |= self._wanting.get(hint, _NONE)
        for name in maybe:
            self._test(key, name)
        return changed | self._selecting.get(key, set())

    def _evaluate_inside(self, namespace: str) -> set[str]:
        changed = set[str]()
        for key in tuple(self._bearing.get(("namespace", namespace), ())):
            before = {name: self._selected[name][key] for name in self._selecting.get(key, ())}
            self._evaluate(key)
            after = {name: self._selected[name][key] for name in self._selecting.get(key, ())}
            if before != after:
                changed |= before.keys() | after.keys()
        return changed

    def _test(self, key: ObjectKey, name: str) -> None:
        obj = self.objects[key]
        flags = None
        if key not in self._kept:
            flags = self._rules[name].flags_of(key, _labels(obj), self._namespace_labels(key))
        if flags is None:
            self._drop(key, name)
        else:
            self._take(key, name, flags)

    def _namespace_labels(self, key: ObjectKey) -> Mapping[str, str] | None:
        """The labels of the object's Namespace; None if that is not known."""
        namespace = self.objects.get(ObjectKey(*NAMESPACES, "", key.namespace))
        return None if namespace is None else _labels(namespace)

    def _take(self, key: ObjectKey, name: str, flags: int) -> None:
        if key not in self._selected[name]:
            self._kinds[key.group, key.resource][name] += 1
            self._selecting[key].add(name)
        self._selected[name][key] = flags
        self.customizers.select(name, key, self.objects[key])

    def _drop(self, key: ObjectKey, name: str) -> None:
        if self._selected[name].pop(key, None) is None:
            return
        self.customizers.unselect(name, key)
        kind = key.group_resource
        self._kinds[kind][name] -= 1
        if not self._kinds[kind][name]:
            del self._kinds[kind][name]
        if not self._kinds[kind]:
            del self._kinds[kind]
        self._selecting[key].discard(name)
        if not self._selecting[key]:
            del self._selecting[key]

    def _learn_crd(self, key: ObjectKey, obj: Mapping[str, Any]) -> set[str]:
        kind = _defines(obj)
        changed = set()
        for old in [old for old, crd in self._crds.items() if crd == key and old != kind]:
            del self._crds[old]
            changed |= set(self._kinds.get(old, ()))
        if kind is None:
            return changed
        self._crds[kind] = key
        return changed | set(self._kinds.get(kind, ()))


def is_partial(obj: Mapping[str, Any]) -> bool:
    """Whether only the metadata of the object is known."""
    return obj.get("kind") == PARTIAL


def _hints(rules: Rules) -> frozenset[_Hint]:
    """Where to look for the objects that a placement may select: by what each clause names."""
    return frozenset(hint for clause in rules.clauses for hint in _hints_of(clause))


def _hints_of(clause: Clause) -> Collection[_Hint]:
    """By what few objects bear, if the clause says it: names, else labels, Namespaces, kinds."""
    if clause.names and ANY not in clause.names:
        return [("name", name) for name in clause.names]
    labels = [_labels_named(selector) for selector in clause.selectors]
    if labels and all(labels):
        return [hint for each in labels for hint in each]
    if clause.namespaces and ANY not in clause.namespaces:
        return [("namespace", name) for name in clause.namespaces]
    if clause.resources and ANY not in clause.resources:
        return [("resource", name) for name in clause.resources]
    return [_ALL]


def _labels_named(selector: LabelSelector) -> list[_Hint]:
    """Labels of which whatever it selects bears one; none if it names none that must be there."""
    for each in selector.requirements:
        if each.operator == IN:
            return [_label(each.key, value) for value in each.values]
    return []


def _label(name: str, value: str) -> _Hint:
    return "label", f"{name}={value}"


def _borne(key: ObjectKey, obj: Mapping[str, Any]) -> frozenset[_Hint]:
    """The hints by which rules may find the object, beside those of all."""
    labels = (_label(*each) for each in _labels(obj).items())
    named = ("name", key.name), ("resource", key.resource)
    inside = (("namespace", key.namespace),) if key.namespace else ()
    return frozenset((*named, *inside, *labels))


def _defines(crd: Mapping[str, Any]) -> GroupResource | None:
    """The group and resource that a CustomResourceDefinition defines, if it says so."""
    match crd.get("spec"):
        case {"group": str(group), "names": {"plural": str(plural)}}:
            return (group, plural)
        case _:
            return None


def _is_namespace(key: ObjectKey) -> bool:
    return key.group_resource == NAMESPACES


def _labels(obj: Object) -> Mapping[str, str]:
    return texts_of(obj, "labels")
