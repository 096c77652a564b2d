"""The wire as it is pinned: a change of any of these bytes is a change of the protocol."""

import hashlib

import msgspec
import pytest

from schemas.content import blobs, carried
from schemas.content import manifest as manifests
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry
from schemas.content.sealing import SealingKey, mark, marking_key, placement_key
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records import records, snapshots
from schemas.records.asks import AnswerPart, AskFault
from schemas.records.records import (
    Alternative,
    AskRecord,
    DeltaBody,
    DeltaHead,
    Dependency,
    Gate,
    KeyGrant,
    KeysRecord,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
    RootKey,
    Source,
)
from schemas.records.roots import CoSignature, KeysBody
from schemas.records.signing import Envelope, RecordKind, Signer
from schemas.records.windows import Window
from schemas.reports import link, reports
from schemas.reports.running import RunningCount, RunningFault
from schemas.reports.upsync import UpsyncClause
from schemas.values import codec
from schemas.values.identity import ContentHash, DestinationId, KeyId, NodePath, TreeId
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode, encode, replace

SIGNER = Signer(TreeId("a" * 26), KeyId("b" * 26), bytes(range(32)))
OBJECT = {
    "kind": "ConfigMap",
    "data": {"ü": "1", "a": None},
    "n": [1.0, -0.0, 0.5, -1, 2**40, True],
}
PROD = LabelSelector((Requirement("env", "In", ("prod",)),))
PLACEMENT = Source("edge.kubestellar.io/EdgePlacement", "wds", "", "shop")
KEY = PLACEMENT.key
SEALING_KEY = SealingKey(SIGNER.tree, placement_key(b"m" * 32, KEY, 0))
MARK = mark(marking_key(b"m" * 32), ContentHash("0" * 64))
CLAUSE = UpsyncClause("", ("configmaps",), (), ())
MANIFEST = Reference("manifest", codec.address("manifest", b"m"), 1)
CONTENT = (MANIFEST,)
BODY = DeltaBody(
    CONTENT,
    (
        Gate(MANIFEST, below=500, salt="s"),
        Gate(None, selector=PROD),
        Gate(
            MANIFEST,
            name="7.0",
            path=NodePath.parse("/emea"),
            windows=(Window("0 2 * * 2-5", 10800, "Europe/Berlin"),),
        ),
        Gate(MANIFEST),
    ),
    after=(Dependency("platform", 4, (Alternative("location", PROD),)),),
)
HASHED = hashlib.sha256(BODY.encode()).digest()
TERM = "5465726d5465726d"
WHO = (Alternative("location", PROD, "inv"),)
LABELS = {"env": "prod"}
SYNC_TARGET = Source("edge.kubestellar.io/SyncTarget", "inv", "", "t")
LOCATION = Source("edge.kubestellar.io/Location", "inv", "", "l")
HERE = NodePath.parse("/emea/s1")
LOCATION_RECORD = LocationRecord(LOCATION, 7, TERM, "", LABELS, {}, PROD)
RECORDS: dict[RecordKind, Record] = {
    "delta": DeltaHead(PLACEMENT, 7, TERM, "tr", HASHED, WHO, 5, 3),
    "profile": Profile(
        SYNC_TARGET, 7, TERM, "", DestinationId("inv-mb-u"), HERE, LABELS, {}, {"p": "q"}
    ),
    "location": LOCATION_RECORD,
    "node": NodeRecord(Source("leafcast.io/Node", "", "", "/emea/s1"), 7, TERM, "", HERE, "U"),
    "keys": KeysRecord(
        Source("leafcast.io/Keys", "", "", ""),
        7,
        TERM,
        "",
        (KeyGrant(KeyId("b" * 26), SIGNER.public_key, ("delta",)),),
        (RootKey(KeyId("r" * 26), SIGNER.public_key),),
        1,
        2,
    ),
    "ask": AskRecord(
        Source("leafcast.io/Ask", "", "", "c" * 26),
        7,
        "",
        "",
        "get",
        HERE,
        9,
        {"b": "2", "a": "1"},
    ),
}
FAULT = AskFault("Offline", "why", "/emea", 3)
SUMMARY = reports.Summary(
    {"synced": 2},
    {"healthy": 2},
    {"older": 2},
    (reports.ExceptionSample(1, "configmaps/shop/a", "Why", 2, "/emea/s1"),),
    1000,
    {"7.0/synced/healthy": 2},
)
RESULT = reports.ObjectResult(ObjectKey("", "configmaps", "shop", "a"), 1, "inv-mb-u", b"\x80")
SNAPSHOT = snapshots.SnapshotRecord(
    9,
    snapshots.Term(bytes.fromhex(TERM)),
    1000,
    86_401_000,
    8,
    snapshots.BlobPointer(bytes(32), 3),
    snapshots.BlobPointer(bytes(range(32)), 70),
    1,
    2,
)
MAIL, AT_PATH = snapshots.mail_entry_key(KEY), snapshots.path_entry_key(HERE, SYNC_TARGET.key)
NODES = {
    "snapshot payload": SNAPSHOT,
    "terms": snapshots.TermList((snapshots.TermEntry(SNAPSHOT.term, None),)),
    "leaf": snapshots.LeafNode((snapshots.Entry(MAIL, 7), snapshots.Entry(AT_PATH, 8))),
    "inner": snapshots.InnerNode(1, (snapshots.Child(MAIL, bytes(32), 70),)),
}
HELLO = link.Hello(
    run="r",
    home="h",
    parent_run="inc",
    sequence=12,
    digest=bytes(16),
    snapshot=9,
    shown=b"signed",
    wants=(KEY,),
    levels=1,
    refused=2,
    orphaned=3,
    farewell=True,
    copies=2,
    through=12,
    reports=bytes(range(16)),
    newest=10,
    newest_reign=1,
    held=bytes(range(16, 32)),
    running=(RunningCount("0.1.0", "0.2.0", 1, "healthy", 3),),
    faults=(RunningFault("/emea/s1", "0.2.0", "refused", "why"),),
    wire=3,
)
UNSIGNED = {
    "report": reports.Report(KEY, 0, "r", 4, 7, False, 1, SUMMARY),
    "part": reports.ReportPart(KEY, 1, "r", 4, 7, (RESULT,)),
    "hello": HELLO,
    "welcome": link.Welcome("inc", "r", 12, b"signed", link.Repair.REREAD, ("tls://a:7422",)),
    "greeting": link.greeting("inc"),
    "progress": link.Progress("r", "inc", 12, bytes(16)),
    "cursor": link.Cursor("inc", 12, 10, 6, 9, has_memory=True),
    "done": reports.Done(RESULT.key, "uid", "ab", (KEY,), made=True, order=12),
    "empty report": reports.Report(KEY, 0, "r", 4, 7, True, 0, reports.Summary()),
    "keys body": KeysBody((CoSignature(KeyId("r" * 26), bytes(64)),), (b"message",)),
    "large numbers": reports.ObjectResult(RESULT.key, 2**63 - 1),
    "named state": replace(RESULT, content=bytes(range(16)), generation=7),
    "answer": AnswerPart("c" * 26, 1, last=True, data=b"\x80"),
    "no answer": AnswerPart("c" * 26, 1, last=True, data=b"", fault=FAULT),
}


