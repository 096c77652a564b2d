"""What comes over the wire: envelopes, records, reports, lists, content, names."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any

from relay.core.collectors.upsynced import UpsyncedObjects
from relay.core.records.trust import RootsRefused, recall, walk
from schemas.content import blobs, manifest
from schemas.content.blobs import Reference
from schemas.content.carried import CARRIED_MAX_BYTES, with_carried, without_carried
from schemas.objects.objects import ObjectKey
from schemas.records import snapshots
from schemas.records.asks import AnswerPart, AskFault, answer_parts
from schemas.records.moves import MOVED_ANNOTATION, after_move, former_paths
from schemas.records.records import (
    API_ASK,
    AskRecord,
    KeysRecord,
    Source,
    body_of,
    decode_base,
    decode_body,
    decode_payload,
    encode_payload,
)
from schemas.records.roots import (
    FORERUNNERS_MAX,
    KeysBody,
    Roots,
    keys_envelope,
    keys_record,
    leading_on,
)
from schemas.records.signing import Envelope, RecordKind, decode_envelope
from schemas.records.snapshots import SnapshotRefused, Subtree
from schemas.reports import upsync
from schemas.reports.link import Cursor, Hello, Progress, Welcome
from schemas.reports.reports import Done, decode_report
from schemas.values import codec, identity, subjects
from schemas.values.identity import KeyId, NodePath
from schemas.values.refusals import BadIdentity, BlobRefused, CodecError, RecordRefused, WireRefused
from schemas.values.wire import decode, encode, replace
from tests.fuzz.inputs import fields, text_of
from tests.fuzz.target import Form, Target
from tests.unit import test_wire_golden as golden

SIGNER = golden.SIGNER
BROUGHT_UP = ObjectKey("", "configmaps", "shop", "a")
EVERY_CONFIG_MAP = upsync.UpsyncClause("", ("configmaps",), ("*",), ("*",))
ASK = AskRecord(
    Source(API_ASK, SIGNER.tree, "", "c" * 26),
    7,
    "",
    "",
    "get",
    golden.HERE,
    10_000,
    {"limit": "7"},
)
SIGNED = {**golden.RECORDS, "ask": ASK}
KINDS: list[RecordKind] = sorted(golden.RECORDS)
UNSIGNED: tuple[type[Any], ...] = (
    Hello,
    Welcome,
    Progress,
    Done,
    Cursor,
    AnswerPart,
)
SAID = (
    *golden.UNSIGNED.values(),
    *answer_parts("c" * 26, b"\x80"),
    AnswerPart("c" * 26, 1, last=True, data=b"", fault=AskFault("No", "why", "/emea", 3)),
)


KEYS = replace(golden.RECORDS["keys"], generation=7, version=3)


def sealed(kind: RecordKind) -> bytes:
    record = SIGNED[kind]
    body = golden.BODY.encode() if kind == "delta" else body_of(record)
    return SIGNER.seal(kind, encode_payload(record), body).encode()


def payload(data: bytes) -> None:
    kind, said = KINDS[data[0] % len(KINDS)] if data else "unknown", data[1:]
    with suppress(RecordRefused):
        decode_base(said)
    try:
        record = decode_payload(kind, said)
    except RecordRefused:
        return
    assert decode_payload(kind, encode_payload(record)) == record


def envelope(data: bytes) -> None:
    try:
        found = decode_envelope(data)
    except RecordRefused:
        return
    found.verify(SIGNER.tree, SIGNER.public_key)
    assert decode_envelope(found.encode()) == found


def body(data: bytes) -> None:
    head = replace(golden.RECORDS["delta"], body_hash=hashlib.sha256(data).digest())
    with suppress(RecordRefused):
        assert decode_body(head, data).gates


def keys_message(data: bytes) -> None:
    """What stands beside the payload of a `keys` message, and the steps that it leads to."""
    message = Envelope("keys", SIGNER.key_id, encode_payload(KEYS), bytes(64), data)
    pinned = Roots({SIGNER.key_id: SIGNER.public_key})
    with suppress(RootsRefused):
        found = walk(SIGNER.tree, pinned, message)
        assert isinstance(KEYS, KeysRecord)
        assert found.version == KEYS.version
    with suppress(RootsRefused):
        recall(SIGNER.tree, pinned, message)
    with suppress(RecordRefused):
        again = [keys_record(one) for one in leading_on(message)]
        assert len(again) <= FORERUNNERS_MAX + 1


def keys_seeds() -> list[bytes]:
    """One signature more, and a step between the pin and what the message names."""
    step = replace(KEYS, generation=6, version=2)
    first = keys_envelope(
        encode_payload(step), {SIGNER.key_id: SIGNER.seal("keys", encode_payload(step)).signature}
    )
    own = {KeyId("o" * 26): bytes(64)}
    made = keys_envelope(encode_payload(KEYS), {SIGNER.key_id: bytes(64), **own}, [first])
    return [b"" if made.body is None else made.body, encode(KeysBody())]


def report(data: bytes) -> None:
    with suppress(RecordRefused):
        found = decode_report(data)
        assert decode_report(encode(found)) == found


def unsigned(data: bytes) -> None:
    kind = UNSIGNED[data[0] % len(UNSIGNED)] if data else Hello
    with suppress(RecordRefused):
        found = decode(kind, data[1:])
        assert decode(kind, encode(found)) == found


def lists(data: bytes) -> None:
    with suppress(WireRefused):
        manifest.read_root(data)
    with suppress(WireRefused):
        entries = manifest.read_manifest_chunk(data)
        for entry in entries:
            with suppress(BlobRefused):
                assert entry.key
                assert entry.reference


def copy(data: bytes) -> None:
    """What an edge brought up, as its parent reads it, and as its own collectors keep it."""
    upsynced = UpsyncedObjects()
    upsynced.set_sources(frozenset({EVERY_CONFIG_MAP}))
    if upsynced.put(BROUGHT_UP, data, 1):
        [(_, held)] = upsynced.over(EVERY_CONFIG_MAP)
        assert held.plain
    with suppress(RecordRefused):
        found = upsync.read_copy(data)
        obj = upsync.open_copy(found)
        assert obj["metadata"]["name"] == found.key.name
        with suppress(CodecError):
            # Of an object that is no canonical one, too, the key is what it lies under.
            upsync.read_copy(upsync.encode_copy(found.key, obj), upsync.copy_key(found.key))


def snapshot(data: bytes) -> None:
    """A snapshot's record, its terms, or a node of its tree."""
    read = SNAPSHOT_READERS[data[0] % len(SNAPSHOT_READERS)] if data else snapshots.read_snapshot
    with suppress(SnapshotRefused):
        found = read(data[1:])
        assert read(snapshots.encode(found)) == found
    for height in (0, 1):
        with suppress(SnapshotRefused):
            at = Subtree(golden.SNAPSHOT.root, height, golden.MAIL)
            if height:
                node = at.inner(data[1:])
                at.child(node, len(node.children) - 1)
            else:
                at.leaf(data[1:]).generation_of(golden.MAIL)


