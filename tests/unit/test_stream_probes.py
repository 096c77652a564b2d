"""Of many streams some are looked at each time, and those that were stuck each time."""

import pytest

from relay.adapters.jetstream.stream_probes import IN_TURN_MAX, ProbedInTurn


class Cluster:
    """Answers which streams there are."""

    def __init__(self, names):
        self.names = names

    async def api(self, verb, offset, subject):
        assert (verb, subject) == ("STREAM.NAMES", "lc.*._up.*")
        return {"streams": self.names[offset:], "total": len(self.names)}


@pytest.mark.parametrize("count", [0, 1, IN_TURN_MAX, 2 * IN_TURN_MAX + 3])
async def test_each_stream_is_looked_at_in_its_turn(count):
    names = [f"edge-{at:03}" for at in range(count)]
    probed, seen = ProbedInTurn(Cluster(names), "lc.*._up.*"), []
    for _ in range(-(-count // IN_TURN_MAX)):
        seen += (found := await probed.next(()))
        assert len(found) <= IN_TURN_MAX
    assert seen == names
    assert list(await probed.next(())) == names[:IN_TURN_MAX]


async def test_one_that_was_stuck_is_looked_at_again_until_it_is_gone():
    cluster = Cluster([f"edge-{at:03}" for at in range(2 * IN_TURN_MAX)])
    probed = ProbedInTurn(cluster, "lc.*._up.*")
    await probed.next(())
    assert "edge-000" in await probed.next({"edge-000", "OWN"})
    cluster.names = cluster.names[1:]
    assert "edge-000" not in await probed.next({"edge-000", "OWN"})
