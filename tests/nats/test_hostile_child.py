"""An edge that was broken into speaks with its own key: each attack was carried out, and worked."""

import asyncio
import logging
import time
from contextlib import asynccontextmanager

import pytest
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from leafcast.ask.decode import read_copies
from leafcast.node.copies_answer import CopyQuery, copies_answer
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.request_reply import brief_connection
from relay.adapters.jetstream.stream_reader import StreamReader
from relay.core.asks.routing import NOTE_EVERY_SECONDS
from relay.core.reports.digest import digest_bytes, report_term, run_number
from relay.shell.note_log import LINES_MAX
from schemas.content.blobs import compress
from schemas.content.carried import without_carried
from schemas.objects.objects import ObjectKey
from schemas.records.signing import decode_envelope
from schemas.reports.link import Hello, Progress, Welcome, copies_word
from schemas.reports.reports import ARM_OLDER, ARM_OTHER, ARMS_MAX, Report, Summary, part_key
from schemas.reports.upsync import Copy, copy_key
from schemas.values import codec, subjects
from schemas.values.identity import NodePath
from schemas.values.wire import INT_MAX, decode, encode
from tests.awaiting import eventually
from tests.namespaces import apply_in_namespaces
from tests.nats.conftest import in_force
from tests.nats.driven_tree import at_least, driven_tree
from tests.unit.centre_world import USER, config, location, placement, target

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

INVENTED = {f"{number:064x}": 1 for number in range(ARMS_MAX)}
SECRETS = ("only-for-the-honest", "another-for-the-honest")
LABEL = "hidden-label"
PRIVATE = ("delta", "private")
REFUSED_MIN = 300
PARTS_SAID, RESULTS_SAID = 38, 4_400
"""Results of 167,200 objects that there are not: 2.4 MB."""
WIDE, BOMBS = 90_000, 40
MAPS = CopyQuery("", "configmaps")


class Liar:
    """Says what it likes in the place of an edge's program, over the edge's own server."""

    def __init__(self, client, path) -> None:
        self.path = NodePath.parse(path)
        self.client = client
        self.run, self.incarnation = "liar", ""
        self._slots = {}
        self._welcomes = None

    async def greet(self, wants=()) -> int:
        """Say hello until the parent answers; where the mailbox ends."""
        if self._welcomes is None:
            welcome = subjects.welcome(self.path.name)
            self._welcomes = await self.client.subscribe(welcome)
        while self._welcomes.pending_msgs:
            await self._welcomes.next_msg()
        hello = Hello(self.run, "", self.incarnation, 0, b"", 0, wants=tuple(wants))
        while True:
            await self.client.publish(subjects.node_self(self.path), encode(hello))
            try:
                said = decode(Welcome, (await self._welcomes.next_msg(timeout=1)).data)
            except NatsTimeout:
                continue
            if said.run == self.run:
                self.incarnation = said.incarnation
                return said.last_sequence

    async def report(self, key, generation, summary, revision=1, parts=0) -> None:
        self._slots[key] = revision
        said = Report(key, 0, self.run, revision, generation, False, parts, summary)
        await self.say(key, said)

    async def progress(self, through) -> None:
        number = run_number(self.run)
        terms = (report_term(slot, number, each) for slot, each in self._slots.items())
        said = Progress(self.run, self.incarnation, through, digest_bytes(sum(terms)))
        await self.say(subjects.PROGRESS_KEY, said)

    async def say_bytes(self, slot, data, revision=1) -> None:
        """Say what is counted in the digest, whatever it is."""
        self._slots[slot] = revision
        await self.client.publish(subjects.stat(self.path, slot), data)

    async def say(self, slot, record) -> None:
        await self.client.publish(subjects.stat(self.path, slot), encode(record))


@asynccontextmanager
async def liar_at(tree, path):
    """An edge of the tree that is a liar."""
    server, seeds = await tree.lend(path)
    async with brief_connection(server.url, seeds.uplink, "liar") as client:
        yield Liar(client, path)


def is_exactly(count, generation, states, arms):
    """Whether it is exact, of this generation, and has these states and arms."""
    found = count.exact, count.generation, count.summary.states, count.summary.arms
    return found == (True, generation, states, arms)


