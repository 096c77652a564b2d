"""Looks through a space kind by kind: what a namespace or a kind holds, what bears our marks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Kind, Object, Space
from relay.syncer.object_marks import is_adopted, is_left_alone, is_ours, ours, removal_said
from relay.syncer.ownership import AUTOSCALERS, scales
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey, apply_order, group_kind
from schemas.objects.selectors import LabelSelector
from schemas.objects.source_objects import uid_of
from schemas.reports.reports import Done

FORBIDDEN = "Forbidden"
# What is not served any more holds nothing.
_PASSED_OVER = frozenset({"MethodNotAllowed", "NotFound"})
# Listed last: they are many, and where they are there is something else, too.
_MANY = ("pods", "replicasets", "secrets")


async def each_kind(
    space: Space,
    hidden: list[tuple[str, str]],
    *,
    namespace: str = "",
    selector: LabelSelector | None = None,
) -> AsyncGenerator[Mapping[ObjectKey, Object], None]:
    """The objects of the space, or of a namespace, some at a time; raises SpaceError.

    A server lists kind by kind, so that who looks for one object need not hold all of them; a space
    that tells no verbs is listed whole. Kinds that may not be listed are added to `hidden`. Of a
    namespace all is told: while a group's server does not answer, that is an error.
    """
    served = await space.kinds(complete=bool(namespace))
    kinds = [kind for kind in served if kind.namespaced or not namespace]
    if not any(kind.verbs for kind in kinds):
        listing = await space.list(namespace=namespace, selector=selector)
        known = BUILT_IN_KINDS.extended_by(listing.objects)
        resources = {(kind.group, kind.kind): kind for kind in kinds}
        yield {_key(obj, resources) or known.key_of(obj): obj for obj in listing.objects}
        return
    kept = [kind for kind in kinds if {"list", "delete"} <= kind.verbs]
    for kind in sorted(kept, key=lambda kind: (kind.resource in _MANY, kind.group, kind.resource)):
        try:
            listing = await space.list(
                kind.group, kind.resource, namespace=namespace, selector=selector
            )
        except SpaceError as error:
            if error.reason == FORBIDDEN:
                hidden.append(kind.group_resource)
            elif error.reason not in _PASSED_OVER:
                raise
            continue
        yield {_of_kind(kind, obj): obj for obj in listing.objects}


async def instances(
    space: Space, hidden: list[tuple[str, str]], name: str
) -> AsyncGenerator[Mapping[ObjectKey, Object], None]:
    """The objects of the kind that a definition of this name defines; raises SpaceError."""
    resource, _, group = name.partition(".")
    try:
        listing = await space.list(group, resource)
    except SpaceError as error:
        if error.reason == FORBIDDEN:
            hidden.append((group, resource))
        elif error.reason != NOT_FOUND:
            raise
        return
    yield {
        ObjectKey(group, resource, found.get("namespace", ""), found["name"]): obj
        for obj in listing.objects
        for found in (obj["metadata"],)
    }


async def scaled_with(space: Space, key: ObjectKey, ours: Iterable[ObjectKey]) -> list[ObjectKey]:
    """Which of ours the object of this key scales, if that is an autoscaler."""
    live = await space.get(key) if key.group_resource == AUTOSCALERS else None
    if live is None:
        return []
    beside = (other for other in ours if other.namespace == key.namespace)
    return [other for other in beside if scales(live, other.group, other.name)]


async def find_ours(space: Space, tree: str, namespaces: Sequence[str] = ()) -> list[Done]:
    """A record of all that bears the marks of this tree, for a syncer that lost its own.

    What was there before it was applied says so itself. A kind that may not be listed as a whole is
    looked for in these namespaces; where that may not be, nothing can be ours to look after.
    Raises SpaceError.
    """
    found: dict[ObjectKey, Object] = {}
    hidden: list[tuple[str, str]] = []
    async for objects in each_kind(space, hidden, selector=ours(tree)):
        found |= objects
    for namespace in namespaces if hidden else ():
        async for objects in each_kind(space, [], namespace=namespace, selector=ours(tree)):
            found |= objects
    return [_record(key, obj) for key, obj in found.items() if is_ours(obj, key, tree)]


def _record(key: ObjectKey, obj: Object) -> Done:
    uid, made = uid_of(obj), not is_adopted(obj)
    order = apply_order(key.group, key.resource)
    stay, said = is_left_alone(obj), removal_said(obj)
    return Done(key, uid, "", (), made, order, stay=stay, on_removal=said)


def _of_kind(kind: Kind, obj: Object) -> ObjectKey:
    namespace = obj["metadata"].get("namespace", "") if kind.namespaced else ""
    return ObjectKey(kind.group, kind.resource, namespace, obj["metadata"]["name"])


def _key(obj: Object, resources: Mapping[tuple[str, str], Kind]) -> ObjectKey | None:
    kind = resources.get(group_kind(obj))
    return _of_kind(kind, obj) if kind else None
