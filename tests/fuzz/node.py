"""What a node makes of its child, its parent, who asks, and its own streams."""

from __future__ import annotations

from contextlib import suppress

from controllers.core.access.keyring import IN_CLEAR
from controllers.core.ledger.start import read_stored_ledger
from controllers.core.status.generations import HubContent
from controllers.core.status.status import singleton
from controllers.core.translation.reading import read_issued
from leafcast.node.answers import orphans_answer
from leafcast.node.trace_answer import trace_answer
from relay.core.asks.answers import BadAskArguments, objects_answer
from relay.core.asks.routing import AnswerArrived, AskArrived, AskRouter, LastHeard
from relay.core.config import NodeConfig
from relay.core.events import (
    BlobArrived,
    HelloArrived,
    LinkChanged,
    MailArrived,
    MailSlot,
    OwnRecord,
    Remembered,
    ReportArrived,
    Tick,
    Welcomed,
)
from relay.core.instant import Instant
from relay.core.node import Node
from relay.core.node_answers import proof_answer, status_answer
from relay.core.reports.intake import ReportIntake
from relay.objects.stored_object import StoredObject, with_status
from relay.shell.trace_ring import TraceRing
from schemas.content import manifest
from schemas.content.blobs import Reference
from schemas.records.records import Away, FirstSession, KeyGrant, KeysRecord, encode_payload
from schemas.records.roots import Roots
from schemas.records.signed_records import read_stored
from schemas.records.signing import Envelope, decode_envelope
from schemas.records.snapshots import encode as encode_snapshot
from schemas.reports.link import Repair, Welcome
from schemas.reports.reports import Count, ObjectResult, Summary, part_key
from schemas.values import codec
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, MailKey, NodePath, short_key
from schemas.values.refusals import RecordRefused
from schemas.values.subjects import AWAY_PREFIX, CURSOR_KEY, FIRST_SESSION_PREFIX, PROGRESS_KEY
from schemas.values.wire import decode, encode
from tests.fuzz.inputs import fields, text_of
from tests.fuzz.target import Form, Target
from tests.fuzz.wire import CARRIED, SAID, SIGNED, sealed
from tests.unit import test_wire_golden as golden
from tests.unit.meeting import PATH, ROOT, SIGNER, Meeting

KEY = golden.KEY
NOW = Instant(0.0, 1_000)
GRANT = KeyGrant(SIGNER.key_id, SIGNER.public_key, (*SIGNED, "snapshot"))
KEYS = ROOT.seal(
    "keys", encode_payload(KeysRecord(SIGNED["keys"].source, 1, golden.TERM, "", (GRANT,)))
).encode()

PLAIN = {
    "sterms": encode_snapshot(golden.NODES["terms"]),
    "sinner": encode_snapshot(golden.NODES["inner"]),
    "sleaf": encode_snapshot(golden.NODES["leaf"]),
}
INTAKE = ReportIntake(NodePath(), lambda _child, _key: 2**62, lambda _key: None)


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
            meeting.centre_hears(HelloArrived("emea", part))
        else:
            meeting.centre_hears(ReportArrived("emea", said[0], said[1], 1))
        meeting.now += 1
    meeting.now += 100
    meeting.centre_hears(Tick())
    assert set(meeting.centre.children()) == {"emea"}


def parent(data: bytes) -> None:
    """Whatever a parent says, its child goes on, and holds nothing that the tree did not sign."""
    meeting = Meeting()
    node = meeting.join("one", "here", attached=True)
    meeting.tell(node, LinkChanged(up=True))
    for at, part in enumerate(several(data)):
        said = fields(part, str, bytes)
        if said is not None:
            event = MailArrived(at + 5, MailKey(said[0]), said[1], at % 2, carried=tuple(CARRIED))
            meeting.tell(node, event)
        else:
            with suppress(RecordRefused):
                meeting.tell(node, Welcomed(decode(Welcome, part)))
        node.assert_invariants()
        meeting.now += 1
    meeting.now += 100
    meeting.tell(node, Tick())
    node.assert_invariants()
    signers = {ROOT.key_id: ROOT, SIGNER.key_id: SIGNER}
    for held in node.records.values():
        envelope = decode_envelope(held.data)
        signer = signers[envelope.key_id]
        assert envelope.verify(signer.tree, signer.public_key)


