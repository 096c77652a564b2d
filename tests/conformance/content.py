"""Vectors of names and content: keys, canonical bytes, blobs, manifests, what messages carry."""

from __future__ import annotations

import hashlib

from schemas.content import blobs, carried, manifest
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry, content_id
from schemas.objects.objects import ObjectKey, apply_order
from schemas.objects.order import order_of
from schemas.records.records import bucket
from schemas.reports.reports import part_key
from schemas.reports.upsync import UpsyncClause
from schemas.values import codec
from schemas.values.identity import ContentHash, DestinationId, MailKey, NodePath, mail_key
from schemas.values.refusals import BadIdentity, BlobRefused, CodecError
from schemas.values.wire import convert, encode
from tests.conformance.forms import Case, Json, as_json, fields_of, from_json

ABOUT = (
    "Paths (`path`), mail keys (`source`), slots of report parts (`part_of`), buckets (`bucket`), "
    "canonical bytes of JSON values (`value`), stored values of blobs (`reference`), manifests "
    "(`entries`), orders of kinds (`order`), ids of contents (`content_of`), and what a message "
    "carries (`carrying`)."
)
COMPRESSED = "0128b52ffd60d0064d00001078780100cbff000b"
"""2,000 times `x`, by zstd; given here, as another release of zstd may write it otherwise."""
KEY = mail_key("edge.kubestellar.io/EdgePlacement", "wds", "", "shop")


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [*_names(), *_values(), *_blobs(), *_odd_blobs(), *_manifests(), *_orders(), *_carried()]


def _names() -> list[Case]:
    paths = [
        "/",
        "/emea",
        "/emea/store-1",
        "emea",
        "/Emea",
        "/a_b",
        "/-a",
        "/a/",
        "/" + "a" * 63,
        "/" + "a" * 64,
        "/a" * 16,
        "/a" * 17,
    ]
    sources = [
        ["edge.kubestellar.io/EdgePlacement", "wds", "", "shop"],
        ["leafcast.io/Node", "a" * 26, "", "/emea"],
        ["edge.kubestellar.io/SyncTarget", "inv", "", "é"],
    ]
    deployment = {"group": "apps", "resource": "deployments", "namespace": "shop", "name": "web"}
    return [
        *(
            Case(f"path {path[:24]}, {len(path)} characters", "N1", {"path": path})
            for path in paths
        ),
        *(Case(f"mail key of {source[0]}", "E3", {"source": source}) for source in sources),
        *(
            Case(f"slot of part {part}", "U4", {"part_of": KEY, "part": part})
            for part in (0, 1, 256)
        ),
        *(
            Case(f"bucket with salt {salt!r}", "W1", {"bucket": "inv-mb-u", "salt": salt})
            for salt in ("", "s")
        ),
        Case("id of a content", "U19", {"content_of": deployment, "identity": "0" * 64}),
        Case(
            "id of a sealed content", "U19", {"content_of": deployment, "identity": "0a1b2c3d4e5f"}
        ),
    ]


def _values() -> list[Case]:
    listed: list[tuple[str, Json]] = [
        ("keys are sorted by their bytes", {"b": 1, "a": 2, "B": 3, "é": 4, "z": 5}),
        ("null and absent differ", {"a": None}),
        ("the shortest integers", [0, 127, 128, 255, 256, 65535, 65536, 2**32, 2**63, 2**64 - 1]),
        (
            "the shortest negative integers",
            [-1, -32, -33, -128, -129, -32769, -(2**31) - 1, -(2**63)],
        ),
        ("floats that are integers", [1.0, -0.0, 1e15, 9007199254740991.0]),
        ("floats that are not", [0.5, -1.5, 1e-300, 9007199254740992.0, 1e300]),
        ("texts", ["", "a", "é", "a" * 32, "\U0001f44d"]),
        ("nested", {"a": [{"b": []}, {}], "c": True, "d": False}),
        ("an integer above 64 bits", {"a": [2**64]}),
        ("an integer below 64 bits", -(2**63) - 1),
    ]
    return [Case(f"canonical: {name}", "B2", {"value": value}) for name, value in listed]


