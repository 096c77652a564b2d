"""Vectors of snapshots: whether one is believed, what of it is read, what it makes of records."""

from __future__ import annotations

from typing import Any

from relay.core.records.acceptance import Acceptance, RecordRefusal
from relay.core.records.accepted import AcceptedRecord
from relay.core.records.book import RecordBook
from relay.core.records.judge import SnapshotJudge
from relay.core.records.snapshot import SnapshotInterest, SnapshotView
from relay.core.records.snapshot_reading import SnapshotReading
from relay.core.records.tree import SnapshotTree
from relay.core.records.trust import Trust
from relay.core.records.verdict import HeldRecord, admit, admits_new, standing
from schemas.content import blobs
from schemas.records import snapshots
from schemas.records.records import KeysRecord
from schemas.records.roots import Roots
from schemas.records.signing import Envelope, Signer, decode_envelope
from schemas.records.snapshots import (
    BlobPointer,
    Child,
    Entry,
    EntryKey,
    InnerNode,
    LeafNode,
    SnapshotRecord,
    SnapshotRefused,
    Term,
    TermEntry,
    TermList,
    mail_entry_key,
    path_entry_key,
)
from schemas.values import codec
from schemas.values.identity import ContentHash, KeyId, NodePath, TreeId, mail_key
from tests.conformance.forms import Case, Json, as_json
from tests.conformance.signed import KEYS, NARROW, PINNED, ROOTS, SIGNER, TREE

ABOUT = (
    "A signed snapshot, the blobs of it that are here, and records that a node holds or is "
    "offered: what becomes of each, and which blobs the node needs."
)
TERM, OTHER, UNKNOWN = Term(b"Term0001"), Term(b"Term0002"), Term(b"Term0009")
HERE = NodePath.parse("/emea/s1")
NOW_MS, HOUR_MS = 1_800_000_000_000, 3_600_000
MAIL = [
    mail_entry_key(mail_key("edge.kubestellar.io/EdgePlacement", "wds", "", f"p{n}"))
    for n in range(300)
]
NODE = path_entry_key(HERE, mail_key("edge.kubestellar.io/SyncTarget", "inv", "", "s1"))
BELOW = path_entry_key(HERE.child("a"), mail_key("leafcast.io/Node", TREE, "", "/emea/s1/a"))
BESIDE = path_entry_key(
    NodePath.parse("/emea/s10"), mail_key("edge.kubestellar.io/SyncTarget", "inv", "", "s10")
)
GIVEN: dict[str, Json] = {
    "tree": TREE,
    "roots": PINNED,
    "keys": KEYS,
    "path": str(HERE),
    "now_ms": NOW_MS,
    "has_memory": True,
    "held": [],
    "offered": [],
}
KNOWN = (TermEntry(TERM, None), TermEntry(OTHER, 500))


def record(tree: SnapshotTree, terms: bytes, **changes: Any) -> SnapshotRecord:
    fields: dict[str, Any] = {
        "generation": 1000,
        "term": TERM,
        "time_ms": NOW_MS - HOUR_MS,
        "expires_ms": NOW_MS + 23 * HOUR_MS,
        "settled": 900,
        "terms": BlobPointer.to(blobs.store(snapshots.SNAPSHOT_TERMS, terms).reference),
        "root": tree.root,
        "height": tree.height,
        "count": tree.count,
    }
    return SnapshotRecord(**(fields | changes))


def shown(
    listed: dict[EntryKey, int],
    terms: tuple[TermEntry, ...] = KNOWN,
    signer: Signer = SIGNER,
    **changes: Any,
) -> dict[str, Json]:
    """A signed snapshot that lists these, and its blobs in clear."""
    tree = SnapshotTree.empty().changed(dict(listed))
    known = snapshots.encode(TermList(terms))
    plain = {each.reference.address: blobs.open_stored(each) for each in tree.blobs()}
    plain[blobs.store(snapshots.SNAPSHOT_TERMS, known).reference.address] = known
    return _message(record(tree, known, **changes), plain, signer)


