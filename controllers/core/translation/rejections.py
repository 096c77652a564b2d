"""What of the placements of one space was aborted or undone, and the contents that tell it.

The Rollout that steers a placement says it; of one that nothing steers the ledger remembers it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from controllers.core.rollout.rejection import NOTHING, Rejection, Wanted, counted
from controllers.core.translation.stored_arms import RejectedArms, StoredArm
from controllers.core.translation.translate import Translation
from controllers.core.workloads.space import Workloads
from schemas.api.rollout_status import RejectedObjects
from schemas.content.blobs import Reference
from schemas.objects.objects import NAMESPACES, ObjectKey
from schemas.values.identity import ContentHash


class Rejections:
    """By the names of placements."""

    def __init__(self, workloads: Workloads) -> None:
        self._workloads = workloads
        # What the ledger remembers.
        self.known: dict[str, Rejection] = {}
        # The objects that were found to differ.
        self.objects: dict[str, tuple[ObjectKey, ...]] = {}
        # Placements that nothing steers and a person lets have what was rejected.
        self._released: set[str] = set()
        # Contents, by address; None of what cannot be read.
        self._arms: dict[str, dict[ContentHash, StoredArm | None]] = {}
        self._is_dry_run = False

    def trial(self, workloads: Workloads) -> Rejections:
        """The same as it is now, to try a change on."""
        trial = Rejections(workloads)
        known = {name: self.of(name) for name in self._workloads.placements}
        trial.known = {name: found for name, found in known.items() if found is not None}
        trial._arms = self._arms
        trial._is_dry_run = True
        return trial

    def of(self, name: str) -> Rejection | None:
        """What of a placement is not to go out by itself."""
        rollouts, known = self._workloads.rollouts, self.known.get(name)
        if self._is_dry_run:
            return known
        if rollouts.of(name) is not None:
            return rollouts.rejection(name, known)
        return None if name in self._released else known

    def told(self, name: str) -> RejectedObjects | None:
        """What its status says of it; None if nothing is rejected."""
        if self.of(name) is None:
            return None
        state, objects = self._workloads.rollouts.state_of(name), self.objects.get(name)
        known = state.rejected if state is not None else None
        return counted(known or RejectedObjects(reason="Aborted"), objects)

    def arms(self, name: str) -> RejectedArms | None:
        """The contents that tell it; None if nothing is rejected, or they cannot be read."""
        found = self.of(name)
        if found is None:
            return None
        wish, target = self.arm(name, found.wish), self.arm(name, found.target)
        if wish is None or target is None:
            return None
        return RejectedArms(wish, target, self._needs)

    def is_unreadable(self, name: str) -> bool:
        """Whether nobody can tell what of a placement is to stay back."""
        return self.of(name) is not None and self.arms(name) is None

    def release(self, name: str) -> None:
        """Let a placement that nothing steers have all that its space wants."""
        if self._workloads.rollouts.of(name) is None and name in self.known:
            self._released.add(name)

    # Contents.

    def unread(self, name: str) -> list[Reference]:
        """The contents that are to be read from the store."""
        found, arms = self.of(name), self._arms.get(name, {})
        for address in arms.keys() - {it.address for it in found or ()}:
            del arms[address]
        return [it for it in found or () if it.address not in arms]

    def put_arm(self, name: str, root: Reference, arm: StoredArm | None) -> None:
        """Take what the store has of a content; None if that cannot be read."""
        if root == NOTHING and arm is None:
            arm = StoredArm({}, frozenset())
        self._arms.setdefault(name, {})[root.address] = arm

    def arm(self, name: str, root: Reference) -> StoredArm | None:
        """A content that was read."""
        return self._arms.get(name, {}).get(root.address)

    # What is issued.

    def note(self, name: str, said: Translation, wanted: Wanted) -> None:
        """Take what is wanted now, whoever gets it."""
        if said.wish is not None:
            self.put_arm(name, wanted.target, said.arm)
            self.put_arm(name, said.wish.root, said.wish.arm)
        if self._workloads.rollouts.of(name) is not None:
            self.objects[name] = wanted.rejected
        elif wanted.rejection is not None:
            self.known[name] = wanted.rejection
            self.objects[name] = wanted.rejected
        else:
            self._forget(name)

    def deleted(self, name: str) -> None:
        """Take it that a placement is gone; of one that is steered its Rollout says the rest."""
        if self._workloads.rollouts.of(name) is None:
            self._forget(name)
        self.objects.pop(name, None)

    def _forget(self, name: str) -> None:
        self._released.discard(name)
        for kept in (self.known, self.objects, self._arms):
            kept.pop(name, None)

    def _needs(self, keys: AbstractSet[ObjectKey]) -> AbstractSet[ObjectKey]:
        """The Namespaces and the definitions of objects."""
        names = {key.namespace for key in keys if key.namespace}
        spaces = {ObjectKey(*NAMESPACES, "", name) for name in names}
        return spaces | self._workloads.needed_by(keys)
