"""What is sealed opens with its key alone, and the same comes of the same."""

import hashlib
import secrets

import nkeys
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PrivateKey, SealedBox

from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.content import blobs, manifest, sealing
from schemas.content.blobs import Reference
from schemas.content.manifest import TEMPLATE, ManifestEntry
from schemas.content.sealing import (
    KEY_ID_BYTES,
    FleetKeyMissing,
    NotOpened,
    SealingKey,
    fleet_box,
    fleet_key,
    open_fleet_box,
    placement_key,
    seal,
    sealing_private,
    sealing_public,
    unseal,
    unwrap_keys,
    wrap_keys,
)
from schemas.values import codec
from schemas.values.identity import ContentHash, MailKey, TreeId, random_id
from schemas.values.refusals import BlobRefused, RecordRefused, WireRefused
from schemas.values.wire import decode, encode, replace

TREE, OTHER_TREE = TreeId(random_id(bytes(16))), TreeId(random_id(b"1" * 16))
MASTER, OTHER = b"m" * 32, b"o" * 32
SHOP, VAULT = MailKey("shop"), MailKey("vault")
KEY = placement_key(MASTER, SHOP, 0)
MARKING = sealing.marking_key(MASTER)
PLAIN = b"apiVersion: v1, kind: Secret " * 100


def test_what_is_sealed_opens_with_its_key_and_equals_what_was_sealed_before():
    sealed = seal(KEY, blobs.OBJECT, TREE, PLAIN)
    assert sealed == seal(KEY, blobs.OBJECT, TREE, PLAIN)
    assert unseal(KEY, blobs.OBJECT, TREE, sealed, len(PLAIN)) == PLAIN
    assert b"Secret" not in sealed
    assert len(sealed) < len(PLAIN) / 10


@given(st.lists(st.sampled_from(["object", "template", "customized"]), max_size=12))
def test_a_sealed_list_of_objects_templates_and_customizers_is_read_as_it_was_written(kinds):
    def entry(at, kind):
        name, address = f"n{at}", hashlib.sha256(bytes([at])).hexdigest()
        flags = 0 if kind == "object" else TEMPLATE
        by = Reference(blobs.CUSTOMIZER, ContentHash("c" * 64), 9) if kind == "customized" else None
        mark = sealing.mark(MARKING, ContentHash(address))
        return ManifestEntry("", "pods", "a", name, address, at, "", 1, flags, 0, mark, by)

    entries = [entry(at, kind) for at, kind in enumerate(kinds)]
    key = SealingKey(TREE, KEY)
    root, *parts = manifest.build_manifest(entries, (), key)
    stored = {it.reference.address: blobs.open_stored(it) for it in parts}
    read = manifest.read_manifest(blobs.open_stored(root), stored, [key]).entries
    assert sorted(read, key=lambda it: it.key) == sorted(entries, key=lambda it: it.key)
    led = [it for plain in stored.values() for it in manifest.chunk_references(plain)]
    told = [it for each in entries for it in each.references]
    assert sorted(led, key=repr) == sorted(told, key=repr)


@pytest.mark.parametrize(
    ("key", "kind", "tree", "bound"),
    [
        (placement_key(MASTER, VAULT, 0), blobs.OBJECT, TREE, b""),
        (placement_key(MASTER, SHOP, 1), blobs.OBJECT, TREE, b""),
        (KEY, blobs.TEMPLATE, TREE, b""),
        (KEY, blobs.OBJECT, OTHER_TREE, b""),
        (KEY, blobs.OBJECT, TREE, b"another"),
    ],
)
def test_it_opens_as_nothing_else(key, kind, tree, bound):
    sealed = seal(KEY, blobs.OBJECT, TREE, PLAIN)
    with pytest.raises(NotOpened):
        unseal(key, kind, tree, sealed, len(PLAIN), bound)


def test_altered_and_short_bytes_are_refused():
    sealed = seal(KEY, blobs.OBJECT, TREE, PLAIN)
    for at in (0, 15, 16, len(sealed) - 1):
        altered = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(NotOpened):
            unseal(KEY, blobs.OBJECT, TREE, altered, len(PLAIN))
    for short in (b"", sealed[:15], sealed[:16]):
        with pytest.raises(NotOpened):
            unseal(KEY, blobs.OBJECT, TREE, short, len(PLAIN))


@pytest.mark.parametrize("plain", [PLAIN, secrets.token_bytes(2000)])
def test_no_more_is_opened_than_was_asked_for(plain):
    sealed = seal(KEY, blobs.OBJECT, TREE, plain)
    with pytest.raises(BlobRefused):
        unseal(KEY, blobs.OBJECT, TREE, sealed, len(plain) - 1)


