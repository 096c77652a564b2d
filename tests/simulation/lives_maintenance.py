"""A person works at a place: it keeps what it has, is counted, and comes along when that ends."""

from __future__ import annotations

from dataclasses import replace

from schemas.reports.states import MAINTAINED
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, EXACTLY_ONCE, NO_IGNORANCE
from tests.simulation.model import placement_key
from tests.simulation.run import Run
from tests.simulation.scenes import P1, P2, A, B, C, edges_of, everywhere, put, require, until

MINUTE = 60.0


def worked_at(one: Run) -> None:
    """Content, drift, a removal, a restart, a cut link: nothing changes there until the end."""
    everywhere(one, P1, A, B)
    everywhere(one, P2, C)
    one.settle()
    edge, *others = edges_of(one)
    _say(one, edge, 20 * MINUTE)
    until(one, lambda: _is_on(edge), CONVERGENCE, "maintenance does not begin", MINUTE)
    edge.space.drift(A, delete=False)
    kept = dict(edge.space.objects)
    everywhere(one, P1, A)
    put(one, P2, None)
    one.world.run(MINUTE)
    require(edge.space.objects == kept, NO_IGNORANCE, "something changes in maintenance")
    require(
        all(C not in host.space.objects for host in others), CONVERGENCE, "it holds up the others"
    )
    _require_counted(one)
    edge.stop()
    one.world.run(3 * MINUTE)
    _require_counted(one)
    edge.start()
    one.world.run(MINUTE)
    require(edge.space.objects == kept, NO_IGNORANCE, "a restart lets something in")
    _require_counted(one)
    # It ends by the place's own clock, with nobody in reach.
    one.world.cut(edge.path)
    until(one, lambda: not _is_on(edge), CONVERGENCE, "it does not end by itself", 20 * MINUTE)
    until(one, lambda: _is_changed(edge, kept), CONVERGENCE, "it does not go on", 5 * MINUTE)
    one.world.heal(edge.path)
    _say(one, edge, 0.0)


def called_off(one: Run) -> None:
    """Who says that it is over need not wait for its end."""
    everywhere(one, P1, A)
    one.settle()
    edge = edges_of(one)[0]
    _say(one, edge, 1000 * MINUTE)
    until(one, lambda: _is_on(edge), CONVERGENCE, "maintenance does not begin", MINUTE)
    everywhere(one, P1, A, B)
    one.world.run(MINUTE)
    require(B not in edge.space.objects, NO_IGNORANCE, "something comes in maintenance")
    _say(one, edge, 0.0)
    until(one, lambda: B in edge.space.objects, CONVERGENCE, "it does not go on", MINUTE)


def _say(one: Run, edge: Host, seconds: float) -> None:
    """Say that somebody works there for so long, or that it is over."""
    now_ms = one.world.root.instant().wall_ms
    target = next(it for it in one.centre.model.targets.values() if it.path == edge.path)
    until_ms = now_ms + int(seconds * 1000) if seconds else 0
    one.oracle.model_changed()
    one.centre.put_target(replace(target, maintenance_ms=until_ms))
    one.oracle.model_changed()


def _is_on(edge: Host) -> bool:
    return edge.node is not None and edge.node.in_maintenance


def _is_changed(edge: Host, kept: object) -> bool:
    return edge.space.objects != kept


def _require_counted(one: Run) -> None:
    """At the centre it counts once, as in maintenance, and all others are synced."""
    root = one.world.root.node
    assert root is not None
    count = root.count(placement_key(P1))
    states = {state: number for state, number in count.summary.states.items() if number}
    edges = sum(1 for host in one.world.hosts.values() if host.attached)
    wanted = {MAINTAINED: 1, "synced": edges - 1}
    require(count.exact and states == wanted, EXACTLY_ONCE, f"it counts {states}")


LIVES = (worked_at, called_off)
