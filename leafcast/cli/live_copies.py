"""`plan --live`: what edges hold of the objects that a plan is about, asked through the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leafcast.ask.object_readers import EdgeReader, NotFound
from leafcast.ask.resource_names import ResourceKind
from leafcast.ask.session import CallFailed
from leafcast.changes.asked_plans import PlannedChange
from relay.objects.differences import differing_fields
from relay.objects.merge import merge_applied, wish_of
from relay.objects.nulls import said_by
from relay.space_port import Object
from relay.waiting import some_at_once
from schemas.objects.objects import ObjectKey
from schemas.values.wording import some_of

ASKED_AT_ONCE = 16
NAMED_MAX = 3

Form = dict[str, Any]


@dataclass(slots=True)
class LiveCopies:
    """Tells of rows what is there; `silent` are the destinations without an answer, and why."""

    plan: PlannedChange
    silent: dict[str, str] = field(default_factory=dict)
    drifted: int = 0

    async def look(self, rows: Sequence[Form]) -> None:
        """Put into each row, under `live`, how the copy is."""
        by_path: dict[str, list[Form]] = {}
        for row in rows:
            by_path.setdefault(row["destination"], []).append(row)
        await some_at_once(list(by_path.items()), self._look_at, ASKED_AT_ONCE)

    async def _look_at(self, there: tuple[str, Sequence[Form]]) -> None:
        path, rows = there
        meant = await self.plan.objects(path)
        reader = EdgeReader(self.plan.session, path)
        for row in rows:
            key = ObjectKey(*row["key"])
            try:
                copy = None if path in self.silent else await _copy(reader, key)
            except CallFailed as failed:
                self._note(path, failed)
                copy = None
            for away in reader.away:
                self._note(path, away)
            silent = path in self.silent
            row["live"] = "no answer" if silent else self._told(key, copy, meant[key])

    def _note(self, path: str, failed: CallFailed) -> None:
        self.silent.setdefault(path, failed.message)

    def _told(self, key: ObjectKey, live: Object | None, meant: Form) -> str:
        before = meant["before"]
        wanted = before or meant["after"]
        if live is None:
            self.drifted += before is not None
            return "not there" if before is None else "drift: not there"
        if wanted is None or key.group_resource == ("", "secrets"):
            return "there"
        fields = _drift(live, wanted)
        if before is None:
            return (
                f"there already, other: {some_of(fields, NAMED_MAX)}" if fields else "there already"
            )
        if not fields:
            return "as meant"
        if not meant["kept"]:
            return f"left to its cluster: {some_of(fields, NAMED_MAX)}"
        self.drifted += 1
        return f"drift: {some_of(fields, NAMED_MAX)}"


async def _copy(reader: EdgeReader, key: ObjectKey) -> Object | None:
    kind = ResourceKind(key.group, key.resource, key.resource, bool(key.namespace))
    try:
        return await reader.get(kind, key.namespace, key.name)
    except NotFound:
        return None


def _drift(live: Mapping[str, Any], meant: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of a copy that are not as they are meant; what nobody said does not count."""
    there = said_by(live)
    return differing_fields(wish_of(there), wish_of(merge_applied(there, {}, said_by(meant))))
