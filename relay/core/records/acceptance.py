"""Whether a message of the own mailbox is believed, and taken."""

from __future__ import annotations

from enum import Enum, auto

from relay.core.events import MailArrived
from relay.core.records.accepted import AcceptedRecord, Version, read_record
from relay.core.records.book import RecordBook
from relay.core.records.judge import SnapshotJudge, VerifiedSnapshot
from relay.core.records.trust import RootsRefused, Trust, TrustVerdict
from relay.core.records.verdict import HeldRecord, RecordAcceptance
from schemas.records.records import NodeRecord, Record
from schemas.records.signing import Envelope, decode_envelope
from schemas.records.snapshots import SnapshotRecord, read_snapshot, snapshot_source
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, NodePath, TreeId
from schemas.values.refusals import CodecError, RecordRefused
from schemas.values.value import Value


class NewVersion(Value, frozen=True):
    """Believed, and in force instead of what is held."""

    accepted: AcceptedRecord


class HeldVersion(Value, frozen=True):
    """Believed, and held already: the mailbox shows it, in full or as a head."""

    accepted: AcceptedRecord


class Superseded(Value, frozen=True):
    """Believed, and in force no more: honest mail that is late."""


class ListedBelow(Value, frozen=True):
    """Believed and listed, and not taken: what is held is newer, and orphaned."""

    accepted: AcceptedRecord


class MissingInput(Enum):
    """What is missing before a message can be judged."""

    KEY = auto()
    SNAPSHOT = auto()


class Undecided(Value, frozen=True):
    """Not to be judged yet."""

    missing: MissingInput
    accepted: AcceptedRecord | None = None


class RecordRefusal(Value, frozen=True):
    """Never to be acted on."""

    reason: str
    detail: str


Ruling = NewVersion | HeldVersion | Superseded | ListedBelow | Undecided | RecordRefusal


