"""Takes back what a syncer applied, and nothing else; all that is uncertain stays."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from relay.ports import Conflict, Object, Space, SpaceError
from relay.syncer.plan import BUILT_IN_NAMESPACES, NAMESPACES, SYNCER
from schemas.objects import BUILT_IN_KINDS, CRD_GROUP, ObjectKey
from schemas.reports import Done

DEFINITIONS = (CRD_GROUP, "customresourcedefinitions")
NAMED_MAX = 3
# What a cluster itself puts into every namespace.
_GIVEN = frozenset(
    {
        ("", "configmaps", "kube-root-ca.crt"),
        ("", "configmaps", "openshift-service-ca.crt"),
        ("", "serviceaccounts", "default"),
    }
)
_FLEETING = frozenset({("", "events"), ("events.k8s.io", "events")})


@dataclass(frozen=True, slots=True)
class Left:
    """Why an object was not deleted; "" if it was, or was not there."""

    why: str = ""


class StillHolds(Exception):
    """A Namespace or definition that holds objects of ours; they are to go first."""


async def take_back(space: Space, done: Done, ours: Collection[ObjectKey]) -> Left:
    """Delete the object if the syncer made it, else withdraw what the syncer said in it.

    A Namespace or a definition that holds others' objects stays. `ours` are all keys on record.
    Raises SpaceError, and StillHolds if something of ours is in it.
    """
    if not done.made or not done.uid:
        await _withdraw(space, done.key)
        return Left("it was there before" if not done.made else "it may be another's")
    foreign = await _foreign_content(space, done.key, ours)
    if foreign:
        return Left(f"it holds what is others': {', '.join(map(str, foreign[:NAMED_MAX]))}")
    try:
        await space.delete(done.key, uid=done.uid)
    except Conflict:
        return Left("it was replaced by another's")
    return Left()


async def _withdraw(space: Space, key: ObjectKey) -> None:
    live = await space.get(key)
    if live is None:
        return
    metadata = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    empty: Object = {name: live[name] for name in ("apiVersion", "kind")} | {"metadata": metadata}
    try:
        await space.apply(empty, SYNCER)
    except SpaceError as error:
        if error.reason != "NotFound":
            raise


async def _foreign_content(
    space: Space, key: ObjectKey, ours: Collection[ObjectKey]
) -> list[ObjectKey]:
    """Objects inside a Namespace or of a defined kind that the syncer did not apply."""
    if (key.group, key.resource) == NAMESPACES:
        if key.name in BUILT_IN_NAMESPACES:
            return [key]
        listing = await space.list(namespace=key.name)
    elif (key.group, key.resource) == DEFINITIONS:
        resource, _, group = key.name.partition(".")
        listing = await space.list(group, resource)
    else:
        return []
    definition = await space.get(key) if (key.group, key.resource) == DEFINITIONS else None
    kinds = BUILT_IN_KINDS.extended_by([definition] if definition else [])
    inside = [kinds.key_of(obj) for obj in listing.objects if not _comes_by_itself(obj)]
    if any(other in ours for other in inside):
        raise StillHolds(f"{key} holds objects that are to be removed first")
    return [other for other in inside if not _given(other)]


def _comes_by_itself(obj: Object) -> bool:
    """Dependents go with their owner, and what is being deleted is as good as gone."""
    metadata = obj["metadata"]
    return bool(metadata.get("ownerReferences") or metadata.get("deletionTimestamp"))


def _given(key: ObjectKey) -> bool:
    kind = (key.group, key.resource)
    return kind in _FLEETING or (*kind, key.name) in _GIVEN