def entry(name: str) -> ManifestEntry:
    address = codec.address("object", name.encode())
    return ManifestEntry("", "configmaps", "shop", name, address, 1, "wds", 3, 1, 12)


GOLDEN: dict[str, str] = {
    "canonical": (
        "83a46461746182a161c0a2c3bca131a46b696e64a9436f6e6669674d6170a16e960100cb3fe00000"
        "00000000ffcf0000010000000000c3"
    ),
    "public key": "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
    "mail key": "icjfmpdk161ve72vo87nkvsm5qs2sc57",
    "part key": "hg7riigpdrrfubk2q0hk5s9sikppkaeu",
    "bucket": "4086",
    "body": (
        "959193a86d616e6966657374d9406230306138313835333566333035613064636138346433336462"
        "32626538333730346537383438386535613361396330326461363836656265663434613361350194"
        "9893a86d616e6966657374d940623030613831383533356633303561306463613834643333646232"
        "6265383337303465373834383865356133613963303264613638366562656634346133613501cd01"
        "f4a173aa73796e63746172676574c0a0a12f9098c0cd2710a0aa73796e637461726765749193a365"
        "6e76a2496e91a470726f64a0a12f909893a86d616e6966657374d940623030613831383533356633"
        "30356130646361383464333364623262653833373034653738343838653561336139633032646136"
        "38366562656634346133613501cd2710a0aa73796e63746172676574c0a3372e30a52f656d656191"
        "93ab302032202a202a20322d35cd2a30ad4575726f70652f4265726c696e9893a86d616e69666573"
        "74d94062303061383138353335663330356130646361383464333364623262653833373034653738"
        "34383865356133613963303264613638366562656634346133613501cd2710a0aa73796e63746172"
        "676574c0a0a12f9090c4009193a8706c6174666f726d049193a86c6f636174696f6e9193a3656e76"
        "a2496e91a470726f64a0"
    ),
    "delta payload": (
        "9894d921656467652e6b7562657374656c6c61722e696f2f45646765506c6163656d656e74a37764"
        "73a0a473686f7007b035343635373236643534363537323664a27472c4204f45c01a1bf293728325"
        "2bee9c3fff63c26153d1d49c4d6fd338ad882ce26ce49193a86c6f636174696f6e9193a3656e76a2"
        "496e91a470726f64a3696e760503"
    ),
    "delta signature": (
        "68cfedf9b3e4f58f76dc42ab18653867f889cc92e5835cc351c21ea96673b00f5e875afc2d8c8247"
        "369afcfb847c7c88aa37567ed4acc7fa62607ae603c03a04"
    ),
    "delta message": "7a606846b1b273c67986a5a3a23fae12397b3f93f00fb6a22c2965bf586f801d 730",
    "delta term": "de0098646e8085e26ece212292446528",
    "profile payload": (
        "9b94be656467652e6b7562657374656c6c61722e696f2f53796e63546172676574a3696e76a0a174"
        "07b035343635373236643534363537323664a0a8696e762d6d622d75a82f656d65612f733181a365"
        "6e76a470726f648081a170a171c400c400"
    ),
    "profile signature": (
        "10508e947a84228beaad96bd3e3bc1e2318f79e088db2d45fdec391e94f588b65655f05b0b78e563"
        "6aba0af626097a0445d027ea41e98e0bff4f5fe7b017f003"
    ),
    "profile message": "07969d59f31c00ce4c8e1f772df39b25bdcbda8ef240ac8f0509303909e5f341 203",
    "profile term": "2e3a72fcdb80d35841c0c8b2f316053c",
    "location body": "9281a3656e76a470726f6480",
    "location payload": (
        "9694bc656467652e6b7562657374656c6c61722e696f2f4c6f636174696f6ea3696e76a0a16c07b0"
        "35343635373236643534363537323664a0c4203ba3e04b8b3922912de389c79d451d249bf1d8a290"
        "1269d7c21f7074896474439193a3656e76a2496e91a470726f64"
    ),
    "location signature": (
        "14eae3895c90dd7a39fa7bee2e00a622b4c1e524baa2289fe172dca008551f44ee45f604ae4632d4"
        "1744faadcdf369a4e97a92e1c3e1b183eb22f97e2f5d170a"
    ),
    "location message": "81b4ffc7fc0f57ff050d92a8dda99938cefec186dcce54f0bb78260ac708224a 226",
    "location term": "128658340b73a70980c0f8021343f9a7",
    "node payload": (
        "9794b06c656166636173742e696f2f4e6f6465a0a0a82f656d65612f733107b03534363537323664"
        "3534363537323664a0a82f656d65612f7331a15500"
    ),
    "node signature": (
        "9da889955f8947c681e7c7279e530120d814b3c6df032fd22ccf93637f160df815a74f1349c30660"
        "d926ee35e85df465d598b0f5d54bebc770fdb5a8f94a230b"
    ),
    "node message": "9fb9d1ffda5affa478884862c6fd35bcff4c007a0faca0d684dd4efa97291062 164",
    "node term": "19ace8445e93c2bcca13bb60621e6cda",
    "keys payload": (
        "9894b06c656166636173742e696f2f4b657973a0a0a007b035343635373236643534363537323664"
        "a09198ba6262626262626262626262626262626262626262626262626262c42003a107bff3ce10be"
        "1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b891a564656c7461a12f909000cf7fffff"
        "ffffffffff9192ba7272727272727272727272727272727272727272727272727272c42003a107bf"
        "f3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b80102"
    ),
    "keys signature": (
        "2b952249c17c4888ea5f9e4ca89d36d7bb6d9ffb3a9dd928eb88d6ec00d884818c16004819589226"
        "85fa3d626e95379da6bb5401941a54a499e3a33682daaf05"
    ),
    "keys message": "456e226874624891203fb4548b76750c9e6106b4c4c35208f05d79a844fb3a56 293",
    "keys term": "95f6527bcb031cbb77682594fedda8f7",
    "ask payload": (
        "9994af6c656166636173742e696f2f41736ba0a0ba63636363636363636363636363636363636363"
        "6363636363636307a0a0a3676574a82f656d65612f73310982a161a131a162a132c400"
    ),
    "ask signature": (
        "e433746dd0defa641b1a91a6dac2e109ed9b2ef2564afc71632f561e5d511b3a825643e094d94be8"
        "cc6c2a87ee0cc28ff12536b18c9e0edf0e5045c9273ec802"
    ),
    "ask message": "f3d840cb79eff45ba810f471d05e848bd6eac3fc5cbcb50f32373f393b2b4ca7 177",
    "ask term": "065483556eff5042f17c7f83272830a9",
    "report": (
        "9ad92069636a666d70646b31363176653732766f38376e6b76736d357173327363353700a1720407"
        "c2019a81a673796e6365640281a76865616c7468790281a56f6c64657202919501b1636f6e666967"
        "6d6170732f73686f702f61a357687902a82f656d65612f7331cd03e881b2372e302f73796e636564"
        "2f6865616c74687902009000909000"
    ),
    "part": (
        "97d92069636a666d70646b31363176653732766f38376e6b76736d357173327363353701a1720407"
        "919694a0aa636f6e6669676d617073a473686f70a16101a8696e762d6d622d75c40180c4000090"
    ),
    "hello": (
        "dc0015a172a168a3696e630cc4100000000000000000000000000000000009c4067369676e656491"
        "d92069636a666d70646b31363176653732766f38376e6b76736d3571733273633537010203c3020c"
        "c410000102030405060708090a0b0c0d0e0f0a01c410101112131415161718191a1b1c1d1e1f9195"
        "a5302e312e30a5302e322e3001a76865616c746879039194a82f656d65612f7331a5302e322e30a7"
        "72656675736564a377687903"
    ),
    "welcome": "96a3696e63a1720cc4067369676e6564a47265616491ac746c733a2f2f613a37343232",
    "greeting": "96a3696e63a000c400a46e6f6e6590",
    "progress": "96a172a3696e630cc41000000000000000000000000000000000c40000",
    "cursor": "98a3696e630c0a0609c30000",
    "done": (
        "dc001294a0aa636f6e6669676d617073a473686f70a161a3756964a2616291d92069636a666d7064"
        "6b31363176653732766f38376e6b76736d3571733273633537c30ca0c400c2c2a0a0c2c0c0c0c0c400"
    ),
    "empty report": (
        "9ad92069636a666d70646b31363176653732766f38376e6b76736d357173327363353700a1720407"
        "c3009a808080900080009000909000"
    ),
    "keys body": (
        "929192ba7272727272727272727272727272727272727272727272727272c4400000000000000000"
        "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000091c4076d657373616765"
    ),
    "large numbers": ("9694a0aa636f6e6669676d617073a473686f70a161cf7fffffffffffffffa0c0c40000"),
    "named state": (
        "9694a0aa636f6e6669676d617073a473686f70a16101a8696e762d6d622d75c40180c41000010203"
        "0405060708090a0b0c0d0e0f07"
    ),
    "answer": "95ba636363636363636363636363636363636363636363636363636301c3c40180c0",
    "no answer": (
        "95ba636363636363636363636363636363636363636363636363636301c3c40094a74f66666c696e"
        "65a3776879a52f656d656103"
    ),
    "object address": "e8bb139c8996a77d35e661195b51f2e765f0ce2d5a757eef778e56990ed55496",
    "object form": "0",
    "program address": "d45d873514c7abe4e011590b2e3cff63f416c4f8bc0052fb9ef6cf98b796e4b3",
    "program form": "1",
    "manifest": "ad666536e697c89be588a809979ad9a5f9ae41e3510b12b305fb0576c2702162",
    "manifest of one": "62a91b2ac775013fb9236efec9f55c0d52d5e5a134aaa94a2734d764802f0a0f",
    "manifest chunks": "dbc44ea6 5804124e",
    "sealed manifest": "c90e17cd d565efa8",
    "entry of a known source object": (
        "9201919ea0aa636f6e6669676d617073a473686f70a161d940303463613663383535623964363066"
        "63396465363033656631663131353537646333623639353261363239633263613261613165303034"
        "64303738663961386601a377647303010ca0c0ce6553f100a530612d3162"
    ),
    "sealed entry of one": "edad193a 93b5c054",
    "unsaid fields": "98c8865d 49b5ea2b",
    "unsaid fields, sealed": "963ce0fb afa8abfc",
    "snapshot payload": (
        "9a09c4085465726d5465726dcd03e8ce05265fe80892c42000000000000000000000000000000000"
        "000000000000000000000000000000000392c420000102030405060708090a0b0c0d0e0f10111213"
        "1415161718191a1b1c1d1e1f46010200"
    ),
    "terms": "919192c4085465726d5465726dc0",
    "leaf": (
        "919292c415009326fb65b40983f71c5fc20f7a7f962eb82e30a70792c41e01656d65610073310000"
        "618aff25a2be107901b61741497d33eca8eb726708"
    ),
    "inner": (
        "92019193c415009326fb65b40983f71c5fc20f7a7f962eb82e30a7c4200000000000000000000000"
        "00000000000000000000000000000000000000000046"
    ),
    "carrying": ("c4200000000000000000000000000000000000000000000000000000000000000000c4020078"),
}

