"""What an object's annotations ask of whoever applies it at an edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.objects import CRD_GROUP, ObjectKey

EXISTING = "leafcast.io/existing"
CONFLICTS = "leafcast.io/conflicts"
ON_IMMUTABLE = "leafcast.io/on-immutable"
OVERWRITE = "edge.kubestellar.io/downsync-overwrite"
ADOPT, REFUSE, LEAVE = "adopt", "refuse", "leave"
FORCE, RECREATE, FAIL = "force", "recreate", "fail"
_CHOICES: Mapping[str, tuple[str, ...]] = {
    EXISTING: (ADOPT, REFUSE, LEAVE),
    CONFLICTS: (FAIL, FORCE),
    ON_IMMUTABLE: (FAIL, RECREATE),
    OVERWRITE: ("true", "false"),
}
# What these hold is lost with them, and does not come back with a new one.
_NEVER_RECREATED = frozenset(
    {
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        (CRD_GROUP, "customresourcedefinitions"),
    }
)


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


def may_be_recreated(key: ObjectKey) -> bool:
    """Whether an object can be replaced without losing what it holds."""
    return key.group_resource not in _NEVER_RECREATED


def policies_of(key: ObjectKey, obj: Mapping[str, Any]) -> Policies:
    """Read an object's annotations; raises PolicyUnknown."""
    annotations = obj["metadata"].get("annotations") or {}
    said = {}
    for name, choices in _CHOICES.items():
        value = said[name] = annotations.get(name) or choices[0]
        if value not in choices:
            remedy = f"use {', '.join(choices[:-1])} or {choices[-1]}"
            raise PolicyUnknown(f"metadata.annotations[{name}]: {value!r}: {remedy}")
    return Policies(
        existing=said[EXISTING],
        force=said[CONFLICTS] == FORCE,
        recreate=said[ON_IMMUTABLE] == RECREATE and may_be_recreated(key),
        overwrite=said[OVERWRITE] == "true",
    )
