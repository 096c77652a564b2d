"""What is gone, or goes: believed only if it did not go with the definition of its kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from controllers.core.translation.placements import Placements
from controllers.core.workloads.space import CONTROL_KINDS
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import ObjectChange, Space
from schemas.objects.objects import DEFINITIONS, GroupResource, Object, ObjectKey, is_terminating
from schemas.records.placements import KINDS, placement_key


class Vanishing:
    """Deletions that are not believed yet."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._changes: dict[ObjectKey, ObjectChange] = {}
        # Kinds that are not served any more: of what there was of them no deletion is told.
        self._lacking: set[GroupResource] = set()

    def doubted(self, change: ObjectChange, placements: Placements) -> Collection[str]:
        """The placements that have what goes by this change, if it is to be asked first why."""
        key = change.key
        goes = key.group_resource not in CONTROL_KINDS and is_terminating(change.object)
        if not (goes or change.kind == "deleted") or not self._definitions.may_vanish(key):
            return ()
        holding = placements.holding(key)
        if holding:
            self._changes[key] = change
        return holding

    def lacks(self, kind: GroupResource) -> None:
        """Take it that the space does not serve a kind, at least for a moment."""
        self._lacking.add(kind)

    def forget(self, key: ObjectKey) -> None:
        """Something newer was said of it."""
        self._changes.pop(key, None)

    async def judge(
        self, placements: Placements, names: frozenset[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Believe what was deleted, or that it went with its definition.

        Returns what is to be looked at now, and what cannot be decided as the space does not tell.
        """
        touched, undecided = await self._judge_kinds(placements)
        names |= touched
        gone = dict(self._changes)
        asked = _leaving(placements, names)
        asked |= {key: change.object for key, change in gone.items()}
        defined: dict[GroupResource, str | None] = {}
        for key, obj in asked.items():
            kind = self._definitions.kind_of(key)
            try:
                if kind not in defined:
                    defined[kind] = await self._definitions.made(kind)
            except SpaceError:
                undecided.update(placements.holding(key))
                continue
            change = gone.get(key)
            if self._changes.get(key) is not change:
                # Something newer was said of it meanwhile.
                continue
            self._changes.pop(key, None)
            if key in placements.workloads.undefined or not outlived(defined[kind], obj):
                names |= placements.vanished(key, stays=change is None)
            elif change is not None and change.kind == "deleted":
                names |= placements.deleted(key)
            elif change is not None:
                names |= placements.put(key, obj)
        return names - undecided, frozenset(undecided)

    async def _judge_kinds(self, placements: Placements) -> tuple[frozenset[str], set[str]]:
        """Take it that what there was of kinds without a definition went with it.

        Returns as `judge`.
        """
        touched: frozenset[str] = frozenset()
        undecided: set[str] = set()
        resolver = placements.workloads.resolver
        for kind in [*self._lacking]:
            if resolver.of_kind(kind):
                try:
                    defined = await self._definitions.made(kind)
                except SpaceError:
                    undecided.update(resolver.selecting_kinds([kind]))
                    continue
                for key in resolver.of_kind(kind) if defined is None else ():
                    touched |= placements.vanished(key)
            self._lacking.discard(kind)
        return touched, undecided


def _leaving(placements: Placements, names: frozenset[str]) -> dict[ObjectKey, Object]:
    """The placements among these that are deleted, and held where they are."""
    workloads = placements.workloads
    return {
        placement_key(name): workloads.leaving[name]
        for name in names & workloads.leaving.keys()
        if placements.in_force(name) and not workloads.is_undefined(name)
    }


_OURS = frozenset((kind.group, kind.resource) for kind in KINDS)


class Definitions:
    """What a space was seen to define, and whether it does so still."""

    def __init__(self, space: Space) -> None:
        self._space = space
        # By kind, the key of its definition.
        self._seen: dict[GroupResource, ObjectKey] = {}

    def saw(self, key: ObjectKey, obj: Mapping[str, Any]) -> None:
        """Take it that there is such an object; others than definitions are none of it."""
        spec = obj.get("spec") or {}
        if key.group_resource == DEFINITIONS and "group" in spec:
            self._seen[spec["group"], (spec.get("names") or {}).get("plural", "")] = key

    def may_vanish(self, key: ObjectKey) -> bool:
        """Whether an object may be gone for its definition's sake: built-in kinds have none."""
        if key.group_resource == DEFINITIONS:
            return True
        return key.group_resource in self._seen or key.group_resource in _OURS

    @staticmethod
    def kind_of(key: ObjectKey) -> GroupResource:
        """The kind to ask for: of a definition, the one that it defines."""
        if key.group_resource != DEFINITIONS:
            return key.group_resource
        resource, _, group = key.name.partition(".")
        return group, resource

    async def made(self, kind: GroupResource) -> str | None:
        """When the definition of a kind was made, "" if it has none; None if it is gone or goes.

        Raises SpaceError if the space cannot tell.
        """
        key = self._seen.get(kind, ObjectKey(*DEFINITIONS, "", f"{kind[1]}.{kind[0]}"))
        found = await self._space.get(key)
        if found is not None:
            return None if is_terminating(found) else made(found)
        if kind in self._seen:
            return None
        try:
            await self._space.list(*kind)
        except SpaceError as error:
            if error.reason != NOT_FOUND:
                raise
            return None
        return ""


def made(obj: Object) -> str:
    """When an object was made, as Kubernetes writes it; "" if that is not known."""
    return str((obj.get("metadata") or {}).get("creationTimestamp") or "")


def outlived(defined: str | None, obj: Object) -> bool:
    """Whether an object was deleted under the very definition by which it was made.

    A definition that is younger than the object took the place of another, with all it had.
    """
    return defined is not None and not defined > made(obj) > ""
