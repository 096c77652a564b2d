"""What is applied of a wanted object: its content, the marks that make it ours, its policies.

Controllers copy labels and annotations to what they make of an object, so the label alone says
nothing: an object is ours if its annotation names itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from relay.objects.merge import Object, fields_said
from schemas.objects import CRD_GROUP, ObjectKey
from schemas.selectors import LabelSelector

MANAGER = "leafcast"
POLICY_MANAGER = "leafcast-policy"
"""Holds the one annotation that is kept in step on an object that is left to its cluster."""
TREE = "leafcast.io/tree"
OBJECT = "leafcast.io/object"
ADOPTED = "leafcast.io/adopted"

EXISTING = "leafcast.io/existing"
CONFLICTS = "leafcast.io/conflicts"
ON_IMMUTABLE = "leafcast.io/on-immutable"
OVERWRITE = "edge.kubestellar.io/downsync-overwrite"
ADOPT, REFUSE, LEAVE = "adopt", "refuse", "leave"
FORCE, RECREATE, FAIL = "force", "recreate", "fail"
_CHOICES: Mapping[str, tuple[str, ...]] = {
    EXISTING: (ADOPT, REFUSE, LEAVE),
    CONFLICTS: (FAIL, FORCE),
    ON_IMMUTABLE: (FAIL, RECREATE),
    OVERWRITE: ("true", "false"),
}
# What these hold is lost with them, and does not come back with a new one.
_NEVER_RECREATED = frozenset(
    {
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        (CRD_GROUP, "customresourcedefinitions"),
    }
)
_UNCHANGEABLE = ("immutable", "Forbidden: updates to", "may not change once set", "is forbidden on")


class PolicyUnknown(ValueError):
    """An annotation says what is no policy; names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Policies:
    """What an object's annotations ask of whoever applies it.

    `existing` is for an object that is there and not ours; `force` takes fields that others own;
    `recreate` replaces an object whose fields cannot be changed; without `overwrite` it is made
    once, then left to its cluster, and stays there.
    """

    existing: str = ADOPT
    force: bool = False
    recreate: bool = False
    overwrite: bool = True


def may_be_recreated(key: ObjectKey) -> bool:
    """Whether an object can be replaced without losing what it holds."""
    return (key.group, key.resource) not in _NEVER_RECREATED


def policies_of(key: ObjectKey, obj: Mapping[str, Any]) -> Policies:
    """Read an object's annotations; raises PolicyUnknown."""
    annotations = _texts(obj, "annotations")
    said = {}
    for name, choices in _CHOICES.items():
        value = said[name] = annotations.get(name) or choices[0]
        if value not in choices:
            remedy = f"use {', '.join(choices[:-1])} or {choices[-1]}"
            raise PolicyUnknown(f"{key}: metadata.annotations[{name}]: {value!r}: {remedy}")
    return Policies(
        existing=said[EXISTING],
        force=said[CONFLICTS] == FORCE,
        recreate=said[ON_IMMUTABLE] == RECREATE and may_be_recreated(key),
        overwrite=said[OVERWRITE] == "true",
    )


def marked(obj: Mapping[str, Any], key: ObjectKey, tree: str, *, adopted: bool) -> Object:
    """The object with the marks that make it ours; what is below may be shared."""
    own = {OBJECT: str(key)} | ({ADOPTED: "true"} if adopted else {})
    metadata = {
        **obj["metadata"],
        "labels": {**_texts(obj, "labels"), TREE: tree},
        "annotations": {**_texts(obj, "annotations"), **own},
    }
    return {**obj, "metadata": metadata}


def policy_alone(live: Mapping[str, Any], *, overwrite: bool) -> Object:
    """A wish of `POLICY_MANAGER`: that this very object is not overwritten, or nothing."""
    named = ("name", "namespace", "uid")
    metadata: Object = {name: live["metadata"][name] for name in named if name in live["metadata"]}
    if not overwrite:
        metadata["annotations"] = {OVERWRITE: "false"}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}


def tree_of(obj: Mapping[str, Any], key: ObjectKey) -> str:
    """The tree whose marks the object bears; "" if they were copied from another object."""
    named = _texts(obj, "annotations").get(OBJECT) == str(key)
    return str(_texts(obj, "labels").get(TREE, "")) if named else ""


def is_ours(obj: Mapping[str, Any], key: ObjectKey, tree: str) -> bool:
    """Whether the object is this tree's."""
    return tree_of(obj, key) == tree


def is_adopted(obj: Mapping[str, Any]) -> bool:
    """Whether it was there before we applied it: then it is not ours to delete."""
    return _texts(obj, "annotations").get(ADOPTED) == "true"


def ours(tree: str) -> LabelSelector:
    """What objects of this tree are found by."""
    return LabelSelector.from_kubernetes({"matchLabels": {TREE: tree}})


def any_trees() -> LabelSelector:
    """What objects of any tree are found by, so that another's is known before it is touched."""
    return LabelSelector.from_kubernetes(
        {"matchExpressions": [{"key": TREE, "operator": "Exists"}]}
    )


def without_replicas(obj: Object) -> Object:
    """The wish without the field that an autoscaler sets."""
    spec = obj.get("spec")
    if not isinstance(spec, Mapping) or "replicas" not in spec:
        return obj
    return {**obj, "spec": {name: value for name, value in spec.items() if name != "replicas"}}


def is_unchangeable(reason: str, message: str) -> bool:
    """Whether a server refused because a field cannot be changed on an object that exists."""
    return reason in ("Invalid", "Forbidden") and any(said in message for said in _UNCHANGEABLE)


def paths_said(wish: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a wish as text, for a space that keeps no managedFields; a list is one."""
    return _paths(fields_said(wish), "")


def _paths(said: Mapping[str, Any], above: str) -> Iterator[str]:
    for name, below in said.items():
        path = f"{above}.{name}" if above else name
        if isinstance(below, Mapping) and below:
            yield from _paths(below, path)
        else:
            yield path


def _texts(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = obj["metadata"].get(name)
    return found if isinstance(found, Mapping) else {}