def _blobs() -> list[Case]:
    def stored(
        name: str, rule: str, kind: str, plain: bytes, value: bytes, verdict: str, **parts: str
    ) -> Case:
        reference = [kind, codec.address(kind, plain), len(plain)]
        given = {"reference": reference, "stored": value.hex(), "parts": parts}
        return Case(f"blob: {name}", rule, given, {"verdict": verdict})

    plain, large = b"\x80", b"x" * 2000
    return [
        stored("plain", "B1", "object", plain, b"\0" + plain, "opened"),
        stored("compressed", "B1", "program", large, bytes.fromhex(COMPRESSED), "opened"),
        stored(
            "compressed, of less than it is",
            "B1",
            "program",
            large[:1999],
            bytes.fromhex(COMPRESSED),
            "refused",
        ),
        stored(
            "compressed, of more than it is",
            "B1",
            "program",
            large + b"x",
            bytes.fromhex(COMPRESSED),
            "refused",
        ),
        stored("another byte", "B1", "object", plain, b"\0\x81", "refused"),
        Case(
            "blob: the address of another type",
            "B1",
            {
                "reference": ["template", codec.address("object", plain), 1],
                "stored": (b"\0" + plain).hex(),
                "parts": {},
            },
            {"verdict": "refused"},
        ),
        stored("one byte too many", "B1", "object", plain, b"\0" + plain + b"\0", "refused"),
    ]


def _odd_blobs() -> list[Case]:
    def stored(
        name: str, rule: str, kind: str, plain: bytes, value: bytes, verdict: str, **parts: str
    ) -> Case:
        reference = [kind, codec.address(kind, plain), len(plain)]
        given = {"reference": reference, "stored": value.hex(), "parts": parts}
        return Case(f"blob: {name}", rule, given, {"verdict": verdict})

    plain, _large = b"\x80", b"x" * 2000
    part = codec.address("part", b"\0" + plain)
    listed = b"\2" + codec.pack([part])
    inner = codec.address("part", listed)
    return [
        stored("a form that there is not", "B1", "object", plain, b"\3" + plain, "refused"),
        stored("no form", "B1", "object", plain, b"", "refused"),
        stored(
            "in one part",
            "B1",
            "object",
            plain,
            listed,
            "opened",
            **{part: (b"\0\0" + plain).hex()},
        ),
        stored("its part is not here", "B1", "object", plain, listed, "refused"),
        stored(
            "parts within parts",
            "B1",
            "object",
            plain,
            b"\2" + codec.pack([inner]),
            "refused",
            **{inner: (b"\0" + listed).hex(), part: (b"\0\0" + plain).hex()},
        ),
    ]


def entry(name: str, **changes: Json) -> Json:
    address = codec.address("object", name.encode())
    made = ManifestEntry("", "configmaps", "shop", name, address, len(name), "wds", 3, 1, 12)
    return {**dict(zip(made.__struct_fields__, fields_of(made), strict=True)), **changes}


def _manifests() -> list[Case]:
    customizer = ["customizer", codec.address("customizer", b"c"), 1]
    return [
        Case("manifest: none", "B3", {"entries": [], "upsync": []}),
        Case("manifest: one object", "B3", {"entries": [entry("a")], "upsync": []}),
        Case(
            "manifest: of nine objects",
            "B3",
            {"entries": [entry(f"n{n}") for n in range(9)], "upsync": []},
        ),
        Case(
            "manifest: in another order",
            "B3",
            {"entries": [entry(f"n{n}") for n in range(9)][::-1], "upsync": []},
        ),
        Case(
            "manifest: a template",
            "B6",
            {"entries": [entry("a", flags=8, customizer=customizer)], "upsync": []},
        ),
        Case(
            "manifest: a known object of the source",
            "B8",
            {"entries": [entry("a", created_s=1_700_000_000, uid="0a-1b")], "upsync": []},
        ),
        Case(
            "manifest: fields that nobody said",
            "B3",
            {"entries": [entry("a", unsaid=[1, 4, 300])], "upsync": []},
        ),
        Case(
            "manifest: something comes up",
            "O1",
            {"entries": [entry("a")], "upsync": [["", ["events"], [], []]]},
        ),
    ]


