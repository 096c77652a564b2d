"""The centre's snapshots: when one is signed, what it lists, how far removals are settled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from relay.core.records.tree import SnapshotTree
from relay.core.records.verdict import HeldRecord
from schemas.content import blobs
from schemas.content.blobs import StoredBlob
from schemas.records.snapshots import (
    SNAPSHOT_TERMS,
    TERMS_MAX,
    BlobPointer,
    EntryKey,
    SnapshotRecord,
    Term,
    TermEntry,
    TermList,
    encode,
)

SETTLING_SECONDS = 2.0
"""A removal waits so long for what may gain the same thing."""
INTERVAL_SECONDS = 1.0
RENEWAL_SECONDS = 600.0
HOLD_SECONDS = 60.0
WAITED_FOR_SECONDS_MAX = 60.0
"""What was deleted so long ago is dropped, though what comes after it is not settled."""
EXPIRY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class IssuedSnapshot:
    """To be stored in this order: the blobs, then the record, signed."""

    record: SnapshotRecord
    blobs: tuple[StoredBlob, ...]
    # Listed no longer: erased from the ledger once the record is stored.
    dropped: tuple[EntryKey, ...]


class SnapshotIssuer:
    """Told of what the ledger issues and deletes, it says when to sign a snapshot, and makes it.

    What the last one lists goes on being listed until it is issued anew or deleted, whether the
    ledger has it or not. Times are seconds of the monotonic clock, and never go back.
    """

    def __init__(
        self,
        term: Term,
        *,
        now: float,
        last: SnapshotRecord | None = None,
        stored: SnapshotTree | None = None,
        terms: Iterable[TermEntry] = (),
        ahead: Mapping[EntryKey, int] = MappingProxyType({}),
        losing: bool = False,
    ) -> None:
        self._term = term
        self._reign = last.reign if last else 0
        # Those known at the start, and this one.
        self._terms = {entry.term: entry for entry in terms}
        # Whether the list of terms lies in the store as it is now.
        self._terms_stored: BlobPointer | None = None
        # The tree of the last snapshot, whose blobs are in the store.
        self._stored = stored or SnapshotTree.empty()
        # What is listed otherwise by the next snapshot. At first the records of the ledger above
        # the last one.
        self._changes: dict[EntryKey, int | None] = dict(ahead)
        # The generation last issued or signed: the next one lies above it.
        self._highest = max([last.generation if last else 0, *ahead.values()])
        self._settled = last.settled if last else 0
        # When it was issued, with its generation: what is not settled yet.
        self._unsettled: deque[tuple[float, int]] = deque()
        if self._highest > self._settled:
            self._unsettled.append((now, self._highest))
        # When each change was made that takes something away and no snapshot has settled. A former
        # run may have left one.
        self._losses: deque[float] = deque([now] if losing else ())
        # When each key was deleted that is still listed.
        self._deleted: dict[EntryKey, float] = {}
        # What some of these come after.
        self._after: dict[EntryKey, frozenset[EntryKey]] = {}
        # When each apply that is under way began.
        self._holds: dict[str, float] = {}
        self._signed_at: float | None = None

    def issued(self, key: EntryKey, generation: int, *, takes_away: bool, now: float) -> None:
        """A record is in force. Told before a snapshot with a higher generation is signed."""
        assert generation > self._highest, "generations ascend"
        self._highest = generation
        self._know_whole(self._term)
        self._unsettled.append((now, generation))
        self._changes[key] = generation
        self._deleted.pop(key, None)
        self._after.pop(key, None)
        if takes_away:
            self._losses.append(now)

    def deleted(
        self, key: EntryKey, *, now: float, after: frozenset[EntryKey] = frozenset()
    ) -> None:
        """A record is in force no longer. It stays listed until that is settled.

        So do those that it comes `after`, if they are deleted, too: for 60 s at most.
        """
        self._deleted.setdefault(key, now)
        if after:
            self._after[key] = after
        self._losses.append(now)

    def unlist(self, key: EntryKey) -> None:
        """A deleted record is listed no longer, whatever is settled."""
        self._changes[key] = None

    def withdraw(self, term: Term, *, now: float) -> None:
        """What this term issued and no snapshot lists is gone from now on."""
        self._know_whole(term)
        self._losses.append(now)

    def renew(self, *, now: float) -> None:
        """Have one signed soon, whatever changed: another key signs it."""
        self._losses.append(now)

    def pause(self, name: str, *, now: float) -> None:
        """Settle nothing more until `resume`, for 60 s at most: an apply is under way."""
        began = self._holds.get(name)
        if began is None or now >= began + HOLD_SECONDS:
            self._holds[name] = now

    def resume(self, name: str) -> None:
        self._holds.pop(name, None)

    @property
    def due(self) -> float:
        """When to sign the next one; earlier changes may bring it forward."""
        if self._signed_at is None:
            return 0.0
        due = self._signed_at + RENEWAL_SECONDS
        if self._losses:
            due = min(due, self._settles_at(self._losses[0]))
        return max(due, self._signed_at + INTERVAL_SECONDS)

    def sign(self, generation: int, *, now: float, now_ms: int) -> IssuedSnapshot:
        """The snapshot at a generation above all that was issued; to be called when it is due.

        It is stored before the next one is signed.
        """
        assert generation > self._highest, "a snapshot lies above all that it covers"
        assert self._signed_at is None or now >= self._signed_at + INTERVAL_SECONDS
        dropped = self._settle(now)
        tree = self._stored.changed(self._changes)
        new = list(tree.blobs_since(self._stored))
        if self._terms_stored is None:
            known = TermList(tuple(self._terms[term] for term in sorted(self._terms)))
            terms = blobs.store(SNAPSHOT_TERMS, encode(known))
            self._terms_stored = BlobPointer.to(terms.reference)
            new.append(terms)
        record = SnapshotRecord(
            generation=generation,
            term=self._term,
            time_ms=now_ms,
            expires_ms=now_ms + EXPIRY_MS,
            settled=self._settled,
            terms=self._terms_stored,
            root=tree.root,
            height=tree.height,
            count=tree.count,
            reign=self._reign,
        )
        self._stored, self._changes = tree, {}
        self._highest, self._signed_at = generation, now
        return IssuedSnapshot(record, tuple(new), dropped)

    def assert_invariants(self) -> None:
        """Assert that what is not settled stands in the order of time, above what is."""
        assert list(self._unsettled) == sorted(self._unsettled)
        assert list(self._losses) == sorted(self._losses)
        assert all(generation > self._settled for _, generation in self._unsettled)
        assert self._settled <= self._highest
        assert self._after.keys() <= self._deleted.keys()

    def _know_whole(self, term: Term) -> None:
        known = self._terms.get(term)
        if known is None or known.highest is not None:
            self._terms[term] = TermEntry(term, None)
            self._terms_stored = None

    def _settle(self, now: float) -> tuple[EntryKey, ...]:
        """Settle what is old enough; returns the keys that are listed no longer."""
        self._holds = {n: began for n, began in self._holds.items() if now < began + HOLD_SECONDS}
        # During a hold it stands still.
        until = min([now, *self._holds.values()])
        while self._unsettled and self._unsettled[0][0] + SETTLING_SECONDS <= until:
            self._settled = self._unsettled.popleft()[1]
        while self._losses and self._losses[0] + SETTLING_SECONDS <= until:
            self._losses.popleft()
        stays = self._unsettled_deletions(until)
        dropped = tuple(key for key in self._deleted if key not in stays)
        for key in dropped:
            del self._deleted[key]
            self._after.pop(key, None)
            self._changes[key] = None
        return dropped

    def _unsettled_deletions(self, until: float) -> set[EntryKey]:
        """What was deleted and stays listed: what is too young, and what that comes after."""
        young = [key for key, at in self._deleted.items() if at + SETTLING_SECONDS > until]
        stays = set(young)
        while young:
            for key in self._after.get(young.pop(), frozenset()) - stays:
                at = self._deleted.get(key)
                # What waits may be made and deleted again and again.
                if at is not None and at + WAITED_FOR_SECONDS_MAX > until:
                    stays.add(key)
                    young.append(key)
        return stays

    def _settles_at(self, changed: float) -> float:
        """When a change made at that time is settled, if no hold ends till then."""
        at = changed + SETTLING_SECONDS
        held = [began for began in self._holds.values() if began < at]
        return max([at, *(began + HOLD_SECONDS for began in held)])


@dataclass(frozen=True, slots=True)
class LedgerStanding:
    """What the last snapshot signed makes of the records in the centre's own ledger."""

    kept: tuple[HeldRecord, ...]
    # Not listed: deleted before, and brought back by the store. To be erased.
    gone: tuple[HeldRecord, ...]
    # Listed with another generation: issued anew, whatever its content.
    outdated: tuple[HeldRecord, ...]
    # Listed and not here: a removal that was not seen, so it is held.
    lacking: Mapping[EntryKey, int]


