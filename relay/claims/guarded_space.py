"""A space in which nothing is done without a claim on it: each call is checked first."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from relay.claims.edge_claim import EdgeClaim
from relay.ports import (
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
from schemas.objects import ObjectKey
from schemas.selectors import LabelSelector


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

    async def set_labels(self, key: ObjectKey, labels: Labels, manager: str) -> Object:
        self._check()
        return await self._space.set_labels(key, labels, manager)

    async def disown(
        self, key: ObjectKey, uid: str, managers: Collection[str], marks: Collection[str]
    ) -> None:
        self._check()
        await self._space.disown(key, uid, managers, marks)

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