def _message(
    said: SnapshotRecord, plain: dict[Any, bytes], signer: Signer = SIGNER
) -> dict[str, Json]:
    return {
        "message": signer.seal("snapshot", snapshots.encode(said)).encode().hex(),
        "blobs": {address: value.hex() for address, value in sorted(plain.items())},
    }


def grown(*nodes: tuple[str, object], height: int, terms: bytes | None = None) -> dict[str, Json]:
    """A snapshot over nodes that were made by hand; the last one is the root."""
    known = snapshots.encode(TermList(KNOWN)) if terms is None else terms
    plain = {}
    for kind, node in nodes:
        data = node if isinstance(node, bytes) else snapshots.encode(node)  # type: ignore[arg-type]
        pointer = pointer_of(kind, data)
        plain[pointer.address.hex()] = data
    plain[codec.address(snapshots.SNAPSHOT_TERMS, known)] = known
    said = record(SnapshotTree.empty(), known, root=pointer, height=height, count=2)
    return _message(said, plain)


def pointer_of(kind: str, data: bytes) -> BlobPointer:
    return BlobPointer(bytes.fromhex(codec.address(kind, data)), len(data))


def holds(key: EntryKey, generation: int, term: Term = TERM) -> Json:
    return {"key": key.hex(), "generation": generation, "term": term.hex()}


def offers(key: EntryKey, generation: int) -> Json:
    return {"key": key.hex(), "generation": generation}


def _of_one(name: str, rule: str, made: dict[str, Json], held: Json, verdict: str) -> Case:
    return Case(name, rule, {**made, "held": [held]}, {"held": [verdict]})


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [
        *_believed(),
        *_standings(),
        *_other_standings(),
        *_offers(),
        *_orphans(),
        *_trees(),
        *_grown_trees(),
        *_ages(),
    ]


def _believed() -> list[Case]:
    good = shown({MAIL[0]: 7})
    signed = decode_envelope(bytes.fromhex(good["message"]))
    forged = Envelope("snapshot", signed.key_id, signed.payload, bytes(64))
    tree = SnapshotTree.empty()
    terms = snapshots.encode(TermList(KNOWN))
    plain = codec.unpack(snapshots.encode(record(tree, terms)), lists=True)
    longer = SIGNER.seal("snapshot", codec.pack([*plain, "later", 1])).encode().hex()
    former = SIGNER.seal("snapshot", codec.pack(plain[:9])).encode().hex()
    short = SIGNER.seal("snapshot", codec.pack(plain[:6])).encode().hex()
    bad_term = SIGNER.seal("snapshot", codec.pack([plain[0], b"term", *plain[2:]])).encode().hex()
    return [
        Case("a snapshot that a key in force signed", "V1", good, {"verdict": "believed"}),
        Case(
            "with fields of a later version",
            "E4",
            {"message": longer, "blobs": {}},
            {"verdict": "believed"},
        ),
        Case(
            "without its last field",
            "E4",
            {"message": former, "blobs": {}},
            {"verdict": "believed"},
        ),
        Case("six fields", "E4", {"message": short, "blobs": {}}, {"verdict": "refused"}),
        Case(
            "a term of four bytes", "V1", {"message": bad_term, "blobs": {}}, {"verdict": "refused"}
        ),
        Case(
            "settled above its own generation",
            "V1",
            shown({}, settled=1001),
            {"verdict": "refused"},
        ),
        Case("seventeen levels", "V9", shown({}, height=17), {"verdict": "refused"}),
        Case(
            "a signature of zeros",
            "E2",
            {"message": forged.encode().hex(), "blobs": {}},
            {"verdict": "refused"},
        ),
        Case(
            "a key whose grant has a path", "E2", shown({}, signer=NARROW), {"verdict": "refused"}
        ),
        Case("a root key", "E2", shown({}, signer=ROOTS[0]), {"verdict": "refused"}),
    ]


