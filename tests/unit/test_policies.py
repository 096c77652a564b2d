"""BindingPolicies, EdgePlacements of v1alpha1 and CustomTransforms at a centre, with its ledger."""

from itertools import islice

import pytest

from controllers.core.inventory.where import DESTINATIONS_MAX, OBJECTS_MAX, binding_of
from controllers.core.workloads.space import Workloads
from leafcast.ask.resource_names import ResourceKinds
from leafcast.show.object_output import ObjectGroup, TableStyle, table_lines
from schemas.api.parsing import parse_kind, parse_wish
from schemas.content.manifest import CREATE_ONLY, WANT_SINGLETON, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.records.placements import (
    BINDING_POLICIES,
    placement_key,
    placement_of,
    result_key,
    title,
)
from schemas.records.records import OVER_SYNC_TARGET, DeltaHead
from schemas.reports.collectors import AGGREGATE
from schemas.values.codec import unpack
from schemas.values.faults import InvalidObject
from schemas.values.groups import NOTE
from tests.awaiting import until_gone
from tests.unit.centre_world import (
    USER,
    Centre,
    condition,
    config,
    config_key,
    deployment,
    location,
    ours,
    placement,
    target,
)

pytestmark = pytest.mark.leaps

POLICY = "bindingpolicy/shop"
SHOP_OBJECTS = {"namespaces": ["shop"]}


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


def control(kind, name, spec):
    version = "control.kubestellar.io/v1alpha1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def policy(name="shop", clause=None, selectors=({},)):
    spec = {"clusterSelectors": list(selectors), "downsync": [clause or SHOP_OBJECTS]}
    return control("BindingPolicy", name, spec)


def custom_transform(name, *remove, resource="deployments", group="apps"):
    spec = {"apiGroup": group, "resource": resource, "remove": list(remove)}
    return control("CustomTransform", name, spec)


def transform_key(name):
    return ObjectKey("control.kubestellar.io", "customtransforms", "", name)


def delta(relay, name):
    """The placement of this name in the ledger."""
    found = [
        it for it in relay.held().values() if isinstance(it, DeltaHead) and placement_of(it.source)
    ]
    return next((head for head in found if placement_of(head.source) == name), None)


def holds(name, *objects):
    async def predicate(relay):
        head = delta(relay, name)
        return head is not None and set(await relay.entries(head)) == set(objects)

    return predicate


async def sent(relay, name, obj):
    """An object of a placement, as it goes out."""
    return unpack(await relay.object(delta(relay, name), obj), 1 << 20)


def says(type_, *words):
    def predicate(obj):
        found = condition(obj, type_)
        return found is not None and all(word in found["message"] for word in words)

    return predicate


def warns(*said):
    return lambda obj: obj.get("status", {}).get("warnings") == [*said]


async def test_a_policy_selects_sync_targets_by_their_own_labels(centre):
    prod = {"matchLabels": {"env": "prod"}}
    await centre.apply(config("a"), policy(selectors=[prod]))
    async with centre.running():
        await centre.relay.until(holds(POLICY, "a"))
    [alternative] = delta(centre.relay, POLICY).alternatives
    assert (alternative.over, alternative.selector.to_kubernetes()) == (OVER_SYNC_TARGET, prod)


async def test_one_name_in_both_kinds_is_two_placements_through_restart_and_deletion(centre):
    await centre.apply(config("a"), deployment("d"), placement(), policy())
    async with centre.running():
        await centre.relay.until(holds("shop", "a", "d"))
        await centre.relay.until(holds(POLICY, "a", "d"))
    before = len(centre.relay.deltas())
    async with centre.running() as controllers:
        await controllers.caught_up()
        assert len(centre.relay.deltas()) == before
        await centre.wds.delete(placement_key("shop"))
        await centre.relay.until(lambda relay: delta(relay, "shop") is None)
        assert delta(centre.relay, POLICY) is not None
        await centre.wds.delete(placement_key(POLICY))
        await centre.relay.until(lambda relay: delta(relay, POLICY) is None)


async def test_a_policy_that_vanished_unseen_is_held_by_its_own_name(centre):
    await centre.apply(*(config(f"c{at}") for at in range(12)), placement(), policy())
    async with centre.running():
        await centre.relay.until(lambda relay: delta(relay, POLICY) and delta(relay, "shop"))
    await centre.wds.delete(placement_key(POLICY))
    async with centre.running() as controllers:
        await controllers.caught_up()
        assert f"leafcast accept {POLICY}" in controllers.errors[title(POLICY)]
        assert "edgeplacement/shop" not in controllers.errors
        controllers.translator.accept_removals(POLICY)
        await centre.relay.until(lambda relay: delta(relay, POLICY) is None)
        assert delta(centre.relay, "shop") is not None


