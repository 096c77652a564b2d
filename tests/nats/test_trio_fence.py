"""Of two members that both think that they are active, the one that came later is right."""

import asyncio
import os
import signal
from base64 import b64decode
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream import fence, stream_probes
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.fence import Tenure
from relay.adapters.jetstream.publish import REPLACES
from relay.adapters.jetstream.stream_probes import stuck_streams
from relay.adapters.spaces.bucket import Bucket, Kept, fence_of, stream_of
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.core.effects import StoreOwn, WriteMail
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from schemas.content.blobs import OBJECT, store
from schemas.objects.objects import ObjectKey
from schemas.values import subjects
from schemas.values.identity import mail_key
from schemas.values.wire import replace
from tests.awaiting import eventually
from tests.nats.conftest import Grove
from tests.nats.trio import NAMES, asked, client_at, trio

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(120)]

KEY, OTHER = (mail_key("P", "s", "d", name) for name in ("x", "y"))

KEPT = ObjectKey("", "configmaps", "default", "kept")


class NoChildren:
    """A server whose children do not matter."""

    async def add_child(self, name, nkey):
        pass

    async def remove_child(self, name):
        pass


async def always():
    """It holds the lease, or nothing is to be written down."""


def bus_of(members, member, token):
    address = BusAddress(
        members.url(member), members.seeds.relay, system_seed=members.seeds.system, replicas=3
    )
    return JetStreamBus(
        members.path,
        address,
        NoChildren(),
        clock=SystemClock(),
        dice=SystemDice(),
        tenure=Tenure(token, always, always),
    )


def mail(key, data=b"mail", expected=0):
    return WriteMail("q1", key, data, 1, bytes(32), True, "", expected)


def own(remembered):
    return {record.key: record.data for record in remembered.own}


async def test_nothing_of_a_deposed_member_lands_and_nothing_that_it_wrote_is_lost(tmp_path):
    value, unwanted = store(OBJECT, b"content"), store(OBJECT, b"unwanted")
    content, gone = value.reference.address, unwanted.reference.address
    async with Grove(tmp_path) as grove, trio(grove, tmp_path) as members:
        first, second = bus_of(members, "m1", "one"), bus_of(members, "m2", "two")
        assert own(await first.start()) == {}
        await first.write(blobs={**value.values, **unwanted.values})
        await first.write(own=[StoreOwn(KEY, b"1"), StoreOwn(OTHER, b"2")], mail=[mail(KEY)])
        await first.write(own=[StoreOwn(OTHER, None), StoreOwn("_note", b"n")])
        await first.drop_blobs([gone])

        remembered = await second.start()
        assert own(remembered) == {KEY: b"1", "_note": b"n"}
        assert remembered.blobs == {content}
        assert [slot.key for slot in remembered.mail] == [KEY]

        for late in (
            first.write(own=[StoreOwn(KEY, b"late")]),
            first.write(own=[StoreOwn("_new", b"late"), StoreOwn(KEY, None)]),
            first.write(own=[StoreOwn(f"_n{n}", b"late") for n in range(700)]),
            first.drop_blobs([content]),
        ):
            with pytest.raises(BusBroken, match="another member of this node is active"):
                await late
        await second.write(own=[StoreOwn(KEY, b"2")])
        await first.close()
        await second.close()

        third = bus_of(members, "m3", "three")
        remembered = await third.start()
        assert own(remembered) == {KEY: b"2", "_note": b"n"}
        assert remembered.blobs == {content}
        await third.close()


async def test_a_removal_erases_what_lay_there_and_spares_the_other_children(tmp_path):
    async with Grove(tmp_path) as grove, trio(grove, tmp_path) as members:
        bus = bus_of(members, "m1", "one")
        await bus.start()
        for child in ("q1", "q2"):
            await bus.add_child(child, "")
        letters = [
            replace(mail(key), child=child) for child in ("q1", "q2") for key in (KEY, OTHER)
        ]
        await bus.write(mail=letters)
        await bus.remove_child("q1")
        await bus.close()
        second = bus_of(members, "m2", "two")
        slots = (await second.start()).mail
        assert sorted((slot.child, slot.key) for slot in slots) == [
            ("q2", key) for key in sorted((KEY, OTHER))
        ]
        await second.close()


