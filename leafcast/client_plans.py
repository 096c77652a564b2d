"""A plan as `leafcast.client` gives it: how far a change reaches, and each copy on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from leafcast.changes.asked_plans import PlannedChange
from leafcast.changes.wishes import PlannedWrite
from leafcast.client_values import Difference
from schemas.objects.objects import ObjectKey
from schemas.records.placements import short_title
from schemas.values.identity import NodePath


@dataclass(frozen=True, slots=True)
class CopyChange:
    """What would become of an object at a destination, and why.

    `action` is a word that stays: `delete`, `keep`, `orphan`, `held`, `frozen`, `create`, `update`,
    or `none`. `fields` are those it is about.
    """

    path: NodePath
    key: ObjectKey
    action: str
    why: str
    fields: Sequence[str]

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> CopyChange:
        path, key = NodePath.parse(form["destination"]), ObjectKey(*form["key"])
        return cls(path, key, form["action"], form["why"], tuple(form["fields"]))


class ChangePlan:
    """What a change would do at every destination; nothing of it is written.

    The centre keeps it for as long as it is open.
    """

    def __init__(self, made: PlannedChange, writes: Sequence[PlannedWrite]) -> None:
        self._made = made
        # What it would make of the objects at the centre.
        self.differences = tuple(map(Difference.of, writes))
        # How many placements and destinations it concerns.
        self.placements: int = made.summary["placements"]
        self.destinations: int = made.summary["destinations"]
        # By action: how many copies.
        self.counts: Mapping[str, int] = dict(made.summary["counts"])
        # By placement under a rollout: its waves in order, and how many destinations each has.
        self.waves: Mapping[str, Sequence[tuple[str, int]]] = {
            short_title(name): tuple((it["name"], it["members"]) for it in waves)
            for name, waves in made.summary["waves"].items()
        }
        self.notes: Sequence[str] = tuple(made.summary["notes"])

    async def copies(self) -> AsyncIterator[CopyChange]:
        """What becomes of each copy, removals first; they can be asked for once."""
        async for form in self._made.rows():
            yield CopyChange.of(form)
