"""Waiting in the daemon, until placements are synced, healthy, rolled out or gone.

What the spaces hold when the question comes is taken into account first: a change applied just
before cannot be mistaken for one that has arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from controllers.centre import Controllers
from controllers.core.rollout.rollouts import Rollouts
from controllers.core.status.status import UNCOUNTED
from controllers.core.workloads.missing_references import UNKNOWN_KIND, UNREADABLE, Lack
from leafcast.ask.api import Api, ApiError
from leafcast.daemon.running_centre import running
from leafcast.daemon.tree_facts import count_form, listed
from leafcast.daemon.verbs.selection import selection_form
from leafcast.local.tree import LocalTree
from relay.core.node import Node
from relay.objects.serving import DEFINITIONS
from relay.ports import BusBroken, Clock, Listing, SpaceError
from schemas.hold_reasons import ENDS_BY_ITSELF, PINNED, PLACE_FROZEN
from schemas.identity import NodePath
from schemas.placements import bare_name, kind_of, long_title, meant, short_title, title
from schemas.reports import Count

ROLLED_OUT, DELETE = "rolled-out", "delete"
CONDITIONS = ("synced", "healthy", ROLLED_OUT, DELETE)
WAIT_SECONDS_MAX = 24 * 3600.0
SERVED_SECONDS_MAX, LOOK_SECONDS = 10.0, 0.2
"""How long a definition may take until its kind is served, and how often to look."""
HELD_LOOK_SECONDS = 0.5
"""How often to look whether something stands still."""
_NO_WAVES = frozenset({PINNED, PLACE_FROZEN})
"""What keeps content from places, and holds no rollout up."""
_KINDS_LACKED = (UNKNOWN_KIND, UNREADABLE)


def register_wait(api: Api, tree: LocalTree, clock: Clock) -> None:
    """Answer the verb `wait` about this tree."""
    waiting = _Waiting(tree, clock)
    api.register("wait", waiting.wait)


class _Waiting:
    def __init__(self, tree: LocalTree, clock: Clock) -> None:
        self._tree = tree
        self._clock = clock
        self._caught_up_with: Controllers | None = None

    async def wait(self, placements: list[str], condition: str, timeout: float) -> dict[str, Any]:  # noqa: ASYNC109 - part of the verb
        """Answer once all placements meet the condition, or when time is up, with their states.

        `placements` in the answer has for each its `name`, which `placement` that is, its summary
        (see count_form), its `problem`, and what its `rollout` waits for; `met` names those that
        meet the condition. Raises ApiError if one does not exist, or lacks what it names, or is
        held, or has no Rollout that goes on: no waiting mends that. Who waits for `delete` meets
        none of these.
        """
        if condition not in CONDITIONS:
            remedy = f"wait for {' or '.join(CONDITIONS)}"
            raise ApiError("Invalid", f'"{condition}" is not a condition', remedy)
        try:
            async with asyncio.timeout(min(timeout, WAIT_SECONDS_MAX)):
                while not await self._waited(placements, condition):
                    await self._tree.changed()
        except TimeoutError:
            if self._tree.controllers is self._caught_up_with:
                self._check(placements, condition)
        met = [name for name in placements if self._met(name, condition)]
        return {"placements": [self._form(name) for name in placements], "met": met}

    async def _waited(self, placements: list[str], condition: str) -> bool:
        """Wait for the condition; False if the centre's run ended meanwhile: ask the next one."""
        controllers = self._tree.controllers
        if controllers is None:
            return False
        run = asyncio.timeout(None)
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._until_other(controllers, run))
                with suppress(TimeoutError, BusBroken, SpaceError):
                    async with run:
                        await self._met_by(controllers, placements, condition)
                        watch.cancel()
                        return True
                watch.cancel()
        except* ApiError as refused:
            raise refused.exceptions[0] from None
        return False

    async def _met_by(
        self, controllers: Controllers, placements: list[str], condition: str
    ) -> None:
        await controllers.caught_up()
        self._caught_up_with = controllers
        self._check(placements, condition)
        if condition == DELETE:
            await self._reached(placements, condition)
            return
        await self._served(placements)
        self._check_lacks(placements)
        await self._reached(placements, condition)
        self._check_lacks(placements)
        if condition == ROLLED_OUT:
            self._check_rollouts(placements)
        self._check_holds(placements, condition)
        await controllers.written(map(self._meant, placements))

    async def _served(self, placements: list[str]) -> None:
        """Wait while a kind that is lacked is defined, and its server does not serve it yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SERVED_SECONDS_MAX):
                while self._unknown_kinds(placements) and await self._defined():
                    await self._clock.sleep(LOOK_SECONDS)

    def _unknown_kinds(self, placements: list[str]) -> bool:
        lacks = map(self._lack, placements)
        return any(lack is not None and lack.reason in _KINDS_LACKED for lack in lacks)

    async def _defined(self) -> bool:
        """Whether some definition's kind is still to be told of."""
        space = self._tree.workloads
        listing = await space.list(*DEFINITIONS) if space else Listing((), "")
        told = {k.group_resource for k in self._controllers().translator.kinds}
        specs = (obj["spec"] for obj in listing.objects)
        return any((spec["group"], spec["names"]["plural"]) not in told for spec in specs)

    async def _until_other(self, controllers: Controllers, run: asyncio.Timeout) -> None:
        """End what waits on a run of the centre once there is another."""
        while self._tree.controllers is controllers:
            await self._tree.changed()
        run.reschedule(0)

    async def _reached(self, placements: list[str], condition: str) -> None:
        driver = await self._tree.nodes[NodePath()].running()

        def reached(_: Node) -> bool:
            return all(self._met(name, condition) for name in placements)

        # That nothing goes on any more the node does not tell.
        while not any(self._never(name, condition) for name in placements):
            with suppress(TimeoutError):
                async with asyncio.timeout(HELD_LOOK_SECONDS):
                    await driver.until(reached)
                    return

    def _met(self, name: str, condition: str) -> bool:
        if condition == DELETE:
            return self._meant(name) not in self._known()
        if title(self._meant(name)) in self._controllers().errors or self._lack(name):
            return False
        if condition == ROLLED_OUT:
            return self._rollouts().is_rolled_out(self._meant(name))
        count = self._count(name)
        states, health = count.summary.states, count.summary.health
        synced = _all(count, states.get("synced", 0))
        if not synced or (condition != "synced" and not _all(count, health.get(condition, 0))):
            return False
        return self._controllers().kept_back(self._meant(name)) == 0 and not self._held(name)

    def _never(self, name: str, condition: str) -> bool:
        """Whether no waiting mends it."""
        if condition == DELETE or self._met(name, condition):
            return False
        if self._lack(name) or self._blocked(name, condition):
            return True
        return condition == ROLLED_OUT and self._ended(name) is not None

    def _ended(self, name: str) -> tuple[str, str] | None:
        """Why a placement is not rolled out and will not be, and what to do; None if it may be."""
        rollouts, placement = self._rollouts(), self._meant(name)
        steering = rollouts.of(placement)
        if steering is None:
            remedy = "apply one, or wait for synced"
            return f"{long_title(placement)}: no Rollout steers it", remedy
        if rollouts.is_aborted(placement):
            remedy = f"see: leafcast rollout status {steering}"
            return f"{long_title(placement)}: its rollout was aborted", remedy
        if person := rollouts.waits_for_person(placement):
            said, command = person
            return f"{long_title(placement)} is held: {said}", f"next: {command}"
        return None

    def _check_rollouts(self, placements: list[str]) -> None:
        ended = [why for name in placements if (why := self._ended(name)) is not None]
        if ended:
            raise ApiError("NotRolledOut", "; ".join(why for why, _ in ended), ended[0][1])

    def _held(self, name: str) -> list[dict[str, Any]]:
        return self._controllers().held(self._meant(name))

    def _blocked(self, name: str, condition: str) -> dict[str, Any] | None:
        """What holds a placement until someone does something; None if nothing does."""
        passed = ENDS_BY_ITSELF | (_NO_WAVES if condition == ROLLED_OUT else frozenset())
        return next((hold for hold in self._held(name) if hold["reason"] not in passed), None)

    def _check_holds(self, placements: list[str], condition: str) -> None:
        """Refuse to wait for what is held; raises ApiError with the next command."""
        unmet = [name for name in placements if not self._met(name, condition)]
        blocked = ((name, self._blocked(name, condition)) for name in unmet)
        found = [(name, hold) for name, hold in blocked if hold is not None]
        if not found:
            return
        said = [
            f"{long_title(self._meant(name))} is held: {hold['reason']}: {hold.get('message', '')}"
            for name, hold in found
        ]
        raise ApiError("Held", "; ".join(said), f"next: {found[0][1].get('remedy', '')}")

    def _rollouts(self) -> Rollouts:
        return self._controllers().translator.workloads.rollouts

    def _count(self, name: str) -> Count:
        node = self._tree.nodes[NodePath()].node
        key = self._controllers().translator.source(self._meant(name)).key
        if node is None or key not in node.records:
            return UNCOUNTED
        return node.count(key)

    def _form(self, name: str) -> dict[str, Any]:
        controllers, placement = self._controllers(), self._meant(name)
        return {
            "name": name,
            "placement": placement,
            **count_form(self._count(name)),
            **selection_form(controllers, placement),
            "problem": controllers.errors.get(title(placement), ""),
            "rollout": self._rollouts().waits_for(placement),
            "held": self._held(name),
            "keptBack": controllers.kept_back(placement),
        }

    def _meant(self, name: str) -> str:
        return meant(name, self._controllers().translator.workloads.objects)

    def _lack(self, name: str) -> Lack | None:
        return self._controllers().translator.workloads.lack(self._meant(name))

    def _check_lacks(self, placements: list[str]) -> None:
        lacking = [(name, lack) for name in placements if (lack := self._lack(name))]
        if lacking:
            said = [f"{long_title(self._meant(name))}: {lack.message}" for name, lack in lacking]
            remedy = f"see: leafcast describe {short_title(self._meant(lacking[0][0]))}"
            raise ApiError(lacking[0][1].reason, "; ".join(said), remedy)

    def _check(self, placements: list[str], condition: str) -> None:
        if condition == DELETE:
            return
        known = self._known()
        for name in placements:
            if self._meant(name) not in known:
                kind = kind_of(name)
                said = f'{kind.resource}.{kind.group} "{bare_name(name)}" not found'
                remedy = f"there are: {listed(known)}" if known else "apply one first"
                raise ApiError("NotFound", said, remedy)

    def _known(self) -> Collection[str]:
        return self._controllers().translator.workloads.objects

    def _controllers(self) -> Controllers:
        return running(self._tree.controllers)


def _all(count: Count, reached: int) -> bool:
    """Whether that is every destination that ever joined; of none nobody can say it."""
    return count.exact and 0 < count.summary.joined == reached
