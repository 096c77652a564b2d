"""What a node's streams keep follows it to another path, wherever that was broken off before."""

import pytest

from leafcast.node.credentials.account_seeds import account_seeds
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream import stream_copy, stream_rekey
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.publish import REPLACES, Outgoing, Publisher, header_lines
from relay.adapters.jetstream.stream_reader import StreamReader
from relay.adapters.jetstream.streams import REPLACING, make_streams
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_server import EmbeddedServer
from relay.ports import BusBroken
from schemas.values import subjects
from schemas.values.identity import NodePath

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

OLD, NEW = map(NodePath.parse, ("/r1/s1", "/r2/s9"))
KINDS = {"OWN": subjects.own, "DONE": subjects.done, "BLOB": subjects.blob}
COUNT = 25


async def connect(server, seeds):
    connection = Connection(server.url, seeds.relay, "test", "_INBOX.test")
    await connection.open()
    return connection


async def held(server, seeds):
    """All that the streams hold: subject to data and headers."""
    connection, found = await connect(server, seeds), {}

    async def take(stored):
        assert stored.subject not in found
        found[stored.subject] = (stored.data, dict(stored.headers))

    for name in KINDS:
        await StreamReader(connection, SystemClock(), name).read_all(take)
    await connection.close()
    return found


def kept_at(path):
    """What a node keeps, as it is told at this path."""
    return {
        subject(path, f"k{n}"): (
            f"{name} {n}".encode(),
            ({"Lc-Gen": str(n)} if n % 2 else {}) | (REPLACES if name in REPLACING else {}),
        )
        for name, subject in KINDS.items()
        for n in range(COUNT)
    }


async def test_broken_off_at_any_step_it_ends_the_same(tmp_path, monkeypatch):
    clock, first = SystemClock(), tmp_path / OLD.domain
    seeds = account_seeds(first, SystemDice())
    async with ProcessGuard() as guard:
        async with EmbeddedServer(first, OLD, seeds, guard=guard, clock=clock) as server:
            connection = await connect(server, seeds)
            await make_streams(connection, OLD)
            publisher = Publisher(connection)
            await publisher.start()
            await publisher.publish(
                [
                    Outgoing(subject, data, header_lines(headers))
                    for subject, (data, headers) in kept_at(OLD).items()
                ]
            )
            await connection.close()
        # Its server has another name and domain now.
        second = first.rename(tmp_path / NEW.domain)
        monkeypatch.setattr(stream_copy, "BATCH_MESSAGES", 10)
        async with EmbeddedServer(second, NEW, seeds, guard=guard, clock=clock) as server:
            steps, done = 0, False
            while not done:
                done = await carried(server, seeds, monkeypatch, steps)
                steps += 1
                assert len(await held(server, seeds)) >= len(kept_at(NEW))
            assert steps > 20
            assert await held(server, seeds) == kept_at(NEW)
            connection = await connect(server, seeds)
            await make_streams(connection, NEW)
            await connection.close()
            assert await stream_rekey.rekey_streams(server.url, seeds.relay, clock, [OLD], NEW) == 0


async def carried(server, seeds, monkeypatch, steps) -> bool:
    """Whether it came to its end within so many requests and batches, and one more."""
    left = [steps]

    def counted(honest):
        async def step(*arguments, **named):
            left[0] -= 1
            if left[0] < 0:
                raise BusBroken("broken off")
            return await honest(*arguments, **named)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "api", counted(Connection.api))
        patch.setattr(Publisher, "publish", counted(Publisher.publish))
        try:
            await stream_rekey.rekey_streams(server.url, seeds.relay, SystemClock(), [OLD], NEW)
        except BusBroken:
            return False
    return True
