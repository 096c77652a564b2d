"""The lease on real servers: taken, renewed, confirmed, given back, and held over elections."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from nats.errors import Error as NatsError

from relay.adapters.clock import SystemClock
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.lease_stream import UNANSWERED_SECONDS, LeaseKeeper, LeaseStream
from relay.adapters.jetstream.member_presence import ACTIVE, HEARD, ROLE, MemberPresence
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


class CountingStream(LeaseStream):
    """A stream that counts how often the lease is written."""

    puts = 0

    async def put(self, write):
        self.puts += 1
        return await super().put(write)


class Hindered(MemberPresence):
    """One of a member whose clock is wrong."""

    def clock_trouble(self):
        return "its clock is wrong"


def keeper_of(stream, member, presence=MemberPresence):
    """One that says what a member says of itself, once its presence is started."""
    lease = MemberLease(member, f"run-of-{member}")

    def facts():
        now = CLOCK.now().seconds
        if lease.holds(now):
            return {ROLE: ACTIVE}
        return {HEARD: now - lease.heard_at if lease.heard_at > 0 else None}

    said = presence(stream._connection, PATH, member, CLOCK, facts)
    return LeaseKeeper(stream, lease, CLOCK, said)


async def confirmed_always(keeper):
    while True:
        await keeper.confirm()


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
        hindered = keeper_of(stream, "m1", Hindered)
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


async def test_without_a_leader_a_renewal_that_is_wanted_is_not_sent_without_a_pause(tmp_path):
    async with lease_alone(tmp_path) as (connection, _):
        counting = CountingStream(connection, PATH, 1)
        holder = keeper_of(counting, "m1")
        await holder.take()
        await connection.api("STREAM.DELETE.LEASE")
        counting.puts, began = 0, CLOCK.now().seconds
        keeping = asyncio.create_task(holder.keep())
        with pytest.raises(BusBroken, match="lease"):
            await confirmed_always(holder)
        await keeping
        passed = CLOCK.now().seconds - began
        assert 1 < counting.puts <= 1 + passed / UNANSWERED_SECONDS


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.long)])
async def test_the_end_of_the_server_that_leads_it_elsewhere_costs_no_holder_the_lease(
    tmp_path, kills
):
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        AsyncExitStack() as stack,
    ):
        keepers = []
        for name in NAMES:
            way = connection_to(members.url(name), members.seeds.relay)
            stream = LeaseStream(await stack.enter_async_context(way), PATH, 3)
            if not keepers:
                await given_back(stream)
            keepers.append(keeper_of(stream, name))
            await keepers[-1]._presence.start()
        holder, *others = keepers
        await holder.take()
        client = await stack.enter_async_context(client_at(members.url("m1"), members.seeds.relay))
        tasks = [asyncio.create_task(holder.keep())]
        tasks += [asyncio.create_task(other.take()) for other in others]
        # What has a leader is left as it is.
        await others[0]._stream.mend()
        # A busy server may leave a look unanswered, and one that made it anew would find no holder.
        seen = await eventually(others[0]._stream.look)
        assert (seen.note.member, seen.note.run) == ("m1", "run-of-m1")
        for number in range(kills):
            leader = await until_led_elsewhere(client, members, NAMES[1 + number % 2])
            before = holder.lease._confirmed_at
            members.kill(leader)
            await eventually(lambda before=before: holder.lease._confirmed_at > before + 3)
            assert [task for task in tasks if task.done()] == []
        for task in tasks:
            task.cancel()


async def test_a_lease_that_two_members_keep_is_kept_at_all_three_once_the_third_is_there(tmp_path):
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        client_at(members.url("m1"), members.seeds.relay) as client,
        connection_to(members.url("m1"), members.seeds.relay) as relay,
    ):
        two = LeaseStream(relay, PATH, 2)
        await given_back(two)

        async def replicas():
            return (await asked(client, "STREAM.INFO.LEASE", 1))["config"]["num_replicas"]

        assert await replicas() == 2
        await two.widen()
        assert await replicas() == 2
        await LeaseStream(relay, PATH, 3).widen()
        assert await replicas() == 3


async def until_led_elsewhere(client, members, name):
    """Wait until all three have the lease, and have this member's server lead it; its name."""

    async def is_led_there():
        # A server that was killed may not be back yet, and a busy one answers late.
        with suppress(NatsError, OSError, KeyError):
            return await led_there()
        return False

    async def led_there():
        cluster = (await asked(client, "STREAM.INFO.LEASE", 1))["cluster"]
        if not all(its["current"] and not its.get("offline") for its in cluster["replicas"]):
            return False
        for each in NAMES:
            if not await has_caught_up(members, each):
                return False
        leader = cluster.get("leader", "")
        servers = [leader, *(its["name"] for its in cluster["replicas"])]
        wanted = next(server for server in servers if server.endswith(name))
        if leader and leader != wanted:
            await asked(client, "STREAM.LEADER.STEPDOWN.LEASE", placement={"preferred": wanted})
        return leader == wanted

    await eventually(is_led_there, f"the server of {name} does not lead")
    return name


async def has_caught_up(members, name):
    """Whether the memory of a member's server has the lease, by what that server says."""
    want = {"accounts": True, "streams": True}
    async with client_at(members.url(name), members.seeds.system) as system:
        verb = f"$SYS.REQ.SERVER.{system._server_info['server_id']}.JSZ"
        answer = await system.request(verb, json.dumps(want).encode(), timeout=10)
    accounts = json.loads(answer.data)["data"].get("account_details") or ()
    streams = [its for account in accounts for its in account.get("stream_detail") or ()]
    return any(its["name"] == "LEASE" and its["state"]["messages"] for its in streams)


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
