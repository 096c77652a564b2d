"""Three servers of one node: one of them may be killed, and nothing that was acknowledged goes."""

import asyncio
import json
import os
import socket
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from itertools import count

import pytest
from nats.errors import NoRespondersError

from relay.adapters.asking import asking
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream import stream_reader
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.server_watch import ServerWatch
from relay.adapters.jetstream.stream_reader import StreamReader
from relay.adapters.server import nats_server
from relay.adapters.server.admin import cut_links
from relay.adapters.server.cluster_settings import RouteTls
from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.server.nats_config import Neighbours, ParentRemote
from relay.adapters.server.ports import free_port
from relay.adapters.server.process import ReloadRefused, ServerProcess
from relay.adapters.spaces import bucket
from relay.adapters.spaces.bucket import Kept
from relay.adapters.spaces.connection import space_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.adapters.tls.authority import Authority, new_key, signing_request
from relay.core.effects import StoreOwn, WriteMail
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from relay.space_port import Interests
from schemas.objects.objects import ObjectKey
from schemas.values.identity import MailKey, NodePath
from tests.awaiting import eventually
from tests.nats.conftest import links_of_server, new_nkey, new_seeds
from tests.nats.test_tls import NOW_MS, TREE
from tests.nats.trio import (
    NAMES,
    Trio,
    asked,
    client_at,
    cluster_settings,
    trio,
    until_led,
)

pytestmark = pytest.mark.nats
CLOCK, DICE = SystemClock(), SystemDice()
FOLLOWERS = 10
"""The server of each is drawn: at one alone they are once in 60,000 times."""


def bus_at(made: Trio, name: str) -> JetStreamBus:
    """The bus of the node as the process of this member opens it."""
    seeds = made.seeds
    address = BusAddress(made.url(name), seeds.relay, None, seeds.system, replicas=len(NAMES))
    return JetStreamBus(made.path, address, made.servers[name], clock=CLOCK, dice=DICE)


@asynccontextmanager
async def opened_bus(made: Trio, name: str):
    bus = bus_at(made, name)
    yield bus, await bus.start()
    await bus.close()


async def own_records(made: Trio, name: str) -> dict[str, bytes]:
    """What a process that starts at this member finds."""
    async with opened_bus(made, name) as (_, remembered):
        return {record.key: record.data for record in remembered.own}


async def test_each_server_may_be_killed_in_turn_and_nothing_acknowledged_is_lost(grove, tmp_path):
    acknowledged: dict[str, bytes] = {}
    async with grove, trio(grove, tmp_path) as made, asyncio.TaskGroup() as group:
        writing_at = {"name": "m1"}
        over = asyncio.Event()

        async def write_without_end():
            for number in count():
                if over.is_set():
                    return
                try:
                    async with opened_bus(made, writing_at["name"]) as (bus, _):
                        while not over.is_set():
                            key = f"k{number}-{len(acknowledged)}"
                            await bus.write(own=[StoreOwn(key, key.encode())])
                            acknowledged[key] = key.encode()
                except BusBroken:
                    continue

        writing = group.create_task(write_without_end())
        for name in NAMES:
            # Who writes does so at another member.
            writing_at["name"] = NAMES[NAMES.index(name) - 1]
            before = len(acknowledged)
            await eventually(lambda before=before: len(acknowledged) > before + 20)
            starts = made.servers[name].starts
            made.kill(name)
            await made.servers[name].next_start(starts)
            before = len(acknowledged)
            await eventually(lambda before=before: len(acknowledged) > before + 20)
        over.set()
        await writing
        for name in NAMES:
            found = await own_records(made, name)
            assert {key: found.get(key) for key in acknowledged} == acknowledged


async def test_streams_and_buckets_are_at_three_servers_and_consumers_at_one(grove, tmp_path):
    async with grove, AsyncExitStack() as stack:
        made = await stack.enter_async_context(trio(grove, tmp_path))
        bus, _ = await stack.enter_async_context(opened_bus(made, "m1"))
        await bus.add_child("e1", new_nkey()[1])
        await bus.open_copies("e1")
        connection = space_connection(made.url("m2"), made.seeds.space, "a space")
        client = await stack.enter_async_context(connection)
        await EmbeddedSpace(client, "workloads", CLOCK, DICE, domain="lc", kept=Kept(3)).open()
        relay = await stack.enter_async_context(client_at(made.url(), made.seeds.relay))
        space = await stack.enter_async_context(client_at(made.url(), made.seeds.space))
        for stream in ("OWN", "MAIL", "STAT", "BLOB", "DONE", "e1"):
            config = (await asked(relay, f"STREAM.INFO.{stream}"))["config"]
            assert (config["num_replicas"], config["allow_atomic"]) == (3, True), stream
        config = (await asked(space, "STREAM.INFO.KV_workloads"))["config"]
        assert (config["num_replicas"], config["allow_atomic"]) == (3, True)
        consumer = await asked(relay, "CONSUMER.INFO.MAIL.e1")
        assert consumer["config"]["num_replicas"] == 1


