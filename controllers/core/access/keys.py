"""The keys of a tree as they change: some are granted, some end or are revoked, roots go on.

Nothing here is kept or published: whoever drives it keeps the ring first, then publishes what the
ring says. So a start after a crash finds in the ring what is still to be published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from relay.core.records.trust import RootWalk, signers_of
from schemas.records.records import (
    API_KEYS,
    GRANTS_MAX,
    KeyGrant,
    KeysRecord,
    Record,
    Source,
    encode_payload,
)
from schemas.records.roots import Roots, keys_envelope, keys_record, leading_on, root_keys, roots_of
from schemas.records.signing import Envelope, Signer
from schemas.values import wire
from schemas.values.identity import KeyId, MailKey, TreeId
from schemas.values.refusals import RecordRefused
from schemas.values.wire import INT_MAX

SIGNING_KINDS = ("delta", "profile", "location", "node", "snapshot", "ask")
# A question is not kept, so nobody needs an old key for one.
_ENDED_KINDS = tuple(kind for kind in SIGNING_KINDS if kind != "ask")
REQUEST_MS = 30 * 24 * 3600 * 1000
"""So long a request may be on its way through the hands of those who hold roots."""
KEPT_MS = 24 * 3600 * 1000
"""So long a key that ended stays listed, though nothing in force is signed by it."""
_ANEW = "make the request anew, and sign that one"
REVOKED_MAX = 16
PREPARED_MAX = 16


class KeysRefused(Exception):
    """A change of keys that cannot be; `remedy` says what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The private keys of a centre, and the last `keys` message that is complete."""

    tree: TreeId
    signing: Signer = field(repr=False)
    roots: tuple[Signer, ...] = field(default=(), repr=False)
    message: Envelope | None = None
    # New keys of requests that lack signatures.
    prepared: tuple[Signer, ...] = field(default=(), repr=False)

    @property
    def record(self) -> KeysRecord | None:
        """What the message says."""
        return keys_record(self.message) if self.message is not None else None

    @property
    def pinned(self) -> Roots:
        """The roots that a node is to begin with."""
        if (record := self.record) is not None and (named := roots_of(record)) is not None:
            return wire.replace(named, since=record.generation)
        return Roots({root.key_id: root.public_key for root in self.roots})

    @property
    def since(self) -> int:
        """The generation from which on the signing key may sign."""
        grants = self.record.grants if self.record is not None else ()
        return max((it.first for it in grants if it.key_id == self.signing.key_id), default=0)

    def prepare(self, *signers: Signer) -> KeyRing:
        """Keep new keys until the request that names them is signed."""
        return replace(self, prepared=(*self.prepared, *signers)[-PREPARED_MAX:])


@dataclass(frozen=True, slots=True)
class KeyChange:
    """What is to be otherwise: each of these, or none. `roots` are all the public root keys."""

    signing: Signer | None = None
    revoked: KeyId | None = None
    roots: Mapping[KeyId, bytes] | None = None
    threshold: int | None = None
    # New roots whose private half is here.
    made: tuple[Signer, ...] = ()


@dataclass(frozen=True, slots=True)
class KeysRequest:
    """A `keys` record that lacks signatures; `base` is the generation that it replaces."""

    tree: TreeId
    base: int
    payload: bytes
    signatures: Mapping[KeyId, bytes]


@dataclass(frozen=True, slots=True)
class Stamp:
    """When something is issued."""

    generation: int
    term: str


def changed_record(
    ring: KeyRing, change: KeyChange, stamp: Stamp, signed_by: Collection[KeyId], *, alone: bool
) -> KeysRecord:
    """What is to be signed. `signed_by` are the keys that something in force is signed by.

    If the centre cannot sign it `alone` the key that ends may sign until the signatures are there.
    Raises KeysRefused.
    """
    base, roots = ring.record, ring.pinned
    grants = list(base.grants) if base is not None else [granted(ring.signing)]
    if change.signing is not None:
        last = stamp.generation if alone else min(stamp.generation + REQUEST_MS, INT_MAX)
        grants = [
            wire.replace(it, last=last, kinds=_ENDED_KINDS)
            if it.key_id == ring.signing.key_id
            else it
            for it in grants
        ]
        grants.append(granted(change.signing, first=stamp.generation))
    if change.revoked is not None:
        end = stamp.generation
        grants = [
            wire.replace(it, kinds=(), last=end) if it.key_id == change.revoked else it
            for it in grants
        ]
    if change.roots is not None:
        if not change.roots:
            # Without roots a record would leave those that are pinned.
            remedy = "name new ones: leafcast keys rotate root --root FILE.pub"
            raise KeysRefused("no root would be left", remedy)
        roots = Roots(change.roots, change.threshold or roots.threshold, roots.version + 1)
    try:
        return KeysRecord(
            source=Source(API_KEYS, ring.tree, "", "keys"),
            generation=stamp.generation,
            term=stamp.term,
            trace="",
            grants=tuple(_kept(grants, signed_by, stamp.generation)),
            roots=root_keys(roots.keys),
            threshold=roots.threshold,
            version=roots.version,
        )
    except ValueError as error:
        remedy = "name other roots, or another --threshold, to `leafcast keys rotate root`"
        raise KeysRefused(str(error), remedy) from error


def granted(signer: Signer, first: int = 0) -> KeyGrant:
    """The grant of a key that signs everything but keys."""
    return KeyGrant(signer.key_id, signer.public_key, SIGNING_KINDS, first=first)


def signs_alone(ring: KeyRing, change: KeyChange) -> bool:
    """Whether enough roots are here for the signatures that a change needs."""
    held = {root.key_id for root in (*ring.roots, *change.made)}
    now = ring.pinned
    needed = [(now.keys, now.threshold)]
    if change.roots is not None:
        needed.append((change.roots, change.threshold or now.threshold))
    return all(len(held & keys.keys()) >= threshold for keys, threshold in needed)


def request_of(ring: KeyRing, record: KeysRecord, made: Iterable[Signer] = ()) -> KeysRequest:
    """A record with the signatures of those roots that are here."""
    base, payload = ring.record, encode_payload(record)
    named = ring.pinned.keys.keys() | {root.key_id for root in record.roots}
    signatures = {
        root.key_id: root.seal("keys", payload).signature
        for root in (*ring.roots, *ring.prepared, *made)
        if root.key_id in named
    }
    return KeysRequest(ring.tree, base.generation if base else 0, payload, signatures)


def completed(ring: KeyRing, request: KeysRequest, highest: int) -> KeyRing:
    """The ring once a request is in force; `highest` is the newest generation that was issued.

    Raises KeysRefused, and RootsRefused for signatures that are missing.
    """
    message = _message(ring, request)
    record = keys_record(message)
    walk = RootWalk(ring.tree, ring.pinned)
    walk.follow(message)
    here = {it.key_id: it for it in (ring.signing, *ring.roots, *ring.prepared)}
    in_use = [it for it in record.grants if "ask" in it.kinds and it.key_id in here]
    _demand(in_use, "the signing key that this request names is not here", _ANEW)
    ended = [it for it in record.grants if it.key_id == ring.signing.key_id and it not in in_use]
    is_new = all(it.is_revoked or it.last >= highest for it in ended)
    _demand(is_new, "the request is too old: what was issued since would not be believed", _ANEW)
    named = walk.roots.keys
    roots = tuple(it for key, it in here.items() if named.get(key) == it.public_key)
    return KeyRing(ring.tree, here[in_use[-1].key_id], roots, message)


def renewed(ring: KeyRing, stamp: Stamp) -> KeyRing | None:
    """The same keys in a newer message; None if the roots are elsewhere."""
    record = ring.record
    if record is None or not signs_alone(ring, KeyChange()):
        return None
    request = request_of(ring, wire.replace(record, generation=stamp.generation, term=stamp.term))
    return replace(ring, message=_message(ring, request))


def unbelieved(
    record: KeysRecord, records: Mapping[MailKey, Record], signed: Mapping[MailKey, Envelope]
) -> list[MailKey]:
    """What is in force and signed by a key that may not sign it any more: to be issued anew."""
    grants = {grant.key_id: grant for grant in record.grants}
    found = []
    for key, envelope in signed.items():
        held, grant = records.get(key), grants.get(envelope.key_id)
        if held is None or isinstance(held, KeysRecord):
            continue
        if grant is None or not grant.covers(envelope.kind, held):
            found.append(key)
    return found


def missing_signatures(ring: KeyRing, request: KeysRequest) -> list[tuple[Roots, set[KeyId]]]:
    """Whose signatures a request needs and lacks: so many more of these, by set of roots."""
    envelope = keys_envelope(request.payload, request.signatures or {KeyId(""): b""})
    now, then, found = wire.replace(ring.pinned, since=0), roots_of(keys_record(envelope)), []
    for roots in (now,) if then in (now, None) else (now, then):
        assert roots is not None
        signed = signers_of(ring.tree, envelope, roots)
        if len(signed) < roots.threshold:
            found.append((roots, set(roots.keys) - signed))
    return found


def _message(ring: KeyRing, request: KeysRequest) -> Envelope:
    """The signed message of a request; raises KeysRefused."""
    base = ring.record
    whose = f"the request is of tree {request.tree}"
    _demand(request.tree == ring.tree, whose, f"this one is {ring.tree}")
    same = request.base == (base.generation if base is not None else 0)
    remedy = "make it anew from the keys in force, and sign that one"
    _demand(same, "the keys changed since the request was made", remedy)
    _demand(request.signatures, "the request has no signature", "sign it with `leafcast keys sign`")
    forerunners = leading_on(ring.message) if ring.message is not None else ()
    message = keys_envelope(request.payload, request.signatures, forerunners)
    try:
        record = keys_record(message)
    except RecordRefused as error:
        raise KeysRefused(str(error), "make the request anew") from error
    is_newer = base is None or record.generation > base.generation
    _demand(is_newer, "the request is older than the keys in force", "make it anew")
    return message


def _kept(
    grants: list[KeyGrant], signed_by: Collection[KeyId], generation: int
) -> Iterable[KeyGrant]:
    """What stays listed: keys in use, those that something is signed by, a few that are revoked."""
    revoked = [it.key_id for it in grants if it.is_revoked][-REVOKED_MAX:]
    kept = [
        it
        for it in grants
        if it.key_id in revoked
        or (not it.is_revoked and (it.key_id in signed_by or it.last + KEPT_MS >= generation))
    ]
    # Of too many the oldest that ended go: what they signed is issued anew.
    excess = len(kept) - GRANTS_MAX
    gone = {it.key_id for it in [it for it in kept if it.last < INT_MAX][: max(0, excess)]}
    return [it for it in kept if it.key_id not in gone]


def _demand(holds: object, otherwise: str, remedy: str) -> None:
    """Raises KeysRefused unless it holds."""
    if not holds:
        raise KeysRefused(otherwise, remedy)
