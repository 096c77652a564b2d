"""Laws of the wire: records come back as they went, any bytes give a value or a typed refusal."""

import hashlib
import json
import tracemalloc
from contextlib import suppress

import msgpack
import pytest
import yaml
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from schemas.content import blobs, manifest
from schemas.content.blobs import Reference
from schemas.content.carried import CARRIED_MAX_BYTES, with_carried, without_carried
from schemas.records import snapshots
from schemas.records.records import (
    RECORDS,
    DeltaHead,
    Source,
    decode_body,
    decode_payload,
    encode_payload,
)
from schemas.records.signing import Envelope, Signer, decode_envelope, signed_bytes
from schemas.records.snapshots import SnapshotRefused
from schemas.reports.link import Hello
from schemas.reports.reports import decode_report
from schemas.values import codec
from schemas.values.identity import ContentHash, KeyId, TreeId
from schemas.values.refusals import BlobRefused, CodecError, RecordRefused, WireRefused
from schemas.values.wire import decode, encode, replace
from tests.property import wire_records as wire
from tests.property.wire_records import array_of

finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | finite | st.text()
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
packable = st.recursive(
    scalars | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text() | st.binary(), inner, max_size=4)
    ),
    max_leaves=20,
)
any_bytes = st.binary(max_size=200) | packable.map(msgpack.packb)
TREE, KEY = TreeId("a" * 26), KeyId("b" * 26)
signer = Signer(TREE, KEY, bytes(range(32)))


