"""Who was away for longer than tombstones are kept learns what is gone from the signed index."""

import pytest
import pytest_asyncio

from schemas.identity import mail_key
from schemas.records import API_PLACEMENT
from tests.nats.chaos_member import spent, until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")
SETTINGS = {
    "relay.core.tombstones.RETENTION_MS": 2000,
    "relay.core.tombstones.EVERY_SECONDS": 1.0,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("retention"), [REGION], EDGES, SETTINGS) as grown:
        yield grown


async def test_an_edge_away_for_longer_than_the_retention_hears_it_from_the_index(tree):
    await tree.place("shop")
    await tree.place("going")
    await tree.place("again")
    await tree.put("shop", kept="k", changed="1")
    await tree.put("going", whole="w", other="o")
    await tree.put("again", anew="1")
    before = await tree.exact(EDGES)
    await tree.counted("going", synced=2)
    away = tree.members[EDGES[0]]
    await away.stop()
    await tree.withdraw("going")
    await tree.withdraw("again")
    await tree.put("shop", changed="2")
    await tree.exact(EDGES[1:])
    async with tree.session() as session:
        space = await session.workloads.identity()
    keys = {mail_key(API_PLACEMENT, space, "", name) for name in ("going", "again")}
    # No tombstone is left anywhere: neither in the ledger, nor in a mailbox.
    seconds = await until(lambda: nothing_of(tree, keys))
    print(f"\ntombstones gone {seconds:.1f} s later")
    # A namesake that selects the same object: for who was away it was there all the time.
    tree.wanted["again"] = {"anew": "1"}
    await tree.place("again")
    await tree.exact(EDGES[1:])
    away.start()
    after = await tree.exact(EDGES)
    assert after[EDGES[0]].objects["kept"] == before[EDGES[0]].objects["kept"]
    # What changed, and what is gone with `going`.
    assert spent(before, after)[EDGES[0]] == (3, 3)
    await tree.counted("shop", synced=2)


async def nothing_of(tree, keys: set) -> bool:
    for path, streams in (("/", ("OWN", "MAIL")), (REGION, ("OWN", "MAIL"))):
        async with tree.members[path].client("relay") as client:
            for name in streams:
                info = await client.jetstream().stream_info(name, subjects_filter=">")
                found = {subject.rpartition(".")[2] for subject in info.state.subjects or {}}
                if found & keys:
                    return False
    return True
