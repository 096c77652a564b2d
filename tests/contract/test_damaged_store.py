"""What a nats-server's damaged files hold no more is missed and named; nothing else is."""

import asyncio
import random
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats
import pytest

from relay.adapters.clock import SystemClock
from relay.adapters.jetstream.connection import Connection, JetStreamRefused
from relay.adapters.jetstream.stream_mending import (
    damaged_streams,
    go_on_mending,
    mend_if_damaged,
    mend_stream,
)
from relay.adapters.jetstream.stream_reader import StreamDamaged, StreamReader
from relay.adapters.jetstream.streams import kept_under, purge
from relay.adapters.spaces import bucket
from relay.adapters.spaces.embedded_space import EmbeddedSpace, path_of
from relay.core.effects import StoreOwn, WriteMail
from relay.core.events import ReportArrived
from relay.ports import BusBroken
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Done
from schemas.values.identity import NodePath
from tests.contract.buses import NatsTree, of
from tests.contract.buses import key as placement_key
from tests.contract.spaces import SeededDice, config_map, embedded, running_server

pytestmark = pytest.mark.nats

NAMES = ("first", "middle", "last")
HEADER_BYTES = 22
"""What the server writes before the subject of a message, its length first."""
GONE_BYTES = 30
"""What the server writes into a block to say that a message is gone."""


@pytest.fixture(autouse=True)
def soon_said(monkeypatch):
    """A reader learns soon that its server goes on without a damaged message."""
    monkeypatch.setattr("relay.adapters.jetstream.stream_reader.HEARTBEAT_SECONDS", 1)


def key(name):
    return ObjectKey("", "configmaps", "shop", name)


def block(folder: Path, stream: str) -> Path:
    (found,) = folder.rglob(f"{stream}/msgs/1.blk")
    return found


def flip(file: Path, after: bytes, distance: int) -> None:
    """Flip one bit so many bytes behind where this text last stands."""
    data = bytearray(file.read_bytes())
    data[data.rindex(after) + len(after) + distance] ^= 0b100
    file.write_bytes(data)


def zero_length(file: Path, subject: bytes) -> None:
    """Zero what the server says of the length of the last message with this subject."""
    data = bytearray(file.read_bytes())
    at = data.rindex(subject) - HEADER_BYTES
    data[at : at + 4] = bytes(4)
    file.write_bytes(data)


@pytest.mark.parametrize("damaged", NAMES)
async def test_objects_beside_a_damaged_one_are_listed_and_it_is_told_as_lost(
    tmp_path, clock, damaged
):
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            for name in (*NAMES, "deleted"):
                await space.apply(config_map(name, a="v" * 50), "me")
            await space.delete(key("deleted"))
            if damaged == "last":
                await space.apply(config_map(damaged, a="w" * 50), "me")
    flip(block(tmp_path, "KV_kept"), path_of(key(damaged)).encode(), 100)
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept", ()) as space:
            # It is not mended yet.
            listed = (await space.list("", "configmaps")).objects
            assert {obj["metadata"]["name"] for obj in listed} == set(NAMES) - {damaged}
            assert (await space.absence([key(damaged)])).lost == {key(damaged)}
        async with connected(url) as connection:
            names = bucket.stream_of("kept"), bucket.mark_of_loss("kept")
            await mend_if_damaged(connection, SystemClock(), *names, is_made=False)
        async with embedded(url, clock, "kept") as space:
            listed = (await space.list("", "configmaps")).objects
            whole = set(NAMES) - {damaged}
            assert {obj["metadata"]["name"] for obj in listed} == whole
            asked = [key(name) for name in (*NAMES, "deleted", "never")]
            absence = await space.absence(asked)
            # Nobody can tell any more what it never had.
            assert absence.lost == {key(damaged), key("never")}
            assert absence.deleted == {key("deleted")}
            made = await space.apply(config_map(damaged, a="again"), "me")
    with running_server(tmp_path, killed=True) as url:
        async with embedded(url, clock, "kept") as space:
            assert await space.get(key(damaged)) == made


async def test_a_value_that_is_not_what_was_written_is_not_shown(tmp_path, clock):
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            await space.apply(config_map("a", a="1"), "me")
            connection = await nats.connect(url)
            subject = f"$KV.kept.{path_of(key('a'))}"
            kept = await connection.jetstream().get_last_msg("KV_kept", subject)
            headers = {bucket.CHECKSUM: kept.headers[bucket.CHECKSUM]}
            await connection.jetstream().publish(subject, kept.data + b" ", headers=headers)
            await connection.close()
        async with embedded(url, clock, "kept") as space:
            assert await space.get(key("a")) is None
            assert (await space.absence([key("a")])).lost == {key("a")}


