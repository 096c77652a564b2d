"""What a syncer deleted itself and its cluster still holds: that it goes then is no drift."""

from __future__ import annotations

from relay.space_errors import SpaceError
from relay.space_port import Space
from relay.syncer.lingering import ending_text
from schemas.objects.objects import ObjectKey


class Going(SpaceError):
    """An object that was deleted for us goes once its cluster is done with it."""

    def __init__(self, uid: str, message: str) -> None:
        super().__init__("Terminating", message)
        self.uid = uid


async def check_gone(space: Space, key: ObjectKey, uid: str) -> None:
    """Raise Going if the object of this uid, which was deleted for us, is still there."""
    live = await space.get(key)
    if live is None or live["metadata"].get("uid") != uid:
        return
    if said := await ending_text(space, key, live):
        raise Going(uid, said)
