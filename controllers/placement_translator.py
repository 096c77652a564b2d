"""Each placement's delta says what its space wants now; gains go out before losses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from controllers.core.notes import Notes
from controllers.core.placements import Placements
from controllers.core.recovery import Orphan
from controllers.core.translate import Entries, Issued, withdrawal
from controllers.core.workloads import Workloads, slices_among
from controllers.following import Gathering, follow, revision_of
from controllers.issuing import Issuer
from controllers.ports import CentreRelay
from relay.ports import Change, Clock, Object, Space
from schemas import codec
from schemas.chunks import read_manifest_chunk, read_root
from schemas.faults import Fault
from schemas.identity import MailKey
from schemas.objects import ObjectKey
from schemas.records import DeltaHead, Source
from schemas.shape import ShapeError

READS_AT_ONCE = 64


class PlacementTranslator:
    """The reconciler of one workload description space; what it decides is in `Placements`.

    `told` hears of placements that were looked at again; `renew` of a changed ledger; `sliced` of
    placements whose slices changed.
    """

    def __init__(self, issuer: Issuer, relay: CentreRelay, space: Space, clock: Clock) -> None:
        self.renew: Callable[[], None] = lambda: None
        self.told: Callable[[Iterable[str]], None] = lambda _: None
        self.sliced: Callable[[Iterable[str]], None] = lambda _: None
        self.notes = Notes()
        self._issuer = issuer
        self._relay = relay
        self._space = space
        self._clock = clock
        self._placements = Placements("", {}, self.notes)
        self._waiting: Gathering[str] = Gathering(clock)

    @property
    def workloads(self) -> Workloads:
        """What the space holds."""
        return self._placements.workloads

    @property
    def known(self) -> bool:
        """Whether the space was listed."""
        return self._placements.known

    @property
    def held(self) -> Mapping[str, str]:
        """Why removals of placements wait for someone's word, by name."""
        return self._placements.held

    @property
    def faults(self) -> Mapping[str, tuple[Fault, ...]]:
        """What of placements cannot be sent, by name."""
        return self._placements.faults

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken, and SpaceError if the space is another."""
        identity = await self._space.identity()
        placements = Placements(identity, {}, self.notes)
        known = await self._read_ledger(placements)
        self._placements = Placements(identity, known, self.notes, self._issuer.records)
        async with asyncio.TaskGroup() as group:
            group.create_task(follow(self._space, self._clock, self), name="workloads")
            group.create_task(self._translate_all(), name="translate")

    def source(self, name: str) -> Source:
        """The clear key of a placement of this space."""
        return self._placements.source(name)

    def name_of(self, key: MailKey) -> str | None:
        """The placement of this space that a mail key means."""
        record = self._issuer.records.get(key)
        ours = record is not None and self._placements.is_ours(record)
        return record.source.name if record is not None and ours else None

    def in_force(self, name: str) -> bool:
        """Whether the ledger holds the placement, and not its tombstone."""
        return self._placements.in_force(name)

    def forget_old(self) -> None:
        """Let go of what is gone and in the ledger no more."""
        self._placements.forget_old()

    def accept_removals(self, name: str) -> None:
        """Let a placement's held removals pass, those that are held now and no later ones."""
        self._waiting.add(self._placements.accept(name))

    def orphans(self) -> tuple[Orphan, ...]:
        """The placements in force that no object here stands for, and that nobody let go."""
        return self._placements.orphans(self._issuer.records)

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

    def believes(self, identity: str) -> bool:
        """Whether a list of the space of this identity says what is there."""
        return self._placements.believes(identity)

    def listed(self, objects: Mapping[ObjectKey, Object], revision: str) -> None:
        """Take a whole list of the space."""
        self._waiting.add(self._placements.listed(objects))
        self.sliced(slices_among(objects))
        self._waiting.read_to(revision)

    def changed(self, change: Change) -> None:
        """Take a change of the space."""
        if change.kind == "deleted":
            self._waiting.add(self._placements.deleted(change.key))
        else:
            self._waiting.add(self._placements.put(change.key, change.object))
        self.sliced(slices_among([change.key]))
        self._waiting.read_to(change.revision)

    async def _translate_all(self) -> None:
        while True:
            names = await self._waiting.take()
            works = self._placements.next(names)
            if works:
                records = await self._issuer.issue([work.draft for work in works])
                self._placements.issued(works, records)
                self.renew()
            self.told(names)

    async def _read_ledger(self, placements: Placements) -> dict[str, Issued]:
        """Take in all that the ledger holds, many at once: each takes two round trips."""
        records = [record for record in self._issuer.records.values() if placements.is_ours(record)]
        heads = [record for record in records if isinstance(record, DeltaHead)]
        known: dict[str, Issued] = {}
        for at in range(0, len(heads), READS_AT_ONCE):
            async with asyncio.TaskGroup() as group:
                reads = [group.create_task(self._read(h)) for h in heads[at : at + READS_AT_ONCE]]
            found = [read.result() for read in reads]
            known |= {issued.head.source.name: issued for issued in found}
        return known

    async def _read(self, head: DeltaHead) -> Issued:
        """A placement as the ledger and the blobs behind it say it.

        Of one that was read back without its body no one holds anything: it is issued anew.
        """
        bare = head.source.key in self._issuer.ledger.bare
        if head.deleted or not head.references or bare:
            return Issued(head, {}, bare=bare)
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
        if entries is None:
            return Issued(head, None)
        lost = self._relay.lacks(entry.reference.address for entry in entries.values())
        return Issued(head, entries, frozenset(kept), lost)
