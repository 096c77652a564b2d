"""Lives written out, that chance leads to too rarely: a few steps each, and what must follow.

`play("withheld:2")` plays one on the tree of a seed, under the same laws as every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from relay.core import tombstones
from relay.core.children import INDEX_TO_EDGE_SECONDS
from relay.core.effects import WriteMail
from relay.core.events import MailArrived
from relay.core.freshness import LOOK_SECONDS, STALE_AFTER_SECONDS
from relay.core.reduce import EMPTY
from schemas.identity import INDEX_KEY, NodePath
from schemas.objects import ObjectKey
from schemas.records import Alternative
from schemas.selectors import LabelSelector, Requirement
from tests.simulation.centre import Content, Placed, placement_key
from tests.simulation.faults import NO_FAULTS
from tests.simulation.host import Host
from tests.simulation.laws import CONVERGENCE, NO_LOSS, NO_RESURRECTION, WITHHOLDING
from tests.simulation.prescribed import prescribed
from tests.simulation.run import Outcome, Run, broken_by
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SMALL
from tests.simulation.workload import OBJECTS
from tests.simulation.world import LawBroken

EVERYWHERE = (Alternative("synctarget", LabelSelector()),)
NOWHERE = (Alternative("synctarget", LabelSelector((Requirement("nowhere", "Exists"),))),)
TOLD_SECONDS = 90.0
A, B, C = OBJECTS[:3]


def play(name: str) -> Outcome:
    """Play a world on the tree of a seed: `world:seed`."""
    world, _, seed = name.partition(":")
    with cheap_signatures():
        one = Run(f"world {seed}", NO_FAULTS, SMALL)
        law, what = broken_by(lambda: _play(one, WORLDS[world]))
    return Outcome(int(seed), world, one.world.trace(), one.world.now, law, what)


def is_world(name: str) -> bool:
    """Whether this names a world, not a seed of some size."""
    return name.partition(":")[0] in WORLDS


def _play(one: Run, life: Callable[[Run], None]) -> None:
    one.build()
    for name in list(one.centre.model.placements):
        _put(one, name, None)
    _everywhere(one, "p1", A, B)
    _everywhere(one, "p2", C)
    one.settle()
    life(one)
    one.world.heal_all()
    one.settle()
    one.rest()


# A relay that was broken into.


def withheld(one: Run) -> None:
    """A relay keeps what takes from its children, and shows them the index."""
    region = _region(one)
    with _withholding(one, lambda host, mail: host is region and not mail.has_body):
        _select(one, "p1", NOWHERE)
        _put(one, "p2", None)
        one.world.run(INDEX_TO_EDGE_SECONDS + 3 * LOOK_SECONDS)
        for edge in _edges(one):
            _require(C not in edge.space.objects, NO_RESURRECTION, f"{edge.path} keeps what went")
        _all_say(one, "p1", "Withheld")


def outdated(one: Run) -> None:
    """A relay keeps the newer version of a placement from its children, and shows the index."""
    region, key = _region(one), placement_key("p1")
    with _withholding(one, lambda host, mail: host is region and mail.key == key):
        _everywhere(one, "p1", A)
        one.world.run(INDEX_TO_EDGE_SECONDS + 3 * LOOK_SECONDS)
        _all_say(one, "p1", "Withheld")


def old_index(one: Run) -> None:
    """A relay shows its children nothing new any more."""
    region = _region(one)
    with _withholding(one, lambda host, _mail: host is region, index=True):
        _everywhere(one, "p1", A)
        one.world.run(STALE_AFTER_SECONDS + 4 * LOOK_SECONDS)
        _all_say(one, "p1", "StaleView")


def no_end(one: Run) -> None:
    """A relay says of its children's mail that more is to come, and nothing comes."""
    region = _region(one)

    def endless(host: Host, write: WriteMail, sequence: int) -> MailArrived | None:
        return MailArrived(sequence, write.key, write.data, 5) if host is region else None

    one.world.lying, one.world.lied = endless, True
    _everywhere(one, "p1", A)
    one.world.run(STALE_AFTER_SECONDS + INDEX_TO_EDGE_SECONDS + 3 * LOOK_SECONDS)
    _all_say(one, "p1", "StaleView")
    one.world.lying = None
    _relink(one)
    one.settle()


# What cannot be applied, or is lost on its way.


def refused(one: Run) -> None:
    """A cluster does not take one object: all else goes on, and it is said why."""
    edge = _edges(one)[0]
    edge.space.refused_for_good[A] = None
    _everywhere(one, "p1", A, B)
    _everywhere(one, "p2", C)
    one.settle()
    edge.space.refused_for_good.clear()