FORMER: dict[str, str] = {
    "part": (
        "97d92069636a666d70646b31363176653732766f38376e6b76736d357173327363353701a1720407"
        "919494a0aa636f6e6669676d617073a473686f70a16101a8696e762d6d622d75c4018090"
    ),
    "large numbers": "9494a0aa636f6e6669676d617073a473686f70a161cf7fffffffffffffffa0c0",
    "report": (
        "99d92069636a666d70646b31363176653732766f38376e6b76736d357173327363353700a1720407"
        "c2019681a673796e6365640281a76865616c7468790281a56f6c64657202919501b1636f6e666967"
        "6d6170732f73686f702f61a357687902a82f656d65612f7331cd03e881b2372e302f73796e636564"
        "2f6865616c7468790290"
    ),
    "done": (
        "9a94a0aa636f6e6669676d617073a473686f70a161a3756964a2616291d92069636a666d70646b31"
        "363176653732766f38376e6b76736d3571733273633537c30ca0c400c2c2"
    ),
    "empty report": (
        "99d92069636a666d70646b31363176653732766f38376e6b76736d357173327363353700a1720407"
        "c3009680808090008090"
    ),
    "greeting": "95a3696e63a000c400a46e6f6e65",
    "cursor": "96a3696e630c0a0609c3",
}
"""What programs said of these before their last fields were added."""