async def test_a_stream_with_a_damaged_message_is_read_to_its_end(tmp_path):
    with running_server(tmp_path) as url:
        connection = await nats.connect(url)
        jetstream = connection.jetstream()
        await jetstream.add_stream(name="READ", subjects=["read.*"], allow_direct=True)
        for at in range(5):
            await jetstream.publish(f"read.{at}", f"value {at}".encode() * 20)
        await connection.close()
    flip(block(tmp_path, "READ"), b"read.2", 30)
    async with asyncio.timeout(60):
        with running_server(tmp_path) as url:
            async with connected(url) as connection:
                assert await subjects_of(connection, damaged=1) == WHOLE
                await mend_stream(connection, SystemClock(), "READ")
                assert await subjects_of(connection) == WHOLE
                await connection.client.jetstream().publish("read.2", b"again")
                info = await connection.api("STREAM.INFO.READ")
        with running_server(tmp_path, killed=True) as url:
            async with connected(url) as connection:
                assert await subjects_of(connection) == [*WHOLE, "read.2"]
    # Its sequence goes on where it was.
    assert info["state"]["last_seq"] == 10
    assert info["config"]["allow_direct"]


@pytest.mark.parametrize("done", range(3))
async def test_who_was_ended_while_a_stream_was_mended_goes_on(tmp_path, monkeypatch, done):
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            jetstream = connection.client.jetstream()
            await jetstream.add_stream(name="READ", subjects=["read.*"])
            for at in range(3):
                await jetstream.publish(f"read.{at}", b"value")
            honest, left = Connection.api, [done]

            async def api(self, verb, *rest, **body):
                if verb.startswith(("STREAM.DELETE.READ", "STREAM.CREATE.READ")):
                    left[0] -= 1
                    if left[0] < 0:
                        raise BusBroken("the end of the process")
                return await honest(self, verb, *rest, **body)

            monkeypatch.setattr(Connection, "api", api)
            with pytest.raises(BusBroken, match="the end of the process"):
                await mend_stream(connection, SystemClock(), "READ")
            monkeypatch.setattr(Connection, "api", honest)
            await go_on_mending(connection, SystemClock())
            assert await subjects_of(connection) == [f"read.{at}" for at in range(3)]
            names = (await connection.api("STREAM.NAMES"))["streams"]
    assert names == ["READ"]


async def test_an_edge_starts_with_a_damaged_record_of_what_it_applied(tmp_path):
    one, other = (Done(key(name), "uid", "00", ("p",), True, 1) for name in ("one", "other"))
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        edge, _ = await tree.open()
        await edge.store_done({"one": one, "other": other})
        assert not await edge.done_is_partial()
    flip(block(tmp_path, "DONE"), b"_done.one", 60)
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        for _ in range(2):
            edge, _ = await tree.open()
            assert await edge.load_done() == [other]
            # It says so until what was lost is found.
            assert await edge.done_is_partial()
            await tree.close("/")
        edge, _ = await tree.open()
        await edge.complete_done()
        await edge.store_done({"one": one})
        await tree.kill_server("/")
        await tree.close("/")
        edge, _ = await tree.open()
        assert not await edge.done_is_partial()
        assert await edge.load_done() == [other, one]


async def test_a_damaged_ledger_has_again_what_lies_in_mailboxes(tmp_path):
    names = [placement_key(at) for at in range(3)]
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        await tree.sprout("/emea", centre)
        own = [StoreOwn(name, f"record {name}".encode() * 5, 5) for name in names]
        # The last is a head there, and the ledger's own.
        sent = [
            WriteMail("emea", it.key, it.data, it.generation, b"", it.key != names[2], "", 0)
            for it in own
        ]
        await centre.write(own=own, mail=sent)
    for name in names[1:]:
        flip(block(tmp_path / NodePath().domain, "OWN"), f"_own.{name}".encode(), 60)
    for _ in range(2):
        async with NatsTree(tmp_path) as tree:
            await tree.plant("/")
            _, listener = await tree.open()
            found = {it.key: it.data for it in listener.remembered.own}
            assert found == {it.key: it.data for it in own[:2]}


