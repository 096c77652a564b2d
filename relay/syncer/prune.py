"""Takes back what a syncer applied, and nothing else; all that is uncertain stays."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from relay.core.events import KEPT
from relay.objects.health import terminating
from relay.ports import NOT_FOUND, Conflict, Object, Space, SpaceError
from relay.syncer.owned_objects import FORBIDDEN, each_kind
from relay.syncer.ownership import is_shared
from relay.syncer.plan import BUILT_IN_NAMESPACES, NAMESPACES
from relay.syncer.wish import MANAGER, is_adopted, is_ours
from schemas.annotations import OVERWRITE
from schemas.objects import CRD_GROUP, ObjectKey
from schemas.reports import Done
from schemas.wire import replace
from schemas.wording import some_of

DEFINITIONS = (CRD_GROUP, "customresourcedefinitions")
_HOLDING = (NAMESPACES, DEFINITIONS)
NAMED_MAX = 3
_MAY_LIST = "delete it there, and let the edge list them"
# What a cluster itself puts into every namespace.
_GIVEN = frozenset(
    {
        ("", "configmaps", "kube-root-ca.crt"),
        ("", "configmaps", "openshift-service-ca.crt"),
        ("", "serviceaccounts", "default"),
    }
)
# Said of other objects, or made of them, and gone with them.
_FLEETING = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "endpoints")})


@dataclass(frozen=True, slots=True)
class KeptObject:
    """Why an object was not deleted; "" if it was, or was not there."""

    why: str = ""
    # Whether it may still go: once nothing of others is in it.
    is_temporary: bool = False


class NotEmpty(Exception):
    """A Namespace or definition that holds objects of ours; they are to go first."""


async def take_back(space: Space, done: Done, ours: Collection[ObjectKey], tree: str) -> KeptObject:
    """Delete the object if the syncer made it, else withdraw what the syncer said in it.

    A Namespace or a definition that holds others' objects, or may hold some, stays for now, with
    our marks: who takes them off keeps it. `ours` are all keys on record. Raises SpaceError
    (Terminating if it goes later), and NotEmpty if something of ours is in it.
    """
    if done.left:
        return KeptObject("it was there before")
    if done.stay:
        return KeptObject(f"{OVERWRITE} is false")
    if not done.uid:
        done = await _found_out(space, done, tree)
    if not done.made or not done.uid:
        await _withdraw(space, done)
        return KeptObject("it was there before" if not done.made else "")
    if done.key.group_resource in _HOLDING:
        shared = done.key.name in BUILT_IN_NAMESPACES
        if not shared and (why := await _content(space, done.key, ours)):
            return KeptObject(f"{KEPT}{why}", is_temporary=True)
        live = await space.get(done.key)
        if shared or (live is not None and not is_ours(live, done.key, tree)):
            await _withdraw(space, done)
            return KeptObject(f"{KEPT}it is others', too")
    try:
        await space.delete(done.key, uid=done.uid)
    except Conflict:
        return KeptObject("it was replaced by another's")
    live = await space.get(done.key)
    if live is not None and live["metadata"].get("uid") == done.uid and terminating(live):
        raise SpaceError("Terminating", terminating(live))
    return KeptObject()


def holders(key: ObjectKey) -> tuple[ObjectKey, ...]:
    """The Namespace and the definition that may go once the object is gone."""
    name = f"{key.resource}.{key.group}"
    found = (ObjectKey(*DEFINITIONS, "", name), ObjectKey(*NAMESPACES, "", key.namespace))
    return found if key.namespace else found[:1]


async def _found_out(space: Space, done: Done, tree: str) -> Done:
    """Of what was only intended: ours is what bears our marks."""
    live = await space.get(done.key)
    if live is None or not is_ours(live, done.key, tree):
        return replace(done, made=live is None)
    made = not is_adopted(live) and not is_shared(live, MANAGER)
    return replace(done, uid=str(live["metadata"].get("uid", "")), made=made)


async def _withdraw(space: Space, done: Done) -> None:
    live = await space.get(done.key)
    if live is None or (done.uid and live["metadata"].get("uid") != done.uid):
        return
    metadata = {"name": done.key.name, "uid": live["metadata"]["uid"]}
    if done.key.namespace:
        metadata["namespace"] = done.key.namespace
    empty: Object = {name: live[name] for name in ("apiVersion", "kind")} | {"metadata": metadata}
    try:
        await space.apply(empty, MANAGER)
    except Conflict:
        # Another is there now.
        return
    except SpaceError as error:
        # What cannot be without our fields keeps them.
        if error.reason not in (NOT_FOUND, "Invalid"):
            raise


async def _content(space: Space, key: ObjectKey, ours: Collection[ObjectKey]) -> str:
    """What of others is or may be in a Namespace, or of a defined kind; "" if nothing is."""
    hidden: list[tuple[str, str]] = []
    inside = (
        each_kind(space, hidden, namespace=key.name)
        if key.group_resource == NAMESPACES
        else _defined(space, hidden, key.name)
    )
    foreign: list[ObjectKey] = []
    async with aclosing(inside) as some:
        async for objects in some:
            there = [other for other, obj in objects.items() if not _comes_by_itself(obj)]
            if any(other in ours for other in there):
                raise NotEmpty(f"{key} holds objects that are to be removed first")
            foreign += [other for other in there if not _given(other)]
            if len(foreign) >= NAMED_MAX:
                break
    if foreign:
        return f"not empty: {', '.join(map(str, foreign[:NAMED_MAX]))}"
    unseen = some_of([kind[1] for kind in hidden if kind not in _FLEETING], NAMED_MAX)
    return f"{unseen} cannot be listed there: {_MAY_LIST}" if unseen else ""


async def _defined(
    space: Space, hidden: list[tuple[str, str]], name: str
) -> AsyncGenerator[Mapping[ObjectKey, Object], None]:
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


def _comes_by_itself(obj: Object) -> bool:
    """Dependents go with their owner, and what is being deleted is as good as gone."""
    metadata = obj["metadata"]
    return bool(metadata.get("ownerReferences") or metadata.get("deletionTimestamp"))


def _given(key: ObjectKey) -> bool:
    kind = key.group_resource
    return kind in _FLEETING or (*kind, key.name) in _GIVEN
