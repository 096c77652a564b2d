"""Lives of bundles: whoever has one may come until it expires, and who came in time for ever."""

from __future__ import annotations

from tests.simulation.laws import CONVERGENCE, LEAST_PRIVILEGE
from tests.simulation.model import Target
from tests.simulation.run import Run
from tests.simulation.scenes import A, everywhere, region_of, require

MINUTE = 60.0
VALID_MINUTES = 10


def bundle_expired(one: Run) -> None:
    """A bundle expires while a region is cut off from the centre: it opens nothing any more.

    So it stays when the region starts again. Who came in time goes on through all of that, and
    is let in again by a region that lost its disk, once the centre has said that it came.
    """
    world, region = one.world, region_of(one)
    came, late = region.path.child("came"), region.path.child("late")
    until_ms = region.instant().wall_ms + VALID_MINUTES * 60_000
    one.oracle.model_changed()
    for path in (came, late):
        one.centre.invite(path, until_ms)
    one.centre.put_target(Target("came", came, ()))
    one.oracle.model_changed()
    one.world.run(MINUTE)
    world.add(came, attached=True)
    one.settle()
    require(A in world.hosts[came].space.objects, CONVERGENCE, f"{came} gets nothing")
    world.cut(region.path)
    world.run((VALID_MINUTES + 1) * MINUTE)
    thief = world.add(late, attached=True)
    for _ in range(2):
        world.run(MINUTE)
        require(not world.linkable(late), LEAST_PRIVILEGE, f"{late} comes by an old bundle")
        require(world.linkable(came), CONVERGENCE, f"{came} came in time, and is shut out")
        region.stop()
        region.start()
    world.heal(region.path)
    everywhere(one, "p1", A)
    thief.stop(server_too=True)
    world.remove(late)
    one.settle()
    one.oracle.model_changed()
    one.centre.invite(came)
    one.centre.put_node(late, deleted=True)
    one.oracle.model_changed()
    one.settle()
    region.stop(keep_disk=False, server_too=True)
    region.start()
    one.settle()


LIVES = (bundle_expired,)
