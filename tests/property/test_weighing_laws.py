"""What a change takes is counted exactly, and nothing large goes that nobody let go."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.weighing import Delivered, weigh
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import OVER_SYNC_TARGET, Alternative
from tests.property.examples import examples
from tests.unit.centre_world import location, placement, target
from tests.unit.test_destination_counts import profile, selector
from tests.unit.test_label_brakes import World

OBJECTS = [ObjectKey("", "configmaps", "shop", f"c{n}") for n in range(6)]
VALUES = st.sampled_from(["1", "2", "3"])
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), VALUES)
INVENTORY = st.lists(LABELS, max_size=12)
ALTERNATIVES = st.lists(LABELS, max_size=2)
DELIVERED = st.tuples(ALTERNATIVES, st.sets(st.sampled_from(OBJECTS)))


def alternatives(listed):
    return tuple(Alternative(OVER_SYNC_TARGET, selector(**labels)) for labels in listed)


def delivered(said):
    return Delivered(alternatives(said[0]), frozenset(said[1]))


def has(labels, said):
    """What a destination with these labels has, copy by copy."""
    meant = any(wanted.items() <= labels.items() for wanted in said[0])
    return set(said[1]) if meant else set()


@given(INVENTORY, INVENTORY, DELIVERED, DELIVERED, st.lists(DELIVERED, max_size=3))
def test_a_loss_is_every_copy_that_is_not_given_in_another_way(were, are, before, after, others):
    are = (are + were[len(are) :])[: len(were)]
    inventory = [
        SelectedDestinations(profile(f"t{n}", **labels) for n, labels in enumerate(listed))
        for listed in (were, are)
    ]
    loss = weigh(tuple(inventory), delivered(before), delivered(after), map(delivered, others))
    lost = [
        has(former, before) - has(later, after).union(*(has(later, other) for other in others))
        for former, later in zip(were, are, strict=True)
    ]
    assert loss.copies == sum(map(len, lost))
    assert loss.places == sum(map(bool, lost))
    assert loss.destinations <= loss.of_destinations
    if loss.is_large:
        assert loss.copies > 10


class Held(RuleBasedStateMachine):
    """Edits of any kind, restarts and words, on the centre's own decisions."""

    def __init__(self):
        super().__init__()
        self.world = World(self.said({"at": "here"}), targets=4)
        self.had = self.copies()
        self.lost = 0

    @staticmethod
    def said(labels, only=None):
        clause = {"namespaces": ["shop"], **({"objectNames": only} if only else {})}
        return placement(clause=clause, selectors=({"matchLabels": labels},))

    def copies(self):
        meant = self.world.meant()
        return meant * len(self.world.placements.entries("shop"))

    def step(self, accepted=False):
        # Edits far apart in time are weighed one by one.
        self.world.now_ms += 60_000
        now = self.copies()
        self.lost = 0 if accepted else self.had - now
        self.had = now

    @rule(labels=st.sampled_from([{"at": "here"}, {"at": "there"}, {"ta": "here"}]))
    def select_others(self, labels):
        self.put(self.said(labels))

    @rule(only=st.sampled_from([None, ["c1"], [f"c{n}" for n in range(17)]]))
    def select_objects(self, only):
        self.put(self.said({"at": "here"}, only))

    @rule(at=st.sampled_from(["here", "there", ""]))
    def label_the_location(self, at):
        self.world.label(location("place", **({"at": at} if at else {})))
        self.step()

    @rule(region=VALUES, name=st.sampled_from(["t0", "t1", "t2"]))
    def label_a_sync_target(self, region, name):
        self.world.label(target(name, f"/r/{name}", region=region))
        self.step()

    @rule(region=st.sampled_from([None, "1", "2"]))
    def narrow_the_location(self, region):
        chosen = {"matchLabels": {"region": region}} if region else {}
        self.world.label(location("place", chosen, at="here"))
        self.step()

    @rule()
    def restart(self):
        self.world.restart()
        self.step()

    @rule()
    def accept(self):
        self.world.accept()
        self.step(accepted=True)

    def put(self, obj):
        key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
        self.world.objects[key] = obj
        self.world.settle(self.world.placements.put(key, obj), ())
        self.step()

    @invariant()
    def nothing_large_goes_that_nobody_let_go(self):
        assert self.lost <= max(10, (self.had + self.lost) * 0.36), self.world.placements.held

    @invariant()
    def what_is_held_is_said(self):
        if self.world.registry.braked() or self.world.placements.braked:
            assert "leafcast accept epl/shop" in self.world.placements.held["shop"]
        assert LabelSelector


Held.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=12, deadline=None)
TestHeld = Held.TestCase
