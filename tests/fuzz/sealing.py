"""What is sealed, as it comes over the wire; and what a seal holds that a centre made badly."""

from __future__ import annotations

from contextlib import suppress

from controllers.core.access.keyring import Keyring
from relay.adapters.server.nkey_pairs import BadNkey, new_user_nkey, private_key
from schemas import blobs, chunks, sealing
from schemas.chunks import MANIFEST_CHUNK_MEAN, SEALED_VERSION, SealedChunk, build_manifest
from schemas.identity import MailKey, TreeId, random_id
from schemas.refusals import WireRefused
from schemas.upsync import UpsyncClause
from schemas.wire import encode, replace
from tests.fuzz.inputs import text_of
from tests.fuzz.target import Form, Target
from tests.unit import test_wire_golden as golden

TREE, SHOP, MASTER = TreeId(random_id(bytes(16))), MailKey("shop"), b"m" * 32
RING = Keyring(TREE, (MASTER,))
KEYS = RING.keys(SHOP)
KEY = KEYS.keys[0]
SEED, NKEY = new_user_nkey(b"e" * 32)


def closed(data: bytes) -> None:
    """Sealed bytes, keys that are wrapped, and boxes, by whoever passed them on."""
    for kind in (blobs.OBJECT, blobs.MANIFEST_CHUNK):
        with suppress(WireRefused):
            KEY.unseal(kind, data)
    KEYS.open(blobs.CUSTOMIZER, data)
    with suppress(WireRefused):
        sealing.unwrap_keys([sealing.fleet_key(MASTER)], TREE, SHOP, data)
    with suppress(WireRefused):
        sealing.fleet_keys_for([MASTER], sealing_public_of(MASTER) + data[:32], data[32:])
    with suppress(WireRefused):
        sealing.open_fleet_box(MASTER, data)
    with suppress(WireRefused):
        sealing.sealing_public(text_of(data))
    with suppress(BadNkey):
        private_key(text_of(data))


def sealing_public_of(private: bytes) -> bytes:
    return bytes(sealing.PrivateKey(private).public_key)


def inside(data: bytes) -> None:
    """What was sealed with the right key, and is no list of entries."""
    references = tuple(
        chunks.ClearReference(it.kind, bytes.fromhex(it.address), it.size)
        for it in golden.entry("a").references
    )
    sealed = KEY.seal(blobs.MANIFEST_CHUNK, data, encode(references))
    chunk = encode(SealedChunk(SEALED_VERSION, references, sealed))
    with suppress(WireRefused):
        for entry in chunks.read_manifest_chunk(chunk, KEY):
            assert entry.references == chunks.chunk_references(chunk)
            assert entry.identity


def lists(data: bytes) -> None:
    """Roots and chunks of sealed manifests, changed on their way."""
    with suppress(WireRefused):
        chunks.chunk_references(data)
    with suppress(WireRefused):
        chunks.read_manifest_chunk(data, KEY)
    with suppress(WireRefused, KeyError):
        chunks.read_manifest(data, {}, KEYS.keys)


def sealed_entries(count: int) -> list[chunks.ManifestEntry]:
    entries = (golden.entry(f"n{at}") for at in range(count))
    return [replace(it, enc=it.address, customizer=None) for it in entries]


def list_seeds() -> list[bytes]:
    clause = UpsyncClause("", ("configmaps",), (), ())
    made = build_manifest(sealed_entries(2 * MANIFEST_CHUNK_MEAN), [clause], KEY)
    return [blobs.open_stored(it) for it in made]


def inside_seeds() -> list[bytes]:
    rest = tuple(chunks._rest(entry) for entry in sealed_entries(1))
    return [encode(chunks.SealedEntries(rest))]


def closed_seeds() -> list[bytes]:
    public, boxes = RING.boxes(NKEY)
    texts = (SEED.encode(), NKEY.encode())
    return [KEY.seal(blobs.OBJECT, b"plain"), KEYS.wrapped, public + boxes, *texts]


TARGETS = {
    "sealed": Target(closed, closed_seeds),
    "sealed-inside": Target(inside, inside_seeds, Form.MSGPACK),
    "sealed-lists": Target(lists, list_seeds, Form.MSGPACK),
}
