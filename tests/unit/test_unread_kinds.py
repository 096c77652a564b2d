"""Kinds that a space does not show: who is concerned, and in whose words."""

import pytest

from controllers.core.status.facts import PlacementFacts
from controllers.core.status.status import placement_status
from controllers.core.translation.inferred_removals import held_back
from controllers.core.workloads.missing_references import Lack
from controllers.core.workloads.space import Workloads
from controllers.core.workloads.unread_kinds import UnreadKind
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count, ExceptionSample, Summary
from tests.unit.centre_world import condition, config, config_key, placement, placement_key

CONVS, CLUSTER = ("conv.example.com", "convs"), ("conv.example.com", "wides")
FAILED = 'conversion webhook for conv.example.com/v1, Kind=Conv failed: service "conv" not found'
WHOLE, ONE = {"namespaces": ["shop"]}, {"namespaces": ["other"]}


def space(name, **labels):
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }


@pytest.fixture
def workloads():
    found = Workloads()
    for name in ("shop", "other"):
        found.put(ObjectKey("", "namespaces", "", name), space(name, team=name))
        found.put(config_key("a", name), config("a", name))
    return found


def lacking(workloads, *clauses):
    workloads.put(placement_key("shop"), placement(downsync=[*clauses]))
    return workloads.lack("shop")


def test_the_words_of_the_failure_come_first(workloads):
    workloads.unread[CONVS] = UnreadKind(True, "InternalError", FAILED)
    found = lacking(workloads, WHOLE)
    assert found.reason == "KindUnreadable"
    assert found.message.startswith(f"{FAILED}; so convs.conv.example.com cannot be read")
    assert "get, list and watch" not in found.message
    said = 'secrets is forbidden: User "x" cannot list resource "secrets"'
    workloads.unread = {("", "secrets"): UnreadKind(True, "Forbidden", said)}
    assert lacking(workloads, {"apiGroup": ""}).message == (
        f"{said}; so secrets cannot be read: what was sent of it stays; "
        "let the centre get, list and watch it, or name other resources"
    )


@pytest.mark.parametrize(
    ("clauses", "concerned"),
    [
        ([WHOLE], True),
        ([{"resources": ["configmaps"], "namespaces": ["shop"]}], False),
        ([ONE], False),
        ([{"namespaceSelectors": [{"matchLabels": {"team": "shop"}}]}], True),
        ([{"namespaceSelectors": [{"matchLabels": {"team": "other"}}]}], False),
        ([{"namespaces": ["nowhere"]}, ONE], False),
        ([{"labelSelectors": [{"matchLabels": {"app": "x"}}]}], True),
        ([{"apiGroup": "conv.example.com", "namespaces": ["other"]}], False),
    ],
)
def test_a_clause_is_concerned_only_where_such_an_object_may_lie(workloads, clauses, concerned):
    workloads.unread[CONVS] = UnreadKind(True, "InternalError", FAILED, empty=frozenset({"other"}))
    found = lacking(workloads, *clauses)
    assert (found is not None and found.reason == "KindUnreadable") is concerned or (
        found.reason == "NamespaceNotFound" and "convs" not in found.message
    )


def test_what_lies_in_no_namespace_concerns_no_clause_of_namespaces(workloads):
    workloads.unread[CLUSTER] = UnreadKind(False, "Forbidden", "wides is forbidden")
    assert lacking(workloads, WHOLE) is None
    assert lacking(workloads, {"apiGroup": "conv.example.com"}).reason == "KindUnreadable"


def test_of_a_kind_whose_server_is_away_only_what_was_seen_concerns(workloads):
    workloads.unread[CONVS] = UnreadKind(True, "ServiceUnavailable", "away", was_listed=True)
    assert lacking(workloads, WHOLE) is None
    one = {"metadata": {"name": "one", "namespace": "shop"}}
    workloads.put(ObjectKey(*CONVS, "shop", "one"), one)
    assert "kubectl get apiservices" in lacking(workloads, WHOLE).message
    assert lacking(workloads, ONE) is None


def test_until_a_kind_was_listed_nothing_that_may_select_it_is_synced(workloads):
    workloads.unread[CONVS] = UnreadKind(True)
    found = lacking(workloads, WHOLE)
    assert found == Lack("KindNotListed", "convs.conv.example.com are not listed yet")
    everywhere = Count(Summary(states={"synced": 1}, health={"healthy": 1}), exact=True)
    told = placement_status(PlacementFacts(1, 1, lack=found), everywhere, None, 0)
    for type_ in ("Synced", "Healthy", "ObjectsSelected"):
        assert condition({"status": told}, type_)["reason"] == "KindNotListed"


def test_what_else_is_wrong_is_said_before_a_kind_that_cannot_be_read():
    sample = ExceptionSample(0, "shop/web", "Forbidden: no such image", 1, "/emea/s1")
    failing = Count(Summary(states={"failing": 1}, exceptions=(sample,)), exact=True)
    facts = PlacementFacts(1, 1, selected=1, lack=Lack("KindUnreadable", FAILED))
    told = condition({"status": placement_status(facts, failing, None, 0)}, "Synced")
    assert told["reason"] == "Failing"
    assert told["message"].index("no such image") < told["message"].index(FAILED)


def test_what_was_sent_of_a_kind_that_cannot_be_read_is_neither_missed_nor_removed(workloads):
    key, gone = ObjectKey(*CONVS, "shop", "one"), config_key("b")
    before = frozenset({key, gone, config_key("a")})
    workloads.unread[CONVS] = UnreadKind(True, "InternalError", FAILED)
    stays, held = held_back(workloads, "shop", before, {key, gone})
    assert stays == {key}
    assert not held.items
