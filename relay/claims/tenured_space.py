"""A space in which the active one of several members of a node writes, and nothing late lands.

A server of Kubernetes has no fence over many objects. So each write is held to its own object as it
was read, and the tenure is confirmed between the two: who was stopped after that, for however long,
finds another version there if the member that came after it wrote, and its write is refused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol, TypeVar

from relay.claims.centre_lease import Confirm
from relay.claims.leases import LeaseStore, SharedSpace
from relay.space_errors import NOT_FOUND, Conflict, FieldConflict, SpaceError
from relay.space_port import AsRead, FinalizingSpace, Labels, Object
from relay.wrapped_space import WrappedSpace
from schemas.objects.objects import ObjectKey

T = TypeVar("T")

ATTEMPTS_MAX = 5
"""How often a write is made anew for what others wrote between its reading and its writing."""
_CONFLICT = "Conflict"
_NONE = AsRead()


class VersionedSpace(FinalizingSpace, SharedSpace, Protocol):
    """A shared space whose writes can be held to an object as it was read; then Conflict, too."""

    async def key_of(self, obj: Object) -> ObjectKey:
        """Where the object of a wish lies; raises SpaceError if its kind is not served."""
        ...

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
        read: AsRead | None = None,
    ) -> Object: ...

    async def set_status(
        self, key: ObjectKey, status: Object, *, read: AsRead | None = None
    ) -> Object: ...

    async def disown(
        self,
        key: ObjectKey,
        uid: str,
        managers: Collection[str],
        marks: Collection[str],
        *,
        read: AsRead | None = None,
    ) -> None: ...

    async def set_labels(
        self, key: ObjectKey, labels: Labels, manager: str, *, read: AsRead | None = None
    ) -> Object: ...

    async def delete(
        self, key: ObjectKey, uid: str = "", *, read: AsRead | None = None
    ) -> bool: ...

    async def release(
        self, key: ObjectKey, finalizer: str, uid: str, *, read: AsRead | None = None
    ) -> None: ...


class TenuredSpace(WrappedSpace[VersionedSpace]):
    """Implements Space and SharedSpace for one tenure; `confirm` raises SpaceError after it."""

    def __init__(self, space: VersionedSpace, confirm: Confirm) -> None:
        super().__init__(space)
        self._confirm = confirm

    @property
    def leases(self) -> LeaseStore:
        return self._space.leases

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        space = self._space
        if dry_run:
            return await space.apply(
                obj, manager, create_only=create_only, force=force, dry_run=True
            )
        if create_only:
            # It is made only where nothing lies.
            await self._confirm()
            return await space.apply(obj, manager, create_only=True, force=force)

        async def write(read: AsRead) -> Object:
            return await space.apply(obj, manager, force=force, read=read)

        return await self._held(await space.key_of(obj), write, as_read(obj))

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        async def write(read: AsRead) -> Object:
            return await self._space.set_status(key, status, read=there(key, read))

        return await self._held(key, write)

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        async def write(read: AsRead) -> None:
            await self._space.disown(key, uid, managers, marks, read=there(key, read))

        await self._held(key, write, AsRead(uid))

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        async def write(read: AsRead) -> Object:
            return await self._space.set_labels(key, labels, manager, read=there(key, read))

        return await self._held(key, write)

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        # It names the version that it is made for.
        if not dry_run:
            await self._confirm()
        return await self._space.replace(obj, manager, dry_run=dry_run)

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        async def write(read: AsRead) -> bool:
            # What is not there is not deleted, and what is made there meanwhile is not, either.
            return bool(read.uid) and await self._space.delete(key, uid, read=read)

        return await self._held(key, write, AsRead(uid), may_be_gone=True)

    async def release(self, key: ObjectKey, finalizer: str, uid: str) -> None:
        async def write(read: AsRead) -> None:
            if read.uid:
                await self._space.release(key, finalizer, uid, read=read)

        await self._held(key, write, AsRead(uid), may_be_gone=True)

    async def _held(
        self,
        key: ObjectKey,
        write: Callable[[AsRead], Awaitable[T]],
        named: AsRead = _NONE,
        *,
        may_be_gone: bool = False,
    ) -> T:
        """Write for the object as it is; raises Conflict if it is not the one that was named."""
        attempts = 1
        while True:
            read = as_read(await self._space.get(key))
            if not (may_be_gone and not read.uid):
                raise_if_another(key, named, read)
            await self._confirm()
            try:
                return await write(read)
            except FieldConflict:
                raise
            except Conflict:
                if attempts == ATTEMPTS_MAX:
                    raise
            attempts += 1


def as_read(found: Object | None) -> AsRead:
    """What a write is held to by an object, or by there being none; of a wish what that names."""
    metadata = found["metadata"] if found is not None else {}
    return AsRead(str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or ""))


def raise_if_another(key: ObjectKey, named: AsRead, read: AsRead) -> None:
    """Raises Conflict unless what was read is what was named."""
    for word, wanted, found in (
        ("uid", named.uid, read.uid),
        ("version", named.version, read.version),
    ):
        if wanted not in ("", found):
            now = f"its {word} is {found} now" if found else "it is gone"
            raise Conflict(
                _CONFLICT, f"{key}: written for {word} {wanted}, and {now}: read it anew"
            )


def there(key: ObjectKey, read: AsRead) -> AsRead:
    """What was read, if there was something; raises SpaceError (NotFound)."""
    if not read.uid:
        raise SpaceError(NOT_FOUND, f"{key}: there is no such object")
    return read