async def test_what_children_say_is_taken_again_after_it_was_damaged(tmp_path):
    keys = [placement_key(at) for at in range(3)]
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, _ = await tree.open()
        child, _ = await tree.sprout("/emea", centre)
        await centre.open_copies("emea")
        for at in keys:
            assert await child.send_report({at: b"first report" * 10})
            assert await child.put_copy(at, b"first copy" * 10)
        former = await child.copies_place()
    root = tmp_path / NodePath().domain
    flip(block(root, "STAT"), f"_stat.{keys[1]}".encode(), 30)
    flip(block(root, "emea"), f"_up.{keys[1]}".encode(), 30)
    async with NatsTree(tmp_path) as tree:
        await tree.plant("/")
        centre, listener = await tree.open()
        child, _ = await tree.sprout("/emea", centre)
        # The child sees that it is another one, and brings up all.
        assert await child.copies_place() != former
        assert await child.send_report({keys[1]: b"second"})
        assert await child.put_copy(keys[1], b"second")
        page = await centre.read_copies("emea", 1)
        assert {copy.key for copy in page.copies} == {*keys}
        assert page.copies[-1].data == b"second"
        await listener.until(lambda events: b"second" in [it.data for it in reports(events)])
    assert {it.key for it in reports(listener.events)} == {*keys}


def reports(events):
    return of(ReportArrived, events)


@asynccontextmanager
async def half_mended(tmp_path, monkeypatch):
    """A connection to a server whose stream READ is deleted, and of which the copy is whole."""
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            jetstream = connection.client.jetstream()
            await jetstream.add_stream(name="READ", subjects=["read.*"])
            for at in range(3):
                await jetstream.publish(f"read.{at}", b"value")
            with monkeypatch.context() as patch:
                patch.setattr(
                    Connection, "api", api_failing("STREAM.CREATE.READ", BusBroken("end"))
                )
                with pytest.raises(BusBroken, match="end"):
                    await mend_stream(connection, SystemClock(), "READ")
            yield connection


def api_failing(verb, error):
    """The `api` of a connection that fails at this verb."""
    honest = Connection.api

    async def api(self, asked, *rest, **body):
        if asked == verb:
            raise error
        return await honest(self, asked, *rest, **body)

    return api


async def test_a_copy_that_cannot_be_asked_for_now_is_not_deleted(tmp_path, monkeypatch):
    async with half_mended(tmp_path, monkeypatch) as connection:
        verb = "STREAM.MSG.GET.READ_MEND"
        refused = JetStreamRefused(verb, 10008, "JetStream system temporarily unavailable")
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "api", api_failing(verb, refused))
            with pytest.raises(JetStreamRefused, match="temporarily unavailable"):
                await go_on_mending(connection, SystemClock())
        await go_on_mending(connection, SystemClock())
        assert await subjects_of(connection) == [f"read.{at}" for at in range(3)]


async def test_the_only_copy_of_a_stream_is_not_deleted_without_its_note(tmp_path, monkeypatch):
    async with half_mended(tmp_path, monkeypatch) as connection:
        await connection.api("STREAM.PURGE.READ_MEND", filter="mend.READ._whole")
        with pytest.raises(BusBroken, match="stream READ is gone, and its copy READ_MEND does not"):
            await go_on_mending(connection, SystemClock())
        assert (await connection.api("STREAM.INFO.READ_MEND"))["state"]["messages"] == 3


async def test_of_a_copy_that_is_damaged_itself_the_rest_is_kept(tmp_path, monkeypatch):
    async with half_mended(tmp_path, monkeypatch):
        pass
    flip(block(tmp_path, "READ_MEND"), b"mend.READ.read.1", 30)
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            await go_on_mending(connection, SystemClock())
            assert await subjects_of(connection) == ["read.0", "read.2"]
            assert (await connection.api("STREAM.NAMES"))["streams"] == ["READ"]


WHOLE = [f"read.{at}" for at in (0, 1, 3, 4)]


@asynccontextmanager
async def connected(url):
    connection = Connection(url, "", "a reader", "_INBOX.read")
    # Without accounts the server takes anyone in; a seed would have to be one.
    connection._seed = None
    await connection.open()
    try:
        yield connection
    finally:
        await connection.close()


async def subjects_of(connection, *, damaged=0):
    read = []

    async def take(stored):
        read.append(stored.subject)

    reading = StreamReader(connection, SystemClock(), "READ").read_all(take)
    if damaged:
        with pytest.raises(StreamDamaged, match=f"{damaged} of what the stream READ held is dama"):
            await reading
    else:
        await reading
    return read


