"""Content on demand: walks from a record's references to all blobs they lead to.

A node publishes a delta to children only when everything it names is in its own store, so a walk is
done when nothing is missing any more. Each value is checked against its address before it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from relay.core.content.owners import ContentOwner
from relay.core.effects import Effect, KeepBlob, LoadBlob, Noted
from relay.core.events import BlobArrived
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.content.manifest import Manifest, chunk_references, read_manifest, read_root
from schemas.content.sealing import SealingKey
from schemas.records.snapshots import SNAPSHOT_INNER, read_inner
from schemas.values.identity import ContentHash
from schemas.values.refusals import WireRefused

RETRY_FIRST_SECONDS = 0.5
RETRY_MAX_SECONDS = 30.0
UNHEARD_MAX_SECONDS = 60.0
"""A parent that is there and does not answer for so long counts as one that lacks it: what takes
waits for what was to come before it, and must not wait for ever."""
_LACKED, _UNHEARD = "neither here nor at the parent", "not here, and the parent does not answer"
_BRANCHING = frozenset({blobs.MANIFEST, blobs.MANIFEST_CHUNK})


@dataclass(slots=True)
class ContentWalk:
    """One owner's way through its content; `plains` keeps the structure for those who read it."""

    missing: dict[ContentHash, None] = field(default_factory=dict)
    seen: set[ContentHash] = field(default_factory=set)
    plains: dict[ContentHash, bytes] | None = None
    expand: bool = True
    # Whether objects are read, too.
    objects: bool = False
    noted: set[str] = field(default_factory=set)

    def reads(self, reference: Reference) -> bool:
        """Whether the plain bytes of this are kept."""
        return self.plains is not None and (self.objects or reference.kind != blobs.OBJECT)


@dataclass(slots=True)
class _Want:
    reference: Reference
    owners: dict[ContentOwner, None]
    attempts: int = 0
    fresh: bool = False
    retry_at: float | None = None
    unheard_since: float | None = None


