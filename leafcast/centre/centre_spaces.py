"""The spaces of a centre, each with the lease by which this centre alone works there.

Embedded spaces are the centre's own, and need none.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from leafcast.centre.copying import ended_membership
from leafcast.machine import machine_id
from leafcast.members.settings import MemberSettings
from leafcast.node.options import ActiveMember
from leafcast.space_settings import CentreSpaces, SpaceSetting
from leafcast.spaces import open_kubernetes, open_space
from relay.claims.centre_lease import (
    INVENTORY_LEASE,
    WORKLOADS_LEASE,
    CentreLease,
    Confirm,
    HubTaken,
    always,
)
from relay.claims.claim import CentreIdentity, CentreVerdict
from relay.claims.guarded_space import LeasedSpace
from relay.claims.leases import SharedSpace
from relay.ports import BusBroken, Clock, Dice
from relay.space_errors import UNAVAILABLE, SpaceError
from relay.space_port import FinalizingSpace, Space
from schemas.values.identity import random_id

LOOK_SECONDS = 0.5

HUB_LOST, HUB_HELD = "HubLost", "HubHeld"

Embedded = Callable[[], Awaitable[Space]]
Note = Callable[[str, str, str], None]

log = logging.getLogger("leafcast")


def centre_identity(
    tree: str, folder: Path, dice: Dice, member: MemberSettings | None = None
) -> CentreIdentity:
    """Who a centre is that keeps its data in this folder; a copy of the folder is another one.

    All its members are one centre, and are known by their keys: those of a copy have others. So is
    the centre that ran alone in this very folder, or whose members ended for one to go on here.
    """
    alone = _digest(f"{machine_id()} {folder.stat().st_ino}")
    run, host = random_id(dice.entropy(16)), platform.node()
    if member is None:
        ended = ended_membership(folder)
        former = (_place_of(ended),) if ended is not None else ()
        return CentreIdentity(tree, alone, run, host, former=former)
    members = tuple(sorted(_digest(key.hex()) for key in member.keys.values()))
    return CentreIdentity(tree, _place_of(member), run, host, members, (alone,))


def _place_of(member: MemberSettings) -> str:
    return _digest(" ".join(sorted(key.hex() for key in member.keys.values())))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:26]


def confirming(member: ActiveMember | None) -> Confirm | None:
    """Asks whether the member is the active one still; None for a centre that runs once."""
    if member is None:
        return None

    async def confirm() -> None:
        try:
            await member.tenure.confirm()
        except BusBroken as error:
            raise SpaceError(UNAVAILABLE, str(error)) from error

    return confirm


@dataclass(slots=True)
class HeldSpaces:
    """Opens the spaces of a centre in each of its runs, and holds their leases meanwhile.

    With `_confirm` they are those of one tenure of a member. A lease outlives the run in which it
    was taken: whoever comes next in this process, or as another member, has it at once, and none
    else before it was silent for its time.
    """

    _me: CentreIdentity
    _clock: Clock
    _dice: Dice
    _say: Callable[[str], None]
    _note: Note
    _take_over: bool
    _confirm: Confirm | None = None
    _leases: dict[tuple[str, SpaceSetting], CentreLease] = field(default_factory=dict, init=False)
    _was_open: bool = field(default=False, init=False)

    def unready(self) -> dict[str, str]:
        """Why a hub may not be written, by the sort of its space."""
        names = {WORKLOADS_LEASE: "workloads", INVENTORY_LEASE: "inventory"}
        return {
            names[name]: f"{setting.title}: {lease.trouble}"
            for (name, setting), lease in self._leases.items()
            if lease.trouble
        }

    @asynccontextmanager
    async def open(
        self,
        spaces: CentreSpaces,
        workloads: Embedded,
        inventory: Embedded,
        stack: AsyncExitStack,
    ) -> AsyncIterator[tuple[list[Space], list[Space]]]:
        """All of either sort, for as long as this lasts; waits while another centre has one.

        `workloads` and `inventory` open the embedded ones. A hub that does not answer is taken once
        it does, and is not read or written before. Raises HubTaken, SpaceError, in groups.
        """
        held: list[tuple[SharedSpace, CentreLease]] = []

        async def each(name: str, setting: SpaceSetting, made: Embedded) -> Space:
            space = await open_space(setting, made, self._clock, self._dice, stack, self._confirm)
            if not isinstance(space, SharedSpace) or not isinstance(space, FinalizingSpace):
                return space
            held.append((space, self._lease(name, setting)))
            return LeasedSpace(space, held[-1][1])

        workload_spaces = [await each(WORKLOADS_LEASE, it, workloads) for it in spaces.workloads]
        inventories = [await each(INVENTORY_LEASE, it, inventory) for it in spaces.inventory]
        async with asyncio.TaskGroup() as group:
            keepers = [group.create_task(lease.keep(space)) for space, lease in held]
            keepers += [group.create_task(self._tell(lease)) for _, lease in held]
            await self._taken([lease for _, lease in held])
            self._was_open = True
            yield workload_spaces, inventories
            for keeper in keepers:
                keeper.cancel()

    async def give_back(self) -> None:
        """Say to each hub that this centre ends, after which nothing of it is under way there.

        One that does not answer in time is left to find out by itself.
        """
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            for (_, setting), lease in self._leases.items():
                with suppress(SpaceError):
                    space = open_kubernetes(setting, self._clock, self._dice, stack)
                    group.create_task(lease.give_back(space))

    def _lease(self, name: str, setting: SpaceSetting) -> CentreLease:
        key = name, setting
        if key not in self._leases:
            self._leases[key] = CentreLease(
                name,
                self._me,
                setting.title,
                self._clock,
                take_over=self._take_over,
                confirm=self._confirm or always,
            )
        return self._leases[key]

    async def _tell(self, lease: CentreLease) -> None:
        """Note when the centre may not write to a hub any more, and when it may again."""
        while True:
            await lease.changed()
            if not self._was_open:
                continue
            if lease.trouble:
                log.warning("nothing is written to %s: %s", lease.title, lease.trouble)
                self._note(HUB_LOST, lease.title, lease.trouble)
            else:
                log.info("%s is written to again", lease.title)
                self._note(HUB_HELD, lease.title, "the centre writes to it again")

    async def _taken(self, leases: Sequence[CentreLease]) -> None:
        """Wait until each was looked at, and none is another's that may come to be ours."""
        for lease in leases:
            await lease.looked.wait()
            while lease.verdict is CentreVerdict.WAIT:
                self._say(lease.trouble)
                await self._clock.sleep(LOOK_SECONDS)
        refused = [lease for lease in leases if lease.verdict is CentreVerdict.REFUSED]
        if refused and not self._was_open:
            raise HubTaken("\n".join(f"{it.title}: {it.trouble}" for it in refused))
