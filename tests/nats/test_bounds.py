"""Each bound that a parent holds against a child, at its edge: one more, and nobody else is harmed.

What an honest node has more than that it keeps to itself; here it is said all the same.
"""

import asyncio

import pytest

from relay.adapters.jetstream.connection import Connection
from relay.core.reports.child_reports import UNSENT_MAX
from relay.core.reports.parts import PARTS_MAX
from relay.core.reports.room import EDGE_SHARE, RESULT_BYTES, ROOM_BYTES, SLACK_SHARE
from schemas.reports.link import WANTS_MAX
from schemas.reports.reports import (
    ARMS_MAX,
    COUNT_MAX,
    EXCEPTIONS_MAX,
    KEPT_COPIES_MAX,
    TEXT_MAX_BYTES,
    ExceptionSample,
    Report,
    ReportPart,
    Summary,
    part_key,
)
from schemas.reports.upsync import EDGE_MAX_OBJECTS
from schemas.values import codec, subjects
from schemas.values.identity import short_key
from schemas.values.wire import encode
from tests.awaiting import eventually
from tests.nats.conftest import in_force
from tests.nats.driven_tree import at_least, driven_tree
from tests.nats.test_hostile_child import has_copies, liar_at
from tests.unit.centre_world import USER, config, location, target

pytestmark = [pytest.mark.nats, pytest.mark.timeout(120)]

WELL = Summary({"synced": 1}, {"healthy": 1})
RESULTS_OF_PART = 4_000
SAMPLE = ExceptionSample(2, "configmaps/a", "why", 1, "/region/evil")
TOO_MUCH = {
    "a count": Summary({"synced": COUNT_MAX + 1}),
    "exceptions": Summary({"failing": 1}, exceptions=(SAMPLE,) * (EXCEPTIONS_MAX + 1)),
    "a text": Summary(
        {"failing": 1},
        exceptions=(ExceptionSample(2, "", "x" * (TEXT_MAX_BYTES + 1), 1, "/region/evil"),),
    ),
    "arms": Summary({"synced": 1}, arms={f"{at:064x}": 1 for at in range(ARMS_MAX + 1)}),
    "health": Summary({"synced": 1}, {"healthy": 2}),
    "kept copies": Summary({"synced": 1}, kept=9, kept_copies=(SAMPLE,) * (KEPT_COPIES_MAX + 1)),
    "a path": Summary({"failing": 1}, exceptions=(ExceptionSample(2, "", "why", 1, "/other"),)),
}


class Edges:
    """A region with an honest edge, and beside it one that says one more than it may."""

    def __init__(self, tree, region, honest, liar) -> None:
        self.tree, self.region, self.honest, self.liar = tree, region.driver, honest.driver, liar
        self.key, self.parts, self.values = None, 0, iter(range(1_000))

    @property
    def generation(self):
        return self.tree.centre.node.records[self.key].generation

    async def welcome(self) -> None:
        self.key = await self.tree.place()
        await self.liar.greet()

    @property
    def refused_of_liar(self) -> int:
        return self.region.node.figures_of("evil").refused

    @property
    def unsaid_of_liar(self) -> int:
        return self.region.node.unsaid_of("evil")

    async def refused(self, slot, data) -> None:
        """Say what is not taken; its parent tells of it by the child's name."""
        before = self.refused_of_liar
        await self.liar.client.publish(slot, data)
        await eventually(lambda: self.refused_of_liar == before + 1)

    def is_counted(self, node) -> bool:
        """Whether the count is exact, and the honest one's word is in it that it is in step."""
        count = node.count(self.key)
        return count.exact and count.summary.states == {"synced": 1, "pending": 1}

    async def nobody_is_harmed(self) -> None:
        """A change reaches the sibling, and is counted exactly at the region and at the centre."""
        before = self.generation
        await self.tree.wds.apply(config("a", value=f"v{next(self.values)}"), USER)
        await self.tree.centre.until(lambda _: self.generation > before)
        newest = self.generation
        await self.honest.until(lambda core: at_least(core, self.key, newest))
        await self.liar.report(self.key, newest, WELL, revision=newest, parts=self.parts)
        for driver in (self.region, self.tree.centre):
            async with asyncio.timeout(40):
                while not self.is_counted(driver.node):
                    await self.liar.progress(await self.liar.greet())
                    await asyncio.sleep(0.05)
        centre = self.tree.centre.node
        assert not any(centre.figures_of(name).refused for name in centre.children())


