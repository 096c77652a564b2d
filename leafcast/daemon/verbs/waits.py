"""Waiting in the daemon, until placements are synced, healthy, rolled out or gone.

What the spaces hold when the question comes is taken into account first: a change applied just
before cannot be mistaken for one that has arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from controllers.centre import Controllers
from controllers.core.conditions import STALLED
from controllers.core.rollout.rollouts import Rollouts
from controllers.core.status.status import FAILING, UNCOUNTED, undelivered
from controllers.core.workloads.missing_references import Lack
from controllers.core.workloads.unread_kinds import KINDS_LACKED
from leafcast.ask.api import Api, ApiError
from leafcast.ask.wait_goals import (
    CONDITIONS,
    COUNTED,
    DELETE,
    HEALTHY,
    READY,
    ROLLED_OUT,
    SYNCED,
    Goal,
    Reached,
    check_share,
)
from leafcast.centre.centre import Centre, running, within
from leafcast.daemon.tree_facts import count_form, listed
from leafcast.daemon.verbs.excepted import Excepted, find_excepted
from leafcast.daemon.verbs.selection import selection_form
from leafcast.show.wait_states import nowhere_text
from relay.core.view import NodeView
from relay.ports import BusBroken, Clock, first_of
from relay.space_errors import SpaceError
from relay.space_port import Listing
from schemas.api.shared import Condition
from schemas.objects.objects import DEFINITIONS
from schemas.objects.selectors import LabelSelector
from schemas.records.hold_reasons import (
    CUSTOMIZATION_FROZEN,
    NOT_AWAITED,
    OF_ROLLOUTS,
    OVERRIDDEN,
    PINNED,
    PLACE_FROZEN,
    REMOVAL_HELD,
    REPORTED,
    ROLLOUT_ABORTED,
    UNDONE,
    WAITING,
    WINDOW,
    ends_by_itself,
)
from schemas.records.placements import bare_name, kind_of, long_title, meant, short_title, title
from schemas.reports.reports import Count
from schemas.values.faults import Faulty
from schemas.values.identity import NodePath

WAIT_SECONDS_MAX = 24 * 3600.0
SERVED_SECONDS_MAX, LOOK_SECONDS = 10.0, 0.2
"""How long a definition may take until its kind is served, and how often to look."""
REPORTED_SECONDS = 2.0
"""How long what an edge reports may be of what it had before a change that was made just now."""
CATCH_UP_SECONDS = 3.0
"""So much longer it may take to know what was applied before; who asks grants 5 s."""
WHERE_COMMAND = "leafcast get loc,synctargets --show-labels"
HELD_LOOK_SECONDS = 0.5
"""How often to look whether something stands still."""
_NO_WAVES = frozenset({PINNED, PLACE_FROZEN})
"""What keeps content from places, and holds no wave up."""
_REJECTED = frozenset({ROLLOUT_ABORTED, UNDONE})
_SEEN_IN_STATES = frozenset({CUSTOMIZATION_FROZEN, OVERRIDDEN, WAITING, WINDOW}) | NOT_AWAITED
"""What a destination says of itself: it does not count as synced anyway."""


Form = dict[str, Any]


def register_wait(api: Api, centre: Centre, clock: Clock) -> None:
    """Answer the verb `wait` about this tree."""

    async def wait(
        conditions: list[str],
        timeout: float,  # noqa: ASYNC109 - part of the verb
        placements: list[str],
        at_least: str = "",
        *,
        except_unreachable: bool = False,
        excepted: list[Form] | None = None,
    ) -> Form:
        """Answer once all placements meet the conditions, or when time is up, with their states.

        All there are if none are named. `at_least` is a share of the destinations; `excepted` are
        selectors of SyncTargets that are not waited for: `met` names those that may meet the
        conditions then, and `excepted` in each form which destinations that are.

        `placements` in the answer has for each its `name`, which `placement` that is, its summary
        (see count_form), its `problem`, and what its `rollout` waits for; `met` names those that
        meet the conditions. Raises ApiError if one does not exist, or lacks what it names, or is
        held, or has no Rollout that goes on: no waiting mends that. Who waits for `delete` meets
        none of these.
        """
        goal = _goal(conditions, at_least, except_unreachable=except_unreachable)
        selectors = [_selector(form) for form in excepted or ()]
        waiting = _Waiting(centre, clock, placements, tuple(conditions), goal, selectors)
        return await waiting.wait(min(timeout, WAIT_SECONDS_MAX))

    api.register("wait", wait)


def _goal(conditions: Sequence[str], at_least: str, *, except_unreachable: bool) -> Goal:
    """What has to be reached; raises ApiError."""
    for condition in conditions:
        if condition not in CONDITIONS:
            remedy = f"wait for {' or '.join(CONDITIONS)}"
            raise ApiError("Invalid", f'"{condition}" is not a condition', remedy)
    try:
        return Goal(check_share(at_least) if at_least else "", except_unreachable)
    except ValueError as error:
        said, _, remedy = str(error).partition("; ")
        raise ApiError("Invalid", said, remedy) from error


def _selector(form: Form) -> LabelSelector:
    try:
        return LabelSelector.from_kubernetes(form)
    except (Faulty, AttributeError, TypeError) as error:
        raise ApiError("Invalid", f"except: {error}", "write label=value") from error


@dataclass(slots=True)
class _Waiting:
    """One question."""

    _centre: Centre
    _clock: Clock
    _asked: list[str]
    _conditions: tuple[str, ...]
    _goal: Goal
    _selectors: Sequence[LabelSelector]
    _began: float = field(default=0.0, init=False)
    _caught_up_with: Controllers | None = field(default=None, init=False)
    _excepted: dict[str, Excepted] = field(default_factory=dict, init=False)

    @property
    def _placements(self) -> list[str]:
        """Those that are named, or all there are."""
        return self._asked or sorted(self._known())

    @property
    def _is_of_content(self) -> bool:
        return DELETE not in self._conditions

    async def wait(self, seconds: float) -> Form:
        """As the verb promises."""
        self._began = self._clock.now().seconds
        try:
            async with asyncio.timeout(seconds):
                while not await self._waited():
                    await self._centre.changed()
        except TimeoutError:
            caught_up = await self._catches_up()
            if caught_up:
                self._check()
            met = [name for name in self._placements if caught_up and self._is_met(name)]
        else:
            met = [name for name in self._placements if self._is_met(name)]
        return {"placements": [self._form(name) for name in self._placements], "met": met}

    async def _catches_up(self) -> bool:
        """Whether it is known what was applied before, or soon is, though time is up."""
        controllers = self._centre.controllers
        if controllers is None or controllers is self._caught_up_with:
            return controllers is not None
        if await within(CATCH_UP_SECONDS, controllers.caught_up()):
            self._caught_up_with = controllers
        return controllers is self._caught_up_with

    async def _waited(self) -> bool:
        """Wait for the condition; False if the centre's run ended meanwhile: ask the next one."""
        controllers = self._centre.controllers
        if controllers is None:
            return False
        run, refusal = asyncio.timeout(None), None
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._until_other(controllers, run))
                with suppress(TimeoutError, BusBroken, SpaceError):
                    async with run:
                        await self._met_by(controllers)
                        watch.cancel()
                        return True
                watch.cancel()
        except* ApiError as refused:
            refusal = first_of(refused)
        if refusal is not None:
            raise refusal
        return False

    async def _met_by(self, controllers: Controllers) -> None:
        await controllers.caught_up()
        self._caught_up_with = controllers
        self._check()
        if not self._is_of_content:
            await self._reached()
            return
        await self._served()
        self._check_lacks()
        self._excepted = {
            name: find_excepted(controllers, self._meant(name), self._selectors)
            for name in self._placements
        }
        await self._reached()
        self._check_lacks()
        if ROLLED_OUT in self._conditions:
            self._check_rollouts()
        self._check_holds()
        self._check_nowhere()
        self._check_ready()
        await controllers.written(map(self._meant, self._placements))

    async def _served(self) -> None:
        """Wait while a kind that is lacked is defined, and its server does not serve it yet."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SERVED_SECONDS_MAX):
                while self._unknown_kinds() and await self._defined():
                    await self._clock.sleep(LOOK_SECONDS)

    def _unknown_kinds(self) -> bool:
        lacks = map(self._lack, self._placements)
        return any(lack is not None and lack.reason in KINDS_LACKED for lack in lacks)

    async def _defined(self) -> bool:
        """Whether some definition's kind is still to be told of."""
        space = self._centre.workloads
        listing = await space.list(*DEFINITIONS) if space else Listing((), "")
        told = {k.group_resource for k in self._controllers().translator.kinds}
        specs = (obj["spec"] for obj in listing.objects)
        return any((spec["group"], spec["names"]["plural"]) not in told for spec in specs)

    async def _until_other(self, controllers: Controllers, run: asyncio.Timeout) -> None:
        """End what waits on a run of the centre once there is another."""
        while self._centre.controllers is controllers:
            await self._centre.changed()
        run.reschedule(0)

    async def _reached(self) -> None:
        driver = await self._centre.nodes[NodePath()].running()

        def reached(_: NodeView) -> bool:
            return all(self._is_met(name) for name in self._placements)

        # That nothing goes on any more the node does not tell.
        while not any(self._never(name) for name in self._placements):
            with suppress(TimeoutError):
                async with asyncio.timeout(HELD_LOOK_SECONDS):
                    await driver.until(reached)
                    return

    def _is_met(self, name: str) -> bool:
        return all(self._met(name, condition) for condition in self._conditions)

    def _met(self, name: str, condition: str) -> bool:
        placement = self._meant(name)
        if condition == DELETE:
            return placement not in self._known()
        if title(placement) in self._controllers().errors or self._lack(name):
            return condition == READY and self._is_ready(name)
        if condition == READY:
            return self._is_ready(name)
        if condition == ROLLED_OUT:
            return self._rollouts().ended(placement) in (
                "Complete",
                "Partial",
            ) and not self._is_rejected(name)
        found = self._found(name, condition)
        if found is not None and not found.whole and self._count(name).summary.maintained:
            # Nobody is waited for.
            return True
        excepted = len(self._excepted.get(name, ()))
        return found is not None and self._goal.may_be_met(found, excepted)

    def _is_ready(self, name: str) -> bool:
        return self._controllers().summarizer.readiness(self._meant(name))[0].status == "True"

    def _found(self, name: str, condition: str) -> Reached | None:
        """For how many destinations it is so in the newest content; None while nobody can tell."""
        count, lacking = self._count(name), self._lacking(name)
        if not count.exact or lacking is None:
            return None
        states, health = count.summary.states, count.summary.health
        reached = states.get(SYNCED, 0)
        if condition == HEALTHY:
            reached = min(reached, health.get(HEALTHY, 0))
        return Reached(count.summary.awaited, reached, states.get("unreachable", 0), lacking)

    def _lacking(self, name: str) -> int | None:
        """How many of those that are waited for something keeps from the newest content.

        None if nobody can tell.
        """
        kept = self._controllers().summarizer.kept_back(self._meant(name))
        held = [hold for hold in self._held(name) if hold["reason"] not in _SEEN_IN_STATES]
        by_gates = _number([hold for hold in held if hold["reason"] in OF_ROLLOUTS])
        others = _number([hold for hold in held if hold["reason"] not in OF_ROLLOUTS])
        if kept is None or by_gates is None or others is None:
            return None
        excepted = self._excepted.get(name, Excepted()).lacking(
            self._controllers(), self._meant(name), self._count(name).summary.never_joined
        )
        return max(kept - excepted, max(by_gates - excepted, 0) + others)

    def _never(self, name: str) -> bool:
        """Whether no waiting mends it."""
        if not self._is_of_content or self._is_met(name):
            return False
        if (self._lack(name) and not self._may_be_empty(name)) or self._blocked(name):
            return True
        if self._is_nowhere(name):
            return True
        if READY in self._conditions and self._stalled(name) is not None:
            return True
        return ROLLED_OUT in self._conditions and self._ended(name) is not None

    def _is_nowhere(self, name: str) -> bool:
        """Whether it is certain that there is no destination for which it could be so."""
        count = self._count(name)
        nobody = count.exact and not count.summary.destinations
        return nobody and set(self._conditions) != {ROLLED_OUT}

    def _check_nowhere(self) -> None:
        """Refuse to wait for what goes nowhere; raises ApiError with the next command."""
        for name in self._placements:
            if self._is_nowhere(name) and not self._is_met(name):
                placement = self._meant(name)
                said = f"{long_title(placement)}: {nowhere_text(placement)}: it goes nowhere"
                raise ApiError("NoDestinations", said, f"next: {WHERE_COMMAND}")

    def _may_be_empty(self, name: str) -> bool:
        """Whether what it lacks keeps it from nothing that is waited for."""
        return self._conditions == (READY,) and self._is_ready(name)

    def _stalled(self, name: str) -> Condition | None:
        """Why a placement is not ready and will not be without a person; None if it may be.

        What an edge refuses is tried again: someone may have put that right just now.
        """
        found = self._controllers().summarizer.readiness(self._meant(name))
        why = next((item for item in found if item.type == STALLED), None)
        return why if why is not None and why.reason != FAILING else None

    def _check_ready(self) -> None:
        for name in self._placements if READY in self._conditions else ():
            if (why := self._stalled(name)) is not None:
                said = f"{long_title(self._meant(name))} is not ready: {why.reason}: {why.message}"
                raise ApiError("Stalled", said, f"see: leafcast status {self._short(name)}")

    def _ready_text(self, name: str) -> str:
        """Whether a placement is ready, in words, if that is waited for."""
        if READY not in self._conditions:
            return ""
        return self._controllers().summarizer.readiness(self._meant(name))[0].message

    def _short(self, name: str) -> str:
        return short_title(self._meant(name))

    def _ended(self, name: str) -> tuple[str, str] | None:
        """Why a placement is not rolled out and will not be, and what to do; None if it may be."""
        rollouts, placement = self._rollouts(), self._meant(name)
        steering = rollouts.of(placement)
        if steering is None:
            remedy = "apply one, or wait for synced"
            return f"{long_title(placement)}: no Rollout steers it", remedy
        if rollouts.ended(placement) == "Aborted":
            remedy = f"see: leafcast rollout status {steering}"
            return f"{long_title(placement)}: its rollout was aborted", remedy
        if person := rollouts.waits_for_person(placement):
            said, command = person
            return f"{long_title(placement)} is held: {said}", f"next: {command}"
        return None

    def _check_rollouts(self) -> None:
        ended = [why for name in self._placements if (why := self._ended(name)) is not None]
        if ended:
            raise ApiError("NotRolledOut", "; ".join(why for why, _ in ended), ended[0][1])

    def _held(self, name: str) -> list[Form]:
        return self._controllers().summarizer.held(self._meant(name))

    def _is_rejected(self, name: str) -> bool:
        """Whether some of it was aborted or undone, and is still what the centre says."""
        return any(hold["reason"] in _REJECTED for hold in self._held(name))

    def _blocked(self, name: str) -> Form | None:
        """What holds a placement until someone does something; None if nothing does.

        Nor if enough destinations can have the newest content meanwhile.
        """
        passed = _NO_WAVES if self._conditions == (ROLLED_OUT,) else frozenset[str]()
        is_early = self._clock.now().seconds - self._began < REPORTED_SECONDS
        if is_early or not self._count(name).exact:
            passed |= REPORTED
        if is_early and ROLLED_OUT in self._conditions:
            # What was put back at the centre just now is rejected until its Rollout says so.
            passed |= _REJECTED
        held = [
            hold
            for hold in self._held(name)
            if not ends_by_itself(hold["reason"], hold.get("until"))
        ]
        hold = next((hold for hold in held if hold["reason"] not in passed), None)
        lacking, whole = self._lacking(name), self._count(name).summary.awaited
        if hold is None or lacking is None or not set(self._conditions) <= set(COUNTED):
            return hold
        seen = [hold for hold in held if hold["reason"] in _SEEN_IN_STATES - passed]
        best = Reached(whole, whole - (_number(seen) or 0), 0, lacking)
        return None if self._goal.may_be_met(best, len(self._excepted.get(name, ()))) else hold

    def _check_holds(self) -> None:
        """Refuse to wait for what is held; raises ApiError with the next command."""
        unmet = [name for name in self._placements if not self._is_met(name)]
        blocked = ((name, self._blocked(name)) for name in unmet)
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
        node = self._centre.nodes[NodePath()].node
        key = self._controllers().translator.source(self._meant(name)).key
        if node is None or key not in node.records:
            return UNCOUNTED
        count, placements = node.count(key), self._controllers().translator.placements
        return undelivered(count) if placements.faults.get(self._meant(name)) else count

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
            "keptBack": controllers.summarizer.kept_back(placement),
            "excepted": list(self._excepted.get(name, Excepted()).paths),
            "ready": self._ready_text(name),
            "lacking": self._lacking(name) if self._is_of_content else None,
        }

    def _meant(self, name: str) -> str:
        return meant(name, self._controllers().translator.workloads.objects)

    def _lack(self, name: str) -> Lack | None:
        """What it names and is not there; nothing while all that it had is held."""
        if any(hold["reason"] == REMOVAL_HELD for hold in self._held(name)):
            return None
        return self._controllers().translator.workloads.lack(self._meant(name))

    def _check_lacks(self) -> None:
        found = [(name, lack) for name in self._placements if (lack := self._lack(name))]
        lacking = [(name, lack) for name, lack in found if not self._may_be_empty(name)]
        if lacking:
            said = [f"{long_title(self._meant(name))}: {lack.message}" for name, lack in lacking]
            remedy = f"see: leafcast describe {self._short(lacking[0][0])}"
            raise ApiError(lacking[0][1].reason, "; ".join(said), remedy)

    def _check(self) -> None:
        """Raise ApiError if one that is named is not there, or none is."""
        if not self._is_of_content:
            return
        known = self._known()
        if not known and not self._asked:
            raise ApiError("NotFound", "there are no placements", "apply one first")
        for name in self._placements:
            if self._meant(name) not in known:
                kind = kind_of(name)
                said = f'{kind.resource}.{kind.group} "{bare_name(name)}" not found'
                remedy = f"there are: {listed(known)}" if known else "apply one first"
                raise ApiError("NotFound", said, remedy)

    def _known(self) -> Collection[str]:
        return self._controllers().translator.workloads.objects

    def _controllers(self) -> Controllers:
        return running(self._centre.controllers)


def _number(holds: Sequence[Form]) -> int | None:
    """At how many destinations these hold something; None if nobody can tell."""
    numbers = [hold.get("destinations") for hold in holds]
    return None if None in numbers else sum(number or 0 for number in numbers)
