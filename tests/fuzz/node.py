"""What a node makes of its child, its parent, who asks, and its own streams."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from controllers.adoption import _read
from controllers.core.reading_back import leads_to, read_index
from controllers.core.recovery import read_recalled
from controllers.core.status import singleton
from relay.core.answers import BadArguments, objects_answer, status_answer
from relay.core.asking import AnswerArrived, AskArrived, Asking, Heard
from relay.core.events import (
    BlobArrived,
    HeartbeatArrived,
    Instant,
    LinkChanged,
    MailArrived,
    MailSlot,
    OwnRecord,
    Remembered,
    ReportArrived,
    SessionArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.recalling import records_answer, reference_of
from relay.core.slots import read_slot
from relay.core.state import NodeConfig
from relay.core.trust import Verdict
from relay.objects.stored_object import StoredObject, with_status
from schemas import blobs, chunks, codec, wire
from schemas.blobs import Reference
from schemas.identity import NodePath, short_key
from schemas.records import KeyGrant, KeysRecord, encode_payload
from schemas.refusals import CodecError, RecordRefused, WireRefused
from schemas.reports import ObjectResult, SessionMessage, Summary, decode, encode, part_key
from schemas.signing import decode_envelope
from tests.fuzz.inputs import fields, text_of
from tests.fuzz.target import Form, Target
from tests.fuzz.wire import SAID, SIGNED, UNSIGNED, list_seeds, sealed
from tests.unit import test_wire_golden as golden
from tests.unit.test_second_home import PATH, ROOT, SIGNER, Meeting

KEY = golden.KEY
NOW = Instant(0.0, 1_000)
GRANT = KeyGrant(SIGNER.key_id, SIGNER.public_key, tuple(SIGNED))
KEYS = ROOT.seal(
    "keys", encode_payload(KeysRecord(SIGNED["keys"].source, 1, False, "", (), (GRANT,)))
).encode()


def several(data: bytes) -> list[bytes]:
    """The parts of an input that is a series of things said, each of them bytes."""
    found = fields(data, tuple)
    return [part for part in found[0] if isinstance(part, bytes)] if found else []


def series(*parts: bytes) -> bytes:
    return codec.pack([list(parts)])


def child(data: bytes) -> None:
    """Whatever a child says, its parent goes on, and has it as a child."""
    meeting = Meeting()
    for part in several(data):
        said = fields(part, str, bytes)
        if said is None:
            meeting.tell(meeting.centre, HeartbeatArrived("emea", part))
        else:
            meeting.tell(meeting.centre, ReportArrived("emea", *said))
        meeting.now += 1
    meeting.now += 100
    meeting.tell(meeting.centre, Tick())
    assert set(meeting.centre.children()) == {"emea"}


def parent(data: bytes) -> None:
    """Whatever a parent says, its child goes on, and holds nothing that the tree did not sign."""
    meeting = Meeting()
    node = meeting.node(PATH, "one", "here")
    meeting.tell(node, LinkChanged(up=True))
    for at, part in enumerate(several(data)):
        said = fields(part, str, bytes)
        if said is not None:
            meeting.tell(node, MailArrived(at + 1, said[0], said[1], 0))  # type: ignore[arg-type]
            continue
        with suppress(RecordRefused):
            meeting.tell(node, SessionArrived(decode(SessionMessage, part)))
        meeting.now += 1
    meeting.now += 100
    meeting.tell(node, Tick())
    signers = {ROOT.key_id: ROOT, SIGNER.key_id: SIGNER}
    for held in node.records.values():
        envelope = decode_envelope(held.data)
        signer = signers[envelope.key_id]
        assert envelope.verify(signer.tree, signer.public_key)


def believed(data: bytes) -> None:
    """A record that the tree signed, and that says anything: kept, passed over or refused."""
    found = fields(data, str, bytes, bytes, int)
    if found is None or found[0] not in SIGNED or not 0 <= found[3] < 2**40:
        return
    kind, said, body, later = found
    meeting = Meeting()
    node = meeting.join("one", "here")
    meeting.tell(node, MailArrived(1, "_keys", KEYS, 0))  # type: ignore[arg-type]
    mail = SIGNER.seal(kind, said, body or None)
    for key in ("_keys", "_index", KEY):
        meeting.tell(node, MailArrived(2, key, mail.encode(), 0))  # type: ignore[arg-type]
    meeting.now += later % 10_000
    meeting.tell(node, Tick())


def content(data: bytes) -> None:
    """A blob that a node waits for arrives, and is anything."""
    found = fields(data, str, str, int, bytes)
    if found is None:
        return
    with suppress(ValueError):
        reference = Reference(found[0], found[1], found[2])  # type: ignore[arg-type]
        meeting = Meeting()
        node = meeting.join("one", "here")
        meeting.tell(node, BlobArrived(reference, found[3], local=False))
    with suppress(WireRefused):
        leads_to(golden.MANIFEST, found[3])


def own(data: bytes) -> None:
    """A node starts with anything in the streams that it kept, and goes on."""
    records, slots = [], []
    for at, part in enumerate(several(data)):
        said = fields(part, str, bytes, int)
        if said is None or not 0 <= said[2] < 2**63:
            continue
        records.append(OwnRecord(said[0], said[1], "inc", said[2]))
        slots.append(MailSlot("s1", said[0], at + 1, said[2], said[1], has_body=True))  # type: ignore[arg-type]
    config = NodeConfig(PATH, ROOT.tree, {ROOT.key_id: ROOT.public_key}, "run", home="here")
    node = Node(config, Remembered(tuple(records), tuple(slots)), [], NOW)
    node.handle(LinkChanged(up=True), NOW)
    node.handle(Tick(), replace(NOW, seconds=100.0))


def slot(data: bytes) -> None:
    found = fields(data, str, bytes)
    if found is not None:
        with suppress(RecordRefused):
            read_slot(*found)


class Believing:
    """A node that believes all, and has a child."""

    def judge(self, envelope, record):
        return Verdict.BELIEVED

    def heard(self, name):
        return Heard(0, silent=False) if name == "s1" else None


def ask(data: bytes) -> None:
    """Any series of asks and answers at one node."""
    asking = Asking(NodePath(), Believing())
    for part in several(data):
        asking.ask(AskArrived("get", part), NOW)
        asking.answer(AnswerArrived("s1", part), NOW)
    asking.tick(replace(NOW, seconds=1000.0))
    assert asking.deadline() is None


def arguments(data: bytes) -> None:
    """What an ask wants to know, in any words."""
    parts = [text_of(part) for part in data.split(b"\0")]
    said = dict(zip(parts[::2], parts[1::2], strict=False))
    node = Meeting().centre
    with suppress(BadArguments):
        status_answer(node, "/", said)
    with suppress(BadArguments):
        records_answer(node, said)
    with suppress(BadArguments):
        reference_of(said)
    with suppress(BadArguments):
        objects_answer([{"metadata": {"name": "a"}}], said)


def recalled(data: bytes) -> None:
    """What a child shows to a centre that lost its own."""
    for part in several(data) or [data]:
        found = read_recalled(part, "emea", ROOT, SIGNER)
        assert found is None or found.envelope.verify(SIGNER.tree, SIGNER.public_key)
        read_index(part, [part])
        for kind in (blobs.MANIFEST, blobs.MANIFEST_CHUNK, blobs.INDEX_LIST):
            leads_to(Reference(kind, golden.MANIFEST.address, 1), part)


def returned(data: bytes) -> None:
    """The status that an edge returns of a singleton is JSON that a space takes, or is none."""
    result = ObjectResult(RESULT.key, 1, "d", data)
    status = singleton(RESULT.key, [(Summary({"synced": 1}), [result])]).status
    if status is not None:
        with_status(RESULT.key, STORED, 1, status)


def adopted(data: bytes) -> None:
    """Content that an orphan is made an object of again."""
    with suppress(CodecError):
        assert isinstance(_read(wire.replace(golden.entry("a"), size=len(data)), data), dict)


def reported() -> list[bytes]:
    """What a child says under its slots."""
    report, part = golden.UNSIGNED["report"], golden.UNSIGNED["part"]
    return [
        codec.pack([KEY, encode(report)]),
        codec.pack([part_key(KEY, 1), encode(part)]),
        codec.pack(["_labels", encode(golden.UNSIGNED["labels"])]),
        codec.pack(["_list0", encode(next(it for it in SAID if type(it) is UNSIGNED[6]))]),
    ]


def mailed() -> list[bytes]:
    keyed = {"keys": "_keys", "index": "_index"}
    found = [codec.pack([keyed.get(kind, KEY), sealed(kind)]) for kind in SIGNED]
    return [codec.pack(["_keys", KEYS]), *found, encode(golden.UNSIGNED["session"])]


def asked() -> list[bytes]:
    said = {"limit": "7", "after": "a", "placement": KEY, "size": "7", "kind": "object"}
    said |= {"address": "0" * 64}
    return ["\0".join(word for pair in said.items() for word in pair).encode()]


def kept() -> list[bytes]:
    cursor = codec.pack(["_cursor", encode(golden.UNSIGNED["cursor"]), 3])
    swept = codec.pack(["_swept", encode(SAID[len(golden.UNSIGNED)]), 4])
    held = [
        codec.pack([short_key(bytes([at]) * 20), sealed(it), at]) for at, it in enumerate(SIGNED)
    ]
    return [series(codec.pack(["_keys", KEYS, 1]), cursor, swept), series(*held)]


def signed_payloads() -> list[bytes]:
    return [
        codec.pack([kind, encode_payload(it), golden.BODY.encode() if kind == "delta" else b"", 9])
        for kind, it in SIGNED.items()
    ]


def contents() -> list[bytes]:
    stored = [*chunks.build_manifest([golden.entry("a")]), *chunks.build_index([(KEY, 7)])]
    return [
        codec.pack([it.reference.kind, it.reference.address, it.reference.size, value])
        for it in stored
        for value in it.values.values()
    ]


RESULT = golden.RESULT
STORED = StoredObject({"metadata": {"name": "a"}})
BEAT = encode(golden.UNSIGNED["heartbeat"])
NESTED = Form.MSGPACK
TARGETS = {
    "child": Target(child, lambda: [series(BEAT, *reported()), series(BEAT)], NESTED),
    "parent": Target(parent, lambda: [series(*mailed()), series(*mailed()[-1:])], NESTED),
    "believed": Target(believed, signed_payloads, NESTED),
    "content": Target(content, contents, NESTED),
    "own": Target(own, kept, NESTED),
    "slot": Target(slot, reported, NESTED),
    "ask": Target(
        ask,
        lambda: [series(sealed("ask"), *(encode(it) for it in SAID[-2:]))],
        NESTED,
    ),
    "arguments": Target(arguments, asked),
    "returned": Target(returned, lambda: [codec.pack({"a": [1, None, "x", 0.5]})], NESTED),
    "adopted": Target(adopted, lambda: [codec.pack({"a": [1]})], NESTED),
    "recalled": Target(recalled, lambda: [series(*map(sealed, SIGNED)), *list_seeds()], NESTED),
}
