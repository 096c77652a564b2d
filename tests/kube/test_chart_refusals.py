"""deploy/helm/leafcast refuses what no server takes, by its name, and takes what a server takes."""

import json

import pytest

from tests.kube.build import HELM4
from tests.kube.helm_program import CHART, SYSTEM, Helm

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def among_children(**peer):
    return {"role": "relay", "networkPolicy": {"children": [peer]}}


def to_port(**port):
    return {"networkPolicy": {"egress": [{"ports": [port]}]}}


def on_machines(**rule):
    return {
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
        }
    }


def beside_pods(**term):
    return {"affinity": {"podAffinity": {PREFERRED: [term]}}}


REFUSED = [
    ({"resources": {"limits": {"memory": -1}}}, "/resources/limits/memory"),
    ({"resources": {"limits": {"memory": "1K"}}}, "/resources/limits/memory"),
    ({"resources": {"requests": {"cpu": -0.5}}}, "/resources/requests/cpu"),
    ({"resources": {"claims": [{"name": "gpu"}]}}, "claims"),
    ({"persistence": {"size": "0"}}, "/persistence/size"),
    ({"persistence": {"size": "0.0Gi"}}, "/persistence/size"),
    ({"persistence": {"storageClass": "a..b"}}, "/persistence/storageClass"),
    ({"priorityClassName": "a.-b"}, "/priorityClassName"),
    ({"podLabels": {"a..b/c": "d"}}, "/podLabels"),
    ({"podLabels": {"a" * 64: "b"}}, "/podLabels"),
    ({"podAnnotations": {"a/b/c": "d"}}, "/podAnnotations"),
    (to_port(port=70_000), "/networkPolicy/egress/0/ports/0/port"),
    (to_port(port=0), "/networkPolicy/egress/0/ports/0/port"),
    (to_port(port="80"), "/networkPolicy/egress/0/ports/0/port"),
    (to_port(endPort=80), "port"),
    (to_port(port="https", endPort=80), "/networkPolicy/egress/0/ports/0/port"),
    (among_children(ipBlock={"cidr": "10.0.0.0/99"}), "cidr"),
    (among_children(ipBlock={"cidr": "10.0.0/8"}), "cidr"),
    (among_children(ipBlock={"cidr": "256.0.0.0/8"}), "cidr"),
    (among_children(ipBlock={"cidr": "fd00::/129"}), "cidr"),
    (among_children(ipBlock={"cidr": "1::2::3/64"}), "cidr"),
    (among_children(ipBlock={"cidr": "1:2:3:4:5:6:7:8:9/64"}), "cidr"),
    (among_children(ipBlock={"cidr": "::/0"}, podSelector={}), "/networkPolicy/children/0"),
    (
        among_children(podSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "values",
    ),
    (
        among_children(
            podSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
        ),
        "values",
    ),
    ({"tolerations": [{}]}, "/tolerations/0"),
    ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "/tolerations/0/value"),
    ({"tolerations": [{"key": "a", "tolerationSeconds": 3}]}, "effect"),
    ({"tolerations": [{"key": "a b", "operator": "Exists"}]}, "/tolerations/0/key"),
    ({"affinity": {"nodeAffinity": {REQUIRED: []}}}, REQUIRED),
    ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, "nodeSelectorTerms"),
    (on_machines(key="zone", operator="Is", values=["a"]), "operator"),
    (on_machines(key="zone", operator="In", values=[]), "values"),
    (on_machines(key="cores", operator="Gt", values=[]), "values"),
    (on_machines(operator="Exists"), "key"),
    (beside_pods(weight=101, podAffinityTerm={"topologyKey": "zone"}), "weight"),
    (beside_pods(weight=1, podAffinityTerm={}), "topologyKey"),
    (beside_pods(podAffinityTerm={"topologyKey": "zone"}), "weight"),
    ({"role": "relay", "listen": {"port": None}}, "port"),
]
"""Whatever is under no role is an edge's."""
UNFOUND = [
    ({"join": {"key": ".."}}, "/join/key"),
    ({"join": {"secret": "a..b"}}, "/join/secret"),
    ({"role": "centre", "hub": {"key": "..config"}}, "/hub/key"),
    (on_machines(key="cores", operator="Gt", values=["a"]), "values"),
]
"""A server takes them, and a Pod waits for ever for what cannot be."""
TAKEN = [
    {"join": {"secret": "my.join", "key": ".token"}, "image": {"pullSecrets": ["reg.cred"]}},
    {"persistence": {"size": "0.5Gi"}},
    {"image": {"repository": "localhost:5000/a_b/c--d"}},
    {"resources": {"limits": {"memory": "1Gi", "cpu": 0.5}, "requests": {"cpu": "500m"}}},
    {"resources": {"limits": {"memory": 1_000_000_000, "example.org/gpu": 1}}},
    {"resources": {kind: {"cpu": "1", "example.org/gpu": "2"} for kind in ("requests", "limits")}},
    to_port(port=1000, endPort=2000, protocol="UDP"),
    to_port(port="a-1"),
    to_port(),
    *(
        among_children(ipBlock={"cidr": cidr})
        for cidr in ("0.0.0.0/0", "10.1.0.0/16", "::/0", "fd00::/8", "1:2:3:4:5:6:7:8/128")
    ),
    among_children(podSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    on_machines(key="cores", operator="Gt", values=["4"]),
    on_machines(key="example.org/zone", operator="NotIn", values=["a", "b"]),
    beside_pods(
        weight=1, podAffinityTerm={"topologyKey": "zone", "labelSelector": {}, "namespaces": ["a"]}
    ),
    {"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b"}]},
    {"tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 3}]},
    # What is null is as if it were empty, where that means something.
    {"join": {"proxy": None}, "podLabels": None, "resources": None, "image": {"tag": None}},
    {"monitoring": {"labels": None}, "networkPolicy": {"egress": None}},
]


