"""What a placement selects: the rules of EdgePlacement, clause by clause."""

import pytest

from controllers.core.workloads.selection import rules_of
from controllers.core.workloads.what import WhatResolver
from schemas.api.parsing import parse_kind
from schemas.content.manifest import CREATE_ONLY, WANT_MULTI, WANT_SINGLETON
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey

CRONTAB_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {"group": "stable.example.com", "names": {"plural": "crontabs", "kind": "CronTab"}},
}

API_SERVICES = "apiregistration.k8s.io/v1"
AUTOMANAGED = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
BOOTSTRAP = {"kubernetes.io/bootstrapping": "rbac-defaults"}


def obj(kind, name, namespace="", group_version="v1", labels=None, **fields):
    metadata = {"name": name, "labels": labels or {}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": group_version, "kind": kind, "metadata": metadata, **fields}


def rules(*clauses, **spec):
    placement = {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "p"},
        "spec": {"downsync": list(clauses), **spec},
    }
    return rules_of(parse_kind(placement).spec)


def put(resolver, *objects):
    changed = frozenset()
    for item in objects:
        changed |= resolver.put(BUILT_IN_KINDS.key_of(item), item)
    return changed


def selected(resolver, name="p"):
    return sorted(str(key) for key in resolver.selection(name))


def resolve(objects, *clauses, **spec):
    resolver = WhatResolver()
    put(resolver, *objects)
    resolver.put_placement("p", rules(*clauses, **spec))
    return selected(resolver)


def flow_schema(name, updated):
    made = obj("FlowSchema", name, group_version="flowcontrol.apiserver.k8s.io/v1")
    made["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": updated}
    return made


SHOP = obj("Namespace", "shop", labels={"app": "shop"})
WEB = obj("Deployment", "web", "shop", "apps/v1", labels={"tier": "front"})
DATABASE = obj("Deployment", "database", "shop", "apps/v1")
SETTINGS = obj("ConfigMap", "settings", "shop")
OTHER = obj("ConfigMap", "settings", "other")
ROLE = obj("ClusterRole", "reader", group_version="rbac.authorization.k8s.io/v1")
ALL = (SHOP, WEB, DATABASE, SETTINGS, OTHER, ROLE)


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ({"apiGroup": "apps"}, ["deployments.apps/shop/database", "deployments.apps/shop/web"]),
        ({"apiGroup": "", "resources": ["namespaces"]}, ["namespaces/shop"]),
        ({"resources": ["deployments"], "objectNames": ["web"]}, ["deployments.apps/shop/web"]),
        ({"objectNames": ["settings"]}, ["configmaps/other/settings", "configmaps/shop/settings"]),
        ({"resources": ["configmaps"], "namespaces": ["shop"]}, ["configmaps/shop/settings"]),
        (
            {"resources": ["clusterroles", "configmaps"], "namespaces": ["*"]},
            [
                "clusterroles.rbac.authorization.k8s.io/reader",
                "configmaps/other/settings",
                "configmaps/shop/settings",
            ],
        ),
        ({"resources": ["clusterroles"], "namespaces": ["shop"]}, []),
        (
            {"labelSelectors": [{"matchLabels": {"tier": "front"}}]},
            ["deployments.apps/shop/web"],
        ),
        (
            {"namespaceSelectors": [{"matchLabels": {"app": "shop"}}], "resources": ["configmaps"]},
            ["configmaps/shop/settings"],
        ),
        (
            {"namespaceSelectors": [{"matchLabels": {"app": "shop"}}], "apiGroup": ""},
            ["configmaps/shop/settings"],
        ),
        (
            {"resources": ["clusterroles"], "namespaceSelectors": [{}]},
            ["clusterroles.rbac.authorization.k8s.io/reader"],
        ),
    ],
)
def test_fields_of_a_clause_are_anded(clause, expected):
    assert resolve(ALL, clause) == expected


def test_clauses_are_ored():
    found = resolve(ALL, {"objectNames": ["web"]}, {"objectNames": ["reader"]})
    assert found == ["clusterroles.rbac.authorization.k8s.io/reader", "deployments.apps/shop/web"]


def test_an_unknown_namespace_is_not_matched_until_it_is_known():
    resolver = WhatResolver()
    put(resolver, SETTINGS)
    selector = {"matchLabels": {"app": "shop"}}
    resolver.put_placement("p", rules({"namespaceSelectors": [selector]}))
    assert selected(resolver) == []
    assert put(resolver, SHOP) == {"p"}
    assert selected(resolver) == ["configmaps/shop/settings"]
    assert put(resolver, obj("Namespace", "shop")) == {"p"}
    assert selected(resolver) == []


