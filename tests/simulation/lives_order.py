"""Lives of placements that wait for another, and of moves that make before they break."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controllers.core.inventory.make_before_break import (
    GATHER_SECONDS,
    hold_alternatives,
    holds_in,
)
from relay.core.events import BlobArrived, Event
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import OVER_LOCATION, Alternative, Dependency
from schemas.values.identity import MailKey
from tests.simulation.centre import CAUGHT_UP_SECONDS
from tests.simulation.customizing import form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, MADE_FIRST, WAITED
from tests.simulation.model import Located, Placed, location_key, placement_key
from tests.simulation.ports import Ports
from tests.simulation.run import Run
from tests.simulation.scenes import (
    EVERYWHERE,
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
P1, LOW = placement_key("p1"), LabelSelector((Requirement("carbon", "In", ("low",)),))


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
    put(one, "p2", Placed(EVERYWHERE, one.centre.arm(contents(one, D)), after=_after(one)))
    one.settle()
    new = everywhere(one, "p1", A, B)
    honest = one.world.ports
    one.world.ports = Lacking(honest, region_of(one), new[A].sealed.address)
    waiting = contents(one, D)
    put(one, "p2", Placed(EVERYWHERE, one.centre.arm(waiting), after=_after(one)))

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
    put(one, "p2", Placed(EVERYWHERE, one.centre.arm(contents(one, D)), after=_after(one)))
    one.settle()
    for name in ("p1", "p2"):
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
    put(one, "p1", Placed(there, one.centre.arm(contents(one, A, B))))
    new = contents(one, D)
    edge.space.refusing[A] = None
    put(one, "p2", Placed(EVERYWHERE, one.centre.arm(new), after=_after(one)))
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
    meant = (Alternative(OVER_LOCATION, LOW), *hold_alternatives(P1))
    put(one, "p1", Placed(meant, one.centre.arm(contents(one, A))))
    put(one, "p2", None)
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
    _watch(one, GATHER_SECONDS, a_copy)
    _label(one, "east", "high", release=P1)
    _watch(one, 30.0, a_copy)
    require(A not in east.space.objects, CONVERGENCE, "who lost it keeps it for ever")


def _is_well(one: Run) -> bool:
    root = one.world.root
    assert root.node is not None
    count = one.world.ports.count(root, P1, root.node.count(P1))
    summary = count.summary
    return bool(count.exact and summary.destinations == summary.health.get("healthy", 0))


def _after(one: Run) -> tuple[Dependency, ...]:
    """What waits for p1 as it is now."""
    return (Dependency("p1", one.centre.records[P1].generation, _meant(one)),)


def _meant(one: Run) -> tuple[Alternative, ...]:
    return one.centre.model.placements["p1"].alternatives


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


def _label(one: Run, site: str, carbon: str, release: MailKey | None = None) -> None:
    """Say the carbon of a site, as the centre's registry does: who loses by it is held."""
    instances, slot = LabelSelector((Requirement("site", "In", (site,)),)), location_key(site)
    one.oracle.model_changed()
    one.centre.put_location(site, Located((("carbon", carbon),), instances))
    if release is not None:
        one.centre.release_hold(slot, release)
    one.world.run(CAUGHT_UP_SECONDS)
    require(release is None or not holds_in(one.centre.records[slot]), MADE_FIRST, "it is kept")
    one.oracle.model_changed()


LIVES = (awaited, forgotten, nowhere_near, moved_softly)
