"""Sealed content: how keys follow from each other, and what is closed and opened with them.

A **master** is the centre's. From it follow the **fleet key**, which every edge of the tree is
given in a box of its own, and for each placement a **placement key**, which its delta brings under
the fleet key. All of it is a pure function of what goes in: equal content under one key gives equal
bytes, so that it keeps its address.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from nacl import bindings
from nacl.exceptions import CryptoError
from nacl.public import Box, PrivateKey, PublicKey, SealedBox

from schemas.content import blobs
from schemas.content.aes_siv import KEY_BYTES as SIV_KEY_BYTES
from schemas.content.aes_siv import TAG_BYTES, NotAuthentic, Siv, siv
from schemas.content.blobs import StoredBlob
from schemas.values.identity import ContentHash, MailKey, TreeId
from schemas.values.refusals import BlobRefused, RecordRefused

KEY_BYTES, KEY_ID_BYTES, MARK_BYTES = 32, 6, 6
PLACEMENT_KEY_BYTES = 16
"""Of what each delta carries: 128 bits, as many as the tag of AES-SIV has."""
FLEET_KEYS_MAX, PLACEMENT_KEYS_MAX = 2, 16
SIZES_MAX = {blobs.OBJECT: blobs.OBJECT_MAX_BYTES, blobs.TEMPLATE: blobs.OBJECT_MAX_BYTES}
_WRAPPED = "key"


class NotOpened(BlobRefused):
    """Sealed bytes that no key at hand opens: it is another one's, or they are damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__("", reason)


class FleetKeyMissing(NotOpened):
    """What is sealed under a fleet key that is not here, or not here yet."""


# Which keys there are.


def fleet_key(master: bytes) -> bytes:
    """The key that every edge of the tree is given."""
    return _derived(master, b"lc fleet")


def placement_key(master: bytes, source: MailKey, count: int) -> bytes:
    """The key of one placement; `count` is raised to change it alone."""
    said = source.encode() + b"\0" + count.to_bytes(8, "big")
    return _derived(master, b"lc placement", said, PLACEMENT_KEY_BYTES)


def marking_key(master: bytes) -> bytes:
    """What objects are marked with, from the first master of a tree; the centre alone has it."""
    return _derived(master, b"lc marking")


def mark(marking: bytes, address: ContentHash) -> str:
    """What an object of this address in clear is known by, under every key: 6 bytes, as hex.

    So short a digest is enough, because none but the centre can look for two that are equal.
    """
    said = address.encode()
    return hashlib.blake2b(said, key=marking, digest_size=MARK_BYTES, person=b"lc mark").hexdigest()


def key_id(key: bytes) -> bytes:
    """What a key is called where everybody sees it: 6 bytes."""
    return hashlib.blake2b(key, digest_size=KEY_ID_BYTES, person=b"lc key id").digest()


# What is closed with a key.


def seal(key: bytes, kind: str, tree: TreeId, plain: bytes, bound: bytes = b"") -> bytes:
    """Close bytes as what they are in their tree; `bound` must be told again to open them."""
    return _cipher(key, kind, tree).encrypt(blobs.compress(plain), bound)