async def test_a_mailbox_is_made_anew_where_its_server_was_killed(grove, tmp_path):
    names = [f"e{number}" for number in range(9)]
    async with grove, AsyncExitStack() as stack:
        made = await stack.enter_async_context(trio(grove, tmp_path))
        bus, _ = await stack.enter_async_context(opened_bus(made, "m1"))
        async with client_at(made.url("m1"), made.seeds.relay) as relay:
            for name in names:
                await bus.add_child(name, new_nkey()[1])

            async def places(seconds: float = 1):
                found = [
                    await asked(relay, f"CONSUMER.INFO.MAIL.{name}", seconds) for name in names
                ]
                return dict(zip(names, found, strict=True))

            # Of a server that ends before it was seen nothing is told.
            watch = bus._servers
            await eventually(lambda: len(watch._seen.names) == len(NAMES), "not all are seen")
            before = await places(30)
            at = {name: before[name]["cluster"]["leader"].removeprefix("lc.") for name in names}
            # The servers are drawn, one for each; that of the bus stays.
            killed, _ = Counter(name for name in at.values() if name != "m1").most_common()[0]
            lost = [name for name in names if at[name] == killed]
            made.kill(killed)

            async def are_anew():
                try:
                    now = await places()
                except (TimeoutError, NoRespondersError):
                    return False
                anew = {n for n in names if now[n].get("created") != before[n]["created"]}
                return anew >= set(lost) and not any("error" in info for info in now.values())

            await eventually(are_anew, "the mailboxes of the killed server are not anew")


async def test_a_server_that_is_behind_is_waited_for(grove, tmp_path):
    """A reader whose consumer is at a follower reads what the leader acknowledged."""
    async with grove, trio(grove, tmp_path) as made, opened_bus(made, "m1") as (bus, _):
        connection = Connection(made.url("m2"), made.seeds.relay, "reader", "_INBOX.reader")
        await connection.open()
        for number in range(60):
            await bus.write(own=[StoreOwn(f"k{number}", b"x")])
            info = await connection.api("STREAM.INFO.OWN")
            last = info["state"]["last_seq"]
            found: list[int] = []

            async def take(stored, found=found):
                found.append(stored.sequence)

            await StreamReader(connection, CLOCK, "OWN", through=last).read_all(take)
            assert found[-1] == last
        await connection.close()


async def test_a_server_that_stays_behind_is_asked_by_another_consumer_and_that_is_said(
    grove, monkeypatch, caplog
):
    monkeypatch.setattr(stream_reader, "HEARTBEAT_SECONDS", 1)
    monkeypatch.setattr(stream_reader, "BEHIND_SECONDS", 0.0)
    seeds = new_seeds()
    async with grove, grove.server("/", seeds) as server, AsyncExitStack() as stack:
        connection = Connection(server.url, seeds.relay, "reader", "_INBOX.reader")
        await connection.open()
        stack.push_async_callback(connection.close)
        await connection.api("STREAM.CREATE.LOG", name="LOG", subjects=["log"])
        await connection.client.publish("log", b"one")
        group, found = await stack.enter_async_context(asyncio.TaskGroup()), list[bytes]()

        async def take(stored):
            found.append(stored.data)

        async def consumers() -> set[str]:
            return set((await connection.api("CONSUMER.NAMES.LOG"))["consumers"] or ())

        reader = StreamReader(connection, CLOCK, "LOG", through=2)
        reading = group.create_task(reader.read_all(take))
        await eventually(consumers, "nobody reads")
        first = await consumers()

        async def is_another() -> bool:
            return bool(await consumers() - first)

        await eventually(is_another, "no other consumer reads")
        said = "the server has 1 of 2 messages of the stream LOG"
        await eventually(lambda: said in caplog.text, caplog.text)
        await connection.client.publish("log", b"two")
        await reading
        assert found == [b"one", b"two"]


