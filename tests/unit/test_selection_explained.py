"""What does not match says which requirement, which value, and the command that mends it."""

import pytest

from controllers.core.workloads.selection import (
    Rules,
    never_selected,
    rules_of,
    why_never_selected,
)
from leafcast.explain.selection import nearest, object_unmet, place_unmet
from leafcast.show.stages import CopyStage
from relay.core.gates import Candidate
from schemas.api.parsing import parse_kind
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    LocationRecord,
    Profile,
    Source,
)
from schemas.values.identity import DestinationId, NodePath
from tests.memory_tree import placement

WEB = ObjectKey("apps", "deployments", "shop", "web")
LABELS = {"part": "core", "old": "yes"}


def selector(**labels):
    return LabelSelector.from_kubernetes({"matchLabels": labels})


def expression(key, operator, *values):
    item = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return LabelSelector.from_kubernetes({"matchExpressions": [item]})


def rules(*clauses):
    written = placement("shop", "shop")
    written["spec"]["downsync"] = list(clauses)
    return rules_of(parse_kind(written).spec)


def told(key, clause, namespace=None):
    misses = rules(clause).unmet(key, LABELS, namespace)
    found = object_unmet("shop", key, LABELS, namespace, misses)
    assert found.stage is CopyStage.NOT_SELECTED
    return found.said, found.remedy


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ({"apiGroup": "batch"}, 'its group is "apps", the placement wants "batch"'),
        ({"apiGroup": ""}, 'its group is "apps", the placement wants the core group'),
        (
            {"apiGroup": "apps", "resources": ["daemonsets"]},
            'it is one of deployments, the placement wants "daemonsets"',
        ),
        ({"namespaces": ["a", "b"]}, 'its namespace is "shop", the placement wants "a", "b"'),
        ({"objectNames": ["till"]}, 'its name is "web", the placement wants "till"'),
        (
            {"labelSelectors": [{"matchLabels": {"part": "side"}}]},
            'metadata.labels.part is "core", the placement wants "side"',
        ),
        (
            {"labelSelectors": [{"matchLabels": {"tier": "one"}}]},
            'metadata.labels.tier is not there, the placement wants "one"',
        ),
        (
            {"namespaceSelectors": [{"matchLabels": {"env": "prod"}}]},
            'namespace "shop" is not there, and the placement selects by its labels',
        ),
    ],
)
def test_an_object_says_which_field_of_the_clause_it_misses(clause, said):
    assert told(WEB, clause)[0] == said


def test_what_to_do_gives_the_label_that_is_wanted():
    _, remedy = told(WEB, {"labelSelectors": [{"matchLabels": {"part": "side"}}]})
    assert remedy.startswith("leafcast label deployments web -n shop part=side --overwrite, or ")
    said, remedy = told(WEB, {"namespaceSelectors": [{"matchLabels": {"env": "prod"}}]}, {"a": "b"})
    assert said == 'namespace.labels.env is not there, the placement wants "prod"'
    assert remedy.startswith("leafcast label namespace shop env=prod, or ")


def test_of_several_clauses_the_one_is_told_that_is_met_the_farthest():
    far = {"namespaces": ["shop"], "labelSelectors": [{"matchLabels": {"part": "side"}}]}
    misses = rules({"apiGroup": "batch"}, far, {"namespaces": ["x"]}).unmet(WEB, LABELS, None)
    found = nearest(misses)
    assert found is not None
    assert found[1] == "labelSelectors"
    assert nearest(Rules().unmet(WEB, LABELS, None)) is None


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (expression("part", "NotIn", "core"), 'wants anything but "core"'),
        (expression("part", "NotIn", "core", "side"), 'wants none of "core", "side"'),
        (expression("part", "In", "a", "b"), 'wants one of "a", "b"'),
        (expression("new", "Exists"), "wants it, whatever it says"),
        (expression("old", "DoesNotExist"), "wants no such label"),
    ],
)
def test_every_operator_says_what_it_wants(wanted, said):
    requirement = wanted.unmet(LABELS)
    assert requirement is not None
    assert requirement.refusal(LABELS)[1] == said
    assert not wanted.matches(LABELS)


@pytest.mark.parametrize(
    ("key", "obj"),
    [
        (ObjectKey("", "nodes", "", "n"), {}),
        (ObjectKey("", "secrets", "a", "b"), {"type": "kubernetes.io/service-account-token"}),
        (ObjectKey("", "configmaps", "a", "kube-root-ca.crt"), {}),
        (WEB, {"metadata": {"labels": {"leafcast.io/stays": ""}}}),
        (ObjectKey("", "services", "default", "kubernetes"), {}),
        (ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "x.leafcast.io"), {}),
    ],
)
def test_what_never_goes_out_says_why(key, obj):
    assert never_selected(key, obj)
    assert why_never_selected(key, obj)
    assert not why_never_selected(WEB, {"metadata": {}})


def profile(**labels):
    source = Source("edge.kubestellar.io/SyncTarget", "inventory", "", "store-9")
    path = NodePath.parse("/region-2/site-9")
    return Profile(source, 1, "0" * 16, "", DestinationId("d"), path, labels, {}, {})


def location(name, **labels):
    source = Source("edge.kubestellar.io/Location", "inventory", "", name)
    return LocationRecord(source, 1, "0" * 16, "", labels, {}, LabelSelector())


def unmet(*alternatives, locations=(), **labels):
    who = Candidate(profile(**labels), lambda _: locations)
    assert who.chosen(alternatives) is None
    found = place_unmet("shop", who.profile, who.unmet(alternatives))
    return found.said, found.remedy


def test_a_destination_says_which_label_of_which_location_is_another():
    wanted = Alternative(OVER_LOCATION, selector(env="prod"))
    said, remedy = unmet(wanted, locations=(location("stores", env="dev"),))
    assert said == 'location.labels.env is "dev" (stores), the placement wants "prod"'
    assert remedy.startswith("leafcast label location stores env=prod --overwrite, or ")

    nowhere, look = unmet(wanted)
    assert nowhere == "it belongs to no Location"
    assert look == "leafcast get locations; leafcast describe synctarget store-9"
    both = Alternative(OVER_SYNC_TARGET, expression("old", "DoesNotExist"))
    said, remedy = unmet(both, old="yes")
    assert said == 'synctarget.labels.old is "yes" (store-9), the placement wants no such label'
    assert remedy.startswith("change one of them")
    assert unmet()[0] == "edgeplacement/shop has no locationSelectors"


def test_who_is_chosen_misses_nothing():
    wanted = Alternative(OVER_LOCATION, selector(env="prod"))
    who = Candidate(profile(), lambda _: (location("a", env="dev"), location("b", env="prod")))
    found = who.chosen((wanted,))
    assert found is not None
    assert found.by.source.name == "b"
    assert [each.requirement is None for each in who.unmet((wanted,))] == [False, True]
