"""No server is started on a store of another kind, whether its mark lies beside it or not."""

import pytest

from relay.adapters.clock import SystemClock
from relay.adapters.server.nats_config import Neighbours
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.store_mark import (
    MARK_FILE,
    StoreMark,
    StoreOfAnotherKind,
    StoreWithoutItsMark,
    mark_store,
)
from schemas.values.identity import NodePath
from tests.nats.conftest import new_seeds
from tests.nats.trio import TREE, asked, client_at, cluster_settings, trio

pytestmark = pytest.mark.nats
CLOCK = SystemClock()


async def test_a_member_is_refused_the_store_of_a_server_alone_which_stays_whole(grove, tmp_path):
    seeds, folder = new_seeds(), tmp_path / "alone"
    cluster = cluster_settings(tmp_path)["m1"]

    def server(**neighbours) -> EmbeddedServer:
        said = Neighbours(**neighbours)
        return EmbeddedServer(folder, NodePath(), seeds, said, guard=grove.guard, clock=CLOCK)

    async with grove:
        async with server() as alone, client_at(alone.url, seeds.relay) as relay:
            await asked(relay, "STREAM.CREATE.OWN", name="OWN", subjects=["lc._own.*"])
            await relay.request("lc._own.a", b"kept", timeout=10)
        with pytest.raises(StoreOfAnotherKind, match="alone"):
            async with server(cluster=cluster):
                pass
        # As it is where a person put `jetstream` into the folder of a member.
        mark_store(folder, StoreMark(TREE, "/", cluster.cluster_name(NodePath()), "m1"))
        with pytest.raises(StoreWithoutItsMark, match="of a server alone"):
            async with server(cluster=cluster):
                pass
        (folder / MARK_FILE).unlink()
        async with server() as alone, client_at(alone.url, seeds.relay) as relay:
            info = await asked(relay, "STREAM.INFO.OWN")
            assert info["state"]["messages"] == 1


async def test_a_server_alone_is_refused_the_store_of_a_member(grove, tmp_path):
    async with grove:
        async with trio(grove, tmp_path) as made:
            seeds, folder = made.seeds, tmp_path / "m1"

        async def start_alone() -> None:
            async with EmbeddedServer(folder, NodePath(), seeds, guard=grove.guard, clock=CLOCK):
                pass

        with pytest.raises(StoreOfAnotherKind, match="member m1 of the trio / of tree"):
            await start_alone()
        (folder / MARK_FILE).unlink()
        with pytest.raises(StoreWithoutItsMark, match="of a member of a trio"):
            await start_alone()
