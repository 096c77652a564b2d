"""Vectors of the form of signed records: what a reader refuses, and what it reads all the same."""

from __future__ import annotations

import hashlib

from schemas.records.records import DeltaBody, Gate, Record, body_of, encode_payload
from schemas.records.roots import keys_envelope
from schemas.records.signing import Envelope, RecordKind, Signer
from schemas.values import codec
from tests.conformance.forms import Case, Json, fields_of
from tests.conformance.signed import (
    BODY,
    KEYS,
    LOCATION,
    MANIFEST,
    PLACEMENT,
    ROOTS,
    SIGNER,
    TREE,
    delta,
    hexed,
    keys,
    message,
    node,
    profile,
    root_keys,
    signed_keys,
)

_ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493


def of(
    name: str,
    rule: str,
    envelope: Envelope | bytes,
    verdict: str,
    why: str = "",
    *,
    slot: str = "",
    **given: Json,
) -> Case:
    """A case; without a slot the message lies in the one of its source."""
    data = envelope if isinstance(envelope, bytes) else envelope.encode()
    if given.get("held") == []:
        # Without keys no snapshot can be believed.
        given["snapshot"] = None
    return Case(
        name,
        rule,
        {**given, "slot": slot or PLACEMENT.key, "message": data.hex()},
        {"verdict": verdict, "why": why},
    )


def forms() -> list[Case]:
    """What a message is, and what its payload has."""
    good = message("delta", delta())
    parts = codec.unpack(good.encode(), lists=True)
    payload = codec.unpack(good.payload, lists=True)
    longer = SIGNER.seal("delta", codec.pack([*payload, "later", 7]), BODY.encode())
    shorter = SIGNER.seal("delta", codec.pack(payload[:7]), BODY.encode())
    unreadable = SIGNER.seal(
        "delta", codec.pack([*payload[:5], "none", *payload[6:]]), BODY.encode()
    )
    negative = SIGNER.seal("delta", codec.pack([payload[0], -1, *payload[2:]]), BODY.encode())
    large = SIGNER.seal("delta", codec.pack([payload[0], 2**63, *payload[2:]]), BODY.encode())
    no_term = SIGNER.seal("delta", codec.pack([*payload[:2], "term", *payload[3:]]), BODY.encode())
    other_body = Envelope("delta", good.key_id, good.payload, good.signature, BODY.encode() + b"\0")
    narrow = DeltaBody((MANIFEST,), (Gate(MANIFEST, below=500),))
    hashed = hashlib.sha256(narrow.encode()).digest()
    bounded = SIGNER.seal("delta", encode_payload(delta(body_hash=hashed)), narrow.encode())
    selector = [["env", "In", ["prod"], "later"]]
    wider = [["location", selector, "inv"]]
    unknown = SIGNER.seal("delta", codec.pack([*payload[:5], wider, *payload[6:]]), BODY.encode())
    return [
        of("version 1", "E1", codec.pack([1, *parts[1:]]), "refused"),
        of("version 3", "E1", codec.pack([3, *parts[1:]]), "refused"),
        of("a kind that there is not", "E1", codec.pack([2, "rumour", *parts[2:]]), "refused"),
        of("no msgpack", "E1", b"\xc1", "refused"),
        of("nothing at all", "E1", b"", "refused"),
        of("five fields", "E1", codec.pack(parts[:5]), "refused"),
        of("a byte behind it", "E1", good.encode() + b"\0", "refused"),
        of(
            "the signature is a text", "E1", codec.pack([*parts[:4], "s" * 64, parts[5]]), "refused"
        ),
        of("fields of a later version at the end", "E4", longer, "taken"),
        of("without its last field", "E4", shorter, "taken"),
        of("a delta of which only the first four fields are readable", "E5", unreadable, "taken"),
        of("a requirement of a selector with a field more", "E4", unknown, "taken"),
        of("a generation below 0", "E6", negative, "refused"),
        of("a generation of 2^63", "E6", large, "refused"),
        of("a term that is no 16 hex digits", "E4", no_term, "refused"),
        of("a body of another hash", "E9", other_body, "refused"),
        of("the last gate does not admit all", "E9", bounded, "taken"),
        of("a head, without body", "E5", good.bare(), "taken"),
        of("the slot of another key", "E3", good, "refused", "", slot=LOCATION.key),
        of("the slot of keys", "E3", good, "refused", "", slot="_keys"),
        of("the slot of the snapshot", "E3", good, "refused", "", slot="_snapshot"),
        of("an ask in a mailbox", "E3", _ask(), "refused"),
    ]


def _ask() -> Envelope:
    fields = [["leafcast.io/Ask", TREE, "", "c" * 26], 200, "", "", "node", "/emea", 9, {}, b""]
    return SIGNER.seal("ask", codec.pack(fields))


def altered(kind: RecordKind, record: Record, old: bytes, new: bytes) -> Envelope:
    """A signed message whose payload says it in other bytes."""
    payload = encode_payload(record)
    assert payload.count(old) == 1
    return SIGNER.seal(kind, payload.replace(old, new), body_of(record) or _body_of(kind))


def _body_of(kind: RecordKind) -> bytes | None:
    return BODY.encode() if kind == "delta" else None


