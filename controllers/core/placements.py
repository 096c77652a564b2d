"""What each placement of one space needs next: the translator's decisions, without its errands.

Nothing is decided before the space was listed whole. What only a list no longer shows is held where
that looks like blindness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from controllers.core.drafts import Draft
from controllers.core.notes import Notes
from controllers.core.reach import destinations
from controllers.core.recovery import Orphan, orphans
from controllers.core.removal import (
    READ_BACK,
    REMEDY,
    UNREADABLE,
    Held,
    hold_objects,
    hold_records,
    named,
    removals_max,
)
from controllers.core.translate import (
    CleanObjects,
    Issued,
    Translation,
    alternatives_of,
    bare_head,
    in_order,
    translate,
    withdrawal,
)
from controllers.core.workloads import Object, Workloads
from schemas.faults import Fault
from schemas.identity import MailKey
from schemas.objects import ObjectKey
from schemas.records import API_PLACEMENT, DeltaHead, Record, Source

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Work:
    """One placement's next delta, and what becomes of it once it is in the ledger."""

    name: str
    draft: Draft
    gains: frozenset[ObjectKey]
    losses: frozenset[ObjectKey]
    translation: Translation | None


class Placements:
    """The placements of the space of one identity; `issued` is what the ledger holds of them.

    `ledger` says which destinations there are. `held` says by name why removals wait, `faults` what
    cannot be sent. `listed` and the changes
    after it return the placements to look at again.
    """

    def __init__(
        self,
        identity: str,
        issued: Mapping[str, Issued],
        notes: Notes,
        ledger: Mapping[MailKey, Record] = MappingProxyType({}),
    ) -> None:
        self.identity = identity
        self.notes = notes
        self.workloads = Workloads()
        self.faults: dict[str, tuple[Fault, ...]] = {}
        self.held: dict[str, str] = {}
        self.known = False
        self._issued = dict(issued)
        self._ledger = ledger
        self._cleaned = CleanObjects()

    # What the space says.

    def believes(self, identity: str) -> bool:
        """Whether a list of the space of this identity says what is there."""
        return identity == self.identity

    def listed(
        self, objects: Mapping[ObjectKey, Object], kind: tuple[str, str] | None = None
    ) -> frozenset[str]:
        """Take all objects of the space, or all of one kind: group and resource."""
        in_ledger = {
            name: issued.entries or {}
            for name, issued in self._issued.items()
            if not issued.head.deleted
        }
        self.known = True
        touched = self.workloads.listed(objects, in_ledger, kind)
        self._cleaned.keep_only(self.workloads.resolver.objects)
        return touched

    def put(self, key: ObjectKey, obj: Object) -> frozenset[str]:
        """Take an object's present state, as an unbroken watch says it."""
        return self.workloads.put(key, obj)

    def deleted(self, key: ObjectKey) -> frozenset[str]:
        """Take it that an object is gone: an unbroken watch said so."""
        self._cleaned.forget(key)
        return self.workloads.deleted(key)

    def accept(self, name: str) -> frozenset[str]:
        """Let a placement's held removals pass, those that are held now and no later ones."""
        before = self._issued.get(name)
        entries = before.entries if before and before.entries is not None else {}
        self.workloads.accept(list(entries), name)
        return frozenset({name})

    # What is issued.

    def next(self, names: Iterable[str]) -> list[Work]:
        """What to issue for these, in the order in which it is to go out.

        All of one moment: else an object that moves could be lost before it is gained.
        """
        if not self.known:
            return []
        works = [work for name in sorted(names) if (work := self._next(name)) is not None]
        drafts = in_order((work.draft, work.gains, work.losses) for work in works)
        by_slot = {work.draft.slot: work for work in works}
        return [by_slot[draft.slot] for draft in drafts]

    def issued(self, works: Sequence[Work], records: Sequence[Record]) -> None:
        """Take what is in the ledger now, a record for each of these."""
        for work, record in zip(works, records, strict=True):
            assert isinstance(record, DeltaHead)
            said = work.translation
            self._issued[work.name] = (
                Issued(record, said.entries, said.kept, said.lost) if said else Issued(record, {})
            )

    def forget_old(self) -> None:
        """Let go of tombstones that the ledger holds no more."""
        self._issued = {
            name: issued
            for name, issued in self._issued.items()
            if not issued.head.deleted or issued.head.source.key in self._ledger
        }

    # What there is.

    def source(self, name: str) -> Source:
        """The clear key of a placement of this space."""
        return Source(API_PLACEMENT, self.identity, "", name)

    def is_ours(self, record: Record) -> bool:
        """Whether a record is of a placement of this space."""
        return record.source.api == API_PLACEMENT and record.source.space == self.identity

    def in_force(self, name: str) -> bool:
        """Whether the ledger holds the placement, and not its tombstone."""
        issued = self._issued.get(name)
        return issued is not None and not issued.head.deleted

    def orphans(self, records: Mapping[MailKey, Record]) -> tuple[Orphan, ...]:
        """The placements in force that no object here stands for, and that nobody let go."""
        held = {name for name in self.held if self.source(name).key in self.notes.recovered}
        names = {name for name in self._issued if name not in held}
        shown = names | self.workloads.objects.keys()
        return orphans(records, self.identity, shown, self.notes.spaces)

    # Deciding.

    def _next(self, name: str) -> Work | None:
        """What to issue for a placement now; None if the ledger says it already."""
        before = self._issued.get(name)
        if before is not None and before.head.deleted:
            before = Issued(before.head, {})
        placement = self.workloads.placements.get(name)
        self.held.pop(name, None)
        if placement is None:
            return self._withdraw(name, before)
        if self._unreadable(name, before):
            return None
        selected = self.workloads.resolver.selection(name)
        translation = translate(
            bare_head(self.source(name), alternatives_of(placement.spec.location_selectors)),
            selected,
            self.workloads.resolver.objects,
            self._cleaned,
            before,
            self._hold(name, selected, before),
        )
        self.faults[name] = translation.faults + self.workloads.renatured.faults(selected)
        if name not in self.held:
            self.notes.settle([self.source(name).key])
        if translation.draft is None:
            return None
        return Work(name, translation.draft, translation.gains, translation.losses, translation)

    def _unreadable(self, name: str, before: Issued | None) -> bool:
        """Whether nobody can tell what the placement would lose: then it stays as it is."""
        if before is None or before.entries is not None or self.workloads.is_accepted(name):
            return False
        self.held[name] = f"{UNREADABLE}; {REMEDY.format(name=name)}"
        return True

    def _hold(
        self, name: str, selected: Mapping[ObjectKey, int], before: Issued | None
    ) -> frozenset[ObjectKey]:
        if before is None or not before.entries:
            return frozenset()
        inferred = self.workloads.inferred(name, before.entries.keys() - selected.keys())
        if not inferred:
            return frozenset()
        shown = self.workloads.resolver.objects.keys()
        kinds = {(key.group, key.resource) for key in shown}
        if self.source(name).key in self.notes.recovered:
            held = Held(inferred, READ_BACK)
        else:
            held = hold_objects(before.entries.keys(), inferred, kinds, shown)
        if held.items:
            self.held[name] = f"{held.reason}: {named(held.items)}; {REMEDY.format(name=name)}"
        # What stays needs its definition, which no object that is seen asks for any more.
        return held.items | self.workloads.needed_by(held.items)

    def _withdraw(self, name: str, before: Issued | None) -> Work | None:
        """Issue a tombstone, unless the placement is only invalid, or nobody said it is gone."""
        self.faults.pop(name, None)
        if before is None or before.head.deleted or name in self.workloads.invalid:
            return None
        unseen = self.workloads.unseen_placements
        if name in unseen:
            known = [item for item in self._issued if not self._issued[item].head.deleted]
            if before.head.source.key in self.notes.recovered:
                remedy = f"`leafcast adopt {name}` or `leafcast withdraw {name}`"
                self.held[name] = f"it was {READ_BACK}, and no object says it; {remedy}"
                return None
            seen_any = bool(self.workloads.objects)
            held = hold_records(known, unseen, "placements", seen_any=seen_any)
            reason = held.reason or self._all_of(before)
            if reason:
                said = f"the placement is not seen any more, and {reason}"
                self.held[name] = f"{said}; {REMEDY.format(name=name)}"
                return None
        self.notes.settle([before.head.source.key])
        losses = frozenset(before.entries or {})
        return Work(name, withdrawal(before), frozenset(), losses, None)

    def _all_of(self, before: Issued) -> str:
        """Why a placement is too large to go by inference; empty if it is not."""
        if before.entries is None or len(before.entries) > removals_max(len(before.entries)):
            return "all its objects would go at once"
        count = len(destinations(self._ledger.values(), before.head.alternatives))
        return f"all its {count} destinations would lose it" if count > removals_max(count) else ""