async def test_a_space_is_opened_once_its_servers_know_each_other(grove, tmp_path):
    made = Trio(NodePath(), new_seeds(), tmp_path, cluster_settings(tmp_path))
    async with grove, AsyncExitStack() as stack:
        for name in ("m1", "m2"):
            await stack.enter_async_context(made.server(grove, name))
        await until_led(made)
        connection = space_connection(made.url("m1"), made.seeds.space, "a space")
        client = await stack.enter_async_context(connection)
        space = EmbeddedSpace(client, "workloads", CLOCK, DICE, domain="lc", kept=Kept(3))

        async def is_refused() -> bool:
            return (await asked(client, "INFO"))["api"]["errors"] > before

        before = (await asked(client, "INFO"))["api"]["errors"]
        async with asyncio.TaskGroup() as group:
            group.create_task(space.open())
            # Two servers are too few for what lies at three.
            await eventually(is_refused, "it is not asked for")
            await stack.enter_async_context(made.server(grove, "m3"))
        assert (await asked(client, "STREAM.INFO.KV_workloads"))["config"]["num_replicas"] == 3


async def test_what_was_written_to_a_space_is_read_at_any_member(grove, tmp_path):
    async with grove, AsyncExitStack() as stack:
        made = await stack.enter_async_context(trio(grove, tmp_path))
        spaces = []
        for name in NAMES:
            connection = space_connection(made.url(name), made.seeds.space, name)
            client = await stack.enter_async_context(connection)
            space = EmbeddedSpace(client, "workloads", CLOCK, DICE, domain="lc", kept=Kept(3))
            await space.open()
            spaces.append(space)
        await spaces[0].apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, "me"
        )
        # Larger than a message: it lies in parts.
        large = os.urandom(700_000).hex()
        for number in range(40):
            name = f"c{number}"
            data = large if number == 0 else str(number)
            await spaces[number % 3].apply(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": "shop"},
                    "data": {"at": data},
                },
                "me",
            )
            for space in spaces:
                read = await space.get(ObjectKey("", "configmaps", "shop", name))
                assert read is not None
                assert read["data"]["at"] == data


async def test_who_follows_a_space_goes_on_when_another_members_server_ends(
    grove, tmp_path, monkeypatch
):
    """It follows by way of a consumer at any of the servers, which ends with that one."""
    monkeypatch.setattr(bucket, "SILENCE_SECONDS", 3600.0)
    monkeypatch.setattr(bucket, "SILENCE_LOOKS", 36_000)
    async with grove, AsyncExitStack() as stack:
        made = await stack.enter_async_context(trio(grove, tmp_path))
        system = Connection(made.url("m1"), made.seeds.system, "system", "_INBOX.system")
        await system.open()
        stack.push_async_callback(system.close)
        connection = space_connection(made.url("m1"), made.seeds.space, "a space")
        client = await stack.enter_async_context(connection)
        watch = ServerWatch(system, CLOCK, len(NAMES))
        watch.when_ended.append(client.servers_ended)
        await watch.start()
        space = EmbeddedSpace(client, "workloads", CLOCK, DICE, domain="lc", kept=Kept(3))
        await space.open()
        seen: dict[int, set[str]] = {}

        async def follow(number: int) -> None:
            seen[number] = set()

            async def tell(event: object) -> None:
                seen[number].add(str(event))

            await space.follow(Interests(None), tell)

        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(watch.run())]
        tasks += [group.create_task(follow(number)) for number in range(FOLLOWERS)]

        async def followers() -> set[str]:
            """The members at whose servers one of them has its consumer."""
            listed = (await asked(client, "CONSUMER.LIST.KV_workloads")).get("consumers") or ()
            found = [(each.get("cluster") or {}).get("leader", "") for each in listed]
            is_whole = len(found) == FOLLOWERS and all(found)
            return {name.removeprefix("lc.") for name in found} if is_whole else set()

        # Of a server that ends before it was seen nothing is told.
        await eventually(lambda: len(watch._seen.names) == len(NAMES))
        at = await eventually(followers, "not all follow")
        made.kill(max(at - {"m1"}))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}}

        async def is_written() -> bool:
            try:
                await space.apply(namespace, "me")
            except SpaceError:
                return False
            return True

        await eventually(is_written, "nothing is written")
        await eventually(
            lambda: all("later" in str(events) for events in seen.values()),
            "not all hear of what was written",
        )
        for task in tasks:
            task.cancel()


