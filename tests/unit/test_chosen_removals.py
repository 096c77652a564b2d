"""What a person decides by labels: what they choose is decided whole, and nothing else is."""

import pytest
from click.testing import CliRunner

from controllers.core.inventory.chosen import Chosen, ChosenRecords
from controllers.core.inventory.registry import Registry
from leafcast.ask.api import ApiError
from leafcast.cli.main import cli
from leafcast.daemon.verbs.chosen_removals import ChosenRemovals
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector, Requirement
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


@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist"])
def test_a_label_that_a_placement_lacks_does_not_choose_it(operator):
    other = Requirement("region", operator, ("eu",) if operator == "NotIn" else ())
    for where in (LabelSelector([other]), LabelSelector([*selector(env="prod"), other])):
        record = delta("eu", over(region="eu"))
        assert judged(record, {"env": "prod"}, where) is Chosen.NOT
        assert judged(record, {}, where) is Chosen.NOT


def test_a_label_that_a_placement_has_chooses_it_by_what_it_is_not():
    where = LabelSelector([Requirement("region", "NotIn", ("eu",))])
    assert judged(delta("both", over()), {"region": "us"}, where) is Chosen.WHOLE
    assert judged(delta("us", over(region="us")), {}, where) is Chosen.WHOLE


@pytest.mark.parametrize("form", [{}, {"matchLabels": {}}, {"matchExpressions": None}, None, []])
async def test_a_selector_that_says_no_label_is_refused_before_a_centre_is_asked(form):
    with pytest.raises(ApiError, match="the selector"):
        await ChosenRemovals(None, None).accept(form)


@pytest.mark.parametrize(
    "words",
    [
        ("accept", "-l"),
        ("delete", "configmaps", "-l"),
        ("label", "synctargets", "a=b", "-l"),
        ("apply", "-f", "-", "--place", "shop", "--where"),
        ("place", "-f", "-", "--where"),
        ("wait", "shop", "--except"),
    ],
)
@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_commands_that_change_something_take_no_selector_of_empty_variables(words, text, tmp_path):
    done = CliRunner().invoke(cli, [*words, text, "--data-dir", str(tmp_path)])
    assert done.exit_code == 2
    assert "it says no label" in done.output


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
