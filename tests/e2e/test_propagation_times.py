"""How long changes take is measured where they come to be, each once, and only of who was there."""

from __future__ import annotations

import pytest

from leafcast.daemon.verbs.tracing import traced_path
from leafcast.explain.waterfall import waterfall
from relay.shell.propagation_times import PropagationStage
from relay.shell.trace_ring import TraceStage
from schemas.values.identity import NodePath
from schemas.values.trace_ids import trace_id, w3c_trace_id
from tests.memory_tree import config_map, memory_tree, placement

PATHS = ["/r1", "/r2", "/r1/s1", "/r1/s2", "/r2/s1"]
REGION, SITE = NodePath.parse("/r1"), NodePath.parse("/r1/s1")


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, PATHS) as grown:
        yield grown


def measured(tree, path):
    return {stage: it.total for stage, it in tree.drivers[path].times.by_stage.items()}


async def working(tree, count=3):
    """Wait until the placement works everywhere, and that is written down."""
    await tree.until(
        "shop",
        lambda c: (
            c.exact
            and c.summary.states == {"synced": count}
            and c.summary.health["healthy"] == count
        ),
    )
    await tree.controllers.written(["shop"])


async def change(tree, text):
    key = await tree.placement_key("shop")
    held = tree.centre.node.records.get(key)
    await tree.apply(config_map("a", "shop", text=text))
    await tree.controllers.caught_up()
    await tree.centre.until(
        lambda node: held is None or node.records[key].generation > held.generation
    )
    await working(tree)


async def test_each_change_is_measured_once_at_each_tier(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop", text="first"))
    await working(tree)
    before = {path: measured(tree, path) for path in (NodePath(), REGION, SITE)}
    await change(tree, "second")
    await change(tree, "third")

    def news(path):
        return {stage: n - before[path][stage] for stage, n in measured(tree, path).items()}

    assert news(NodePath()) == {
        PropagationStage.PASSED_ON: 2,
        PropagationStage.DELIVERED: 2,
        PropagationStage.WORKING: 2,
    }
    assert news(REGION) == {PropagationStage.RECEIVED: 2, PropagationStage.PASSED_ON: 2}
    assert news(SITE) == {
        PropagationStage.RECEIVED: 2,
        PropagationStage.APPLIED: 2,
        PropagationStage.HEALTHY: 2,
    }
    record = tree.centre.node.records[await tree.placement_key("shop")]
    last = [
        it for it in tree.drivers[SITE].times.by_stage[PropagationStage.APPLIED].exemplars if it
    ]
    assert record.trace in {it.trace for it in last}
    assert w3c_trace_id(record.trace) == trace_id(record.key, record.generation).hex()

    def noted(path):
        return dict(tree.drivers[path].traces.of(record.key, record.generation))

    it = TraceStage
    # What a report says is read at its parent before the batch that sent it is looked at.
    for path in (REGION, SITE):
        await tree.drivers[path].until(lambda _, path=path: it.TOLD_WORKING in noted(path))
    passed_on = [it.FIRST_PASSED_ON, it.LAST_PASSED_ON]
    at_centre = [it.SEEN, it.SIGNED, it.ISSUED, *passed_on, it.DELIVERED, it.WORKING]
    at_region = [it.RECEIVED, it.COMPLETE, *passed_on, it.TOLD_DELIVERED, it.TOLD_WORKING]
    at_edge = [it.RECEIVED, it.COMPLETE, it.PLANNED, it.FIRST_APPLIED, it.APPLIED, it.HEALTHY]
    at_edge += [it.TOLD_DELIVERED, it.TOLD_WORKING]
    for path, stages in ((NodePath(), at_centre), (REGION, at_region), (SITE, at_edge)):
        told = noted(path)
        assert list(told) == stages
        assert list(told.values()) == sorted(told.values())


async def test_the_slowest_way_is_asked_for_and_a_node_that_began_anew_is_a_gap(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop", text="first"))
    await working(tree)
    key = await tree.placement_key("shop")

    async def way(**asked):
        return await traced_path(tree.asks, tree.clock, key, **asked)

    nodes, chosen = await way()
    assert chosen == "last", nodes
    assert len(nodes) == 3
    assert nodes[-1].said.is_edge
    # What lacks the change is slower than what was counted.
    await tree.stop(SITE)
    former = nodes[0].said.generation
    await tree.apply(config_map("a", "shop", text="second"))
    await tree.centre.until(lambda node: node.records[key].generation > former)
    generation = tree.centre.node.records[key].generation
    await tree.drivers[REGION].until(
        lambda node: TraceStage.LAST_PASSED_ON in tree.drivers[REGION].traces.of(key, generation)
    )
    nodes, chosen = await way(names=SITE.names)
    assert chosen == "named"
    assert nodes[-1].fault is not None
    form = waterfall(nodes, generation)[-1]
    assert form["gap"].startswith("no span: ")
    await tree.start(SITE, tree.group, attached=True)
    await working(tree)
    # What a node noted is in its memory; the record itself says when it was signed and written.
    await tree.stop(SITE)
    await tree.start(SITE, tree.group, attached=True)
    await tree.drivers[SITE].until(lambda node: node.ready)
    nodes, _ = await way(names=SITE.names)
    at_centre, at_region, at_site = waterfall(nodes, generation)
    assert at_site["gap"].startswith("no span: it began anew ")
    assert [span["stage"] for span in at_region["spans"]][:3] == [
        "received",
        "content complete",
        "first passed on",
    ]
    assert "signed" in [span["stage"] for span in at_centre["spans"]]
    former_way, _ = await way(generation=former, names=SITE.names[:1])
    assert [it.said.generation for it in former_way] == [former, former]


async def test_what_was_changed_while_a_node_was_away_is_not_measured_there(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop", text="first"))
    await working(tree)
    await tree.stop(SITE)
    key = await tree.placement_key("shop")
    former = tree.centre.node.records[key].generation
    await tree.apply(config_map("a", "shop", text="second"))
    await tree.controllers.caught_up()
    await tree.centre.until(lambda node: node.records[key].generation > former)
    await tree.leap(1)

    await tree.start(SITE, tree.group, attached=True)
    await working(tree)
    assert set(measured(tree, SITE).values()) == {0}
    await change(tree, "third")
    assert set(measured(tree, SITE).values()) == {1}
