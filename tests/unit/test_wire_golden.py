"""The wire as it is pinned: a change of any of these bytes is a change of the protocol."""

import hashlib

import pytest

from schemas import blobs, chunks, codec, records, reports
from schemas.asks import AnswerPart, AskFault
from schemas.blobs import Reference
from schemas.chunks import ManifestEntry
from schemas.identity import DestinationId, KeyId, NodePath, TreeId
from schemas.objects import ObjectKey
from schemas.records import (
    Alternative,
    AskRecord,
    DeltaBody,
    DeltaHead,
    Gate,
    IndexRecord,
    KeyGrant,
    KeysRecord,
    LocationRecord,
    NodeRecord,
    Profile,
    Source,
)
from schemas.selectors import LabelSelector, Requirement
from schemas.signing import Signer

SIGNER = Signer(TreeId("a" * 26), KeyId("b" * 26), bytes(range(32)))
OBJECT = {
    "kind": "ConfigMap",
    "data": {"ü": "1", "a": None},
    "n": [1.0, -0.0, 0.5, -1, 2**40, True],
}
PROD = LabelSelector((Requirement("env", "In", ("prod",)),))
PLACEMENT = Source("edge.kubestellar.io/EdgePlacement", "wds", "", "shop")
KEY = PLACEMENT.key
MANIFEST = Reference("manifest", codec.address("manifest", b"m"), 1)
BODY = DeltaBody((Gate(MANIFEST, below=500, salt="s"), Gate(None, selector=PROD), Gate(MANIFEST)))
HASHED = hashlib.sha256(BODY.encode()).digest()
WHO = (Alternative("location", PROD, "inv"),)
LABELS = {"env": "prod"}
SYNC_TARGET = Source("edge.kubestellar.io/SyncTarget", "inv", "", "t")
LOCATION = Source("edge.kubestellar.io/Location", "inv", "", "l")
HERE = NodePath.parse("/emea/s1")
RECORDS = {
    "delta": DeltaHead(PLACEMENT, 7, False, "tr", (MANIFEST,), HASHED, WHO, 5, 1),
    "profile": Profile(
        SYNC_TARGET, 7, False, "", (), DestinationId("inv-mb-u"), HERE, LABELS, {}, {"p": "q"}
    ),
    "location": LocationRecord(LOCATION, 7, False, "", (), LABELS, {}, PROD),
    "node": NodeRecord(Source("leafcast.io/Node", "", "", "/emea/s1"), 7, False, "", (), HERE, "U"),
    "index": IndexRecord(Source("leafcast.io/Index", "", "", ""), 7, False, "", (), 9, MANIFEST),
    "keys": KeysRecord(
        Source("leafcast.io/Keys", "", "", ""),
        7,
        False,
        "",
        (),
        (KeyGrant(KeyId("b" * 26), SIGNER.public_key, ("delta",)),),
    ),
    "ask": AskRecord(
        Source("leafcast.io/Ask", "", "", "c" * 26),
        7,
        False,
        "",
        (),
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
    complete=False,
    blocking=("/emea/s2",),
)
RESULT = reports.ObjectResult(ObjectKey("", "configmaps", "shop", "a"), 1, "inv-mb-u", b"\x80")
SPACES = {"inv": reports.SpaceLabels({"env": reports.KeyValues(("prod",), lacking=True)})}
ANY = reports.KeyValues(None, lacking=False)
UNSIGNED = {
    "report": reports.Report(KEY, 0, 3, 4, 7, "inc", 12, False, 1, SUMMARY),
    "part": reports.ReportPart(KEY, 1, 3, 4, 7, (RESULT,)),
    "labels": reports.LabelReport(3, 4, "inc", 12, SPACES),
    "heartbeat": reports.Heartbeat(
        3, "inc", 12, bytes(16), bytes(16), b"", 6, True, last_epoch=2, run="r", question=4
    ),
    "session": reports.SessionMessage("inc", 3, 12, 0, 6, "none", "r", 4),
    "done": reports.Done(RESULT.key, "uid", "ab", (KEY,), made=True, order=12),
    "cursor": reports.Cursor("inc", 12, 6, has_memory=True, unproven=("s1", "s2")),
    "swept": reports.Swept("inc", 12),
    "list part": reports.ListPart(3, 4, 0, (reports.Listed(KEY, 7),)),
    "any values": reports.LabelReport(
        3, 4, "inc", 12, {"b": reports.SpaceLabels({}), "a": reports.SpaceLabels({"env": ANY})}
    ),
    "empty report": reports.Report(KEY, 0, 3, 4, 7, "inc", 12, True, 1, reports.Summary()),
    "large numbers": reports.ObjectResult(RESULT.key, 2**63 - 1),
    "answer": AnswerPart("c" * 26, 1, last=True, data=b"\x80"),
    "no answer": AnswerPart("c" * 26, 1, last=True, data=b"", fault=FAULT),
}


def entry(name: str) -> ManifestEntry:
    address = codec.address("object", name.encode())
    return ManifestEntry("", "configmaps", "shop", name, address, 1, "wds", "uid", 3, 1, 12)


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
        "93939593a86d616e6966657374d94062303061383138353335663330356130646361383464333364"
        "62326265383337303465373834383865356133613963303264613638366562656634346133613501"
        "cd01f4a173aa73796e63746172676574c095c0cd2710a0aa73796e637461726765749193a3656e76"
        "a2496e91a470726f649593a86d616e6966657374d940623030613831383533356633303561306463"
        "61383464333364623262653833373034653738343838653561336139633032646136383665626566"
        "34346133613501cd2710a0aa73796e63746172676574c090c400"
    ),
    "delta payload": (
        "9994d921656467652e6b7562657374656c6c61722e696f2f45646765506c6163656d656e74a37764"
        "73a0a473686f7007c2a274729193a86d616e6966657374d940623030613831383533356633303561"
        "30646361383464333364623262653833373034653738343838653561336139633032646136383665"
        "62656634346133613501c420e97fb86fad44461fada9665846139a2153316ed142f3ff70f75eada3"
        "4733395c9193a86c6f636174696f6e9193a3656e76a2496e91a470726f64a3696e760501"
    ),
    "delta signature": (
        "5097177d14255db0643c0baa73542269a774c984e6c95c4680605555a256876238c12878d8692f7e"
        "184c99d84e8c63f32876b5082caaad147d5907afbefcd30d"
    ),
    "delta message": "a102f325072de762ee311a81b25c836472e7e764db680c73ad264888febf5868 527",
    "delta term": "48f269b3818bf2df1b0e484f38c42f97",
    "profile payload": (
        "9c94be656467652e6b7562657374656c6c61722e696f2f53796e63546172676574a3696e76a0a174"
        "07c2a090a8696e762d6d622d75a82f656d65612f733181a3656e76a470726f648081a170a171c400"
        "c400"
    ),
    "profile signature": (
        "80204d0303985e2c431a804d8b3b7c74e991aa952117db065d32b4c68cad5d23229813a81e71cb9f"
        "704cb79ce1124c1627b4ade60e2650b84c1fba0ba17f940d"
    ),
    "profile message": "29b60fd9c1ad5fcc3231742cf8135478e4042253551c50ba0e13b50d35cef639 188",
    "profile term": "26f24d22b6a4a0df5642b303ce9d3e9f",
    "location payload": (
        "9894bc656467652e6b7562657374656c6c61722e696f2f4c6f636174696f6ea3696e76a0a16c07c2"
        "a09081a3656e76a470726f64809193a3656e76a2496e91a470726f64"
    ),
    "location signature": (
        "05e89f2dc0494ab2ede5bc3ddc5a3d90bf4c909fa4e3ee4d196695f74846823b799ac88ca23774b9"
        "406df1035306a7b9b8e8102569ab04c32f20f64ad6597b0a"
    ),
    "location message": "e49bd4984153fdef9e9a62c7ba1c1573f38fa10c23ba930a84af94366e87a8b6 175",
    "location term": "9b30fe0109c3ad9ca22c6f5e30deba05",
    "node payload": (
        "9794b06c656166636173742e696f2f4e6f6465a0a0a82f656d65612f733107c2a090a82f656d65612f7331a155"
    ),
    "node signature": (
        "2991bc1ab3df5bb3548b1cb5a89689af0d0a046772171d11aa2caab61e5c4a4e3548e9874277f9a8"
        "4e1ac7b0b34d99654ab73762f1544d1d6e8a16b40623580e"
    ),
    "node message": "bf06b057ecceb994472b22ae6ca0a0df70e08707c5bdde78f9b64fea25502988 148",
    "node term": "816c92f292a9f6fda8bb56075580056f",
    "index payload": (
        "9794b16c656166636173742e696f2f496e646578a0a0a007c2a0900993a86d616e6966657374d940"
        "62303061383138353335663330356130646361383464333364623262653833373034653738343838"
        "65356133613963303264613638366562656634346133613501"
    ),
    "index signature": (
        "a7e6e15113e4454a5519e6693248f723278654216fae15e2a1c02d9946e4cbdf0b3fe98801a9224f"
        "040a48960d67bea81af68a634f2dd38a6a5fe55447b72f00"
    ),
    "index message": "53e8c92923bfbfd417d50d2bd04464d2f0b9c77780a2e07cb07eccef48617b02 209",
    "index term": "334b3296b24b1b63be76476cee37c60c",
    "keys payload": (
        "9694b06c656166636173742e696f2f4b657973a0a0a007c2a0909198ba6262626262626262626262"
        "626262626262626262626262626262c42003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d"
        "5f1ddc8664125531b891a564656c7461a12f909000cf7fffffffffffffff"
    ),
    "keys signature": (
        "dff4eb3d8a6f644cb2c47370ae98c79e5012f36bf7482c2c4bedcc9780c1c4781d11704144c1a527"
        "79b2a936aa541ec1277ead21e54255712eb61f127e350804"
    ),
    "keys message": "fb3d96918031fb0a45efb99b23bdbb0839cb2373ee6fd94588e173d9f5a96a64 213",
    "keys term": "8c5317e829d73a3276417c7e2afb7bd4",
    "report": (
        "9ad92069636a666d70646b31363176653732766f38376e6b76736d357173327363353700030407a3"
        "696e630cc2019781a673796e6365640281a76865616c7468790281a56f6c64657202919501b1636f"
        "6e6669676d6170732f73686f702f61a357687902a82f656d65612f7331cd03e8c291a82f656d6561"
        "2f7332"
    ),
    "part": (
        "96d92069636a666d70646b31363176653732766f38376e6b76736d35717332736335370103040791"
        "9494a0aa636f6e6669676d617073a473686f70a16101a8696e762d6d622d75c40180"
    ),
    "labels": "950304a3696e630c81a3696e769181a3656e769291a470726f64c3",
    "heartbeat": (
        "9f03a3696e630cc41000000000000000000000000000000000c41000000000000000000000000000"
        "000000c40006c3000002a172a0c204"
    ),
    "session": "98a3696e63030c0006a46e6f6e65a17204",
    "done": (
        "9a94a0aa636f6e6669676d617073a473686f70a161a3756964a2616291d92069636a666d70646b31"
        "363176653732766f38376e6b76736d3571733273633537c30ca0c400c2c2"
    ),
    "cursor": "95a3696e630c06c392a27331a27332",
    "ask payload": (
        "9994af6c656166636173742e696f2f41736ba0a0ba63636363636363636363636363636363636363"
        "6363636363636307c2a090a3676574a82f656d65612f73310982a161a131a162a132"
    ),
    "ask signature": (
        "1fb71abbbe5c25a9b12747efd8cb93b5ef466ca2a0c69eb34268a81e595ec75c495130032330eb7f"
        "99a728f0fafa130c9b60f115a03042e2387576016f55b601"
    ),
    "ask message": "a267777dbf868894890d213a76d02261c90ceeb3a968e04be5565df902565034 176",
    "ask term": "f7edb3726848ebeeb01743330d147a0c",
    "swept": "92a3696e630c",
    "list part": (
        "940304009192d92069636a666d70646b31363176653732766f38376e6b76736d357173327363353707"
    ),
    "any values": "950304a3696e630c82a1619181a3656e7692c0c2a1629180",
    "empty report": (
        "9ad92069636a666d70646b31363176653732766f38376e6b76736d357173327363353700030407a3"
        "696e630cc301978080809000c390"
    ),
    "large numbers": "9494a0aa636f6e6669676d617073a473686f70a161cf7fffffffffffffffa0c0",
    "answer": "95ba636363636363636363636363636363636363636363636363636301c3c40180c0",
    "no answer": (
        "95ba636363636363636363636363636363636363636363636363636301c3c40094a74f66666c696e"
        "65a3776879a52f656d656103"
    ),
    "object address": "e8bb139c8996a77d35e661195b51f2e765f0ce2d5a757eef778e56990ed55496",
    "object form": "0",
    "program address": "d45d873514c7abe4e011590b2e3cff63f416c4f8bc0052fb9ef6cf98b796e4b3",
    "program form": "1",
    "manifest": "24c4bffe7572637bc374187fe188f273043941972c1ac15bf0d1df27ac049c6e",
    "manifest of one": "b0f5e2810ac1efc03a2ad380c2d742f406b9d4166b22d2cff34818119c602694",
    "manifest chunks": "5af563ac beeea67b",
    "index": "549f5c3d188b86efbb3283bd66e79ce355744ea49deb807594b0ea93d8757a56",
    "index chunks": "0e0d4166 c742b364",
}


