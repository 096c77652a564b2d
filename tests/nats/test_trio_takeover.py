"""A centre of three members: whichever of it dies or stops, what was acknowledged is kept."""

import asyncio
import json
import re
import signal
from contextlib import suppress
from itertools import product

import pytest
from nats.js.errors import NotFoundError

from leafcast.ask import session
from leafcast.members.settings import FILE
from relay.adapters.server.ports import free_port
from relay.adapters.spaces.bucket import fence_of, stream_of
from schemas.values import subjects
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.nats.chaos_member import GOES_ON, until
from tests.nats.chaos_stops import BATCH, ERASURE, RELOAD
from tests.nats.trio_changes import EDGE, changing_tree
from tests.nats.trio_leaders import LINK, META, arrange, hang
from tests.nats.trio_tree import TrioTree, daemon_log

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

# Whether each is at the active member: the leader of the lease, the ledger, the cluster; the link.
AWAY, AT_HOME = (False,) * 4, (True,) * 4
MIXED = [its for its in product((True, False), repeat=4) if its not in (AWAY, AT_HOME)][::2]
"""Every other one of them: each takes half a minute."""
MORE = pytest.param([AWAY, *MIXED], marks=pytest.mark.long)


@pytest.mark.parametrize("arrangements", [[AT_HOME], MORE])
@pytest.mark.timeout(900)
async def test_a_lost_machine_is_followed_wherever_leaders_and_links_were(tmp_path, arrangements):
    async with changing_tree(tmp_path) as (tree, applies):
        for at_active in arrangements:
            active = tree.active()
            other = min(tree.centres.keys() - {active})
            whats = ("LEASE", "OWN", META, LINK)
            where = {
                what: active if is_here else other
                for what, is_here in zip(whats, at_active, strict=True)
            }
            try:
                await arrange(tree, where, EDGE.strip("/"))
                await machine_is_lost(tree, applies, active)
            except AssertionError as error:
                error.add_note(f"{active} was active, and each was at: {where}")
                raise


async def machine_is_lost(tree, applies, name):
    """Kill a member and its server at once, and have it come back to stand by."""
    member = tree.centres[name]
    member.strike_machine()
    await tree.until_active(beside=name)
    await applies.more(3)
    await member.ended()
    member.start()
    await until(lambda: tree.stands_by(name), lambda: str(tree.said()))
    await applies.more(3)


@pytest.mark.long
async def test_the_server_of_a_standby_is_killed_and_nobody_takes_over_then_that_of_the_active_one(
    tmp_path,
):
    async with changing_tree(tmp_path) as (tree, applies):
        active = tree.active()
        standby = min(tree.centres.keys() - {active})
        tree.centres[standby].strike_server()
        await applies.more(20)
        assert await tree.until_active() == active
        tree.centres[active].strike_server()
        await applies.more(5)


@pytest.mark.long
async def test_without_an_active_member_nothing_is_accepted_and_that_is_said(tmp_path, monkeypatch):
    # A command says so after 5 s, and not after 15.
    monkeypatch.setattr(session, "CALL_SECONDS", 5.0)
    tree = TrioTree(tmp_path)
    try:
        await tree.start()
        # One of three cannot become active.
        async with asyncio.TaskGroup() as group:
            for name in ("m1", "m3"):
                group.create_task(tree.centres[name].stop())
        said = r"^no member is active since \d+ s; accepted: nothing"
        await until(lambda: matches(said, tree), lambda: str(tree.said()))
        await tree.restart("m1", "m3")
        await tree.serving()
        # As where machines lose their power: the routes to them stay open, and take what is sent.
        others = [tree.centres[name] for name in ("m1", "m3")]
        for member in others:
            member.kill(signal.SIGSTOP)
            member.strike_server(signal.SIGSTOP)
        tree.cut_off = {"m1", "m3"}
        try:
            await until(lambda: matches(said, tree), lambda: str(tree.said()))
        finally:
            for member in others:
                member.strike_server(signal.SIGCONT)
                member.kill(signal.SIGCONT)
        tree.cut_off = set()
        await tree.serving()
    finally:
        await tree.close()


async def matches(said, tree):
    """Whether the tree refuses what is asked, and says so."""
    try:
        return re.match(said, await tree.refused("tree")) is not None
    except AssertionError:
        return False  # Of the last two one may have become active for a moment.