def said() -> dict[str, str]:
    """Everything that is pinned, as text: short things whole, long ones by SHA-256 and length."""
    found = {
        "canonical": codec.canonical(OBJECT).hex(),
        "public key": SIGNER.public_key.hex(),
        "mail key": KEY,
        "part key": reports.part_key(KEY, 2),
        "bucket": str(records.bucket(DestinationId("inv-mb-u"), "salt")),
        "body": BODY.encode().hex(),
        "location body": LOCATION_RECORD.body.hex(),
    }
    for kind, record in RECORDS.items():
        envelope = _sealed(kind)
        found[f"{kind} payload"] = envelope.payload.hex()
        found[f"{kind} signature"] = envelope.signature.hex()
        found[f"{kind} message"] = brief(envelope.encode())
        found[f"{kind} term"] = (
            f"{records.slot_term(KEY, record.generation, envelope.payload_hash):032x}"
        )
    for name, report in UNSIGNED.items():
        found[name] = encode(report).hex()
    for kind, plain in (("object", codec.canonical(OBJECT)), ("program", b"x" * 2000)):
        stored = blobs.store(kind, plain)
        found[f"{kind} address"] = stored.reference.address
        found[f"{kind} form"] = str(stored.values[stored.reference.address][0])
    manifest = manifests.build_manifest(entry(f"n{at}") for at in range(3))
    found["manifest"] = manifest[0].reference.address
    found["manifest of one"] = manifests.build_manifest([entry("a")])[0].reference.address
    found["manifest chunks"] = " ".join(chunk.reference.address[:8] for chunk in manifest[1:])
    entries = [replace(entry(name), mark=MARK) for name in "ab"]
    sealed = manifests.build_manifest(entries, [CLAUSE], SEALING_KEY)
    found["sealed manifest"] = " ".join(it.reference.address[:8] for it in sealed)
    known = [replace(entry("a"), created_s=1_700_000_000, uid="0a-1b")]
    found["entry of a known source object"] = _chunk_bytes(manifests.build_manifest(known))
    marked = [replace(known[0], mark=MARK)]
    sealed = manifests.build_manifest(marked, [], SEALING_KEY)
    found["sealed entry of one"] = " ".join(it.reference.address[:8] for it in sealed)
    entries = [replace(entry("a"), unsaid=(1, 4, 300)), entry("b")]
    listed = manifests.build_manifest(entries)
    found["unsaid fields"] = " ".join(it.reference.address[:8] for it in listed)
    marked = [replace(each, mark=MARK) for each in entries]
    sealed = manifests.build_manifest(marked, [], SEALING_KEY)
    found["unsaid fields, sealed"] = " ".join(it.reference.address[:8] for it in sealed)
    for name, node in NODES.items():
        found[name] = snapshots.encode(node).hex()
    blob = (ContentHash("0" * 64), b"\0x")
    found["carrying"] = carried.with_carried(_sealed("node").encode(), [blob]).hex()[-76:]
    return found