async def test_a_binding_lists_what_is_in_force_and_where_and_follows(centre):
    for name, env in (("s1", "prod"), ("s2", "prod"), ("s3", "test")):
        await centre.inventory.apply(target(name, f"/emea/{name}", env=env), USER)
    await centre.inventory.apply(location("l1"), USER)
    both = [{"matchLabels": {"env": "prod"}}, {"matchLabels": {"env": "prod"}}]
    await centre.apply(config("a"), policy(selectors=both))
    key = result_key(POLICY)

    def listed(*destinations):
        return lambda obj: (
            [it["clusterId"] for it in obj["spec"]["destinations"]] == [*destinations]
        )

    async with centre.running():
        await centre.until_status(key, listed("s1", "s2"))
        await centre.inventory.apply(target("s3", "/emea/s3", env="prod"), USER)
        await centre.until_status(key, listed("s1", "s2", "s3"))
        changed = await centre.wds.apply(config("a", value="2"), USER)
        version = changed["metadata"]["resourceVersion"]
        found = await centre.until_status(
            key,
            lambda obj: obj["spec"]["workload"]["namespaceScope"][0]["resourceVersion"] == version,
        )
        [owner] = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("BindingPolicy", True)
        assert owner["blockOwnerDeletion"] is False
        await centre.wds.delete(key)
        await centre.until_status(key, listed("s1", "s2", "s3"))
        await centre.wds.delete(placement_key(POLICY))
        await until_gone(centre.wds, key)


def test_over_the_limits_a_binding_counts(centre):
    def entry(name, flags=0):
        return ManifestEntry(
            "", "configmaps", "n", name, "0" * 64, 1, "space", revision=7, flags=flags
        )

    def made(objects, targets):
        entries = {it.key: it for it in map(entry, objects)}
        return binding_of(policy(), entries, {}, iter(targets))

    whole = made(map(str, range(OBJECTS_MAX)), map(str, range(DESTINATIONS_MAX)))
    assert len(whole["spec"]["destinations"]) == DESTINATIONS_MAX
    assert len(whole["spec"]["workload"]["namespaceScope"]) == OBJECTS_MAX
    assert NOTE not in whole["metadata"].get("annotations", {})
    over = made(map(str, range(OBJECTS_MAX + 1)), map(str, range(DESTINATIONS_MAX + 1)))
    assert over["spec"] == {"workload": {}, "destinations": []}
    note = over["metadata"]["annotations"][NOTE]
    assert f"more than {DESTINATIONS_MAX} destinations" in note
    assert "`leafcast status bp/shop --destinations`" in note
    assert f"more than {OBJECTS_MAX} objects" in note
    group = ObjectGroup(ResourceKinds().of(over), [over])
    assert next(islice(table_lines([group], TableStyle(), 0), 1, None)).split()[:3] == [
        "shop",
        f">{OBJECTS_MAX}",
        f">{DESTINATIONS_MAX}",
    ]
    flags = CREATE_ONLY | WANT_SINGLETON
    one = {it.key: it for it in [entry("a", flags)]}
    [bound] = binding_of(policy(), one, {}, [])["spec"]["workload"]["namespaceScope"]
    assert bound["createOnly"] is bound["wantSingletonReportedState"] is True


async def test_who_differs_in_create_only_is_named_on_both_until_they_agree(centre):
    await centre.apply(config("a"), config("b"), deployment("d"))
    await centre.apply(
        placement(), policy(clause={"resources": ["configmaps"], "createOnly": True})
    )
    async with centre.running():
        for key, other in ((placement_key("shop"), POLICY), (placement_key(POLICY), "shop")):
            words = (title(other), "shop/configmaps/a, shop/configmaps/b", "kept in step")
            await centre.until_status(key, says("PoliciesDiffer", *words))
        await centre.apply(policy(clause={"resources": ["deployments"], "createOnly": True}))
        await centre.until_status(
            placement_key("shop"), says("PoliciesDiffer", "shop/deployments.apps/d")
        )
        await centre.wds.delete(placement_key(POLICY))
        await centre.until_status(
            placement_key("shop"), lambda obj: condition(obj, "PoliciesDiffer") is None
        )


