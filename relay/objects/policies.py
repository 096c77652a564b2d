"""What an object's annotations ask of whoever applies it at an edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.objects.annotations import (
    ADOPT,
    CONFLICTS,
    DELETE,
    EXISTING,
    FORCE,
    KEEP,
    ON_IMMUTABLE,
    ON_REMOVAL,
    OVERWRITE,
    RECREATE,
    choices_of,
)
from schemas.objects.objects import DEFINITIONS, NAMESPACES, ObjectKey

_POLICIES = (EXISTING, CONFLICTS, ON_IMMUTABLE, OVERWRITE, ON_REMOVAL)
_SNAPSHOT_GROUPS = ("snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io")
# What a cluster keeps of a user's data goes with these: volumes, and pictures taken of them.
_HOLD_DATA = frozenset(
    {
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        (_SNAPSHOT_GROUPS[0], "volumesnapshots"),
        (_SNAPSHOT_GROUPS[0], "volumesnapshotcontents"),
        (_SNAPSHOT_GROUPS[1], "volumegroupsnapshots"),
        (_SNAPSHOT_GROUPS[1], "volumegroupsnapshotcontents"),
    }
)
# What these hold is lost with them, and does not come back with a new one.
_NEVER_RECREATED = _HOLD_DATA | {NAMESPACES, DEFINITIONS}


class PolicyUnknown(ValueError):
    """An annotation says what is no policy; names it and the remedy, but not the object."""


@dataclass(frozen=True, slots=True)
class Policies:
    """What an object's annotations ask of whoever applies it."""

    # What becomes of an object that is there and not ours.
    existing: str = ADOPT
    # Whether fields are taken that others own.
    force: bool = False
    # Whether an object is replaced whose fields cannot be changed.
    recreate: bool = False
    # If not, it is made once, then left to its cluster, and stays there.
    overwrite: bool = True
    # What the object itself says becomes of it once it is wanted no more; "" if it says nothing.
    on_removal: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether they ask for nothing before the object is wanted no more."""
        said = (self.existing, self.force, self.recreate, self.overwrite)
        return said == (ADOPT, False, False, True)


def may_be_recreated(key: ObjectKey) -> bool:
    """Whether an object can be replaced without losing what it holds."""
    return key.group_resource not in _NEVER_RECREATED


def policies_of(key: ObjectKey, obj: Mapping[str, Any]) -> Policies:
    """Read an object's annotations; raises PolicyUnknown."""
    annotations = obj["metadata"].get("annotations") or {}
    said = {}
    for name in _POLICIES:
        choices = choices_of(name)
        value = said[name] = annotations.get(name) or ""
        if value and value not in choices:
            remedy = f"use {', '.join(choices[:-1])} or {choices[-1]}"
            raise PolicyUnknown(f"metadata.annotations[{name}]: {value!r}: {remedy}")
    return Policies(
        existing=said[EXISTING] or ADOPT,
        force=said[CONFLICTS] == FORCE,
        recreate=said[ON_IMMUTABLE] == RECREATE and may_be_recreated(key),
        overwrite=said[OVERWRITE] != "false",
        on_removal=said[ON_REMOVAL],
    )


def on_removal(key: ObjectKey, *words: str) -> str:
    """What becomes of an object that is wanted no more: the first word said, else by its kind."""
    return next(filter(None, words), KEEP if holds_data(key) else DELETE)


def holds_data(key: ObjectKey) -> bool:
    """Whether what an object stands for is data, which no new object of its name brings back."""
    return key.group_resource in _HOLD_DATA
