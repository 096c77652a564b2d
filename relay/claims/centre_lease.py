"""The lease by which one centre at a time works on a hub: taken, renewed, lost, and given back.

Whether another holder is silent is judged by our own clock: its lease must lie there unchanged for
as long as it is good. Ours counts for less than that after each renewal, so a centre that cannot
renew has stopped writing before another one begins. No clock is compared with another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from relay.claims.claim import CentreIdentity, CentreVerdict, hub_taken, judge_centre
from relay.claims.leases import LEASES_NAMESPACE, Lease, SharedSpace, milliseconds, rfc3339
from relay.ports import Clock
from relay.space_errors import UNAVAILABLE, AnotherSpace, Conflict, SpaceError

WORKLOADS_LEASE, INVENTORY_LEASE = "leafcast-workloads", "leafcast-inventory"
LEASE_SECONDS = 15.0
"""How long a lease must lie there unchanged until its holder counts as silent."""
LEASE_SECONDS_MAX = 600.0
"""The same, of a lease that says for how long it is good."""
VALID_SECONDS = 10.0
"""How long after a renewal began its holder still writes."""
RENEW_SECONDS, RETRY_SECONDS = 5.0, 2.0
FIRST_LOOK_SECONDS_MAX = 10.0
GIVE_BACK_SECONDS_MAX = 2.0
CLOCK_MS_MAX = 60_000
TAKE_ATTEMPTS_MAX = 3
"""How often it is looked anew at once, where another wrote between the look and the write."""
NOT_ASKED = "the hub has not said yet whose it is"
NO_TENURE = (
    "the members of this centre did not confirm within "
    f"{FIRST_LOOK_SECONDS_MAX:.0f} s that this one is active: they may be electing a leader"
)
RIGHTS = (
    f"it needs get, create and update on leases of coordination.k8s.io in namespace "
    f"{LEASES_NAMESPACE}: run `leafcast install` with the options of before, and apply it"
)


Confirm = Callable[[], Awaitable[None]]
"""Returns if this run of the centre may write; raises SpaceError."""


async def always() -> None:
    """A centre that runs once may always write."""


class HubTaken(Exception):
    """A hub is another tree's; says whose, and what to do."""


