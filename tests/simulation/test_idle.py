"""What a tree costs in which nothing happens."""

from __future__ import annotations

from contextlib import closing

import pytest

from relay.core import effects as fx
from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
from tests.simulation.ports import Ports
from tests.simulation.run import Run
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SMALL

SNAPSHOT_MS_MAX = 20 * 60 * 1000
IDLE_SECONDS, SAID_MAX = 1800.0, 220


class Bytes(Ports):
    """Counts what an edge says and is told while nothing happens."""

    def __init__(self) -> None:
        self.said_by: dict[str, int] = {}

    def said(self, host: Host, effect: fx.Effect) -> list[fx.Effect]:
        to_bus = (fx.SendHello, fx.SendReport, fx.WriteMail, fx.StoreOwn, fx.AckMail)
        if isinstance(effect, to_bus):
            self.said_by[str(host.path)] = self.said_by.get(str(host.path), 0) + 1
        return [effect]


def test_an_edge_without_news_says_little_more_than_a_hello_each_half_minute():
    with cheap_signatures(), closing(Run("idle", NO_FAULTS, SMALL)) as one:
        one.build()
        one.world.run(60)
        one.world.ports = counted = Bytes()
        one.world.run(IDLE_SECONDS)
    edges = [str(host.path) for host in one.world.hosts.values() if len(host.path.names) == 2]
    assert edges
    assert all(0 < counted.said_by[edge] <= SAID_MAX for edge in edges), counted.said_by


@pytest.mark.parametrize("seed", range(3))
def test_no_snapshot_grows_old_while_nothing_happens(seed):
    with cheap_signatures(), closing(Run(seed, NO_FAULTS, SMALL)) as one:
        one.build()
        oldest = 0
        for _ in range(180):
            one.world.run(60)
            nodes = [host.node for host in one.world.hosts.values() if host.node is not None]
            oldest = max(oldest, *(node.own_state()["snapshotAgeMs"] for node in nodes))
    assert 0 < oldest < SNAPSHOT_MS_MAX
