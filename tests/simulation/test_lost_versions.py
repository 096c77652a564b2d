"""What only an edge still holds, newer than all that the nodes above it know."""

from schemas.identity import NodePath
from tests.simulation.blindness import Blindness
from tests.simulation.chaos import put_back
from tests.simulation.faults import NO_FAULTS
from tests.simulation.people import NEWER_SECONDS, edge_placement, location, target_key
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SIZES
from tests.simulation.spaced_run import SpacedRun

REGION, EDGE = NodePath.parse("/r0"), NodePath.parse("/r0/e0")
NARROW, WIDE = [{"namespaces": ["shop"]}], [{"namespaces": ["shop"]}, {"namespaces": ["lab"]}]


def place(one, clauses):
    one.judge.people_acted()
    one.spaced.workloads.put(*edge_placement("p1", {}, clauses))
    one.judge.people_acted()
    one.world.run(5)


def test_a_version_that_only_an_edge_holds_keeps_the_count_open_until_people_change_the_placement():
    with cheap_signatures():
        one = SpacedRun(
            "newer", NO_FAULTS, SIZES["blind"], own=Blindness(), regions=(1, 1), story=True
        )
        one.build()
        one.spaced.inventory.put(*location("l1", {}))
        place(one, NARROW)
        # A copy of the region's disk from when it did not know yet what its edge holds.
        region = one.world.hosts[REGION]
        one.world.cut(EDGE)
        region.stop(keep_disk=False)
        region.start()
        one.world.run(5)
        kept = region.streams.copy()
        one.world.heal(EDGE)
        one.world.run(5)
        place(one, WIDE)
        place(one, NARROW)
        # What the space says is what was read back, so the centre has nothing to issue anew.
        one.spaced.lose_disk()
        put_back(region, kept)
        one.spaced.inventory.delete(target_key("r0-e0"))
        lost = one.world.now
        one.settle()
    assert any("user changes p1" in line for line in one.world.story)
    assert one.world.now > lost + NEWER_SECONDS
