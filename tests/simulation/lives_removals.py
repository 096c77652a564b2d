"""An edit of labels takes much of a placement: it stays until a person lets it go, come what may.

The centre's own decision holds it; the tree, and the centre, suffer.
"""

from __future__ import annotations

from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.placements import EDGE_PLACEMENTS
from schemas.records.records import (
    OVER_LOCATION,
    Alternative,
)
from tests.simulation.laws import CONVERGENCE, HELD
from tests.simulation.model import (
    Located,
    Placed,
    placement_key,
)
from tests.simulation.process import CAUGHT_UP_SECONDS
from tests.simulation.run import Run
from tests.simulation.scenes import (
    P1,
    P2,
    contents,
    edges_of,
    holding,
    put,
    region_of,
    require,
    until,
)
from tests.simulation.workload import OBJECTS

SITE = "site"
LOSING, GAINING = map(EDGE_PLACEMENTS.named, ("p1", "p2"))
GAINED = ObjectKey("", "configmaps", "default", "gained")
MINUTE = 60.0


def at(value: str) -> tuple[Alternative, ...]:
    """Who belongs to a Location that says so."""
    return (Alternative(OVER_LOCATION, LabelSelector((Requirement("at", "In", (value,)),))),)


def _label(one: Run, value: str) -> None:
    """A user says where all edges are."""
    one.oracle.model_changed()
    one.centre.put_location(SITE, Located((("at", value),), LabelSelector()))
    one.oracle.model_changed()
    one.world.run(CAUGHT_UP_SECONDS)


def _is_held(one: Run) -> bool:
    return placement_key(LOSING) in one.centre.brakes.brake.held


def held_removal(one: Run) -> None:
    """The centre starts again, and an edge loses its disk: nobody lets go of what is held."""
    _deliver(one)
    everyone = [str(host.path) for host in edges_of(one)]
    _label(one, "hree")
    require(_is_held(one), HELD, "it is not held")
    edge, *others = edges_of(one)
    one.world.cut(edge.path)
    one.world.root.stop()
    one.world.root.start()
    one.world.run(CAUGHT_UP_SECONDS)
    require(_is_held(one), HELD, "the centre forgot that it is held")
    # Whoever gains by the same edit has it at once.
    until(one, lambda: _have(one, GAINED, len(others)), CONVERGENCE, "nobody gains", MINUTE)
    edge.stop(keep_disk=False)
    edge.space.wipe()
    one.world.heal(edge.path)
    edge.start()
    region_of(one).stop()
    region_of(one).start()
    one.world.run(3 * MINUTE)
    for key in OBJECTS:
        require(holding(one, key) == everyone, HELD, f"{key} is at {holding(one, key)} alone")
    one.centre.accept()
    until(one, lambda: not holding(one, OBJECTS[0]), HELD, "nobody lets go", 2 * MINUTE)


def put_back(one: Run) -> None:
    """Who puts the labels back leaves no trace, and nobody loses anything meanwhile."""
    _deliver(one)
    before = one.centre.model.placements[LOSING].alternatives
    _label(one, "hree")
    one.world.run(5.0)
    _label(one, "here")
    require(not _is_held(one), HELD, "it is held, though nothing is lost")
    one.settle()
    require(one.centre.model.placements[LOSING].alternatives == before, HELD, "a hold is left")
    for key in OBJECTS:
        require(len(holding(one, key)) == len(edges_of(one)), HELD, f"{key} went")


def _deliver(one: Run) -> None:
    """All objects are at all edges, by a Location; another placement waits for other labels."""
    for name in (P1, P2):
        put(one, name, None)
    _label(one, "here")
    put(one, LOSING, Placed(at("here"), one.centre.arm(contents(one, *OBJECTS))))
    put(one, GAINING, Placed(at("hree"), one.centre.arm(contents(one, GAINED))))
    one.settle()


def _have(one: Run, key: ObjectKey, count: int) -> bool:
    return len(holding(one, key)) >= count


LIVES = (held_removal, put_back)
