"""What the protocol defines, said again from its text with nothing but a hash and msgpack."""

import base64
import hashlib

import msgpack
import pytest

from schemas.content import blobs, manifest
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry
from schemas.records import records
from schemas.records.records import DeltaBody, DeltaHead, Gate, Source
from schemas.records.signing import Signer, decode_envelope
from schemas.reports.reports import part_key
from schemas.values import codec, subjects
from schemas.values.identity import (
    DestinationId,
    KeyId,
    NodePath,
    TreeId,
    mail_key,
    mail_key_bytes,
    next_generation,
    random_id,
    short_key,
)
from schemas.values.refusals import BadIdentity, BlobRefused, CodecError, RecordRefused

ADDRESS = codec.address("manifest", b"m")
MANIFEST = Reference("manifest", ADDRESS, 1)


def sha(data):
    return hashlib.sha256(data).digest()


def b32hex(raw):
    return base64.b32hexencode(raw).decode().lower().rstrip("=")


def test_a_mail_key_is_the_hash_of_the_clear_key():
    clear = b"edge.kubestellar.io/EdgePlacement\0wds\0ns\0shop"
    key = mail_key("edge.kubestellar.io/EdgePlacement", "wds", "ns", "shop")
    assert key == b32hex(sha(clear)[:20])
    assert mail_key_bytes(key) == sha(clear)[:20]


def test_a_report_part_lies_at_the_hash_of_the_mail_key_and_its_number():
    key = short_key(bytes(20))
    assert part_key(key, 0) == key
    assert part_key(key, 12) == b32hex(sha(key.encode() + b"\x0012")[:20])


def test_an_address_is_over_type_length_and_bytes():
    head = b"leafcast/object/1\0" + (3).to_bytes(8, "big")
    assert codec.address("object", b"abc") == sha(head + b"abc").hex()


def test_the_mail_digest_is_over_key_generation_and_payload_hash():
    envelope = Signer(TreeId("a" * 26), KeyId("b" * 26), bytes(32)).seal("profile", b"p")
    term = sha(b"_keys\0" + (7).to_bytes(8, "big") + sha(b"p"))[:16]
    assert records.slot_term("_keys", 7, envelope.payload_hash) == int.from_bytes(term, "big")


def test_a_bucket_is_over_salt_and_destination():
    number = int.from_bytes(sha(b"salt\0inv-mb-u")[:8], "big") % 10_000
    assert records.bucket(DestinationId("inv-mb-u"), "salt") == number


def test_a_message_is_an_array_of_six():
    signer = Signer(TreeId("a" * 26), KeyId("b" * 26), bytes(32))
    whole, bare = (signer.seal("delta", b"p", body) for body in (b"body", None))
    assert msgpack.unpackb(whole.encode()) == [
        2,
        "delta",
        "b" * 26,
        b"p",
        whole.signature,
        b"body",
    ]
    assert whole.bare() == bare
    assert msgpack.unpackb(bare.encode())[5] is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ([1, "delta", "b" * 26, b"", b"", None], "version 1"),
        ([2, "gift", "b" * 26, b"", b"", None], "unknown kind"),
        ([2, "delta", "B" * 26, b"", b"", None], "key id"),
        ([2, "delta", "b" * 26, b"", b"", "text"], "body: Expected `bytes"),
        ([2, "delta", "b" * 26, b"", b""], "at least length 6"),
    ],
)
def test_what_is_no_message_is_refused_with_its_reason(fields, reason):
    with pytest.raises(RecordRefused, match=reason):
        decode_envelope(msgpack.packb(fields))


def test_ids_are_26_characters_of_base32():
    assert random_id(bytes(16)) == "a" * 26
    assert len(random_id(bytes(range(16)))) == 26


def test_a_generation_is_the_clock_and_always_higher():
    assert next_generation(5, 1000) == 1000
    assert next_generation(1000, 7) == 1001


TERM = "0" * 16


def body_of(*gates):
    data = DeltaBody((), gates).encode()
    head = DeltaHead(Source("a/B", "s", "", "n"), 1, TERM, "", sha(data), (), 0)
    return records.decode_body(head, data)


