"""The lease on real servers: taken, renewed, confirmed, given back, and held over elections."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from relay.adapters.clock import SystemClock
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.lease_stream import LeaseKeeper, LeaseStream
from relay.adapters.jetstream.member_presence import MemberPresence
from relay.members.lease import LeaseSeen, MemberLease
from relay.ports import BusBroken
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.memory_tree import LeapingClock
from tests.nats.conftest import Grove, new_seeds
from tests.nats.trio import NAMES, Trio, asked, client_at, cluster_settings, trio, until_led

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(120)]

CLOCK, PATH = SystemClock(), NodePath()
ELECTION_SECONDS = 12.0


@asynccontextmanager
async def connection_to(url, seed, name="test"):
    connection = Connection(url, seed, name, "_INBOX.test")
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def lease_alone(tmp_path):
    """A stream of leases at one server, in which a lease was given back."""
    async with Grove(tmp_path) as grove:
        node = await grove.plant()
        async with connection_to(node.server.url, node.seeds.relay) as connection:
            stream = LeaseStream(connection, PATH, 1)
            await given_back(stream)
            yield connection, stream


async def given_back(stream):
    """Have a lease lie there that may be taken at once."""
    first = MemberLease("m0", "run-0")
    await eventually(lambda: looked(stream, first))
    assert isinstance(await stream.put(first.write(0.0)), int)
    mark = await stream.look()
    first.saw(mark, 0.0)
    for second in range(1, 10):
        first.saw(mark, float(second))
    write = first.write(9.0)
    first.written(write, await stream.put(write), 9.0)
    await stream.put(first.give_back())


async def looked(stream, lease):
    seen = await stream.look()
    if seen is not None:
        lease.saw(seen, 0.0)
    return seen is not None


def keeper_of(stream, member, hindered=lambda: ""):
    return LeaseKeeper(stream, MemberLease(member, f"run-of-{member}"), CLOCK, hindered)


async def test_one_of_two_takes_what_was_given_back_and_gives_it_to_the_other(tmp_path):
    async with lease_alone(tmp_path) as (_, stream):
        keepers = [keeper_of(stream, name) for name in ("m1", "m2")]
        taking = {asyncio.create_task(it.take()): it for it in keepers}
        done, waiting = await asyncio.wait(taking, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        holder = taking[done.pop()]
        keeping = asyncio.create_task(holder.keep())
        await holder.confirm()
        keeping.cancel()
        await asyncio.wait([keeping])
        await holder.give_back()
        await waiting.pop()
        with pytest.raises(BusBroken, match="does not hold the lease"):
            await holder.confirm()


async def test_a_renewal_after_another_took_it_ends_the_hold(tmp_path):
    async with lease_alone(tmp_path) as (_, stream):
        first, second = keeper_of(stream, "m1"), MemberLease("m2", "run-of-m2")
        await first.take()
        # As if the first had been silent for long, by the clock of the second.
        seen = await stream.look()
        for second_now in range(10):
            second.saw(seen, float(second_now))
        write = second.write(10.0)
        assert isinstance(await stream.put(write), int)
        await asyncio.wait_for(first.keep(), ELECTION_SECONDS)
        assert not first.lease.holds(CLOCK.now().seconds)


async def test_who_is_hindered_leaves_it_to_others(tmp_path):
    async with lease_alone(tmp_path) as (_, stream):
        hindered = keeper_of(stream, "m1", lambda: "its clock is wrong")
        taking = asyncio.create_task(hindered.take())
        await keeper_of(stream, "m2").take()
        assert not taking.done()
        taking.cancel()


async def test_a_stream_that_lost_its_memory_is_marked_anew(tmp_path):
    async with lease_alone(tmp_path) as (connection, stream):
        holder = keeper_of(stream, "m1")
        await holder.take()
        await connection.api("STREAM.DELETE.LEASE")
        await asyncio.wait_for(holder.keep(), ELECTION_SECONDS)
        # The first look that finds no stream makes one.
        await eventually(stream.look)
        assert await stream.look() == LeaseSeen()


async def test_a_member_whose_clock_is_off_hears_of_it_from_the_others(tmp_path):
    async with Grove(tmp_path) as grove:
        node = await grove.plant()
        clocks = {name: LeapingClock() for name in ("m1", "m2", "m3")}
        clocks["m2"].wall_ahead = 3600.0
        async with connection_to(node.server.url, node.seeds.relay) as connection:
            members = {
                name: MemberPresence(connection, PATH, name, clock, lambda: {"role": "standby"})
                for name, clock in clocks.items()
            }
            for presence in members.values():
                await presence.start()
            comparing = [asyncio.create_task(it.compare_clocks()) for it in members.values()]
            await eventually(lambda: "3600 s ahead" in members["m2"].clock_trouble())
            assert members["m1"].clock_trouble() == ""
            assert {name: its["role"] for name, its in (await members["m3"].look()).items()} == (
                dict.fromkeys(clocks, "standby")
            )
            for task in comparing:
                task.cancel()


async def test_nobody_takes_it_from_a_holder_who_waits_for_an_election(tmp_path):
    """An election takes 4 to 9 s, and a lease is good for 6: a healthy holder may have to stop."""
    async with Grove(tmp_path) as grove, trio(grove, tmp_path) as members:
        url, seed = members.url, members.seeds.relay
        async with (
            connection_to(url("m1"), seed) as first,
            connection_to(url("m2"), seed) as second,
            client_at(url("m1"), seed) as client,
        ):
            streams = LeaseStream(first, PATH, 3), LeaseStream(second, PATH, 3)
            await given_back(streams[0])
            holder, other = keeper_of(streams[0], "m1"), keeper_of(streams[1], "m2")
            await holder.take()
            keeping = asyncio.create_task(holder.keep())
            taking = asyncio.create_task(other.take())

            async def leads_elsewhere():
                leader = (await asked(client, "STREAM.INFO.LEASE"))["cluster"]["leader"]
                if leader.endswith("m1"):
                    await asked(client, "STREAM.LEADER.STEPDOWN.LEASE")
                    return ""
                return leader.rpartition(".")[2]

            # What has a leader is left as it is.
            await streams[1].mend()
            assert await streams[1].look()
            await eventually(leads_elsewhere)
            members.kill(await leads_elsewhere())
            await asyncio.wait([keeping, taking], timeout=ELECTION_SECONDS)
            assert keeping.done() or not taking.done()
            for task in (keeping, taking):
                task.cancel()


@pytest.mark.long
async def test_a_lease_that_two_members_elect_no_leader_of_is_made_anew(tmp_path):
    members = Trio(PATH, new_seeds(), tmp_path, cluster_settings(tmp_path))
    async with Grove(tmp_path) as grove, AsyncExitStack() as stack:
        ends = {}
        for name in NAMES:
            ends[name] = await stack.enter_async_context(AsyncExitStack())
            await ends[name].enter_async_context(members.server(grove, name))
        await until_led(members)
        relay = connection_to(members.url("m2"), members.seeds.relay)
        stream = LeaseStream(await stack.enter_async_context(relay), PATH, 3)
        await given_back(stream)
        # One comes back with an empty memory, and another goes before it has caught up.
        await ends["m1"].aclose()
        await ends["m1"].enter_async_context(members.server(grove, "m1"))
        await ends["m3"].aclose()
        await asyncio.wait_for(keeper_of(stream, "m2").take(), 60)