def _chunk_bytes(manifest: list[blobs.StoredBlob]) -> str:
    _, chunk = manifest
    return blobs.open_value(chunk.reference, chunk.values[chunk.reference.address]).hex()


def _sealed(kind: RecordKind) -> Envelope:
    record = RECORDS[kind]
    body = BODY.encode() if kind == "delta" else records.body_of(record)
    return SIGNER.seal(kind, records.encode_payload(record), body)


def brief(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()} {len(data)}"


def test_nothing_is_pinned_that_is_not_said():
    assert said().keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_the_wire_is_what_it_was(name):
    assert said()[name] == GOLDEN[name]


@pytest.mark.parametrize("name", FORMER)
def test_what_was_said_before_a_field_was_added_is_read_as_without_it(name):
    record = UNSIGNED[name]
    assert decode(type(record), bytes.fromhex(FORMER[name])) == record


@pytest.mark.parametrize("name", [*UNSIGNED, *NODES])
def test_fields_that_a_reader_does_not_know_are_passed_over(name):
    record = UNSIGNED.get(name) or NODES[name]
    encoded = encode(record)
    fields = msgspec.msgpack.decode(encoded)
    longer = msgspec.msgpack.encode([*fields, "of a later release", [1], None])
    if name == "snapshot payload":
        assert snapshots.read_snapshot(longer) == record
    elif name in NODES:
        assert msgspec.msgpack.decode(longer, type=type(record)) == record
    else:
        assert decode(type(record), longer) == record