def test_who_wants_one_status_has_it_merged_while_another_wants_all_of_them():
    """Whichever of object, labels and placements comes last."""
    one = placement("one", {**SHOP_OBJECTS, "wantSingletonReportedState": True})
    merged = {"objectSelectors": [{"matchLabels": {"all": "1"}}], "wantMultiWECReportedState": True}
    every, web = policy("every", merged), deployment("web")
    labelled = {**web, "metadata": {**web["metadata"], "labels": {"all": "1"}}}
    one_key, every_key = placement_key("one"), placement_key("bindingpolicy/every")
    web_key = ObjectKey("apps", "deployments", "shop", "web")
    workloads = Workloads()

    def merges(touched):
        return "one" in touched, [it is AGGREGATE for it in workloads.collecting("one")[web_key]]

    workloads.put(one_key, one)
    workloads.put(web_key, web)
    workloads.put(every_key, every)
    assert not workloads.collecting("one")
    assert merges(workloads.put(web_key, labelled)) == (True, [True])
    assert "one" in workloads.deleted(every_key)
    assert not workloads.collecting("one")
    assert merges(workloads.put(every_key, every)) == (True, [True])
    assert "one" in workloads.put(web_key, web)
    assert not workloads.collecting("one")


async def test_within_a_policy_create_only_holds_by_one_clause(centre):
    made = policy()
    made["spec"]["downsync"] = [SHOP_OBJECTS, {"objectNames": ["a"], "createOnly": True}]
    await centre.apply(config("a"), config("b"), made)
    async with centre.running():
        await centre.relay.until(holds(POLICY, "a", "b"))
    entries = await centre.relay.entries(delta(centre.relay, POLICY))
    assert {name: it.flags for name, it in entries.items()} == {"a": CREATE_ONLY, "b": 0}


NOT_INNER = {"matchExpressions": [{"key": "inner", "operator": "DoesNotExist"}]}


@pytest.mark.parametrize(
    ("clause", "wide"),
    [
        ({"objectSelectors": [NOT_INNER]}, True),
        ({"namespaceSelectors": [NOT_INNER]}, True),
        ({"namespaces": ["shop"]}, False),
        ({"resources": ["configmaps"], "objectSelectors": [NOT_INNER]}, False),
        ({"objectNames": ["c0", "c1"]}, False),
        ({"objectSelectors": [{"matchLabels": {"app": "shop"}}]}, False),
    ],
)
async def test_who_selects_almost_all_says_so_where_that_can_be_told(centre, clause, wide):
    few = {"apiGroup": "", "resources": ["configmaps"], "objectNames": ["c0"]}
    others = policy("other", clause=few)
    labelled = [config(f"c{at}") for at in range(9)]
    for obj in labelled:
        obj["metadata"]["labels"] = {"app": "shop"}
    await centre.apply(*labelled, others, policy(clause=clause))
    async with centre.running():
        sought = "WideSelection" if wide else "Ready"
        found = await centre.until_status(placement_key(POLICY), lambda obj: condition(obj, sought))
    said = condition(found, "WideSelection")
    assert bool(said) == wide
    if said:
        assert "of the 10 objects" in said["message"]


async def test_a_first_application_that_is_all_there_is_is_no_alarm(centre):
    await centre.apply(
        *(config(f"c{at}") for at in range(9)), policy(clause={"objectSelectors": [NOT_INNER]})
    )
    async with centre.running():
        found = await centre.until_status(
            placement_key(POLICY), lambda obj: condition(obj, "Ready")
        )
    assert condition(found, "WideSelection") is None


