"""Each placement's delta says what its space wants now; gains go out before losses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from controllers.core.drafts import Draft
from controllers.core.recovery import Orphan, orphans
from controllers.core.removal import (
    READ_BACK,
    REMEDY,
    REMOVALS_MIN,
    Held,
    hold_objects,
    hold_records,
    named,
)
from controllers.core.translate import (
    CleanObjects,
    Entries,
    Issued,
    Translation,
    alternatives_of,
    bare_head,
    in_order,
    translate,
    withdrawal,
)
from controllers.following import Gathering, follow, revision_of
from controllers.issuing import Issuer
from controllers.ledger_notes import LedgerNotes
from controllers.ports import CentreRelay
from controllers.workloads import Workloads, slices_among
from relay.ports import Change, Clock, Object, Space
from schemas import codec
from schemas.chunks import read_manifest_chunk, read_root
from schemas.faults import Fault
from schemas.identity import MailKey
from schemas.objects import ObjectKey
from schemas.records import API_PLACEMENT, DeltaHead, Record, Source
from schemas.shape import ShapeError

READS_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class _Work:
    """One placement's next delta, and what becomes of it once it is in the ledger."""

    name: str
    draft: Draft
    gains: frozenset[ObjectKey]
    losses: frozenset[ObjectKey]
    translation: Translation | None