def _standings() -> list[Case]:
    made = shown({MAIL[0]: 7, MAIL[1]: 8, NODE: 9})
    return [
        _of_one("listed with its generation", "V1", made, holds(MAIL[0], 7), "in force"),
        _of_one("listed, whatever its term", "V1", made, holds(MAIL[0], 7, UNKNOWN), "in force"),
        _of_one("above the snapshot", "V1", made, holds(MAIL[5], 1001), "in force"),
        _of_one(
            "of the snapshot's generation, not listed", "V1", made, holds(MAIL[5], 1000), "dropped"
        ),
        _of_one("listed with a higher generation", "V7", made, holds(MAIL[1], 7), "outdated"),
        _of_one(
            "listed with a lower generation, its term known",
            "V1",
            made,
            holds(MAIL[0], 500, OTHER),
            "outdated",
        ),
        _of_one(
            "listed with a lower generation, its term not known so far",
            "V2",
            made,
            holds(MAIL[0], 501, OTHER),
            "orphaned",
        ),
        _of_one("not listed, its term known whole", "V6", made, holds(MAIL[5], 999), "dropped"),
        _of_one(
            "not listed, its term known up to it", "V6", made, holds(MAIL[5], 500, OTHER), "dropped"
        ),
        _of_one(
            "not listed, its term not known so far",
            "C9",
            made,
            holds(MAIL[5], 501, OTHER),
            "orphaned",
        ),
    ]


def _other_standings() -> list[Case]:
    made = shown({MAIL[0]: 7, MAIL[1]: 8, NODE: 9})
    without_terms = {
        **made,
        "blobs": {
            at: text
            for at, text in made["blobs"].items()
            if at != codec.address(snapshots.SNAPSHOT_TERMS, snapshots.encode(TermList(KNOWN)))
        },
    }
    return [
        _of_one(
            "not listed, its term not known", "C9", made, holds(MAIL[5], 5, UNKNOWN), "orphaned"
        ),
        _of_one(
            "not listed, and the list of terms is not here",
            "V6",
            without_terms,
            holds(MAIL[5], 5),
            "unread",
        ),
        _of_one(
            "listed, and the list of terms is not here",
            "V6",
            without_terms,
            holds(MAIL[0], 7),
            "in force",
        ),
        _of_one("a profile at its path", "V9", made, holds(NODE, 9), "in force"),
        _of_one("a profile below that is not listed", "V9", made, holds(BELOW, 9), "dropped"),
        Case(
            "several at once",
            "V6",
            {
                **made,
                "held": [
                    holds(MAIL[0], 7),
                    holds(MAIL[1], 9),
                    holds(MAIL[2], 1),
                    holds(BESIDE, 3, UNKNOWN),
                ],
            },
            {"held": ["in force", "outdated", "dropped", "orphaned"]},
        ),
        _of_one(
            "nothing of the tree is here", "V6", {**made, "blobs": {}}, holds(MAIL[0], 7), "unread"
        ),
        _of_one("of an empty tree", "V6", shown({}), holds(MAIL[0], 7), "dropped"),
    ]


def _offers() -> list[Case]:
    made = shown({MAIL[0]: 7})
    listed = [
        ("offered with the generation listed", offers(MAIL[0], 7), "taken"),
        ("offered with a lower one", offers(MAIL[0], 6), "superseded"),
        ("offered with a higher one, not above the snapshot", offers(MAIL[0], 1000), "superseded"),
        ("offered above the snapshot", offers(MAIL[0], 1001), "taken"),
        ("offered and not listed", offers(MAIL[1], 7), "superseded"),
    ]
    found = [
        Case(name, "V2", {**made, "offered": [each]}, {"offered": [it]})
        for name, each, it in listed
    ]
    hidden = {**made, "blobs": {}, "offered": [offers(MAIL[0], 7), offers(MAIL[0], 1001)]}
    return [
        *found,
        Case("offered while the tree is not here", "V2", hidden, {"offered": ["unread", "taken"]}),
    ]


