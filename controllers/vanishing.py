"""What is gone, or goes: believed only if it did not go with the definition of its kind."""

from __future__ import annotations

from collections.abc import Collection

from controllers.core.translation.placements import Placements
from controllers.core.workloads.space import CONTROL_KINDS, Object, is_terminating
from controllers.definitions import Definitions, KindName, outlived
from relay.ports import ObjectChange, SpaceError
from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_key


class Vanishing:
    """Deletions that are not believed yet."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._changes: dict[ObjectKey, ObjectChange] = {}
        # Kinds that are not served any more: of what there was of them no deletion is told.
        self._lacking: set[KindName] = set()

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

    def lacks(self, kind: KindName) -> None:
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
        defined: dict[KindName, str | None] = {}
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
