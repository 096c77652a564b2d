"""What an edit of labels takes is weighed as any other: much of it stays until someone accepts."""

from controllers.core.inventory.label_brakes import LabelBrakes
from controllers.core.inventory.registry import Registry
from controllers.core.ledger.destination_counts import count_destinations
from controllers.core.ledger.weighing import Confirmations
from controllers.core.translation.placements import Placements
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaHead
from schemas.values import wire
from tests.unit.centre_world import config, location, placement, target
from tests.unit.test_centre_decisions import TREE, keyed

WHERE = "edge.kubestellar.io/v2alpha1"


class World:
    """A centre's decisions about inventory and placements, and the ledger that both write."""

    registry_of = Registry

    def __init__(self, *placements, targets=5, places=None):
        self.ledger = {}
        self.generation = 1
        self.now_ms = 0
        self.grace = {}
        self.brakes = LabelBrakes(self.ledger, Confirmations())
        self.inventory = {}
        for n in range(targets):
            self.keep(target(f"t{n}", f"/r/t{n}", region="1" if n < 3 else "2"))
        for place in places or [location("place", at="here")]:
            self.keep(place)
        self.objects = keyed(*placements, *(config(f"c{n}") for n in range(20)))
        self.start({})

    def keep(self, obj):
        ((key, obj),) = keyed(obj).items()
        self.inventory[key] = obj
        return key

    def start(self, issued):
        self.placements = Placements("wds", issued, self.ledger, brakes=self.brakes)
        self.registry = self.registry_of(
            "inv", TREE, self.ledger, frozenset({"inv"}), None, (self.brakes, self)
        )
        self.settle(self.placements.listed(self.objects), self.registry.listed(self.inventory))

    def restart(self):
        self.brakes = LabelBrakes(self.ledger, Confirmations())
        self.start(self.placements.standing())

    # What is known of placements.

    def objects_of(self, placement):
        found = {self.key(name): name for name in self.placements.standing()}
        return self.placements.entries(found[placement]).keys()

    def grace_of(self, placement):
        return self.grace.get(placement)

    def brakes_changed(self, placements):
        self.names |= {name for name in self.placements.standing() if self.key(name) in placements}

    def key(self, name="shop"):
        return self.placements.source(name).key

    # What happens.

    def settle(self, names, keys):
        """Let both decide until nothing is left to do."""
        self.names = set(names)
        while self.names or keys:
            names, self.names = self.names, set()
            works = self.placements.next(names, self.now_ms)
            drafts = [work.draft for work in works if work.draft is not None]
            self.placements.issued(works, self.issue(drafts))
            held = dict(self.brakes.brake.held)
            work = self.registry.next(keys, self.now_ms)
            self.issue(work.drafts)
            for key in work.deleted:
                self.ledger.pop(key)
            self.brakes_changed({key for key, _ in held.items() ^ self.brakes.brake.held.items()})
            keys = work.deferred

    def issue(self, drafts):
        self.generation += 1
        records = [wire.replace(draft.record, generation=self.generation) for draft in drafts]
        self.ledger.update((record.source.key, record) for record in records)
        self.brakes.changed(records)
        return records

    def label(self, obj):
        key = self.keep(obj)
        self.settle((), self.registry.put(key, obj))

    def accept(self, name="shop"):
        names = self.placements.accept(name)
        self.brakes.accept(self.key(name))
        self.settle(names, self.registry.braked())

    def labels(self):
        return {key: it.labels for key, it in self.ledger.items() if hasattr(it, "labels")}

    def meant(self, name="shop"):
        head = self.ledger[self.key(name)]
        assert isinstance(head, DeltaHead)
        return count_destinations(self.ledger.values(), head.alternatives)


def by_place(**labels):
    return placement(selectors=({"matchLabels": labels},))


def test_a_location_that_loses_its_label_keeps_what_it_has_until_someone_accepts():
    world = World(by_place(at="here"))
    assert world.meant() == 5
    world.label(location("place"))
    assert world.meant() == 5
    assert "100 copies at 5 destinations" in world.placements.held["shop"]
    world.accept()
    assert world.meant() == 0
    assert not world.placements.held
    assert not world.registry.braked()


def test_to_put_a_label_back_leaves_no_trace():
    world = World(by_place(at="here"))
    before = {
        key: record.labels for key, record in world.ledger.items() if hasattr(record, "labels")
    }
    head = world.ledger[world.key()]
    world.label(location("place", at="hree"))
    world.label(location("place", at="here"))
    after = {
        key: record.labels for key, record in world.ledger.items() if hasattr(record, "labels")
    }
    assert after == before
    assert world.ledger[world.key()].alternatives == head.alternatives
    assert not world.placements.held