async def test_a_large_object_that_lost_a_part_is_lost_and_can_be_said_again(tmp_path, clock):
    big = {"a": random.Random(1).randbytes(700_000).hex()}
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            await space.apply(config_map("big", **big), "me")
            await space.apply(config_map("small", a="1"), "me")
    flip(block(tmp_path, "KV_kept"), f"$KV.kept.p.{path_of(key('big'))}".encode(), 5_000)
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            names = bucket.stream_of("kept"), bucket.mark_of_loss("kept")
            await mend_if_damaged(connection, SystemClock(), *names, is_made=False)
        async with embedded(url, clock, "kept") as space:
            listed = (await space.list("", "configmaps")).objects
            assert [obj["metadata"]["name"] for obj in listed] == ["small"]
            assert (await space.absence([key("big")])).lost == {key("big")}
            made = await space.apply(config_map("big", **big), "me")
            assert await space.get(key("big")) == made
            assert (await space.absence([key("big")])).present == {key("big")}


async def test_a_bucket_that_lost_its_newest_says_so_whatever_is_written_then(tmp_path, clock):
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            for name in NAMES:
                await space.apply(config_map(name, a="v" * 50), "me")
            known_to = int((await space.revision()).partition(".")[0])
    file = block(tmp_path, "KV_kept")
    data = file.read_bytes()
    file.write_bytes(data[: data.rindex(path_of(key("middle")).encode())])
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            for at in range(6):
                await space.apply(config_map(f"new{at}", a="1"), "me")
            absence = await space.absence([key("last")])
            assert absence.read_to < known_to


async def test_what_lies_before_its_deletion_after_a_cut_of_power_goes_before_that(tmp_path, clock):
    """Else it is there again two hours later, when its deletion is forgotten."""
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            for name in NAMES:
                await space.apply(config_map(name, a="1"), "me")
            await space.delete(key("middle"))
    file = block(tmp_path, "KV_kept")
    # The deletion is on the disk, and not yet that what it replaces is gone.
    file.write_bytes(file.read_bytes()[:-GONE_BYTES])
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept", ()) as space, connected(url) as connection:
            subject = f"$KV.kept.{path_of(key('middle'))}"
            assert (await kept_under(connection, "KV_kept", subject))[0] == {subject: 2}
            listed = (await space.list("", "configmaps")).objects
            assert {obj["metadata"]["name"] for obj in listed} == {"first", "last"}
            assert (await kept_under(connection, "KV_kept", subject))[0] == {subject: 1}
            assert (await space.absence([key("middle")])).deleted == {key("middle")}


@pytest.mark.parametrize("kind", ["bit", "cut", "settings", "purged"])
async def test_a_damaged_bucket_is_the_space_that_it_was(tmp_path, clock, kind):
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            identity = await space.identity()
            await space.apply(config_map("a", a="1"), "me")
            if kind == "purged":
                async with connected(url) as connection:
                    await purge(connection, "KV_kept", "$KV.kept.identity")
                assert await space.identity() == identity
    file = block(tmp_path, "KV_kept")
    match kind:
        case "bit":
            flip(file, b"$KV.kept.identity", 60)
        case "cut":
            file.write_bytes(b"")
        case "settings":
            flip(file.parents[1] / "meta.inf", b'"name"', 3)
    async with served_again(tmp_path, clock) as space:
        assert await space.identity() == identity
        missing = (await space.absence([key("a"), key("never")])).lost
    # Nobody can tell any more what else it had.
    lost = {"bit": {key("never")}, "purged": {key("never")}, "cut": {key("a"), key("never")}}
    assert missing >= lost.get(kind, set())
    async with served_again(tmp_path, clock) as space:
        assert await space.identity() == identity


async def test_a_bucket_of_which_nobody_knows_any_more_what_space_it_was_says_so(tmp_path, clock):
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            await space.identity()
            # As a former release left it.
            await space._bucket._make({})
    flip(block(tmp_path, "KV_kept"), b"$KV.kept.identity", 60)
    async with served_again(tmp_path, clock) as space:
        with pytest.raises(SpaceError, match="bucket kept lost its identity: restore a backup"):
            await space.identity()


