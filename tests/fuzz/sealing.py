"""What is sealed, as it comes over the wire; and what a seal holds that a centre made badly."""

from __future__ import annotations

from contextlib import suppress

from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.secret import SecretBox

from controllers.core.access.keyring import Keyring
from leafcast.members.sealed_state import StateUnreadable, opened, sealed, sealed_to
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import BadNkey, new_user_nkey, private_key
from schemas.content import blobs, manifest, sealing
from schemas.content.manifest import SEALED_VERSION, SealedChunk, build_manifest
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ObjectResult
from schemas.reports.returned_states import opened_state, sealed_state
from schemas.reports.upsync import UpsyncClause
from schemas.values.codec import pack
from schemas.values.identity import MailKey, TreeId, random_id
from schemas.values.refusals import BlobRefused, WireRefused
from schemas.values.wire import encode, replace
from tests.fuzz.inputs import text_of
from tests.fuzz.target import Form, Target
from tests.unit import test_wire_golden as golden

TREE, SHOP, MASTER = TreeId(random_id(bytes(16))), MailKey("shop"), b"m" * 32
RING = Keyring(TREE).rotated(MASTER)
KEYS = RING.keys(SHOP)
KEY, MEMBER = KEYS.keys[0], b"k" * 32
RETURNED = ObjectResult(ObjectKey("apps", "deployments", "shop", "web"), 1, "inv-mb-u")
MARK = sealing.mark(KEYS.marking, golden.entry("a").reference.address)
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
    return bytes(PrivateKey(private).public_key)


def inside(data: bytes) -> None:
    """What was sealed with the right key, and is no list of entries."""
    bare = SealedChunk(SEALED_VERSION, b"\0", bytes.fromhex(golden.entry("a").address), (1,), b"")
    chunk = encode(replace(bare, sealed=KEY.seal(blobs.MANIFEST_CHUNK, data, bare.bound)))
    with suppress(WireRefused):
        for entry in manifest.read_manifest_chunk(chunk, KEY):
            assert entry.references == manifest.chunk_references(chunk)
            assert entry.identity


def lists(data: bytes) -> None:
    """Roots and chunks of sealed manifests, changed on their way."""
    with suppress(WireRefused):
        manifest.chunk_references(data)
    with suppress(WireRefused):
        manifest.read_manifest_chunk(data, KEY)
    with suppress(WireRefused, KeyError):
        manifest.read_manifest(data, {}, KEYS.keys)


def sealed_entries(count: int) -> list[manifest.ManifestEntry]:
    entries = (golden.entry(f"n{at}") for at in range(count))
    return [replace(it, mark=MARK, customizer=None) for it in entries]


def list_seeds() -> list[bytes]:
    clause = UpsyncClause("", ("configmaps",), (), ())
    made = build_manifest(sealed_entries(40), [clause], KEY)
    return [blobs.open_stored(it) for it in made]


def inside_seeds() -> list[bytes]:
    rest = tuple(manifest._rest(entry) for entry in sealed_entries(1))
    return [encode(manifest.SealedEntries(rest, bytes.fromhex(MARK)))]


def returned(data: bytes) -> None:
    """A state of a copy, as relays pass it up; and one that an edge made badly."""
    for status in (data, b"\xc1" + KEY.id + data):
        with suppress(BlobRefused):
            found = opened_state(replace(RETURNED, status=status), KEYS.keys)
            assert found.status is not None


def returned_seeds() -> list[bytes]:
    sealed = sealed_state(replace(RETURNED, status=b"\x81\xa1a\x01" * 100), KEY).status
    assert sealed is not None
    return [sealed, sealed[1 + len(KEY.id) :]]


def closed_seeds() -> list[bytes]:
    public, boxes = RING.boxes(NKEY)
    texts = (SEED.encode(), NKEY.encode())
    return [KEY.seal(blobs.OBJECT, b"plain"), KEYS.wrapped, public + boxes, *texts]


def member_state(data: bytes) -> None:
    """What the members of a node share; and what one of them sealed badly."""
    box = SealedBox(PublicKey(sealing_public_of(MEMBER))).encrypt(MASTER)
    badly = pack([{"m1": box}, bytes(SecretBox(MASTER).encrypt(data, MASTER[:24]))])
    for value in (data, badly):
        with suppress(StateUnreadable):
            assert isinstance(opened("keys.json", value, "m1", MEMBER), bytes)
            assert "m1" in sealed_to(value)


def member_state_seeds() -> list[bytes]:
    public = {"m1": sealing_public_of(MEMBER), "m2": sealing_public_of(MASTER)}
    return [sealed("keys.json", b"{}", public, SystemDice()), pack(["keys.json", b"{}"])]


TARGETS = {
    "member-state": Target(member_state, member_state_seeds, Form.MSGPACK),
    "returned-state": Target(returned, returned_seeds),
    "sealed": Target(closed, closed_seeds),
    "sealed-inside": Target(inside, inside_seeds, Form.MSGPACK),
    "sealed-lists": Target(lists, list_seeds, Form.MSGPACK),
}