async def test_v1alpha1_selects_by_namespaces_and_cluster_scoped_objects_by_name_or_label(centre):
    def role(name, **labels):
        metadata = {"name": name, "labels": labels}
        version = "rbac.authorization.k8s.io/v1"
        return {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": []}

    older = ours(
        "EdgePlacement",
        "shop",
        {
            "locationSelectors": [{}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
            "nonNamespacedObjects": [
                {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "resources": ["clusterroles"],
                    "resourceNames": ["named"],
                    "labelSelectors": [{"matchLabels": {"a": "b"}}],
                },
                {"apiGroup": "", "resources": [], "resourceNames": ["*"]},
            ],
        },
    )
    older["apiVersion"] = "edge.kubestellar.io/v1alpha1"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    namespace["metadata"]["labels"] = {"kubernetes.io/metadata.name": "shop"}
    await centre.wds.apply(namespace, USER)
    await centre.apply(
        config("a"), config("b", "other"), role("named"), role("x", a="b"), role("y")
    )
    await centre.apply(older)
    async with centre.running():
        await centre.relay.until(holds("shop", "a", "named", "x"))


async def test_a_custom_transform_is_applied_before_hashing_and_a_changed_one_goes_out(centre):
    await centre.apply(
        deployment("d"), config("a"), custom_transform("t", "$.spec.replicas"), policy()
    )
    async with centre.running():
        await centre.relay.until(holds(POLICY, "a", "d"))
        assert (await sent(centre.relay, POLICY, "d"))["spec"] == {}
        deltas = len(centre.relay.deltas())
        await centre.apply(custom_transform("t", "$.spec.none"))

        async def whole(relay):
            return (await sent(relay, POLICY, "d"))["spec"] == {"replicas": 1}

        await centre.relay.until(whole)
        assert len(centre.relay.deltas()) == deltas + 1
        await centre.until_status(transform_key("t"), lambda obj: obj.get("status"))
    async with centre.running() as controllers:
        await controllers.caught_up()
        assert len(centre.relay.deltas()) == deltas + 1


async def test_a_transform_that_is_wrong_holds_its_kind_as_it_went_out_also_after_a_restart(centre):
    await centre.apply(
        deployment("d"), config("a"), custom_transform("t", "$.spec.replicas"), policy()
    )
    async with centre.running():
        await centre.relay.until(holds(POLICY, "a", "d"))
    await centre.apply(custom_transform("t", "$.spec["), config("a", value="2"))

    async def new_config(relay):
        return (await sent(relay, POLICY, "a"))["data"] == {"key": "2"}

    async with centre.running() as controllers:
        await centre.relay.until(new_config)
        words = ("deployments.apps/shop/d", "customtransform/t: spec.remove[0]", "stays as it went")
        await centre.until_status(placement_key(POLICY), says("ObjectsRefused", *words))
        found = await centre.until_status(
            transform_key("t"), lambda obj: obj.get("status", {}).get("errors")
        )
        assert 'spec.remove[0]: "$.spec[" is not a JSONPath' in found["status"]["errors"][0]
        assert "customtransform/t" in controllers.errors
        assert (await sent(centre.relay, POLICY, "d"))["spec"] == {}
        await centre.wds.delete(transform_key("t"))

        async def whole(relay):
            return (await sent(relay, POLICY, "d"))["spec"] == {"replicas": 1}

        await centre.relay.until(whole)


async def test_transforms_of_one_kind_all_apply_and_name_each_other(centre):
    both = (custom_transform("t1", "$.spec.replicas"), custom_transform("t2", "$.metadata.labels"))
    await centre.apply(
        deployment("d"), config("a"), *both, custom_transform("t3", resource="tills")
    )
    await centre.apply(policy())
    async with centre.running():
        for one, other in (("t1", "t2"), ("t2", "t1")):
            said = f"customtransform/{other}: there for deployments.apps, too; all of them apply"
            await centre.until_status(transform_key(one), warns(said))
        found = await centre.until_status(transform_key("t3"), lambda obj: obj.get("status"))
        assert 'resource type "tills.apps"' in found["status"]["warnings"][0]
        await centre.wds.delete(transform_key("t2"))
        await centre.until_status(transform_key("t1"), lambda obj: "warnings" not in obj["status"])


@pytest.mark.parametrize(
    ("path", "lost"),
    [
        ("$.metadata.name", "metadata.name"),
        ("$['metadata']['namespace']", "metadata.namespace"),
        ("$.kind", "kind"),
        ("$.metadata", "metadata.name"),
        ("$..*", "apiVersion"),
        ("$.metadata[?@ != 'd']", "metadata.name"),
    ],
)
def test_what_takes_off_what_any_object_needs_is_refused_at_once(path, lost):
    with pytest.raises(InvalidObject) as refused:
        parse_wish(custom_transform("t", "$.spec.replicas", path))
    assert str(refused.value) == (
        f'CustomTransform "t": spec.remove[1]: "{path}" takes off {lost}, without which it is no '
        "object; name a field elsewhere"
    )


@pytest.mark.parametrize("path", ["$.metadata[?@ == '']", "$.metadata.labels.name", "$.spec..name"])
def test_what_takes_off_nothing_that_any_object_needs_is_a_transform(path):
    parse_wish(custom_transform("t", path))


@pytest.mark.parametrize("path", ["$.metadata[?@ == 'd']", "$.kind", "$[?@.name]"])
async def test_what_a_transform_leaves_no_object_of_is_refused_and_no_other(centre, path):
    await centre.apply(config("a"), deployment("d"), custom_transform("t", path), policy())
    async with centre.running():
        await centre.relay.until(holds(POLICY, "a"))
        said = says("ObjectsRefused", "customtransform/t: spec.remove", "takes off", "shop/d")
        await centre.until_status(placement_key(POLICY), said)
    assert await centre.wds.get(config_key("a"))


def test_a_kind_of_placement_goes_by_its_own_keys():
    assert placement_key(POLICY) == ObjectKey(
        "control.kubestellar.io", "bindingpolicies", "", "shop"
    )
    assert result_key(POLICY).resource == "bindings"
    assert BINDING_POLICIES.named("shop") == POLICY
    assert (title(POLICY), title("shop")) == (POLICY, "edgeplacement/shop")


def test_a_policy_whose_name_is_no_label_is_refused():
    parse_kind(policy("x" * 63))
    with pytest.raises(InvalidObject) as refused:
        parse_kind(policy("x" * 64))
    said = str(refused.value)
    assert "metadata.name: 64 characters" in said
    assert "shorten it to at most 63" in said
