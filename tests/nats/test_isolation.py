"""A child reaches its own mail, reports and blobs, and nothing else: the servers see to it.

Tree: the centre, and below it `ea` (the intruder) and `eb` (the victim), each with a server of its
own. Every attempt is made over ea's leaf link: with ea's key no client is let in.
"""

import asyncio
import itertools
import json

import pytest
from nats.aio.msg import Msg

from relay.adapters.server.nkey_pairs import public_nkey
from tests.awaiting import eventually
from tests.nats.conftest import call, in_force
from tests.nats.scene import HASH, SECRET, answer_to, ask_system, grants, staged

pytestmark = pytest.mark.nats

API_ATTEMPTS = {
    "INFO": {},
    "STREAM.NAMES": {},
    "STREAM.LIST": {},
    "STREAM.INFO.MAIL": {},
    "STREAM.CREATE.EVIL": {"name": "EVIL", "subjects": ["lc.eb.>"]},
    "STREAM.UPDATE.MAIL": {"name": "MAIL", "subjects": ["lc.*._mail.*"], "max_msgs": 1},
    "STREAM.DELETE.MAIL": {},
    "STREAM.PURGE.MAIL": {"filter": "lc.eb._mail.*"},
    "STREAM.PURGE.STAT": {},
    "STREAM.MSG.GET.MAIL": {"last_by_subj": "lc.eb._mail.k"},
    "STREAM.MSG.DELETE.MAIL": {"seq": 1},
    "STREAM.SNAPSHOT.MAIL": {"deliver_subject": "_INBOX.evil"},
    "DIRECT.GET.MAIL": {"multi_last": ["lc.>"]},
    "DIRECT.GET.MAIL.lc.eb._mail.k": {},
    "DIRECT.GET.MAIL.lc.ea._mail.k": {},
    "DIRECT.GET.STAT.lc.eb._stat.k": {},
    "DIRECT.GET.eb.lc.eb._up.k": {},
    "DIRECT.GET.eb": {"multi_last": ["lc.>"]},
    "STREAM.INFO.eb": {"subjects_filter": ">"},
    "STREAM.PURGE.eb": {"filter": "lc.eb._up.k"},
    "STREAM.MSG.GET.eb": {"seq": 1},
    "STREAM.MSG.DELETE.eb": {"seq": 1},
    "STREAM.DELETE.eb": {},
    "STREAM.DELETE.ea": {},
    "STREAM.UPDATE.ea": {"name": "ea", "subjects": ["lc.eb._up.*"], "max_bytes": -1},
    "STREAM.CREATE.ea": {"name": "ea", "subjects": ["lc.eb._up.*"]},
    "CONSUMER.CREATE.eb": {"stream_name": "eb", "config": {"deliver_subject": "lc._d.ea.m"}},
    "DIRECT.GET.OWN.lc._own.k": {},
    "DIRECT.GET.BLOB": {"multi_last": ["lc.>"]},
    "CONSUMER.NAMES.MAIL": {},
    "CONSUMER.LIST.MAIL": {},
    "CONSUMER.INFO.MAIL.eb": {},
    "CONSUMER.DELETE.MAIL.eb": {},
    "CONSUMER.PAUSE.MAIL.eb": {"pause_until": "2100-01-01T00:00:00Z"},
    "CONSUMER.RESET.MAIL.eb": {"seq": 1},
    "CONSUMER.UNPIN.MAIL.eb": {"group": "g"},
    "CONSUMER.MSG.NEXT.MAIL.eb": {},
    "CONSUMER.CREATE.MAIL": {"stream_name": "MAIL", "config": {"deliver_subject": "lc._d.ea.m"}},
    "CONSUMER.CREATE.MAIL.evil.lc.eb._mail.*": {
        "stream_name": "MAIL",
        "config": {
            "name": "evil",
            "deliver_subject": "lc._d.ea.m",
            "filter_subject": "lc.eb._mail.*",
        },
    },
    "STREAM.INFO.KV_workloads": {},
    "STREAM.DELETE.KV_inventory": {},
    "DIRECT.GET.KV_workloads": {"last_by_subj": "$KV.workloads.k"},
    "DIRECT.GET.KV_workloads.$KV.workloads.k": {},
    "STREAM.CREATE.KV_workloads": {"name": "KV_workloads", "subjects": ["$KV.workloads.>"]},
    "CONSUMER.DURABLE.CREATE.MAIL.evil": {
        "stream_name": "MAIL",
        "config": {"durable_name": "evil", "deliver_subject": "lc._d.ea.m"},
    },
}