def believed(data: bytes) -> None:
    """A record that the tree signed, and that says anything: kept, passed over or refused."""
    found = fields(data, str, bytes, bytes, int)
    if found is None or found[0] not in (*SIGNED, "snapshot") or not 0 <= found[3] < 2**40:
        return
    kind, said, body, later = found
    meeting = Meeting(grants=(*SIGNED, "snapshot"))
    node = meeting.join("one", "here", attached=True)
    mail = SIGNER.seal(kind, said, body or None).encode()
    for key in (KEYS_KEY, SNAPSHOT_KEY, KEY, *(it.source.key for it in SIGNED.values())):
        meeting.tell(node, MailArrived(5, key, mail, 0))
        node.assert_invariants()
    meeting.tell(node, Welcomed(Welcome("inc", "one", 5, mail, Repair.NONE)))
    meeting.now += later % 10_000
    meeting.tell(node, Tick())
    node.assert_invariants()


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
    reading = read_issued(golden.RECORDS["delta"], golden.BODY, IN_CLEAR)
    with suppress(StopIteration):
        missing = next(reading)
        while True:
            missing = reading.send({it.address: found[3][1:] for it in missing})


def listing(data: bytes) -> None:
    """A snapshot that the centre signed leads to blobs that hold anything."""
    parts = several(data)
    meeting = Meeting()
    node = meeting.join("one", "here")
    meeting.generation += 1
    waiting = dict.fromkeys(meeting.stored)
    meeting.sign()
    for address in meeting.stored.keys() - waiting.keys():
        meeting.stored[address] = parts.pop() if parts else b""
    meeting.wait(node, 31)
    meeting.wait(node, 100)
    node.assert_invariants()


def own(data: bytes) -> None:
    """A node starts with anything in the streams that it kept, and goes on."""
    records, slots = [], []
    for at, part in enumerate(several(data)):
        said = fields(part, str, bytes, int)
        if said is None or not 0 <= said[2] < 2**63:
            continue
        records.append(OwnRecord(said[0], said[1], "inc", said[2]))
        slots.append(MailSlot("s1", MailKey(said[0]), at + 1, said[2], said[1], has_body=True))
    config = NodeConfig(PATH, ROOT.tree, Roots({ROOT.key_id: ROOT.public_key}), "run", home="here")
    node = Node(config, Remembered(tuple(records), tuple(slots)), [], NOW)
    node.assert_invariants()
    node.handle((LinkChanged(up=True),), NOW)
    node.handle((Tick(),), NOW._replace(seconds=100.0))
    node.assert_invariants()


def ledger(data: bytes) -> None:
    """The centre starts with anything in its store: it begins a term, and signs what is due."""
    store: dict[str, Envelope] = {}
    for part in several(data):
        said = fields(part, str, bytes)
        if said is not None:
            with suppress(RecordRefused):
                store[said[0]] = decode_envelope(said[1])
    reading = read_stored_ledger(read_stored(store))
    try:
        missing = next(reading)
        while True:
            missing = reading.send({it.address: PLAIN[it.kind] for it in missing})
    except StopIteration as read:
        read.value.begin("0" * 16, SIGNER, NOW)


def slot(data: bytes) -> None:
    found = fields(data, str, bytes)
    if found is not None:
        with suppress(RecordRefused):
            INTAKE.read("s1", *found)


def _heard(name):
    return LastHeard(0, silent=False) if name == "s1" else None


def ask(data: bytes) -> None:
    """Any series of asks and answers at one node, which believes all and has a child."""
    router = AskRouter(NodePath(), lambda _envelope, _record: "", _heard)
    for part in several(data):
        router.ask(AskArrived("get", part), NOW)
        router.answer(AnswerArrived("s1", part), NOW)
    router.tick(NOW._replace(seconds=1000.0))
    assert router.deadline() is None