@asynccontextmanager
async def served_again(folder, clock):
    """A space on a server that starts anew, as a node opens it."""
    names = bucket.stream_of("kept"), bucket.mark_of_loss("kept")
    with running_server(folder) as url:
        async with connected(url) as connection:
            await mend_if_damaged(connection, SystemClock(), *names, is_made=False)
            space = EmbeddedSpace(connection.client, "kept", clock, SeededDice())
            await space.make()
            await mend_if_damaged(connection, SystemClock(), *names, is_made=True)
            await space.open()
            yield space


SAID = [f"log.{at}" for at in range(9)]
IN_LENGTH, IN_DATA = -len(SAID[-1]) - 19, 20
"""Where a bit of a message is flipped, from the end of its subject on: the server drops the end of
the file with the first, and one message with the second."""


@pytest.mark.parametrize("at", [IN_LENGTH, IN_DATA], ids=["length", "data"])
@pytest.mark.parametrize("first", [SAID[0], SAID[-1]], ids=["elsewhere", "there"])
async def test_what_others_write_hides_no_damage(tmp_path, at, first):
    """As children do that reach their parent's server before its node has begun."""
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            config = {"subjects": ["log.*"], "max_msgs_per_subject": 1, "allow_direct": True}
            await connection.api("STREAM.CREATE.LOG", name="LOG", **config)
            for name in SAID:
                await connection.client.request(name, b"v" * 50, timeout=30)
            assert await looked_through(connection, SAID[0]) == []
            await connection.client.request(SAID[-1], b"v" * 50, timeout=30)
    flip(block(tmp_path, "LOG"), SAID[-1].encode(), at)
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            with suppress(TimeoutError):
                await connection.client.request(first, b"early", timeout=1)
            assert await looked_through(connection, SAID[0]) == ["LOG"]
            await mend_stream(connection, SystemClock(), "LOG")
            assert await looked_through(connection, SAID[0]) == []
            jetstream = connection.client.jetstream()
            await jetstream.publish(SAID[-1], b"later")
            kept = await jetstream.get_last_msg("LOG", SAID[-1])
    assert kept.data == b"later"


async def looked_through(connection, subject):
    """Which streams are damaged, found out while somebody writes without a pause."""
    async with asyncio.TaskGroup() as group:
        looking = group.create_task(damaged_streams(connection, SystemClock(), ["LOG"]))
        while not looking.done():
            await connection.client.publish(subject, b"v" * 50)
            await connection.client.flush()
    return looking.result()


@pytest.mark.parametrize("loaded", [False, True], ids=["first", "later"])
async def test_what_is_applied_again_is_kept_whoever_read_the_damaged_file_first(
    tmp_path, clock, loaded
):
    """The server cuts it at a damaged length, and goes on to count what it cut off as there."""
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            for name in NAMES:
                await space.apply(config_map(name, a="v" * 50), "me")
    zero_length(block(tmp_path, "KV_kept"), f"$KV.kept.{path_of(key('middle'))}".encode())
    names = bucket.stream_of("kept"), bucket.mark_of_loss("kept")
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            if loaded:
                await connection.api("STREAM.MSG.GET.KV_kept", seq=1)
            await mend_if_damaged(connection, SystemClock(), *names, is_made=False)
        async with embedded(url, clock, "kept") as space:
            assert (await space.absence([key("middle")])).lost == {key("middle")}
            made = [await space.apply(config_map(name, a="again"), "me") for name in NAMES]
    with running_server(tmp_path) as url:
        async with embedded(url, clock, "kept") as space:
            assert [await space.get(key(name)) for name in NAMES] == made


async def test_who_reads_a_stream_learns_what_was_cut_off_as_another_read_it(tmp_path):
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            config = {"subjects": ["read.*"], "max_msgs_per_subject": 1}
            await connection.api("STREAM.CREATE.READ", name="READ", **config)
            for at in range(5):
                await connection.client.jetstream().publish(f"read.{at}", b"value")
    zero_length(block(tmp_path, "READ"), b"read.3")
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            await connection.api("STREAM.MSG.GET.READ", seq=1)
            cut = [f"read.{at}" for at in range(3)]
            assert await subjects_of(connection, damaged=2) == cut
            await mend_stream(connection, SystemClock(), "READ")
            assert await subjects_of(connection) == cut
            await connection.client.jetstream().publish("read.3", b"again")
    with running_server(tmp_path) as url:
        async with connected(url) as connection:
            assert await subjects_of(connection) == [*cut, "read.3"]
