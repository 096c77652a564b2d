"""A node that starts again on whole streams writes nothing that is there, however long it takes."""

import pytest

from relay.core.config import NodeConfig
from relay.core.effects import ClearMail, StoreOwn, WriteMail
from relay.core.events import HelloArrived, ReportArrived, Tick
from relay.core.instant import Instant
from relay.core.node import Node
from schemas.values.identity import SNAPSHOT_KEY, NodePath, random_id
from tests.doubles.memory.bus import MemoryBus
from tests.memory_tree import config_map, memory_tree, placement

STARTED_MS = 1_900_000_000_000


@pytest.mark.parametrize("seconds_each", [0.001, 1.5])
@pytest.mark.parametrize("at", ["/", "/r1"])
async def test_a_parent_that_starts_writes_nothing_that_its_children_have(
    tmp_path, at, seconds_each
):
    path = NodePath.parse(at)
    async with memory_tree(tmp_path, ["/r1", "/r1/s1", "/r2", "/r2/s1"]) as tree:
        mine = [{"matchLabels": {"region": "r1"}}]
        await tree.apply(config_map("one", "shop", text="first"))
        await tree.apply(placement("shop", "shop", locationSelectors=mine))
        await tree.until("shop", lambda it: it.exact and it.summary.states == {"synced": 1})
    bus = MemoryBus(tree.network, path)
    remembered = await bus.start()
    await bus.close()
    roots = tree.keys.roots
    config = NodeConfig(path, tree.keys.tree, roots, random_id(b"another run     "))
    node = Node(config, remembered, (), Instant(0.0, STARTED_MS))
    made = [*node.start(), *node.handle((Tick(),), Instant(60.0, STARTED_MS))]
    kept = tree.network.streams(path).stat.items()
    now = 60.0
    for (child, key), slot in kept:
        now += seconds_each
        heard = ReportArrived(child, key, slot.data) if slot.data else HelloArrived(child, b"")
        made += node.handle((Tick(),), Instant(now, STARTED_MS))
        made += node.handle((heard,), Instant(now, STARTED_MS))
    made += node.handle((Tick(),), Instant(now + 35, STARTED_MS))
    node.assert_invariants()
    written = [e for e in made if isinstance(e, WriteMail | ClearMail)]
    assert [e for e in written if e.key != SNAPSHOT_KEY] == []
    assert [e for e in made if isinstance(e, StoreOwn)] == []
