"""Who was added and never joined counts apart, holds nobody up, and is told so by every tier."""

from __future__ import annotations

import pytest

from schemas.identity import NodePath
from schemas.reports import NEVER_JOINED, Summary
from tests.simulation.centre import Target, placement_key
from tests.simulation.faults import NO_FAULTS
from tests.simulation.run import Run
from tests.simulation.sizes import SMALL

SEEDS = range(4)


class Awaited(Run):
    """A settled tree, a placement for all, and one edge more, which nobody is."""

    def __init__(self, seed: int, *, relay: bool = False) -> None:
        super().__init__(seed, NO_FAULTS, SMALL)
        self.build()
        self.workload.fill()
        self.settle()
        self.name = min(self.centre.model.placements)
        self.before = self.summary()
        relays = [path for path, host in self.world.hosts.items() if len(path.names) == 1]
        self.region = NodePath(("late",)) if relay else min(relays)
        self.late = self.region.child("late")
        for path in [self.region, self.late] if relay else [self.late]:
            self.centre.put_node(path)
        self.oracle.model_changed()
        self.centre.put_target(Target("late", self.late, ()))
        self.oracle.model_changed()

    def summary(self) -> Summary:
        node = self.world.root.node
        assert node is not None
        return node.summary(placement_key(self.name))

    def absent(self) -> list[NodePath]:
        """The nodes that their parents have never heard of."""
        running = [host for host in self.world.hosts.values() if host.node is not None]
        known = [
            (h.path.child(name), h.node.standing_of(name))
            for h in running
            for name in h.node.children()
        ]
        return [path for path, standing in known if not standing.joined]

    def counts_apart(self) -> None:
        summary = self.summary()
        assert summary.states == {**self.before.states, NEVER_JOINED: 1}
        assert summary.health[NEVER_JOINED] == 1
        assert summary.complete
        assert summary.joined == self.before.destinations

    def joins(self, *paths: NodePath) -> None:
        for path in paths:
            self.world.add(path, attached=path == self.late)
        self.settle()
        assert self.summary().states == {"synced": self.before.destinations + 1}
        assert self.absent() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_never_joined_counts_apart_and_keeps_no_summary_open(seed):
    one = Awaited(seed)
    one.world.run(10)
    one.counts_apart()
    one.world.run(600)
    one.counts_apart()
    assert one.absent() == [one.late]
    one.joins(one.late)


@pytest.mark.parametrize("seed", SEEDS)
def test_that_a_node_never_joined_outlives_restarts_of_its_parent_and_that_it_did_as_well(seed):
    one = Awaited(seed)
    one.world.run(10)
    for _ in range(2):
        for path in (one.region, NodePath()):
            one.world.hosts[path].stop()
            one.world.hosts[path].start()
        assert one.absent() == [one.late]
        one.world.run(60)
        one.counts_apart()
    one.joins(one.late)
    one.world.hosts[one.late].stop()
    one.world.hosts[one.region].stop()
    one.world.hosts[one.region].start()
    assert one.absent() == []
    one.world.run(200)
    assert one.summary().states["unreachable"] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_below_a_region_that_never_joined_each_destination_counts_apart(seed):
    one = Awaited(seed, relay=True)
    one.world.run(200)
    one.counts_apart()
    assert one.absent() == [one.region]
    one.joins(one.region, one.late)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_parent_without_memory_takes_nobody_for_one_that_never_joined(seed):
    one = Awaited(seed)
    one.joins(one.late)
    one.world.hosts[one.late].stop()
    one.world.hosts[one.region].stop(keep_disk=False)
    one.world.hosts[one.region].start()
    one.world.run(200)
    assert one.absent() == []
    assert NEVER_JOINED not in one.summary().states


@pytest.mark.parametrize("seed", SEEDS)
def test_a_region_that_falls_silent_is_unreachable_but_for_who_had_never_joined_it(seed):
    one = Awaited(seed)
    one.world.run(60)
    one.world.cut(one.region)
    one.world.run(200)
    states = one.summary().states
    assert states[NEVER_JOINED] == 1
    assert states.get("unreachable", 0) == one.before.destinations - states.get("synced", 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_is_removed_and_added_again_has_never_joined(seed):
    one = Awaited(seed)
    one.joins(one.late)
    one.world.remove(one.late)
    one.oracle.model_changed()
    target = one.centre.model.targets["late"]
    one.centre.put_target(target, deleted=True)
    one.centre.put_node(one.late, deleted=True)
    one.oracle.model_changed()
    one.world.run(60)
    one.centre.put_node(one.late)
    one.centre.put_target(Target("later", one.late, ()))
    one.oracle.model_changed()
    one.world.run(60)
    one.counts_apart()