def reordered(value):
    """The same object, come another way: keys reversed, whole numbers as floats, tuples."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return tuple(reordered(item) for item in value)
    if type(value) is int and abs(value) < 2**53:
        return float(value)
    return value


@given(json_values)
def test_equal_objects_have_equal_bytes_however_they_came(value):
    said = codec.canonical(value)
    assert codec.canonical(reordered(value)) == said
    assert codec.canonical(codec.unpack(said)) == said


def said_by(form, value):
    try:
        return form(value)
    except CodecError:
        return None


@given(json_values | st.floats() | st.integers(), st.integers(0, 110))
def test_what_was_decoded_has_the_same_bytes_without_a_look_at_its_types(value, deep):
    for _ in range(deep):
        value = [value] if deep % 2 else {"a": value}
    quick, slow = (said_by(form, value) for form in (codec.canonical_of_decoded, codec.canonical))
    assert quick == slow


@given(json_values)
def test_json_and_yaml_of_an_object_have_the_same_bytes(value):
    text = json.dumps(value)
    by_json = codec.canonical(json.loads(text))
    assert by_json == codec.canonical(value)
    plain = json.dumps(value, ensure_ascii=True)
    if "e" not in plain and "\\u" not in plain:  # YAML 1.1 reads 1e+20 otherwise than JSON does
        assert codec.canonical(yaml.safe_load(f"[{plain}]")) == codec.canonical([value])


@given(json_values, json_values)
def test_different_objects_have_different_bytes(first, second):
    same = codec.canonical(first) == codec.canonical(second)
    assert same == (unified(first) == unified(second))


def unified(value):
    """A form in which two objects are equal if and only if they say the same."""
    if isinstance(value, dict):
        return ("map", frozenset((key, unified(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(map(unified, value)))
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 2**53
        return ("int", int(value)) if whole else ("float", value)
    return (type(value).__name__, value)


@pytest.mark.parametrize("kind", sorted(RECORDS))
@given(st.data())
def test_a_signed_record_comes_back_as_it_went(kind, data):
    record = data.draw(wire.records[kind])
    envelope = signer.seal(kind, encode_payload(record))
    read = decode_envelope(envelope.encode())
    assert read == envelope
    assert read.verify(TREE, signer.public_key)
    assert decode_payload(read.kind, read.payload) == record


@pytest.mark.parametrize("kind", sorted(RECORDS))
@given(st.data())
def test_the_first_four_fields_are_the_same_in_all_kinds(kind, data):
    record = data.draw(wire.records[kind])
    said = codec.unpack(encode_payload(record))
    source, generation, term, trace = said[:4]
    assert source == (
        record.source.api,
        record.source.space,
        record.source.namespace,
        record.source.name,
    )
    assert (generation, term, trace) == (record.generation, record.term, record.trace)


@given(wire.reports | wire.later_parts)
def test_a_report_comes_back_as_it_went(report):
    assert decode_report(encode(report)) == report


@given(wire.bodies)
def test_a_body_comes_back_only_to_the_head_that_names_it(body):
    data = body.encode()
    head = naming(hashlib.sha256(data).digest())
    assert decode_body(head, data) == body
    with pytest.raises(RecordRefused):
        decode_body(naming(bytes(32)), data)


def naming(body_hash):
    """A head that names a body."""
    return DeltaHead(Source("a/B", "s", "", "n"), 1, "", "", body_hash, (), 0)


@given(wire.records["delta"], st.binary(max_size=8), st.integers(0, 3))
def test_nothing_that_is_signed_can_be_changed(record, body, which):
    envelope = signer.seal("delta", encode_payload(record), body)
    payload, signature = envelope.payload + b"\0", bytes([envelope.signature[0] ^ 1])
    changed = [
        Envelope("profile", KEY, envelope.payload, envelope.signature),
        Envelope("delta", KeyId("c" * 26), envelope.payload, envelope.signature),
        Envelope("delta", KEY, payload, envelope.signature),
        Envelope("delta", KEY, envelope.payload, signature + envelope.signature[1:]),
    ][which]
    assert not changed.verify(TREE, signer.public_key)
    assert not envelope.verify(TreeId("z" * 26), signer.public_key)
    assert envelope.bare().verify(TREE, signer.public_key)
    assert envelope.bare().payload_hash == envelope.payload_hash


@given(st.binary(max_size=80), st.binary(max_size=40))
def test_a_signature_or_key_of_any_length_is_judged_without_an_error(signature, public_key):
    assert not Envelope("delta", KEY, b"", signature).verify(TREE, signer.public_key)
    assert not Envelope("delta", KEY, b"", bytes(64)).verify(TREE, public_key)


def test_the_signed_bytes_are_as_the_protocol_says():
    said = signed_bytes(TREE, "delta", KEY, b"payload")
    assert said == b"leafcast/2/delta\0" + b"a" * 26 + b"\0" + b"b" * 26 + b"\0payload"


@given(any_bytes)
def test_any_bytes_are_an_envelope_or_are_refused(data):
    with suppress(RecordRefused):
        decode_envelope(data)


@given(any_bytes, st.sampled_from([*sorted(RECORDS), "unknown"]))
def test_any_bytes_are_a_payload_or_are_refused(data, kind):
    with suppress(RecordRefused):
        decode_payload(kind, data)


@given(any_bytes)
def test_any_bytes_are_a_body_or_are_refused(data):
    with pytest.raises(RecordRefused):
        decode_body(naming(b""), data)
    with suppress(RecordRefused):
        decode_body(naming(hashlib.sha256(data).digest()), data)


@given(any_bytes)
def test_any_bytes_are_a_report_or_are_refused(data):
    for kind in wire.unsigned:
        with suppress(RecordRefused):
            decode(kind, data)
    with suppress(RecordRefused):
        decode_report(data)


@given(any_bytes)
def test_any_bytes_are_a_list_or_are_refused(data):
    for read in (manifest.read_root, manifest.read_manifest_chunk):
        with suppress(WireRefused):
            read(data)


@given(any_bytes)
def test_any_bytes_are_of_a_snapshot_or_are_refused(data):
    for read in (
        snapshots.read_snapshot,
        snapshots.read_terms,
        snapshots.read_leaf,
        snapshots.read_inner,
    ):
        with suppress(SnapshotRefused):
            read(data)


carried_values = st.lists(
    st.tuples(wire.addresses.map(ContentHash), st.binary(max_size=100)), min_size=1, max_size=5
)


@given(wire.records["delta"], st.none() | st.binary(max_size=20), carried_values)
def test_a_message_comes_back_with_what_it_carries_and_the_record_as_it_was(record, body, values):
    message = signer.seal("delta", encode_payload(record), body).encode()
    laden = with_carried(message, values)
    assert without_carried(laden) == (message, tuple(values))
    assert decode_envelope(laden) == decode_envelope(message)


@given(any_bytes | st.binary(max_size=80).map(lambda rest: b"\x97" + rest))
def test_any_message_carries_something_or_stays_as_it_is(data):
    record, values = without_carried(data)
    assert values or record == data or data[:1] == b"\x97"
    assert sum(len(value) for _, value in values) <= CARRIED_MAX_BYTES


def test_what_carries_too_much_carries_nothing():
    message = signer.seal("keys", b"").encode()
    values = [(ContentHash("0" * 64), bytes(CARRIED_MAX_BYTES + 1))]
    assert without_carried(with_carried(message, values)) == (message, ())


changed_fields = st.tuples(st.integers(0, 30), packable)


@given(wire.reports | wire.later_parts, st.lists(changed_fields, min_size=1, max_size=3))
def test_a_report_with_any_fields_changed_is_read_or_refused(report, changes):
    said = array_of(report)
    for at, value in changes:
        said[at % len(said)] = value
    with suppress(RecordRefused):
        decode_report(codec.pack(said))


@pytest.mark.parametrize("kind", sorted(RECORDS))
@given(data=st.data(), changes=st.lists(changed_fields, min_size=1, max_size=3))
def test_a_payload_with_any_fields_changed_is_read_or_refused(kind, data, changes):
    said = array_of(data.draw(wire.records[kind]))
    for at, value in changes:
        said[at % len(said)] = value
    with suppress(RecordRefused):
        decode_payload(kind, codec.pack(said))


@given(st.sampled_from(["object", "mchunk", "part"]), st.binary(max_size=3000))
def test_a_stored_blob_opens_to_its_bytes(kind, plain):
    stored = blobs.store(kind, plain)
    value = stored.values[stored.reference.address]
    assert blobs.open_value(stored.reference, value) == plain
    assert value[0] == 0 or len(value) < len(plain) + 1


@given(
    wire.references,
    st.binary(max_size=100) | any_bytes,
    st.sampled_from([b"", b"\0", b"\1", b"\2"]),
)
def test_any_value_opens_or_is_refused(reference, value, form):
    with suppress(BlobRefused):
        blobs.open_value(reference, form + value)


def test_a_zstd_bomb_is_refused_before_it_is_opened():
    bomb = b"\1" + zstandard.ZstdCompressor().compress(bytes(200_000_000))
    reference = Reference("object", codec.address("object", b"x"), 1)
    assert peak_bytes(lambda: blobs.open_value(reference, bomb), BlobRefused) < 1_000_000


def test_a_zstd_frame_that_hides_its_size_is_refused():
    packer = zstandard.ZstdCompressor(write_content_size=False)
    plain = b"x" * 2000
    reference = Reference("object", codec.address("object", plain), len(plain))
    with pytest.raises(BlobRefused):
        blobs.open_value(reference, b"\1" + packer.compress(plain))


@pytest.mark.parametrize(
    "bomb",
    [
        b"\xdd\x00\x10\x00\x00" * 1000,
        b"\xdc\xff\xff" * 1000,
        b"\xdf\x00\x10\x00\x00\xc0" * 500,
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x91" * 100_000,
        b"\xc9\x7f\xff\xff\xff\x01",
    ],
    ids=["arrays", "small arrays", "maps", "string", "bytes", "depth", "extension"],
)
def test_a_msgpack_bomb_is_refused_in_little_room(bomb):
    assert peak_bytes(lambda: codec.unpack(bomb), CodecError) < 100_000_000


def test_what_is_over_the_limit_is_refused_unread():
    with pytest.raises(CodecError, match="at most"):
        codec.unpack(bytes(codec.RECORD_MAX_BYTES + 1))
    with pytest.raises(RecordRefused, match="at most"):
        decode_report(bytes(64 * 1024 + 1))
    with pytest.raises(RecordRefused, match="at most"):
        decode(Hello, bytes(100), limit=99)


@given(wire.reports)
def test_a_report_under_a_key_that_is_no_mail_key_is_refused(report):
    for key in ("", "*", "a.b", ">", "_index", "A" * 32):
        with pytest.raises(RecordRefused):
            decode_report(encode(replace(report, key=key)))


def peak_bytes(call, error):
    tracemalloc.start()
    try:
        with pytest.raises(error):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