class Content:
    """All walks of a node, and what is in its own blob store.

    Nothing is known of what nobody answers for: it is asked for again, and no more comes of that
    while the link is lost.
    """

    def __init__(self, held: Iterable[ContentHash], out: list[Effect]) -> None:
        self._held = set(held)
        self._out = out
        self._whole: set[ContentHash] = set()
        self._walks: dict[ContentOwner, ContentWalk] = {}
        self._wants: dict[ContentHash, _Want] = {}
        # Small blobs that came along with mail of this batch.
        self._carried: dict[ContentHash, bytes] = {}
        self._linked = False
        # Since when content is refused that an owner still lacks.
        self._refused_since: dict[ContentOwner, float] = {}
        # Owners whose content was refused since someone asked.
        self._troubled: dict[ContentOwner, None] = {}

    @property
    def held(self) -> AbstractSet[ContentHash]:
        """What is in the node's own store."""
        return self._held

    def keep(self, addresses: Iterable[ContentHash]) -> None:
        """These are in the store: the centre put them there, or they came along with a record."""
        self._held.update(addresses)

    def begin_batch(self) -> None:
        """Other mail comes: what came along with the last is not asked for any more."""
        self._carried.clear()

    def carry(self, blobs: Iterable[tuple[ContentHash, bytes]]) -> None:
        """These came along with a record: walks that begin in this batch need not load them."""
        self._carried.update(blobs)

    def take_troubled(self) -> list[ContentOwner]:
        """The owners whose content was refused since this was asked last."""
        taken, self._troubled = list(self._troubled), {}
        return taken

    def begin(
        self,
        owner: ContentOwner,
        references: tuple[Reference, ...],
        *,
        read: bool = False,
        expand: bool = True,
        objects: bool = False,
    ) -> bool:
        """Walk for an owner, in place of its former walk; whether all is here already.

        A walk that is done is forgotten, unless it reads: with `read` the plain bytes of the
        structure are kept for `plains`, with `objects` those of objects, too. Without `expand` only
        the references themselves are fetched.
        """
        self.end(owner)
        if not read and self._has_all(references, expand=expand):
            return True
        walk = self._walks[owner] = ContentWalk({}, set(), {} if read else None, expand, objects)
        for reference in references:
            self._visit(owner, walk, reference)
        if not walk.missing:
            self._finish(owner, walk)
        return not walk.missing

    def end(self, owner: ContentOwner) -> None:
        """Forget an owner's walk."""
        walk = self._walks.pop(owner, None)
        self._refused_since.pop(owner, None)
        for address in walk.missing if walk else ():
            want = self._wants[address]
            want.owners.pop(owner, None)
            if not want.owners:
                del self._wants[address]

    def knows(self, owner: ContentOwner) -> bool:
        return owner in self._walks

    def refused_since(self, owner: ContentOwner) -> float | None:
        """Since when the owner's content cannot be had; None while nothing was refused."""
        return self._refused_since.get(owner)

    def missing(self, owner: ContentOwner) -> tuple[ContentHash, ...]:
        """What the owner's walk lacks, as far as it has come."""
        walk = self._walks.get(owner)
        return tuple(walk.missing) if walk is not None else ()

    def refused_before(self, at: float) -> list[ContentOwner]:
        """The owners whose content cannot be had, and could not then."""
        return [owner for owner, since in self._refused_since.items() if since < at]

    def plains(self, owner: ContentOwner) -> dict[ContentHash, bytes]:
        """The structure that a reading walk passed, by address."""
        walk = self._walks[owner]
        return walk.plains if walk.plains is not None else {}

    def arrived(self, event: BlobArrived, now: float) -> list[ContentOwner]:
        """Take the answer to a LoadBlob; names the owners whose walk is done by it."""
        want = self._wants.get(event.reference.address)
        if want is None:
            return []
        if event.value is None:
            self._lost(event.reference.address)
            self._missed(want, now, unheard=event.unheard)
            return []
        parts = dict(event.parts)
        try:
            plain = blobs.open_value(want.reference, event.value, parts)
            children = references_in(want.reference.kind, plain)
        except WireRefused as error:
            self._lost(want.reference.address)
            want.fresh = True
            self._refused(want, now, "BadBlob", str(error))
            return []
        self._keep(event, event.value, parts)
        return self._advance(want, plain, children)

    def in_use(self) -> set[ContentHash]:
        """What is being fetched, and what walks have passed on their way."""
        passed = (walk.seen for walk in self._walks.values())
        return set(self._wants).union(*passed)

    def forget(self, addresses: AbstractSet[ContentHash]) -> None:
        """Note that these leave the store: walks past them are made again."""
        self._held -= addresses
        self._whole.clear()

    def deadline(self) -> float | None:
        """When the next retry is due."""
        if not self._wants:
            return None
        return min(
            (w.retry_at for w in self._wants.values() if w.retry_at is not None), default=None
        )

    def retry(self, now: float) -> None:
        """Ask again for what is due."""
        for want in self._wants.values():
            if want.retry_at is not None and want.retry_at <= now:
                want.retry_at = None
                self._out.append(LoadBlob(want.reference, want.fresh))

    def assert_invariants(self) -> None:
        """Assert that walks and wants are each other's reverse, and what is whole is held."""
        assert all(self._walks[owner].missing for owner in self._refused_since)
        missing = {(owner, a) for owner, walk in self._walks.items() for a in walk.missing}
        assert missing == {(owner, a) for a, want in self._wants.items() for owner in want.owners}
        assert all(want.owners for want in self._wants.values())
        assert self._whole <= self._held

    def link(self, *, up: bool) -> None:
        """Take in whether the parent can be asked; a link that is lost takes no time from it."""
        self._linked = up
        for want in self._wants.values():
            want.unheard_since = None

    def retry_all(self) -> None:
        """Ask again for all that was not to be had: the link or the parent's run is new."""
        for want in self._wants.values():
            want.unheard_since = None
            if want.retry_at is not None:
                want.retry_at, want.attempts = None, 0
                self._out.append(LoadBlob(want.reference, want.fresh))

    def _has_all(self, references: Iterable[Reference], *, expand: bool) -> bool:
        """Whether these, and all that they lead to, are known to be here."""
        known, held = self._whole, self._held
        return all(
            reference.address in held
            and (reference.address in known or not (expand and reference.kind in _BRANCHING))
            for reference in references
        )

    def _visit(self, owner: ContentOwner, walk: ContentWalk, reference: Reference) -> None:
        address = reference.address
        if address in walk.seen:
            return
        walk.seen.add(address)
        branching = walk.expand and reference.kind in _BRANCHING
        reads = walk.reads(reference)
        if address in self._held and (address in self._whole or not branching) and not reads:
            return
        want = self._wants.get(address)
        if want is None and self._take_carried(owner, walk, reference):
            return
        walk.missing[address] = None
        if want is None:
            want = self._wants[address] = _Want(reference, {})
            self._out.append(LoadBlob(reference, fresh=address not in self._held))
        want.owners[owner] = None

    def _take_carried(self, owner: ContentOwner, walk: ContentWalk, reference: Reference) -> bool:
        """Go on with a value that came along; one that is no good is loaded."""
        value = self._carried.get(reference.address)
        if value is None:
            return False
        try:
            plain = blobs.open_value(reference, value)
            children = references_in(reference.kind, plain)
        except WireRefused:
            return False
        if reference.address not in self._held:
            self._held.add(reference.address)
            self._out.append(KeepBlob(reference.address, value))
        self._pass(owner, walk, reference, plain, children)
        return True

    def _pass(
        self,
        owner: ContentOwner,
        walk: ContentWalk,
        reference: Reference,
        plain: bytes,
        children: tuple[Reference, ...],
    ) -> None:
        """Go on behind a blob that is here."""
        if walk.plains is not None and walk.reads(reference):
            walk.plains[reference.address] = plain
        for child in children if walk.expand else ():
            self._visit(owner, walk, child)

    def _finish(self, owner: ContentOwner, walk: ContentWalk) -> None:
        self._refused_since.pop(owner, None)
        self._whole.update(walk.seen if walk.expand else ())
        if walk.plains is None:
            del self._walks[owner]

    def _advance(
        self, want: _Want, plain: bytes, children: tuple[Reference, ...]
    ) -> list[ContentOwner]:
        address = want.reference.address
        del self._wants[address]
        done = []
        for owner in want.owners:
            walk = self._walks[owner]
            walk.missing.pop(address, None)
            self._pass(owner, walk, want.reference, plain, children)
            if not walk.missing:
                self._finish(owner, walk)
                done.append(owner)
        return done

    def _keep(self, event: BlobArrived, value: bytes, parts: dict[ContentHash, bytes]) -> None:
        """Keep what was checked: the value, and of the parts those that it lists."""
        listed = [part.address for part in blobs.parts_of(event.reference, value)]
        if not event.local:
            self._out.extend(KeepBlob(address, parts[address]) for address in listed)
            self._out.append(KeepBlob(event.reference.address, value))
        self._held.update(listed, (event.reference.address,))

    def _lost(self, address: ContentHash) -> None:
        """Note that a value is missing or damaged in the store: walks past it are made again."""
        if address in self._held:
            self._held.discard(address)
            self._whole.clear()

    def _missed(self, want: _Want, now: float, *, unheard: bool) -> None:
        """Tell the parent's word that it lacks a value from its silence."""
        if not unheard:
            want.unheard_since = None
            self._refused(want, now, "MissingBlob", _LACKED)
            return
        if self._linked and want.unheard_since is None:
            want.unheard_since = now
        since = want.unheard_since
        if since is not None and now - since >= UNHEARD_MAX_SECONDS:
            self._refused(want, now, "MissingBlob", _UNHEARD)
        else:
            self._again(want, now)

    def _refused(self, want: _Want, now: float, reason: str, detail: str) -> None:
        """Say that content cannot be had, once for each walk, however much of it that is."""
        self._again(want, now)
        news = False
        for owner in want.owners:
            walk = self._walks[owner]
            news = news or reason not in walk.noted
            walk.noted.add(reason)
            if owner not in self._refused_since:
                self._refused_since[owner] = now
                self._troubled[owner] = None
        if news:
            subject = f"{want.reference.kind} {want.reference.address[:12]}"
            self._out.append(Noted(reason, subject, detail))

    def _again(self, want: _Want, now: float) -> None:
        """Ask once more, ever more seldom."""
        delay = min(RETRY_FIRST_SECONDS * 2**want.attempts, RETRY_MAX_SECONDS)
        want.attempts += 1
        want.retry_at = now + delay


def manifest_of(
    plains: Mapping[ContentHash, bytes], root: Reference, keys: Iterable[SealingKey] = ()
) -> Manifest:
    """The manifest, from what a reading walk kept; raises NotOpened of one that is sealed."""
    return read_manifest(plains[root.address], plains, keys)


def references_in(kind: str, plain: bytes) -> tuple[Reference, ...]:
    """What a blob leads to; raises RecordRefused if it is not of its kind."""
    if kind == blobs.MANIFEST:
        return read_root(plain).chunks
    if kind == blobs.MANIFEST_CHUNK:
        return chunk_references(plain)
    if kind == SNAPSHOT_INNER:
        return read_inner(plain).references
    return ()
