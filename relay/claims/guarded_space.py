"""Spaces in which nothing is done without a claim on them: each call is checked first."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine
from typing import Protocol, TypeVar, runtime_checkable

from relay.claims.centre_lease import CentreLease
from relay.claims.edge_claim import EdgeClaim
from relay.ports import (
    UNAVAILABLE,
    AnotherSpace,
    Interests,
    Kind,
    Labels,
    Listing,
    Object,
    Space,
    SpaceError,
    Tell,
    first_of,
)
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector

T = TypeVar("T")

GRACE_SECONDS = 4.0
"""How long after its lease ended a write may still be answered: less than others wait longer."""


class ClaimedSpace:
    """Implements relay.ports.Space for an edge: a cluster of another edge is not even read."""

    def __init__(self, space: Space, claim: EdgeClaim) -> None:
        self._space = space
        self._claim = claim

    async def identity(self) -> str:
        return await self._space.identity()

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        self._check()
        return await self._space.kinds(complete=complete)

    async def follow(self, interests: Interests, tell: Tell) -> None:
        """As Space.follow; raises AnotherSpace, too, without the claim, and as soon as it goes."""
        claim = self._claim
        if claim.held:
            try:
                async with asyncio.TaskGroup() as group:
                    following = group.create_task(self._space.follow(interests, tell))
                    await self._lost()
                    following.cancel()
            except BaseExceptionGroup as group_of_errors:
                raise first_of(group_of_errors) from None
        raise AnotherSpace(claim.reason, claim.trouble)

    async def revision(self) -> str:
        self._check()
        return await self._space.revision()

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        self._check()
        return await self._space.list(group, resource, namespace=namespace, selector=selector)

    async def get(self, key: ObjectKey) -> Object | None:
        self._check()
        return await self._space.get(key)

    async def apply(
        self,
        obj: Object,
        manager: str,
        *,
        create_only: bool = False,
        force: bool = True,
        dry_run: bool = False,
    ) -> Object:
        self._check()
        return await self._space.apply(
            obj, manager, create_only=create_only, force=force, dry_run=dry_run
        )

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        self._check()
        return await self._space.set_status(key, status)

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        self._check()
        return await self._space.replace(obj, manager, dry_run=dry_run)

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        self._check()
        await self._space.disown(key, uid, managers, marks)

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        self._check()
        return await self._space.set_labels(key, labels, manager)

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        self._check()
        return await self._space.delete(key, uid)

    async def close(self) -> None:
        await self._space.close()

    def _check(self) -> None:
        if not self._claim.held:
            raise SpaceError(self._claim.reason, self._claim.trouble)

    async def _lost(self) -> None:
        while self._claim.held:
            await self._claim.changed()


@runtime_checkable
class FinalizedSpace(Space, Protocol):
    """A space whose objects may have finalizers."""

    async def release(self, key: ObjectKey, finalizer: str, uid: str) -> None: ...


class LeasedSpace:
    """Implements relay.ports.Space for a centre: without the lease it is not followed or written.

    A write ends with the lease: what is not answered by then counts as refused.
    """

    def __init__(self, space: FinalizedSpace, lease: CentreLease) -> None:
        self._space = space
        self._lease = lease

    async def identity(self) -> str:
        return await self._space.identity()

    async def kinds(self, *, complete: bool = False) -> tuple[Kind, ...]:
        return await self._space.kinds(complete=complete)

    async def follow(self, interests: Interests, tell: Tell) -> None:
        """As Space.follow; while the lease is another's it waits, and lists again after that."""
        lease = self._lease
        while True:
            while lease.trouble:
                await lease.changed()
            try:
                async with asyncio.TaskGroup() as group:
                    following = group.create_task(self._space.follow(interests, tell))
                    while not lease.is_anothers:
                        await lease.changed()
                    following.cancel()
            except BaseExceptionGroup as errors:
                raise first_of(errors) from None

    async def revision(self) -> str:
        return await self._space.revision()

    async def list(
        self,
        group: str = "",
        resource: str = "",
        *,
        namespace: str = "",
        selector: LabelSelector | None = None,
    ) -> Listing:
        return await self._space.list(group, resource, namespace=namespace, selector=selector)

    async def get(self, key: ObjectKey) -> Object | None:
        return await self._space.get(key)

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
        return await self._written(wish)

    async def set_status(self, key: ObjectKey, status: Object) -> Object:
        return await self._written(self._space.set_status(key, status))

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        await self._written(self._space.disown(key, uid, managers, marks))

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        return await self._written(self._space.set_labels(key, labels, manager))

    async def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        return await self._written(self._space.replace(obj, manager, dry_run=dry_run))

    async def delete(self, key: ObjectKey, uid: str = "") -> bool:
        return await self._written(self._space.delete(key, uid))

    async def release(self, key: ObjectKey, finalizer: str, uid: str) -> None:
        await self._written(self._space.release(key, finalizer, uid))

    async def close(self) -> None:
        await self._space.close()

    async def _written(self, work: Coroutine[None, None, T]) -> T:
        try:
            self._lease.check()
        except SpaceError:
            work.close()
            raise
        try:
            async with asyncio.timeout(self._lease.seconds_left + GRACE_SECONDS):
                return await work
        except TimeoutError as error:
            said = "the lease ended before it answered: whether it was written is not known"
            raise SpaceError(UNAVAILABLE, said) from error
