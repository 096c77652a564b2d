"""Vectors of sealing: how keys follow from each other, and what they close and open."""

from __future__ import annotations

from typing import Any

from schemas.content import blobs, sealing
from schemas.content import manifest as manifests
from schemas.content.answer_sealing import AnswerKey
from schemas.content.manifest import ManifestEntry
from schemas.content.sealing import SealingKey
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ObjectResult
from schemas.reports.returned_states import sealed_state
from schemas.reports.upsync import UpsyncClause
from schemas.values import codec
from schemas.values.identity import ContentHash, MailKey, TreeId, mail_key
from schemas.values.refusals import BlobRefused, RecordRefused
from tests.conformance.forms import Case, Json, as_json, fields_of

ABOUT = (
    "Keys that follow from a master (`master`), a node's key and the box for it (`seed`), sealed "
    "bytes of a type (`sealed`), a placement's keys under a fleet key (`wrapped`), a sealed "
    "manifest (`manifest`), a returned state (`state`) and an answer (`answer`)."
)
TREE = TreeId("a" * 26)
MASTER = bytes(range(32))
KEY = mail_key("edge.kubestellar.io/EdgePlacement", "wds", "", "shop")
FLEET = sealing.fleet_key(MASTER)
PLACEMENT = sealing.placement_key(MASTER, KEY, 0)
PLAIN = codec.canonical({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}})
ADDRESS = codec.address("object", PLAIN)


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_keys(), *_boxes(), *_sealed(), *_wrapped(), *_manifests(), *_states()]


def _keys() -> list[Case]:
    given = {"master": MASTER.hex(), "mail_key": KEY, "count": 0, "address": ADDRESS}
    return [
        Case("keys of a placement", "X4", given),
        Case("another key of that placement", "X4", {**given, "count": 1}),
        Case("keys under another master", "X6", {**given, "master": bytes(32).hex()}),
    ]


def _boxes() -> list[Case]:
    given = {"seed": (b"n" * 32).hex(), "master": MASTER.hex(), "keys": [FLEET.hex()]}
    return [
        Case("a box with one fleet key", "X3", given),
        Case(
            "a box with two",
            "X3",
            {**given, "keys": [sealing.fleet_key(bytes(32)).hex(), FLEET.hex()]},
        ),
    ]


def _sealed() -> list[Case]:
    def case(name: str, verdict: str, sealed: bytes, **changes: Any) -> Case:
        given = {"key": PLACEMENT.hex(), "type": "object", "tree": TREE, "bound": "", **changes}
        return Case(
            f"sealed: {name}", "X1", {**given, "sealed": sealed.hex()}, {"verdict": verdict}
        )

    good = sealing.seal(PLACEMENT, "object", TREE, PLAIN)
    bound = sealing.seal(PLACEMENT, "object", TREE, PLAIN, b"here")
    altered = good[:-1] + bytes([good[-1] ^ 1])
    return [
        case("an object", "opened", good),
        case("by another key", "refused", good, key=FLEET.hex()),
        case("as another type", "refused", good, type="template"),
        case("in another tree", "refused", good, tree="b" * 26),
        case("one bit altered", "refused", altered),
        case("bound to something", "opened", bound, bound=b"here".hex()),
        case("bound to something else", "refused", bound, bound=b"there".hex()),
        case("nothing", "refused", b""),
    ]


def _wrapped() -> list[Case]:
    good = sealing.wrap_keys(FLEET, TREE, KEY, [PLACEMENT])
    two = sealing.wrap_keys(FLEET, TREE, KEY, [sealing.placement_key(MASTER, KEY, 1), PLACEMENT])
    other = mail_key("edge.kubestellar.io/EdgePlacement", "wds", "", "other")

    def case(name: str, verdict: str, wrapped: bytes, **changes: Any) -> Case:
        given = {"fleet": [FLEET.hex()], "tree": TREE, "mail_key": KEY, **changes}
        return Case(
            f"wrapped: {name}", "X4", {**given, "wrapped": wrapped.hex()}, {"verdict": verdict}
        )

    return [
        case("one key", "opened", good),
        case("two keys, the newer one first", "opened", two),
        case("under a fleet key that is not here", "refused", good, fleet=[bytes(32).hex()]),
        case("of another placement", "refused", good, mail_key=other),
    ]


def _entries() -> list[ManifestEntry]:
    marking = sealing.marking_key(MASTER)
    key = SealingKey(TREE, PLACEMENT)
    made = []
    for name in "ab":
        stored = key.store(blobs.OBJECT, name.encode())
        mark = sealing.mark(marking, codec.address(blobs.OBJECT, name.encode()))
        reference = stored.reference
        made.append(
            ManifestEntry(
                "",
                "configmaps",
                "shop",
                name,
                reference.address,
                reference.size,
                "wds",
                3,
                1,
                12,
                mark,
            )
        )
    return made


