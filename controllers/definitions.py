"""Whether kinds are still defined in a space: what goes with its definition, nobody deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.ports import NOT_FOUND, Space, SpaceError
from schemas.objects.objects import DEFINITIONS, ObjectKey
from schemas.records.placements import KINDS

KindName = tuple[str, str]
_OURS = frozenset((kind.group, kind.resource) for kind in KINDS)


class Definitions:
    """What a space was seen to define, and whether it does so still."""

    def __init__(self, space: Space) -> None:
        self._space = space
        # By kind, the key of its definition.
        self._seen: dict[KindName, ObjectKey] = {}

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
    def kind_of(key: ObjectKey) -> KindName:
        """The kind to ask for: of a definition, the one that it defines."""
        if key.group_resource != DEFINITIONS:
            return key.group_resource
        resource, _, group = key.name.partition(".")
        return group, resource

    async def made(self, kind: KindName) -> str | None:
        """When the definition of a kind was made, "" if it has none; None if it is gone or goes.

        Raises SpaceError if the space cannot tell.
        """
        key = self._seen.get(kind, ObjectKey(*DEFINITIONS, "", f"{kind[1]}.{kind[0]}"))
        found = await self._space.get(key)
        if found is not None:
            return None if _metadata(found).get("deletionTimestamp") else made(found)
        if kind in self._seen:
            return None
        try:
            await self._space.list(*kind)
        except SpaceError as error:
            if error.reason != NOT_FOUND:
                raise
            return None
        return ""


def made(obj: Mapping[str, object]) -> str:
    """When an object was made, as Kubernetes writes it; "" if that is not known."""
    return str(_metadata(obj).get("creationTimestamp") or "")


def outlived(defined: str | None, obj: Mapping[str, object]) -> bool:
    """Whether an object was deleted under the very definition by which it was made.

    A definition that is younger than the object took the place of another, with all it had.
    """
    return defined is not None and not defined > made(obj) > ""


def _metadata(obj: Mapping[str, object]) -> Mapping[str, object]:
    found = obj.get("metadata")
    return found if isinstance(found, Mapping) else {}