@pytest.fixture(scope="module")
def helm4(tmp_path_factory):
    return Helm(HELM4, tmp_path_factory.mktemp("helm"))


def template(helm, folder, values, *more):
    file = folder / "values.json"
    file.write_text(json.dumps({"role": "edge", **values}))
    return helm.run("template", "x", CHART, "-n", SYSTEM, "-f", file, *more)


@pytest.fixture
def taken(server):
    """Asks a server whether it takes what was made."""
    server.kubectl("create", "namespace", SYSTEM, check=False)

    def ask(made):
        words = ("-n", SYSTEM, "create", "--dry-run=server", "-f", "-")
        code, _, said = server.kubectl(*words, stdin=made, check=False)
        return code == 0, said

    return ask


def refused(helm, folder, values, named):
    fine, said = template(helm, folder, values)
    assert not fine, values
    assert "values don't meet the specifications of the schema" in said
    assert named in said


def test_what_no_server_takes_is_refused_by_its_name(helm4, tmp_path, taken):
    for values, named in REFUSED:
        refused(helm4, tmp_path, values, named)
        fine, made = template(helm4, tmp_path, values, "--skip-schema-validation")
        assert fine, made
        assert not taken(made)[0], values


def test_what_a_pod_would_wait_for_in_vain_is_refused_by_its_name(helm4, tmp_path):
    for values, named in UNFOUND:
        refused(helm4, tmp_path, values, named)


def test_a_range_of_ports_that_ends_before_it_begins_is_refused(helm4, tmp_path):
    fine, said = template(helm4, tmp_path, to_port(port=9, endPort=8))
    assert not fine
    assert "networkPolicy.egress: endPort 8 is before port 9" in said


def test_what_is_taken_a_server_takes_too(helm4, tmp_path, taken):
    for values in TAKEN:
        fine, made = template(helm4, tmp_path, values)
        assert fine, made
        assert taken(made) == (True, "")


def test_an_image_with_a_tag_in_its_repository_is_refused(helm4, tmp_path):
    for name in ("reg/a:tag", "ghcr.io/Owner/a", "a@sha256:0", "/a", "a//b"):
        fine, said = template(helm4, tmp_path, {"image": {"repository": name}})
        assert not fine
        assert "/image/repository" in said


@pytest.mark.parametrize(
    ("release", "version", "fine"),
    [
        ("a.b", "1.36.0", False),
        ("1a", "1.30.0", False),
        ("1a", "1.36.0", True),
        ("a" * 44 + "--b", "1.30.0", True),
    ],
)
def test_a_name_that_no_service_has_is_refused(helm4, release, version, fine):
    words = ("template", release, CHART, "-n", SYSTEM, f"--kube-version={version}")
    done, said = helm4.run(*words)
    assert done == fine
    assert fine or "say --set fullnameOverride=NAME" in said
    assert helm4.run(*words, "--set=fullnameOverride=own")[0]


def test_an_issuer_without_cert_manager_is_refused_where_the_cluster_is_known(helm4, server):
    words = (CHART, "-n", SYSTEM, "--set=role=relay,listen.issuer.name=internal")
    at = ("--kubeconfig", server.kubeconfig, "--create-namespace")
    fine, said = helm4.run("install", "signed", *words, *at)
    assert not fine
    assert "no kind Certificate of cert-manager" in said
    assert helm4.run("template", "signed", *words)[0]
    known = ("apps/v1/StatefulSet", "cert-manager.io/v1/Certificate")
    assert helm4.run("template", "signed", *words, *(f"--api-versions={it}" for it in known))[0]