@pytest.mark.parametrize("kind", RECORDS)
def test_fields_of_a_record_that_a_reader_does_not_know_are_passed_over(kind):
    record, payload = RECORDS[kind], records.encode_payload(RECORDS[kind])
    longer = msgspec.msgpack.encode([*msgspec.msgpack.decode(payload), "of a later release"])
    body = BODY.encode() if kind == "delta" else records.body_of(record)
    assert records.decode_record(kind, longer, body) == records.decode_record(kind, payload, body)


def test_a_snapshot_without_a_reign_is_of_the_first():
    former = msgspec.msgpack.encode(msgspec.msgpack.decode(snapshots.encode(SNAPSHOT))[:-1])
    assert snapshots.read_snapshot(former) == SNAPSHOT


def test_a_hello_and_a_welcome_of_before_lack_their_last_fields_alone():
    for name, field in (("hello", {"wire": 2}), ("welcome", {"addresses": ()})):
        fields = msgspec.msgpack.decode(encode(UNSIGNED[name]))[:-1]
        read = decode(type(UNSIGNED[name]), msgspec.msgpack.encode(fields))
        assert read == replace(UNSIGNED[name], **field)


@pytest.mark.parametrize("addresses", [["a"] * 9, ["a" * 256]])
def test_a_welcome_names_few_short_addresses(addresses):
    fields = msgspec.msgpack.decode(encode(UNSIGNED["welcome"]))[:-1]
    with pytest.raises(RecordRefused, match="addresses"):
        decode(link.Welcome, msgspec.msgpack.encode([*fields, addresses]))
    assert link.told_addresses(["a" * 256, *"abcdefghij"]) == tuple("abcdefgh")


def test_a_blob_over_half_a_mebibyte_lies_in_parts():
    plain = b"".join(hashlib.sha256(bytes([at % 256, at // 256])).digest() for at in range(40_000))
    stored = blobs.store("object", plain)
    first, *parts = stored.values.items()
    assert first[0] == stored.reference.address == codec.address("object", plain)
    value = (b"\0" if len(plain) == sum(len(v) - 1 for _, v in parts) - 1 else b"\1", parts)
    joined = b"".join(part[1:] for _, part in parts)
    assert joined[:1] == value[0]
    assert first[1] == b"\2" + codec.pack([address for address, _ in parts])
    assert all(part[:1] == b"\0" and len(part) <= 512 * 1024 + 1 for _, part in parts)
    assert all(codec.address("part", part[1:]) == address for address, part in parts)
    assert blobs.open_value(stored.reference, first[1], dict(parts)) == plain
