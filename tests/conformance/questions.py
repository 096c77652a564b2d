"""Vectors of questions: which are believed where, and what answers say, sealed and signed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from relay.core.asks.answers import redacted
from relay.core.asks.routing import (
    AnswerHere,
    AskArrived,
    AskRouter,
    LastHeard,
    PassAsk,
    SendAnswer,
)
from relay.core.instant import Instant
from relay.core.records.trust import Trust, TrustVerdict
from schemas.content.answer_sealing import AnswerKey
from schemas.records.asks import AnswerPart
from schemas.records.records import AskRecord, KeyGrant, Record, Source, encode_payload
from schemas.records.roots import Roots
from schemas.records.signed_answers import is_signed, signed
from schemas.records.signing import Envelope, RecordKind, Signer
from schemas.values import codec
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode
from tests.conformance.forms import Case, Json, as_json
from tests.conformance.signed import ROOTS, SECOND, SIGNER, STRANGER, TREE, delta, message

ABOUT = (
    "An ask as it comes to a node (`ask`): it is passed on, answered, refused with a fault, or "
    "passed over; an answer that a node signs (`signs`), and one that is sealed (`sealed`); and an "
    "object as an answer shows it (`shown`)."
)
NOW_MS = 1_800_000_000_000
HERE, BELOW = NodePath.parse("/emea"), NodePath.parse("/emea/s1")
SEED, NKEY = b"n" * 32, "UAAU4TMSFRMWUOAK37E65VZC5A2YELYSGZ3BNE7EXK5WDYNPXMCPDMOM"
SEALED = (
    "c1886288afd0072019a4c1f49c2d20ed5beb1b508ca68bd36f28a3d805191a6a7"
    "0d55659b29e87d794d8fa50b3b21135b82cf25ee4c3e52e9706cd7036144d4f02"
)
"""Given here, as each sealed box has a key of its own by chance."""
GIVEN: dict[str, Json] = {
    "tree": TREE,
    "path": str(HERE),
    "keys": [
        [SIGNER.key_id, SIGNER.public_key.hex(), ["ask"], 2**63 - 1],
        [SECOND.key_id, SECOND.public_key.hex(), ["ask"], 250],
    ],
    "children": ["s1"],
    "silent": ["s2"],
    "now_ms": NOW_MS,
    "verb": "get",
}


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_asks(), *_signed(), *_sealed(), *_shown()]


def record(path: NodePath = HERE, **changes: Any) -> AskRecord:
    fields = {
        "source": Source("leafcast.io/Ask", TREE, "", "c" * 26),
        "generation": 200,
        "term": "",
        "trace": "",
        "verb": "get",
        "path": path,
        "expires_ms": NOW_MS + 10_000,
        "arguments": {"name": "a", "group": ""},
        "answer_key": bytes(32),
    }
    return AskRecord(**(fields | changes))


def _asks() -> list[Case]:
    def case(
        name: str,
        rule: str,
        verdict: str,
        ask: Record,
        signer: Signer = SIGNER,
        kind: RecordKind = "ask",
        **given: Json,
    ) -> Case:
        data = signer.seal(kind, encode_payload(ask)).encode()
        return Case(name, rule, {"ask": data.hex(), **given}, {"verdict": verdict})

    silent = {"children": ["s1", "s2"]}
    unsigned = Envelope("ask", SIGNER.key_id, encode_payload(record()), bytes(64))
    return [
        case("an ask for this node", "K1", "answered", record()),
        case("an ask for a child", "K1", "passed", record(BELOW)),
        case("an ask for a node below a child", "K1", "passed", record(BELOW.child("a"))),
        case("an ask for a child that there is not", "K4", "NoSuchNode", record(HERE.child("s9"))),
        case(
            "an ask for a child that is silent",
            "K4",
            "Unreachable",
            record(HERE.child("s2")),
            **silent,
        ),
        case("an ask for a node beside", "K1", "WrongPath", record(NodePath.parse("/apac"))),
        case("an ask that another verb brings", "K1", "WrongVerb", record(), verb="node"),
        case("an ask that expired 60 s ago", "K1", "answered", record(expires_ms=NOW_MS - 60_000)),
        case(
            "an ask that expired before that", "K1", "Expired", record(expires_ms=NOW_MS - 60_001)
        ),
        case("an ask of a key that ended", "E17", "Unbelieved", record(generation=251), SECOND),
        case("an ask of a stranger", "E2", "Unbelieved", record(), STRANGER),
        case("an ask of a root", "E2", "Unbelieved", record(), ROOTS[0]),
        Case(
            "an ask that nobody signed",
            "E2",
            {"ask": unsigned.encode().hex()},
            {"verdict": "Unbelieved"},
        ),
        Case(
            "a delta where an ask is to be",
            "E1",
            {"ask": message("delta", delta()).encode().hex()},
            {"verdict": "passed over"},
        ),
        case(
            "an ask whose name is no id",
            "E1",
            "passed over",
            record(source=Source("leafcast.io/Ask", TREE, "", "c")),
        ),
    ]


def _signed() -> list[Case]:
    given = {
        "signs": {"nkey": NKEY, "nowMs": 7, "children": {"s1": None}, "share": 0.5},
        "seed": SEED.hex(),
        "nkey": NKEY,
    }
    asked = {"path": str(HERE), "verb": "node", "id": "c" * 26}
    return [
        Case(
            "a signed answer",
            "K8",
            {**given, "asked": asked, "held_against": asked},
            {"believed": True},
        ),
        Case(
            "an answer to another ask",
            "K8",
            {**given, "asked": asked, "held_against": {**asked, "id": "d" * 26}},
            {"believed": False},
        ),
        Case(
            "an answer of another verb",
            "K8",
            {**given, "asked": asked, "held_against": {**asked, "verb": "rekey"}},
            {"believed": False},
        ),
        Case(
            "an answer of another node",
            "K8",
            {**given, "asked": asked, "held_against": {**asked, "path": "/apac"}},
            {"believed": False},
        ),
    ]


def _sealed() -> list[Case]:
    entropy = (b"k" * 32).hex()
    altered = SEALED[:-1] + ("0" if SEALED[-1] != "0" else "1")
    return [
        Case(
            "a sealed answer", "K7", {"sealed": SEALED, "entropy": entropy}, {"verdict": "opened"}
        ),
        Case(
            "a sealed answer, altered",
            "K7",
            {"sealed": altered, "entropy": entropy},
            {"verdict": "refused"},
        ),
        Case(
            "a sealed answer to another key",
            "K7",
            {"sealed": SEALED, "entropy": (b"m" * 32).hex()},
            {"verdict": "refused"},
        ),
        Case(
            "an answer in clear", "K7", {"sealed": "80", "entropy": entropy}, {"verdict": "opened"}
        ),
    ]


def _shown() -> list[Case]:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "k", "annotations": applied},
        "data": {"key": "c2VjcmV0"},
        "stringData": {"more": "x"},
        "type": "Opaque",
    }
    return [
        Case("a Secret", "K5", {"shown": secret}),
        Case("a Secret without data", "K5", {"shown": {**secret, "data": None, "stringData": {}}}),
        Case("a ConfigMap", "K5", {"shown": {**secret, "kind": "ConfigMap"}}),
        Case(
            "a Secret of another group", "K5", {"shown": {**secret, "apiVersion": "example.com/v1"}}
        ),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    match given:
        case {"ask": data}:
            return _asked(bytes.fromhex(data), given)
        case {"signs": said}:
            return _signature(said, given)
        case {"sealed": sealed}:
            return _opened(bytes.fromhex(sealed), bytes.fromhex(given["entropy"]))
    return {"object": redacted(given["shown"])}


@dataclass
class _Node:
    """Whom a node believes, and which children it has."""

    trust: Trust
    children: list[str]
    silent: list[str]

    def disbelief(self, envelope: Envelope, record: Record) -> str:
        verdict = self.trust.judge(envelope, record)
        return "" if verdict is TrustVerdict.BELIEVED else verdict.value

    def heard(self, child: str) -> LastHeard | None:
        return LastHeard(NOW_MS, child in self.silent) if child in self.children else None


def _asked(data: bytes, given: Json) -> Json:
    trust = Trust(TREE, Roots({}))
    for key_id, public, kinds, last in given["keys"]:
        trust.granted[key_id] = KeyGrant(key_id, bytes.fromhex(public), tuple(kinds), last=last)
    node = _Node(trust, given["children"], given["silent"])
    router = AskRouter(NodePath.parse(given["path"]), node.disbelief, node.heard)
    effects = router.ask(AskArrived(given["verb"], data), Instant(0.0, given["now_ms"]))
    words, parts = [], []
    for effect in effects:
        match effect:
            case AnswerHere():
                words.append("answered")
            case PassAsk(child):
                words.append("passed")
            case SendAnswer(_, said):
                part = decode(AnswerPart, said)
                parts.append(part)
                words += [part.fault.reason] if part.fault else []
    shown = [[part.number, part.last, part.fault is not None] for part in parts]
    child = next((each.child for each in effects if isinstance(each, PassAsk)), "")
    return {"verdict": words[0] if words else "passed over", "child": child, "parts": shown}


def _signature(said: Json, given: Json) -> Json:
    asks = [
        record(
            NodePath.parse(it["path"]),
            verb=it["verb"],
            source=Source("leafcast.io/Ask", TREE, "", it["id"]),
        )
        for it in (given["asked"], given["held_against"])
    ]
    made = signed(bytes.fromhex(given["seed"]), TREE, asks[0], said)
    packed = codec.pack(said)
    believed = is_signed([given["nkey"]], TREE, asks[1], made)
    return {"packed": packed.hex(), "signature": made["signature"].hex(), "believed": believed}


def _opened(sealed: bytes, entropy: bytes) -> Json:
    key = AnswerKey(entropy)
    try:
        return {
            "verdict": "opened",
            "public": key.public.hex(),
            "answer": as_json(codec.unpack(key.open(sealed))),
        }
    except RecordRefused:
        return {"verdict": "refused", "public": key.public.hex()}
