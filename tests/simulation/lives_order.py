"""Lives of placements that wait for another, and of moves that make before they break."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controllers.core.inventory.make_before_break import (
    GATHER_SECONDS,
    holds_in,
)
from relay.core.events import BlobArrived, Event
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.placements import EDGE_PLACEMENTS
from schemas.records.records import OVER_LOCATION, Alternative
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, MADE_FIRST, WAITED
from tests.simulation.model import Located, Placed, location_key, placement_key
from tests.simulation.ports import Ports
from tests.simulation.process import CAUGHT_UP_SECONDS
from tests.simulation.run import Run
from tests.simulation.scenes import (
    EVERYWHERE,
    P1,
    P2,
    A,
    B,
    D,
    contents,
    edges_of,
    everywhere,
    put,
    region_of,
    require,
    until,
)

STEP_SECONDS = 0.05
SOFT = EDGE_PLACEMENTS.named("p1")
LOW = LabelSelector((Requirement("carbon", "In", ("low",)),))


class Lacking(Ports):
    """One node's parent says that it lacks a blob; all else is as it was."""

    def __init__(self, honest: Ports, host: Host, address: str) -> None:
        self._honest, self._host, self._address = honest, host, address

    def heard(self, host: Host, event: Event) -> list[Event]:
        lacks = isinstance(event, BlobArrived) and event.reference.address == self._address
        if host is self._host and isinstance(event, BlobArrived) and lacks:
            return [BlobArrived(event.reference, None, local=event.local)]
        return self._honest.heard(host, event)

    def issued(self, draft: Any) -> Any:
        return self._honest.issued(draft)


def awaited(one: Run) -> None:
    """The one that is waited for changes with who waits, and its content comes later."""
    put(one, P2, Placed(EVERYWHERE, one.centre.arm(contents(one, D)), after=("p1",)))
    one.settle()
    new = everywhere(one, P1, A, B)
    honest = one.world.ports
    one.world.ports = Lacking(honest, region_of(one), one.centre.lies_at(new[A]))
    waiting = contents(one, D)
    put(one, P2, Placed(EVERYWHERE, one.centre.arm(waiting), after=("p1",)))

    def in_order(host: Host) -> None:
        if _has(host, D, form_of(waiting[D].reference, None)):
            both = all(_has(host, key, form_of(new[key].reference, None)) for key in (A, B))
            require(both, WAITED, f"{host.path} has new content of p2 and old of p1")

    _watch(one, 10.0, in_order)
    one.world.ports = honest
    _watch(one, 60.0, in_order)
    new_everywhere = [_has(host, D, form_of(waiting[D].reference, None)) for host in edges_of(one)]
    require(all(new_everywhere), CONVERGENCE, "what waited never came")
    _restart(one)


def forgotten(one: Run) -> None:
    """Both are deleted, the one that is waited for first: what waited for it goes first."""
    put(one, P2, Placed(EVERYWHERE, one.centre.arm(contents(one, D)), after=("p1",)))
    one.settle()
    for name in (P1, P2):
        put(one, name, None)

    def in_order(host: Host) -> None:
        if D in host.space.objects:
            require(A in host.space.objects, WAITED, f"{host.path} lost p1 before p2")

    _watch(one, 30.0, in_order)


def nowhere_near(one: Run) -> None:
    """Where the other is not meant nothing waits, and a placement that is gone holds up none."""
    edge, *others = edges_of(one)
    _site(one, edge, "here")
    there = (Alternative("synctarget", LabelSelector((Requirement("site", "Exists"),))),)
    put(one, P1, Placed(there, one.centre.arm(contents(one, A, B))))
    new = contents(one, D)
    edge.space.refusing[A] = None
    put(one, P2, Placed(EVERYWHERE, one.centre.arm(new), after=("p1",)))
    address = form_of(new[D].reference, None)
    for host in others:
        until(one, lambda host=host: _has(host, D, address), CONVERGENCE, "it waits", 30.0)
    require(not _has(edge, D, address), WAITED, "it did not wait for what is refused")
    edge.space.refusing.clear()
    until(one, lambda: _has(edge, D, address), CONVERGENCE, "it waits for ever", 60.0)


def moved_softly(one: Run) -> None:
    """A label moves a placement to an edge that is out of reach for a while."""
    east, west = edges_of(one)[:2]
    for host, site in ((east, "east"), (west, "west")):
        _site(one, host, site)
        _label(one, site, "low" if host is east else "high")
    for name in (P1, P2):
        put(one, name, None)
    meant = (Alternative(OVER_LOCATION, LOW),)
    put(one, SOFT, Placed(meant, one.centre.arm(contents(one, A)), moves=True))
    one.settle()

    def a_copy(_host: Host) -> None:
        copies = [host for host in edges_of(one) if A in host.space.objects]
        require(bool(copies), MADE_FIRST, "no copy is left")

    one.world.cut(west.path)
    _label(one, "east", "high")
    _label(one, "west", "low")
    _watch(one, 30.0, a_copy)
    one.world.heal(west.path)
    begun = one.world.now
    while not _is_well(one):
        require(one.world.now < begun + 300.0, CONVERGENCE, "who gains it is never well")
        _watch(one, 1.0, a_copy)
    _watch(one, 2 * GATHER_SECONDS + 30.0, a_copy)
    require(not holds_in(one.centre.records[location_key("east")]), MADE_FIRST, "it is kept")
    require(A not in east.space.objects, CONVERGENCE, "who lost it keeps it for ever")


def _is_well(one: Run) -> bool:
    root = one.world.root
    assert root.node is not None
    key = placement_key(SOFT)
    count = one.world.ports.count(root, key, root.node.count(key))
    summary = count.summary
    return bool(count.exact and summary.destinations == summary.health.get("healthy", 0))


def _watch(one: Run, seconds: float, law: object) -> None:
    end = one.world.now + seconds
    while one.world.now < end:
        one.world.run(STEP_SECONDS)
        for host in edges_of(one):
            law(host)  # type: ignore[operator]


def _has(host: Host, key: object, address: str) -> bool:
    return host.space.objects.get(key, ("",))[0] == address  # type: ignore[arg-type]


def _restart(one: Run) -> None:
    """What is applied is no new content to a new run, though what it waits for is not healthy."""
    edge = edges_of(one)[0]
    edge.space.refusing[A] = None
    edge.stop()
    edge.start()
    one.world.run(30.0)
    require(D in edge.space.objects, WAITED, "what was there went")
    edge.space.refusing.clear()


def _site(one: Run, host: Host, site: str) -> None:
    (target,) = [t for t in one.centre.model.targets.values() if t.path == host.path]
    one.oracle.model_changed()
    one.centre.put_target(replace(target, labels=(("site", site),)))
    one.oracle.model_changed()


def _label(one: Run, site: str, carbon: str) -> None:
    """Say the carbon of a site."""
    instances = LabelSelector((Requirement("site", "In", (site,)),))
    one.oracle.model_changed()
    one.centre.put_location(site, Located((("carbon", carbon),), instances))
    one.oracle.model_changed()
    one.world.run(CAUGHT_UP_SECONDS)


LIVES = (awaited, forgotten, nowhere_near, moved_softly)
