"""What a node can ask for. A closed set: the driver, and the simulation, carry out each.

Effects of one event are carried out in order, each kept before a later one is begun. One that
cannot be carried out ends the node's run: it starts again from what its streams hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.content.blobs import Reference
from schemas.records.snapshots import SnapshotRank
from schemas.values.identity import ContentHash, MailKey, NodePath
from schemas.values.value import Value
from schemas.values.wire import replace


class StoreOwn(Value, frozen=True):
    """Keep a record accepted, byte for byte, with where it was read; None erases the slot.

    What follows the sequence is said in headers.
    """

    key: str
    data: bytes | None
    generation: int = 0
    incarnation: str = ""
    sequence: int = 0
    payload_hash: bytes = b""
    has_body: bool = False
    trace: str = ""
    # As in `OwnRecord`.
    hops: tuple[int, ...] = ()


class WriteMail(Value, frozen=True):
    """Put a message into a child's mailbox; answered by `MailWritten`."""

    child: str
    key: MailKey
    data: bytes
    generation: int
    payload_hash: bytes
    has_body: bool
    trace: str
    # The sequence of the slot's last message (0: none): another writer is noticed.
    expected: int
    hops: tuple[int, ...] = ()
    # Small blobs that go along, by address.
    carried: tuple[tuple[ContentHash, bytes], ...] = ()


class ClearMail(Value, frozen=True):
    """Take a slot out of a child's mailbox, unless something was written to it after `sequence`."""

    child: str
    key: MailKey
    sequence: int


class DropReport(Value, frozen=True):
    """Erase what a child put into a report slot, unless it wrote there after `sequence`.

    That lies at `sequence`, or with `older` anywhere up to it.
    """

    child: str
    key: str
    sequence: int
    older: bool = False


class AckMail(Value, frozen=True):
    """Tell the parent that everything up to `sequence` is kept here."""

    sequence: int


class ResetMail(Value, frozen=True):
    """Read the own mailbox again from `sequence` on."""

    sequence: int


class LoadBlob(Value, frozen=True):
    """Get a blob from the own store, or else from the parent; answered by `BlobArrived`."""

    reference: Reference
    # Passes over the own copy, which was found damaged.
    fresh: bool = False


class KeepBlob(Value, frozen=True):
    """Keep a stored value whose hash was checked, for the node itself and its children."""

    address: ContentHash
    value: bytes


class DropBlobs(Value, frozen=True):
    """Erase stored values that no record leads to any more."""

    addresses: tuple[ContentHash, ...]


class SendReport(Value, frozen=True):
    """Put a report part into a slot at the parent."""

    key: str
    data: bytes


class SendHello(Value, frozen=True):
    data: bytes


class SendWelcome(Value, frozen=True):
    """Answer a child's hello, or tell it that this node is new."""

    child: str
    data: bytes


class AddChild(Value, frozen=True):
    """Open the server to a child: its account, with this public nkey, and its mail consumer."""

    path: NodePath
    nkey: str


class RemoveChild(Value, frozen=True):
    """Close the server to a child, and erase its mailbox and reports here."""

    path: NodePath


class OpenCopies(Value, frozen=True):
    """Have room for what a child brings up; once it is there, opening it again does nothing."""

    child: str


class CountChanged(Value, frozen=True):
    """At the centre: what is counted of a placement is another, or is exact now."""

    key: MailKey


class SnapshotShown(Value, frozen=True):
    """At the centre: a child showed a newer snapshot of this tree, or one of another term."""

    rank: SnapshotRank
    # Who signed it, in hex, and when.
    term: str
    time_ms: int


class WantsChanged(Value, frozen=True):
    """At an edge: what the syncer should make so is another, or may be pruned now."""


class Noted(Value, frozen=True):
    """Something an operator should be able to see: a refusal, a stale view, a session lost."""

    reason: str
    subject: str
    detail: str


Effect = (
    StoreOwn
    | WriteMail
    | ClearMail
    | DropReport
    | AckMail
    | ResetMail
    | LoadBlob
    | KeepBlob
    | DropBlobs
    | SendReport
    | SendHello
    | SendWelcome
    | AddChild
    | RemoveChild
    | OpenCopies
    | CountChanged
    | SnapshotShown
    | WantsChanged
    | Noted
)


_MAY_MAKE_VOID = frozenset({RemoveChild, ClearMail, DropBlobs})


def still_meant(effects: Sequence[Effect]) -> list[Effect]:
    """The effects of a batch without what a later one of them makes void.

    A removal erases the mailbox before mail is written, so mail to a child that the same batch
    removes after it would meet a conflict. And mail is written before slots are cleared, so mail to
    a slot that was to be cleared before is written over what is there. Blobs are dropped last, but
    not those that are kept again after it.
    """
    if _MAY_MAKE_VOID.isdisjoint(map(type, effects)):
        return list(effects)
    kept: list[Effect] = []
    blobs: set[ContentHash] = set()
    removed: set[str] = set()
    written: dict[tuple[str, MailKey], int] = {}
    for effect in reversed(effects):
        match effect:
            case RemoveChild(path):
                removed.add(path.name)
            case WriteMail(child, key):
                if child in removed:
                    continue
                written[child, key] = len(kept)
            case KeepBlob(address):
                blobs.add(address)
            case DropBlobs(addresses) if not blobs.isdisjoint(addresses):
                kept.append(DropBlobs(tuple(a for a in addresses if a not in blobs)))
                continue
            case ClearMail(child, key, sequence) if (at := written.get((child, key))) is not None:
                write = kept[at]
                assert isinstance(write, WriteMail)
                kept[at] = replace(write, expected=write.expected or sequence)
                continue
            case _:
                pass
        kept.append(effect)
    return kept[::-1]