class CentreLease:
    """The lease on one space, over all runs of the centre; `trouble` is "" while it is held.

    `confirm` is asked after each look and before the write that follows from it: of several members
    of a centre the one that is active takes the lease from a former one at once, as it is the same
    centre's, and a former one that was stopped between look and write finds another version.
    """

    def __init__(
        self,
        name: str,
        me: CentreIdentity,
        title: str,
        clock: Clock,
        *,
        take_over: bool = False,
        confirm: Confirm = always,
    ) -> None:
        self.trouble = NOT_ASKED
        self.verdict: CentreVerdict | None = None
        """What the last look said; None before one came about."""
        self._name = name
        self._me = me
        self.title = title
        self.looked = asyncio.Event()
        """Set once the hub was asked, whatever came of it."""
        self._clock = clock
        self._take_over, self._confirm = take_over, confirm
        self._held: Lease | None = None
        self._renewed_at = float("-inf")
        # The version of another's lease, and since when it lies there so.
        self._seen = ""
        self._seen_since = 0.0
        self._was_renewed = False
        # Whether what is waited for is the members' word, and not the hub's answer.
        self._is_confirming = False
        self._changed = asyncio.Event()

    @property
    def is_held(self) -> bool:
        """Whether this centre may write now."""
        return self._held is not None and self.seconds_left > 0

    @property
    def is_anothers(self) -> bool:
        """Whether it is known to be another's: what is read there is not for this centre."""
        return self.verdict in (CentreVerdict.WAIT, CentreVerdict.REFUSED)

    @property
    def seconds_left(self) -> float:
        """For how long it may, without another renewal."""
        return self._renewed_at + VALID_SECONDS - self._clock.now().seconds

    def check(self) -> None:
        """Raise SpaceError unless this centre may write there now."""
        if not self.is_held:
            why = self.trouble or "its lease was not renewed in time"
            raise SpaceError(UNAVAILABLE, f"nothing is written to {self.title}: {why}")

    async def changed(self) -> None:
        """Wait until it is held, or another's, other than when this was called."""
        await self._changed.wait()

    async def take(self, space: SharedSpace) -> None:
        """Look once, and take it if it is ours to take; why not is said, and nothing is raised."""
        self._is_confirming = False
        try:
            async with asyncio.timeout(FIRST_LOOK_SECONDS_MAX):
                await self._look_anew(space)
        except (SpaceError, TimeoutError) as error:
            self._failed(error)
        self.looked.set()

    async def keep(self, space: SharedSpace) -> None:
        """Take it, renew it, and take it again when it was lost; until cancelled."""
        while True:
            await self.take(space)
            await self._clock.sleep(RENEW_SECONDS if self.is_held else RETRY_SECONDS)

    async def give_back(self, space: SharedSpace) -> None:
        """Say that this centre has stopped, so that another of its tree need not wait."""
        if self._held is None:
            return
        released, self._held = replace(self._held, holder=""), None
        self._renewed_at = float("-inf")
        with suppress(SpaceError, TimeoutError):
            async with asyncio.timeout(GIVE_BACK_SECONDS_MAX):
                try:
                    await space.leases.write(released)
                except Conflict:
                    # A last renewal of ours, whose answer was not waited for.
                    found = await space.leases.read(self._name)
                    if found is not None and self._me.holds(found):
                        await space.leases.write(replace(found, holder=""))

    async def _look_anew(self, space: SharedSpace) -> None:
        for _ in range(TAKE_ATTEMPTS_MAX - 1):
            with suppress(Conflict):
                return await self._look(space)
        return await self._look(space)

    async def _look(self, space: SharedSpace) -> None:
        began, wall_ms = self._clock.now().seconds, self._clock.now().wall_ms
        if self._held is not None:
            with suppress(Conflict):
                await self._write(space, replace(self._held, renewed=rfc3339(wall_ms)), began)
                return
        found = await space.leases.read(self._name)
        if found is not None and self._me.holds(found):
            # A renewal of ours whose answer was lost.
            await self._write(space, replace(found, renewed=rfc3339(wall_ms)), began)
            return
        silent = self._is_silent(found, began)
        verdict = judge_centre(found, self._me, silent=silent, take_over=self._take_over)
        if verdict is not CentreVerdict.TAKE:
            assert found is not None
            why = hub_taken(found, self._me, verdict, silent=silent)
            self._lost(verdict, why + self._skew(found))
            return
        await self._write(space, self._mine(found, wall_ms), began)

    def _mine(self, found: Lease | None, wall_ms: int) -> Lease:
        now = rfc3339(wall_ms)
        since = found.acquired if found is not None and self._me.is_place_of(found) else now
        return Lease(
            self._name,
            self._me.holder,
            self._me.notes(),
            since or now,
            now,
            int(LEASE_SECONDS),
            found.version if found is not None else "",
            found.uid if found is not None else "",
        )

    async def _write(self, space: SharedSpace, lease: Lease, began: float) -> None:
        """Raises Conflict, after which nothing is held."""
        self._is_confirming = True
        await self._confirm()
        self._is_confirming = False
        former, self._held = self._held, None
        try:
            self._held = await space.leases.write(lease)
        except Conflict:
            raise
        except BaseException:
            self._held = former
            raise
        self._renewed_at = began
        self._take_over = False
        self._set(CentreVerdict.TAKE, "")

    def _is_silent(self, found: Lease | None, now: float) -> bool:
        """Whether another's lease lay there unchanged for as long as it is good."""
        if found is None:
            return True
        if found.version != self._seen:
            self._was_renewed = bool(self._seen)
            self._seen, self._seen_since = found.version, now
        good = min(max(LEASE_SECONDS, float(found.seconds)), LEASE_SECONDS_MAX)
        return now - self._seen_since >= good

    def _skew(self, found: Lease) -> str:
        """That the clocks of the two centres are apart, if that is seen."""
        renewed = milliseconds(found.renewed)
        ahead = renewed - self._clock.now().wall_ms if renewed is not None else 0
        if ahead > CLOCK_MS_MAX or (self._was_renewed and -ahead > CLOCK_MS_MAX):
            word = "ahead of" if ahead > 0 else "behind"
            return (
                f"; its clock is {abs(ahead) // 1000} s {word} this one: set both right (NTP), "
                "though who holds the lease does not depend on that"
            )
        return ""

    def _lost(self, verdict: CentreVerdict, why: str) -> None:
        self._held, self._renewed_at = None, float("-inf")
        self._set(verdict, why)

    def _failed(self, error: Exception) -> None:
        """It cannot be looked at now: what is held is held until it ends by itself."""
        match error:
            case AnotherSpace():
                self._lost(CentreVerdict.REFUSED, error.message)
                return
            case SpaceError() if error.reason == "Forbidden":
                why = f"{error.message}: {RIGHTS}"
            case SpaceError():
                why = error.message
            case _ if self._is_confirming:
                why = NO_TENURE
            case _:
                why = f"no answer within {FIRST_LOOK_SECONDS_MAX:.0f} s"
        if not self.is_held:
            self._set(self.verdict, f"its lease {self._name} cannot be taken or renewed: {why}")

    def _set(self, verdict: CentreVerdict | None, trouble: str) -> None:
        if (self.verdict, self.trouble) != (verdict, trouble):
            self.verdict, self.trouble = verdict, trouble
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()
