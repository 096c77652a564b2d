"""Takes back what a syncer applied, and nothing else; all that is uncertain stays."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass

from relay.core.events import KEPT, LEFT_IN_PLACE
from relay.objects.policies import on_removal
from relay.space_errors import NOT_FOUND, Conflict, reason_suppressed
from relay.space_port import Object, Space
from relay.syncer.going import check_gone
from relay.syncer.object_marks import MANAGER, MARKS, POLICY_MANAGER, is_adopted, is_ours
from relay.syncer.owned_objects import each_kind, instances
from relay.syncer.ownership import is_shared
from schemas.objects.annotations import DELETE, ON_REMOVAL, ORPHAN, OVERWRITE
from schemas.objects.objects import ALWAYS_THERE, DEFINITIONS, NAMESPACES, ObjectKey
from schemas.objects.source_objects import uid_of
from schemas.reports.reports import Done
from schemas.values.wire import replace
from schemas.values.wording import some_of

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
    # If it is kept until it is wanted again: its record from now on.
    kept: Done | None = None


class NotEmpty(Exception):
    """A Namespace or definition that holds objects of ours; they are to go first."""


async def take_back(
    space: Space, done: Done, records: Mapping[ObjectKey, Done], tree: str, said: str = ""
) -> KeptObject:
    """Delete the object if the syncer made it, else withdraw what the syncer said in it.

    It is kept or orphaned instead if that is `said` on it, or its record or kind says so. A
    Namespace or a definition that holds what others made or what is kept, or may hold some, stays
    for now, with our marks: who takes them off keeps it. Raises SpaceError (Going if it goes
    later), and NotEmpty if something is in it that is to go first.
    """
    if done.left:
        return KeptObject("it was there before")
    words = (said, done.on_removal, done.asked)
    if done.stay and not any(words):
        return KeptObject(f"{OVERWRITE} is false")
    if not done.uid:
        done = await _found_out(space, done, tree)
    if done.uid and (done.made or any(words)):
        word = on_removal(done.key, *words)
        if word != DELETE:
            return await _leave(space, done, word)
    if not done.made or not done.uid:
        await _withdraw(space, done)
        return KeptObject("it was there before" if not done.made else "")
    if done.key.group_resource in _HOLDING and (held := await _holds(space, done, records, tree)):
        return held
    try:
        await space.delete(done.key, uid=done.uid)
    except Conflict:
        return KeptObject("it was replaced by another's")
    await check_gone(space, done.key, done.uid)
    return KeptObject()


def kept_reason(done: Done) -> str:
    """Why an object is kept that is wanted no more, and what takes it away."""
    if done.on_removal or done.asked:
        return f"{LEFT_IN_PLACE}{KEPT}{ON_REMOVAL}: {done.on_removal or done.asked}"
    return f"{LEFT_IN_PLACE}{KEPT}it holds data; {ON_REMOVAL}: {DELETE} would take it away"


def is_let_go(done: Done, obj: Object | None, tree: str) -> bool:
    """Whether an object that is kept is not there as it was left; None: it is gone."""
    if not done.kept:
        return False
    if obj is None or obj["metadata"].get("uid") != done.uid:
        return True
    return not is_ours(obj, done.key, tree)


async def _leave(space: Space, done: Done, word: str) -> KeptObject:
    """Keep what the record is of, or make it nobody's; whatever else the word is, it is kept."""
    live = await space.get(done.key)
    if live is None:
        return KeptObject()
    if live["metadata"].get("uid") != done.uid:
        return KeptObject("it was replaced by another's")
    if word != ORPHAN:
        return KeptObject(kept=replace(done, kept=True))
    with reason_suppressed(NOT_FOUND):
        await space.disown(done.key, done.uid, (MANAGER, POLICY_MANAGER), MARKS)
        return KeptObject(f"{KEPT}{ON_REMOVAL}: {ORPHAN}; it is nobody's now")
    return KeptObject()


async def _holds(
    space: Space, done: Done, records: Mapping[ObjectKey, Done], tree: str
) -> KeptObject | None:
    """Why a Namespace or a definition stays; None if it may go."""
    shared = done.key.name in ALWAYS_THERE
    if not shared and (why := await _content(space, done.key, records)):
        return KeptObject(f"{KEPT}{why}", is_temporary=True)
    live = await space.get(done.key)
    if shared or (live is not None and not is_ours(live, done.key, tree)):
        await _withdraw(space, done)
        return KeptObject(f"{KEPT}it is others', too")
    return None


def holders(key: ObjectKey) -> tuple[ObjectKey, ...]:
    """The Namespace and the definition that may go once the object is gone."""
    name = f"{key.resource}.{key.group}"
    found = (ObjectKey(*DEFINITIONS, "", name), ObjectKey(*NAMESPACES, "", key.namespace))
    return found if key.namespace else found[:1]


async def _found_out(space: Space, done: Done, tree: str) -> Done:
    """What became of an intended object: ours is what bears our marks."""
    live = await space.get(done.key)
    if live is None or not is_ours(live, done.key, tree):
        return replace(done, made=live is None)
    made = not is_adopted(live) and not is_shared(live, MANAGER)
    return replace(done, uid=uid_of(live), made=made)


async def _withdraw(space: Space, done: Done) -> None:
    live = await space.get(done.key)
    if live is None or (done.uid and live["metadata"].get("uid") != done.uid):
        return
    metadata = {"name": done.key.name, "uid": live["metadata"]["uid"]}
    if done.key.namespace:
        metadata["namespace"] = done.key.namespace
    empty: Object = {name: live[name] for name in ("apiVersion", "kind")} | {"metadata": metadata}
    # Another may be there now; what cannot be without our fields keeps them.
    with suppress(Conflict), reason_suppressed(NOT_FOUND, "Invalid"):
        await space.apply(empty, MANAGER)


async def _content(space: Space, key: ObjectKey, records: Mapping[ObjectKey, Done]) -> str:
    """What is or may be in a Namespace, or of a defined kind, and stays; "" if nothing does."""
    hidden: list[tuple[str, str]] = []
    inside = (
        each_kind(space, hidden, namespace=key.name)
        if key.group_resource == NAMESPACES
        else instances(space, hidden, key.name)
    )
    foreign: list[ObjectKey] = []
    async with aclosing(inside) as some:
        async for objects in some:
            there = [other for other, obj in objects.items() if not _comes_by_itself(obj)]
            if any(other in records and not records[other].kept for other in there):
                raise NotEmpty(f"{key} holds objects that are to be removed first")
            foreign += [other for other in there if not _given(other)]
            if len(foreign) >= NAMED_MAX:
                break
    if foreign:
        return f"not empty: {', '.join(_named(each, records) for each in foreign[:NAMED_MAX])}"
    unseen = some_of([kind[1] for kind in hidden if kind not in _FLEETING], NAMED_MAX)
    return f"{unseen} cannot be listed there: {_MAY_LIST}" if unseen else ""


def _named(key: ObjectKey, records: Mapping[ObjectKey, Done]) -> str:
    return f"{key}, which is kept" if key in records else str(key)


def _comes_by_itself(obj: Object) -> bool:
    """Dependents go with their owner, and what is being deleted is as good as gone."""
    metadata = obj["metadata"]
    return bool(metadata.get("ownerReferences") or metadata.get("deletionTimestamp"))


def _given(key: ObjectKey) -> bool:
    kind = key.group_resource
    return kind in _FLEETING or (*kind, key.name) in _GIVEN
