"""The verbs about what was aborted or undone: which objects differ, and what they were before."""

from __future__ import annotations

from typing import Any

from controllers.restoring import NotRestorable, read_restoration
from leafcast.ask.api import Api, ApiError
from leafcast.centre.centre import Centre, running
from leafcast.daemon.verbs.rollout_ends import settle
from schemas.objects.objects import ObjectKey

OBJECTS_MAX = 2_000
"""So many objects are named at most; a command restores no more at a time."""

Json = dict[str, Any]


def register_rejected(api: Api, centre: Centre) -> None:
    """Answer the verbs about this tree."""

    async def rejected(placement: str) -> Json:
        """What of a placement is rejected: `{reason, revision, objects, keys}`; {} if nothing."""
        controllers = running(centre.controllers)
        await settle(controllers)
        rejections = controllers.translator.placements.rejections
        if rejections.is_unreadable(placement):
            remedy = "change its objects; leafcast rollout retry lets out what the centre says"
            raise ApiError("Lost", "what was taken back cannot be read any more", remedy)
        said = rejections.told(placement)
        if said is None:
            return {}
        keys = rejections.objects.get(placement, ())
        named = [[key.group, key.resource, key.namespace, key.name] for key in keys[:OBJECTS_MAX]]
        form = said.to_mapping()
        return {"reason": form["reason"], "revision": said.revision, "objects": len(keys)} | {
            "keys": named
        }

    async def restored(placement: str, key: list[str]) -> Json:
        """What to write of a rejected object: `{object, uid}`; no object is to delete it.

        Raises ApiError where its former content cannot be read, or it is another one now.
        """
        controllers = running(centre.controllers)
        try:
            found = await read_restoration(controllers, placement, ObjectKey(*key))
        except NotRestorable as error:
            raise ApiError("NotRestorable", error.message, error.remedy) from error
        return {"object": found.object, "uid": found.uid}

    api.register("rejected", rejected)
    api.register("rejected-restore", restored)