@pytest.mark.long
async def test_a_member_that_reaches_no_other_sends_the_children_at_its_door_to_them(tmp_path):
    tree = TrioTree(tmp_path, {"leafcast.members.member.LONE_SECONDS": 12.0})
    try:
        await tree.start()
        await tree.join(EDGE)
        await tree.place("web")
        await tree.put("web", first="1")
        await tree.exact([EDGE])
        lone, active = tree.centres["m2"], await tree.until_active()
        await lone.stop()
        file = lone.folder / FILE
        form = json.loads(file.read_text())
        # The others dial it, and are told another password.
        dead = [f"127.0.0.1:{free_port(tmp_path, 7 + number)}" for number in range(2)]
        file.write_text(json.dumps({**form, "routes": dead, "password": "q" * 32}))
        lone.start()
        await hang(tree, EDGE.strip("/"), "m2")
        if active == "m2":
            await tree.until_active(beside="m2")
        await tree.put("web", second="2")
        await tree.exact([EDGE])
        # The edge may have left it before, as nobody answered there.
        await eventually(lambda: "closed its door to children" in daemon_log(lone))
    finally:
        await tree.close()


async def is_probed(member):
    """Wait until each stream that the active member writes to was written to, to look at it."""
    relay, spaces = ("OWN", "BLOB", "MAIL", "STAT", "STATE"), ("workloads", "inventory")
    places = [("relay", it, subjects.fence(NodePath(), it)) for it in relay]
    places += [("space", stream_of(it), fence_of(it)) for it in spaces]

    async def lie_at():
        found = {}
        for account, stream, fence in places:
            async with member.client(account) as client:
                with suppress(NotFoundError):
                    found[stream] = (await client.jetstream().get_last_msg(stream, fence)).seq
        return found

    before = await lie_at()

    async def moved():
        now = await lie_at()
        return len(now) == len(places) and all(now[it] > before.get(it, 0) for it in now)

    await eventually(moved, "a stream is not looked at", every=0.5)


@pytest.mark.long
async def test_two_that_are_started_after_all_ended_go_on_without_the_third(tmp_path):
    tree = TrioTree(tmp_path, {"leafcast.members.member.PROBE_SECONDS": 1.0})
    try:
        await tree.start()
        for member in tree.centres.values():
            await member.stop()
        tree.cut_off.add("m2")
        await tree.restart("m1", "m3")
        await tree.serving()

        async def lease_servers():
            async with tree.centres["m1"].client("relay") as client:
                info = await client.jetstream().stream_info("LEASE")
            return 1 + len(info.cluster.replicas)

        assert await lease_servers() == 2
        await tree.restart("m2")

        async def is_at_all():
            return await lease_servers() == 3

        await is_probed(tree.centres["m1"])
        await eventually(is_at_all, "the lease stays at two servers", every=0.5)
    finally:
        await tree.close()


@pytest.mark.long
async def test_what_a_dead_member_handed_out_and_changed_is_good_at_the_next_one(tmp_path):
    async with changing_tree(tmp_path) as (tree, applies):
        for what in ("signing", "root", "signing"):
            token = await tree.invite(f"/new-{what}-{len(applies.attempted)}")
            assert (await tree.call("keys-change", what=what))["request"] is None
            first = tree.active()
            # At once: nothing but what was answered is known to anyone.
            tree.centres[first].kill()
            await tree.until_active(beside=first)
            tree.centres[first].start()
            path = "/" + token.name.rpartition("-")[0]
            member = tree.joined_with(path, token)
            await until(lambda its=member: "is in session" in its.said, lambda its=member: its.said)
            await member.stop()
            await until(lambda first=first: tree.stands_by(first), lambda: str(tree.said()))


async def a_record_is_erased(tree):
    """That of a placement that selects no object, and is withdrawn."""
    await tree.place("empty")
    await tree.counted("empty", synced=1)
    await tree.withdraw("empty")


@pytest.mark.parametrize(
    "points", [[BATCH], pytest.param([ERASURE, RELOAD], marks=pytest.mark.long)]
)
async def test_a_member_that_stops_at_a_point_and_goes_on_later_changes_nothing(tmp_path, points):
    async with changing_tree(tmp_path) as (tree, applies):
        for number, point in enumerate(points):
            await stops_and_goes_on(tree, applies, point, number)


