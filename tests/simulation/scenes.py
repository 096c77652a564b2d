"""What lives are written out in: a region and its edges, placements on all, hostile machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.placements import BINDING_POLICIES
from schemas.records.records import Alternative
from schemas.values.identity import NodePath
from tests.simulation.host import Host
from tests.simulation.model import Content, Placed, placement_key
from tests.simulation.ports import HONEST, Ports
from tests.simulation.run import Run
from tests.simulation.workload import OBJECTS
from tests.simulation.world import LawBroken

EVERYWHERE = (Alternative("synctarget", LabelSelector()),)
NOBODY = LabelSelector((Requirement("nowhere", "Exists"),))
NOWHERE = (Alternative("synctarget", NOBODY),)
A, B, C, D = OBJECTS[:4]
P1, P2, P3 = map(BINDING_POLICIES.named, ("p1", "p2", "p3"))


def region_of(one: Run) -> Host:
    return next(host for path, host in one.world.hosts.items() if len(path.names) == 1)


def edges_of(one: Run) -> list[Host]:
    """The children of the region, all of them edges."""
    region = region_of(one).path
    return [h for p, h in one.world.hosts.items() if not p.is_root and p.parent == region]


def put(one: Run, name: str, placed: Placed | None) -> None:
    put_together(one, {name: placed})


def put_together(one: Run, placed: dict[str, Placed | None]) -> None:
    """Put these in force in this order, as one `apply` says them."""
    one.oracle.model_changed()
    one.centre.put_together(placed)
    one.oracle.model_changed()


def contents(one: Run, *keys: ObjectKey) -> dict[ObjectKey, Content]:
    """New versions of these objects."""
    return {key: one.centre.content(key.name) for key in sorted(keys)}


def everywhere(one: Run, name: str, *keys: ObjectKey) -> dict[ObjectKey, Content]:
    """Have a placement bring new versions of these objects to every edge."""
    brought = contents(one, *keys)
    put(one, name, Placed(EVERYWHERE, one.centre.arm(brought)))
    return brought


def select(one: Run, name: str, alternatives: tuple[Alternative, ...]) -> None:
    put(one, name, replace(one.centre.model.placements[name], alternatives=alternatives))


def relink(one: Run, path: NodePath) -> None:
    """The link of a host is made anew."""
    one.world.hosts[path].link_changed(up=False)
    one.world.links_changed(path)


@contextmanager
def behaving(one: Run, ports: Ports) -> Iterator[None]:
    """Some machines behave otherwise within."""
    one.world.ports = ports
    try:
        yield
    finally:
        one.world.ports = HONEST


def says(host: Host, name: str, reason: str) -> bool:
    """Whether a node says that something is wrong with a placement."""
    if host.node is None:
        return False
    exceptions = host.node.count(placement_key(name)).summary.exceptions
    return any(item.reason.startswith(reason) for item in exceptions)


def holding(one: Run, key: ObjectKey) -> list[str]:
    """The edges that have an object."""
    return [str(host.path) for host in edges_of(one) if key in host.space.objects]


def until(one: Run, holds: Callable[[], bool], law: str, what: str, seconds: float) -> float:
    """Run until something holds; after how many seconds it did."""
    begun = one.world.now
    while not holds():
        require(one.world.now < begun + seconds, law, f"{what}, after {seconds:.0f} s")
        one.world.run(0.25)
    return one.world.now - begun


def require(holds: bool, law: str, what: str) -> None:
    if not holds:
        raise LawBroken(law, what)


def lose_ledger(one: Run, *forgotten: str) -> None:
    """The centre's disk is lost; its spaces are not, but for placements that go meanwhile."""
    root = one.world.root
    root.stop(keep_disk=False, server_too=True)
    for name in forgotten:
        put(one, name, None)
    root.start()