class Acceptance:
    """Judges records by signature, by what is held, and by the newest snapshot."""

    def __init__(
        self, path: NodePath, tree: TreeId, trust: Trust, book: RecordBook, judge: SnapshotJudge
    ) -> None:
        self._path = path
        self._tree = tree
        self._trust = trust
        self._book = book
        self._judge = judge

    def snapshot(self, data: bytes, *, kept: bool = False) -> VerifiedSnapshot | RecordRefusal:
        """Read a signed snapshot, whatever the bytes are; `kept` is one of the own stream."""
        try:
            envelope = decode_envelope(data)
            if envelope.kind != "snapshot":
                return RecordRefusal("WrongKind", f"a {envelope.kind} where a snapshot is expected")
            record = read_snapshot(envelope.payload)
        except (RecordRefused, CodecError) as error:
            return RecordRefusal("Unreadable", str(error))
        named = Record(snapshot_source(self._tree), record.generation, "", "")
        trust = self._trust
        verdict = trust.recalls(envelope) if kept else trust.judge(envelope, named)
        if verdict is not TrustVerdict.BELIEVED:
            return _unbelieved(verdict)
        return verified_snapshot(record, data, envelope.payload_hash)

    def recall(self, data: bytes, hops: tuple[int, ...]) -> AcceptedRecord | RecordRefusal:
        """Read a record of the own stream, whatever the bytes are: it was believed before."""
        read = self._read(data, hops)
        return (
            read if isinstance(read, RecordRefusal) else self._believed(*read, kept=True) or read[1]
        )

    def judge(self, event: MailArrived, *, keys_read: bool, admits_new: bool) -> Ruling:
        """What to make of a message that is no snapshot.

        With `keys_read` no key is on its way any more; without `admits_new` nothing new is taken.
        """
        read = self._read(event.data, event.hops)
        if isinstance(read, RecordRefusal):
            return read
        envelope, accepted = read
        if accepted.key != event.key:
            return RecordRefusal(
                "WrongKey", f"it says {accepted.record.source} under key {event.key}"
            )
        refused = self._believed(envelope, accepted)
        if refused is not None:
            return (
                Undecided(MissingInput.KEY) if refused == UNKNOWN_KEY and not keys_read else refused
            )
        record = accepted.record
        if isinstance(record, NodeRecord) and not self._is_below(record.path):
            return RecordRefusal("NotMine", "a node that is not below this one")
        return self._against_held(accepted, admits_new=admits_new)

    def _believed(
        self, envelope: Envelope, accepted: AcceptedRecord, *, kept: bool = False
    ) -> RecordRefusal | None:
        """Why a message is not believed; None if it is. `kept` is one of the own stream."""
        trust = self._trust
        if accepted.kind == "keys":
            try:
                (trust.recall if kept else trust.follow)(envelope)
            except RootsRefused as refused:
                return RecordRefusal(refused.reason, refused.detail)
            return None
        verdict = trust.recalls(envelope) if kept else trust.judge(envelope, accepted.record)
        return None if verdict is TrustVerdict.BELIEVED else _unbelieved(verdict)

    def _against_held(self, accepted: AcceptedRecord, *, admits_new: bool) -> Ruling:
        known = self._book.get(accepted.key)
        if known is not None and known.kind != accepted.kind:
            return RecordRefusal("WrongKind", f"a {accepted.kind} where a {known.kind} is held")
        if known is not None and accepted.generation == known.generation:
            return (
                NewVersion(accepted) if accepted.full and not known.full else HeldVersion(accepted)
            )
        if known is not None and accepted.generation < known.generation:
            # A centre that forgot how far it had come issued it anew below what is held: by a
            # snapshot above both that is in force.
            newest = self._judge.newest
            ahead = newest is None or known.generation > newest.generation
            if ahead or known.kind == "keys" or known.entry_key != accepted.entry_key:
                return Superseded()
        if accepted.key == KEYS_KEY:
            return NewVersion(accepted)
        if not admits_new:
            return Undecided(MissingInput.SNAPSHOT, accepted)
        return self._by_snapshot(accepted, known.held if known is not None else None)

    def _by_snapshot(self, accepted: AcceptedRecord, held: HeldRecord | None) -> Ruling:
        """What the newest snapshot makes of a record that may take the place of the one held."""
        match self._judge.admit(accepted.entry_key, accepted.generation, held):
            case RecordAcceptance.TAKEN:
                return NewVersion(accepted)
            case RecordAcceptance.LISTED_BELOW:
                return ListedBelow(accepted)
            case RecordAcceptance.UNREAD:
                return Undecided(MissingInput.SNAPSHOT, accepted)
            case RecordAcceptance.SUPERSEDED:
                return Superseded()

    def _is_below(self, path: NodePath) -> bool:
        return path != self._path and self._path.holds(path)

    def _read(
        self, data: bytes, hops: tuple[int, ...]
    ) -> tuple[Envelope, AcceptedRecord] | RecordRefusal:
        try:
            envelope, accepted = read_record(data, hops)
        except RecordRefused as error:
            return RecordRefusal("Unreadable", str(error))
        if accepted.kind in ("snapshot", "ask") or accepted.key == SNAPSHOT_KEY:
            return RecordRefusal("WrongKind", f"a {accepted.kind} in a slot of records")
        return envelope, accepted


def verified_snapshot(record: SnapshotRecord, data: bytes, payload_hash: bytes) -> VerifiedSnapshot:
    """A snapshot whose signature was checked, or that this process signed; no digest counts it."""
    return VerifiedSnapshot(record, data, payload_hash, Version(record.generation, 0, full=True))


def _unbelieved(verdict: TrustVerdict) -> RecordRefusal:
    return RecordRefusal(verdict.name.title().replace("_", ""), verdict.value)


REFUSALS = (
    *(_unbelieved(it).reason for it in TrustVerdict if it is not TrustVerdict.BELIEVED),
    "WrongKind",
    "WrongKey",
    "NotMine",
    "Unreadable",
    "BadSnapshot",
)
"""Why records are refused; root keys that do not follow from those before have words of their own.
"""
UNKNOWN_KEY = _unbelieved(TrustVerdict.UNKNOWN_KEY)
"""Of what a newer `keys` record may still settle."""