def judge_own_ledger(
    held: Iterable[HeldRecord], last: SnapshotRecord, listed: Mapping[EntryKey, int]
) -> LedgerStanding:
    """Judge the ledger at a start by the last snapshot that the centre signed.

    Terms do not matter here: what the centre does not list was not in force.
    """
    kept, gone, outdated = [], [], []
    lacking = dict(listed)
    for record in held:
        generation = lacking.pop(record.key, None)
        if record.generation > last.generation or record.generation == generation:
            kept.append(record)
        elif generation is None:
            gone.append(record)
        else:
            outdated.append(record)
    return LedgerStanding(tuple(kept), tuple(gone), tuple(outdated), lacking)


def known_terms(
    last: SnapshotRecord | None, listed: Iterable[TermEntry], held: Iterable[HeldRecord]
) -> tuple[TermEntry, ...]:
    """The terms that a ledger knows at a start, each with the highest generation it held of it.

    `listed` are those of the last snapshot. Its own term was whole in it; it is now known up to
    that snapshot, and to what the ledger holds of it. What was withdrawn stays whole. If there are
    more than a list may have, the oldest are forgotten: what they issued is orphaned, not dropped.
    """
    highest: dict[Term, int | None] = {entry.term: entry.highest for entry in listed}
    if last is not None and last.term in highest:
        highest[last.term] = last.generation
    for record in held:
        known = highest.get(record.term, 0)
        if known is not None:
            highest[record.term] = max(known, record.generation)
    entries = [TermEntry(term, known) for term, known in highest.items()]
    entries.sort(key=lambda entry: (entry.highest is None, entry.highest or 0))
    return tuple(entries[1 - TERMS_MAX :])
