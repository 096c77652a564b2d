"""The newest snapshots a node verified, and what they make of the records that it holds.

A snapshot is read (its blobs come), then every record held is judged by it, then it is reached:
only from then on is taken away what it, and what is settled under it, no longer wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from relay.core.records.accepted import AcceptedRecord, Version
from relay.core.records.snapshot import ListedAt, SnapshotInterest, SnapshotListing, SnapshotView
from relay.core.records.snapshot_reading import SnapshotReading, WholeReading
from relay.core.records.verdict import HeldRecord, RecordAcceptance, RecordStanding, admit, standing
from schemas.content.blobs import Reference
from schemas.records.records import Profile
from schemas.records.snapshots import (
    NO_SNAPSHOT,
    EntryKey,
    SnapshotRank,
    SnapshotRecord,
    SnapshotRefused,
    mail_key_of,
    path_entry_key,
)
from schemas.values.identity import KEYS_KEY, ContentHash, MailKey, NodePath

REACH_SECONDS_MAX = 60.0
"""So long a snapshot waits for what it lacks; then it is reached without, and that is reported."""


@dataclass(frozen=True, slots=True)
class VerifiedSnapshot:
    """A snapshot whose signature was checked, and the message that said it."""

    record: SnapshotRecord
    data: bytes
    payload_hash: bytes
    version: Version

    @property
    def generation(self) -> int:
        return self.record.generation

    @property
    def rank(self) -> SnapshotRank:
        return self.record.rank


@dataclass(slots=True)
class Standings:
    """What one snapshot makes of the records held, other than in force."""

    outdated: dict[MailKey, None] = field(default_factory=dict)
    # With the lower generation that it lists instead, 0 if it lists none.
    orphaned: dict[MailKey, int] = field(default_factory=dict)
    # With the generations that were judged: a newer record of the key is not dropped.
    dropped: dict[MailKey, int] = field(default_factory=dict)

    def take_dropped(self) -> dict[MailKey, int]:
        """What is dropped, and from then on no more."""
        dropped, self.dropped = self.dropped, {}
        return dropped

    def by_kind(self) -> tuple[Mapping[MailKey, object], ...]:
        return self.outdated, self.orphaned, self.dropped


class Judgement:
    """One snapshot on its way to be reached."""

    def __init__(
        self,
        snapshot: VerifiedSnapshot,
        reading: SnapshotReading,
        now: float,
        *,
        restored: bool = False,
    ) -> None:
        self.snapshot = snapshot
        # A former run reached it: nothing needs to be waited for but its blobs.
        self.restored = restored
        self.since = now
        # Where it lies in the own mailbox; None while only the parent's welcome showed it.
        self.sequence: int | None = None
        self.reading = reading
        self.standings: Standings | None = None
        # It waited as long as it may for what it lacks.
        self.overdue = False
        # The mailbox was read from its start for what is outdated.
        self._mailbox_reread = False

    def take_reread(self) -> bool:
        """Whether the mailbox is to be read from its start: once."""
        reread, self._mailbox_reread = self._mailbox_reread, True
        return not reread

    @property
    def rank(self) -> SnapshotRank:
        return self.snapshot.rank


@dataclass(slots=True)
class Baseline:
    """A snapshot that all records were judged by, and whose standing the next may change.

    All others stand as they stood, unless it lists them otherwise.
    """

    reading: WholeReading
    standings: Standings
    # Held, and newer than it.
    newer: tuple[MailKey, ...]
    # Held since.
    taken: dict[MailKey, None] = field(default_factory=dict)

    def unsettled(self) -> Iterator[MailKey]:
        """The records to judge whatever the next snapshot lists."""
        for apart in self.standings.by_kind():
            yield from apart
        yield from self.newer
        yield from self.taken


class SnapshotJudge:
    """The candidate to be reached, and the newest snapshot ever verified; often the same."""

    def __init__(
        self,
        held: Mapping[MailKey, AcceptedRecord],
        interest: Callable[[], SnapshotInterest],
        path: NodePath | None = None,
    ) -> None:
        self._held = held
        self._interest = interest
        self._path = path
        # The plain bytes of what was read of snapshots.
        self._nodes: dict[ContentHash, bytes] = {}
        self.reached: VerifiedSnapshot | None = None
        # Under the snapshot that was reached.
        self.standings = Standings()
        # The newest snapshot that all was judged by: the next one is compared with it.
        self._baseline: Baseline | None = None
        self._candidate: Judgement | None = None
        self._newest: Judgement | None = None
        self._view: SnapshotView | None = None

    @property
    def newest(self) -> VerifiedSnapshot | None:
        """The newest snapshot that was ever verified here."""
        if self._newest is not None:
            return self._newest.snapshot
        return self.reached

    @property
    def place_of_newest(self) -> tuple[SnapshotRank, int]:
        """Rank and place in the mailbox of the newest, if it is read and not reached.

        Else NO_SNAPSHOT, 0. Who knew the place alone might take an older one's for this one's.
        """
        newest = self._newest
        if newest is None or newest.sequence is None:
            return NO_SNAPSHOT, 0
        return newest.rank, newest.sequence

    @property
    def candidate(self) -> Judgement | None:
        """The snapshot that is to be reached next."""
        return self._candidate

    @property
    def under_way(self) -> tuple[SnapshotRank, ...]:
        """The snapshots that are to be read, or reached."""
        return tuple(judgement.rank for judgement in self._under_way())

    def restore(self, snapshot: VerifiedSnapshot) -> None:
        """Take in the snapshot that a former run reached; its blobs are to be read again."""
        self._start(Judgement(snapshot, self._read(snapshot), 0.0, restored=True))

    def issued(self, snapshot: VerifiedSnapshot) -> None:
        """Take in what this very node signed: there is nothing to read before it is reached."""
        self.reached = snapshot

    def offer(self, snapshot: VerifiedSnapshot, sequence: int | None, now: float) -> bool:
        """Take in a verified snapshot; whether it is newer than all before."""
        for known in (self._candidate, self._newest):
            if known is not None and known.rank == snapshot.rank:
                known.sequence = known.sequence if sequence is None else sequence
                self.replace_stuck_candidate(now)
                return False
        newest, reached = self.newest, self.reached
        judgement = Judgement(snapshot, self._read(snapshot), now)
        judgement.sequence = sequence
        if newest is not None and snapshot.rank <= newest.rank:
            shown = self._candidate
            news = reached is None or snapshot.rank > reached.rank
            if sequence is not None and shown is not None and shown.sequence is None and news:
                # The mailbox holds an older one than the parent's welcome showed: reach that first.
                self._candidate = judgement
            return False
        self._start(judgement)
        self.replace_stuck_candidate(now)
        return True

    def forget_places(self) -> None:
        """The mailbox is another one, or is read from its start: snapshots lie there elsewhere."""
        for judgement in self._under_way():
            judgement.sequence = None

    def tick(self, now: float) -> None:
        """See whether the candidate waits for too long, and lets another go before it."""
        candidate = self._candidate
        if candidate is not None and now >= candidate.since + REACH_SECONDS_MAX:
            candidate.overdue = True
        self.replace_stuck_candidate(now)

    def replace_stuck_candidate(self, now: float) -> None:
        """Let a newer snapshot take the place of a candidate that cannot be reached in time."""
        former = self._candidate
        stuck = (
            former is not None
            and former.standings is None
            and now >= former.since + REACH_SECONDS_MAX
        )
        # Its slot was overwritten by the newer one before it was read.
        passed = (
            former is not None
            and former.sequence is None
            and self._newest is not None
            and self._newest.sequence is not None
        )
        if self._newest is not None and (former is None or stuck or passed):
            self._candidate = self._newest

    def skip_candidate(self) -> Judgement | None:
        """Let the newest take the place of a candidate that can never be reached."""
        if self._newest is not None:
            self._candidate = self._newest
        return self._candidate

    def read_more(self) -> tuple[Reference, ...]:
        """What is to be fetched now; judges what was read to its end."""
        missing: dict[Reference, None] = {}
        for judgement in self._under_way():
            if judgement.standings is None:
                if judgement.reading.earlier not in (None, self._compared_with):
                    judgement.reading = self._read(judgement.snapshot)
                lacking = judgement.reading.missing()
                missing |= dict.fromkeys(lacking)
                if not lacking:
                    judgement.standings = self._judge(judgement)
        return tuple(missing)

    def take(self, address: ContentHash, plain: bytes) -> None:
        """A blob of a snapshot came, its hash checked; raises SnapshotRefused."""
        for judgement in self._under_way():
            judgement.reading.take(address, plain)

    def rejudge(self) -> None:
        """Other keys are of interest than before: read what they need."""
        if self._newest is None and self.reached is not None:
            self.restore(self.reached)
            return
        for judgement in self._under_way():
            judgement.reading = self._read(judgement.snapshot)
            judgement.standings = None

    def admit(
        self, key: EntryKey, generation: int, held: HeldRecord | None = None
    ) -> RecordAcceptance:
        """Whether a record is taken in place of the one held, by the newest snapshot."""
        newest = self.newest
        if newest is None:
            return RecordAcceptance.UNREAD
        if self._view is None or self._view.record is not newest.record:
            self._view = SnapshotView(newest.record, self._nodes)
        try:
            return admit(key, generation, self._view, held)
        except SnapshotRefused:
            return RecordAcceptance.UNREAD

    def listing(self, key: EntryKey) -> SnapshotListing | None:
        """What the newest snapshot lists for a key; None if there is none."""
        if (newest := self.newest) is None:
            return None
        return SnapshotView(newest.record, self._nodes).generation_of(key)

    def reported_generation(self, key: MailKey) -> int:
        """What a report on the record held says that it is of; 0 if an older one is listed."""
        record = self._held.get(key)
        return 0 if record is None or self.standings.orphaned.get(key) else record.generation

    def accepted(self, record: AcceptedRecord) -> None:
        """A record came into force in place of the one that was judged."""
        if self._baseline is not None:
            self._baseline.taken[record.key] = None
        for standings in self._all_standings():
            standings.orphaned.pop(record.key, None)
            standings.outdated.pop(record.key, None)
            standings.dropped.pop(record.key, None)

    def forget(self, key: MailKey) -> None:
        """A record is held no more."""
        for standings in self._all_standings():
            standings.outdated.pop(key, None)
            standings.orphaned.pop(key, None)
            standings.dropped.pop(key, None)

    def unjudged_sequence(self) -> int | None:
        """Where the first snapshot lies by which not all was judged; None if there is none."""
        found = [j.sequence for j in self._under_way() if j.standings is None and j.sequence]
        return min(found, default=None)

    def reach(self) -> Standings:
        """The candidate is reached: what it drops; its standings are in force."""
        candidate = self._candidate
        assert candidate is not None
        assert candidate.standings is not None
        self.reached, self.standings = candidate.snapshot, candidate.standings
        self._candidate = None
        if self._newest is candidate:
            self._newest = None
            self._forget_nodes()
        else:
            self._candidate = self._newest
        return self.standings

    def _start(self, judgement: Judgement) -> None:
        self._newest = judgement
        if self._candidate is None:
            self._candidate = judgement

    def _read(self, snapshot: VerifiedSnapshot) -> SnapshotReading:
        earlier = self._compared_with
        if earlier is not None and earlier.record.rank > snapshot.rank:
            earlier = None
        return SnapshotReading(snapshot.record, self._interest(), self._nodes, earlier)

    @property
    def _compared_with(self) -> WholeReading | None:
        return self._baseline.reading if self._baseline is not None else None

    def _under_way(self) -> Iterator[Judgement]:
        if self._candidate is not None:
            yield self._candidate
        if self._newest is not None and self._newest is not self._candidate:
            yield self._newest

    def _all_standings(self) -> Iterator[Standings]:
        yield self.standings
        for judgement in self._under_way():
            if judgement.standings is not None and judgement.standings is not self.standings:
                yield judgement.standings

    def _judge(self, judgement: Judgement) -> Standings:
        """Judge what may stand otherwise than by the snapshot before: else it stands as it did."""
        earlier, reading = self._baseline, judgement.reading
        view = SnapshotView(reading.record, self._nodes)
        suspects: Iterable[MailKey] = self._held
        if earlier is not None and reading.earlier is not None:
            suspects = {*map(mail_key_of, reading.changed()), *earlier.unsettled()}
        found = [
            held
            for key in suspects
            if key != KEYS_KEY and (held := self._held.get(key)) is not None
        ]
        standings = self._standings(found, view)
        if earlier is None or view.record.rank >= earlier.reading.record.rank:
            # Who is not looked at was covered by the earlier one.
            newer = tuple(it.key for it in found if it.generation > view.generation)
            self._baseline = Baseline(reading.whole(), standings, newer)
        return standings

    def _standings(self, records: Iterable[AcceptedRecord], view: SnapshotView) -> Standings:
        standings = Standings()
        judged = {it.entry_key: it for it in records if it.generation <= view.generation}
        for key, listing in view.generations_of(judged):
            record = judged[key]
            if listing == ListedAt(record.generation):
                continue
            match standing(record.held, listing, view):
                case RecordStanding.OUTDATED | RecordStanding.UNREAD:
                    standings.outdated[record.key] = None
                case RecordStanding.ORPHANED:
                    below = listing.generation if isinstance(listing, ListedAt) else 0
                    standings.orphaned[record.key] = below
                case RecordStanding.DROPPED if self._moved_here(record, view):
                    standings.outdated[record.key] = None
                case RecordStanding.DROPPED:
                    standings.dropped[record.key] = record.generation
                case RecordStanding.IN_FORCE:
                    pass
        return standings

    def _moved_here(self, record: AcceptedRecord, view: SnapshotView) -> bool:
        """Whether a destination held as elsewhere is listed at the own path: its profile is late.

        A parent that withholds that has its child keep what it has.
        """
        profile, path = record.record, self._path
        if path is None or not isinstance(profile, Profile) or profile.path == path:
            return False
        return isinstance(view.generation_of(path_entry_key(path, record.key)), ListedAt)

    def _forget_nodes(self) -> None:
        """Keep of what was read what the reached snapshot needs: all was judged by it last."""
        if self._baseline is not None:
            addresses = self._baseline.reading.addresses
            self._nodes = {address: self._nodes[address] for address in addresses}
        self._view = None

    def assert_invariants(self) -> None:
        """Assert that who was not judged again stands as if he had been."""
        baseline = self._baseline
        if baseline is None:
            return
        view = SnapshotView(baseline.reading.record, self._nodes)
        others = self._held.keys() - baseline.taken.keys() - {KEYS_KEY}
        anew = self._standings([self._held[key] for key in others], view).by_kind()
        for known, found in zip(baseline.standings.by_kind(), anew, strict=True):
            assert known.keys() & others == found.keys()