async def test_no_api_request_reads_changes_or_erases_what_is_anothers(grove):
    async with staged(grove) as scene:
        before = await scene.stored()
        attempts = itertools.product(("$JS.API", "$JS.lc.API", "up"), API_ATTEMPTS.items())
        async with asyncio.TaskGroup() as group:
            tries = [
                group.create_task(
                    answer_to(scene.intruder, f"{prefix}.{verb}", json.dumps(body).encode()),
                    name=f"{prefix}.{verb}",
                )
                for prefix, (verb, body) in attempts
            ]
        for attempt in tries:
            answer = attempt.result()
            assert not grants(answer), f"{attempt.get_name()}: {answer}"
            assert answer is None or SECRET not in answer.data
        await scene.settle()
        assert await scene.stored() == before


FOREIGN_SUBJECTS = (
    "lc.eb._mail.k",
    "lc.ea._mail.k",
    "lc.eb._stat.k",
    "lc.eb._node.self",
    "lc.eb._up.k",
    "lc.eb._answer.q",
    "lc.ea.deep._mail.k",
    "lc.ea.deep._stat.k",
    "lc._own.k",
    "lc._own._cursor",
    f"lc._blob.{HASH}",
    "lc._d.eb.m",
    "lc._d.eb.welcome",
    "lc._d.eb.ask.get",
    "$KV.workloads.k",
    "$KV.inventory.k",
    "leafcast.api.node-remove",
)


async def test_no_subject_of_another_can_be_written(grove):
    async with staged(grove) as scene:
        heard = await scene.relay.subscribe("lc.*._answer.*")
        space_heard = await scene.space.subscribe("leafcast.api.>")
        await in_force(scene.space)
        await in_force(scene.relay)
        before, mail_before = await scene.stored(), len(scene.victim_mail)
        for subject in FOREIGN_SUBJECTS:
            await scene.intruder.publish(subject, b"forged")
            assert await answer_to(scene.intruder, subject, b"forged") is None, subject
        await scene.settle()
        assert await scene.stored() == before
        assert len(scene.victim_mail) == mail_before
        await in_force(scene.space)
        assert heard.pending_msgs == space_heard.pending_msgs == 0


async def test_anothers_mail_cannot_be_acknowledged_or_its_flow_steered(grove):
    async with staged(grove) as scene:
        before = await scene.stored()
        reply = scene.victim_mail[0].reply
        assert reply.startswith("$JS.ACK.MAIL.eb.")
        for verb in (b"+ACK", b"", b"-NAK", b"+TERM", b"+NXT", b"+WPI"):
            await scene.intruder.publish(reply, verb)
            assert await answer_to(scene.intruder, reply, verb) is None
        await scene.intruder.publish("$JS.FC.MAIL.eb.x")
        assert await answer_to(scene.intruder, "$JS.FC.MAIL.eb.x") is None
        await scene.settle()
        assert await scene.stored() == before


