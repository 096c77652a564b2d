"""Whoever has half of what opens content reads nothing of it: a relay, a foreign edge, a recorder.

All on real servers, without TLS, so that what passes a link is what an eavesdropper at the relay
hears. The site is meant for the objects; the foreign edge hangs beside it, and they are not for it.
"""

import base64
import itertools
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
import zstandard
from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from leafcast.join.kept_grant import read_grant
from relay.adapters.server.nkey_pairs import private_key
from schemas.content.sealing import (
    NotOpened,
    SealingKey,
    fleet_keys_for,
    open_fleet_box,
    unwrap_keys,
)
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaHead, Profile, decode_body, decode_payload
from schemas.records.signing import decode_envelope
from schemas.values.identity import MailKey
from schemas.values.refusals import WireRefused
from tests.nats.chaos_member import until
from tests.nats.chaos_tree import AWAY, PRODUCTION, chaos_tree, patiently, placement_object

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, SITE, FOREIGN = "/r1", "/r1/site", "/r1/foreign"
MARK = "known-plain-text"
"""In the objects, and nowhere else; a Secret has it in base64."""
PASSWORD = base64.b64encode(f"of the vault: {MARK} {'x' * 2000}".encode()).decode()
UNHEARD = "unheard-of"
"""The name of an object that returns no status, and of which nobody asks."""
ZSTD = b"\x28\xb5\x2f\xfd"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "vault", "namespace": "default", "labels": {"of": "shop"}},
    "data": {"password": PASSWORD},
}
TEXT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "text", "namespace": "default", "labels": {"of": "shop"}},
    "data": {"value": f"{MARK} {'of the shop ' * 200}"},
}
KINDS = ("object", "template", "customizer", "manifest", "mchunk", "chunk", "key", "state")


def plain_texts(data):
    """Bytes, and whatever anyone can unpack of them."""
    yield data
    at = data.find(ZSTD)
    while at >= 0:
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data[at:])
        at = data.find(ZSTD, at + 1)


def reads(data, *words):
    """Whether one of the words stands in it, in clear or only packed."""
    wanted = [word.encode() for word in words]
    return any(word in text for text in plain_texts(bytes(data)) for word in wanted)


KNOWN = (MARK, "of the shop of the shop", PASSWORD[40:80], UNHEARD)


async def kept(member):
    """All that a node's server keeps for anyone: subjects and what lies there."""
    found = []
    for account in ("relay", "space"):
        async with member.client(account) as client:
            stream = client.jetstream()
            for info in await stream.streams_info():
                name, state = info.config.name, info.state
                for place in range(max(1, state.first_seq), state.last_seq + 1):
                    with suppress(NotFoundError):
                        message = await stream.get_msg(name, place)
                        found.append((message.subject, message.data or b""))
    return found


@dataclass
class Haul:
    """What an attacker took together, as the wire says it."""

    profiles: dict[str, Profile] = field(default_factory=dict)
    bodies: dict[MailKey, bytes] = field(default_factory=dict)
    content: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, stored):
        found = cls()
        for subject, data in stored:
            tail, name = subject.split(".")[-2:]
            if tail == "_blob":
                found.content[name] = data
            elif tail in ("_mail", "_own"):
                found._take(data)
        return found

    def _take(self, data):
        with suppress(WireRefused):
            envelope = decode_envelope(data)
            record = decode_payload(envelope.kind, envelope.payload)
            if isinstance(record, Profile):
                self.profiles[str(record.path)] = record
            if isinstance(record, DeltaHead) and envelope.body is not None:
                self.bodies[record.source.key] = decode_body(record, envelope.body).key


def private(member):
    """The X25519 key of a node, by the seed that lies beside its server."""
    return private_key(read_grant(member.folder / "bundle.json").seed)


def fleet_of(member, haul):
    profile = haul.profiles[str(member.path)]
    return fleet_keys_for([private(member)], profile.public_key, profile.fleet_key)


def opened(content, keys):
    """What of the content one of these keys opens, as whatever it may be."""
    found = []
    for value, key, kind in itertools.product(content.values(), keys, KINDS):
        for sealed in (value, value[1:]):
            with suppress(WireRefused):
                found.append(key.unseal(kind, sealed))
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("sealed")) as tree:
        await tree.join(REGION, relay=True, wired=True)
        await tree.join(SITE, wired=True)
        await tree.join(FOREIGN, labels={"env": "test"})
        for path in (REGION, SITE):
            tree.members[path].wire.tap = bytearray()
        shop = placement_object("shop", PRODUCTION)
        shop["spec"]["downsync"][0]["resources"] = ["configmaps", "secrets"]
        shop["spec"]["wantSingletonReportedState"] = True
        await tree.apply(SECRET, TEXT, shop)
        await tree.place("bank")
        await tree.put("bank", **{UNHEARD: "v"})
        await until(lambda: arrived(tree), lambda: tree.members[SITE].said[-2000:])
        for name in ("shop", "bank"):
            await tree.counted(name, synced=1)
        foreign = tree.members[FOREIGN]
        await until(lambda: "is in session" in foreign.said, lambda: foreign.said)
        yield tree


