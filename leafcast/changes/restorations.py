"""What was aborted or undone written back at the centre: judged whole, then object by object."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from leafcast.ask.session import USER_MANAGER
from leafcast.changes.batches import Batch
from leafcast.changes.space_pair import SpacePair
from relay.space_errors import SpaceError
from relay.space_port import Object
from relay.waiting import some_at_once
from schemas.objects.objects import CRD_GROUP, ObjectKey

ROLLOUT_MANAGER = "leafcast-rollout"
"""Whose the annotation is that says what a person asks of a Rollout, and what it takes back."""
_LEFT = frozenset(
    {
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        (CRD_GROUP, "customresourcedefinitions"),
    }
)
"""What is not deleted though a revision added it: with it goes what nobody asked about."""


@dataclass(frozen=True, slots=True)
class RestoredObject:
    """What is to be written of one object; None is to delete it."""

    key: ObjectKey
    object: Mapping[str, Any] | None
    uid: str

    @property
    def fate(self) -> str:
        """`restored`, `deleted`, or `left`: to be deleted, of a kind with which more would go."""
        if self.object is not None:
            return "restored"
        return "left" if self.key.group_resource in _LEFT else "deleted"


async def refusal_of(
    spaces: SpacePair, restored: Sequence[RestoredObject]
) -> tuple[ObjectKey, SpaceError] | None:
    """The first of them that the space would not write, and why; None if it would write all."""

    async def tried(each: RestoredObject) -> SpaceError | None:
        try:
            await _written(spaces, each, dry_run=True)
        except SpaceError as error:
            return error
        return None

    errors = await some_at_once(restored, tried)
    refused = (
        (it.key, error) for it, error in zip(restored, errors, strict=True) if error is not None
    )
    return next(refused, None)


def batch_of(spaces: SpacePair, restored: Sequence[RestoredObject], size: int) -> Batch:
    """The batch that writes them, one after the other."""
    return Batch([[partial(_written, spaces, each, dry_run=False)] for each in restored], size)


async def _written(spaces: SpacePair, each: RestoredObject, *, dry_run: bool) -> Object | None:
    """Write one object, unless somebody changed it meanwhile; raises SpaceError."""
    if each.object is None:
        if not dry_run and each.fate == "deleted":
            await spaces.workloads.delete(each.key, each.uid)
        return None
    obj = dict(each.object)
    write: Awaitable[Object]
    if obj["metadata"].get("resourceVersion"):
        # As a whole: of what there is that very version, whoever said its fields.
        write = spaces.workloads.replace(obj, ROLLOUT_MANAGER, dry_run=dry_run)
    else:
        write = spaces.workloads.apply(obj, USER_MANAGER, dry_run=dry_run)
    return await write
