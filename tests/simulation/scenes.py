"""What worlds are written out in: a region and its edges, placements on all, mail withheld."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from relay.core.effects import WriteMail
from relay.core.reduce import EMPTY
from schemas import wire
from schemas.identity import INDEX_KEY, NodePath
from schemas.objects import ObjectKey
from schemas.records import Alternative
from schemas.reports import WANT_NONE
from schemas.selectors import LabelSelector, Requirement
from tests.simulation.centre import Content, Placed, placement_key
from tests.simulation.host import Host
from tests.simulation.laws import (
    WITHHOLDING,
)
from tests.simulation.run import Run
from tests.simulation.workload import OBJECTS
from tests.simulation.world import CENTRE, LawBroken

EVERYWHERE = (Alternative("synctarget", LabelSelector()),)
NOWHERE = (Alternative("synctarget", LabelSelector((Requirement("nowhere", "Exists"),))),)
A, B, C, D = OBJECTS[:4]


def region_of(one: Run) -> Host:
    return next(host for path, host in one.world.hosts.items() if len(path.names) == 1)


def edges_of(one: Run) -> list[Host]:
    """The children of the region, all of them edges."""
    region = region_of(one).path
    return [h for p, h in one.world.hosts.items() if not p.is_root and p.parent == region]


def put(one: Run, name: str, placed: Placed | None) -> None:
    one.oracle.model_changed()
    one.centre.put_placement(name, placed)
    one.oracle.model_changed()


def put_together(one: Run, placed: dict[str, Placed]) -> None:
    """Put these in force at once, as the centre publishes what follows from one change."""
    one.oracle.model_changed()
    for at, (name, said) in enumerate(placed.items(), 1):
        one.centre.put_placement(name, said, more=at < len(placed))
    one.oracle.model_changed()


def everywhere(one: Run, name: str, *keys: ObjectKey) -> dict[ObjectKey, Content]:
    """Have a placement bring new versions of these objects to every edge."""
    contents = {key: one.centre.content(key.name) for key in sorted(keys)}
    put(one, name, Placed(EVERYWHERE, one.centre.arm(contents)))
    return contents


def select(one: Run, name: str, alternatives: tuple[Alternative, ...]) -> None:
    put(one, name, replace(one.centre.model.placements[name], alternatives=alternatives))


@contextmanager
def withholding(
    one: Run, what: Callable[[Host, WriteMail], bool], *, index: bool = False
) -> Iterator[None]:
    """Mail is kept from children, the index only if said so, and no difference is admitted.

    Then all is put right.
    """
    one.world.withheld[CENTRE] = None
    one.world.lied = True
    one.world.withholds = lambda host, kept: (
        kept.mail is not None and (index or kept.mail.key != INDEX_KEY) and what(host, kept.mail)
    )
    edges = edges_of(one)
    for edge in edges:
        _hush(edge)
    yield
    for edge in edges:
        del edge.session_came
    one.world.withholds = None
    relink(one)
    one.settle()


def _hush(edge: Host) -> None:
    """Have its parent tell an edge that nothing is to be read again, whatever it holds."""
    honest = edge.session_came
    edge.session_came = lambda message: honest(wire.replace(message, want=WANT_NONE))


def relink(one: Run) -> None:
    for edge in edges_of(one):
        edge.link_changed(up=False)
        one.world.links_changed(edge.path)


def says(host: Host, name: str, reason: str) -> bool:
    """Whether a node says that something is wrong with a placement."""
    summary = host.node.summary(placement_key(name)) if host.node is not None else EMPTY
    return any(item.reason.startswith(reason) for item in summary.exceptions)


def all_say(one: Run, name: str, reason: str) -> None:
    """Every edge, and so the centre, says what is wrong with a placement."""
    for host in (*edges_of(one), one.world.root):
        require(says(host, name, reason), WITHHOLDING, f"{host.path} says nothing of {reason}")


def epochs(one: Run) -> dict[NodePath, int]:
    hosts = [host for host in one.world.hosts.values() if host.node is not None]
    return {host.path: host.node._state.inbox.epoch for host in hosts if host.node is not None}


def require(holds: bool, law: str, what: str) -> None:
    if not holds:
        raise LawBroken(law, what)