def _orphans() -> list[Case]:
    made = shown({MAIL[0]: 7})
    old, young = [holds(MAIL[0], 6, UNKNOWN)], [holds(MAIL[0], 501, OTHER)]
    listed = {**made, "offered": [offers(MAIL[0], 7)]}
    above = {**made, "held": young, "offered": [offers(MAIL[0], 1001)]}
    unread = {**listed, "held": young, "blobs": {}}
    reigns = [
        shown({}, generation=at, settled=0, reign=reign) for at, reign in ((9, 0), (7, 1), (8, 0))
    ]
    return [
        Case(
            "what is listed, over an older one of any term",
            "V2",
            {**listed, "held": old},
            {"offered": ["taken"]},
        ),
        Case(
            "what is listed, below an orphan",
            "V2",
            {**listed, "held": young},
            {"offered": ["listed below"]},
        ),
        Case("above the snapshot, over an orphan", "V2", above, {"offered": ["taken"]}),
        Case("what is listed, while nothing can be read", "V2", unread, {"offered": ["unread"]}),
        Case(
            "of two reigns the higher one is newer",
            "V1",
            {"ranked": [it["message"] for it in reigns]},
            {"newest": 1},
        ),
        Case(
            "of one reign the higher generation is newer",
            "V1",
            {"ranked": [it["message"] for it in reigns[::2]]},
            {"newest": 0},
        ),
    ]


def _trees() -> list[Case]:
    many = dict.fromkeys(MAIL, 7) | {NODE: 9, BELOW: 9, BESIDE: 9}
    large = shown(many)
    first, second = sorted(MAIL[:2])
    leaf = snapshots.encode(LeafNode((Entry(first, 7), Entry(second, 8))))
    turned = snapshots.encode(LeafNode((Entry(second, 8), Entry(first, 7))))
    twice = snapshots.encode(LeafNode((Entry(first, 7), Entry(first, 8))))
    long = snapshots.encode(LeafNode(tuple(Entry(key, 7) for key in sorted(MAIL)[:129])))
    inner = InnerNode(1, (Child(first, *_pair(pointer_of("sleaf", leaf))),))
    misnamed = InnerNode(1, (Child(second, *_pair(pointer_of("sleaf", leaf))),))
    held = {"held": [holds(first, 7), holds(second, 8)]}
    return [
        Case(
            "many leaves: only those that are needed are read",
            "V9",
            {**large, "held": [holds(MAIL[7], 7)]},
            {"held": ["in force"]},
        ),
        Case(
            "a leaf under an inner node",
            "V9",
            {**grown(("sleaf", leaf), ("sinner", inner), height=1), **held},
            {"held": ["in force", "in force"]},
        ),
        Case(
            "a leaf that is not ascending",
            "V9",
            {**grown(("sleaf", turned), height=0), **held},
            {"held": ["unread", "unread"]},
        ),
        Case(
            "a leaf that names a key twice",
            "V9",
            {**grown(("sleaf", twice), height=0), **held},
            {"held": ["unread", "unread"]},
        ),
        Case(
            "a leaf of 129 entries",
            "V9",
            {**grown(("sleaf", long), height=0), **held},
            {"held": ["unread", "unread"]},
        ),
        Case(
            "a leaf that begins with another key than was named",
            "V9",
            {**grown(("sleaf", leaf), ("sinner", misnamed), height=1), **held},
            {"held": ["unread", "unread"]},
        ),
    ]


def _grown_trees() -> list[Case]:
    first, second = sorted(MAIL[:2])
    leaf = snapshots.encode(LeafNode((Entry(first, 7), Entry(second, 8))))
    child = Child(first, *_pair(pointer_of("sleaf", leaf)))
    InnerNode(1, (child,))
    high = InnerNode(2, (child,))
    left = snapshots.encode(LeafNode((Entry(first, 7), Entry(second, 8))))
    right = snapshots.encode(LeafNode((Entry(second, 8),)))
    crossing = InnerNode(
        1,
        (
            Child(first, *_pair(pointer_of("sleaf", left))),
            Child(second, *_pair(pointer_of("sleaf", right))),
        ),
    )
    unsorted = snapshots.encode(TermList((KNOWN[1], KNOWN[0])))
    held = {"held": [holds(first, 7), holds(second, 8)]}
    return [
        Case(
            "a leaf with a key of the next one",
            "V9",
            {**grown(("sleaf", left), ("sleaf", right), ("sinner", crossing), height=1), **held},
            {"held": ["unread", "in force"]},
        ),
        Case(
            "an inner node of another height",
            "V9",
            {**grown(("sleaf", leaf), ("sinner", high), height=1), **held},
            {"held": ["unread", "unread"]},
        ),
        Case(
            "terms that are not ascending",
            "V9",
            {**grown(("sleaf", leaf), height=0, terms=unsorted), "held": [holds(MAIL[9], 5)]},
            {"held": ["unread"]},
        ),
    ]