def test_a_delta_whose_last_gate_does_not_admit_all_is_refused():
    assert body_of(Gate(None)).gates == (Gate(None),)
    for last in (Gate(MANIFEST, below=9_999), Gate(MANIFEST, selector=records.LabelSelector())):
        with pytest.raises(RecordRefused, match="admit all"):
            body_of(Gate(MANIFEST), last)
    with pytest.raises(RecordRefused, match="admit all"):
        body_of()


def test_a_gate_over_what_is_unknown_is_refused():
    over = codec.pack("location")
    data = DeltaBody((), (Gate(None, over="location", name="1.1"), Gate(None))).encode()
    assert over in data
    later = data.replace(over, codec.pack("position"))
    head = DeltaHead(Source("a/B", "s", "", "n"), 1, TERM, "", sha(later), (), 0)
    with pytest.raises(RecordRefused, match="over"):
        records.decode_body(head, later)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"a": [0, float("nan")]}, ".a[1]", "NaN"),
        ({"a": float("inf")}, ".a", "infinities"),
        ({"a": {"b": 2**64}}, ".a.b", "64 bits"),
        ([-(2**63) - 1], "[0]", "64 bits"),
        ({"a": {1: 2}}, ".a", "not a string"),
        ({"a": {None: 2}}, ".a", "not a string"),
        ({"a": ["\ud800"]}, ".a[0]", "surrogate"),
        ({"a": {"\ud800": 1}}, ".a", "surrogate"),
        ({"a": b"x"}, ".a", "base64"),
        ({"a": bytearray(b"x")}, ".a", "base64"),
        ({"a": memoryview(b"x")}, ".a", "base64"),
        ({"a": {1}}, ".a", "set"),
    ],
)
def test_what_has_no_canonical_bytes_is_refused_with_its_path(value, path, reason):
    with pytest.raises(CodecError, match=reason) as refused:
        codec.canonical(value)
    assert refused.value.path == path


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-0.0, b"\x00"),
        (1.0, b"\x01"),
        (float(2**53 - 1), b"\xcf\x00\x1f" + b"\xff" * 6),
        (float(2**53), b"\xcb\x43\x40" + bytes(6)),
        (-float(2**53), b"\xcb\xc3\x40" + bytes(6)),
        (0.5, b"\xcb\x3f\xe0" + bytes(6)),
        (2**64 - 1, b"\xcf" + b"\xff" * 8),
        (-(2**63), b"\xd3\x80" + bytes(7)),
        (-1, b"\xff"),
        (True, b"\xc3"),
        ({"b": None, "a": 1}, b"\x82\xa1a\x01\xa1b\xc0"),
        ({"\U00010000": 1, "\ufffd": 2}, b"\x82\xa3\xef\xbf\xbd\x02\xa4\xf0\x90\x80\x80\x01"),
        ((1, 2), b"\x92\x01\x02"),
    ],
)
def test_canonical_bytes_are_as_the_protocol_says(value, said):
    assert codec.canonical(value) == said


def test_null_and_absent_differ():
    assert codec.canonical({"a": None}) != codec.canonical({})


def test_a_blob_is_compressed_from_256_bytes_on_if_that_is_smaller():
    def form(plain):
        stored = blobs.store("object", plain)
        return stored.values[stored.reference.address][0]

    assert form(b"x" * 255) == 0
    assert form(b"x" * 256) == 1
    assert form(b"".join(sha(bytes([at])) for at in range(100))) == 0


def test_parts_that_are_missing_changed_or_nested_are_refused():
    plain = b"".join(sha(at.to_bytes(4, "big")) for at in range(40_000))
    stored = blobs.store("object", plain)
    value, parts = stored.values[stored.reference.address], dict(stored.values)
    del parts[stored.reference.address]
    first = next(iter(parts))
    assert [part.address for part in blobs.parts_of(stored.reference, value)] == list(parts)
    assert blobs.open_value(stored.reference, value, parts) == plain
    for changed in ({}, {**parts, first: b"\0x"}, {**parts, first: value}):
        with pytest.raises(BlobRefused):
            blobs.open_value(stored.reference, value, changed)
    nested = blobs.store("part", b"\2" + value[1:])
    listing = b"\2" + codec.pack([nested.reference.address])
    with pytest.raises(BlobRefused, match="parts within parts"):
        blobs.open_value(stored.reference, listing, dict(nested.values))


