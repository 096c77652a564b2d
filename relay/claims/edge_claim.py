"""An edge's claim on its cluster: read before anything is done there, made, kept, and given back.

Level-triggered: what the edge is by signed inventory, what it noted, and the lease are compared
again and again. What cannot be read is not claimed; a claim once held stays held while the cluster
cannot be asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from relay.claims.claim import (
    CLUSTER_CHANGED,
    CLUSTER_TAKEN,
    EdgeIdentity,
    EdgeVerdict,
    cluster_changed,
    cluster_taken,
    judge_edge,
)
from relay.claims.leases import EDGE_LEASE, LEASES_NAMESPACE, Lease, SharedSpace, rfc3339
from relay.ports import Clock
from relay.space_errors import AnotherSpace, Conflict, SpaceError
from relay.waiting import happens

LOOK_SECONDS = 30.0
"""How often a claim that is held is looked at: a person may have had another take over."""
REFUSED_LOOK_SECONDS = 10.0
RETRY_SECONDS = 2.0
PROFILE_SECONDS = 1.0
"""How often it is looked, here alone, whether the edge is still a destination."""
ANSWER_SECONDS_MAX = 20.0
CONFLICTS_MAX = 5
UNCLAIMED = "Unclaimed"
HELD, REFUSED, NONE = "held", "refused", "none"
NOT_YET = "its cluster has not said yet whose it is"
NO_DESTINATION = "it is no destination of the tree, or is not told so yet, and claims no cluster"
RIGHTS = (
    f"it needs get on namespace kube-system, and get, create, update and delete on leases of "
    f"coordination.k8s.io in namespace {LEASES_NAMESPACE}: run `leafcast install --role edge` with "
    "the options of before, and apply what it prints"
)
_REFUSED_BY_RBAC = "Forbidden"


class ClaimStore(Protocol):
    """What the edge's folder says of it."""

    edge: str
    cluster: str

    def keep(self, cluster: str) -> None:
        """Note the cluster that it works on from now on, "" for none; raises OSError."""
        ...


class EdgeClaim:
    """One edge's, over all runs of its relay; `trouble` is "" while the cluster is its own."""

    def __init__(
        self, me: EdgeIdentity, note: ClaimStore, clock: Clock, *, take_over: bool = False
    ) -> None:
        self.reason, self.trouble = UNCLAIMED, NOT_YET
        self.looked = asyncio.Event()
        """Set once the cluster was asked in this run, whatever came of it."""
        self._was_held = False
        self._me = me
        self._note = note
        self._clock = clock
        self._take_over = take_over
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()

    @property
    def held(self) -> bool:
        return not self.trouble

    @property
    def refused(self) -> bool:
        """Whether the cluster is another's, so that only a person can help."""
        return self.reason in (CLUSTER_TAKEN, CLUSTER_CHANGED)

    @property
    def refused_at_start(self) -> str:
        """Why the edge was given a cluster that it may not work on; "" while that is not known."""
        return self.trouble if self.refused and not self._was_held else ""

    @property
    def standing(self) -> dict[str, str]:
        """Whether it is held, and why not, as the edge answers it: `claim`, `unclaimed`."""
        state = HELD if self.held else REFUSED if self.refused else NONE
        return {"claim": state, "unclaimed": self.trouble}

    async def changed(self) -> None:
        """Wait until it is held, or not held any more, other than when this was called."""
        await self._changed.wait()

    def wake(self) -> None:
        """Look whether the edge is still a destination: something may have changed."""
        self._wake.set()

    async def run(self, space: SharedSpace, wanted: Callable[[], bool | None]) -> None:
        """Keep it until cancelled.

        `wanted` says whether the edge is a destination of its tree, or holds objects; None while
        that is not known.
        """
        self.looked.clear()
        self._set(UNCLAIMED, NOT_YET)
        looked_at, wish = float("-inf"), wanted()
        while True:
            now = self._clock.now().seconds
            if now - looked_at >= self._pause or wanted() is not wish:
                looked_at, wish = now, wanted()
                await self.look(space, wish)
            await happens(self._wake, PROFILE_SECONDS)
            self._wake.clear()

    async def look(self, space: SharedSpace, wanted: bool | None) -> None:  # noqa: FBT001 - a wish
        """Compare once, and do what follows."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                await self._look(space, wanted)
        except AnotherSpace as error:
            self._set(CLUSTER_CHANGED, error.message)
        except (SpaceError, TimeoutError, OSError) as error:
            if not self.held:
                self._set(*_why(error))
        self.looked.set()

    @property
    def _pause(self) -> float:
        if self.held:
            return LOOK_SECONDS
        return REFUSED_LOOK_SECONDS if self.refused else RETRY_SECONDS

    async def _look(self, space: SharedSpace, wanted: bool | None) -> None:  # noqa: FBT001
        cluster = await space.identity()
        if not self._take_over and (why := cluster_changed(self._note.cluster, cluster)):
            self._set(CLUSTER_CHANGED, why)
            return
        for _ in range(CONFLICTS_MAX):
            lease = await space.leases.read(EDGE_LEASE)
            verdict = judge_edge(lease, self._me, take_over=self._take_over)
            if lease is not None and verdict is EdgeVerdict.REFUSED:
                self._set(CLUSTER_TAKEN, cluster_taken(lease, cluster, self._me.tree))
                return
            with suppress(Conflict):
                await self._act(space, cluster, lease, verdict, wanted)
                return
        raise SpaceError("Conflict", "others write the claim on its cluster all the time")

    async def _act(
        self,
        space: SharedSpace,
        cluster: str,
        lease: Lease | None,
        verdict: EdgeVerdict,
        wanted: bool | None,  # noqa: FBT001
    ) -> None:
        if wanted is False:
            if lease is not None and self._me.named_by(lease):
                await space.leases.delete(lease)
            if self._note.cluster == cluster:
                self._note.keep("")
        if wanted is False or (wanted is None and self._note.cluster != cluster):
            self._set(UNCLAIMED, NO_DESTINATION)
            return
        if verdict is not EdgeVerdict.KEEP:
            now = rfc3339(self._clock.now().wall_ms)
            mine = Lease(EDGE_LEASE, self._me.path, self._me.notes(), now, now)
            if lease is not None:
                mine = replace(mine, version=lease.version, uid=lease.uid)
                if verdict is EdgeVerdict.RENEW:
                    mine = replace(mine, acquired=lease.acquired)
            await space.leases.write(mine)
        if self._note.cluster != cluster:
            self._note.keep(cluster)
        self._take_over, self._was_held = False, True
        self._set("", "")

    def _set(self, reason: str, trouble: str) -> None:
        if (self.reason, self.trouble) != (reason, trouble):
            self.reason, self.trouble = reason, trouble
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()


def _why(error: Exception) -> tuple[str, str]:
    match error:
        case SpaceError() if error.reason == _REFUSED_BY_RBAC:
            said = f"it may not claim its cluster: {error.message}: {RIGHTS}"
            return error.reason, said
        case SpaceError():
            return error.reason, error.message
        case TimeoutError():
            return "Timeout", f"its cluster gave no answer within {ANSWER_SECONDS_MAX:.0f} s"
        case _:
            return "Unwritable", f"what cluster it works on cannot be noted: {error}"
