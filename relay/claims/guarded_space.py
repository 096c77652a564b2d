"""Spaces in which nothing is done without a claim on them: each call is checked first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from relay.claims.centre_lease import CentreLease
from relay.claims.edge_claim import EdgeClaim
from relay.space_errors import UNAVAILABLE, AnotherSpace, SpaceError
from relay.space_port import FinalizingSpace, Interests, Space, Tell
from relay.waiting import work_group
from relay.wrapped_space import WrappedSpace
from schemas.objects.objects import ObjectKey

T = TypeVar("T")

GRACE_SECONDS = 4.0
"""How long after its lease ended a write may still be answered: less than others wait longer."""


class ClaimedSpace(WrappedSpace[Space]):
    """A space for an edge: a cluster of another edge is not even read."""

    def __init__(self, space: Space, claim: EdgeClaim) -> None:
        super().__init__(space)
        self._claim = claim

    async def follow(self, interests: Interests, tell: Tell) -> None:
        """As Space.follow; raises AnotherSpace, too, without the claim, and as soon as it goes."""
        claim = self._claim
        if claim.held:
            async with work_group() as group:
                following = group.create_task(self._space.follow(interests, tell))
                await self._lost()
                following.cancel()
        raise AnotherSpace(claim.reason, claim.trouble)

    async def _reading(self, call: Coroutine[Any, Any, T]) -> T:
        if not self._claim.held:
            call.close()
            raise SpaceError(self._claim.reason, self._claim.trouble)
        return await call

    async def _writing(self, call: Coroutine[Any, Any, T]) -> T:
        return await self._reading(call)

    async def _lost(self) -> None:
        while self._claim.held:
            await self._claim.changed()


class LeasedSpace(WrappedSpace[FinalizingSpace]):
    """A space for a centre: without the lease it is not followed or written.

    A write ends with the lease: what is not answered by then counts as refused.
    """

    def __init__(self, space: FinalizingSpace, lease: CentreLease) -> None:
        super().__init__(space)
        self._lease = lease

    async def follow(self, interests: Interests, tell: Tell) -> None:
        """As Space.follow; while the lease is another's it waits, and lists again after that."""
        lease = self._lease
        while True:
            while lease.trouble:
                await lease.changed()
            async with work_group() as group:
                following = group.create_task(self._space.follow(interests, tell))
                while not lease.is_anothers:
                    await lease.changed()
                following.cancel()

    async def release(self, key: ObjectKey, finalizer: str, uid: str) -> None:
        await self._writing(self._space.release(key, finalizer, uid))

    async def _writing(self, call: Coroutine[Any, Any, T]) -> T:
        try:
            self._lease.check()
        except SpaceError:
            call.close()
            raise
        try:
            async with asyncio.timeout(self._lease.seconds_left + GRACE_SECONDS):
                return await call
        except TimeoutError as error:
            said = "the lease ended before it answered: whether it was written is not known"
            raise SpaceError(UNAVAILABLE, said) from error
