"""What a deletion is of, as command and daemon say it to each other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from leafcast.ask.resource_names import ResourceKind
from relay.space_port import Object
from schemas.objects.objects import ObjectKey, apply_order
from schemas.values.groups import GROUP, PATH_ANNOTATION, ROLLOUTS

SYNC_TARGETS = (GROUP, "synctargets")

Fate = Literal["", "freeze", "let-go"]
"""What becomes of a placement whose Rollout is deleted under way."""


@dataclass(frozen=True, slots=True)
class ObjectToDelete:
    """An object to be deleted, which is this one and no later namesake."""

    kind: ResourceKind
    key: ObjectKey
    uid: str
    # The place of its node, of a SyncTarget.
    path: str = ""

    @staticmethod
    def of(kind: ResourceKind, obj: Object) -> ObjectToDelete:
        """This object of that kind."""
        metadata = obj["metadata"]
        key = kind.key(metadata.get("namespace", ""), metadata["name"])
        says = kind.group_resource == SYNC_TARGETS
        path = str((metadata.get("annotations") or {}).get(PATH_ANNOTATION, "")) if says else ""
        return ObjectToDelete(kind, key, str(metadata["uid"]), path)

    @property
    def rank(self) -> int:
        """What leans on others goes before them."""
        return -apply_order(self.kind.group, self.kind.resource)


def rollouts_of(targets: Iterable[ObjectToDelete]) -> list[str]:
    """The names of Rollouts among these."""
    return [it.key.name for it in targets if it.kind.group_resource == ROLLOUTS]
