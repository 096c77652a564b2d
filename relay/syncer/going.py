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


class GoingObjects:
    """The uid of each object that was deleted for us and goes later."""

    def __init__(self) -> None:
        self._uids: dict[ObjectKey, str] = {}

    def failed(self, key: ObjectKey, error: BaseException) -> None:
        """Take in why an action on an object failed."""
        if isinstance(error, Going):
            self._uids[key] = error.uid

    def has(self, key: ObjectKey, uid: str) -> bool:
        """Whether the object of this uid goes for us."""
        return self._uids.get(key) == uid

    def forget(self, key: ObjectKey) -> None:
        """There is another one now, or none is looked after."""
        self._uids.pop(key, None)