def test_flags_of_all_matching_clauses_are_ored():
    resolver = WhatResolver()
    put(resolver, WEB, SETTINGS)
    clauses = (
        {"namespaces": ["shop"], "createOnly": True},
        {"objectNames": ["web"], "wantMultiWECReportedState": True},
    )
    resolver.put_placement("p", rules(*clauses, wantSingletonReportedState=True))
    flags = {key.name: flags for key, flags in resolver.selection("p").items()}
    assert flags == {
        "web": CREATE_ONLY | WANT_MULTI | WANT_SINGLETON,
        "settings": CREATE_ONLY | WANT_SINGLETON,
    }


@pytest.mark.parametrize(
    "kept",
    [
        obj("Secret", "token", "shop", type="kubernetes.io/service-account-token"),
        obj("Secret", "token", "shop", type="bootstrap.kubernetes.io/token"),
        obj("ConfigMap", "kube-root-ca.crt", "shop"),
        obj("ConfigMap", "extension-apiserver-authentication", "kube-system"),
        obj("ControllerRevision", "web-1", "shop", "apps/v1"),
        obj("CertificateSigningRequest", "c", group_version="certificates.k8s.io/v1"),
        obj("ServiceAccount", "default", "shop"),
        obj("Event", "e", "shop"),
        obj("Event", "e", "shop", "events.k8s.io/v1"),
        obj("Node", "n"),
        obj("Endpoints", "web", "shop"),
        obj("EndpointSlice", "web", "shop", "discovery.k8s.io/v1"),
        obj("Lease", "l", "shop", "coordination.k8s.io/v1"),
        obj("APIService", "v1.", group_version=API_SERVICES, spec={"groupPriorityMinimum": 1}),
        obj("APIService", "v1.a", group_version=API_SERVICES, labels=AUTOMANAGED),
        obj("ClusterRole", "view", group_version="rbac.authorization.k8s.io/v1", labels=BOOTSTRAP),
        obj("Namespace", "leafcast-system", labels={"leafcast.io/stays": "true"}),
        obj("Service", "kubernetes", "default"),
        obj(
            "CustomResourceDefinition",
            "locations.edge.kubestellar.io",
            group_version="apiextensions.k8s.io/v1",
        ),
        flow_schema("service-accounts", "true"),
        obj("CSINode", "c", group_version="storage.k8s.io/v1"),
        obj("CSIStorageCapacity", "c", "shop", "storage.k8s.io/v1"),
        obj("EdgePlacement", "q", group_version="edge.kubestellar.io/v2alpha1"),
        obj("BindingPolicy", "q", group_version="control.kubestellar.io/v1alpha1"),
        obj("Rollout", "q", group_version="leafcast.io/v1alpha1"),
    ],
    ids=lambda item: f"{item['kind']}-{item['metadata']['name']}",
)
def test_what_belongs_to_the_centre_or_to_one_cluster_is_never_selected(kept):
    resources = ["*"]
    group = kept["apiVersion"].rpartition("/")[0]
    assert resolve([kept], {"apiGroup": group, "resources": resources}) == []


HOME = {"leafcast.io/keep-at-home": "true"}


def annotated(item, annotations):
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def test_what_says_so_stays_at_home_until_it_says_so_no_more():
    resolver = WhatResolver()
    resolver.put_placement("p", rules({"namespaces": ["shop"]}))
    put(resolver, SETTINGS, WEB)
    put(resolver, annotated(SETTINGS, HOME))
    assert selected(resolver) == ["deployments.apps/shop/web"]
    # Nothing but its metadata may be kept, which says nothing of annotations.
    resolver.thin(BUILT_IN_KINDS.key_of(SETTINGS))
    assert selected(resolver) == ["deployments.apps/shop/web"]
    put(resolver, annotated(SETTINGS, {"leafcast.io/keep-at-home": "false"}))
    assert len(selected(resolver)) == 2