async def test_all_three_may_end_at_once_and_all_is_there(grove, tmp_path):
    async with grove, trio(grove, tmp_path) as made:
        async with opened_bus(made, "m1") as (bus, _):
            mail = WriteMail("e1", MailKey("k"), b"x", 1, b"", has_body=False, trace="", expected=0)
            await bus.write(own=[StoreOwn("a", b"kept")], mail=[mail])
        starts = {name: made.servers[name].starts for name in NAMES}
        for name in NAMES:
            made.kill(name)
        for name in NAMES:
            await made.servers[name].next_start(starts[name])
        await until_led(made)
        async with opened_bus(made, "m3") as (_, remembered):
            assert [(record.key, record.data) for record in remembered.own] == [("a", b"kept")]
            assert [slot.child for slot in remembered.mail] == ["e1"]


async def test_only_the_authority_of_the_members_opens_a_route(grove, tmp_path):
    """A certificate of the tree's, with the right password, gets no further than TLS."""
    own = Authority.make("members of /", NOW_MS)

    def tls(name: str, authority: Authority) -> RouteTls:
        folder = tmp_path / f"{name}-tls"
        folder.mkdir()
        key = new_key()
        files = TlsFiles(folder / "certificate.pem", folder / "key.pem")
        files.key.write_text(key)
        files.certificate.write_text(
            authority.issue(signing_request(key, ("127.0.0.1",)), NOW_MS, None)
        )
        (folder / "authorities.pem").write_text(own.certificate)
        return RouteTls(files, folder / "authorities.pem")

    settings = cluster_settings(tmp_path, tls=tls("good", own))
    settings["m3"] = replace(settings["m3"], tls=tls("strange", TREE))
    made = Trio(NodePath(), new_seeds(), tmp_path, settings)
    async with grove, AsyncExitStack() as stack:
        for name in NAMES:
            await stack.enter_async_context(made.server(grove, name))
        refused = "certificate signed by unknown authority"
        log = made.servers["m1"]
        await eventually(lambda: any(refused in line for line in log.log), lambda: str(log.log))

        async def routes(name: str) -> set[str]:
            async with client_at(made.url(name), made.seeds.system) as system:
                verb = f"$SYS.REQ.SERVER.{system._server_info['server_id']}.ROUTEZ"
                answer = json.loads((await system.request(verb, timeout=10)).data)
            return {route["remote_name"] for route in answer["data"].get("routes") or ()}

        assert await eventually(lambda: routes("m1")) == {"lc.m2"}
        assert await routes("m3") == set()


async def test_a_relay_of_three_servers_hears_its_parent_once(grove, tmp_path):
    """Three links of one child, one client that listens: each delivery comes once."""
    async with grove:
        centre = await grove.plant()
        seed, nkey = new_nkey()
        await centre.server.add_child("r1", nkey)
        link = ParentRemote((centre.server.leaf_url,), seed)
        async with (
            trio(grove, tmp_path / "r1", "/r1", link) as made,
            client_at(made.url("m2"), made.seeds.uplink) as uplink,
        ):
            heard: list[bytes] = []

            async def take(message):
                heard.append(message.data)

            await uplink.subscribe("lc._d.r1.m", cb=take)
            await uplink.flush()
            relay = await grove.connect(centre, centre.seeds.relay)

            async def is_heard():
                await relay.publish("lc._d.r1.m", b"beat")
                await relay.flush()
                return heard

            await eventually(is_heard)
            heard.clear()
            for number in range(20):
                await relay.publish("lc._d.r1.m", b"%d" % number)
            await relay.publish("lc._d.r1.m", b"last")
            await eventually(lambda: b"last" in heard)
            numbered = [data for data in heard if data.isdigit()]
            assert numbered == [b"%d" % number for number in range(20)]


async def test_a_node_goes_on_by_another_members_link_when_its_own_is_gone(grove, tmp_path):
    """The process is at m2, whose server has no link; those of the others stand."""
    async with grove, AsyncExitStack() as stack:
        centre = await grove.plant()
        seed, nkey = new_nkey()
        below = JetStreamBus(
            centre.path,
            BusAddress(centre.server.url, centre.seeds.relay, None, centre.seeds.system),
            centre.server,
            clock=CLOCK,
            dice=DICE,
        )
        await below.start()
        stack.push_async_callback(below.close)
        await below.add_child("r1", nkey)
        link = ParentRemote((centre.server.leaf_url,), seed)
        folder = tmp_path / "r1"
        made = Trio(NodePath.parse("/r1"), new_seeds(), folder, cluster_settings(folder))
        for name in NAMES:
            # The way of the second server leads nowhere.
            dead = ParentRemote((f"nats://127.0.0.1:{free_port(tmp_path, 9)}",), seed)
            server = made.server(grove, name, dead if name == "m2" else link)
            await stack.enter_async_context(server)
        await until_led(made)
        seeds, others = made.seeds, (made.url("m1"), made.url("m3"))
        address = BusAddress(
            made.url("m2"), seeds.relay, seeds.uplink, seeds.system, len(NAMES), others
        )
        bus = JetStreamBus(made.path, address, made.servers["m2"], clock=CLOCK, dice=DICE)
        await bus.start()
        stack.push_async_callback(bus.close)
        await eventually(lambda: bus.linked, "no member's link is found")
        assert await bus.send_hello(b"beat")