async def test_without_a_fence_late_writes_would_land(tmp_path, monkeypatch):
    async with Grove(tmp_path) as grove, trio(grove, tmp_path) as members:
        first, second = bus_of(members, "m1", "one"), bus_of(members, "m2", "two")
        await first.start()
        await second.start()
        monkeypatch.setattr(fence.Fence, "headers", {})
        await first.write(own=[StoreOwn(KEY, b"late")])
        await first.close()
        await second.close()
        third = bus_of(members, "m3", "three")
        assert own(await third.start()) == {KEY: b"late"}
        await third.close()


async def test_who_is_stopped_between_reading_a_fence_and_writing_it_takes_it_from_nobody(tmp_path):
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        AsyncExitStack() as stack,
    ):
        connection = Connection(members.url("m1"), members.seeds.relay, "m1", "_INBOX.fence")
        await connection.open()
        stack.push_async_callback(connection.close)
        bus = bus_of(members, "m1", "zero")
        await bus.start()
        await bus.close()
        subject, calls = subjects.fence(members.path, "OWN"), []

        async def confirm():
            calls.append(1)
            if len(calls) > 1:
                raise BusBroken("the lease is another's")
            # It was confirmed, and meanwhile another one became active.
            await fence.take_fence(
                connection, Tenure("two", always, always), "OWN", subject, replaces=True
            )

        stopped = Tenure("one", confirm, always)
        with pytest.raises(BusBroken, match="the lease is another's"):
            await fence.take_fence(connection, stopped, "OWN", subject, replaces=True)
        lies_there = await connection.api("STREAM.MSG.GET.OWN", last_by_subj=subject)
        assert b64decode(lies_there["message"]["data"]) == b"two"


async def test_a_run_that_ends_between_an_erasure_and_its_sweep_leaves_nothing(
    tmp_path, monkeypatch
):
    async def ends_before(*_):
        pass

    async with Grove(tmp_path) as grove, trio(grove, tmp_path) as members:
        first = bus_of(members, "m1", "one")
        await first.start()
        await first.write(own=[StoreOwn(KEY, b"1"), StoreOwn(OTHER, b"2")])
        with monkeypatch.context() as patched:
            patched.setattr(fence, "purge_through", ends_before)
            await first.write(own=[StoreOwn(OTHER, None)])
        await first.close()

        second = bus_of(members, "m2", "two")
        assert own(await second.start()) == {KEY: b"1"}
        await second.close()
        async with client_at(members.url(), members.seeds.relay) as client:
            state = (await asked(client, "STREAM.INFO.OWN"))["state"]
        # The record and the fence.
        assert state["messages"] == 2


async def test_a_space_takes_nothing_of_a_deposed_member(tmp_path):
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        AsyncExitStack() as stack,
    ):
        first = await space_of(members, "m1", "one", stack)
        await first.apply(config_map("kept"), "me")
        second = await space_of(members, "m2", "two", stack)
        with pytest.raises(SpaceError, match="another member of this node is active"):
            await first.apply(config_map("late"), "me")
        with pytest.raises(SpaceError, match="another member of this node is active"):
            await first.delete(KEPT)
        # Two writers of one member meet as they do elsewhere: one of them is there first.
        await asyncio.gather(*(second.apply(config_map("new", str(n)), "me") for n in range(8)))
        listing = await eventually(lambda: listed(second))
        assert [obj["metadata"]["name"] for obj in listing.objects] == ["kept", "new"]


async def listed(space):
    """Its ConfigMaps; None while its server is silent."""
    try:
        return await space.list("", "configmaps")
    except SpaceError as error:
        if error.reason != "ServiceUnavailable":
            raise
        return None


