"""What is applied of a wanted object: its content, the marks that make it ours, its policies.

Controllers copy labels and annotations to what they make of an object, so the label alone says
nothing: an object is ours if its annotation names itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from relay.objects.merge import Object, fields_said
from schemas.objects.annotations import ON_REMOVAL, OVERWRITE
from schemas.objects.objects import ObjectKey, texts_of
from schemas.objects.selectors import LabelSelector
from schemas.values.fields import mapping_at

MANAGER = "leafcast"
POLICY_MANAGER = "leafcast-policy"
"""Holds the annotations that are kept in step on an object that is left to its cluster."""
TREE = "leafcast.io/tree"
OBJECT = "leafcast.io/object"
ADOPTED = "leafcast.io/adopted"
MARKS = (TREE, OBJECT, ADOPTED, ON_REMOVAL)
"""The labels and annotations that we put on what we apply."""

INVALID = "Invalid"
DENIED = " denied "
"""In what a policy or a webhook of the cluster refuses."""
_LABELLED_AS_PODS = (("batch", "jobs"), ("", "replicationcontrollers"))
# What servers say, and what authors of rules for their own kinds write.
_UNCHANGEABLE = re.compile(
    r"immutable|unchangeable|forbidden: updates to|is forbidden on"
    r"|\b(?:cannot|can not|can't|may not|must not) (?:be )?(?:change|modif|update|alter)"
    r"|\b(?:changing|modifying|updating|changes to|updates to) .{1,80}?"
    r" (?:not allowed|not permitted|not supported|forbidden|prohibited)"
    r"|\bonce set\b|\bafter (?:creation|it is set|being set)\b",
    re.IGNORECASE,
)


def marked(
    obj: Mapping[str, Any], key: ObjectKey, tree: str, *, adopted: bool, asked: str = ""
) -> Object:
    """The object with the marks that make it ours; what is below may be shared.

    What its placement asks becomes of it in the end is said on it, too, unless it says so itself.
    """
    own = {OBJECT: str(key)} | ({ADOPTED: "true"} if adopted else {})
    said = texts_of(obj, "annotations")
    if asked and not said.get(ON_REMOVAL):
        own[ON_REMOVAL] = asked
    metadata = {
        **obj["metadata"],
        "labels": {**_labels(obj, key), TREE: tree},
        "annotations": {**said, **own},
    }
    return {**obj, "metadata": metadata}


def _labels(obj: Mapping[str, Any], key: ObjectKey) -> Mapping[str, Any]:
    """The object's labels; of some kinds that say none those of their Pods.

    A server gives them these, but to no object that has any label, as one with our mark.
    """
    labels = texts_of(obj, "labels")
    if labels or key.group_resource not in _LABELLED_AS_PODS:
        return labels
    return mapping_at(obj, "spec", "template", "metadata", "labels")


def of_this(wish: Object, uid: str) -> Object:
    """The wish for the very object of this uid, so that it makes no other; "" is any."""
    metadata = {name: value for name, value in wish["metadata"].items() if name != "uid"}
    return {**wish, "metadata": metadata | ({"uid": uid} if uid else {})}


def policy_alone(live: Mapping[str, Any], *, overwrite: bool, asked: str = "") -> Object:
    """A wish of `POLICY_MANAGER` for an object that is left to its cluster, or nothing.

    It says that this very object is not overwritten, and what becomes of it in the end.
    """
    named = ("name", "namespace", "uid")
    metadata: Object = {name: live["metadata"][name] for name in named if name in live["metadata"]}
    said = ({} if overwrite else {OVERWRITE: "false"}) | ({ON_REMOVAL: asked} if asked else {})
    if said:
        metadata["annotations"] = said
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata}


def is_left_alone(live: Mapping[str, Any]) -> bool:
    """Whether an object says that it is not overwritten."""
    return texts_of(live, "annotations").get(OVERWRITE) == "false"


def removal_said(live: Mapping[str, Any]) -> str:
    """What an object there says becomes of it once it is wanted no more; "" if nothing."""
    return str(texts_of(live, "annotations").get(ON_REMOVAL) or "")


def tree_of(obj: Mapping[str, Any], key: ObjectKey) -> str:
    """The tree whose marks the object bears; "" if they were copied from another object."""
    named = texts_of(obj, "annotations").get(OBJECT) == str(key)
    return str(texts_of(obj, "labels").get(TREE, "")) if named else ""


def is_ours(obj: Mapping[str, Any], key: ObjectKey, tree: str) -> bool:
    """Whether the object is this tree's."""
    return tree_of(obj, key) == tree


def is_adopted(obj: Mapping[str, Any]) -> bool:
    """Whether it was there before we applied it: then it is not ours to delete."""
    return texts_of(obj, "annotations").get(ADOPTED) == "true"


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
    """Whether a server refused because a field cannot be changed on an object that exists.

    Servers give no other sign of it than words. What a policy of the cluster denies is none: it may
    deny a new object just as well.
    """
    return reason == INVALID and DENIED not in message and speaks_of_change(message)


def speaks_of_change(message: str) -> bool:
    """Whether a refusal has words that say of a field that it cannot be changed."""
    return _UNCHANGEABLE.search(message) is not None


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