def said() -> dict[str, str]:
    """Everything that is pinned, as text: short things whole, long ones by SHA-256 and length."""
    found = {
        "canonical": codec.canonical(OBJECT).hex(),
        "public key": SIGNER.public_key.hex(),
        "mail key": KEY,
        "part key": reports.part_key(KEY, 2),
        "bucket": str(records.bucket(DestinationId("inv-mb-u"), "salt")),
        "body": BODY.encode().hex(),
    }
    for kind, record in RECORDS.items():
        envelope = SIGNER.seal(
            kind, records.encode_payload(record), BODY.encode() if kind == "delta" else None
        )
        found[f"{kind} payload"] = envelope.payload.hex()
        found[f"{kind} signature"] = envelope.signature.hex()
        found[f"{kind} message"] = brief(envelope.encode())
        found[f"{kind} term"] = f"{records.slot_term(KEY, record.generation, envelope):032x}"
    for name, report in UNSIGNED.items():
        found[name] = reports.encode(report).hex()
    for kind, plain in (("object", codec.canonical(OBJECT)), ("program", b"x" * 2000)):
        stored = blobs.store(kind, plain)
        found[f"{kind} address"] = stored.reference.address
        found[f"{kind} form"] = str(stored.values[stored.reference.address][0])
    manifest = chunks.build_manifest(entry(f"n{at}") for at in range(65))
    found["manifest"] = manifest[0].reference.address
    found["manifest of one"] = chunks.build_manifest([entry("a")])[0].reference.address
    found["manifest chunks"] = " ".join(chunk.reference.address[:8] for chunk in manifest[1:])
    listed = [(reports.part_key(KEY, at), at) for at in range(1, 200)]
    index = chunks.build_index(listed)
    found["index"] = index[0].reference.address
    found["index chunks"] = " ".join(chunk.reference.address[:8] for chunk in index[1:])
    return found


def brief(data: bytes) -> str:
    return f"{hashlib.sha256(data).hexdigest()} {len(data)}"


def test_nothing_is_pinned_that_is_not_said():
    assert said().keys() == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_the_wire_is_what_it_was(name):
    assert said()[name] == GOLDEN[name]


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
