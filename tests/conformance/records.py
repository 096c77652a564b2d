"""Vectors of signed records: what a node makes of a message in a slot of its mailbox."""

from __future__ import annotations

from relay.core.events import MailArrived
from relay.core.records.acceptance import (
    Acceptance,
    HeldVersion,
    ListedBelow,
    MissingInput,
    NewVersion,
    RecordRefusal,
    Superseded,
    Undecided,
)
from relay.core.records.accepted import AcceptedRecord
from relay.core.records.book import RecordBook
from relay.core.records.judge import SnapshotJudge
from relay.core.records.snapshot import SnapshotInterest
from relay.core.records.trust import Trust
from schemas.records.records import (
    KeysRecord,
    LocationRecord,
)
from schemas.records.roots import Roots
from schemas.records.signing import Envelope, Signer
from schemas.values.identity import KeyId, MailKey, NodePath, TreeId
from tests.conformance.forms import Case, Json, fields_of
from tests.conformance.record_forms import forms, odd_forms, odd_keys, of
from tests.conformance.signed import (
    HERE,
    KEYS,
    LOCATION,
    NARROW,
    OTHER_TREE,
    PINNED,
    PLACEMENT,
    REVOKED,
    ROOTS,
    SECOND,
    SIGNER,
    STRANGER,
    TREE,
    delta,
    entry_key,
    hexed,
    keys,
    location,
    message,
    node,
    profile,
    root_keys,
    signed_keys,
    snapshot,
)

ABOUT = (
    "A node, the keys and snapshots that it knows, what it holds, and a message in a slot of its "
    "mailbox: what becomes of the message."
)
GIVEN: dict[str, Json] = {
    "tree": TREE,
    "path": str(HERE),
    "roots": PINNED,
    "held": [KEYS],
    "snapshot": snapshot({}, 90),
    "takes_new": True,
    "read_to_end": False,
}


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [
        *_signed(),
        *_granted(),
        *forms(),
        *odd_forms(),
        *odd_keys(),
        *_kinds(),
        *_held(),
        *_listed(),
        *_of_roots(),
        *_of_thresholds(),
        *_of_versions(),
    ]


def _signed() -> list[Case]:
    good = message("delta", delta())
    flipped = bytes([good.signature[0] ^ 1]) + good.signature[1:]
    forged = Envelope("delta", good.key_id, good.payload, flipped, good.body)
    renamed = Envelope("delta", SECOND.key_id, good.payload, good.signature, good.body)
    as_profile = Envelope("location", good.key_id, good.payload, good.signature, None)
    elsewhere = Signer(OTHER_TREE, SIGNER.key_id, SIGNER.seed)
    return [
        of("a delta that a key in force signed", "E2", good, "taken"),
        of("one bit of the signature is another", "E2", forged, "refused", "forged"),
        of("the id of another key in force", "E2", renamed, "refused", "forged"),
        of(
            "signed for another tree",
            "E2",
            message("delta", delta(), elsewhere),
            "refused",
            "forged",
        ),
        of("signed as another kind", "E2", as_profile, "refused", "", slot=LOCATION.key),
        of(
            "a key that no keys record granted, before the mailbox was read",
            "E2",
            message("delta", delta(), STRANGER),
            "waits",
            "key",
        ),
        of(
            "the same once the mailbox was read to its end",
            "E2",
            message("delta", delta(), STRANGER),
            "refused",
            "unknown key",
            read_to_end=True,
        ),
        of("no snapshot was verified yet", "V2", good, "waits", "snapshot", snapshot=None),
        of("nothing is granted yet", "E2", good, "waits", "key", held=[]),
        of(
            "a root key signs no delta",
            "E2",
            message("delta", delta(), ROOTS[0]),
            "refused",
            "unknown key",
            read_to_end=True,
        ),
    ]