def _pair(pointer: BlobPointer) -> tuple[bytes, int]:
    return pointer.address, pointer.size


def _ages() -> list[Case]:
    made = shown({MAIL[0]: 7})
    old = {**made, "now_ms": NOW_MS + 23 * HOUR_MS}
    return [
        Case(
            "a node without memory, before it expires",
            "V4",
            {**old, "now_ms": old["now_ms"] - 1, "has_memory": False},
            {"takes_new": True},
        ),
        Case(
            "a node without memory, once it expired",
            "V4",
            {**old, "has_memory": False},
            {"takes_new": False},
        ),
        Case("a node with memory, once it expired", "V4", old, {"takes_new": True}),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    if "ranked" in given:
        payloads = [decode_envelope(bytes.fromhex(it)).payload for it in given["ranked"]]
        ranks = [snapshots.read_snapshot(payload).rank for payload in payloads]
        return {"newest": ranks.index(max(ranks))}
    tree, path = TreeId(given["tree"]), NodePath.parse(given["path"])
    pinned = {KeyId(key): bytes.fromhex(text) for key, text in given["roots"]["keys"].items()}
    trust = Trust(tree, Roots(pinned))
    book = RecordBook(path)
    judge = SnapshotJudge(book.by_key, lambda: SnapshotInterest((), path), path)
    acceptance = Acceptance(path, tree, trust, book, judge)
    keys = acceptance.recall(bytes.fromhex(given["keys"]), ())
    assert isinstance(keys, AcceptedRecord)
    assert isinstance(keys.record, KeysRecord)
    trust.adopt(keys.record)
    verified = acceptance.snapshot(bytes.fromhex(given["message"]))
    if isinstance(verified, RecordRefusal):
        return {"verdict": "refused"}
    said = verified.record
    held = [
        HeldRecord(
            EntryKey(bytes.fromhex(it["key"])), it["generation"], Term(bytes.fromhex(it["term"]))
        )
        for it in given["held"]
    ]
    instead = {each.key: each for each in held}
    offered = [(EntryKey(bytes.fromhex(it["key"])), it["generation"]) for it in given["offered"]]
    keys_needed = [each.key for each in held] + [key for key, _ in offered]
    nodes, broken, needed = _read(said, SnapshotInterest(keys_needed, path), given["blobs"])
    view = SnapshotView(said, nodes)
    return {
        "verdict": "believed",
        "payload": as_json(codec.unpack(snapshots.encode(said))),
        "needs": sorted(needed),
        "broken": sorted(broken),
        "held": [_word(standing(it, view.generation_of(it.key), view)) for it in held],
        "offered": [_word(admit(key, at, view, instead.get(key))) for key, at in offered],
        "takes_new": admits_new(said, given["now_ms"], with_memory=given["has_memory"]),
    }


def _read(
    said: SnapshotRecord, interest: SnapshotInterest, blobs_here: Json
) -> tuple[dict[ContentHash, bytes], set[str], set[str]]:
    """Read what is here of the blobs that are needed; those that break the form are not."""
    nodes: dict[ContentHash, bytes] = {}
    broken, needed = set[str](), set[str]()
    reading = SnapshotReading(said, interest, nodes)
    while True:
        missing = [each.address for each in reading.missing()]
        needed |= set(missing)
        here = [at for at in missing if at in blobs_here and at not in broken]
        if not here:
            return nodes, broken, needed
        for address in here:
            try:
                reading.take(address, bytes.fromhex(blobs_here[address]))
            except SnapshotRefused:
                broken.add(address)


def _word(verdict: Any) -> str:
    return str(verdict.name).lower().replace("_", " ")
