"""Who takes the destination of a node that is there is stopped, or the removal is weighed."""

import pytest
from click import ClickException

from controllers.core.inventory.registry import Registry
from leafcast.ask.remote import checked_answer
from leafcast.cli.commands.delete import DeleteRequest, delete_all
from leafcast.cli.commands.node_table import nodes_view
from leafcast.daemon.verbs.diagnosis import node_facts
from leafcast.doctor.findings import DoctorFacts, NodeFacts
from leafcast.doctor.link_checks import link_checks
from leafcast.show.layout import Table
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.doubles.changing_daemon import CLOCK, DICE, ChangingDaemon
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import USER, location, target
from tests.unit.test_delete_command import planned
from tests.unit.test_label_brakes import World, by_place

FIRST = ObjectKey("edge.kubestellar.io", "synctargets", "", "t0")


@pytest.fixture
async def session():
    inventory = MemorySpace(CLOCK, DICE)
    await inventory.apply(target("t0", "/r/t0"), USER)
    workloads = MemorySpace(CLOCK, DICE)
    return ChangingDaemon(workloads, inventory, beside=planned(), nodes=["/r/t0"]).session


async def test_a_sync_target_of_a_node_that_is_there_is_deleted_by_force_only(session):
    words = ("synctarget", "t0")
    with pytest.raises(ClickException, match=r"leafcast node remove /r/t0; else say --force"):
        await delete_all(session, DeleteRequest(words))
    assert await session.inventory.get(FIRST) is not None
    assert await delete_all(session, DeleteRequest(words, force=True)) == 0
    assert await session.inventory.get(FIRST) is None


async def test_a_sync_target_without_a_node_is_deleted_at_once(session):
    await session.inventory.apply(target("t1", "/r/t1"), USER)
    assert await delete_all(session, DeleteRequest(("synctarget", "t1"))) == 0


class AllNodes(Registry):
    """All places are nodes of the tree."""

    def _is_node(self, _path):
        return True


class Taken(World):
    """A world in which all places are nodes of the tree."""

    registry_of = AllNodes

    def __init__(self, **options):
        super().__init__(by_place(at="here"), **options)

    def delete(self, name):
        key = ObjectKey("edge.kubestellar.io", "synctargets", "", name)
        self.inventory.pop(key, None)
        self.settle((), self.registry.deleted(key))


def test_the_destination_of_a_node_that_is_there_stays_if_much_would_go():
    world = Taken(targets=3)
    world.delete("t0")
    assert world.meant() == 3
    assert "20 copies at 1 destination" in world.registry.errors["synctargets/RemovalHeld"]
    world.settle((), world.registry.accept())
    assert world.meant() == 2
    world.delete("t1")
    world.label(target("t1", "/r/t1", region="1"))
    assert "synctargets/RemovalHeld" not in world.registry.errors
    assert world.meant() == 2


def test_a_fifth_of_the_destinations_or_fewer_go_and_so_does_one_whose_node_is_removed():
    world = Taken(targets=5)
    world.delete("t0")
    assert world.meant() == 4
    world.brakes.give_up("t1", until_ms=1)
    world.delete("t1")
    assert world.meant() == 3


def test_a_deletion_is_weighed_alike_before_a_restart_and_after_it():
    world = Taken(targets=3)
    world.delete("t0")
    assert world.meant() == 3
    for _ in range(2):
        world.restart()
        assert world.meant() == 3
        assert "20 copies at 1 destination" in world.registry.errors["synctargets/RemovalHeld"]
        assert FIRST in world.registry.braked()
    world.settle((), world.registry.accept())
    assert world.meant() == 2
    assert "synctargets/RemovalHeld" not in world.registry.errors


def test_what_is_little_goes_though_it_was_deleted_while_the_centre_was_away():
    world = Taken(targets=5)
    world.inventory.pop(FIRST)
    world.restart()
    assert world.meant() == 4


def test_what_was_deleted_while_the_centre_was_away_and_comes_back_loses_nothing():
    world = Taken(targets=3)
    gone = world.inventory.pop(FIRST)
    world.restart()
    assert world.meant() == 3
    world.label(gone)
    assert world.meant() == 3
    assert not world.registry.braked()
    assert "synctargets/RemovalHeld" not in world.registry.errors


def test_what_a_move_of_a_node_takes_is_no_slip():
    moved = location("place", {"matchLabels": {"region": "1"}}, at="here")
    world = World(by_place(at="here"), targets=3, places=[moved])
    assert world.meant() == 3
    world.brakes.give_up("t0", until_ms=1)
    world.label(target("t0", "/r/t0", region="2"))
    assert world.meant() == 2
    world.now_ms = 60_000
    world.label(target("t1", "/r/t1", region="2"))
    assert world.meant() == 2
    assert world.placements.held


def test_an_edge_without_a_destination_says_so_with_the_command_that_gives_it_one():
    node = {"path": "/r/t0", "syncTarget": "", "state": "up", "sinceMs": 0}
    view = nodes_view([{**node, "reached": True, "unplaced": True}])
    assert isinstance(view, Table)
    assert "no destination: leafcast node register /r/t0" in "\n".join(view.lines(200))
    facts = DoctorFacts(
        0, "", 0, nodes=[NodeFacts("/r/t0", "edge", "up", answers=True, unplaced=True)]
    )
    (check,) = [it for it in link_checks(facts) if "destination" in it.said]
    assert check.remedy == "leafcast node register /r/t0"


def test_an_edge_elsewhere_is_known_by_what_it_answers():
    form = {"path": "/r/t0", "role": "relay", "state": "up", "here": False, "sync_target": ""}
    form |= {"silent_since_ms": None, "edges": 0, "is_edge": False}
    form |= dict.fromkeys(("lag", "refused", "contested", "unsaid", "maintenance_until_ms"), 0)
    said = checked_answer(
        NodePath.parse("/r/t0"), {"children": {}, "role": "edge", "serverVersion": "2.12.5"}
    )
    facts = node_facts({**form, "maintenance_reason": ""}, said, {})
    assert facts.unplaced
    assert facts.server_version == "2.12.5"