def wire_prefix(path):
    """How deliveries to a node begin on its link."""
    return f"lc._d.{path.rpartition('/')[2]}"


async def arrived(tree):
    try:
        async with tree.members[SITE].space() as space:
            obj = await space.get(ObjectKey("", "secrets", "default", "vault"))
    except AWAY:
        return False
    return obj is not None and obj["data"] == SECRET["data"]


async def test_what_passes_a_relay_and_lies_there_holds_nothing_of_an_object(tree):
    asked = {"group": "", "resource": "configmaps", "name": "text", "namespace": "default"}
    answer = await patiently(tree._call, "ask", {"path": SITE, "verb": "get", **asked})
    assert answer["objects"][0]["data"] == TEXT["data"]

    for path in (REGION, SITE):
        wire = tree.members[path].wire
        assert f"{wire_prefix(path)}.m".encode() in wire.tap, "the link is not in clear"
        assert not reads(wire.tap, *KNOWN), f"on the wire to {path}"
    for path in (REGION, FOREIGN):
        stored = await kept(tree.members[path])
        assert [subject for subject, data in stored if reads(data, *KNOWN)] == []
        files = [file for file in tree.members[path].folder.rglob("*") if file.is_file()]
        assert [file for file in files if reads(file.read_bytes(), *KNOWN)] == []
    # So it would be found if it were there: it is in the space of who it is for.
    assert [subject for subject, data in await kept(tree.members[SITE]) if reads(data, MARK)]


async def test_a_relay_opens_nothing_with_all_that_it_was_sent(tree):
    region, site = tree.members[REGION], tree.members[SITE]
    haul = Haul.of(await kept(region))
    assert len(haul.content) >= 4
    assert [key for key in haul.bodies.values() if key], "it has the bodies"
    assert {SITE, FOREIGN} <= haul.profiles.keys(), "and the boxes"
    tree_id = read_grant(region.folder / "bundle.json").tree
    for profile in haul.profiles.values():
        assert fleet_keys_for([private(region)], profile.public_key, profile.fleet_key) == ()
        with pytest.raises(NotOpened):
            open_fleet_box(private(region), profile.fleet_key)
    own = [SealingKey(tree_id, private(region))]
    assert opened(haul.content, own) == []
    # With the fleet key of the site, which is there as well, all of it opens.
    keys = [
        SealingKey(tree_id, key)
        for source, wrapped in haul.bodies.items()
        for key in unwrap_keys(fleet_of(site, haul), tree_id, source, wrapped)
    ]
    assert any(reads(plain, PASSWORD) for plain in opened(haul.content, keys))


async def test_a_foreign_edge_opens_nothing_with_its_fleet_key(tree):
    foreign, region = tree.members[FOREIGN], Haul.of(await kept(tree.members[REGION]))
    fleet = fleet_of(foreign, region)
    assert fleet, "it has the fleet key"
    # It names content that it is not meant for, and gets it: that nobody keeps from it.
    fetched = {}
    async with foreign.client("uplink") as client:
        for name in region.content:
            said = await client.request(f"up.blob.{name}", timeout=10)
            fetched[name] = said.data
    assert fetched == region.content
    tree_id = read_grant(foreign.folder / "bundle.json").tree
    sent = Haul.of(
        [it for it in await kept(tree.members[REGION]) if it[0].startswith("lc.r1.foreign.")]
    )
    own = Haul.of(await kept(foreign))
    assert not any(sent.bodies.values()), "no body with a key is sent to it"
    assert not any(own.bodies.values())
    keys = [SealingKey(tree_id, key) for key in (*fleet, private(foreign))]
    assert opened(fetched, keys) == []
    assert await of_a_wildcard(foreign) == []


async def of_a_wildcard(member):
    """What its parent gives for a blob of any name; the server may also say nothing at all."""
    found = []
    async with member.client("uplink") as client:
        for name in ("*", ">"):
            with suppress(NatsError, TimeoutError):
                found.append((await client.request(f"up.blob.{name}", timeout=1)).data)
    return [data for data in found if data]