async def stops_and_goes_on(tree, applies, point, number):
    """Have the active member stop at a point, and go on once others undid what it was about."""
    spare, gone = f"/spare-{number}", f"/gone-{number}"
    for path in (spare, gone):
        member = await tree.join(path, labels={})
        await until(lambda its=member: "is in session" in its.said, lambda its=member: its.said)
    first = tree.active()
    async with asyncio.TaskGroup() as group:
        if point == RELOAD:
            group.create_task(tree.join("/late"))
        elif point == ERASURE:
            group.create_task(a_record_is_erased(tree))
        await tree.stopped_at(first, point)
        await tree.until_active(beside=first)
        await applies.more(5)
        revoked = await tree.call("node-revoke", path=spare)
        assert (revoked["cut"], revoked["unconfirmed"]) == (True, [first])
        removed = await tree.call("node-remove", path=gone, force=True)
        assert (removed["removed"], removed["unconfirmed"]) == ([gone], [first])
        tree.centres[first].kill(GOES_ON)
        await until(lambda: tree.stands_by(first), lambda: str(tree.said()))
        await applies.more(5)
    revoked = await tree.call("node-revoke", path=spare)
    assert (revoked["cut"], revoked["unconfirmed"]) == (True, [])
    if point == RELOAD:
        late = tree.members["/late"]
        await until(lambda: "is in session" in late.said, lambda: late.said)


async def test_a_member_that_cannot_open_the_state_says_so_and_leaves_it_to_others(tmp_path):
    tree = TrioTree(tmp_path)
    try:
        await tree.start()
        standby = min(tree.centres.keys() - {tree.active()})
        await tree.centres[standby].stop()
        file = tree.centres[standby].folder / FILE
        form = json.loads(file.read_text())
        file.write_text(json.dumps({**form, "key": "07" * 32}))
        await tree.restart(standby)
        said = f"member {standby} cannot open"
        await until(lambda: said in tree.said()[standby], lambda: str(tree.said()))
        assert await tree.until_active(beside=standby)
        assert not tree.is_active(standby)
    finally:
        await tree.close()


@pytest.mark.long
async def test_members_that_are_run_as_services_say_over_http_what_they_are(tmp_path):
    tree, ports = TrioTree(tmp_path), {}
    try:
        await tree.start()
        for number, (name, member) in enumerate(tree.centres.items()):
            await member.stop()
            ports[name] = free_port(tmp_path, 11 + number)
            words = ["--config", str(member.folder / FILE), "--health-port", str(ports[name])]
            member.command = ["leafcast", "run", "center", *words]
        await tree.restart(*ports)

        async def said():
            found = [await readiness(port) for port in ports.values()]
            return sorted((code, text.split("role: ")[-1]) for code, text in found)

        ready = [(200, "active\nready\n"), *[(200, "standby\nready\n")] * 2]

        async def all_ready():
            return await said() == ready

        await eventually(all_ready, lambda: str([it.said for it in tree.centres.values()]))

        async def active_alone_tells_of_the_node():
            found = [await answer(port, "/metrics") for port in ports.values()]
            shown = [("leafcast_node_info{" in text, ACTIVE_SHOWN in text) for _, text in found]
            return sorted(shown) == [(False, False), (False, False), (True, True)]

        await eventually(active_alone_tells_of_the_node, lambda: "figures of others are shown")
        for name in ("m1", "m3"):
            await tree.centres[name].stop()

        async def none_active():
            return (503, "none\nnot ready\n") in await said()

        await eventually(none_active, lambda: tree.centres["m2"].said)
    finally:
        await tree.close()


ACTIVE_SHOWN = 'leafcast_member_role{role="active"} 1.0'


async def readiness(port):
    """The code and the text of /readyz; 0 while nobody answers."""
    return await answer(port, "/readyz")


async def answer(port, path):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return 0, ""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split(" ")[1]) if head else 0, body


@pytest.mark.long
async def test_a_member_that_is_told_to_end_hands_over_at_once(tmp_path):
    gone = 15.0
    settings = {"relay.members.lease.GONE_SECONDS": gone}
    async with changing_tree(tmp_path, settings=settings) as (tree, _):
        first = tree.active()
        await tree.centres[first].stop()
        # Sooner than the others would see that the lease is silent.
        await tree.until_active(beside=first, seconds=gone - 2)