def odd_forms() -> list[Case]:
    """What a writer does not say, and a reader may come across."""
    good, there = message("delta", delta()), message("node", node())
    parts = codec.unpack(good.encode(), lists=True)
    label, twice = b"\x81\xa3env\xa4prod", b"\x82\xa3env\xa4test\xa3env\xa4prod"
    term = codec.pack(delta().term)
    with_body = [*codec.unpack(there.encode(), lists=True)[:5], b"junk"]
    second_half = int.from_bytes(good.signature[32:], "little") + _ED25519_ORDER
    wide = good.signature[:32] + second_half.to_bytes(32, "little")
    return [
        of("carrying what has another form", "E8", codec.pack([*parts, "more"]), "taken"),
        of("eight fields", "E1", codec.pack([*parts, [], "later"]), "taken"),
        of(
            "a body where there is none of its kind",
            "E1",
            codec.pack(with_body),
            "taken",
            slot=node().source.key,
        ),
        of(
            "a map that has a key twice",
            "E6",
            altered("profile", profile(), label, twice),
            "taken",
            slot=profile().source.key,
        ),
        of(
            "an integer that is not in its shortest form",
            "E6",
            altered("delta", delta(), b"\xcc\xc8", b"\xcd\x00\xc8"),
            "taken",
        ),
        of(
            "a text that is no UTF-8",
            "E1",
            altered("delta", delta(), b"trace-1", b"trace-\xff"),
            "refused",
        ),
        of(
            "a selector over neither locations nor sync targets",
            "E5",
            altered("delta", delta(), codec.pack("location"), codec.pack("position")),
            "taken",
        ),
        of("an empty term", "E4", altered("delta", delta(), term, b"\xa0"), "taken"),
        of(
            "a signature whose second half is not the least that fits",
            "E2",
            Envelope("delta", good.key_id, good.payload, wide, good.body),
            "refused",
            "forged",
        ),
        *_odd_selectors(),
        *_odd_bodies(),
    ]


def _odd_selectors() -> list[Case]:
    payload = codec.unpack(message("delta", delta()).payload, lists=True)

    def selecting(*requirements: Json) -> Envelope:
        wider = [["location", list(requirements), "inv"]]
        return SIGNER.seal("delta", codec.pack([*payload[:5], wider, *payload[6:]]), BODY.encode())

    return [
        of(
            "a selector that is not sorted",
            "E4",
            selecting(["zone", "Exists"], ["env", "In", ["prod", "dev", "dev"]]),
            "taken",
        ),
        of("In without values", "E4", selecting(["env", "In", []]), "taken"),
        of("Exists with a value", "E4", selecting(["env", "Exists", ["prod"]]), "taken"),
        of("a key that is no label's", "E4", selecting(["a b", "Exists"]), "taken"),
    ]


def _odd_bodies() -> list[Case]:
    """Of each body whether it can be read: `readable` in the record says so."""
    all_of_it = [fields_of(MANIFEST), 10_000]
    window = ["0 2 * * *", 3600]

    def gated(*gates: Json, content: Json = ()) -> Envelope:
        body = codec.pack([list(content), list(gates)])
        hashed = hashlib.sha256(body).digest()
        return SIGNER.seal("delta", encode_payload(delta(body_hash=hashed)), body)

    def in_windows(*windows: Json) -> Envelope:
        gate = [*all_of_it, "", "synctarget", None, "7.0", "/", list(windows)]
        return gated(gate, all_of_it)

    later = ["later", MANIFEST.address, 1]
    return [
        of("content of a type that there is not", "E4", gated(all_of_it, content=[later]), "taken"),
        of("a last gate below 20,000", "E9", gated([fields_of(MANIFEST), 20_000]), "taken"),
        of("a gate over neither of the two", "E5", gated([None, 1, "", "odd"], all_of_it), "taken"),
        of("a gate's name of 33 bytes", "E5", gated(_named("n" * 33), all_of_it), "taken"),
        of("a gate's name with a slash", "E5", gated(_named("7/0"), all_of_it), "taken"),
        of("a window of 201 characters", "W1", in_windows(["0" * 201, 3600]), "taken"),
        of("a window of 0 seconds", "W1", in_windows([window[0], 0]), "taken"),
        of("20 windows", "W1", in_windows(*[window] * 20), "taken"),
        of("21 windows", "E5", in_windows(*[window] * 21), "taken"),
    ]


def _named(name: str) -> Json:
    return [None, 10_000, "", "synctarget", None, name]


def odd_keys() -> list[Case]:
    """Records of kind keys whose roots are none, or cannot be met."""
    one, two, three, _four = ROOTS
    second = signed_keys(keys(110, roots=root_keys(two, three), threshold=1, version=2), one, two)
    fields = codec.unpack(encode_payload(keys(120)), lists=True)
    named = [[two.key_id, two.public_key], [three.key_id, three.public_key]]

    def of_keys(
        name: str, rule: str, said: Json, verdict: str, *signers: Signer, **more: Json
    ) -> Case:
        signed = SIGNER.seal("keys", codec.pack([*fields[:5], *said]))
        made = {each.key_id: each.seal("keys", signed.payload).signature for each in signers}
        return of(name, rule, keys_envelope(signed.payload, made), verdict, slot="_keys", **more)

    held = [KEYS, hexed(second)]
    return [
        of_keys("no roots, and another threshold and version", "E12", [[], 2, 7], "taken", one),
        of_keys("no roots, where version 2 is known", "E15", [[]], "refused", one, two, held=held),
        of_keys("a threshold of 0", "E13", [named, 0, 2], "refused", one, two, three),
        of_keys("a threshold of 3 of 2", "E13", [named, 3, 2], "refused", one, two, three),
        of_keys("version 0", "E15", [named, 1, 0], "refused", one, two, three),
        of_keys("one root twice", "E13", [[named[0]] * 2, 1, 2], "refused", one, two),
    ]