def _manifests() -> list[Case]:
    key = SealingKey(TREE, PLACEMENT)
    made = manifests.build_manifest(_entries(), [UpsyncClause("", ("events",), (), ())], key)
    plain = {it.reference.address: blobs.open_stored(it).hex() for it in made}
    given = {"tree": TREE, "root": made[0].reference.address, "blobs": plain}
    return [
        Case(
            "manifest: sealed",
            "X1",
            {"manifest": {**given, "keys": [PLACEMENT.hex()]}},
            {"verdict": "opened"},
        ),
        Case(
            "manifest: its key is not here",
            "X5",
            {"manifest": {**given, "keys": [FLEET[:16].hex()]}},
            {"verdict": "refused"},
        ),
    ]


def _states() -> list[Case]:
    result = {
        "destination": "inv-mb-u",
        "group": "apps",
        "resource": "deployments",
        "namespace": "shop",
        "name": "web",
    }
    named = {**result, "content": bytes(range(16)).hex(), "generation": 7}
    key = AnswerKey(b"k" * 32)
    return [
        Case(
            "a state that is returned",
            "X9",
            {
                "state": {**result, "content": "", "generation": 0},
                "status": "80",
                "key": PLACEMENT.hex(),
            },
        ),
        Case(
            "a state of a content", "X9", {"state": named, "status": "80", "key": PLACEMENT.hex()}
        ),
        Case(
            "the public half of a question's key",
            "K7",
            {"entropy": (b"k" * 32).hex()},
            {"public": key.public.hex()},
        ),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    match given:
        case {"seed": seed}:
            return _box(bytes.fromhex(seed), given)
        case {"master": master}:
            return _derived(bytes.fromhex(master), given)
        case {"sealed": sealed}:
            return _unsealed(bytes.fromhex(sealed), given)
        case {"wrapped": wrapped}:
            return _unwrapped(bytes.fromhex(wrapped), given)
        case {"manifest": said}:
            return _opened(said)
        case {"state": said}:
            return _state(said, given)
    return {"public": AnswerKey(bytes.fromhex(given["entropy"])).public.hex()}


def _derived(master: bytes, given: Json) -> Json:
    fleet = sealing.fleet_key(master)
    placement = sealing.placement_key(master, MailKey(given["mail_key"]), given["count"])
    marking = sealing.marking_key(master)
    return {
        "fleet_key": fleet.hex(),
        "fleet_key_id": sealing.key_id(fleet).hex(),
        "placement_key": placement.hex(),
        "placement_key_id": sealing.key_id(placement).hex(),
        "marking_key": marking.hex(),
        "mark": sealing.mark(marking, ContentHash(given["address"])),
    }


def _box(seed: bytes, given: Json) -> Json:
    """Of the 32 bytes of an nkey's seed."""
    from nacl.signing import SigningKey

    from relay.adapters.server.nkey_pairs import new_user_nkey

    _, nkey = new_user_nkey(seed)
    private = sealing.sealing_private(seed)
    public = sealing.sealing_public(nkey)
    keys = [bytes.fromhex(key) for key in given["keys"]]
    box = sealing.fleet_box(bytes.fromhex(given["master"]), public, keys)
    assert sealing.open_fleet_box(private, box) == tuple(keys)
    return {
        "nkey": nkey,
        "ed25519": bytes(SigningKey(seed).verify_key).hex(),
        "x25519_private": private.hex(),
        "x25519_public": public.hex(),
        "box": box.hex(),
    }


def _unsealed(sealed: bytes, given: Json) -> Json:
    key, bound = bytes.fromhex(given["key"]), bytes.fromhex(given["bound"])
    try:
        plain = sealing.unseal(key, given["type"], TreeId(given["tree"]), sealed, 1024, bound)
    except BlobRefused:
        return {"verdict": "refused"}
    return {
        "verdict": "opened",
        "plain": plain.hex(),
        "address": codec.address(given["type"], sealed),
    }


def _unwrapped(wrapped: bytes, given: Json) -> Json:
    fleet = [bytes.fromhex(key) for key in given["fleet"]]
    try:
        keys = sealing.unwrap_keys(
            fleet, TreeId(given["tree"]), MailKey(given["mail_key"]), wrapped
        )
    except sealing.NotOpened:
        return {"verdict": "refused"}
    return {"verdict": "opened", "keys": [key.hex() for key in keys]}


def _opened(said: Json) -> Json:
    plain = {ContentHash(at): bytes.fromhex(text) for at, text in said["blobs"].items()}
    keys = [SealingKey(TreeId(said["tree"]), bytes.fromhex(key)) for key in said["keys"]]
    root = plain[ContentHash(said["root"])]
    try:
        manifest = manifests.read_manifest(root, plain, keys)
    except (BlobRefused, RecordRefused):
        return {"verdict": "refused"}
    return {
        "verdict": "opened",
        "root": as_json(codec.unpack(root)),
        "entries": [fields_of(entry) for entry in manifest.entries],
        "upsync": [fields_of(clause) for clause in manifest.upsync],
    }


def _state(said: Json, given: Json) -> Json:
    key = ObjectKey(said["group"], said["resource"], said["namespace"], said["name"])
    status, content = bytes.fromhex(given["status"]), bytes.fromhex(said["content"])
    result = ObjectResult(key, 1, said["destination"], status, content, said["generation"])
    sealed = sealed_state(result, SealingKey(TREE, bytes.fromhex(given["key"])))
    assert sealed.status is not None
    return {"status": sealed.status.hex()}