@pytest.mark.parametrize("first", ["is gone", "is frozen"])
async def test_a_command_asks_at_a_member_that_runs(grove, tmp_path, first):
    async with grove, trio(grove, tmp_path) as made, AsyncExitStack() as stack:
        port = free_port(tmp_path, 9)
        if first == "is frozen":
            # Its system takes connections, and it says nothing.
            silent = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            port = silent.getsockname()[1]
        dead = f"nats://127.0.0.1:{port}"
        async with client_at(made.url("m3"), made.seeds.space) as client:

            async def answer(message):
                await message.respond(b"here")

            await client.subscribe("leafcast.api.*", cb=answer)
            await client.flush()
            url = f"{dead},{made.url('m1')}"
            async with asking(url, made.seeds.commands, "a command") as connection:
                assert await connection.ask("leafcast.api.tree", b"", 30) == b"here"


async def test_a_member_that_stands_by_cuts_the_link_of_a_key_that_was_revoked(
    grove, tmp_path, monkeypatch
):
    """It hears of that by the node's state, and its server would leave the link open, only deaf."""
    async with grove, AsyncExitStack() as stack:
        made = await stack.enter_async_context(trio(grove, tmp_path))
        (seed, nkey), server = new_nkey(), made.servers["m2"]
        let_in = Neighbours(children={"e1": nkey}, cluster=made.settings["m2"])
        await server.become(let_in)
        link = ParentRemote((server.leaf_url,), seed)
        await stack.enter_async_context(grove.server("/e1", parent=link))

        async def links() -> int:
            return await links_of(made, "m2", "e1")

        await eventually(links, "the child is not linked")
        revoked, times = replace(let_in, children={"e1": ""}), count()

        async def cut_at_the_second_time(*asked: object) -> None:
            if not next(times):
                raise NoRespondersError
            await cut_links(*asked)

        monkeypatch.setattr(nats_server, "CUT_AGAIN_SECONDS", 3600.0)
        monkeypatch.setattr(nats_server, "cut_links", cut_at_the_second_time)
        with pytest.raises(BusBroken, match="does not say that it cut the links of e1"):
            await server.become(revoked)
        assert await links() == 1
        await server.become(revoked)
        assert await links() == 0


async def links_of(made: Trio, name: str, child: str) -> int:
    """How many links of a child a member's server has."""
    async with client_at(made.url(name), made.seeds.system) as system:
        return len(await links_of_server(system, child))


async def test_a_link_that_could_not_be_cut_is_cut_later_by_itself(grove, tmp_path, monkeypatch):
    (seed, nkey), times, is_cut = new_nkey(), count(), asyncio.Event()

    async def cut_at_the_third_time(*asked: object) -> None:
        if next(times) < 2:
            raise NoRespondersError
        await cut_links(*asked)
        is_cut.set()

    monkeypatch.setattr(nats_server, "CUT_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(nats_server, "cut_links", cut_at_the_third_time)
    async with grove, AsyncExitStack() as stack:
        parent = await stack.enter_async_context(grove.server("/"))
        await parent.add_child("e1", nkey)
        link = ParentRemote((parent.leaf_url,), seed)
        await stack.enter_async_context(grove.server("/e1", parent=link))
        with pytest.raises(BusBroken, match="does not say that it cut the links of e1"):
            await parent.remove_child("e1")
        await asyncio.wait_for(is_cut.wait(), 30)


async def test_a_server_that_refused_its_neighbours_is_asked_again(grove, tmp_path, monkeypatch):
    nkey, times = new_nkey()[1], count()
    reload = ServerProcess.reload

    async def refused_once(process: ServerProcess) -> bool:
        if not next(times):
            raise ReloadRefused("refused", [])
        return await reload(process)

    async with grove, grove.server("/") as server:
        before = server.served
        monkeypatch.setattr(ServerProcess, "reload", refused_once)
        wanted = Neighbours(children={"e1": nkey})
        with pytest.raises(ReloadRefused):
            await server.become(wanted)
        assert server.served == before
        await server.become(wanted)
        assert server.served != before
