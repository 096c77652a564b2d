"""The verbs of `leafcast plan`: a change is handed over in parts, planned, and told page by page.

A plan is what the centre keeps of it: the newest few, until they are ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from typing import Any

from controllers.centre import Controllers
from controllers.core.planning.dry_run import DryRun
from controllers.core.planning.losses import losses
from controllers.core.planning.plan import Plan, PlanRow
from controllers.planning import make_plan, weigh_change
from leafcast.ask.api import Api, ApiError
from leafcast.ask.plan_changes import (
    CHANGE_BYTES_MAX,
    BadChange,
    Written,
    read_change,
    words_of,
)
from leafcast.centre.centre import Centre, running
from relay.ports import BusBroken, SpaceError
from schemas.objects.objects import ObjectKey
from schemas.records.placements import title
from schemas.values.identity import NodePath

PLANS_MAX = 3
ROWS_MAX = 500
CAUGHT_UP_SECONDS_MAX = 5.0


@dataclass(slots=True)
class _Planning:
    """A plan under way: what was handed over, then what came of it."""

    parts: list[str] = field(default_factory=list)
    plan: Plan | None = None
    rows: Iterator[PlanRow] = field(default_factory=lambda: iter(()))
    # One question at a time: rows come in order.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PlanVerbs:
    """Answers about plans of this tree."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre
        self._numbers = count(1)
        self._plans: dict[int, _Planning] = {}

    async def begin(self) -> dict[str, Any]:
        """A new plan's number; the oldest gives way if there are many."""
        while len(self._plans) >= PLANS_MAX:
            del self._plans[min(self._plans)]
        number = next(self._numbers)
        self._plans[number] = _Planning()
        return {"plan": number}

    async def put(self, plan: int, part: str) -> dict[str, Any]:
        """Take the next part of a change: in all it is base64 of compressed JSON."""
        planning = self._of(plan)
        planning.parts.append(part)
        if sum(map(len, planning.parts)) > CHANGE_BYTES_MAX:
            del self._plans[plan]
            raise _too_large()
        return {}

    async def make(self, plan: int) -> dict[str, Any]:
        """Plan what was handed over; how much it is, and the first rows of each action."""
        planning = self._of(plan)
        async with planning.lock:
            controllers = running(self._centre.controllers)
            await _caught_up(controllers)
            workloads, inventory, named = _change("".join(planning.parts))
            planning.parts.clear()
            trial, made = await make_plan(controllers, workloads, inventory, named)
            planning.plan, planning.rows = made, made.rows()
            asked_for = await asyncio.to_thread(_asked_for, trial)
            summary = _summary(trial, made)
            return {**summary, "notes": [*summary["notes"], *asked_for]}

    async def weigh(self, plan: int) -> dict[str, Any]:
        """What the change would take of which placements: copies, at how many places.

        It is `large` if it would be held, were it only inferred.
        """
        planning = self._of(plan)
        async with planning.lock:
            controllers = running(self._centre.controllers)
            await _caught_up(controllers)
            workloads, inventory, _ = _change("".join(planning.parts))
            planning.parts.clear()
            found = await weigh_change(controllers, workloads, inventory)
        return {
            "losses": [
                {"placement": name, **asdict(loss), "large": loss.is_large}
                for name, loss in sorted(found.items())
            ]
        }

    async def rows(self, plan: int) -> dict[str, Any]:
        """The next rows; none if there are no more."""
        planning = self._of(plan)
        async with planning.lock:
            found = await asyncio.to_thread(lambda: list(islice(planning.rows, ROWS_MAX)))
        return {"rows": [_row_form(row) for row in found]}

    async def objects(self, plan: int, path: str) -> dict[str, Any]:
        """What the rows at a destination are about: as it is meant, as it would be.

        An object is null where it is not meant, or not known. `kept` is what is kept in step.
        """
        planning = self._of(plan)
        if planning.plan is None:
            raise _gone()
        where, made = NodePath.parse(path), planning.plan
        async with planning.lock:
            found = await asyncio.to_thread(lambda: list(made.objects(where)))
        return {
            "objects": [
                {
                    "key": words_of(it.key),
                    "before": it.before,
                    "after": it.after,
                    "kept": it.kept,
                }
                for it in found
            ]
        }

    async def end(self, plan: int) -> dict[str, Any]:
        """Forget a plan."""
        self._plans.pop(plan, None)
        return {}

    def _of(self, plan: int) -> _Planning:
        if plan not in self._plans:
            raise _gone()
        return self._plans[plan]


def register_planning(api: Api, centre: Centre) -> None:
    """Answer the verbs of plans about this tree."""
    verbs = PlanVerbs(centre)
    api.register("plan-begin", verbs.begin)
    api.register("plan-put", verbs.put)
    api.register("plan-make", verbs.make)
    api.register("plan-weigh", verbs.weigh)
    api.register("plan-rows", verbs.rows)
    api.register("plan-objects", verbs.objects)
    api.register("plan-end", verbs.end)


async def _caught_up(controllers: Controllers) -> None:
    """Wait until the ledger says what the spaces hold now: a plan begins there."""
    with suppress(TimeoutError, BusBroken, SpaceError):
        async with asyncio.timeout(CAUGHT_UP_SECONDS_MAX):
            await controllers.caught_up()
            return
    raise ApiError("NotReady", "the centre has not read its objects yet", "ask again in a moment")


def _change(text: str) -> tuple[Written, Written, list[ObjectKey]]:
    try:
        return read_change(text)
    except BadChange as error:
        raise ApiError("Invalid", f"it is no change: {error}", "use `leafcast plan`") from error


def _summary(trial: DryRun, made: Plan) -> dict[str, Any]:
    return {
        "placements": made.placements,
        "destinations": made.destinations,
        "counts": dict(made.counts),
        "touched": dict(trial.placements),
        "notes": list(trial.notes),
        "waves": {
            name: [{"name": wave, "members": members} for wave, members in waves]
            for name, waves in trial.waves.items()
        },
        "rows": [_row_form(row) for row in made.sample],
    }


def _asked_for(trial: DryRun) -> list[str]:
    """What of a change is asked for before it is made."""
    found = losses(trial.before, trial.after)
    return [
        f"{title(name)}: it takes away {loss}; apply and delete ask for that, or say "
        "--confirm-removals"
        for name, loss in sorted(found.items())
        if loss.is_large
    ]


def _row_form(row: PlanRow) -> dict[str, Any]:
    return {
        "destination": str(row.path),
        "key": words_of(row.key),
        "action": row.action,
        "why": row.why,
        "fields": list(row.fields),
    }


def _too_large() -> ApiError:
    message = f"a change has at most {CHANGE_BYTES_MAX} bytes"
    return ApiError("TooLarge", message, "plan some of its files at a time")


def _gone() -> ApiError:
    return ApiError("NotFound", "the centre does not know this plan any more", "plan again")
