"""A space around another one: it passes on what a class of its own does not do otherwise."""

from __future__ import annotations

from collections.abc import Collection, Coroutine
from typing import Any, Generic, TypeVar

from relay.space_port import Interests, Kind, Labels, Listing, Object, Space, Tell
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector

S = TypeVar("S", bound=Space)
T = TypeVar("T")


class WrappedSpace(Generic[S]):
    """Implements Space; each call but `identity`, `follow` and `close` goes by a hook.

    A hook that makes no call of what it was given closes it.
    """

    def __init__(self, space: S) -> None:
        self._space = space

    async def _reading(self, call: Coroutine[Any, Any, T]) -> T:
        return await call

    async def _writing(self, call: Coroutine[Any, Any, T]) -> T:
        return await call

    async def identity(self) -> str:
        return await self._space.identity()

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        return await self._reading(self._space.kinds(complete=complete))

    async def follow(self, interests: Interests, tell: Tell) -> None:
        await self._space.follow(interests, tell)

    async def revision(self) -> str:
        return await self._reading(self._space.revision())

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        listing = self._space.list(group, resource, namespace=namespace, selector=selector)
        return await self._reading(listing)

    async def get(self, key: ObjectKey) -> Object | None:
        return await self._reading(self._space.get(key))

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        wish = self._space.apply(
            obj, manager, create_only=create_only, force=force, dry_run=dry_run
        )
        return await self._writing(wish)

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        return await self._writing(self._space.set_status(key, status))

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        await self._writing(self._space.disown(key, uid, managers, marks))

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        return await self._writing(self._space.set_labels(key, labels, manager))

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        return await self._writing(self._space.replace(obj, manager, dry_run=dry_run))

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        return await self._writing(self._space.delete(key, uid))

    async def close(self) -> None:
        await self._space.close()
