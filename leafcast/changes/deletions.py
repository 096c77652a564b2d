"""A deletion judged: what goes with what is named, in which order, and what speaks against it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from leafcast.ask.resource_names import ResourceKinds
from leafcast.changes.batches import Batch
from leafcast.changes.space_pair import SpacePair
from leafcast.changes.targets import ObjectToDelete, rollouts_of
from leafcast.changes.writing import in_rounds
from relay.space_errors import NOT_FOUND, Conflict, SpaceError
from relay.space_port import Object, Space
from relay.waiting import some_at_once
from schemas.objects.objects import CRD_GROUP, DEFINITIONS, NAMESPACES, ObjectKey
from schemas.records.placements import placement_at
from schemas.values.wording import namespace_first

AT_ONCE = 16
"""So many deletions are under way at a time."""
ROUND_MAX = 4 * AT_ONCE

Form = dict[str, Any]
AskKeptBack = Callable[[list[str]], Awaitable[Sequence[Form]]]
"""What these Rollouts keep back of their placements."""


async def with_contents(spaces: SpacePair, named: Mapping[ObjectKey, str]) -> list[ObjectToDelete]:
    """What goes if these objects do, by key and uid, in the order in which it does.

    What a Namespace holds, or a definition defines, goes before it. What is not there is left out.
    Raises SpaceError; its reason is Conflict if a later namesake has another uid than was named.
    """
    definitions = (await spaces.workloads.list(CRD_GROUP, "customresourcedefinitions")).objects

    async def read(key: ObjectKey) -> Object | None:
        return await spaces.space_for(key).get(key)

    live = [obj for obj in await some_at_once(list(named), read) if obj is not None]
    kinds = ResourceKinds([*definitions, *live])
    targets = sorted(
        (ObjectToDelete.of(kinds.of(obj), obj) for obj in live), key=lambda target: target.rank
    )
    for target in targets:
        _check_uid(target, named[target.key])
    uids = {target.uid for target in targets}
    inside: list[ObjectToDelete] = []
    for target in targets:
        contents = await _contents(spaces.workloads, target)
        fresh = [obj for obj in contents if obj["metadata"]["uid"] not in uids]
        kinds = ResourceKinds([*definitions, *fresh])
        inside += [ObjectToDelete.of(kinds.of(obj), obj) for obj in fresh]
        uids |= {obj["metadata"]["uid"] for obj in fresh}
    return [*sorted(inside, key=lambda it: it.rank), *targets]


def _check_uid(target: ObjectToDelete, uid: str) -> None:
    """Refuse a later namesake before anything that it holds goes; raises SpaceError."""
    if uid and uid != target.uid:
        now = f"its uid is {target.uid}, not {uid}: it is another object"
        raise Conflict("Conflict", f"{namespace_first(str(target.key))}: {now}")


async def _contents(space: Space, target: ObjectToDelete) -> Sequence[Object]:
    """What goes with an object; of a kind that is not served there is nothing."""
    if target.kind.group_resource == NAMESPACES:
        return (await space.list(namespace=target.key.name)).objects
    if target.kind.group_resource != DEFINITIONS:
        return ()
    resource, _, group = target.key.name.partition(".")
    try:
        return (await space.list(group, resource)).objects
    except SpaceError as error:
        if error.reason != NOT_FOUND:
            raise
        return ()


async def kept_back(targets: Collection[ObjectToDelete], ask: AskKeptBack) -> Sequence[Form]:
    """What Rollouts among these keep back of placements that stay."""
    rollouts = rollouts_of(targets)
    if not rollouts:
        return ()
    going = {placement_at(target.key) for target in targets}
    return [form for form in await ask(rollouts) if form["placement"] not in going]


def batch_of(spaces: SpacePair, targets: Sequence[ObjectToDelete], size: int) -> Batch:
    """The batch that deletes these."""
    steps = ((it.rank, partial(_delete, spaces, it)) for it in targets)
    return Batch(in_rounds(steps, ROUND_MAX), size, at_once=AT_ONCE)


async def _delete(spaces: SpacePair, target: ObjectToDelete) -> None:
    await spaces.space_for(target.key).delete(target.key, target.uid)
