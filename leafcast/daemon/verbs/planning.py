"""The verbs of `leafcast plan`: a change is planned, and the plan is told page by page.

A plan is what the centre keeps of it: the newest few, until they are ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from typing import Any

from controllers.centre import Controllers
from controllers.core.planning.dry_run import DryRun
from controllers.core.planning.losses import losses
from controllers.core.planning.plan import Plan, PlanRow
from controllers.planning import make_plan, weigh_change
from leafcast.ask.api import ApiError, verb
from leafcast.ask.asked_space import key_form
from leafcast.centre.centre import Centre, running, within
from leafcast.changes.forms import BadBatch, TooLargeBatch, Written, read_change
from leafcast.daemon.verbs.explaining import destination_at
from leafcast.daemon.verbs.selection import not_read
from schemas.objects.objects import ObjectKey
from schemas.records.placements import title
from schemas.values.identity import NodePath

PLANS_MAX = 3
ROWS_MAX = 500
ROWS_AT_MAX = 5_000
CAUGHT_UP_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class _KeptPlan:
    """A plan that was made, and the rows of it that were not told yet."""

    plan: Plan
    rows: Iterator[PlanRow]
    # One question at a time: rows come in order.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class PlanVerbs:
    """Answers about plans of this tree."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre
        self._numbers = count(1)
        self._plans: dict[int, _KeptPlan] = {}

    @verb("plan-make")
    async def make(self, change: str) -> dict[str, Any]:
        """Plan a change: the plan's number, how much it is, and the first rows of each action.

        The oldest plan gives way if there are many.
        """
        controllers = running(self._centre.controllers)
        await _caught_up(controllers)
        trial, made = await make_plan(controllers, *await _read(change))
        asked_for = await asyncio.to_thread(_asked_for, trial)
        while len(self._plans) >= PLANS_MAX:
            del self._plans[min(self._plans)]
        number = next(self._numbers)
        self._plans[number] = _KeptPlan(made, made.rows())
        summary = _summary(trial, made)
        return {"plan": number, **summary, "notes": [*summary["notes"], *asked_for]}

    @verb("plan-weigh")
    async def weigh(self, change: str) -> dict[str, Any]:
        """What the change would take of which placements: copies, at how many places.

        It is `large` if it would be held, were it only inferred.
        """
        controllers = running(self._centre.controllers)
        await _caught_up(controllers)
        workloads, inventory, _ = await _read(change)
        found = await weigh_change(controllers, workloads, inventory)
        return {
            "losses": [
                {"placement": name, **asdict(loss), "large": loss.is_large}
                for name, loss in sorted(found.items())
            ]
        }

    @verb("plan-rows")
    async def rows(self, plan: int) -> dict[str, Any]:
        """The next rows; none if there are no more."""
        kept = self._of(plan)
        async with kept.lock:
            found = await asyncio.to_thread(lambda: list(islice(kept.rows, ROWS_MAX)))
        return {"rows": [_row_form(row) for row in found]}

    @verb("plan-rows-at")
    async def rows_at(self, plan: int, path: str) -> dict[str, Any]:
        """The rows of one destination, some of them if they are very many.

        Raises ApiError of a path at which no destination hangs, nor would hang.
        """
        kept, where = self._of(plan), NodePath.parse(path)
        async with kept.lock:
            found = await asyncio.to_thread(
                lambda: list(islice(kept.plan.rows_at(where), ROWS_AT_MAX))
            )
        if not found:
            destination_at(running(self._centre.controllers), where)
        return {"rows": [_row_form(row) for row in found]}

    @verb("plan-objects")
    async def objects(self, plan: int, path: str) -> dict[str, Any]:
        """What the rows at a destination are about: as it is meant, as it would be.

        An object is null where it is not meant, or not known. `kept` is what is kept in step.
        """
        kept, where = self._of(plan), NodePath.parse(path)
        async with kept.lock:
            found = await asyncio.to_thread(lambda: list(kept.plan.objects(where)))
        return {
            "objects": [
                {
                    "key": key_form(it.key),
                    "before": it.before,
                    "after": it.after,
                    "kept": it.kept,
                }
                for it in found
            ]
        }

    @verb("plan-end")
    async def end(self, plan: int) -> dict[str, Any]:
        """Forget a plan."""
        self._plans.pop(plan, None)
        return {}

    def _of(self, plan: int) -> _KeptPlan:
        if plan not in self._plans:
            message = "the centre does not know this plan any more"
            raise ApiError("NotFound", message, "plan again")
        return self._plans[plan]


async def _caught_up(controllers: Controllers) -> None:
    """Wait until the ledger says what the spaces hold now: a plan begins there."""
    if not await within(CAUGHT_UP_SECONDS_MAX, controllers.caught_up()):
        raise not_read()


async def _read(change: Any) -> tuple[Written, Written, list[ObjectKey]]:
    """A change as `read_change` has it; raises ApiError."""
    try:
        return await asyncio.to_thread(read_change, change)
    except TooLargeBatch as error:
        raise ApiError("TooLarge", str(error), "plan some of its files at a time") from error
    except BadBatch as error:
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
        "key": key_form(row.key),
        "action": row.action,
        "why": row.why,
        "fields": list(row.fields),
    }
