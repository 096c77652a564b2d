"""What a placement names and is not there, and what it asks for that is not supported yet."""

from controllers.core.workloads.missing_references import MissingReferences
from controllers.core.workloads.space import Workloads, placement_key
from schemas.api.parsing import parse_kind
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from tests.unit.centre_world import config, config_key, placement

SERVED = frozenset(
    {("", "configmaps"), ("", "secrets"), ("apps", "deployments"), ("batch", "jobs")}
)


def missing(*clauses, selected=1, served=SERVED):
    found = MissingReferences(served)
    found.put("shop", parse_kind(placement(downsync=list(clauses))).spec)
    return found.of("shop", selected)


def test_what_selects_nothing_says_so():
    lack = missing({"apiGroup": ""}, selected=0)
    assert lack.reason == "NothingSelected"
    assert lack.message.startswith("no object is selected: apply some that spec.downsync matches")
    assert "spec.downsync is empty" in missing(selected=0).message
    assert missing({"apiGroup": ""}) is None


def test_an_upsync_that_admits_nothing_says_so():
    def lack(*clauses, selected=0):
        spec = {"downsync": [], "upsync": [*clauses]}
        found = MissingReferences(SERVED)
        found.put("shop", parse_kind(placement(**spec)).spec)
        return found.of("shop", selected)

    maps = {"resources": ["configmaps"], "names": ["*"], "namespaces": ["*"]}
    assert lack(maps) is None
    assert lack({**maps, "names": []}, maps) is None
    for field in ("resources", "names", "namespaces"):
        told = lack({**maps, field: []})
        assert told.reason == "NothingSelected"
        assert told.message.startswith(f"spec.upsync[0].{field}: empty, so nothing comes up")
    # Nobody here knows whether these live in namespaces.
    assert lack({"apiGroup": "example.com", "resources": ["widgets"], "names": ["*"]}) is None


def test_a_resource_that_no_kind_goes_by_is_named_with_what_is_meant():
    lack = missing({"apiGroup": None, "resources": ["deploymnets", "configmaps"]})
    assert lack.reason == "UnknownKind"
    assert lack.message == (
        'spec.downsync[0].resources: the server doesn\'t have a resource type "deploymnets"; '
        'did you mean "deployments"?'
    )
    lack = missing({"resources": ["configmaps"]}, {"apiGroup": "apps", "resources": ["jobs"]})
    assert lack.message.endswith('"jobs" in group "apps"; its apiGroup is "batch"')
    lack = missing({"apiGroup": "app"})
    assert lack.message.endswith('no kind has the API group "app"; did you mean "apps"?')


def test_no_kind_is_unknown_as_long_as_nobody_knows_which_there_are():
    assert missing({"resources": ["widgets"]}, served=None) is None


def test_a_kind_that_comes_concerns_the_placements():
    found = MissingReferences(SERVED)
    found.put("shop", parse_kind(placement(clause={"resources": ["widgets"]})).spec)
    assert found.of("shop", 1).reason == "UnknownKind"
    assert found.serve(SERVED | {("example.com", "widgets")}) == {"shop"}
    assert found.of("shop", 1) is None
    assert found.serve(SERVED | {("example.com", "widgets")}) == frozenset()


def test_a_namespace_that_is_not_there_is_named_until_it_comes():
    workloads = Workloads()
    workloads.put(placement_key("shop"), placement(clause={"namespaces": ["shop", "default"]}))
    workloads.put(placement_key("other"), placement("other", clause={"apiGroup": ""}))
    lack = workloads.lack("shop")
    assert lack.reason == "NamespaceNotFound"
    told = 'spec.downsync[0].namespaces: namespaces "shop" not found; so no object is selected'
    assert lack.message == told

    key = ObjectKey("", "namespaces", "", "shop")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert "shop" in workloads.put(key, space)
    assert workloads.lack("shop").reason == "NothingSelected"
    workloads.put(config_key("a"), config("a"))
    assert workloads.lack("shop") is None

    assert "shop" in workloads.deleted(config_key("a"))
    assert "shop" in workloads.deleted(key)
    assert workloads.lack("shop").reason == "NamespaceNotFound"


def test_what_is_in_a_namespace_tells_that_it_is_there():
    workloads = Workloads()
    workloads.put(placement_key("shop"), placement())
    workloads.put(config_key("a"), config("a"))
    assert workloads.lack("shop") is None
    workloads.listed({placement_key("shop"): placement()}, {})
    assert workloads.lack("shop").reason == "NamespaceNotFound"


def test_a_change_concerns_only_the_placements_that_name_the_namespace():
    found = MissingReferences()
    for name in ("a", "b"):
        found.put(name, parse_kind(placement(name, clause={"namespaces": [name]})).spec)
    assert found.put_namespace("a") == {"a"}
    assert found.put_namespace("a") == frozenset()
    assert found.remove_namespace("kube-system") == frozenset()
    assert found.remove_namespace("a") == {"a"}
    found.remove("a")
    assert found.put_namespace("a") == frozenset()


def test_every_resource_that_kubernetes_has_is_known_by_its_plural():
    served = {(group, entry.resource) for (group, _), entry in BUILT_IN_KINDS.items()}
    assert missing({"resources": ["endpoints", "ingresses"]}, served=served) is None
