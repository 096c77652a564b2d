"""The verb that judges how what was aborted or undone is written back at the centre."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from controllers.centre import Controllers
from controllers.restoring import NotRestorable, read_restoration
from leafcast.ask.api import Api, ApiError
from leafcast.ask.asked_space import refusal_form
from leafcast.changes import restorations
from leafcast.changes.forms import RESTORE, key_words
from leafcast.changes.restorations import RestoredObject
from leafcast.changes.space_pair import SpacePair
from leafcast.daemon.verbs.changes import ChangeVerbs
from leafcast.daemon.verbs.rollout_ends import settle
from schemas.objects.objects import ObjectKey

OBJECTS_MAX = 2_000
"""So many objects a command restores at a time."""

Json = dict[str, Any]
RestoredOf = Callable[[str], Awaitable[Sequence[RestoredObject]]]
"""What is to be written of a placement; raises ApiError, BusBroken."""


def register_restoring(
    api: Api, restored_of: RestoredOf, spaces: SpacePair, changes: ChangeVerbs
) -> None:
    """Answer the verb about what is to be written of a placement."""

    async def restore(placement: Any) -> Json:
        """Judge what of a placement is rejected: `{batch, objects: [[key, fate]]}`.

        `fate` is restored, deleted or left; `batch` is "" if nothing is rejected. An object that
        the space would not write is told as `{key, refused}`. Raises ApiError where its former
        content cannot be read, or it is another one now.
        """
        if not isinstance(placement, str):
            raise ApiError("Invalid", f"{placement!r} names no placement", "say its name")
        async with changes.judging():
            restored = await restored_of(placement)
            refusal = await restorations.refusal_of(spaces, restored)
            if refusal is not None:
                key, error = refusal
                return {"key": key_words(key), "refused": refusal_form(error)}
            size = sum(len(str(each.object)) for each in restored)
            batch = changes.keep(restorations.batch_of(spaces, restored, size)) if restored else ""
            objects = [[key_words(each.key), each.fate] for each in restored]
            return {"batch": batch, "objects": objects}

    api.register(RESTORE, restore)


async def restored_objects(controllers: Controllers, placement: str) -> list[RestoredObject]:
    """What is to be written of a placement that rejects some; raises ApiError."""
    await settle(controllers)
    return [
        await _restored(controllers, placement, key) for key in _rejected(controllers, placement)
    ]


def _rejected(controllers: Controllers, placement: str) -> tuple[ObjectKey, ...]:
    """What of a placement is rejected; raises ApiError."""
    rejections = controllers.translator.placements.rejections
    if rejections.is_unreadable(placement):
        remedy = "change its objects; leafcast rollout retry lets out what the centre says"
        raise ApiError("Lost", "what was taken back cannot be read any more", remedy)
    if rejections.told(placement) is None:
        return ()
    return tuple(rejections.objects.get(placement, ()))[:OBJECTS_MAX]


async def _restored(controllers: Controllers, placement: str, key: ObjectKey) -> RestoredObject:
    try:
        restoration = await read_restoration(controllers, placement, key)
    except NotRestorable as error:
        raise ApiError("NotRestorable", error.message, error.remedy) from error
    return RestoredObject(key, restoration.object, restoration.uid)
