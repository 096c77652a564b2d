"""What a person decides by labels: what they choose is decided whole, and nothing else is."""

from controllers.core.inventory.chosen import Chosen, ChosenRecords
from controllers.core.inventory.registry import Registry
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import OVER_SYNC_TARGET, Alternative, NodeRecord, Source
from schemas.values.identity import NodePath
from tests.unit.test_centre_decisions import TREE
from tests.unit.test_destination_counts import SPACE, delta, keys, location, profile, selector

EU, PARIS = profile("rome", region="eu"), profile("paris", region="eu")
US = profile("nyc", region="us")
PLACE = location("alps", selector(region="eu"), region="eu")


def over(**labels):
    return Alternative(OVER_SYNC_TARGET, selector(**labels))


def judged(record, labels=None, where=None):
    chosen = ChosenRecords([EU, US, PARIS, PLACE], where or selector(region="eu"))
    return chosen.judge(record, labels)


def test_destinations_and_locations_are_chosen_by_their_labels():
    assert [judged(it) for it in (EU, US, PLACE)] == [Chosen.WHOLE, Chosen.NOT, Chosen.WHOLE]


def test_a_placement_is_chosen_if_all_that_it_is_for_are_and_never_in_part():
    assert judged(delta("eu", over(region="eu"))) is Chosen.WHOLE
    assert judged(delta("us", over(region="us"))) is Chosen.NOT
    assert judged(delta("both", over())) is Chosen.PARTLY
    assert judged(delta("none", over(region="asia"))) is Chosen.NOT


def test_the_labels_of_a_placement_choose_it_whomever_it_is_for():
    assert judged(delta("both", over()), {"region": "eu"}) is Chosen.WHOLE
    assert judged(delta("us", over(region="us")), {"region": "eu"}) is Chosen.WHOLE
    assert judged(delta("eu", over(region="eu")), {"region": "us"}) is Chosen.WHOLE


def test_a_node_is_never_chosen():
    node = NodeRecord(Source("node", "", "", "/rome"), 1, "", "", NodePath(("rome",)), "U")
    assert judged(node, where=LabelSelector()) is Chosen.NOT


def test_of_what_waits_only_that_goes_which_was_chosen():
    records = {it.source.key: it for it in (EU, US, PARIS)}
    registry = Registry(SPACE, TREE, records, {SPACE})
    registry.listed({})
    rome = ObjectKey("edge.kubestellar.io", "synctargets", "", "rome")
    assert keys(*registry.waiting().values()) == keys(EU, US, PARIS)
    assert registry.accept([rome]) == {rome}
    assert keys(*registry.waiting().values()) == keys(US, PARIS)
    assert len(registry.accept()) == 2
