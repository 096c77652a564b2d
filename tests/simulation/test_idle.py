"""What a tree costs in which nothing happens."""

from __future__ import annotations

from typing import Any

import pytest

from leafcast.doctor.checks import INDEX_MS_MAX
from tests.simulation.faults import NO_FAULTS
from tests.simulation.run import Run
from tests.simulation.sizes import SMALL


class Looked(dict[Any, Any]):
    """Counts how often somebody goes through all that is in it."""

    times = 0

    def items(self) -> Any:
        self.times += 1
        return super().items()

    def values(self) -> Any:
        self.times += 1
        return super().values()

    def __iter__(self) -> Any:
        self.times += 1
        return super().__iter__()


def test_the_heartbeats_of_children_without_news_lead_through_no_mailbox():
    one = Run("idle", NO_FAULTS, SMALL)
    one.build()
    one.world.run(60)
    nodes = [host.node for host in one.world.hosts.values() if host.node is not None]
    boxes = [box for node in nodes for box in node._state.mailboxes.boxes.values()]
    assert sum(len(box.slots) for box in boxes) > 2
    for box in boxes:
        box.slots = Looked(box.slots)
    one.world.run(60)
    heard = [one.world.now - c.heard for node in nodes for c in node._state.children.values()]
    assert max(heard) < 10
    assert [box.slots.times for box in boxes] == [0] * len(boxes)


@pytest.mark.parametrize("seed", range(3))
def test_no_index_grows_old_while_nothing_happens_the_centres_own_included(seed):
    one = Run(seed, NO_FAULTS, SMALL)
    one.build()
    oldest = 0
    for _ in range(180):
        one.world.run(60)
        nodes = [host.node for host in one.world.hosts.values() if host.node is not None]
        oldest = max(oldest, *(node.own_state()["indexAgeMs"] for node in nodes))
    assert 0 < oldest < INDEX_MS_MAX
