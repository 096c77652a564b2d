"""The entrance on a real server: who comes in by it can ask, and do nothing else."""

import asyncio
import time

import pytest

from leafcast.node.credentials import own_key
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.entrance import (
    REQUESTS_AT_ONCE,
    WINDOW_SECONDS,
    Entrance,
    EntranceKeys,
)
from relay.adapters.server.link_trouble import trouble_of
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.nkey_pairs import entrance_pair
from schemas.enrolment.enrolment import (
    GRANTED,
    NO_WAY_UP,
    PENDING,
    UNREADABLE,
    JoinAnswer,
    JoinRequest,
    NoAnswer,
    open_answer,
    plain_answer,
    read_request,
    seal_answer,
    sign_request,
)
from schemas.enrolment.tokens import Token
from schemas.values.identity import NodePath, TreeId, random_id
from schemas.values.wire import encode
from tests.awaiting import eventually, soon
from tests.nats.conftest import Node, in_force, new_nkey, new_seeds, until_answered
from tests.nats.raw_leaf import RawLeaf

pytestmark = pytest.mark.nats

TREE = TreeId(random_id(b"t" * 16))
SEED, NKEY = entrance_pair(TREE)
PATH = NodePath.parse("/ra/store-7")
TOKEN = Token(b"s" * 16, TREE, b"p" * 16, PATH)
REQUEST = sign_request(TOKEN, JoinRequest(PATH, "U" + "A" * 55), b"e" * 32)
ANSWER = JoinAnswer(PENDING, REQUEST.digest, again_seconds=2)


class Hall:
    """A centre and a region with their entrances, and who asks."""

    def __init__(self, grove) -> None:
        self.grove = grove
        self.heard: list[bytes] = []
        self.tasks: list[asyncio.Task] = []

    async def decide(self, data: bytes) -> bytes:
        self.heard.append(data)
        return seal_answer(TOKEN.public, ANSWER, b"n" * 24)

    async def plant(self, path: str, parent: Node | None = None) -> Node:
        """A node with an entrance; below a parent it asks that."""
        seeds, (link_seed, link_nkey) = new_seeds(), new_nkey()
        link = None
        if parent is not None:
            await parent.server.add_child(NodePath.parse(path).name, link_nkey)
            link = ParentRemote((parent.server.leaf_url,), link_seed)
        server = self.grove.server(path, seeds, parent=link, entrance=NKEY)
        await self.grove._stack.enter_async_context(server)
        node = Node(server, seeds, link_seed, NodePath.parse(path))
        keys = EntranceKeys(seeds.relay, seeds.uplink if parent else None)
        decide = None if parent else self.decide
        entrance = Entrance(node.path, server.url, keys, SystemClock(), decide)
        self.tasks.append(asyncio.create_task(entrance.run()))
        return node

    async def stranger(self, node: Node, name: str):
        """Someone with a nats-server of his own, linked to a node by the key of the entrance."""
        seeds = new_seeds()
        link = ParentRemote((node.server.leaf_url,), SEED, f"asking.{name}")
        server = self.grove.server(f"/{name}", seeds, parent=link)
        await self.grove._stack.enter_async_context(server)
        return await self.grove.connect(Node(server, seeds), seeds.uplink)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def hall(grove):
    async with grove:
        made = Hall(grove)
        try:
            yield made
        finally:
            await made.end()


async def answered(client, data: bytes = encode(REQUEST)) -> bytes:
    """The first answer there is: a link that was just opened loses some."""
    async with asyncio.timeout(60):
        while True:
            try:
                return (await client.request("enrol.ask", data, timeout=12)).data
            except Exception:  # noqa: BLE001 - any loss
                await asyncio.sleep(0.1)


async def linked(hall):
    """A centre that answers its edge's hellos; the centre, the edge, and who says them."""
    centre = await hall.plant("/")
    edge = await hall.grove.plant("/ea", centre)
    relay = await hall.grove.connect(centre, centre.seeds.relay)

    async def beat(message):
        await message.respond(b"")

    await relay.subscribe("lc.*._node.self", cb=beat)
    child = await hall.grove.connect(edge, edge.seeds.uplink)
    await until_answered(child, "lc.ea._node.self")
    return centre, edge, child


async def test_a_request_goes_up_through_a_region_and_its_answer_comes_back(hall):
    centre = await hall.plant("/")
    region = await hall.plant("/ra", centre)
    client = await hall.stranger(region, "x")
    said = b""
    async with asyncio.timeout(60):
        while plain_answer(NO_WAY_UP) == (said := await answered(client)):
            await asyncio.sleep(0.1)
    assert open_answer(TOKEN, REQUEST, said) == ANSWER
    assert set(hall.heard) == {encode(REQUEST)}


async def test_a_region_without_its_parent_says_so(hall, monkeypatch):
    monkeypatch.setattr("relay.adapters.jetstream.entrance.UP_SECONDS", 1.0)
    centre = await hall.plant("/")
    region = await hall.plant("/ra", centre)
    client = await hall.stranger(region, "x")
    await answered(client)
    await centre.server.remove_child("ra")
    with pytest.raises(NoAnswer, match=NO_WAY_UP):
        open_answer(TOKEN, REQUEST, await answered(client))