async def space_of(members, member, token, stack, probed=None):
    """The workload space as one member writes it."""
    connection = Connection(members.url(member), members.seeds.space, member, "_INBOX.fence")
    await connection.open()
    stack.push_async_callback(connection.close)
    await Bucket(connection.client, "workloads", "lc", Kept(3)).open()
    tenure, stream = Tenure(token, always, always), stream_of("workloads")
    found = await fence.take_fence(connection, tenure, stream, fence_of("workloads"), replaces=True)
    publisher = fence.FencedPublisher(connection, found, tenure)
    if probed is not None:
        probed[stream] = publisher
    kept = Kept(3, publisher)
    space = EmbeddedSpace(
        connection.client, "workloads", SystemClock(), SystemDice(), domain="lc", kept=kept
    )
    await space.open()
    return space


def config_map(name, value=""):
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value}}


async def test_a_stream_that_calls_itself_healthy_and_answers_no_write_is_found(
    tmp_path, monkeypatch
):
    for module in (fence, stream_probes):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 1.0)
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        AsyncExitStack() as stack,
    ):
        bus = bus_of(members, "m1", "one")
        await bus.start()
        probed, workloads = bus._fenced.tenure.probed, stream_of("workloads")
        space = await space_of(members, "m1", "one", stack, probed)
        await space.apply(config_map("kept"), "me")
        told_to, written_to = await space.revision(), await space._bucket.last_revision()
        sizes = [await size_of(members, stream) for stream in (workloads, "STAT")]
        for _ in range(2):
            assert await stuck_streams(probed) == {}
        assert [await size_of(members, stream) for stream in (workloads, "STAT")] == [
            sizes[0],
            sizes[1] + 1,
        ]
        # It was written to, of which who follows is not told, and waits for nothing.
        assert await space._bucket.last_revision() > written_to
        assert told_to.startswith(f"{written_to}.")
        assert (await space.revision()).startswith(f"{written_to}.")
        # What lies behind the fence is written as before, also if it was written without an answer.
        async with client_at(members.url("m1"), members.seeds.relay) as client:
            own_fence = subjects.fence(members.path, "OWN")
            await client.jetstream().publish(own_fence, b"one", headers=REPLACES)
        await bus.write(own=[StoreOwn(KEY, b"1")])
        await space.apply(config_map("kept", "new"), "me")
        stuck = {"OWN": await deafen(members, "OWN"), "STAT": await deafen(members, "STAT")}
        stuck[workloads] = await deafen(members, workloads)
        assert await stuck_streams(probed) == stuck
        await copies_are_looked_at(members, bus)
        await bus.close()


async def copies_are_looked_at(members, bus):
    """What a child brings up is found stuck, and not changed by that it is looked at."""
    await bus.open_copies("q1")
    async with client_at(members.url("m1"), members.seeds.relay) as client:
        await client.jetstream().publish(subjects.copy(members.path.child("q1"), "k"), b"copy")
        before = await asked(client, "STREAM.INFO.q1")
        looked_at = await bus._fenced.tenure.in_turn["copies"].next(())
        assert list(looked_at) == ["q1"]
        assert await stuck_streams(looked_at) == {}
        now = await asked(client, "STREAM.INFO.q1")
    for what in ("messages", "last_seq", "first_seq"):
        assert now["state"][what] == before["state"][what] > 0
    assert now["created"] == before["created"]
    leader = now["cluster"]["leader"].rpartition(".")[2]
    others = [members.servers[name].pid for name in NAMES if name != leader]
    async with client_at(members.url(leader), members.seeds.relay) as client:
        stream = stream_probes.CopiesStream(SimpleNamespace(client=client), "q1")
        assert await stream.is_answering()
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            # Nothing is agreed on any more, and the leader does not know yet.
            assert not await stream.is_answering()
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)


def seed_of(members, stream):
    return members.seeds.space if stream.startswith("KV_") else members.seeds.relay


async def size_of(members, stream):
    """How many messages it keeps."""
    async with client_at(members.url("m1"), seed_of(members, stream)) as client:
        return (await asked(client, f"STREAM.INFO.{stream}"))["state"]["messages"]


async def deafen(members, stream):
    """Have it answer no writes; the server that leads it."""
    async with client_at(members.url("m1"), seed_of(members, stream)) as client:
        told = await asked(client, f"STREAM.INFO.{stream}")
        await asked(client, f"STREAM.UPDATE.{stream}", **{**told["config"], "no_ack": True})
        return (await asked(client, f"STREAM.INFO.{stream}"))["cluster"]["leader"]
