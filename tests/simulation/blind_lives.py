"""Lives of a centre with blind spaces, written out: what chance shows too rarely."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from controllers.core import removal
from schemas.identity import NodePath
from schemas.objects import ObjectKey
from tests.simulation import oracle_removals
from tests.simulation.blind_space import BlindSpace
from tests.simulation.blindness import Blindness
from tests.simulation.centre import placement_key
from tests.simulation.chaos import put_back
from tests.simulation.faults import NO_FAULTS
from tests.simulation.people import KEYS, SHOP, another_object, edge_placement, location
from tests.simulation.selecting import KIND
from tests.simulation.sizes import BLIND
from tests.simulation.spaced_run import SpacedRun

FEW, MANY = 1, 11
MOVER = "r0-e0"
STEP_SECONDS, TRIES_MAX = 0.001, 20


def accepted_alone(one: SpacedRun) -> None:
    """What is held of two placements is let go of one; the other is looked at again."""
    spaced = one.spaced
    spaced.workloads.hidden = dict.fromkeys(KEYS[:MANY])
    spaced.end_run()
    one.world.run(5.0)
    assert set(spaced.desk.placements.held) == {"p1", "p2"}
    spaced._accept("p1")
    one.world.run(5.0)
    spaced.workloads.put(*another_object("new"))
    one.world.run(5.0)
    spaced.workloads.hidden = {}
    spaced.workloads.break_watch()


def shown_too_little(one: SpacedRun) -> None:
    """The ledger is lost, and a list lacks one object of what is read back."""
    one.spaced.workloads.hidden = dict.fromkeys(KEYS[:FEW])
    one.spaced.lose_disk()
    one.world.run(20.0)
    assert set(one.spaced.desk.placements.held) == {"p1", "p2"}
    one.spaced.workloads.hidden = {}
    one.spaced.workloads.break_watch()


def one_away(one: SpacedRun) -> None:
    """The ledger is lost while one of two regions is cut off."""
    one.world.cut(NodePath(("r1",)))
    one.spaced.lose_disk()
    one.world.run(20.0)
    assert not one.spaced.desk.sure
    one.world.heal(NodePath(("r1",)))


def crowded(one: SpacedRun) -> None:
    """A list lacks one of two Locations, and it is that of all destinations."""
    inventory = one.spaced.inventory
    everywhere, nowhere = location("l1", {}), location("l2", {"matchLabels": {"env": "none"}})
    inventory.put(*everywhere)
    inventory.put(*nowhere)
    one.settle()
    with few_are_many(), listed_without(one, inventory, everywhere[0]):
        assert "locations/RemovalHeld" in one.spaced.desk.registry.errors


def withdrawn(one: SpacedRun) -> None:
    """A list lacks a placement of little that goes to many."""
    workloads, key = one.spaced.workloads, ObjectKey(KIND, "edgeplacements", "", "p1")
    some = {"namespaces": [SHOP], "objectNames": [KEYS[0].name]}
    workloads.put(*edge_placement("p1", {}, [some]))
    one.settle()
    with few_are_many(), listed_without(one, workloads, key):
        assert "p1" in one.spaced.desk.placements.held


def left_behind(one: SpacedRun) -> None:
    """The ledger is lost when an edge is to go from the centre, and only it knows a Location.

    That is deleted before anyone hears of it again, and means the edge again by the edge's labels.
    """
    gone = _alone_with_a_location(one)
    _move(one, lambda: one.spaced.model.targets[MOVER].path not in one.world.hosts)
    one.spaced.lose_disk()
    one.judge.people_acted()
    one.spaced.inventory.delete(gone)
    one.judge.people_acted()
    one.people.relabel(MOVER, "own")
    one.world.run(5.0)


def brought_along(one: SpacedRun) -> None:
    """The ledger is lost when an edge came from the centre with what its region was never sent."""
    brought = _alone_with_a_location(one)
    _move(one, lambda: len(_hangs(one).names) == 2)
    place = _hangs(one)
    assert brought.name not in _known(one, place.parent)
    one.spaced.lose_disk()
    one.world.run(5.0)
    assert brought.name in _known(one, place)


def _alone_with_a_location(one: SpacedRun) -> ObjectKey:
    """Have an edge right below the centre know a Location that means nobody any more."""
    _move(one, lambda: len(_hangs(one).names) == 1)
    one.settle()
    key, selecting = location("l3", {"matchLabels": {"env": "own"}})
    one.spaced.inventory.put(key, selecting)
    for env in ("own", "prod"):
        one.people.relabel(MOVER, env)
        one.settle()
    knowing = {path for path in one.world.hosts if key.name in _known(one, path)}
    assert knowing == {NodePath(), _hangs(one)}
    return key


def _move(one: SpacedRun, there: Callable[[], bool]) -> None:
    """Move an edge until it is as it shall be; a move may be given up, and lead anywhere."""
    moving = one.people.moving
    for _ in range(TRIES_MAX):
        moving.begin(MOVER)
        while moving.is_moving(MOVER):
            one.world.run(STEP_SECONDS)
            if there():
                return
        one.settle()
    raise AssertionError(f"{MOVER} does not come to hang as it shall")


def _hangs(one: SpacedRun) -> NodePath:
    """Where the edge is that was moved; the centre's path for nowhere, or where it was before."""
    there = [path for path in one.world.hosts if not path.is_root and path.name == f"e-{MOVER}"]
    return there[0] if there else NodePath()