class PlacementTranslator:
    """The reconciler of one workload description space.

    `told` hears of placements that were looked at again; `renew` of a changed ledger; `sliced` of
    placements whose slices changed.
    """

    def __init__(self, issuer: Issuer, relay: CentreRelay, space: Space, clock: Clock) -> None:
        self.workloads = Workloads()
        self.faults: dict[str, tuple[Fault, ...]] = {}
        self.held: dict[str, str] = {}
        self.renew: Callable[[], None] = lambda: None
        self.told: Callable[[Iterable[str]], None] = lambda _: None
        self.sliced: Callable[[Iterable[str]], None] = lambda _: None
        self.notes = LedgerNotes()
        self._issuer = issuer
        self._relay = relay
        self._space = space
        self._clock = clock
        self._identity = ""
        self._issued: dict[str, Issued] = {}
        self._cleaned = CleanObjects()
        self._waiting: Gathering[str] = Gathering(clock)

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken."""
        self._identity = await self._space.identity()
        await self._read_ledger()
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(self._space, self._clock, self), name="workloads")
            group.create_task(self._translate_all(), name="translate")

    def source(self, name: str) -> Source:
        """The clear key of a placement of this space."""
        return Source(API_PLACEMENT, self._identity, "", name)

    def name_of(self, key: MailKey) -> str | None:
        """The placement of this space that a mail key means."""
        record = self._issuer.records.get(key)
        return record.source.name if record is not None and self._is_ours(record) else None

    def in_force(self, name: str) -> bool:
        """Whether the ledger holds the placement, and not its tombstone."""
        issued = self._issued.get(name)
        return issued is not None and not issued.head.deleted

    def accept_removals(self, name: str) -> None:
        """Let a placement's held removals pass, those that are held now and no later ones."""
        before = self._issued.get(name)
        entries = before.entries if before and before.entries is not None else {}
        self.workloads.accept(list(entries), name)
        self._waiting.add([name])

    def orphans(self) -> tuple[Orphan, ...]:
        """The placements in force that no object here stands for, and that nobody let go."""
        records = self._issuer.records
        held = {name for name in self.held if self.source(name).key in self.notes.recovered}
        names = {name for name in self._issued if name not in held}
        return orphans(records, self._identity, names | self.workloads.objects.keys())

    async def withdraw(self, orphan: Orphan) -> None:
        """Issue the tombstone of a placement that another space said."""
        head = self._issuer.records[orphan.key]
        assert isinstance(head, DeltaHead)
        await self._issuer.issue([withdrawal(await self._read(head))])
        self.notes.settle([orphan.key])
        self.renew()

    async def caught_up(self) -> None:
        """Wait until the ledger says what the space holds now."""
        await self._waiting.worked_off(await revision_of(self._space))

    def listed(self, objects: Mapping[ObjectKey, Object], revision: str) -> None:
        """Take a whole list of the space."""
        in_ledger = {
            name: issued.entries or {}
            for name, issued in self._issued.items()
            if not issued.head.deleted
        }
        self._waiting.add(self.workloads.listed(objects, in_ledger))
        self.sliced(slices_among(objects))
        self._waiting.read_to(revision)

    def changed(self, change: Change) -> None:
        """Take a change of the space."""
        if change.kind == "deleted":
            self._cleaned.forget(change.key)
        self._waiting.add(self.workloads.changed(change))
        self.sliced(slices_among([change.key]))
        self._waiting.read_to(change.revision)

    async def _translate_all(self) -> None:
        while True:
            names = await self._waiting.take()
            # All of one moment: else an object that moves could be lost before it is gained.
            works = [self._next(name) for name in sorted(names)]
            await self._issue([work for work in works if work is not None])
            self.told(names)

    async def _issue(self, works: list[_Work]) -> None:
        if not works:
            return
        drafts = in_order((work.draft, work.gains, work.losses) for work in works)
        by_slot = {work.draft.slot: work for work in works}
        for record in await self._issuer.issue(drafts):
            work, translation = by_slot[record.source.key], by_slot[record.source.key].translation
            assert isinstance(record, DeltaHead)
            entries = translation.entries if translation else {}
            kept = translation.kept if translation else frozenset()
            self._issued[work.name] = Issued(record, entries, kept)
        self.renew()

    def _next(self, name: str) -> _Work | None:
        """What to issue for a placement now; None if the ledger says it already."""
        before = self._issued.get(name)
        if before is not None and before.head.deleted:
            before = Issued(before.head, {})
        placement = self.workloads.placements.get(name)
        self.held.pop(name, None)
        if placement is None:
            return self._withdraw(name, before)
        selected = self.workloads.resolver.selection(name)
        translation = translate(
            bare_head(self.source(name), alternatives_of(placement.spec.location_selectors)),
            selected,
            self.workloads.resolver.objects,
            self._cleaned,
            before,
            self._hold(name, selected, before),
        )
        self.faults[name] = translation.faults
        if name not in self.held:
            self.notes.settle([self.source(name).key])
        if translation.draft is None:
            return None
        return _Work(name, translation.draft, translation.gains, translation.losses, translation)

    def _hold(
        self, name: str, selected: Mapping[ObjectKey, int], before: Issued | None
    ) -> frozenset[ObjectKey]:
        if before is None or not before.entries:
            return frozenset()
        inferred = self.workloads.inferred(name, before.entries.keys() - selected.keys())
        if not inferred:
            return frozenset()
        kinds = {(key.group, key.resource) for key in self.workloads.resolver.objects}
        if self.source(name).key in self.notes.recovered:
            held = Held(inferred, READ_BACK)
        else:
            held = hold_objects(before.entries.keys(), inferred, kinds)
        if held.items:
            self.held[name] = f"{held.reason}: {named(held.items)}; {REMEDY.format(name=name)}"
        return held.items

    def _withdraw(self, name: str, before: Issued | None) -> _Work | None:
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
            if before.entries is None or len(before.entries) > REMOVALS_MIN or held.items:
                reason = held.reason or "all its objects would go at once"
                said = f"the placement is not seen any more, and {reason}"
                self.held[name] = f"{said}; {REMEDY.format(name=name)}"
                return None
        self.notes.settle([before.head.source.key])
        losses = frozenset(before.entries or {})
        return _Work(name, withdrawal(before), frozenset(), losses, None)

    def _is_ours(self, record: Record) -> bool:
        source = record.source
        return source.api == API_PLACEMENT and source.space == self._identity

    async def _read_ledger(self) -> None:
        """Take in all that the ledger holds, many at once: each takes two round trips."""
        records = [record for record in self._issuer.records.values() if self._is_ours(record)]
        heads = [record for record in records if isinstance(record, DeltaHead)]
        for at in range(0, len(heads), READS_AT_ONCE):
            async with asyncio.TaskGroup() as group:
                reads = [group.create_task(self._read(h)) for h in heads[at : at + READS_AT_ONCE]]
            found = [read.result() for read in reads]
            self._issued |= {issued.head.source.name: issued for issued in found}

    async def _read(self, head: DeltaHead) -> Issued:
        """A placement as the ledger and the blobs behind it say it."""
        if head.deleted or not head.references:
            return Issued(head, {})
        entries: Entries | None = None
        kept = {reference.address for reference in head.references}
        try:
            plain = await self._relay.load(head.references[0])
            if plain is not None:
                chunks = read_root(plain).chunks
                kept |= {chunk.address for chunk in chunks}
                parts = [await self._relay.load(chunk) for chunk in chunks]
                entries = {
                    entry.key: entry for part in parts for entry in read_manifest_chunk(part or b"")
                }
        except (ShapeError, codec.CodecError):
            entries = None
        return Issued(head, entries, frozenset(kept) if entries is not None else frozenset())
