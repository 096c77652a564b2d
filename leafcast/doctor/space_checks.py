"""Whether a centre can work on its spaces: reached, all its kinds served, and workloads inert.

Of embedded spaces there is nothing to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace

from leafcast.doctor.findings import SpaceFact
from leafcast.doctor.live_cluster import REMEDY, signs_of_life
from leafcast.space_settings import CentreSpaces, SpaceSetting
from leafcast.spaces import open_kubernetes
from relay.claims.centre_lease import INVENTORY_LEASE, WORKLOADS_LEASE
from relay.claims.claim import CentreIdentity, CentreVerdict, hub_taken
from relay.claims.leases import SharedSpace
from relay.ports import Clock, Dice
from relay.space_errors import SpaceError
from relay.space_port import Space
from schemas.objects.objects import BUILT_IN_KINDS
from schemas.values.groups import CONTROL_GROUPS, DENATURED_GROUP, GROUP

WORKLOADS, INVENTORY = "workloads", "inventory"
_OURS = {*CONTROL_GROUPS, DENATURED_GROUP}
_OF_INVENTORY = {(GROUP, "locations"), (GROUP, "synctargets")}


class SpacesUnusable(Exception):
    """Spaces with which no centre can be started; a line for each."""

    def __init__(self, facts: Iterable[SpaceFact]) -> None:
        self.facts = tuple(facts)
        super().__init__("\n".join(map(str, self.facts)))


async def look_at_spaces(
    spaces: CentreSpaces, clock: Clock, dice: Dice, *, free: bool = False
) -> list[SpaceFact]:
    """Look at each of a centre's spaces that is on an API server; `free` ones are no centre's."""
    read = (spaces.workloads[0], spaces.inventory[0])
    return [
        replace(
            await _look(role, setting, clock, dice, live=spaces.allow_live, free=free),
            unread=setting not in read,
        )
        for role, setting in _each(spaces)
        if setting.is_kubernetes
    ]


async def check_spaces(
    spaces: CentreSpaces, clock: Clock, dice: Dice, *, free: bool = False
) -> None:
    """Raise SpacesUnusable with all that keeps a centre from working on them, as above."""
    found = await look_at_spaces(spaces, clock, dice, free=free)
    if wrong := [fact for fact in found if fact.trouble]:
        raise SpacesUnusable(wrong)


def _each(spaces: CentreSpaces) -> Iterator[tuple[str, SpaceSetting]]:
    yield from ((WORKLOADS, setting) for setting in spaces.workloads)
    yield from ((INVENTORY, setting) for setting in spaces.inventory)


async def _look(
    role: str, setting: SpaceSetting, clock: Clock, dice: Dice, *, live: bool, free: bool
) -> SpaceFact:
    title = f"{role} in {setting.title}"
    try:
        async with AsyncExitStack() as stack:
            space = open_kubernetes(setting, clock, dice, stack)
            await space.identity()
            if missing := await _missing(role, space):
                return _not_installed(title, role, setting, missing)
            holder = await _holder(role, space) if free else ""
            sign = "" if live or role != WORKLOADS else await signs_of_life(space, _now_ms(clock))
    except SpaceError as error:
        remedy = "correct the kubeconfig, start the server, or give the rights: leafcast install"
        return SpaceFact(title, "it cannot be used", error.message, remedy)
    if holder:
        cause, _, remedy = holder.partition("; nothing is written there: ")
        return SpaceFact(title, "another centre works there", cause, remedy)
    if sign:
        return SpaceFact(title, "workload objects would come to life there", sign, REMEDY)
    return SpaceFact(title)


async def _holder(role: str, space: Space) -> str:
    """Whose hub it is already; "" if nobody's."""
    name = WORKLOADS_LEASE if role == WORKLOADS else INVENTORY_LEASE
    lease = await space.leases.read(name) if isinstance(space, SharedSpace) else None
    nobody = CentreIdentity("", "", "", "")
    if lease is None:
        return ""
    return hub_taken(lease, nobody, CentreVerdict.REFUSED, silent=False)


async def _missing(role: str, space: Space) -> list[str]:
    served = {(kind.group, kind.resource) for kind in await space.kinds()}
    ours = [(group, it.resource) for (group, _), it in BUILT_IN_KINDS.items() if group in _OURS]
    wanted = [kind for kind in ours if (kind in _OF_INVENTORY) is (role == INVENTORY)]
    return [resource for group, resource in wanted if (group, resource) not in served]


def _not_installed(
    title: str, role: str, setting: SpaceSetting, missing: Iterable[str]
) -> SpaceFact:
    at = f" --kubeconfig {setting.kubeconfig}" if setting.kubeconfig else ""
    at += f" --context {setting.context}" if setting.context else ""
    remedy = f"leafcast install --role {role} | kubectl{at} apply -f -"
    return SpaceFact(title, "it does not serve all kinds", f"it lacks {', '.join(missing)}", remedy)


def _now_ms(clock: Clock) -> int:
    return clock.now().wall_ms