def arguments(data: bytes) -> None:
    """What an ask wants to know, in any words."""
    parts = [text_of(part) for part in data.split(b"\0")]
    said = dict(zip(parts[::2], parts[1::2], strict=False))
    node = Meeting().centre
    with suppress(BadAskArguments):
        status_answer(node, "/", said)
    with suppress(BadAskArguments):
        proof_answer(node, "/", said)
    with suppress(BadAskArguments):
        trace_answer(node, TraceRing(is_edge=False, began_ms=0), said, 0)
    with suppress(BadAskArguments):
        orphans_answer(node, said)
    with suppress(BadAskArguments):
        objects_answer([{"metadata": {"name": "a"}}], said)


def returned(data: bytes) -> None:
    """The status that an edge returns of a singleton is JSON that a space takes, or is none."""
    result = ObjectResult(RESULT.key, 1, "d", data)
    asking = [(Count(Summary({"synced": 1}), exact=True), [result])]
    status = singleton(RESULT.key, asking, HubContent(2)).status
    if status is not None:
        with_status(RESULT.key, STORED, 1, status)


def reported() -> list[bytes]:
    """What a child says under its slots."""
    report, part = golden.UNSIGNED["report"], golden.UNSIGNED["part"]
    return [
        codec.pack([KEY, encode(report)]),
        codec.pack([part_key(KEY, 1), encode(part)]),
        codec.pack([PROGRESS_KEY, encode(golden.UNSIGNED["progress"])]),
    ]


def snapshot() -> bytes:
    return SIGNER.seal("snapshot", encode_snapshot(golden.SNAPSHOT)).encode()


def mailed() -> list[bytes]:
    found = [codec.pack([KEYS_KEY if it == "keys" else KEY, sealed(it)]) for it in SIGNED]
    keys, shown = codec.pack([KEYS_KEY, KEYS]), codec.pack([SNAPSHOT_KEY, snapshot()])
    return [keys, shown, *found, encode(golden.UNSIGNED["welcome"])]


def asked() -> list[bytes]:
    said = {"limit": "7", "after": "a", "placement": KEY, "size": "7", "kind": "object"}
    said |= {"address": "0" * 64}
    return ["\0".join(word for pair in said.items() for word in pair).encode()]


def kept() -> list[bytes]:
    cursor = codec.pack([CURSOR_KEY, encode(golden.UNSIGNED["cursor"]), 3])
    shown = codec.pack([SNAPSHOT_KEY, snapshot(), 4])
    came = codec.pack([f"{FIRST_SESSION_PREFIX}s1", encode(FirstSession("U")), 5])
    gone = codec.pack([f"{AWAY_PREFIX}s1", encode(Away(5, left=True)), 6])
    held = [
        codec.pack([short_key(bytes([at]) * 20), sealed(it), at]) for at, it in enumerate(SIGNED)
    ]
    return [series(codec.pack([KEYS_KEY, KEYS, 1]), cursor, shown, came, gone), series(*held)]


def ledgers() -> list[bytes]:
    held = [codec.pack([it.source.key, sealed(kind)]) for kind, it in SIGNED.items()]
    return [
        series(codec.pack([KEYS_KEY, KEYS]), *held),
        series(codec.pack(["_snapshot", snapshot()])),
    ]


def signed_payloads() -> list[bytes]:
    signed = codec.pack(["snapshot", encode_snapshot(golden.SNAPSHOT), b"", 9])
    return [
        signed,
        *(
            codec.pack(
                [kind, encode_payload(it), golden.BODY.encode() if kind == "delta" else b"", 9]
            )
            for kind, it in SIGNED.items()
        ),
    ]


def contents() -> list[bytes]:
    return [
        codec.pack([it.reference.kind, it.reference.address, it.reference.size, value])
        for it in manifest.build_manifest([golden.entry("a")])
        for value in it.values.values()
    ]


RESULT = golden.RESULT
STORED = StoredObject({"metadata": {"name": "a"}})
HELLO = encode(golden.UNSIGNED["hello"])
NESTED = Form.MSGPACK
TARGETS = {
    "child": Target(child, lambda: [series(HELLO, *reported()), series(HELLO)], NESTED),
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
    "listing": Target(
        listing,
        lambda: [series(*(b"\0" + encode_snapshot(it) for it in golden.NODES.values()))],
        NESTED,
    ),
    "ledger": Target(ledger, ledgers, NESTED),
}