def test_a_nodes_key_follows_from_its_nkey_on_both_sides():
    entropy = secrets.token_bytes(32)
    seed, public = new_user_nkey(entropy)
    assert bytes(nkeys.decode_seed(seed.encode())[1]) == entropy
    private = PrivateKey(sealing_private(entropy))
    assert bytes(private.public_key) == sealing_public(public)


@pytest.mark.parametrize("nkey", ["", "U", "not base32", "A" * 56, "UA======"])
def test_nothing_is_sealed_to_what_is_no_nkey(nkey):
    with pytest.raises(RecordRefused, match="nkey"):
        sealing_public(nkey)


def test_the_fleet_keys_open_to_their_holder_alone_and_need_no_chance():
    mine, other = PrivateKey.generate(), PrivateKey.generate()
    keys = [fleet_key(MASTER), fleet_key(OTHER)]
    box = fleet_box(MASTER, bytes(mine.public_key), keys)
    assert box == fleet_box(MASTER, bytes(mine.public_key), keys)
    assert open_fleet_box(bytes(mine), box) == tuple(keys)
    assert SealedBox(mine).decrypt(box) == b"".join(keys)
    assert keys[0] not in box
    with pytest.raises(NotOpened):
        open_fleet_box(bytes(other), box)
    # Nothing of one box tells of another: each has an ephemeral key of its own.
    others = fleet_box(MASTER, bytes(other.public_key), keys)
    assert others[:32] != box[:32]
    assert fleet_box(MASTER, bytes(mine.public_key), keys[:1])[:32] != box[:32]


def test_a_box_for_a_key_that_everybody_could_open_is_refused():
    with pytest.raises(RecordRefused, match="sealing key"):
        fleet_box(MASTER, bytes(32), [fleet_key(MASTER)])


def test_a_placements_keys_open_with_the_fleet_key_that_is_named():
    fleet, former = fleet_key(MASTER), fleet_key(OTHER)
    keys = (placement_key(MASTER, SHOP, 1), placement_key(MASTER, SHOP, 0))
    wrapped = wrap_keys(fleet, TREE, SHOP, keys)
    assert wrapped == wrap_keys(fleet, TREE, SHOP, keys)
    assert unwrap_keys([former, fleet], TREE, SHOP, wrapped) == keys
    with pytest.raises(FleetKeyMissing, match=wrapped[:KEY_ID_BYTES].hex()):
        unwrap_keys([former], TREE, SHOP, wrapped)
    with pytest.raises(NotOpened):
        unwrap_keys([fleet], TREE, VAULT, wrapped)
    with pytest.raises(NotOpened):
        unwrap_keys([fleet], OTHER_TREE, SHOP, wrapped)
    for short in (b"", wrapped[:8], wrapped[:20]):
        with pytest.raises(NotOpened):
            unwrap_keys([fleet], TREE, SHOP, short)


def test_whatever_the_bytes_are_they_are_opened_or_refused():
    for size in (0, 1, 16, 17, 48, 500):
        data = secrets.token_bytes(size)
        for read in (
            lambda it: unseal(KEY, blobs.OBJECT, TREE, it, 100),
            lambda it: open_fleet_box(MASTER, it),
            lambda it: unwrap_keys([KEY], TREE, SHOP, it),
            lambda it: unwrap_keys([KEY], TREE, SHOP, sealing.key_id(KEY) + it),
        ):
            with pytest.raises(WireRefused):
                read(data)


def test_two_addresses_of_a_sealed_list_cannot_change_places():
    key = sealing.SealingKey(TREE, KEY)
    entries = []
    for name in "ab":
        plain = codec.address("object", name.encode())
        stored = key.store(blobs.OBJECT, name.encode()).reference
        entry = ("", "configmaps", "shop", name, stored.address, stored.size, "wds", 3)
        entries.append(manifest.ManifestEntry(*entry, mark=sealing.mark(MARKING, plain)))
    _, stored_chunk = manifest.build_manifest(entries, key=key)
    plain = blobs.open_stored(stored_chunk)
    assert list(manifest.read_manifest_chunk(plain, key)) == entries
    said = decode(manifest.SealedChunk, plain)
    first, second = said.addresses[:32], said.addresses[32:]
    swapped = encode(replace(said, addresses=second + first))
    assert manifest.chunk_references(swapped) == manifest.chunk_references(plain)[::-1]
    with pytest.raises(NotOpened):
        manifest.read_manifest_chunk(swapped, key)
    with pytest.raises(RecordRefused):
        manifest.read_manifest_chunk(plain)
