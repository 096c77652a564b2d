"""What a node can be told. A closed set: `Node.handle` answers each, and mypy checks it."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.records.signed_records import SignedRecord
from schemas.records.snapshots import SnapshotRecord
from schemas.reports.link import Welcome
from schemas.reports.reports import Health, Repaired
from schemas.reports.running import Running
from schemas.values.identity import ContentHash, MailKey
from schemas.values.value import Value


class OwnRecord(Value, frozen=True):
    """A record kept in OWN, with the place in the parent's stream where it was read."""

    key: str
    data: bytes
    incarnation: str
    sequence: int
    # The times (ms since 1970) at which it was issued and written on its way here.
    hops: tuple[int, ...] = ()


class MailSlot(Value, frozen=True):
    """The headers of the last message in a child's slot: what the child was sent."""

    child: str
    key: MailKey
    sequence: int
    generation: int
    payload_hash: bytes
    # Whether the slot holds content: a delta with body, or another record.
    has_body: bool


class Remembered(Value, frozen=True):
    """What a node's own streams hold when it starts; of the children in `heard` a hello."""

    own: tuple[OwnRecord, ...] = ()
    mail: tuple[MailSlot, ...] = ()
    blobs: frozenset[ContentHash] = frozenset()
    heard: frozenset[str] = frozenset()


class MailArrived(Value, frozen=True):
    """A message of the node's mailbox."""

    sequence: int
    key: MailKey
    data: bytes
    # How many more are on their way, by its metadata.
    pending: int
    # Numbers the bus's resets: what an earlier reading delivered is passed over.
    reading: int = 0
    hops: tuple[int, ...] = ()
    # Small blobs that came along, by address, not checked yet.
    carried: tuple[tuple[ContentHash, bytes], ...] = ()


class Welcomed(Value, frozen=True):
    """The parent's answer to a hello, or its word that it is new."""

    message: Welcome


class LinkChanged(Value, frozen=True):
    """The way to the parent opened or was lost."""

    up: bool


class BlobArrived(Value, frozen=True):
    """The answer to `LoadBlob`."""

    reference: Reference
    # As it is stored; None if there is none to be had now.
    value: bytes | None
    # Whether it came out of the node's own store.
    local: bool
    # By address the part values of a value that is a list of parts.
    parts: tuple[tuple[ContentHash, bytes], ...] = ()
    # Whether nobody said that there is none: the parent did not answer, and may well have it.
    unheard: bool = False


@dataclass(frozen=True, slots=True)
class ReportArrived:
    """A child's report slot changed: a part, or its progress; `sequence` is where it lies."""

    child: str
    key: str
    data: bytes
    sequence: int = field(default=0, compare=False)


class HelloArrived(Value, frozen=True):
    """A child's `_node.self` changed."""

    child: str
    data: bytes
    # When it was said, ms since 1970, of one that lay there before this run, 0 if nobody knows;
    # None: it was said since.
    former_ms: int | None = None


class RecordIssued(Value, frozen=True):
    """At the centre: a record that is in the ledger already, to be sent where it is meant."""

    signed: SignedRecord
    # The encoded message.
    data: bytes
    hops: tuple[int, ...] = ()
    # Kept since the record before.
    blobs: frozenset[ContentHash] = frozenset()
    # The small ones of them.
    carried: tuple[tuple[ContentHash, bytes], ...] = ()


class SnapshotIssued(Value, frozen=True):
    """At the centre: a snapshot that is in the ledger already, and what it lists no more."""

    record: SnapshotRecord
    # The encoded message, and the hash of what is signed of it.
    data: bytes
    payload_hash: bytes
    dropped: tuple[MailKey, ...] = ()
    blobs: frozenset[ContentHash] = frozenset()


class HistoryKept(Value, frozen=True):
    """At the centre: former contents of a placement that stay in the store; in OWN already."""

    key: MailKey
    references: tuple[Reference, ...]
    blobs: frozenset[ContentHash] = frozenset()


class MailWritten(Value, frozen=True):
    """The parent's stream took a message; `sequence` is where."""

    child: str
    key: MailKey
    generation: int
    sequence: int


LEFT_IN_PLACE = "left in place: "
"""How the reason begins of an object that is the node's no more, and stays where it is."""
KEPT = "kept: "
"""How it goes on of what others use, or what is to stay whoever asks for it."""
KEPT_GONE = "it was kept, and is there no more, or bears our marks no more"


class ObjectObserved(Value, frozen=True):
    """The syncer's last word on one object."""

    key: ObjectKey
    # False of one that is gone.
    present: bool
    # The content applied; empty if none is.
    address: str
    # Why the wanted content could not be applied.
    error: str
    health: Health
    # The canonical bytes of the object's status.
    status: bytes | None
    # Why the health is what it is, in a few words.
    reason: str = ""
    # What has to be healthy, or gone, before anything is done to it.
    waits: str = ""
    # Whether it is wanted no more, and kept as it is.
    kept: bool = False
    # How often it was put right, if it ever was.
    repaired: Repaired | None = None
    # The object's own, 0 if it has none; None if it is left to its cluster.
    generation: int | None = None
    # For which wish the address is said: `DesiredObject.wish`.
    wish: int = 0


class UpsyncFault(Value, frozen=True):
    """An object that is to come up and does not, and why."""

    key: ObjectKey
    reason: str


class UnservedKind(Value, frozen=True):
    """A kind that is to come up, and of which the space tells nothing."""

    group: str
    resource: str
    reason: str

    @property
    def text(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class UpsyncObserved(Value, frozen=True):
    """How the copies at the parent stand to the space."""

    # Whether all were said in this run.
    stated: bool = False
    # The monotonic second of which they are then; None: as the space is now.
    behind_since: float | None = None
    # Of many the first few.
    faults: tuple[UpsyncFault, ...] = ()
    unserved: tuple[UnservedKind, ...] = ()


class CopyObserved(Value, frozen=True):
    """What of an object lies at the parent now: a copy's bytes, None for nothing.

    It is told of objects that a collector's source names (`relay.core.view`).
    """

    key: ObjectKey
    copy: bytes | None


class RunningStated(Value, frozen=True):
    """What this node runs now, and what becomes of the release that is wanted here."""

    running: Running


class Tick(Value, frozen=True):
    """Time passed; sent when `Node.deadline` is reached."""


class Ending(Value, frozen=True):
    """The node's run is about to end in good order: the last event it is told."""


Event = (
    MailArrived
    | Welcomed
    | LinkChanged
    | BlobArrived
    | ReportArrived
    | HelloArrived
    | RecordIssued
    | SnapshotIssued
    | HistoryKept
    | MailWritten
    | ObjectObserved
    | UpsyncObserved
    | CopyObserved
    | RunningStated
    | Tick
    | Ending
)