def lost_content(one: Run) -> None:
    """An object that a new version names is nowhere to be had: the former version stays."""
    before, gone = prescribed(one.centre), {}
    one.world.lying_blobs = lambda _host, what, value: None if what.address in gone else value
    gone[_everywhere(one, "p1", A, B)[A].reference.address] = None
    _everywhere(one, "p2", C)
    one.world.run(200)
    after = prescribed(one.centre)
    for edge in _edges(one):
        held = {key: address for key, (address, _) in edge.space.objects.items()}
        asked = {k: w.reference.address for k, w in edge.node.wanted.items()} if edge.node else {}
        want = {A: before[edge.path][A], B: before[edge.path][B], C: after[edge.path][C]}
        _require(held == want, NO_LOSS, f"{edge.path} holds {held}, not {want}")
        _require(asked == want, NO_LOSS, f"{edge.path} wants {asked}, not {want}")
    _require(_says(one.world.root, "p1", "ContentRefused"), NO_LOSS, "nobody says why")
    gone.clear()


def lost_reports(one: Run) -> None:
    """Reports that are stored, as the child knows, are lost: no session begins, all is said."""
    edge = _edges(one)[0]
    edge.space.refusing[A] = None
    edge.space.drift(A, delete=True)
    one.world.run(30)
    epochs = _epochs(one)
    one.world.faults = replace(NO_FAULTS, report_loss=1.0)
    edge.space.refusing.clear()
    one.world.run(20)
    one.world.faults = NO_FAULTS
    one.world.run(4 * TOLD_SECONDS)
    one.oracle.settled()
    _require(_epochs(one) == epochs, CONVERGENCE, "a session was begun for it")


# Time and place.


def swept(one: Run) -> None:
    """An edge is away for longer than tombstones are kept."""
    edge, retention = _edges(one)[0], tombstones.RETENTION_MS
    one.world.run(tombstones.EVERY_SECONDS)
    one.world.cut(edge.path)
    tombstones.RETENTION_MS = 600_000
    try:
        _put(one, "p1", None)
        for name in list(one.centre.model.locations):
            one.centre.put_location(name, None)
        one.world.run(2 * tombstones.EVERY_SECONDS)
        _everywhere(one, "p2", B)
        one.world.heal(edge.path)
        one.settle()
    finally:
        tombstones.RETENTION_MS = retention


def _region(one: Run) -> Host:
    return next(host for path, host in one.world.hosts.items() if len(path.names) == 1)


def _edges(one: Run) -> list[Host]:
    """The children of the region, all of them edges."""
    region = _region(one).path
    return [h for p, h in one.world.hosts.items() if not p.is_root and p.parent == region]


def _put(one: Run, name: str, placed: Placed | None) -> None:
    one.oracle.model_changed()
    one.centre.put_placement(name, placed)
    one.oracle.model_changed()


def _everywhere(one: Run, name: str, *keys: ObjectKey) -> dict[ObjectKey, Content]:
    """Have a placement bring new versions of these objects to every edge."""
    contents = {key: one.centre.content(key.name) for key in sorted(keys)}
    _put(one, name, Placed(EVERYWHERE, one.centre.arm(contents)))
    return contents


def _select(one: Run, name: str, alternatives: tuple[Alternative, ...]) -> None:
    _put(one, name, replace(one.centre.model.placements[name], alternatives=alternatives))


@contextmanager
def _withholding(
    one: Run, what: Callable[[Host, WriteMail], bool], *, index: bool = False
) -> Iterator[None]:
    """Mail is kept from children, the index only if said so; then all is put right."""
    one.world.withheld = one.world.lied = True
    one.world.withholds = lambda host, kept: (
        kept.mail is not None and (index or kept.mail.key != INDEX_KEY) and what(host, kept.mail)
    )
    yield
    one.world.withholds = None
    _relink(one)
    one.settle()


def _relink(one: Run) -> None:
    for edge in _edges(one):
        edge.link_changed(up=False)
        one.world.links_changed(edge.path)


def _says(host: Host, name: str, reason: str) -> bool:
    """Whether a node says that something is wrong with a placement."""
    summary = host.node.summary(placement_key(name)) if host.node is not None else EMPTY
    return any(item.reason.startswith(reason) for item in summary.exceptions)


def _all_say(one: Run, name: str, reason: str) -> None:
    """Every edge, and so the centre, says what is wrong with a placement."""
    for host in (*_edges(one), one.world.root):
        _require(_says(host, name, reason), WITHHOLDING, f"{host.path} says nothing of {reason}")


def _epochs(one: Run) -> dict[NodePath, int]:
    hosts = [host for host in one.world.hosts.values() if host.node is not None]
    return {host.path: host.node._state.inbox.epoch for host in hosts if host.node is not None}


def _require(holds: bool, law: str, what: str) -> None:
    if not holds:
        raise LawBroken(law, what)


LIVES = (withheld, outdated, old_index, no_end, refused, lost_content, lost_reports, swept)
WORLDS: dict[str, Callable[[Run], None]] = {life.__name__: life for life in LIVES}
