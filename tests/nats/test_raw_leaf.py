"""A node that speaks for its nats-server itself reaches no more of its parent's than others do."""

import itertools
import json

import pytest

from relay.adapters.server.nkey_pairs import public_nkey
from tests.nats.conftest import in_force
from tests.nats.raw_leaf import RawLeaf
from tests.nats.scene import SECRET, staged
from tests.nats.test_isolation import API_ATTEMPTS, FOREIGN_SUBJECTS

pytestmark = pytest.mark.nats

CLAIMS = {
    "plain": {},
    "hub": {"hub": True},
    "another's account": {"remote_account": "eb"},
    "its domain": {"jetstream": True, "domain": "lc"},
}
EVERYTHING = (
    ">",
    "*.>",
    "$JS.>",
    "$JS.API.>",
    "$SYS.>",
    "lc.>",
    "lc._d.>",
    "lc._d.eb.m",
    "_R_.>",
    "$KV.>",
)


SYSTEM = (
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.SERVER.PING.CONNZ",
    "$SYS.REQ.SERVER.PING.LEAFZ",
    "$SYS.REQ.ACCOUNT.eb.CONNZ",
    "$SYS.REQ.ACCOUNT.RELAY.SUBSZ",
    "$SYS.REQ.CLAIMS.UPDATE",
)


def leaf_port(node) -> int:
    return int(node.server.leaf_url.rpartition(":")[2])


@pytest.mark.parametrize("claims", CLAIMS.values(), ids=CLAIMS)
async def test_whatever_a_childs_own_server_says_it_reaches_nothing_of_anothers(grove, claims):
    async with staged(grove) as scene:
        before, mail_before = await scene.stored(), len(scene.victim_mail)
        evil = RawLeaf()
        try:
            await evil.open(leaf_port(scene.centre), scene.edge_a.link_seed, claims)
            await evil.taken_in()
            assert b'"remote_account":"ea"' in evil.heard
            for subject in EVERYTHING:
                evil.listen(subject)
            evil.say("lc.ea._stat.k", b"mine", "_INBOX.evil")
            replies = ("", "_INBOX.evil", "lc.eb._mail.k", scene.victim_mail[0].reply)
            for reply, prefix in itertools.product(replies, ("$JS.API", "$JS.lc.API", "up")):
                for verb, body in API_ATTEMPTS.items():
                    evil.say(f"{prefix}.{verb}", json.dumps(body).encode(), reply)
            for reply, subject in itertools.product(replies, FOREIGN_SUBJECTS):
                evil.say(subject, b"forged", reply)
            for subject in SYSTEM:
                evil.say(subject, b'{"cid":1,"auth":true}', "_INBOX.evil")
            for verb in (b"+ACK", b"-NAK", b"+TERM"):
                evil.say(scene.victim_mail[0].reply, verb)
            # It is in, as itself, and heard: by the last one's answer all before was dealt with.
            evil.say("lc.ea._node.self", b"beat", "_INBOX.last")
            await evil.hears(b"LMSG _INBOX.evil")
            await evil.hears(b"LMSG _INBOX.last")
            await scene.settle()
            assert await scene.stored() == before
            assert len(scene.victim_mail) == mail_before
            for number in range(3):
                await scene.relay.request(f"lc.eb._mail.{number}", SECRET, timeout=30)
                await scene.victim.request(f"lc.eb._stat.{number}", SECRET, timeout=30)
                await scene.relay.publish("lc._d.eb.welcome", SECRET)
            await in_force(scene.relay)
            await in_force(scene.victim)
            await evil.taken_in()
        finally:
            evil.close()
        victims = (SECRET, b'"eb"', public_nkey(scene.edge_b.link_seed).encode())
        assert [it for it in victims if it in evil.heard] == []
        assert scene.victim.is_connected


async def test_a_childs_own_server_is_let_in_as_no_other_account(grove):
    async with grove:
        centre = await grove.plant()
        child, _ = await grove.plant("/ea", centre), await grove.plant("/eb", centre)
        for account in ("RELAY", "UPLINK", "SPACE", "SYS", "eb"):
            evil = RawLeaf()
            try:
                await evil.open(leaf_port(centre), child.link_seed, {"account": account})
                with pytest.raises(ConnectionError):
                    await evil.taken_in()
                assert b"LS+" not in evil.heard
            finally:
                evil.close()


ADDRESS = "ab" * 32
ANY_BLOB = (
    "up.blob.*",
    "up.blob.>",
    "up.blob.*.*",
    f"up.blob.{ADDRESS[:32]}*",
    f"up.blob.{ADDRESS[:32]}.*",
    "up.split.*",
    "up.split.*.*.*",
    "up.split.a.b.*",
    f"up.split.{ADDRESS[:32]}.{ADDRESS[32:]}.*",
    f"up.split.{ADDRESS[:32]}.{ADDRESS[32:]}.>",
    "up.split.>",
    "blob.a.b.*",
    "$JS.API.DIRECT.GET.BLOB.lc._blob.*",
    "lc._blob.*",
)


async def test_a_blob_is_read_by_its_whole_name_and_by_nothing_less(grove):
    async with staged(grove) as scene:
        await scene.relay.request(f"lc._blob.{ADDRESS}", SECRET, timeout=30)

        async def heard(subject: str) -> bytes:
            """What comes of asking so, over a link that the server may well cut for it."""
            evil = RawLeaf()
            try:
                await evil.open(leaf_port(scene.centre), scene.edge_a.link_seed, {})
                await evil.taken_in()
                evil.listen("_INBOX.>")
                evil.say(subject, b"", "_INBOX.evil")
                evil.say("up.blob." + "0" * 64, b"", "_INBOX.last")
                await evil.hears(b"_INBOX.last")
                if subject.endswith(ADDRESS):
                    await evil.hears(b"_INBOX.evil")
            except ConnectionError:
                pass
            finally:
                evil.close()
            return evil.heard

        told = {it: await heard(it) for it in ANY_BLOB}
        assert {it: what for it, what in told.items() if SECRET in what} == {}
        assert SECRET in await heard(f"up.blob.{ADDRESS}")
