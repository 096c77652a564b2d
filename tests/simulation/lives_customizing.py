"""Lives of destinations that lack what an object asks for, and get it."""

from __future__ import annotations

from dataclasses import replace

from schemas.objects.objects import ObjectKey
from schemas.values import wire
from tests.simulation.customizing import NEEDS, TIER, form_of
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, NO_IGNORANCE
from tests.simulation.run import Run
from tests.simulation.scenes import P1, A, B, C, D, edges_of, everywhere, require, says, until

NEEDY = wire.replace(A, name=f"{NEEDS}-tier")


def frozen(one: Run) -> None:
    """An edge loses its tier, a placement changes meanwhile and loses an object."""
    _no_locations(one)
    edge, *others = edges_of(one)
    for host in (edge, *others):
        _tier(one, host, "a")
    before = everywhere(one, P1, A, B, NEEDY)
    one.settle()
    _tier(one, edge, None)
    until(one, lambda: says(edge, P1, "Frozen"), CONVERGENCE, "it is not said", 30.0)
    held = dict(edge.space.objects)
    after = everywhere(one, P1, A, D, NEEDY)
    wanted = form_of(after[NEEDY].reference, "a")
    for host in others:
        until(one, _holds(host, NEEDY, wanted), CONVERGENCE, "others stay as they were", 30.0)
        until(one, lambda host=host: B not in host.space.objects, CONVERGENCE, "B stays", 30.0)
    one.world.run(120.0)
    _unchanged(edge, held)
    edge.stop()
    edge.start()
    one.world.run(120.0)
    _unchanged(edge, held)
    until(one, lambda: says(edge, P1, "Frozen"), CONVERGENCE, "it is not said again", 30.0)
    require(form_of(before[NEEDY].reference, "a") == held[NEEDY][0], CONVERGENCE, "no old form")
    _tier(one, edge, "b")
    wanted = form_of(after[NEEDY].reference, "b")
    until(one, _holds(edge, NEEDY, wanted), CONVERGENCE, "it stays frozen", 30.0)
    until(one, lambda: B not in edge.space.objects, CONVERGENCE, "B stays for ever", 30.0)


def relabelled(one: Run) -> None:
    """An edge's tier changes, and no object does."""
    edge = edges_of(one)[0]
    _no_locations(one)
    brought = everywhere(one, P1, A, C)
    for tier in ("a", "b", "a"):
        _tier(one, edge, tier)
        wanted = form_of(brought[C].reference, tier)
        until(one, _holds(edge, C, wanted), CONVERGENCE, f"not as tier {tier} has it", 30.0)


def _no_locations(one: Run) -> None:
    """None says a tier any more, and all know that."""
    for name in list(one.centre.model.locations):
        one.centre.put_location(name, None)
    one.world.run(10.0)


def _tier(one: Run, host: Host, tier: str | None) -> None:
    """Say the tier of an edge."""
    (target,) = [t for t in one.centre.model.targets.values() if t.path == host.path]
    labels = {**dict(target.labels), TIER: tier}
    said = tuple((name, value) for name, value in labels.items() if value is not None)
    one.oracle.model_changed()
    one.centre.put_target(replace(target, labels=said))
    one.oracle.model_changed()


def _holds(host: Host, key: ObjectKey, address: str):
    return lambda: host.space.objects.get(key, ("",))[0] == address


def _unchanged(edge: Host, held: dict) -> None:
    require(edge.space.objects == held, NO_IGNORANCE, "something changed where it is frozen")


LIVES = (frozen, relabelled)