async def test_who_comes_in_can_only_ask_and_hears_nothing_of_others_but_sealed_answers(hall):
    centre = await hall.plant("/")
    asker, spy = await hall.stranger(centre, "x"), await hall.stranger(centre, "y")
    await answered(asker)
    await answered(spy)
    overheard: list = []

    async def note(message):
        overheard.append(message)

    for subject in (">", "enrol.>", "_INBOX.>", "lc.>", "$SYS.>", "$JS.>"):
        await spy.subscribe(subject, cb=note)
    await in_force(spy)
    await asyncio.sleep(0.2)
    await answered(asker)
    relay = await hall.grove.connect(centre, centre.seeds.relay)
    await relay.publish("lc.x._mail.k", b"mail")
    await relay.publish("lc._d.x.m", b"mail")
    await in_force(relay)
    for subject in ("lc._enrol", "lc.x._node.self", "lc.x._stat.k", "$JS.API.INFO", "up.blob.*"):
        with pytest.raises(Exception):  # noqa: B017, PT011 - nobody there, or not let through
            await spy.request(subject, b"x", timeout=0.5)
    assert encode(REQUEST) not in [message.data for message in overheard]
    assert b"mail" not in [message.data for message in overheard]
    answers = {message.data for message in overheard}
    assert all(str(PATH).encode() not in data for data in answers)
    assert await hall.grove.is_refused(centre, SEED), "the key of the entrance lets no client in"


async def test_who_has_the_entrances_key_alone_gets_the_word_unreadable_for_junk(hall):
    centre = await hall.plant("/")
    client = await hall.stranger(centre, "x")
    await answered(client)
    before = len(hall.heard)
    for junk in (b"", b"\x00" * 100, b"x" * 9_000, encode(REQUEST)[:-1]):
        assert await answered(client, junk) == plain_answer(UNREADABLE)
    assert len(hall.heard) == before


async def test_a_flood_of_requests_costs_a_bounded_number_of_answers_and_no_one_elses_link(hall):
    centre, _, child = await linked(hall)
    flood = RawLeaf()
    try:
        await flood.open(int(centre.server.leaf_url.rpartition(":")[2]), SEED, {})
        await flood.taken_in()
        data = encode(REQUEST)
        began = time.monotonic()
        sent = 0
        while time.monotonic() - began < 2:
            for _ in range(500):
                flood.say("enrol.ask", data, "_INBOX.flood")
            sent += 500
            await flood.taken_in()
        await child.request("lc.ea._node.self", b"beat", timeout=30)
        took = time.monotonic() - began
    finally:
        flood.close()
    print(f"\n{sent} requests in {took:.1f} s: {len(hall.heard)} were looked at")
    assert sent > 20 * REQUESTS_AT_ONCE
    assert len(hall.heard) <= REQUESTS_AT_ONCE * (took // WINDOW_SECONDS + 2)


async def test_a_revoked_key_is_cut_at_once_and_a_second_key_without_a_break(hall):
    centre, edge, child = await linked(hall)
    seed, nkey = new_nkey()
    old = centre.server._children["ea"]
    await eventually(lambda: opened(edge) == 1)
    await centre.server.add_child("ea", f"{old} {nkey}")
    await edge.server.link_with(seed)
    await until_answered(child, "lc.ea._node.self")
    await centre.server.add_child("ea", nkey)
    await child.request("lc.ea._node.self", b"", timeout=30)
    await eventually(lambda: opened(edge) == 2)
    await child.request("lc.ea._node.self", b"", timeout=30)
    assert opened(edge) == 2, "the old key's end breaks no link"

    with soon(3.0) as taken:
        await centre.server.add_child("ea", "")
        await eventually(
            lambda: any("authorization violation" in it.lower() for it in edge.server.log),
            "the edge is not refused",
        )
    print(f"\ncut and refused after {taken.seconds:.2f} s")
    assert await refused(centre, seed)


async def test_a_key_that_the_parent_does_not_know_is_given_up_and_the_old_link_comes_back(
    grove, tmp_path, monkeypatch
):
    monkeypatch.setattr(own_key, "OPENED_SECONDS", 2.0)
    async with grove:
        centre = await grove.plant("/")
        edge, kept = await grove.plant("/ea", centre), []
        await eventually(lambda: opened(edge) == 1)
        key = own_key.OwnKey(tmp_path, edge.link_seed, kept.append, SystemClock(), SystemDice())
        new = key.make_next()
        assert not await key.use(new, edge.server)
        assert kept == []
        await eventually(lambda: not trouble_of(edge.server.log))
        await centre.server.add_child("ea", f"{key.nkey} {new}")
        assert await key.use(new, edge.server)
        assert key.nkey == new
        assert len(kept) == 1


def opened(node: Node) -> int:
    """How often its link was opened."""
    return sum("Leafnode connection created" in line for line in node.server.log)


async def refused(node: Node, seed: str) -> bool:
    leaf = RawLeaf()
    try:
        await leaf.open(int(node.server.leaf_url.rpartition(":")[2]), seed, {})
        await leaf.taken_in()
    except ConnectionError:
        return True
    finally:
        leaf.close()
    return False


def test_what_is_granted_is_never_shown_in_clear():
    sealed = seal_answer(TOKEN.public, ANSWER, b"n" * 24)
    assert str(PATH).encode() not in sealed
    assert read_request(encode(REQUEST)) == REQUEST
    assert GRANTED.encode() not in sealed
