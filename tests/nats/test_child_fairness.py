"""A child that was broken into says far more than its parent can take: its siblings are heard."""

import asyncio

import pytest

from relay.adapters.jetstream.loudness import LOUD_WORDS
from relay.adapters.jetstream.request_reply import brief_connection
from relay.core.events import HelloArrived, ReportArrived
from schemas.reports.link import WANTS_MAX, Hello
from schemas.reports.reports import Report, Summary
from schemas.values import subjects
from schemas.values.identity import NodePath, short_key
from schemas.values.wire import encode
from tests.awaiting import eventually
from tests.nats.driven_tree import driven_tree

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

FLOOD, BURST = 15_000, 500
GREETING = encode(Hello("greeting", "", "", 0, b"", 0))
LOUD, OTHER, QUIET = map(NodePath.parse, ("/loud", "/other", "/quiet"))


class Heard:
    """What a node dealt with, in this order: the child and what it said."""

    def __init__(self, node) -> None:
        self.words = []
        self._handle = node.handle
        node.handle = self._take

    def of(self, path):
        """What a child said since it was linked."""
        return [word for child, word in self.words if child == path.name and word != GREETING]

    async def link(self, client, path):
        """Speak as a child until it is heard: what is said before its server is linked is lost."""
        while (path.name, GREETING) not in self.words:
            await client.publish(subjects.node_self(path), GREETING)
            await client.flush()
            await asyncio.sleep(0.05)

    def _take(self, events, now):
        return self._handle(self._noted(events), now)

    def _noted(self, events):
        """Each when it is its turn: what it costs is measured meanwhile."""
        for event in events:
            if isinstance(event, ReportArrived | HelloArrived):
                said = event.key if isinstance(event, ReportArrived) else event.data
                self.words.append((event.child, said))
            yield event


def slot(number):
    return short_key(number.to_bytes(20, "big"))


def report(path, number):
    """On what it was never sent, and of its form."""
    one = Summary({"synced": 1})
    said = Report(slot(number), 0, "r" * 26, 1, 7, gone=False, parts=0, summary=one)
    return subjects.stat(path, said.key), encode(said)


def hello(path, number):
    """Of a run that nobody heard of, which wants all that it may."""
    wants = tuple(slot(number + at) for at in range(WANTS_MAX))
    return subjects.node_self(path), encode(Hello(f"{number:026d}", "", "", 0, b"", 0, wants=wants))


async def say(client, words):
    for number, (subject, body) in enumerate(words, 1):
        await client.publish(subject, body)
        if not number % BURST:
            await client.flush()
            await asyncio.sleep(0)
    await client.flush()


async def last_said(bus):
    """How many messages its children's stream has taken."""
    return (await bus._relay.api("STREAM.INFO.STAT"))["state"]["last_seq"]


async def test_a_word_of_a_sibling_is_taken_before_most_of_a_flood_and_nothing_of_it_is_lost(
    tmp_path,
):
    async with driven_tree(tmp_path) as tree:
        loud, loud_seeds = await tree.lend(str(LOUD))
        quiet, quiet_seeds = await tree.lend(str(QUIET))
        heard, bus = Heard(tree.centre._machine), tree.nodes["/"].bus
        async with (
            brief_connection(loud.url, loud_seeds.uplink, "loud") as flooding,
            brief_connection(quiet.url, quiet_seeds.uplink, "quiet") as client,
        ):
            await heard.link(flooding, LOUD)
            await heard.link(client, QUIET)
            before = await last_said(bus)
            await say(flooding, (report(LOUD, number) for number in range(FLOOD)))
            async with asyncio.timeout(60):
                while await last_said(bus) < before + FLOOD:
                    await tree.clock.sleep(0.01)
            # Only now, behind all of the flood in the stream of all.
            first = len(heard.of(LOUD))
            await say(client, [hello(QUIET, 1)])
            async with asyncio.timeout(60):
                await tree.centre.until(lambda _: heard.of(QUIET))
            meanwhile = len(heard.of(LOUD)) - first
            waited = FLOOD - first
            # A machine that is faster than the flood has let little of it wait.
            assert meanwhile < max(waited / 2, FLOOD / 5), f"{meanwhile} of {waited} before it"
            async with asyncio.timeout(120):
                await tree.centre.until(lambda _: len(heard.of(LOUD)) >= FLOOD)
        assert list(dict.fromkeys(heard.of(LOUD))) == [slot(number) for number in range(FLOOD)]


async def test_of_hellos_without_end_only_the_newest_are_taken_and_a_sibling_is_heard(tmp_path):
    count = LOUD_WORDS
    async with driven_tree(tmp_path) as tree:
        floods = {path: await tree.lend(str(path)) for path in (LOUD, OTHER)}
        quiet, quiet_seeds = await tree.lend(str(QUIET))
        heard = Heard(tree.centre._machine)

        async def flood(path):
            server, seeds = floods[path]
            async with brief_connection(server.url, seeds.uplink, path.name) as client:
                await heard.link(client, path)
                await say(client, (hello(path, number) for number in range(count)))

        async with (
            brief_connection(quiet.url, quiet_seeds.uplink, "quiet") as client,
            asyncio.TaskGroup() as group,
        ):
            await heard.link(client, QUIET)
            flooding = [group.create_task(flood(path)) for path in floods]
            words = 0
            while not all(task.done() for task in flooding):
                words += 1
                await say(client, [report(QUIET, words)])
                async with asyncio.timeout(60):
                    await tree.centre.until(lambda _, words=words: len(heard.of(QUIET)) >= words)
        for path in floods:
            last = hello(path, count - 1)[1]
            await eventually(lambda path=path, last=last: last in heard.of(path), seconds=60)
            assert len(heard.of(path)) < count / 2, "each hello was taken, however old it was"
        assert words > 1


async def test_who_joins_during_a_flood_is_heard_and_who_was_loud_is_read_as_all_others_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("relay.adapters.jetstream.child_reports.CALM_SECONDS", 1.0)
    async with driven_tree(tmp_path) as tree:
        loud, loud_seeds = await tree.lend(str(LOUD))
        heard, apart = Heard(tree.centre._machine), tree.nodes["/"].bus._reports._apart
        async with brief_connection(loud.url, loud_seeds.uplink, "loud") as flooding:
            count = 3 * LOUD_WORDS
            await heard.link(flooding, LOUD)
            await say(flooding, (report(LOUD, number) for number in range(count)))
            await eventually(lambda: LOUD.name in apart, "it is read with the others")
            quiet, quiet_seeds = await tree.lend(str(QUIET))
            async with brief_connection(quiet.url, quiet_seeds.uplink, "quiet") as client:
                await heard.link(client, QUIET)
                await say(client, [report(QUIET, number) for number in range(3)])
            await eventually(lambda: len(heard.of(QUIET)) == 3, "who joined is not heard")
            await eventually(lambda: not apart, "it is read by itself still")
            await say(flooding, [report(LOUD, count)])
            await eventually(lambda: slot(count) in heard.of(LOUD), "it is not heard any more")
        # Each word once, whoever read it.
        assert heard.of(LOUD) == [slot(number) for number in range(count + 1)]
        assert heard.of(QUIET) == [slot(number) for number in range(3)]
