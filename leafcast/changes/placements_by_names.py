"""An EdgePlacement of just what is in files: by names, so that nothing else goes along."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from typing import Any

from schemas.objects.objects import ALWAYS_THERE, ObjectKey
from schemas.values.groups import GROUP, VERSION

LEAVING_MAX, LEAVING_SHARE = 10, 5
"""More than so many objects, and more than the fifth part, leave only if that is said."""

Object = dict[str, Any]
Treatment = Mapping[str, Any]
"""What a clause says of objects beside which they are, such as `createOnly`."""

ANY = "*"
_NAMESPACES = ("", "namespaces")
_SELECTING = frozenset(
    {
        "apiGroup",
        "resources",
        "namespaces",
        "objectNames",
        "namespaceSelectors",
        "labelSelectors",
    }
)


class SelectsOtherwise(ValueError):
    """A placement that says not by names alone what it selects; `field` says where."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


def placeable(objects: Mapping[ObjectKey, Mapping[str, Any]]) -> frozenset[ObjectKey]:
    """Those of the objects that a placement can send, and the Namespaces that they lie in."""
    # Here, as it leads to the models of our kinds, which few commands need.
    from controllers.core.workloads.selection import never_selected  # noqa: PLC0415

    sent = {key for key, obj in objects.items() if not never_selected(key, obj)}
    needed = {key.namespace for key in sent} - ALWAYS_THERE - {""}
    return frozenset(sent | {ObjectKey(*_NAMESPACES, "", name) for name in needed})


def placement_of(
    name: str,
    objects: Set[ObjectKey],
    locations: Sequence[Mapping[str, Any]],
    treatments: Mapping[ObjectKey, Treatment] | None = None,
) -> Object:
    """An EdgePlacement of exactly these objects, to Locations that one of the selectors matches.

    Objects are treated as `treatments` says.
    """
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {
            "locationSelectors": list(locations),
            "downsync": list(_clauses(objects, treatments or {})),
        },
    }


def treatments_in(placement: Mapping[str, Any]) -> dict[ObjectKey, Treatment]:
    """The objects that a valid EdgePlacement names, each with what it says of them.

    Raises SelectsOtherwise if it selects some in another way.
    """
    spec = placement.get("spec") or {}
    if spec.get("namespaceSelector") is not None or spec.get("nonNamespacedObjects"):
        raise SelectsOtherwise("namespaceSelector, nonNamespacedObjects")
    found: dict[ObjectKey, Treatment] = {}
    for at, clause in enumerate(spec.get("downsync") or ()):
        lists = [clause.get(field) or [] for field in ("resources", "namespaces", "objectNames")]
        resources, namespaces, names = lists
        selects = clause.get("namespaceSelectors") or clause.get("labelSelectors")
        by_names = clause.get("apiGroup") is not None and resources and names and not selects
        if not by_names or any(ANY in listed for listed in lists):
            raise SelectsOtherwise(f"downsync[{at}]")
        treatment = {word: said for word, said in clause.items() if word not in _SELECTING}
        for resource, namespace, name in product(resources, namespaces or [""], names):
            key = ObjectKey(clause["apiGroup"], resource, namespace, name)
            found[key] = {**found.get(key, {}), **treatment}
    return found


def is_much(leaving: Set[ObjectKey], before: Set[ObjectKey]) -> bool:
    """Whether so many objects leave a placement that someone has to say that this is meant."""
    many = len(leaving) > LEAVING_MAX and len(leaving) * LEAVING_SHARE > len(before)
    # Those that other files of that namespace need as well do not make it less than all.
    objects = {key for key in before if key.group_resource != _NAMESPACES} or before
    return bool(leaving) and (many or objects <= leaving)


def _clauses(
    objects: Set[ObjectKey], treatments: Mapping[ObjectKey, Treatment]
) -> Iterator[Object]:
    """Clauses that admit these objects and no other: each is of all that its lists combine to."""
    names: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    for key in sorted(objects):
        treatment = json.dumps(treatments.get(key, {}), sort_keys=True)
        names[treatment, key.group, key.namespace, key.resource].append(key.name)
    resources = _joined(
        (treatment, group, namespace, tuple(named), resource)
        for (treatment, group, namespace, resource), named in names.items()
    )
    namespaces = _joined(
        (treatment, group, tuple(of), named, namespace)
        for (treatment, group, namespace, named), of in resources.items()
    )
    for (treatment, group, of, named), within in sorted(namespaces.items()):
        clause: Object = {"apiGroup": group, "resources": list(of)}
        if within != [""]:
            clause["namespaces"] = within
        yield {**clause, "objectNames": list(named), **json.loads(treatment)}


def _joined(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Any]]:
    """The last values of rows that are otherwise alike."""
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for *alike, last in rows:
        found[tuple(alike)].append(last)
    return found