async def test_invented_arms_freeze_no_count(tmp_path):
    async with driven_tree(tmp_path) as tree:
        region = await tree.add("/region")
        honest = await tree.add("/region/honest", attached=True)
        async with liar_at(tree, "/region/evil") as liar:
            key = await tree.place()
            held = tree.centre.node.records
            await liar.greet()
            # As often as there is a change: what the region says reaches the centre each time.
            for value in ("2", "3"):
                before = held[key].generation
                await tree.wds.apply(config("a", value=value), USER)
                await tree.centre.until(lambda _, old=before: held[key].generation > old)
                generation = held[key].generation
                await honest.driver.until(lambda core, g=generation: at_least(core, key, g))
                said = Summary({"synced": 1}, {"healthy": 1}, INVENTED)
                await liar.report(key, generation, said, revision=generation)
                states, arms = {"pending": 1, "synced": 1}, {ARM_OLDER: 1, ARM_OTHER: ARMS_MAX}
                for node in (region.driver, tree.centre):
                    async with asyncio.timeout(60):
                        while not is_exactly(node.node.count(key), generation, states, arms):
                            await liar.progress(await liar.greet())
                            await asyncio.sleep(0.1)


async def test_results_without_bound_freeze_no_count(tmp_path):
    async with driven_tree(tmp_path) as tree:
        region = await tree.add("/region")
        honest = await tree.add("/region/honest", attached=True)
        async with liar_at(tree, "/region/evil") as liar:
            key = await tree.place()
            held = tree.centre.node.records
            await liar.greet()
            await honest.driver.until(lambda core: at_least(core, key, held[key].generation))
            generation = held[key].generation
            for number in range(1, PARTS_SAID + 1):
                # As short as they can be: a fortieth of what they take in memory.
                first = number * RESULTS_SAID
                invented = [[["", "x", "", f"{first + at}"], 1] for at in range(RESULTS_SAID)]
                said = [key, number, liar.run, 1, generation, invented]
                await liar.say_bytes(part_key(key, number), codec.pack(said))
            well = Summary({"synced": 1}, {"healthy": 1})
            await liar.report(key, generation, well, parts=PARTS_SAID)
            for node in (region.driver, tree.centre):
                async with asyncio.timeout(60):
                    while not node.node.count(key).exact:
                        await liar.progress(await liar.greet())
                        await asyncio.sleep(0.1)
            # Counts go on, and what the region passes on finds room at the centre.
            before = held[key].generation
            await tree.wds.apply(config("a", value="2"), USER)
            await tree.centre.until(lambda _: held[key].generation > before)
            newest = held[key].generation
            await honest.driver.until(lambda core: at_least(core, key, newest))
            async with asyncio.timeout(60):
                while not tree.centre.node.count(key).exact:
                    await liar.progress(await liar.greet())
                    await asyncio.sleep(0.1)
            node = region.driver.node
            assert [name for name in node.children() if node.unsaid_of(name)] == ["evil"]
            assert set(filter(tree.centre.node.unsaid_of, tree.centre.node.children())) <= {
                "region"
            }
            assert not any(node.figures_of(name).refused for name in node.children())


async def test_numbers_without_bound_are_refused_and_do_not_outlive_a_new_key(tmp_path):
    async with driven_tree(tmp_path) as tree:
        async with liar_at(tree, "/edge") as liar:
            key = await tree.place()
            generation = tree.centre.node.records[key].generation
            end, before = await liar.greet(), refused(tree.centre, "edge")
            one = Summary({"synced": 1}, {"healthy": 1})
            many = Summary({"synced": INT_MAX}, {"healthy": INT_MAX})
            for at, summary in (INT_MAX, one), (generation, many):
                await liar.report(key, at, summary)
                await liar.greet()
            await liar.progress(INT_MAX)
            end = await liar.greet()
            assert refused(tree.centre, "edge") == before + 3
            # A revision has no bound but that of its run.
            await liar.report(key, generation, one, revision=INT_MAX)
            await liar.progress(end)
            await tree.centre.until(lambda core: core.count(key).summary.states == {"synced": 1})
        await tree.rekey("/edge")
        async with asyncio.timeout(60):
            await tree.centre.until(lambda core: core.count(key).exact)
        assert tree.centre.node.count(key).summary.states == {"pending": 1}


