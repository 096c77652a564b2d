"""What `leafcast install` prints an API server takes, and explains; and says no where we say no."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from subprocess import run
from types import SimpleNamespace

import pytest

from controllers.workloads import status_summarizer
from leafcast.doctor.space_checks import look_at_spaces
from leafcast.space_settings import CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ObjectResult, Summary
from schemas.values import codec
from tests.awaiting import eventually, until
from tests.kube.hub_centre import HubCentre
from tests.unit.centre_world import condition, holds, placement_key

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

CENTRE = "system:serviceaccount:leafcast-system:leafcast-centre"
EDGE = "system:serviceaccount:leafcast-system:leafcast-edge"
PLACEMENT = {
    "apiVersion": "edge.kubestellar.io/v2alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "shop"},
    "spec": {
        "locationSelectors": [{"matchLabels": {"tier": "store"}}],
        "downsync": [{"apiGroup": "", "resources": ["configmaps"], "namespaces": ["shop"]}],
    },
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "system:reader", "labels": {"app": "shop"}},
    "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
}


def leafcast(*words):
    done = run([sys.executable, "-m", "leafcast", *words], capture_output=True, text=True)  # noqa: PLW1510
    return done.returncode, done.stdout, done.stderr


def apply(server, obj):
    """What kubectl says of it: its code, and its words."""
    code, out, err = server.kubectl("apply", "-f", "-", check=False, stdin=json.dumps(obj))
    return code, out + err


@pytest.fixture(scope="module")
def hub(own_server):
    """An API server with all that a centre needs, and the account of an edge in one namespace."""
    code, manifests, said = leafcast("install", "--kubeconfig", str(own_server.kubeconfig))
    assert code == 0, said
    _, more, _ = leafcast("install", "--role", "edge", "--namespace", "shop")
    own_server.kubectl("apply", "-f", "-", stdin=manifests)
    own_server.kubectl("apply", "-f", "-", stdin=more)
    own_server.await_definitions()
    # What was granted last holds a moment later, and with it all before.
    last = "update leases.coordination.k8s.io/leafcast-edge -n leafcast-system"
    asked = ("auth", "can-i", *last.split(), "--as", EDGE)
    until(lambda: own_server.kubectl(*asked, check=False)[1].split() == ["yes"])
    return own_server


def test_a_second_apply_of_all_that_is_installed_changes_nothing(hub):
    _, manifests, _ = leafcast("install")
    lines = hub.kubectl("apply", "-f", "-", stdin=manifests).splitlines()
    assert len(lines) > 10
    assert all(line.endswith(" unchanged") for line in lines), lines


def test_every_field_is_explained_and_kinds_have_short_names(hub):
    said = hub.kubectl("explain", "edgeplacement.spec.downsync", "--recursive")
    assert "labelSelectors" in said
    assert "DESCRIPTION:" in hub.kubectl("explain", "edgeplacement.spec.downsync.namespaces")
    for short in ("epl", "sps", "bp", "bdg", "ct", "loc", "st", "dn", "leafcast"):
        hub.kubectl("get", short)
    ours, others = set(), set()
    for line in hub.kubectl("api-resources", "--no-headers").splitlines():
        # Names, short names, group and version, whether namespaced, kind.
        words = line.split()
        is_ours = "kubestellar.io/" in line or "leafcast.io/" in line
        (ours if is_ours else others).update(words[1].split(",") if len(words) == 5 else ())
    assert {"stc", "epl"} <= ours
    assert "sc" in others
    assert not ours & others


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ({"resources": ["*"]}, "no field tells objects apart"),
        ({"labelSelectors": [{}]}, "no field tells objects apart"),
        ({"resources": ["Deployments"]}, "spec.downsync[0].resources[0]"),
        ({"apiGroup": "Apps"}, "spec.downsync[0].apiGroup"),
        ({"labelSelector": [{"matchLabels": {"a": "b"}}]}, "unknown field"),
        (
            {"labelSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
            "In and NotIn need values",
        ),
    ],
)
def test_the_server_refuses_what_the_program_refuses(hub, clause, said):
    code, words = apply(hub, {**PLACEMENT, "spec": {"downsync": [clause]}})
    assert code
    assert said in words


def test_kubectl_waits_for_conditions_and_sees_counts(hub):
    assert apply(hub, PLACEMENT)[0] == 0
    condition = {"type": "Synced", "status": "True", "reason": "Synced"}
    status = {"destinations": 2, "synced": 2, "selectedObjects": 3, "conditions": [condition]}
    patch = json.dumps({"status": {**status, "observedGeneration": 1}})
    words = ("patch", "epl", "shop", "--subresource=status", "--type=merge", "-p", patch)
    hub.kubectl(*words)
    hub.kubectl("wait", "edgeplacement/shop", "--for=condition=Synced", "--timeout=10s")
    head, row = hub.kubectl("get", "epl").splitlines()
    columns = "NAME OBJECTS DESTINATIONS SYNCED HEALTHY READY STATUS HOLD AGE"
    assert head.split() == columns.split()
    assert row.split()[:4] == ["shop", "3", "2", "2"]
    changed = {**PLACEMENT, "spec": {"locationSelectors": []}}
    assert apply(hub, changed)[0] == 0
    # What is known is of the spec before.
    code, _, _ = hub.kubectl(
        "wait", "epl/shop", "--for=condition=Synced", "--timeout=1s", check=False
    )
    assert code


def test_a_denatured_role_is_an_object_and_gives_nobody_a_right(hub):
    denatured = {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Denatured",
        "metadata": {"name": "reader"},
        "spec": {"template": ROLE},
    }
    assert apply(hub, denatured)[0] == 0
    assert "system:reader" in hub.kubectl("get", "dn")
    code, _, _ = hub.kubectl("get", "clusterrole", "system:reader", check=False)
    assert code
    inner = {**denatured, "spec": {"template": denatured}}
    assert "stay at the centre" in apply(hub, inner)[1]
    for metadata in ({}, {"labels": {"a": "b"}}):
        nameless = {**denatured, "spec": {"template": {**ROLE, "metadata": metadata}}}
        assert "metadata.name is missing" in apply(hub, nameless)[1]


@pytest.mark.parametrize(
    ("who", "words", "may"),
    [
        (CENTRE, "list secrets", True),
        (CENTRE, "patch edgeplacements.edge.kubestellar.io --subresource=status", True),
        (CENTRE, "patch deployments.apps --subresource=status", True),
        (CENTRE, "create synctargets.edge.kubestellar.io", True),
        (CENTRE, "delete edgeplacements.edge.kubestellar.io", False),
        (CENTRE, "create deployments.apps", False),
        (CENTRE, "patch secrets", False),
        (CENTRE, "delete namespaces", False),
        (EDGE, "create deployments.apps -n shop", True),
        (EDGE, "create deployments.apps -n default", False),
        (EDGE, "list configmaps -n default", False),
        (EDGE, "list secrets -n kube-system", False),
        (EDGE, "list secrets -n shop", True),
        (EDGE, "get namespaces/kube-system", True),
        (EDGE, "list namespaces", False),
        (EDGE, "delete namespaces/default", False),
        (EDGE, "update leases.coordination.k8s.io/leafcast-edge -n leafcast-system", True),
        (EDGE, "update leases.coordination.k8s.io/other -n leafcast-system", False),
        (CENTRE, "update leases.coordination.k8s.io/leafcast-workloads -n leafcast-system", True),
        (CENTRE, "update leases.coordination.k8s.io/leafcast-workloads -n kube-system", False),
    ],
)
def test_accounts_may_what_they_need_and_no_more(hub, who, words, may):
    asked = ("auth", "can-i", *words.split(), "--as", who)
    # What was granted a moment ago holds a moment later.
    until(lambda: hub.kubectl(*asked, check=False)[1].split() == ["yes" if may else "no"])


def rights(server, who, namespace):
    """What kubectl lists as granted there beside what everybody may: resources, names, verbs."""

    def listed(account):
        asked = ("auth", "can-i", "--list", "--no-headers", "--as", account, "-n", namespace)
        return {" ".join(line.split()) for line in server.kubectl(*asked).splitlines()}

    everybody = listed("system:serviceaccount:default:nobody")
    # Paths that are no resources have none in front.
    return sorted(line for line in listed(who) - everybody if not line.startswith("["))


SEES = [
    "namespaces [] [kube-system] [get]",
    "namespaces [] [shop] [get list watch]",
]
CLAIMS = [
    "leases.coordination.k8s.io [] [leafcast-edge] [get update delete]",
    "leases.coordination.k8s.io [] [] [create]",
]


def test_an_edge_of_one_namespace_is_listed_with_that_and_with_what_it_has_to_see(hub):
    until(lambda: rights(hub, EDGE, "shop") == sorted(["*.* [] [] [*]", *SEES]))
    until(lambda: rights(hub, EDGE, "leafcast-system") == sorted([*CLAIMS, *SEES]))
    assert rights(hub, EDGE, "default") == sorted(SEES)
    assert rights(hub, EDGE, "kube-system") == sorted(SEES)


def test_a_centre_writes_leases_and_its_own_kinds_alone_and_a_whole_edge_everything(hub):
    listed = rights(hub, CENTRE, "leafcast-system")
    writing = [line for line in listed if not line.endswith(("[get list watch]", "[patch]"))]
    ours = ("kubestellar.io", ".leafcast.io")
    assert [line for line in writing if not any(group in line for group in ours)] == [
        "leases.coordination.k8s.io [] [] [create]",
        "leases.coordination.k8s.io [] [leafcast-inventory] [get update]",
        "leases.coordination.k8s.io [] [leafcast-workloads] [get update]",
        "namespaces [] [kube-system] [get]",
    ]
    assert not [line for line in rights(hub, CENTRE, "default") if line.startswith("leases")]
    whole = leafcast("install", "--role", "edge")[1]
    other = whole.replace("name: leafcast-edge", "name: leafcast-whole")
    hub.kubectl("apply", "-f", "-", stdin=other)
    who = EDGE.replace("leafcast-edge", "leafcast-whole")
    until(lambda: rights(hub, who, "default") == ["*.* [] [] [*]"], "the rights are not given")


def lease(renewed):
    metadata = {"name": "kube-controller-manager", "namespace": "kube-system"}
    spec = {"holderIdentity": "a", "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    version = "coordination.k8s.io/v1"
    return {"apiVersion": version, "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("sign", ["lease", "node"])
def test_a_server_on_which_objects_come_to_life_is_refused_unless_told_otherwise(
    clean_server, sign
):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}}
    assert apply(clean_server, lease(datetime.now(UTC)) if sign == "lease" else node)[0] == 0
    words = ("install", "--kubeconfig", str(clean_server.kubeconfig))
    code, out, said = leafcast(*words)
    assert (code, out) == (1, "")
    assert ("worker-1" if sign == "node" else "kube-controller-manager") in said
    assert "--allow-live-cluster" in said
    for more in (["--allow-live-cluster"], ["--role", "inventory"], ["--role", "edge"]):
        assert leafcast(*words, *more)[0] == 0


def test_who_sees_a_namespace_sees_our_kinds_there_and_placements_if_that_is_given(new_server):
    server = new_server(workloads=False)
    server.kubectl("apply", "-f", "-", stdin=leafcast("install")[1])
    for role in ("view", "edit", "admin"):
        binding = (f"--clusterrole={role}", f"--user={role}", "-n", "default")
        server.kubectl("create", "rolebinding", role, *binding)

    def may(who, words):
        asked = ("auth", "can-i", *words.split(), "--as", who)
        return server.kubectl(*asked, check=False)[1].split() == ["yes"]

    for who in ("view", "edit", "admin"):
        for kind in ("customizers.edge", "combinedstatuses.control"):
            until(lambda: may(who, f"list {kind}.kubestellar.io -n default"))  # noqa: B023
            assert not may(who, f"list {kind}.kubestellar.io -n kube-system")
    for who in ("edit", "admin"):
        until(lambda: may(who, "create customizers.edge.kubestellar.io -n default"))  # noqa: B023
        assert not may(who, "create combinedstatuses.control.kubestellar.io -n default")
    assert not may("view", "create customizers.edge.kubestellar.io -n default")
    seen = [f"get {kind}" for kind in ("epl", "bp", "rollouts.leafcast.io", "loc", "stc")]
    assert not any(may("view", words) for words in seen)
    role = "leafcast-placements-view"
    server.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", "--user=view")
    until(lambda: all(may("view", words) for words in seen))
    assert not may("view", "patch epl")


def test_a_controller_manager_that_starts_no_pods_is_no_sign_of_life(clean_server):
    apply(clean_server, lease(datetime.now(UTC)))
    clean_server.kubectl("create", "serviceaccount", "namespace-controller", "-n", "kube-system")
    words = ("install", "--kubeconfig", str(clean_server.kubeconfig))
    assert leafcast(*words)[0] == 0
    clean_server.kubectl("create", "serviceaccount", "job-controller", "-n", "kube-system")
    assert leafcast(*words)[0] == 1


def test_a_controller_manager_that_ended_is_no_sign_of_life(clean_server):
    apply(clean_server, lease(datetime.now(UTC) - timedelta(hours=1)))
    assert leafcast("install", "--kubeconfig", str(clean_server.kubeconfig))[0] == 0


async def test_a_centre_that_may_read_one_kind_is_told_what_would_come_to_life(
    clean_server, tmp_path
):
    words = ("install", "--role", "workloads", "--kind", "deployments.apps")
    clean_server.kubectl("apply", "-f", "-", stdin=leafcast(*words)[1])
    clean_server.await_definitions()
    asked = ("create", "token", "leafcast-centre", "-n", "leafcast-system")
    config = json.loads(
        clean_server.kubectl("config", "view", "--flatten", "--minify", "-o", "json")
    )
    config["users"][0]["user"] = {"token": clean_server.kubectl(*asked).strip()}
    (tmp_path / "centre").write_text(json.dumps(config))
    spaces = CentreSpaces((SpaceSetting("kubeconfig", str(tmp_path / "centre")),))

    async def trouble():
        (found,) = await look_at_spaces(spaces, SystemClock(), SystemDice())
        return f"{found.trouble}: {found.cause}"

    async def is_well():
        return await trouble() == ": "

    await eventually(is_well, "its rights do not hold")
    apply(clean_server, lease(datetime.now(UTC)))
    assert "kube-controller-manager runs there" in await trouble()
    clean_server.kubectl("create", "serviceaccount", "namespace-controller", "-n", "kube-system")
    assert await trouble() == ": "
    apply(clean_server, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}})
    assert "worker-1" in await trouble()


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
GADGET = {
    "apiVersion": "example.com/v1",
    "kind": "Gadget",
    "metadata": {"name": "a", "namespace": "returned"},
    "spec": {"size": 1},
}


async def test_a_status_that_the_centre_may_not_write_is_said_with_the_right_to_grant(
    hub, tmp_path, monkeypatch
):
    monkeypatch.setattr(status_summarizer, "REFUSED_SECONDS", 0.5)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "returned"}}
    for obj in (namespace, GADGETS):
        assert apply(hub, obj)[0] == 0
    hub.await_definitions()
    returning = {"namespaces": ["returned"], "wantSingletonReportedState": True}
    spec = {"locationSelectors": [{}], "downsync": [returning]}
    for obj in (GADGET, {**PLACEMENT, "metadata": {"name": "returned"}, "spec": spec}):
        assert apply(hub, obj)[0] == 0
    asked = ("create", "token", "leafcast-centre", "-n", "leafcast-system")
    config = json.loads(hub.kubectl("config", "view", "--flatten", "--minify", "-o", "json"))
    config["users"][0]["user"] = {"token": hub.kubectl(*asked).strip()}
    (tmp_path / "centre").write_text(json.dumps(config))
    centre = HubCentre(tmp_path, SimpleNamespace(kubeconfig=tmp_path / "centre"))
    key, named = ObjectKey("example.com", "gadgets", "returned", "a"), placement_key("returned")
    both = ("--resource=gadgets.example.com", "--resource=gadgets.example.com/status")
    bound = ("--clusterrole=gadgets", "--serviceaccount=leafcast-system:leafcast-centre")
    async with centre.running():
        await centre.relay.until(holds("a", "gadgets.example.com", of="returned"))
        returned = ObjectResult(key, 1, "d1", codec.canonical({"phase": "Ready"}))
        delta = centre.relay.delta("returned").source.key
        await centre.relay.report(delta, Summary({"synced": 1}, {"healthy": 1}), (returned,))
        told = await centre.until_status(named, lambda it: condition(it, "SingletonReported"))
        assert condition(told, "SingletonReported")["reason"] == "StatusRefused"
        [error] = told["status"]["errors"]
        assert "the centre may not patch the status of gadgets.example.com" in error
        assert f"let {CENTRE} patch gadgets and gadgets/status of example.com" in error
        for words in (
            ("clusterrole", "gadgets", "--verb=patch", *both),
            ("clusterrolebinding", "gadgets", *bound),
        ):
            await asyncio.to_thread(hub.kubectl, "create", *words)
        await centre.until_status(key, lambda it: it.get("status") == {"phase": "Ready"})
        await centre.until_status(named, lambda it: not condition(it, "SingletonReported"))
        await asyncio.to_thread(hub.kubectl, "delete", "epl", "returned", "--timeout=60s")
    hub.kubectl("delete", "clusterrole,clusterrolebinding", "gadgets")