def _granted() -> list[Case]:
    return [
        of("a revoked key", "E18", message("delta", delta(), REVOKED), "refused", "revoked key"),
        of("the first generation of a key", "E17", message("delta", delta(150), SECOND), "taken"),
        of("the last generation of a key", "E17", message("delta", delta(250), SECOND), "taken"),
        of(
            "a generation before the key's first",
            "E17",
            message("delta", delta(149), SECOND),
            "refused",
            "out of scope",
        ),
        of(
            "a generation after the key's last",
            "E17",
            message("delta", delta(251), SECOND),
            "refused",
            "out of scope",
        ),
        of(
            "a key with a path signs no delta",
            "E2",
            message("delta", delta(), NARROW),
            "refused",
            "out of scope",
        ),
        of(
            "a key with a path signs a Location",
            "E2",
            message("location", location(), NARROW),
            "taken",
            slot=LOCATION.key,
        ),
        of(
            "a key with a path signs a profile there",
            "E2",
            message("profile", profile(), NARROW),
            "taken",
            slot=profile().source.key,
        ),
        of(
            "a key with a path signs no profile beside it",
            "E2",
            message("profile", profile(NodePath.parse("/emea/s2")), NARROW),
            "refused",
            "out of scope",
            slot=profile(NodePath.parse("/emea/s2")).source.key,
        ),
    ]


def _kinds() -> list[Case]:
    there = node(HERE)
    beside = node(NodePath.parse("/apac"))
    return [
        of(
            "a Location, in full", "E9", message("location", location()), "taken", slot=LOCATION.key
        ),
        of(
            "a Location, its head alone",
            "E9",
            message("location", location()).bare(),
            "taken",
            slot=LOCATION.key,
        ),
        of("a profile", "E10", message("profile", profile()), "taken", slot=profile().source.key),
        of("a node below", "E10", message("node", node()), "taken", slot=node().source.key),
        of(
            "a node record of the node itself",
            "E10",
            message("node", there),
            "refused",
            slot=there.source.key,
        ),
        of(
            "a node that is elsewhere",
            "E10",
            message("node", beside),
            "refused",
            slot=beside.source.key,
        ),
    ]


def _held() -> list[Case]:
    full = message("delta", delta())
    head = full.bare()
    newer, older = message("delta", delta(300)), message("delta", delta(100))
    with_full = {"held": [KEYS, hexed(full)]}
    with_head = {"held": [KEYS, hexed(head)]}
    under = {"snapshot": snapshot({entry_key(delta()): 100}, 1000)}
    before = {"snapshot": snapshot({entry_key(delta()): 100}, 150)}
    orphan = message("delta", delta(term="00000000000000ff"))
    with_orphan = {"held": [KEYS, hexed(orphan)]}
    return [
        of("the very record that is held", "R4", full, "held", **with_full),
        of("the head of what is held in full", "R4", head, "held", **with_full),
        of("the body of what is held as a head", "R4", full, "taken", **with_head),
        of("the head that is held", "R4", head, "held", **with_head),
        of("a higher generation than the one held", "V2", newer, "taken", **with_full),
        of("a lower generation than the one held", "R4", older, "superseded", **with_full),
        of(
            "a lower generation that a newer snapshot lists",
            "R4",
            older,
            "taken",
            **(with_full | under),
        ),
        of(
            "a lower generation that a newer snapshot lists, below one whose term it does not know",
            "V2",
            older,
            "listed below",
            **(with_orphan | under),
        ),
        of(
            "above a snapshot that does not know the term of the one held",
            "V2",
            message("delta", delta(1001)),
            "taken",
            **(with_orphan | under),
        ),
        of(
            "a lower generation, listed by a snapshot below what is held",
            "R4",
            older,
            "superseded",
            **(with_full | before),
        ),
        of(
            "nothing new may be taken",
            "V4",
            newer,
            "waits",
            "snapshot",
            takes_new=False,
            **with_full,
        ),
        of("what is held is no news", "V4", full, "held", takes_new=False, **with_full),
    ]


