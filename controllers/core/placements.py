"""What each placement of one space needs next: the translator's decisions, without its errands.

Nothing is decided before the space was listed whole. What only a list no longer shows is held where
that looks like blindness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from controllers.core.drafts import Draft
from controllers.core.reach import count_destinations
from controllers.core.reading import Reading
from controllers.core.removal import (
    REMEDY,
    UNREADABLE,
    hold_objects,
    hold_records,
    named,
    removals_max,
)
from controllers.core.selection import clauses_of
from controllers.core.translate import (
    CleanObjects,
    Entries,
    Issued,
    ReturnRules,
    Translation,
    alternatives_of,
    bare_head,
    translate,
)
from controllers.core.workloads import Object, Workloads
from schemas.chunks import read_manifest_chunk, read_root
from schemas.faults import Fault
from schemas.identity import MailKey
from schemas.objects import ObjectKey
from schemas.placements import bare_name, kind_of, placement_of
from schemas.records import (
    DeltaHead,
    Record,
    Source,
    decode_body,
)
from schemas.refusals import RecordRefused, WireRefused

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Work:
    """One placement's next delta, once it is in the ledger; none if it is to be deleted."""

    name: str
    key: MailKey
    translation: Translation | None

    @property
    def draft(self) -> Draft | None:
        return self.translation.draft if self.translation is not None else None


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
        ledger: Mapping[MailKey, Record] = MappingProxyType({}),
    ) -> None:
        self.identity = identity
        self.workloads = Workloads()
        self.faults: dict[str, tuple[Fault, ...]] = {}
        self.held: dict[str, str] = {}
        self.known = False
        self._issued = dict(issued)
        self._ledger = ledger
        resolver = self.workloads.resolver
        self._cleaned = CleanObjects(resolver.customizers, self.workloads.transforms)

    def rehearsal(
        self, objects: Mapping[ObjectKey, Object], ledger: Mapping[MailKey, Record]
    ) -> Placements:
        """The same of its own, to try a change on; `objects` are all that the space shows now."""
        trial = Placements(self.identity, self._issued, ledger)
        trial.listed(objects)
        trial.workloads.like(self.workloads)
        return trial

    # What the space says.

    def believes(self, identity: str) -> bool:
        """Whether a list of the space of this identity says what is there."""
        return identity == self.identity

    def listed(
        self, objects: Mapping[ObjectKey, Object], kind: tuple[str, str] | None = None
    ) -> frozenset[str]:
        """Take all objects of the space, or all of one kind: group and resource."""
        in_ledger = {name: issued.entries or {} for name, issued in self._issued.items()}
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
        """What to issue and delete for these, all of one moment."""
        if not self.known:
            return []
        return [work for name in sorted(names) if (work := self._next(name)) is not None]

    def issued(self, works: Sequence[Work], records: Iterable[Record]) -> None:
        """Take what is in the ledger now: a record for each of these that has a draft, in order."""
        stored = iter(records)
        for work in works:
            said = work.translation
            if said is None:
                del self._issued[work.name]
                continue
            record = next(stored)
            assert isinstance(record, DeltaHead)
            self._issued[work.name] = Issued(
                record, said.gates, said.entries, said.kept, said.lost, said.collectors
            )

    # What there is.

    def source(self, name: str) -> Source:
        """The clear key of a placement of this space."""
        return Source(kind_of(name).api, self.identity, "", bare_name(name))

    def is_ours(self, record: Record) -> bool:
        """Whether a record is of a placement of this space."""
        return placement_of(record.source) is not None and record.source.space == self.identity

    def standing(self) -> dict[str, Issued]:
        """All that the ledger holds, by name."""
        return dict(self._issued)

    def in_force(self, name: str) -> bool:
        """Whether the ledger holds the placement."""
        return name in self._issued

    def entries(self, name: str) -> Entries:
        """The objects of a placement as the ledger has them; none of what cannot be read."""
        issued = self._issued.get(name)
        return issued.entries or {} if issued is not None else {}

    # Deciding.

    def _next(self, name: str) -> Work | None:
        """What to issue for a placement now; None if the ledger says it already."""
        before = self._issued.get(name)
        placement = self.workloads.placements.get(name)
        self.held.pop(name, None)
        if placement is None:
            return self._withdraw(name, before)
        if self._unreadable(name, before):
            return None
        resolver = self.workloads.resolver
        selected = resolver.selection(name)
        if self.workloads.frozen(name):
            return None
        translation = translate(
            bare_head(self.source(name), alternatives_of(placement.spec)),
            selected,
            resolver.objects,
            self._cleaned,
            before,
            self._hold(name, selected, before),
            ReturnRules(self.workloads.collecting(name), clauses_of(placement.spec)),
        )
        self.faults[name] = translation.faults + self.workloads.renatured.faults(selected)
        if translation.draft is None:
            return None
        return Work(name, self.source(name).key, translation)

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
        held = hold_objects(before.entries.keys(), inferred, kinds, shown)
        if held.items:
            self.held[name] = f"{held.reason}: {named(held.items)}; {REMEDY.format(name=name)}"
        # What stays needs its definition, which no object that is seen asks for any more.
        return held.items | self.workloads.needed_by(held.items)

    def _withdraw(self, name: str, before: Issued | None) -> Work | None:
        """Delete it, unless the placement is only invalid, or nobody said that it is gone."""
        self.faults.pop(name, None)
        if before is None or name in self.workloads.invalid:
            return None
        unseen = self.workloads.unseen_placements
        if name in unseen:
            seen_any = bool(self.workloads.objects)
            held = hold_records([*self._issued], unseen, "placements", seen_any=seen_any)
            reason = held.reason or self._all_of(before)
            if reason:
                said = f"the placement is not seen any more, and {reason}"
                self.held[name] = f"{said}; {REMEDY.format(name=name)}"
                return None
        return Work(name, before.head.source.key, None)

    def _all_of(self, before: Issued) -> str:
        """Why a placement is too large to go by inference; empty if it is not."""
        if before.entries is None or len(before.entries) > removals_max(len(before.entries)):
            return "all its objects would go at once"
        count = count_destinations(self._ledger.values(), before.head.alternatives)
        return f"all its {count} destinations would lose it" if count > removals_max(count) else ""


def read_issued(head: DeltaHead, body: bytes) -> Reading[Issued]:
    """A placement as the ledger and the blobs behind it say it; `lost` is left to be filled in."""
    try:
        decoded = decode_body(head, body)
    except RecordRefused:
        return Issued(head, (), None)
    gates, collectors = decoded.gates, decoded.collectors
    root = gates[-1].arm
    if root is None:
        return Issued(head, gates, {}, collectors=collectors)
    try:
        found = yield (root,)
        chunks = read_root(found[root.address]).chunks
        parts = yield chunks
        entries = {
            entry.key: entry
            for chunk in chunks
            for entry in read_manifest_chunk(parts[chunk.address])
        }
    except (KeyError, WireRefused):
        return Issued(head, gates, None)
    kept = frozenset({root.address, *(chunk.address for chunk in chunks)})
    return Issued(head, gates, entries, kept, collectors=collectors)