async def test_one_more_than_a_parent_takes_is_told_of_and_harms_nobody_else(tmp_path):
    async with driven_tree(tmp_path) as tree:
        region = await tree.add("/region")
        honest = await tree.add("/region/honest", attached=True)
        async with liar_at(tree, "/region/evil") as liar:
            edges = Edges(tree, region, honest, liar)
            await edges.welcome()
            await edges.nobody_is_harmed()
            await words(edges)
            await edges.nobody_is_harmed()
            await unsent(edges)
            await edges.nobody_is_harmed()
            await results(edges)
            await edges.nobody_is_harmed()
            await copies(edges)
            await edges.nobody_is_harmed()


async def test_labels_that_no_message_holds_stop_no_centre(tmp_path):
    async with driven_tree(tmp_path) as tree:
        honest = await tree.add("/honest", attached=True)
        key = await tree.place()
        await honest.driver.until(lambda core: key in core.records)
        labels = {f"label-{at:05}": "v" * 60 for at in range(16_000)}
        for obj in (location("big", **labels), target("honest", "/honest", **labels)):
            await tree.inventory.apply(obj, USER)
        async with asyncio.timeout(60):
            await tree.change(key, "2", honest.driver)
        named = tree._controllers.errors
        assert named.keys() == {"location/big", "synctarget/honest"}
        assert all("bytes, at most" in why for why in named.values())


async def words(edges) -> None:
    """Each thing in a report, in a hello, and in a progress."""
    liar, stat = edges.liar, subjects.stat(edges.liar.path, edges.key)
    for summary in TOO_MUCH.values():
        said = Report(edges.key, 0, liar.run, 1 << 61, edges.generation, False, 0, summary)
        await edges.refused(stat, encode(said))
    newer = Report(edges.key, 0, liar.run, 1 << 61, edges.generation + 1, False, 0, WELL)
    await edges.refused(stat, encode(newer))
    many = Report(edges.key, 0, liar.run, 1 << 61, edges.generation, False, PARTS_MAX + 1, WELL)
    await edges.refused(stat, encode(many))
    late = ReportPart(edges.key, PARTS_MAX + 1, liar.run, 1, edges.generation, ())
    beyond = subjects.stat(liar.path, part_key(edges.key, PARTS_MAX + 1))
    await edges.refused(beyond, encode(late))
    wants = [short_key(number.to_bytes(20, "big")) for number in range(WANTS_MAX + 1)]
    hello = codec.pack([liar.run, "", liar.incarnation, 0, b"", 0, b"", wants])
    await edges.refused(subjects.node_self(liar.path), hello)
    run = codec.pack(["r" * 65, "", liar.incarnation, 0, b"", 0])
    await edges.refused(subjects.node_self(liar.path), run)


async def unsent(edges) -> None:
    """Reports on what it was never sent: one more than is kept is noted, and told of."""
    for number in range(UNSENT_MAX + 1):
        key = short_key(number.to_bytes(20, "big"))
        said = Report(key, 0, edges.liar.run, 1, 7, False, 0, WELL)
        await edges.liar.say_bytes(key, encode(said))
    await eventually(lambda: edges.unsaid_of_liar == 1)


async def results(edges) -> None:
    """States that objects return: the part that is one more than there is room for is noted."""
    liar, most = edges.liar, ROOM_BYTES // EDGE_SHARE
    most += most // SLACK_SHARE
    edges.parts = most // (RESULTS_OF_PART * RESULT_BYTES) + 1
    before = edges.unsaid_of_liar
    for number in range(1, edges.parts + 1):
        invented = [[["", "x", "", f"{number}-{at}"], 1] for at in range(RESULTS_OF_PART)]
        said = [edges.key, number, liar.run, 1, edges.generation, invented]
        await liar.say_bytes(part_key(edges.key, number), codec.pack(said))
    await eventually(lambda: edges.unsaid_of_liar == before + 1)


async def copies(edges) -> None:
    """Copies: the one that is too many takes the place of its own oldest."""
    liar, region = edges.liar, edges.tree.nodes["/region"]
    await liar.client.publish(subjects.node_self(liar.path), encode(has_copies(liar)))
    first = subjects.copy(liar.path, short_key(bytes(20)))
    await eventually(lambda: is_stored(liar.client, first))
    for number in range(1, EDGE_MAX_OBJECTS + 1):
        key = short_key(number.to_bytes(20, "big"))
        await liar.client.publish(subjects.copy(liar.path, key), b"copy")
        if not number % 500:
            await in_force(liar.client)
    connection = Connection(region.server.url, region.seeds.relay, "test", "_INBOX.test")
    await connection.open()

    async def is_full():
        state = (await connection.api("STREAM.INFO.evil"))["state"]
        return state["messages"] == EDGE_MAX_OBJECTS and state["first_seq"] > 1

    await eventually(is_full)
    await connection.close()


async def is_stored(client, subject):
    try:
        return b"seq" in (await client.request(subject, b"copy", timeout=1)).data
    except Exception:  # noqa: BLE001 - the room is made a moment after the hello
        return False
