"""An edit of labels takes much of a placement: it stays until a person lets it go, come what may.

The centre's own decision holds it; the tree, and the centre, suffer.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from controllers.core.inventory.make_before_break import is_hold
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import (
    OVER_LOCATION,
    Alternative,
)
from schemas.values.identity import MailKey
from tests.simulation.centre import CAUGHT_UP_SECONDS
from tests.simulation.laws import CONVERGENCE, HELD
from tests.simulation.model import (
    Located,
    Placed,
    keys_of,
    placement_key,
)
from tests.simulation.run import Run
from tests.simulation.scenes import contents, edges_of, holding, put, region_of, require, until
from tests.simulation.workload import OBJECTS

SITE, NAME, GAINING = "site", "p1", "p2"
GAINED = ObjectKey("", "configmaps", "default", "gained")
MINUTE = 60.0


def at(value: str) -> tuple[Alternative, ...]:
    """Who belongs to a Location that says so."""
    return (Alternative(OVER_LOCATION, LabelSelector((Requirement("at", "In", (value,)),))),)


class Editor:
    """A user of one Location, and what the centre knows of placements."""

    def __init__(self, one: Run) -> None:
        self._one = one
        one.centre.weights = self
        one.world.root.stop()
        one.world.root.start()

    def label(self, **labels: str) -> None:
        self._one.oracle.model_changed()
        self._one.centre.put_location(SITE, Located(tuple(labels.items()), LabelSelector()))
        self._one.oracle.model_changed()
        self._one.world.run(CAUGHT_UP_SECONDS)

    def accept(self) -> None:
        self._one.centre.brakes.accept(placement_key(NAME))

    @property
    def is_held(self) -> bool:
        return placement_key(NAME) in self._one.centre.brakes.brake.held

    def _mean(self) -> None:
        """The placement is meant for those who hold it, too."""
        placed = self._one.centre.model.placements[NAME]
        meant = tuple(each for each in placed.alternatives if not is_hold(each))
        wanted = meant + self._one.centre.brakes.alternatives(placement_key(NAME))
        if wanted != placed.alternatives:
            put(self._one, NAME, replace(placed, alternatives=wanted))

    # What is known of placements.

    def objects_of(self, placement: MailKey) -> AbstractSet[ObjectKey]:
        named = {placement_key(name): it for name, it in self._one.centre.model.placements.items()}
        return keys_of(named[placement])

    def grace_of(self, _placement: MailKey) -> float | None:
        return None

    def brakes_changed(self, _placements: AbstractSet[MailKey]) -> None:
        self._one.world.after(0.0, self._mean)


def held_removal(one: Run) -> None:
    """The centre starts again, and an edge loses its disk: nobody lets go of what is held."""
    editor = _delivered(one)
    everyone = [str(host.path) for host in edges_of(one)]
    editor.label(at="hree")
    require(editor.is_held, HELD, "it is not held")
    edge, *others = edges_of(one)
    one.world.cut(edge.path)
    one.world.root.stop()
    one.world.root.start()
    one.world.run(CAUGHT_UP_SECONDS)
    require(editor.is_held, HELD, "the centre forgot that it is held")
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
    editor.accept()
    until(one, lambda: not holding(one, OBJECTS[0]), HELD, "nobody lets go", 2 * MINUTE)


def put_back(one: Run) -> None:
    """Who puts the labels back leaves no trace, and nobody loses anything meanwhile."""
    editor = _delivered(one)
    before = one.centre.model.placements[NAME].alternatives
    editor.label(at="hree")
    one.world.run(5.0)
    editor.label(at="here")
    require(not editor.is_held, HELD, "it is held, though nothing is lost")
    one.settle()
    require(one.centre.model.placements[NAME].alternatives == before, HELD, "a hold is left")
    for key in OBJECTS:
        require(len(holding(one, key)) == len(edges_of(one)), HELD, f"{key} went")


def _delivered(one: Run) -> Editor:
    """All objects are at all edges, by a Location; another placement waits for other labels."""
    editor = Editor(one)
    editor.label(at="here")
    put(one, NAME, Placed(at("here"), one.centre.arm(contents(one, *OBJECTS))))
    put(one, GAINING, Placed(at("hree"), one.centre.arm(contents(one, GAINED))))
    one.settle()
    return editor


def _have(one: Run, key: ObjectKey, count: int) -> bool:
    return len(holding(one, key)) >= count


LIVES = (held_removal, put_back)