def _listed() -> list[Case]:
    good = message("delta", delta())
    key = entry_key(delta())
    hidden = {**snapshot({key: 200}), "blobs": {}}
    profile_key = profile().source.key
    elsewhere = snapshot({entry_key(profile(NodePath.parse("/emea/s9"))): 200})
    return [
        of("listed with its generation", "V2", good, "taken", snapshot=snapshot({key: 200})),
        of("listed with a lower one", "V2", good, "superseded", snapshot=snapshot({key: 199})),
        of("listed with a higher one", "V2", good, "superseded", snapshot=snapshot({key: 201})),
        of("not listed, and below the snapshot", "V2", good, "superseded", snapshot=snapshot({})),
        of("not listed, and above the snapshot", "V2", good, "taken", snapshot=snapshot({}, 199)),
        of(
            "of the snapshot's own generation", "V2", good, "superseded", snapshot=snapshot({}, 200)
        ),
        of("the snapshot cannot be read yet", "V2", good, "waits", "snapshot", snapshot=hidden),
        of(
            "above a snapshot that cannot be read yet",
            "V2",
            message("delta", delta(1001)),
            "taken",
            snapshot=hidden,
        ),
        of(
            "a profile that is listed at another path",
            "V9",
            message("profile", profile()),
            "superseded",
            slot=profile_key,
            snapshot=elsewhere,
        ),
    ]


def _of_roots() -> list[Case]:
    one, two, _three, _four = ROOTS
    slot = "_keys"
    same = keys(110, roots=root_keys(one), threshold=1, version=1)
    others = keys(110, roots=root_keys(two), threshold=1, version=1)
    raw = signed_keys(keys(), one)
    wrong = Envelope("keys", raw.key_id, raw.payload, bytes(64), raw.body)
    later = {"roots": {**PINNED, "since": 101}}
    return [
        of("keys that the pinned root signed", "E12", raw, "taken", slot=slot, held=[]),
        of("keys that nobody signed", "E12", wrong, "refused", slot=slot, held=[]),
        of(
            "keys that a signing key signed",
            "E12",
            signed_keys(keys(), SIGNER),
            "refused",
            slot=slot,
            held=[],
        ),
        of(
            "keys of a generation below the one pinned",
            "E11",
            raw,
            "refused",
            slot=slot,
            held=[],
            **later,
        ),
        of("the same roots, named", "E12", signed_keys(same, one), "taken", slot=slot),
        of(
            "other roots under the known version",
            "E12",
            signed_keys(others, one),
            "refused",
            slot=slot,
        ),
    ]


def _of_thresholds() -> list[Case]:
    one, two, three, _four = ROOTS
    slot = "_keys"
    pinned_two = {
        "keys": {each.key_id: each.public_key.hex() for each in (one, two)},
        "threshold": 2,
        "version": 1,
        "since": 0,
    }
    changed = keys(110, roots=root_keys(two, three), threshold=1, version=2)
    second = signed_keys(changed, one, two)
    return [
        of(
            "two of two sign",
            "E12",
            signed_keys(keys(), one, two),
            "taken",
            slot=slot,
            held=[],
            roots=pinned_two,
        ),
        of(
            "one of two signs",
            "E12",
            signed_keys(keys(), one),
            "refused",
            slot=slot,
            held=[],
            roots=pinned_two,
        ),
        of("the next version, signed by old and new roots", "E13", second, "taken", slot=slot),
    ]