def carrying(data: bytes) -> None:
    """A message, and what came along with it."""
    record, values = without_carried(data)
    if values:
        assert without_carried(with_carried(record, values)) == (record, values)
    assert sum(len(value) for _, value in values) <= CARRIED_MAX_BYTES
    envelope(record)


def blob(data: bytes) -> None:
    found = fields(data, str, str, int, bytes, tuple)
    if found is None:
        return
    kind, address, size, value, parts = found
    with suppress(WireRefused):
        reference = Reference(kind, identity.check_hash(address), size)
        offered = [part for part in parts if isinstance(part, bytes) and part]
        named = {codec.address(blobs.PART, part[1:]): part for part in offered}
        plain = blobs.open_value(reference, value, named)
        assert codec.address(kind, plain) == address
        assert len(plain) == size or kind == blobs.PART


def large(data: bytes) -> None:
    """Of what is larger than a record the values are counted first: as many as there are."""
    with suppress(CodecError):
        opened, _ = codec.unpack(b"\x92" + data + BALLAST, 2 * codec.RECORD_MAX_BYTES)
        with suppress(CodecError):
            codec.canonical(opened)


def text(data: bytes) -> None:
    """JSON of finite numbers, or a refusal."""
    with suppress(CodecError):
        json.dumps(codec.from_json(data), allow_nan=False)