async def test_permitted_requests_launder_nothing_into_anothers_subjects(grove):
    async with staged(grove) as scene:
        mail = await scene.intruder.subscribe("lc._d.ea.m")
        await in_force(scene.intruder)
        own = (await mail.next_msg(timeout=30)).reply
        before, mail_before = await scene.stored(), len(scene.victim_mail)
        permitted = (
            ("lc.ea._stat.k", b"report"),
            ("lc.ea._node.self", b"beat"),
            ("lc.ea._up.k", b"object"),
            ("lc.ea._answer.q", b"answer"),
            ("up.reset", b'{"seq":1}'),
            ("up.reset", b"nonsense"),
            ("up.info", b""),
            ("up.copies", b'{"subjects_filter":">"}'),
            ("up.erase", b'{"filter":"lc.eb._up.k"}'),
            ("up.erase", b"{}"),
            (f"up.blob.{HASH}", b""),
            ("up.blob.missing", b""),
            (own, b"+NXT"),
            (own, b"+ACK"),
            ("$JS.FC.MAIL.ea.x", b""),
        )
        targets = (
            *FOREIGN_SUBJECTS,
            "$JS.API.STREAM.PURGE.MAIL",
            "$JS.API.STREAM.PURGE.STAT",
            "$JS.API.STREAM.PURGE.eb",
            "$JS.API.CONSUMER.DELETE.MAIL.eb",
            "$JS.FC.MAIL.eb.x",
            scene.victim_mail[0].reply,
        )
        for (subject, body), target in itertools.product(permitted, targets):
            await scene.intruder.publish(subject, body, reply=target)
            # A trace of the message would be a message, too, at a place of the sender's choice.
            headers = {"Nats-Trace-Dest": target}
            await scene.intruder.publish(subject, body, headers=headers)
        await scene.settle()
        assert await scene.stored() == before
        assert len(scene.victim_mail) == mail_before


