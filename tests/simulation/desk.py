"""The centre's controllers in virtual time: the unchanged `controllers.core`, run as its shells do.

One desk is one run of them on the root's process: it makes sure of the ledger, follows both spaces,
and issues what is decided. A crash of the root's process ends it, and the next one begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from controllers.core.drafts import Draft, slot_of
from controllers.core.ledger import Ledger
from controllers.core.notes import Notes
from controllers.core.placements import Placements
from controllers.core.reading_back import ReadingBack
from controllers.core.recovery import Orphan
from controllers.core.registry import Registry
from controllers.core.translate import Issued as Known
from controllers.core.translate import withdrawal
from relay.core.events import Issued, OwnRecord
from relay.core.turns import together
from schemas.chunks import read_manifest_chunk, read_root
from schemas.identity import INDEX_KEY, KEYS_KEY, ContentHash, NodePath
from schemas.objects import ObjectKey
from schemas.records import (
    API_KEYS,
    API_NODE,
    DeltaHead,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Record,
    Source,
    encode_payload,
)
from schemas.signing import Envelope, Signer, decode_envelope
from schemas.subjects import CURSOR_KEY, LABELS_KEY, LIST_KEY
from tests.simulation.blind_space import BlindSpace, Object, SpaceAway
from tests.simulation.centre import ROOT_KEY, SIGNED, SIGNING_KEY, TREE
from tests.simulation.recalling import Recall, open_blob
from tests.simulation.signatures import public_key_of

if TYPE_CHECKING:
    from tests.simulation.host import Host

NO_RECORDS = (CURSOR_KEY, LABELS_KEY, LIST_KEY)
RETRY_SECONDS, GATHER_SECONDS, INDEX_AFTER_SECONDS = 1.0, 0.02, 0.1
INDEX_GATHER_SECONDS, INDEX_MAX_AGE_SECONDS = 1.0, 600.0


class Machine(Protocol):
    """What follows a space: `Placements` or `Registry`."""

    identity: str

    def believes(self, identity: str) -> bool: ...

    def listed(self, objects: dict[ObjectKey, Object]) -> Iterable: ...

    def put(self, key: ObjectKey, obj: Object) -> Iterable: ...

    def deleted(self, key: ObjectKey) -> Iterable: ...


Followed = tuple[BlindSpace, Machine, Callable]


class Watch:
    """One watch of a space: changes come late and in order, and none of them once it broke."""

    def __init__(self, desk: Desk, followed: Followed) -> None:
        self._desk, self._followed = desk, followed
        self._broken = False
        self._clock = 0.0

    def __call__(self, what: str, key: ObjectKey, obj: Object) -> None:
        world = self._desk.world
        if what == "broken":
            self._broken = True
            self._desk.lose(self._followed)
            return
        self._clock = max(self._clock, world.now + world.delay())
        world.at(self._clock, self._arrive, what, key, obj)

    def _arrive(self, what: str, key: ObjectKey, obj: Object) -> None:
        if not self._broken:
            self._desk.listen(self._followed, what, key, obj)


class Clerk:
    """Is told of what a desk does; the books and the oracle are kept by it."""

    def entered(self, kind: str, record: Record, envelope: Envelope, *, anew: bool) -> None:
        """A record comes into the ledger: a new one, or one that was read back."""

    def read_back(self, records: Sequence[Record]) -> None:
        """The ledger is sure, and these records were read back from the children."""

    def seen(self, space: str, objects: Iterable[ObjectKey]) -> None:
        """A list was believed, which shows these."""

    def heard(self, space: str, what: str, key: ObjectKey) -> None:
        """A watch told a change: `put` or `deleted`."""


class Desk:
    """One run of the controllers; `sure` once the ledger is, `placements` and `registry` then.

    `answered` tells when a child was asked last for what it holds, and answered.
    """

    def __init__(
        self,
        root: Host,
        notes: Notes,
        enrolled: dict[str, str],
        spaces: tuple[BlindSpace, BlindSpace],
        clerk: Clerk,
    ) -> None:
        self.root, self.world, self.run = root, root.world, root.run
        self.notes, self.clerk = notes, clerk
        self.sure = self.ended = False
        self._enrolled = enrolled
        self._workloads, self._inventory = spaces
        own = root.streams.own.items()
        kept = [decode_envelope(item.data) for key, item in own if key not in NO_RECORDS]
        self.ledger = Ledger(TREE, kept)
        self.placements = Placements("", {}, notes)
        self.registry = Registry("", TREE, self.ledger.records, notes)
        self.reading = ReadingBack(self.ledger, notes, enrolled)
        self.answered: dict[str, float] = {}
        self._names: dict[str, None] = {}
        self._keys: dict[ObjectKey, None] = {}
        self._planned = False
        self._index_at: float | None = None
        self._indexed = float("-inf")

    @property
    def here(self) -> bool:
        """Whether this run goes on."""
        return not self.ended and self.root.node is not None and self.root.run == self.run

    def begin(self) -> None:
        """Issue what a new tree needs; make sure of the ledger, then reconcile."""
        if KEYS_KEY not in self.ledger.records:
            self.issue([_keys_draft()], ROOT_KEY)
        if INDEX_KEY not in self.ledger.records and not self.reading.lost:
            self._issue_index()
        if self.reading.lost:
            for name, nkey in sorted(self._enrolled.items()):
                draft = node_draft(NodePath().child(name), nkey)
                known = self.ledger.records.get(draft.slot)
                if known is None or known.deleted:
                    self.issue([draft])
        Recall(self, self._reconcile).begin()

    def issue(self, drafts: Sequence[Draft], signer: Signer = SIGNING_KEY) -> list[Record]:
        """Blobs, then the ledger, then the node; in force only then."""
        records = self.ledger.stamp(drafts, self.root.instant().wall_ms)
        goes_on = together([draft.kind for draft in drafts])
        for draft, record, more in zip(drafts, records, goes_on, strict=True):
            envelope = signer.seal(draft.kind, encode_payload(record), draft.body)
            self.put_in_ledger(envelope, record, draft.blobs, anew=True, more=more)
        return records

    def put_in_ledger(
        self,
        envelope: Envelope,
        record: Record,
        blobs: Mapping[ContentHash, bytes],
        *,
        anew: bool = False,
        more: bool = False,
    ) -> None:
        """Keep a record, tell the node, and hold it for issued; if `more`, with the next one."""
        data, slot = envelope.encode(), slot_of(envelope.kind, record)
        self.world.note("centre", f"issue {envelope.kind} {record.source.name} {record.generation}")
        self.root.streams.blobs.update(blobs)
        self.clerk.entered(envelope.kind, record, envelope, anew=anew)
        self.root.streams.own.pop(slot, None)
        self.root.streams.own[slot] = OwnRecord(slot, data, "", 0)
        self.root.tell(Issued(data, (), frozenset(blobs), more))
        self.ledger.remember(envelope.kind, record, bare=envelope.body is None)
        self.notes.issued(record.generation)

    # What people say.

    def accept(self, name: str) -> None:
        self._look(self.placements.accept(name))

    def accept_inventory(self) -> None:
        self._look_inventory(self.registry.accept())

    def orphans(self) -> tuple[Orphan, ...]:
        return self.placements.orphans(self.ledger.records)

    def withdraw(self, orphan: Orphan) -> None:
        """Let a placement of another space go."""
        head = self.ledger.records[orphan.key]
        assert isinstance(head, DeltaHead)
        self.issue([withdrawal(self._known(head))])
        self.notes.settle([orphan.key])
        self._renew()

    # Reconciling.

    def _reconcile(self, restored: Sequence[Record]) -> None:
        self.sure = True
        self.clerk.read_back(restored)
        self.registry = Registry(self._inventory.identity, TREE, self.ledger.records, self.notes)
        identity = self._workloads.identity
        ours = Placements(identity, {}, self.notes)
        heads = [r for r in self.ledger.records.values() if isinstance(r, DeltaHead)]
        known = {h.source.name: self._known(h) for h in heads if ours.is_ours(h)}
        self.placements = Placements(identity, known, self.notes, self.ledger.records)
        self._follow(self._workloads, self.placements, self._look)
        self._follow(self._inventory, self.registry, self._look_inventory)
        age = self.ledger.index_age_seconds(self.root.instant().wall_ms)
        self._index_soon(self.world.now + (0 if age is None else INDEX_MAX_AGE_SECONDS - age))

    def _follow(self, space: BlindSpace, machine: Machine, look: Callable) -> None:
        self.world.after(self.world.delay(), self._list, space, machine, look)

    def _list(self, space: BlindSpace, machine: Machine, look: Callable) -> None:
        if not self.here:
            return
        try:
            objects = space.shown()
        except SpaceAway:
            self.world.after(RETRY_SECONDS, self._list, space, machine, look)
            return
        if not machine.believes(space.identity):
            # The run of the centre ends, and the next one begins with the space that is there.
            self.ended = True
            return
        self.world.note("centre", f"lists {machine.identity}: {len(objects)} objects")
        self.clerk.seen(space.identity, objects)
        look(machine.listed(objects))
        told = Watch(self, (space, machine, look))
        space.watch(told)

    def listen(self, followed: Followed, what: str, key: ObjectKey, obj: Object) -> None:
        """Take a change of a space."""
        _, machine, look = followed
        if self.here:
            self.clerk.heard(machine.identity, what, key)
            look(machine.put(key, obj) if what == "put" else machine.deleted(key))

    def lose(self, followed: Followed) -> None:
        """A watch broke: what it told last may have been missed."""
        self.world.after(RETRY_SECONDS, self._list, *followed)

    def _look(self, names: Iterable[str]) -> None:
        self._names |= dict.fromkeys(sorted(names))
        self._soon()

    def _look_inventory(self, keys: Iterable[ObjectKey]) -> None:
        self._keys |= dict.fromkeys(sorted(keys))
        self._soon()

    def look_at_nodes(self, records: Iterable[Record]) -> None:
        """Nodes came or went."""
        self._look_inventory(self.registry.nodes_changed(records))

    def _soon(self) -> None:
        if not self._planned:
            self._planned = True
            self.world.after(GATHER_SECONDS, self._work)

    def _work(self) -> None:
        self._planned = False
        if not self.here:
            return
        keys, self._keys = self._keys, {}
        drafts, _ = self.registry.next(keys)
        self.issue(drafts)
        names, self._names = self._names, {}
        works = self.placements.next(names)
        if works:
            self.placements.issued(works, self.issue([work.draft for work in works]))
            self._renew()

    # The index.

    def _renew(self) -> None:
        gathered = self._indexed + INDEX_GATHER_SECONDS
        self._index_soon(max(self.world.now + INDEX_AFTER_SECONDS, gathered))

    def _index_soon(self, at: float) -> None:
        if self._index_at is None or at < self._index_at:
            self._index_at = at
            self.world.at(at, self._index_due, at)

    def _index_due(self, at: float) -> None:
        if self.here and at == self._index_at:
            self._index_at = None
            self._issue_index()

    def _issue_index(self) -> None:
        self._indexed = self.world.now
        draft, addresses = self.ledger.index(self.root.instant().wall_ms)
        self.issue([draft])
        self.ledger.index_issued(addresses)
        self._index_soon(self.world.now + INDEX_MAX_AGE_SECONDS)

    def _known(self, head: DeltaHead) -> Known:
        """A placement as the ledger and the blobs behind it say it."""
        bare = head.source.key in self.ledger.bare
        if head.deleted or not head.references or bare:
            return Known(head, {}, bare=bare)
        plain = open_blob(self.root, head.references[0])
        chunks = read_root(plain).chunks if plain is not None else ()
        parts = [open_blob(self.root, chunk) for chunk in chunks]
        if plain is None or None in parts:
            return Known(head, None)
        entries = {entry.key: entry for part in parts for entry in read_manifest_chunk(part or b"")}
        kept = {r.address for r in head.references} | {chunk.address for chunk in chunks}
        named = frozenset(entry.reference.address for entry in entries.values())
        lost = named - self.root.streams.blobs.keys()
        return Known(head, entries, frozenset(kept), lost)


def node_draft(path: NodePath, nkey: str) -> Draft:
    source = Source(API_NODE, TREE, "", str(path))
    return Draft("node", NodeRecord(source, 0, False, "", (), path=path, nkey=nkey))


def _keys_draft() -> Draft:
    grant = KeyGrant(SIGNING_KEY.key_id, public_key_of(SIGNING_KEY), SIGNED)
    source = Source(API_KEYS, TREE, "", "keys")
    return Draft("keys", KeysRecord(source, 0, False, "", (), grants=(grant,)))