async def test_wants_bring_a_child_no_more_than_heads_of_what_is_not_meant_for_it(tmp_path):
    async with driven_tree(tmp_path) as tree, liar_at(tree, "/evil") as liar:
        await tree.place()
        elsewhere = {"matchLabels": {"kind": "honest"}}
        await tree.enrol(NodePath.parse("/honest"))
        await tree.inventory.apply(target("honest", "/honest", kind="honest"), USER)
        await tree.inventory.apply(location("some", elsewhere, kind="honest", code=LABEL), USER)
        clause, held = {"namespaces": ["private"]}, tree.centre.node.records
        await apply_in_namespaces(tree.wds, [config("s", "private", SECRETS[0])], USER)
        await tree.wds.apply(placement("private", clause, (elsewhere,)), USER)
        await tree.centre.until(lambda core: keyed(core, *PRIVATE) is not None)
        await tree.centre.until(lambda core: keyed(core, "profile", "honest") is not None)
        others = (PRIVATE, ("profile", "honest"), ("location", "some"))
        await tree.centre.until(lambda core: keyed(core, *others[2]) is not None)
        key, profile, place = (keyed(tree.centre.node, *it) for it in others)
        addresses = set()
        for secret in SECRETS:
            await tree.wds.apply(config("s", "private", secret), USER)
            await tree.centre.until(lambda core, old=addresses: contents(core, key) - old)
            addresses |= contents(tree.centre.node, key)
            await liar.greet(wants=[key, profile, place])
            newest = held[key].generation
            box = await eventually(lambda g=newest: box_with(tree, liar, key, g))
            assert profile not in box
            for each in (key, place):
                head = decode_envelope(without_carried(box[each].data)[0])
                assert (head.body, box[each].headers[subjects.HEADER_HAS_BODY]) == (None, "0")
            for message in box.values():
                told = (
                    text for text in (LABEL, *SECRETS, *addresses) if text.encode() in message.data
                )
                assert not list(told)


async def test_junk_without_end_fills_no_log(tmp_path, caplog):
    caplog.set_level(logging.INFO, "leafcast.relay")
    async with driven_tree(tmp_path) as tree, liar_at(tree, "/evil") as liar:
        asker, began, count = tree.serve_asks("/"), time.monotonic(), 0
        await liar.greet()
        # Its parent counts junk answers with all else, so doctor names it for these, too.
        while not REFUSED_MIN < asker.refused < refused(tree.centre, "evil") - REFUSED_MIN:
            count += 1
            await liar.client.publish(subjects.answer(liar.path, str(count)), b"junk")
            await liar.progress(INT_MAX)
            # Its parent's server syncs each word: what comes faster is not read one by one.
            await in_force(liar.client)
        answers_max = (time.monotonic() - began) / NOTE_EVERY_SECONDS + 1
    lines = [record.getMessage() for record in caplog.records if record.name == "leafcast.relay"]
    assert 0 < sum(": BadAnswer: " in line for line in lines) <= answers_max
    assert 0 < sum(": BadReport: " in line for line in lines) <= LINES_MAX


async def test_copies_that_are_nested_or_open_to_gigabytes_stop_no_parent_that_is_asked(tmp_path):
    async with driven_tree(tmp_path) as tree, liar_at(tree, "/evil") as liar:
        key = await tree.place()
        await liar.greet()
        await liar.client.publish(subjects.node_self(liar.path), encode(has_copies(liar)))
        wide = b"\xdd" + WIDE.to_bytes(4, "big") + b"\x80" * WIDE
        deep = (b"\x81\xa1a" * levels + b"\xc0" for levels in (120, 500, 1_000, 5_000))
        said = [copy_saying(f"m{at}", each) for at, each in enumerate((*deep, *[wide] * BOMBS))]
        for at, data in (*said, copy_saying("last", b"\x01")):
            # The room for them is made a moment after the hello.
            subject = subjects.copy(liar.path, at)
            await eventually(lambda s=subject, d=data: is_stored(liar.client, s, d))
        await tree.centre.until(lambda core: core.destination_of("evil"))
        bus, node, after, rows, turns = tree.nodes["/"].bus, tree.centre.node, "", [], 0

        async def look():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(look())
        while answer := await copies_answer(node, bus.read_copies, NodePath(), MAPS, after=after):
            found, _, after = read_copies(codec.unpack(codec.pack(answer)), NodePath(), after)
            rows += [row.object["metadata"]["name"] for row in found]
            if not after:
                break
        beside.cancel()
        assert rows == ["last"]
        assert turns > BOMBS
        assert tree.centre.node.records[key]