def _of_versions() -> list[Case]:
    one, two, three, four = ROOTS
    slot = "_keys"
    changed = keys(110, roots=root_keys(two, three), threshold=1, version=2)
    again = keys(120, roots=root_keys(three, four), threshold=2, version=3)
    second = signed_keys(changed, one, two)
    third = signed_keys(again, two, three, four, led=(signed_keys(changed, one, two),))
    unled = signed_keys(again, two, three, four)
    raw = signed_keys(keys(), one)
    return [
        of(
            "the next version, signed by the old roots alone",
            "E13",
            signed_keys(changed, one),
            "refused",
            slot=slot,
        ),
        of(
            "the next version, signed by the new roots alone",
            "E13",
            signed_keys(changed, two),
            "refused",
            slot=slot,
        ),
        of("two versions on, with the forerunner", "E14", third, "taken", slot=slot),
        of("two versions on, and no forerunner", "E14", unled, "refused", slot=slot),
        of(
            "a lower version than the known one",
            "E15",
            signed_keys(keys(130), one),
            "refused",
            slot=slot,
            held=[KEYS, hexed(second)],
        ),
        of(
            "older keys of the known roots",
            "V2",
            raw,
            "superseded",
            slot=slot,
            held=[hexed(signed_keys(keys(130), one))],
        ),
        of("keys in another slot", "E3", raw, "refused", slot=PLACEMENT.key, held=[]),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    tree, path = TreeId(given["tree"]), NodePath.parse(given["path"])
    trust = Trust(tree, _roots(given["roots"]))
    book = RecordBook(path)
    judge = SnapshotJudge(book.by_key, lambda: SnapshotInterest((), path), path)
    acceptance = Acceptance(path, tree, trust, book, judge)
    for data in given["held"]:
        held = acceptance.recall(bytes.fromhex(data), ())
        assert isinstance(held, AcceptedRecord), held
        if isinstance(held.record, KeysRecord):
            trust.adopt(held.record)
        book.put(held)
    if given["snapshot"] is not None:
        _show(given["snapshot"], acceptance, judge)
    slot = MailKey(given["slot"])
    arrived = MailArrived(1, slot, bytes.fromhex(given["message"]), 0)
    ruling = acceptance.judge(
        arrived, keys_read=given["read_to_end"], admits_new=given["takes_new"]
    )
    match ruling:
        case NewVersion(accepted):
            return {"verdict": "taken", "why": "", "record": _shown(accepted)}
        case HeldVersion():
            return {"verdict": "held", "why": ""}
        case Superseded():
            return {"verdict": "superseded", "why": ""}
        case ListedBelow():
            return {"verdict": "listed below", "why": ""}
        case Undecided(missing):
            return {"verdict": "waits", "why": _MISSING[missing]}
        case RecordRefusal(reason):
            return {"verdict": "refused", "why": _REASONS.get(reason, "")}


def _show(said: Json, acceptance: Acceptance, judge: SnapshotJudge) -> None:
    """Have the node verify a snapshot, and read what is here of it."""
    verified = acceptance.snapshot(bytes.fromhex(said["message"]))
    assert not isinstance(verified, RecordRefusal), verified
    judge.offer(verified, 1, 0.0)
    plain = {at: bytes.fromhex(text) for at, text in said["blobs"].items()}
    while here := [each for each in judge.read_more() if each.address in plain]:
        for each in here:
            judge.take(each.address, plain[each.address])


_MISSING = {MissingInput.KEY: "key", MissingInput.SNAPSHOT: "snapshot"}
_REASONS = {
    "Forged": "forged",
    "OutOfScope": "out of scope",
    "RevokedKey": "revoked key",
    "UnknownKey": "unknown key",
}
"""Of a record that is read and not believed; of all others the rule says why."""


def _roots(said: Json) -> Roots:
    public = {KeyId(key): bytes.fromhex(text) for key, text in said["keys"].items()}
    return Roots(public, said["threshold"], said["version"], said["since"])


def _shown(accepted: AcceptedRecord) -> Json:
    """What a reader knows of a record that it took."""
    record = accepted.record
    head = record.head if isinstance(record, LocationRecord) else record
    shown = {
        "kind": accepted.kind,
        "mail_key": accepted.key,
        "generation": accepted.generation,
        "full": accepted.full,
        "readable": not accepted.opaque,
        "payload_sha256": accepted.payload_hash.hex(),
        "digest_term": f"{accepted.version.digest_term:032x}",
        "entry_key": accepted.entry_key.hex() if accepted.kind != "keys" else "",
        "payload": fields_of(head),
        "body": None,
    }
    if accepted.body is not None:
        shown["body"] = fields_of(accepted.body)
    elif isinstance(record, LocationRecord):
        shown["body"] = [dict(record.labels), dict(record.annotations)]
    return shown