def test_a_blob_over_the_limit_is_refused_where_it_is_made():
    with pytest.raises(BlobRefused, match="at most"):
        blobs.store("object", bytes(blobs.BLOB_MAX_BYTES + 1))


def entries(count):
    for at in range(count):
        yield ManifestEntry("", "configmaps", "ns", f"n{at}", ADDRESS, 1, "s", at)


@pytest.mark.parametrize(("count", "bits"), [(0, 0), (2, 0), (3, 1), (8, 1), (9, 2), (1000, 5)])
def test_a_manifest_is_split_by_the_leading_bits_of_the_object_keys_hash(count, bits):
    root, *parts = manifest.build_manifest(entries(count))
    opened = [blobs.open_value(b.reference, b.values[b.reference.address]) for b in (root, *parts)]
    read = manifest.read_root(opened[0])
    assert (read.version, read.count, read.bits) == (1, count, bits)
    assert read.chunks == tuple(part.reference for part in parts)
    found = []
    for number, plain in enumerate(opened[1:]):
        listed = manifest.read_manifest_chunk(plain)
        assert [e.key for e in listed] == sorted(e.key for e in listed)
        for entry in listed:
            raw = sha(f"\0configmaps\0ns\0{entry.name}".encode())
            assert int.from_bytes(raw[:4], "big") >> (32 - bits) == number if bits else True
        found += listed
    assert sorted(found, key=lambda e: e.revision) == list(entries(count))


def test_one_change_among_many_objects_changes_one_chunk():
    before = manifest.build_manifest(entries(10_000))
    listed = list(entries(10_000))
    listed[77] = ManifestEntry("", "configmaps", "ns", "n77", ADDRESS, 1, "s", 99)
    after = manifest.build_manifest(listed)
    changed = {b.reference for b in after} - {b.reference for b in before}
    assert len(changed) == 2
    assert max(b.reference.size for b in after[1:]) < 64 * 1024


PATH = NodePath.parse("/emea/store-1")


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (subjects.mail(PATH, "k"), "lc.emea.store-1._mail.k"),
        (subjects.blob(PATH, "k"), "lc.emea.store-1._blob.k"),
        (subjects.stat(PATH, "k"), "lc.emea.store-1._stat.k"),
        (subjects.own(PATH, "k"), "lc.emea.store-1._own.k"),
        (subjects.done(PATH, "k"), "lc.emea.store-1._done.k"),
        (subjects.answer(PATH, "k"), "lc.emea.store-1._answer.k"),
        (subjects.node_self(PATH), "lc.emea.store-1._node.self"),
        (subjects.child_mail(PATH), "lc.emea.store-1._mail.*"),
        (subjects.own(NodePath(), "k"), "lc._own.k"),
    ],
)
def test_a_subject_is_made_and_taken_apart_as_the_protocol_says(subject, said):
    assert subject == said
    assert str(subjects.parse(subject)) == subject


def test_subjects_of_a_link_belong_to_no_node():
    made = [subjects.deliveries("a"), subjects.welcome("a"), subjects.ask("a", "why")]
    assert made == ["lc._d.a.m", "lc._d.a.welcome", "lc._d.a.ask.why"]
    for subject in made:
        with pytest.raises(BadIdentity):
            subjects.parse(subject)


def test_streams_capture_direct_children_only():
    assert subjects.stream_subjects(NodePath())["MAIL"] == ("lc.*._mail.*",)
    at = subjects.stream_subjects(PATH)
    assert at["STAT"] == ("lc.emea.store-1.*._stat.*", "lc.emea.store-1.*._node.self")
    assert at["OWN"] == ("lc.emea.store-1._own.*",)
    assert set(at) == set(subjects.STREAMS)


def test_a_domain_joins_names_by_what_no_name_holds():
    assert NodePath.parse("/emea/s1").domain == "lc_emea_s1"
    assert NodePath().domain == "lc"
    for bad in ("a", "/a_b", "/A", "/a/", "//", "/-a", "/" + "a" * 64, "/_d", "/a.b"):
        with pytest.raises(BadIdentity):
            NodePath.parse(bad)