def test_whoever_gains_by_the_same_edit_gains_at_once():
    clause = {"namespaces": ["shop"], "objectNames": ["c1"]}
    there = placement("other", clause, selectors=({"matchLabels": {"at": "there"}},))
    world = World(by_place(at="here"), there)
    assert world.meant("other") == 0
    world.label(location("place", at="there"))
    assert (world.meant(), world.meant("other")) == (5, 5)
    assert "95 copies at 5 destinations" in world.placements.held["shop"]


def test_who_gets_all_of_it_by_another_placement_loses_nothing():
    there = placement("other", selectors=({"matchLabels": {"at": "there"}},))
    world = World(by_place(at="here"), there)
    world.label(location("place", at="there"))
    assert (world.meant(), world.meant("other")) == (0, 5)
    assert not world.placements.held


def test_a_restart_amid_a_hold_of_labels_lets_nothing_go():
    world = World(by_place(at="here"))
    world.label(location("place"))
    world.restart()
    assert world.meant() == 5
    assert world.placements.held
    world.accept()
    assert world.meant() == 0


def test_an_edit_of_labels_that_the_centre_slept_through_is_held():
    world = World(by_place(at="here"))
    world.keep(location("place"))
    world.restart()
    assert world.meant() == 5
    assert world.placements.held


def test_labels_of_sync_targets_are_weighed_together_if_they_follow_closely():
    policy = {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "BindingPolicy",
        "metadata": {"name": "shop"},
        "spec": {
            "clusterSelectors": [{"matchLabels": {"region": "1"}}],
            "downsync": [{"namespaces": ["shop"]}],
        },
    }
    world = World(policy, targets=3)
    name = next(iter(world.placements.standing()))
    assert world.meant(name) == 3
    world.label(target("t0", "/r/t0"))
    world.label(target("t1", "/r/t1"))
    assert world.meant(name) == 3
    assert "40 copies at 2 destinations" in world.placements.held[name]
    world.label(target("t1", "/r/t1", region="1"))
    assert world.meant(name) == 3
    world.accept(name)
    assert world.meant(name) == 2


def test_an_instance_selector_that_narrows_is_held_too():
    world = World(by_place(at="here"))
    world.label(location("place", {"matchLabels": {"region": "9"}}, at="here"))
    assert world.meant() == 5
    assert world.placements.held
    world.label(location("place", {}, at="here"))
    assert (world.meant(), world.placements.held) == (5, {})


def test_who_leaves_a_location_that_holds_its_copies_keeps_them_too():
    narrow = {"matchLabels": {"region": "1"}}
    world = World(by_place(at="here"), places=[location("place", narrow, at="here")])
    assert world.meant() == 3
    world.label(location("place", narrow, at="there"))
    world.now_ms += 60_000
    world.label(target("t1", "/r/t1", region="2"))
    assert world.meant() == 3
    assert "60 copies at 3 destinations" in world.placements.held["shop"]
    world.accept()
    assert world.meant() == 0
    assert not world.registry.braked()


def test_little_goes_at_once():
    clause = {"namespaces": ["shop"], "objectNames": ["c1", "c2"]}
    world = World(placement(clause=clause, selectors=({"matchLabels": {"at": "here"}},)))
    world.label(location("place"))
    assert world.meant() == 0
    assert not world.placements.held


def test_a_location_that_is_deleted_by_its_name_goes():
    world = World(by_place(at="here"))
    key = ObjectKey("edge.kubestellar.io", "locations", "", "place")
    world.settle((), world.registry.deleted(key))
    assert world.meant() == 0
    assert not world.placements.held


def test_a_grace_lets_labels_go_by_themselves():
    world = World(by_place(at="here"))
    world.grace[world.key()] = 300.0
    world.label(location("place"))
    assert [*world.brakes.brake.due.values()] == [300_000]
    world.now_ms = 300_000
    world.settle((), world.registry.braked())
    assert world.meant() == 0


def test_a_move_that_makes_before_it_breaks_is_no_removal():
    moving = by_place(at="here")
    moving["metadata"]["annotations"] = {"leafcast.io/move": "make-before-break"}
    places = [
        location("first", {"matchLabels": {"region": "1"}}, at="here"),
        location("second", {"matchLabels": {"region": "2"}}),
    ]
    world = World(moving, places=places)
    world.label(location("second", {"matchLabels": {"region": "2"}}, at="here"))
    world.label(location("first", {"matchLabels": {"region": "1"}}))
    assert world.meant() == 5
    assert not world.placements.held
    nowhere = World(moving, places=places)
    nowhere.label(location("first", {"matchLabels": {"region": "1"}}, at="hree"))
    assert nowhere.placements.held
    narrowed = World(moving, places=places)
    narrowed.label(location("second", {"matchLabels": {"region": "2"}}, at="here"))
    assert narrowed.meant() == 5
    narrowed.label(location("first", {"matchLabels": {"region": "9"}}, at="here"))
    assert narrowed.meant() == 5
    assert narrowed.placements.held