def _orders() -> list[Case]:
    listed: list[tuple[str, str, str]] = [
        ("", "namespaces", ""),
        ("", "namespaces", "5"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "-1"),
        ("", "secrets", ""),
        ("apps", "deployments", ""),
        ("apps", "deployments", "0"),
        ("apps", "deployments", "2"),
        ("apps", "deployments", "-1"),
        ("batch", "jobs", "1000000"),
        ("example.com", "widgets", ""),
        ("rbac.authorization.k8s.io", "clusterroles", ""),
        ("rbac.authorization.k8s.io", "rolebindings", ""),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", ""),
        ("", "services", ""),
        ("networking.k8s.io", "ingresses", ""),
        ("policy", "poddisruptionbudgets", ""),
    ]
    return [
        Case(
            f"order: {resource}.{group}, wave {wave or 'none'}",
            "D8",
            {"order": {"group": group, "resource": resource, "wave": wave}},
        )
        for group, resource, wave in listed
    ]


def _carried() -> list[Case]:
    record = codec.pack([2, "node", "s" * 26, b"payload", bytes(64), None])
    one = [[bytes.fromhex(codec.address("object", b"\x80")), b"\0\x80"]]
    laden = b"\x97" + record[1:] + codec.pack(one)
    large = b"\x97" + record[1:] + codec.pack([[bytes(32), bytes(8193)]])
    broken = b"\x97" + record[1:] + codec.pack([["short", b""]])
    return [
        Case("carrying nothing", "E7", {"carrying": record.hex()}),
        Case("carrying a blob", "E7", {"carrying": laden.hex()}),
        Case("carrying more than 8 KiB", "E8", {"carrying": large.hex()}),
        Case("carrying what is no blob", "E8", {"carrying": broken.hex()}),
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    match given:
        case {"path": path}:
            return _path(path)
        case {"source": source}:
            return {"mail_key": mail_key(*source)}
        case {"part_of": key, "part": part}:
            return {"slot": part_key(MailKey(key), part)}
        case {"bucket": destination, "salt": salt}:
            return {"bucket": bucket(DestinationId(destination), salt)}
        case {"content_of": key, "identity": identity}:
            return {"id": content_id(ObjectKey(**key), ContentHash(identity)).hex()}
        case {"order": said}:
            obj = (
                {"metadata": {"annotations": {"leafcast.io/wave": said["wave"]}}}
                if said["wave"]
                else {}
            )
            return {"order": order_of(apply_order(said["group"], said["resource"]), obj)}
        case {"value": value}:
            return _canonical(value)
        case {"reference": reference}:
            return _opened(reference, given)
        case {"entries": entries}:
            return _manifest(entries, given["upsync"])
    bare, along = carried.without_carried(bytes.fromhex(given["carrying"]))
    return {"record": bare.hex(), "carried": {address: value.hex() for address, value in along}}


def _path(text: str) -> Json:
    try:
        path = NodePath.parse(text)
    except BadIdentity:
        return {"verdict": "refused"}
    return {
        "verdict": "read",
        "names": list(path.names),
        "prefix": path.prefix,
        "domain": path.domain,
    }


def _canonical(value: Json) -> Json:
    try:
        plain = codec.canonical(value)
    except CodecError as error:
        return {"verdict": "refused", "at": error.path}
    return {"verdict": "said", "hex": plain.hex(), "address": codec.address("object", plain)}


def _opened(said: Json, given: Json) -> Json:
    reference = convert(Reference, said, "reference")
    parts = {ContentHash(at): bytes.fromhex(text) for at, text in given["parts"].items()}
    try:
        plain = blobs.open_value(reference, bytes.fromhex(given["stored"]), parts)
    except BlobRefused:
        return {"verdict": "refused"}
    return {"verdict": "opened", "sha256": hashlib.sha256(plain).hexdigest()}


def _manifest(entries: Json, upsync: Json) -> Json:
    listed = [
        convert(ManifestEntry, [each[name] for name in ManifestEntry.__struct_fields__], "entry")
        for each in from_json(entries)
    ]
    clauses = [convert(UpsyncClause, each, "clause") for each in upsync]
    made = manifest.build_manifest(listed, clauses)
    shown = {it.reference.address: blobs.open_stored(it) for it in made}
    root = made[0].reference
    read = manifest.read_manifest(shown[root.address], shown)
    assert sorted(map(encode, read.entries)) == sorted(map(encode, listed))
    return {
        "root": [root.kind, root.address, root.size],
        "blobs": {address: plain.hex() for address, plain in shown.items()},
        "shown": as_json(codec.unpack(shown[root.address])),
    }