def unseal(
    key: bytes, kind: str, tree: TreeId, sealed: bytes, size_max: int, bound: bytes = b""
) -> bytes:
    """The plain bytes, at most so many; raises NotOpened, or BlobRefused of what is too large."""
    if len(sealed) <= TAG_BYTES:
        raise NotOpened(f"a sealed {kind} of {len(sealed)} bytes")
    try:
        value = _cipher(key, kind, tree).decrypt(sealed, bound)
    except NotAuthentic:
        raise NotOpened(f"this {kind} is sealed under another key, or altered") from None
    plain = blobs.decompress(value, size_max)
    if len(plain) > size_max:
        raise BlobRefused("", f"opens to {len(plain)} bytes, at most {size_max} are read")
    return plain


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A key of one placement in one tree."""

    tree: TreeId
    key: bytes = field(repr=False)

    @property
    def id(self) -> bytes:
        return key_id(self.key)

    def store(self, kind: str, plain: bytes) -> StoredBlob:
        """The blob of what is sealed: its address and its size are those of the sealed bytes."""
        return blobs.store_sealed(kind, seal(self.key, kind, self.tree, plain))

    def seal(self, kind: str, plain: bytes, bound: bytes = b"") -> bytes:
        return seal(self.key, kind, self.tree, plain, bound)

    def unseal(self, kind: str, sealed: bytes, bound: bytes = b"") -> bytes:
        """The plain bytes; raises NotOpened, or BlobRefused of what is too large."""
        size_max = SIZES_MAX.get(kind, blobs.BLOB_MAX_BYTES)
        return unseal(self.key, kind, self.tree, sealed, size_max, bound)


def named(keys: Iterable[SealingKey], key_id: bytes) -> SealingKey:
    """The key of this id; raises NotOpened."""
    for key in keys:
        if key.id == key_id:
            return key
    raise NotOpened(f"it is sealed under key {key_id.hex()}, which is not here")


# How keys travel.


def fleet_box(master: bytes, public_key: bytes, keys: Iterable[bytes]) -> bytes:
    """Fleet keys, newest first, for the holder of an X25519 key; raises RecordRefused.

    It opens as any sealed box of libsodium. Its ephemeral key follows from what goes in, so that
    the same keys for the same holder give the same bytes.
    """
    plain = _joined(keys, KEY_BYTES, FLEET_KEYS_MAX)
    ephemeral = PrivateKey(_derived(master, b"lc fleet box", public_key + plain))
    sender = bytes(ephemeral.public_key)
    nonce = hashlib.blake2b(sender + public_key, digest_size=Box.NONCE_SIZE).digest()
    try:
        boxed = Box(ephemeral, PublicKey(public_key)).encrypt(plain, nonce)
    except (CryptoError, ValueError, TypeError) as error:
        raise RecordRefused(f"its sealing key is none ({error})") from error
    return sender + boxed.ciphertext


def open_fleet_box(private_key: bytes, box: bytes) -> tuple[bytes, ...]:
    """The fleet keys in a box, newest first; raises NotOpened."""
    try:
        plain = SealedBox(PrivateKey(private_key)).decrypt(box)
    except (CryptoError, ValueError, TypeError):
        raise NotOpened("the fleet keys are sealed to another node's key") from None
    return _parted(plain, KEY_BYTES, FLEET_KEYS_MAX)


def fleet_boxes(master: bytes, nkeys: Iterable[str], keys: Sequence[bytes]) -> tuple[bytes, bytes]:
    """X25519 keys of a profile, and a box for each nkey to which something can be sealed."""
    publics, boxes = [], []
    for nkey in nkeys:
        try:
            public = sealing_public(nkey)
            boxes.append(fleet_box(master, public, keys))
        except RecordRefused:
            continue
        publics.append(public)
    return b"".join(publics), b"".join(boxes)


def fleet_keys_for(
    private_keys: Iterable[bytes], public_keys: bytes, boxes: bytes
) -> tuple[bytes, ...]:
    """The fleet keys that a profile brings who has these X25519 keys; none if it brings none."""
    count = len(public_keys) // KEY_BYTES
    if not count or len(public_keys) % KEY_BYTES or len(boxes) % count:
        return ()
    size = len(boxes) // count
    for private in private_keys:
        mine = bytes(PrivateKey(private).public_key)
        for at in range(count):
            if public_keys[at * KEY_BYTES : (at + 1) * KEY_BYTES] == mine:
                return open_fleet_box(private, boxes[at * size : (at + 1) * size])
    return ()


def wrap_keys(fleet: bytes, tree: TreeId, source: MailKey, keys: Iterable[bytes]) -> bytes:
    """Keys of a placement, newest first, under a fleet key, whose id comes before them."""
    plain = _joined(keys, PLACEMENT_KEY_BYTES, PLACEMENT_KEYS_MAX)
    return key_id(fleet) + seal(fleet, _WRAPPED, tree, plain, source.encode())


def unwrap_keys(
    fleet: Iterable[bytes], tree: TreeId, source: MailKey, wrapped: bytes
) -> tuple[bytes, ...]:
    """The keys of a placement, newest first; raises FleetKeyMissing or NotOpened."""
    named, sealed = wrapped[:KEY_ID_BYTES], wrapped[KEY_ID_BYTES:]
    for key in fleet:
        if key_id(key) == named:
            size = PLACEMENT_KEY_BYTES * PLACEMENT_KEYS_MAX
            plain = unseal(key, _WRAPPED, tree, sealed, size, source.encode())
            return _parted(plain, PLACEMENT_KEY_BYTES, PLACEMENT_KEYS_MAX)
    raise FleetKeyMissing(f"it is sealed under fleet key {named.hex()}, which is not here")


# The X25519 keys of nodes follow from their nkeys.


def sealing_public(nkey: str) -> bytes:
    """The X25519 key of who holds a public nkey (`U...`); raises RecordRefused."""
    try:
        # A prefix, the key, and a checksum of two bytes.
        public = base64.b32decode(nkey)[1:-2]
        made: bytes = bindings.crypto_sign_ed25519_pk_to_curve25519(public)
    except (binascii.Error, ValueError, CryptoError) as error:
        raise RecordRefused(f"nothing can be sealed to the nkey {nkey!r}: {error}") from error
    return made


def sealing_private(entropy: bytes) -> bytes:
    """The private half, from the 32 bytes that an nkey's seed says."""
    _, secret = bindings.crypto_sign_seed_keypair(entropy)
    made: bytes = bindings.crypto_sign_ed25519_sk_to_curve25519(secret)
    return made


def _derived(key: bytes, person: bytes, said: bytes = b"", size: int = KEY_BYTES) -> bytes:
    return hashlib.blake2b(said, key=key, digest_size=size, person=person).digest()


@lru_cache(maxsize=256)
def _cipher(key: bytes, kind: str, tree: TreeId) -> Siv:
    """A cipher for one of our keys; what is bound to it differs from use to use."""
    associated = (b"leafcast/sealed/1", kind.encode(), tree.encode())
    return siv(_derived(key, b"lc siv", size=SIV_KEY_BYTES), associated)


def _joined(keys: Iterable[bytes], size: int, count_max: int) -> bytes:
    listed = list(keys)
    assert 1 <= len(listed) <= count_max
    assert all(len(key) == size for key in listed)
    return b"".join(listed)


def _parted(plain: bytes, size: int, count_max: int) -> tuple[bytes, ...]:
    if not plain or len(plain) % size or len(plain) > size * count_max:
        raise NotOpened(f"{len(plain)} bytes are no keys")
    return tuple(plain[at : at + size] for at in range(0, len(plain), size))