def has_copies(liar):
    word = copies_word(stated=True, behind_seconds=0)
    return Hello(liar.run, "", liar.incarnation, 0, b"", 0, copies=word)


def copy_saying(name, value):
    """A copy of an object with this value, of another one than its key says if it is wide."""
    at = ObjectKey("", "configmaps", "shop", name)
    metadata = {"name": name if len(value) < WIDE else "other", "namespace": "shop"}
    plain = codec.pack({"metadata": metadata, "said": 0})[:-1] + value
    return copy_key(at), encode(Copy(at, len(plain), compress(plain)))


async def is_stored(client, subject, data):
    try:
        answer = await client.request(subject, data, timeout=1)
    except (NatsTimeout, NoRespondersError):
        return False
    return b"seq" in answer.data


def message(subject, head=b"", data=b""):
    """What publishes a message with these very bytes in the place of headers."""
    verb = b"HPUB %b %d %d" % (subject, len(head), len(head) + len(data)) if head else b"PUB %b %d"
    return (verb if head else verb % (subject, len(data))) + b"\r\n" + head + data + b"\r\n"


DEAFENING = [
    # As a heartbeat of the server's own, that counts more deliveries than came.
    message(b"lc.evil._stat.k", b"NATS/1.0\r\nStatus: 100\r\nNats-Last-Consumer: 99\r\n\r\n"),
    message(b"lc.evil._node.self", b"XXXXXXXX 100 Idle\r\nNats-Last-Consumer: 99\r\n\r\n"),
    message(b"lc.evil._stat.l", b"XXXXXXXX \xff\xff\xff\r\n\r\n"),
    message(b"lc.evil._answer.1", b"NATS/1.0 \xff\xff\xff\r\n\r\n"),
    message(b"lc.evil._stat.\xff", data=b"junk"),
    message(b"lc.evil._stat.a\x0cb", data=b"junk"),
]


async def test_no_headers_and_no_subject_of_a_child_deafen_its_parent(tmp_path):
    async with driven_tree(tmp_path) as tree:
        await tree.add("/honest", attached=True)
        async with liar_at(tree, "/evil") as liar:
            key = await tree.place()
            await liar.greet()
            for number, said in enumerate(DEAFENING):
                await liar.client._send_command(said)
                await in_force(liar.client)
                before = tree.centre.node.records[key].generation
                await tree.wds.apply(config("a", value=str(number)), USER)
                async with asyncio.timeout(60):
                    await tree.centre.until(lambda core, g=before: reported(core, key) > g)


def reported(core, key):
    """The generation that the honest edge reported last."""
    return core._reports.generation("honest", key)


async def mailbox(tree, liar):
    """What lies in the liar's mailbox, by key."""
    found, parent = {}, tree.nodes[str(liar.path.parent)]
    connection = Connection(parent.server.url, parent.seeds.relay, "test", "_INBOX.test")
    await connection.open()

    async def take(stored):
        found[subjects.parse(stored.subject).key] = stored

    filters = [subjects.child_mail(liar.path)]
    await StreamReader(connection, tree.clock, "MAIL", filters=filters).read_all(take)
    await connection.close()
    return found


async def box_with(tree, liar, key, generation):
    """The mailbox once it holds this version of a record."""
    box = await mailbox(tree, liar)
    held = int(box[key].headers[subjects.HEADER_GENERATION]) if key in box else 0
    return box if held >= generation else None


def keyed(core, kind, name):
    """The mail key of a record; None before it is issued."""
    records = ((key, held) for key, held in core.records.items() if held.kind == kind)
    return next((key for key, held in records if held.record.source.name == name), None)


def contents(core, key):
    """The addresses of all that a placement's present version leads to."""
    return {reference.address for reference in core.records[key].body.content}


def refused(driver, child):
    """How much of what a child said its parent did not take."""
    return driver._machine._children.by_name[child].refused
