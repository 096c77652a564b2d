"""A centre that starts writes nothing that its children have, however long the start takes."""

import pytest

from relay.adapters.memory.bus import MemoryBus
from relay.core.effects import WriteMail
from relay.core.events import Instant, ReportArrived, Tick
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.identity import INDEX_KEY, NodePath, random_id
from schemas.subjects import LABELS_KEY
from tests.memory_tree import config_map, memory_tree, placement

ROOT = NodePath()
STARTED_MS = 1_900_000_000_000


@pytest.mark.parametrize("seconds_each", [0.001, 1.5])
async def test_labels_are_waited_for_from_the_first_event_on_while_reports_come(
    tmp_path, seconds_each
):
    async with memory_tree(tmp_path, ["/r1", "/r1/s1", "/r2", "/r2/s1"]) as tree:
        mine = [{"matchLabels": {"region": "r1"}}]
        await tree.apply(config_map("one", "shop", text="first"))
        await tree.apply(placement("shop", "shop", locationSelectors=mine))
        await tree.until("shop", lambda s: s.complete and s.states == {"synced": 1})
    await tree.network.bus(ROOT).close()
    bus = MemoryBus(tree.network, ROOT)
    remembered = await bus.start()
    await bus.close()
    roots = {tree.keys.root.key_id: tree.keys.root.public_key}
    config = NodeConfig(ROOT, tree.keys.tree, roots, random_id(b"another run     "))
    node = Node(config, remembered, (), Instant(0.0, STARTED_MS))
    made = [*node.start(), *node.handle(Tick(), Instant(60.0, STARTED_MS))]
    kept = tree.network.streams(ROOT).stat.items()
    reports = [ReportArrived(child, key, slot.data) for (child, key), slot in kept if slot.data]
    assert {report.child for report in reports if report.key == LABELS_KEY} == {"r1", "r2"}
    now = 60.0
    for report in sorted(reports, key=lambda report: report.key == LABELS_KEY):
        now += seconds_each
        made += node.handle(Tick(), Instant(now, STARTED_MS))
        made += node.handle(report, Instant(now, STARTED_MS))
    made += node.handle(Tick(), Instant(now + 35, STARTED_MS))
    assert [e for e in made if isinstance(e, WriteMail) and e.key != INDEX_KEY] == []