def names(data: bytes) -> None:
    text = text_of(data)
    for check in (
        identity.check_mail_key,
        identity.mail_key_bytes,
        identity.check_id,
        identity.check_hash,
    ):
        with suppress(BadIdentity):
            check(text)  # type: ignore[operator]
    with suppress(BadIdentity):
        assert str(subjects.parse(text)) == text
    assert all(not path.is_root for path in former_paths({MOVED_ANNOTATION: text}))
    try:
        path = NodePath.parse(text)
    except BadIdentity:
        return
    # Who passes for a path stays in the part of the subjects that is its own.
    assert str(path) == text
    assert subjects.parse(subjects.mail(path, "k")).path == path
    assert not set(path.prefix + path.domain) & set("*>/\\ \t\r\n\0")
    assert ".." not in path.prefix
    assert path.prefix.split(".")[0] == "lc"


def blob_seeds() -> list[bytes]:
    found = []
    large = hashlib.shake_256(b"seed").digest(blobs.PART_MAX_BYTES + 100)
    for kind, plain in (("object", b"x"), ("object", b"x" * 2000), ("mchunk", large)):
        stored = blobs.store(kind, plain)
        reference = stored.reference
        value, *parts = stored.values.values()
        parts = [part for part in parts if len(part) < 1000]
        found.append(codec.pack([kind, reference.address, reference.size, value, parts]))
    return found


def copy_seeds() -> list[bytes]:
    said = {"metadata": {"namespace": "shop", "name": "a"}}
    return [
        upsync.encode_copy(BROUGHT_UP, {**said, "data": {"k": "v" * size}}) for size in (1, 3000)
    ]


def list_seeds() -> list[bytes]:
    made = [
        *manifest.build_manifest([golden.entry("a"), golden.entry("b")]),
        *manifest.build_manifest([golden.entry(f"n{n}") for n in range(200)]),
    ]
    opened = [blobs.open_value(it.reference, it.values[it.reference.address]) for it in made]
    return [plain for plain in opened if len(plain) < 8000]


SNAPSHOT_READERS = (
    snapshots.read_snapshot,
    snapshots.read_terms,
    snapshots.read_leaf,
    snapshots.read_inner,
)
CARRIED = [(golden.MANIFEST.address, b"\0m")]


# Wherever reading goes astray in it, it soon ends.
BALLAST = codec.pack(b"\xc6\xff\xff\xff\xff" * (codec.RECORD_MAX_BYTES // 5 + 1))
NAMES = (
    "/",
    "/emea/store-1",
    "lc.emea._mail._keys",
    "lc._own._cursor",
    "lc.emea.s1._node.self",
    golden.KEY,
    "_snapshot",
    "t" * 26,
    "0" * 64,
    after_move({}, golden.HERE, NodePath(("x",))),
)

TARGETS = {
    "envelope": Target(envelope, lambda: map(sealed, KINDS), Form.MSGPACK),
    "payload": Target(
        payload,
        lambda: [bytes([at]) + encode_payload(SIGNED[kind]) for at, kind in enumerate(KINDS)],
        Form.MSGPACK,
        chosen=1,
    ),
    "body": Target(body, lambda: [golden.BODY.encode()], Form.MSGPACK),
    "keys-message": Target(keys_message, keys_seeds, Form.MSGPACK),
    "report": Target(
        report, lambda: [encode(golden.UNSIGNED[it]) for it in ("report", "part")], Form.MSGPACK
    ),
    "unsigned": Target(
        unsigned,
        lambda: [
            bytes([UNSIGNED.index(type(it))]) + encode(it) for it in SAID if type(it) in UNSIGNED
        ],
        Form.MSGPACK,
        chosen=1,
    ),
    "copy": Target(copy, copy_seeds, Form.MSGPACK),
    "lists": Target(lists, list_seeds, Form.MSGPACK),
    "snapshot": Target(
        snapshot,
        lambda: [bytes([at]) + snapshots.encode(it) for at, it in enumerate(golden.NODES.values())],
        Form.MSGPACK,
        chosen=1,
    ),
    "carrying": Target(
        carrying,
        lambda: [sealed("node"), with_carried(sealed("delta"), CARRIED)],
        Form.MSGPACK,
    ),
    "blob": Target(blob, blob_seeds, Form.MSGPACK),
    "large": Target(
        large, lambda: [codec.pack(golden.OBJECT), sealed("delta"), *list_seeds()], Form.MSGPACK
    ),
    "text": Target(text, lambda: [json.dumps(golden.OBJECT).encode(), b"[1e999, NaN]"], Form.JSON),
    "names": Target(names, lambda: [it.encode() for it in NAMES], bytes_max=4096),
}
