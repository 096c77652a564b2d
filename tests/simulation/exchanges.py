"""Lives in which placements give objects to each other, and nobody may miss one meanwhile."""

from __future__ import annotations

from dataclasses import replace

from relay.core.effects import Effect, WriteMail
from relay.core.turns import together
from schemas.objects import ObjectKey
from schemas.records import Alternative
from schemas.selectors import LabelSelector, Requirement
from tests.simulation.centre import Content, Located, Placed
from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
from tests.simulation.laws import NO_IGNORANCE
from tests.simulation.run import Run
from tests.simulation.scenes import (
    EVERYWHERE,
    A,
    B,
    C,
    D,
    edges_of,
    everywhere,
    put,
    put_together,
    region_of,
    require,
)

TIMES = 8
AWAY_SECONDS = 5.0


def exchanged(one: Run) -> None:
    """Two placements exchange an object at once, while a relay is cut off, or is not."""
    one.world.faults = replace(NO_FAULTS, delay_mean=0.3)
    region = region_of(one).path
    contents = _begin(one)
    for at in range(TIMES):
        if at % 2:
            one.world.cut(region)
        _exchange(one, contents)
        one.world.run(5.0)
        one.world.heal(region)
        one.settle()


def exchanged_by_halves(one: Run) -> None:
    """The same, and the relay is killed each time between the two that it passes on.

    When it is back there is mail that gives, and that it may pass on at once.
    """
    one.world.faults = replace(NO_FAULTS, delay_mean=0.3)
    region = region_of(one)
    contents = _begin(one)
    for name in ("p3", "p4"):
        everywhere(one, name, D)
    one.settle()
    for _ in range(TIMES):
        before = region.run
        _break_off(region)
        _exchange(one, contents)
        one.world.run(AWAY_SECONDS)
        for name in ("p3", "p4"):
            _prefer(one, name)
        one.world.run(2 * AWAY_SECONDS)
        require(region.run > before, NO_IGNORANCE, f"{region.path} passes on nothing together")
        one.settle()


def relocated(one: Run) -> None:
    """A Location takes over what another one selects, and both are said at once."""
    one.world.faults = replace(NO_FAULTS, delay_mean=0.3)
    zone = Alternative("location", LabelSelector((Requirement("zone", "In", ("a",)),)))
    _locate(one, "l1", "l2")
    contents = {key: one.centre.content(key.name) for key in (A, B)}
    put(one, "p1", Placed((zone,), one.centre.arm(contents)))
    one.settle()
    held = [host.space.objects[A] for host in edges_of(one)]
    for at in range(TIMES):
        _locate(one, *(("l2", "l1") if at % 2 == 0 else ("l1", "l2")))
        one.world.run(5.0)
        one.settle()
    now = [host.space.objects[A] for host in edges_of(one)]
    require(now == held, NO_IGNORANCE, "an object was removed, and made again")


def _locate(one: Run, here: str, away: str) -> None:
    """Have one of two Locations select all SyncTargets, as the centre publishes a list of both.

    The one that selects none from then on comes first.
    """
    nowhere = LabelSelector((Requirement("nowhere", "Exists"),))
    said = {away: nowhere, here: LabelSelector()}
    more = together(["location"] * len(said))
    one.oracle.model_changed()
    for (name, instances), goes_on in zip(said.items(), more, strict=True):
        one.centre.put_location(name, Located((("zone", "a"),), instances), more=goes_on)
    one.oracle.model_changed()


def _begin(one: Run) -> dict[ObjectKey, Content]:
    """Two placements everywhere, each with an object that it is to give, and one to keep."""
    contents = everywhere(one, "p1", A, B)
    contents |= everywhere(one, "p2", C)
    one.settle()
    return contents


def _exchange(one: Run, contents: dict[ObjectKey, Content]) -> None:
    """Have each take what the other one has besides B; one brings something new with it."""
    held = {key for key, _ in one.centre.model.placements["p1"].arm.contents}
    first, second = (C, A) if A in held else (A, C)
    new = {key: contents[key] for key in (first, second)}
    contents[B] = one.centre.content(B.name)
    arms = {"p1": {first: new[first]}, "p2": {second: new[second], B: contents[B]}}
    if first == A:
        arms = {"p1": {A: new[A], B: contents[B]}, "p2": {C: new[C]}}
    put_together(one, {name: Placed(EVERYWHERE, one.centre.arm(arms[name])) for name in arms})


def _prefer(one: Run, name: str) -> None:
    """Say a placement once more, with another priority: it needs nothing that is not there."""
    placed = one.centre.model.placements[name]
    put(one, name, replace(placed, priority=1 - placed.priority))


def _break_off(host: Host) -> None:
    """Have a process die for a moment when it has written the first of what goes together."""
    honest = host._perform_one

    def perform(effect: Effect) -> None:
        if dying:
            return
        honest(effect)
        if isinstance(effect, WriteMail) and effect.more:
            dying.append(effect)
            host.world.after(0, die)

    def die() -> None:
        del host._perform_one
        host.stop()
        host.world.after(AWAY_SECONDS, host.start)

    dying: list[Effect] = []
    host._perform_one = perform