def _known(one: SpacedRun, path: NodePath) -> set[str]:
    """The names of the Locations that a node knows."""
    node = one.world.hosts[path].node
    held = node.records.values() if node is not None else ()
    return {item.record.source.name for item in held if item.kind == "location"}


def listed_again(one: SpacedRun) -> None:
    """Regions go back to old copies as the ledger is lost: what is deleted since comes back.

    By an index that is lost, too, the edges knew better.
    """
    regions = [host for path, host in one.world.hosts.items() if len(path.names) == 1]
    copies = [host.streams.copy() for host in regions]
    one.spaced.workloads.delete(ObjectKey(KIND, "edgeplacements", "", "p2"))
    one.judge.people_acted()
    one.settle()
    edges = [host for host in one.world.hosts.values() if host.attached]
    for edge in edges:
        edge.stop()
        edge.start()
    one.settle()
    known = one.world.root.node._state.index.generation
    assert {edge.node._state.index.generation for edge in edges} == {known}
    for host, streams in zip(regions, copies, strict=True):
        put_back(host, streams)
    one.spaced.lose_disk()
    one.world.run(20.0)
    assert [orphan.name for orphan in one.spaced.desk.orphans()] == ["p2"]
    assert all(placement_key("p2") in edge.node.records for edge in edges)


@contextmanager
def listed_without(one: SpacedRun, space: BlindSpace, key: ObjectKey) -> Iterator[None]:
    """A list lacks an object for a time; then it is there again, and all settles."""
    space.hidden = {key: None}
    space.break_watch()
    one.world.run(20.0)
    yield
    space.hidden = {}
    space.break_watch()
    one.settle()


@contextmanager
def few_are_many() -> Iterator[None]:
    """The rule for ten destinations, in a tree that has two."""
    removal.REMOVALS_MIN = oracle_removals.LEAST = 1
    try:
        yield
    finally:
        removal.REMOVALS_MIN = oracle_removals.LEAST = 10


LIVES = {
    life.__name__: life
    for life in (
        accepted_alone,
        shown_too_little,
        one_away,
        crowded,
        withdrawn,
        listed_again,
        left_behind,
        brought_along,
    )
}


def new(seed: str, *, story: bool = False) -> SpacedRun:
    """Two regions with an edge each, not built yet."""
    own, regions = Blindness(), (2, 2)
    return SpacedRun(f"blind life {seed}", NO_FAULTS, BLIND, own=own, regions=regions, story=story)


def live(one: SpacedRun, name: str) -> None:
    """Build, live so, and settle; may raise LawBroken."""
    _build(one)
    LIVES[name](one)
    one.settle()


def _build(one: SpacedRun) -> None:
    """The tree, and two placements of all that is in one namespace."""
    one.build()
    for name in ("p1", "p2", "p3"):
        key = ObjectKey(KIND, "edgeplacements", "", name)
        if key in one.spaced.workloads.objects:
            one.spaced.workloads.delete(key)
            one.judge.people_acted()
    one.settle()
    for name in ("p1", "p2"):
        one.spaced.workloads.put(*edge_placement(name, {}, [{"namespaces": [SHOP]}]))
    one.settle()