def test_a_definition_that_stays_at_home_does_not_come_along():
    crd = obj("CustomResourceDefinition", "oxen.x.org", group_version="apiextensions.k8s.io/v1")
    crd["spec"] = {"group": "x.org", "names": {"plural": "oxen", "kind": "Ox"}}
    ox = ObjectKey("x.org", "oxen", "shop", "one")
    resolver = WhatResolver()
    resolver.put_placement("p", rules({"namespaces": ["shop"]}))
    resolver.put(ox, {"metadata": {"name": "one", "namespace": "shop"}})
    put(resolver, crd)
    assert len(selected(resolver)) == 2
    put(resolver, annotated(crd, HOME))
    assert [*resolver.selection("p")] == [ox]


def test_other_secrets_and_service_accounts_are_selected():
    secret = obj("Secret", "password", "shop", type="Opaque")
    account = obj("ServiceAccount", "shop", "shop")
    assert len(resolve([secret, account], {"namespaces": ["shop"]})) == 2


def test_what_only_looks_like_a_cluster_own_is_selected():
    service = {"name": "metrics", "namespace": "monitoring"}
    metrics = obj("APIService", "v1.m", group_version=API_SERVICES, spec={"service": service})
    assert resolve([metrics], {"objectNames": ["v1.m"]}) == [
        "apiservices.apiregistration.k8s.io/v1.m"
    ]
    assert resolve([obj("Service", "kubernetes", "shop")], {"namespaces": ["shop"]})
    flow = "flowcontrol.apiserver.k8s.io"
    levels = obj("PriorityLevelConfiguration", "shop", group_version=f"{flow}/v1")
    found = resolve([levels, flow_schema("service-accounts", "false")], {"apiGroup": flow})
    assert found == [
        f"flowschemas.{flow}/service-accounts",
        f"prioritylevelconfigurations.{flow}/shop",
    ]


def test_upsync_wins_over_downsync():
    upsync = [{"apiGroup": "", "resources": ["configmaps"], "namespaces": ["*"], "names": ["*"]}]
    assert resolve([SETTINGS, WEB], {"namespaces": ["shop"]}, upsync=upsync) == [
        "deployments.apps/shop/web"
    ]


def test_an_empty_list_of_an_upsync_set_matches_nothing():
    upsync = [{"apiGroup": "", "resources": ["configmaps"], "namespaces": ["shop"]}]
    assert len(resolve([SETTINGS], {"namespaces": ["shop"]}, upsync=upsync)) == 1


def test_a_terminating_object_counts_as_gone():
    resolver = WhatResolver()
    put(resolver, SETTINGS)
    resolver.put_placement("p", rules({"namespaces": ["shop"]}))
    metadata = {**SETTINGS["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert put(resolver, {**SETTINGS, "metadata": metadata}) == {"p"}
    assert selected(resolver) == []


def test_of_what_is_gone_nothing_is_remembered():
    resolver = WhatResolver()
    put(resolver, *ALL)
    resolver.put_placement("p", rules({"namespaces": ["shop"]}, {"resources": ["clusterroles"]}))
    resolver.remove_placement("p")
    for item in ALL:
        resolver.remove(BUILT_IN_KINDS.key_of(item))
    assert vars(resolver) == vars(WhatResolver())


def test_the_definition_of_a_custom_resource_is_pulled_along():
    crontab = obj("CronTab", "tick", "shop", "stable.example.com/v1")
    crd = "customresourcedefinitions.apiextensions.k8s.io/crontabs.stable.example.com"
    resolver = WhatResolver()
    resolver.put_placement("p", rules({"namespaces": ["shop"]}))
    put(resolver, crontab)
    assert put(resolver, CRONTAB_CRD) == {"p"}
    assert crd in selected(resolver)
    resolver.remove(ObjectKey("stable.example.com", "crontabs", "shop", "tick"))
    assert selected(resolver) == []


def test_a_status_in_a_namespace_leaves_other_placements_alone():
    resolver = WhatResolver()
    put(resolver, *ALL)
    resolver.put_placement("p", rules({"objectNames": ["web"]}))
    resolver.put_placement("q", rules({"namespaces": ["other"]}))
    assert put(resolver, {**WEB, "status": {"replicas": 1}}) == {"p"}


def test_rules_that_select_the_same_change_nothing():
    resolver = WhatResolver()
    put(resolver, *ALL)
    resolver.put_placement("p", rules({"objectNames": ["web"]}))
    selected = resolver.selection("p")
    resolver.put_placement("p", rules({"objectNames": ["web"], "resources": ["deployments"]}))
    assert resolver.selection("p") == selected != {}