async def test_headers_of_a_report_erase_no_other_report(grove):
    async with staged(grove) as scene:
        before = await scene.stored()
        for headers in (
            {"Nats-Rollup": "all"},
            {"Nats-Rollup": "sub"},
            {"Nats-TTL": "1s"},
            {"Nats-Schedule": "@every 1s", "Nats-Schedule-Target": "lc.eb._stat.k"},
            {"Nats-Batch-Id": "x", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
            {"Nats-Incr": "+1"},
            {"Nats-Expected-Stream": "MAIL"},
        ):
            answer = await answer_to(scene.intruder, "lc.ea._stat.k", b"x", headers=headers)
            assert not grants(answer), headers
        await scene.settle()
        assert await scene.stored() == before


async def test_a_subscription_to_everything_sees_nothing_of_anothers(grove):
    async with staged(grove) as scene:
        seen: list[Msg] = []
        its_own_came = asyncio.Event()

        async def keep(message: Msg) -> None:
            seen.append(message)
            if message.data == b"for ea":
                its_own_came.set()

        for subject in (
            "lc._d.ea.m",
            ">",
            "lc.>",
            "lc._d.>",
            "lc._d.eb.>",
            "$JS.>",
            "_R_.>",
            "_INBOX.>",
        ):
            await scene.intruder.subscribe(subject, cb=keep)
        await in_force(scene.intruder)
        await scene.settle()
        for number in range(5):
            await scene.relay.request(f"lc.eb._mail.{number}", SECRET, timeout=30)
            await scene.victim.request(f"lc.eb._stat.{number}", SECRET, timeout=30)
            await scene.relay.publish("lc._d.eb.welcome", SECRET)
        await call(scene.victim, "up.reset", {"seq": 1})
        await scene.victim.request(f"up.blob.{HASH}", timeout=30)
        await scene.relay.request("lc.ea._mail.last", b"for ea", timeout=30)
        async with asyncio.timeout(60):
            await its_own_came.wait()
        assert [m.subject for m in seen if SECRET in m.data or ".eb" in m.subject] == []
        assert [m.subject for m in seen if b"eb" in m.data] == []


async def test_the_servers_own_affairs_are_closed_to_a_child(grove):
    async with staged(grove) as scene:
        server = json.loads((await ask_system(scene, "PING.IDZ")).data)["id"]
        # What the server tells every account about its own connections names no other's.
        own = await scene.intruder.request(
            "$SYS.REQ.SERVER.PING.CONNZ", b'{"auth":true}', timeout=30
        )
        victim_nkey = public_nkey(scene.edge_b.link_seed).encode()
        assert victim_nkey not in own.data
        assert b'"eb"' not in own.data
        for subject in (
            "$SYS.REQ.SERVER.PING",
            f"$SYS.REQ.SERVER.{server}.KICK",
            f"$SYS.REQ.SERVER.{server}.RELOAD",
            "$SYS.REQ.ACCOUNT.eb.CONNZ",
            "$SYS.REQ.ACCOUNT.RELAY.SUBSZ",
            "$SYS.REQ.CLAIMS.UPDATE",
        ):
            assert not grants(await answer_to(scene.intruder, subject, b'{"cid":1}')), subject
        assert scene.victim.is_connected


async def test_a_child_does_all_that_is_its_own(grove):
    async with staged(grove) as scene:
        child = scene.intruder
        for subject, stream in (
            ("lc.ea._stat.k", "STAT"),
            ("lc.ea._node.self", "STAT"),
            ("lc.ea._up.k", "ea"),
        ):
            assert (await call(child, subject, b"mine"))["stream"] == stream
        assert (await child.request(f"up.blob.{HASH}", timeout=30)).data == b"of the centre"

        assert (await call(child, "up.copies"))["state"]["messages"] == 1
        assert (await call(child, "up.erase", {"filter": "lc.ea._up.k"}))["purged"] == 1
        assert (await call(child, "up.copies"))["state"]["messages"] == 0

        mail = await child.subscribe("lc._d.ea.m")
        await in_force(child)
        first = await mail.next_msg(timeout=30)
        assert (first.subject, first.data) == ("lc.ea._mail.k", b"of the centre")
        await child.publish(first.reply, b"+ACK")

        async def acknowledged() -> bool:
            return (await call(child, "up.info"))["ack_floor"]["stream_seq"] == 2

        await eventually(acknowledged)
        assert "error" not in await call(child, "up.reset", {"seq": 1})
        assert (await mail.next_msg(timeout=30)).data == b"of the centre"

        answers = await scene.relay.subscribe("lc.*._answer.*")
        await in_force(scene.relay)
        asks = await child.subscribe("lc._d.ea.ask.get")
        await in_force(child)
        await scene.settle()
        await scene.relay.publish("lc._d.ea.ask.get", b"question")
        assert (await asks.next_msg(timeout=30)).data == b"question"
        await child.publish("lc.ea._answer.q", b"answer")
        assert (await answers.next_msg(timeout=30)).data == b"answer"


async def test_a_long_mailbox_arrives_whole_under_flow_control(grove):
    async with staged(grove) as scene:
        child, count = scene.intruder, 3_000
        for number in range(count):
            await scene.relay.publish(f"lc.ea._mail.{number}", bytes(1_000))
        await scene.relay.request("lc.ea._mail.last", b"last", timeout=30)
        arrived: set[str] = set()
        steered = 0
        whole = asyncio.Event()

        async def read(message: Msg) -> None:
            nonlocal steered
            if message.reply.startswith("$JS.FC.MAIL.ea."):
                steered += 1
                await child.publish(message.reply)
                return
            arrived.add(message.subject)
            if message.data == b"last":
                await child.publish(message.reply, b"+ACK")
                whole.set()

        await child.subscribe("lc._d.ea.m", cb=read)
        async with asyncio.timeout(60):
            await whole.wait()
        assert {f"lc.ea._mail.{number}" for number in range(count)} <= arrived
        assert steered > 0


async def test_a_removed_child_is_cut_off_and_its_key_opens_nothing(grove):
    async with staged(grove) as scene:
        await scene.centre.server.remove_child("ea")

        links = json.loads((await ask_system(scene, "PING.LEAFZ")).data)["data"]["leafs"]
        assert [link["account"] for link in links] == ["eb"]
        assert await answer_to(scene.intruder, "lc.ea._node.self", b"beat") is None
        assert await scene.grove.is_refused(scene.centre, scene.edge_a.link_seed)
        assert scene.victim.is_connected
        await scene.victim.request("lc.eb._node.self", b"beat", timeout=30)
        await scene.centre.server.remove_child("ea")
