"""deploy/helm/leafcast: Helm and a real API server take what it makes, and say what they refuse."""

import json
import shutil

import click
import pytest
import yaml

from leafcast.cli.install_manifests import InstallOptions, manifests
from leafcast.cli.main import cli
from leafcast.cli.options.proxy import PROXY_VARIABLE
from tests.chart_archive import write_chart
from tests.kube.build import HELM3, HELM4
from tests.kube.helm_program import CHART, DEPLOY, SYSTEM, Helm, pod

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

RULES = DEPLOY / "monitoring" / "prometheus-rules.yaml"
ROLES = ("centre", "relay", "edge")
MONITORS = "monitoring.coreos.com/v1/ServiceMonitor"
MONITOR_KIND = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
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


@pytest.fixture(scope="module", params=[HELM3, HELM4])
def helm(request, tmp_path_factory):
    return Helm(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def helm4(tmp_path_factory):
    return Helm(HELM4, tmp_path_factory.mktemp("helm"))


def parsed(args):
    """Raises what click raises for arguments that the program does not take."""
    group = cli
    command = group.get_command(click.Context(group), args[0])
    command.parse_args(click.Context(command, info_name=args[0]), list(args[1:]))


@pytest.mark.parametrize("role", ROLES)
def test_helm_finds_nothing_to_mend_in_a_role(helm, role):
    assert "1 chart(s) linted, 0 chart(s) failed" in helm(
        "lint", "--strict", CHART, "-n", SYSTEM, f"--set=role={role}"
    )


@pytest.mark.parametrize("role", ROLES)
def test_every_command_line_is_one_that_the_program_takes(helm4, role, tmp_path):
    own = ("--set=listen.host=relay.example,listen.port=7522",) if role == "relay" else ()
    far = () if role == "centre" else ("--set=join.proxy=http://p:3128,join.durability=disk",)
    for more in ((), (*own, *far)):
        spec = pod(helm4.template(role, *more))["spec"]
        for one in [*spec.get("initContainers", ()), *spec["containers"]]:
            if "command" not in one:
                parsed(one["args"])
    parsed(["layout", str(tmp_path), "--regions=0", "--host=leafcast.leafcast-system.svc"])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"role": "edge", "persistance": {"size": "1Gi"}}, "persistance"),
        ({"role": "edge", "image": {"tagg": "1"}}, "tagg"),
        ({"role": "leaf"}, "role"),
        ({"role": "edge", "persistence": {"size": "two"}}, "size"),
        ({"role": "relay", "listen": {"host": "Not a host"}}, "host"),
        ({"role": "centre", "podDisruptionBudget": {"maxUnavailable": 2}}, "maxUnavailable"),
        # What Kubernetes names is known by its names, too.
        ({"role": "edge", "resources": {"requests": {"memroy": "1Gi"}}}, "memroy"),
        ({"role": "edge", "resources": {"limits": {"memory": "1Gb"}}}, "memory"),
        ({"role": "edge", "tolerations": [{"efect": "NoSchedule"}]}, "efect"),
        ({"role": "edge", "affinity": {"nodeAfinity": {}}}, "nodeAfinity"),
        ({"role": "edge", "podLabels": {"a b": "c"}}, "a b"),
        ({"role": "edge", "image": None}, "image"),
        ({"role": "relay", "networkPolicy": {"egress": [{"port": []}]}}, "port"),
        ({"role": "relay", "networkPolicy": {"children": [{"ipBlock": {"cdir": "::/0"}}]}}, "cdir"),
        ({"role": "relay", "monitoring": {"from": [{"podSelecter": {}}]}}, "podSelecter"),
        ({"role": "relay", "listen": {"issuer": {"kind": "ClusterIssuer"}}}, "name"),
        ({"role": "relay", "service": {"loadBalancerSourceRanges": ["10.0.0.0"]}}, "10.0.0.0"),
    ],
)
def test_a_values_file_with_a_typo_is_refused_by_its_name(helm, tmp_path, values, said):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    fine, words = helm.run("template", "x", CHART, "-n", SYSTEM, "-f", file)
    assert not fine
    assert "values don't meet the specifications of the schema" in words
    assert said in words


@pytest.mark.parametrize(
    ("options", "namespace", "said"),
    [
        ("role=edge,members=3", SYSTEM, "role: relay"),
        ("role=relay,members=3,join.proxy=http://p:3128", SYSTEM, "no proxy"),
        ("role=relay,members=3,listen.issuer.name=internal", SYSTEM, "tree's own authority"),
        ("role=relay,members=3,listen.port=6222", SYSTEM, "listen.port"),
        ("role=relay,listen.port=8086", SYSTEM, "listen.port: 8086"),
        ("role=relay,members=3,listen.port=8086", SYSTEM, "listen.port: 8086"),
        ("role=edge,resources.requests.cpu=2,resources.limits.cpu=1500m", SYSTEM, "than its limit"),
        ("role=edge,resources.requests.hugepages-2Mi=4Mi", SYSTEM, "say the same in resources.lim"),
        ("role=centre,members=3,serverResources.limits.cpu=1", SYSTEM, "say resources"),
        ("role=edge", "default", "--namespace leafcast-system"),
        ("role=edge,listen.host=a.example", SYSTEM, "role: relay"),
        ("role=centre,rbac.namespaces={shop}", SYSTEM, "role: edge"),
        ("role=centre,members=3,listen.certificateSecret=own", SYSTEM, "the tree's own authority"),
        ("role=centre,listen.authorities=true", SYSTEM, "name listen.certificateSecret"),
        ("role=relay,listen.authorities=true", SYSTEM, "name listen.certificateSecret"),
        ("role=centre,listen.port=7522", SYSTEM, "7422"),
        ("role=edge,join.proxy=http://me:word@p:3128", SYSTEM, "join.proxySecret"),
        (
            "role=edge,service.type=LoadBalancer",
            SYSTEM,
            "nothing hangs below an edge; leave it out, or say role: relay",
        ),
        (
            "role=edge,service.annotations.a=b",
            SYSTEM,
            "nothing hangs below an edge; leave it out, or say role: relay",
        ),
        ("role=edge,listen.port=7522", SYSTEM, "listen.port: nothing hangs below an edge"),
        ("role=edge,listen.certificateSecret=own", SYSTEM, "nothing hangs below an edge"),
        ("role=edge,hub.secret=mine", SYSTEM, "hub.secret: an edge works on no hub"),
        ("role=relay,hub.key=config", SYSTEM, "hub.key: a relay works on no hub"),
        ("role=edge,serverResources.limits.cpu=1", SYSTEM, "serverResources: the nats-server runs"),
        ("role=centre,serverResources.limits.cpu=1", SYSTEM, "say resources"),
        ("role=relay,serverResources.limits.cpu=1", SYSTEM, "say resources"),
        ("role=centre,join.proxy=http://p:3128", SYSTEM, "a centre has no parent"),
        ("role=centre,join.durability=disk", SYSTEM, "a centre has no parent"),
        (
            "role=edge,podLabels.app\\.kubernetes\\.io/name=x",
            SYSTEM,
            "podLabels: app.kubernetes.io/n",
        ),
        ("role=relay,podLabels.leafcast\\.io/stays=x", SYSTEM, "podLabels: leafcast.io/stays"),
        ("role=relay,podLabels.controller-revision-hash=x", SYSTEM, "podLabels: controller-"),
        ("role=relay,monitoring.labels.helm\\.sh/chart=x", SYSTEM, "monitoring.labels: helm.sh"),
    ],
)
def test_what_no_role_can_be_is_refused_with_the_remedy(helm4, options, namespace, said):
    fine, words = helm4.run("template", "x", CHART, "-n", namespace, f"--set={options}")
    assert not fine
    assert said in words


def notes(helm, chart, *more):
    return helm("install", "x", chart, "-n", SYSTEM, "--dry-run=client", "--set=role=edge", *more)


def test_an_image_without_a_registry_is_told_of_and_a_published_chart_has_one(
    helm4, tmp_path, monkeypatch
):
    said = "names no registry"
    assert said in notes(helm4, write_chart(tmp_path))
    named = "registry.example/leafcast"
    assert said not in notes(helm4, CHART, f"--set=image.repository={named}")
    monkeypatch.setenv("LEAFCAST_IMAGE", named)
    made = notes(helm4, write_chart(tmp_path))
    assert said not in made
    assert f'image: "{named}:' in made


def test_an_edge_waits_a_day_for_its_approval_and_has_a_password_from_a_secret(helm4):
    (program,) = pod(helm4.template("edge", "--set=join.proxySecret=way-out"))["spec"]["containers"]
    probe = program["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 86_400
    (one,) = program["env"]
    assert one["name"] == PROXY_VARIABLE
    assert one["valueFrom"]["secretKeyRef"] == {"name": "way-out", "key": "proxy"}


def test_a_centre_reaches_itself_by_its_service_whatever_children_call_it(helm4):
    (alias,) = pod(helm4.template("centre", "--set=listen.host=c.example"))["spec"]["hostAliases"]
    assert alias["hostnames"] == ["leafcast.leafcast-system.svc", "c.example"]
    (alias,) = pod(helm4.template("centre"))["spec"]["hostAliases"]
    assert alias["hostnames"] == ["leafcast.leafcast-system.svc"]


@pytest.mark.parametrize("spaces", [(), ("shop", "till")])
def test_an_edge_has_the_rights_that_install_prints(helm4, spaces):
    more = (f"--set=rbac.namespaces={{{','.join(spaces)}}}",) if spaces else ()
    made = helm4.listed("edge", *more)

    def rights(listed):
        """Rules by the namespaces in which a binding gives them; "" for all of the cluster."""
        roles = {obj["metadata"]["name"]: obj["rules"] for obj in listed if "rules" in obj}
        found = []
        for obj in listed:
            if "roleRef" in obj:
                where = obj["metadata"].get("namespace", "")
                found += [(where, json.dumps(rule)) for rule in roles[obj["roleRef"]["name"]]]
        return sorted(found)

    def plain(rules):
        return sorted(
            (where, sorted((key, tuple(sorted(value))) for key, value in json.loads(rule).items()))
            for where, rule in rules
        )

    printed = [one.object for one in manifests(InstallOptions("edge", (), "none", spaces))]
    assert plain(rights(made)) == plain(rights(printed))
    assert rights(printed)


@pytest.mark.parametrize("options", [(), ("--set=members=3",)])
@pytest.mark.parametrize("role", ["centre", "relay"])
def test_a_nats_server_runs_in_the_container_of_its_node(helm4, role, options):
    (program,) = pod(helm4.template(role, *options))["spec"]["containers"]
    assert {port["name"] for port in program["ports"]} >= {"health", "children"}


@pytest.mark.parametrize("role", ["centre", "relay"])
def test_who_has_no_work_in_the_cluster_has_no_rights_there(helm4, role):
    made = helm4.template(role)
    assert not [kind for kind, _ in made if "Role" in kind]
    assert pod(made)["spec"]["automountServiceAccountToken"] is False


@pytest.mark.parametrize("role", ROLES)
def test_a_network_policy_opens_what_children_dial_and_nothing_else(helm4, role):
    made = helm4.template(role)
    (policy,) = (obj["spec"] for (kind, _), obj in made.items() if kind == "NetworkPolicy")
    opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
    assert opened == ([] if role == "edge" else ["children"])


@pytest.mark.parametrize("role", ROLES)
def test_metrics_are_scraped_where_the_kind_is_known(helm4, role):
    plain = helm4.template(role)
    watched = helm4.template(role, f"--api-versions={MONITORS}")
    assert set(watched) - set(plain) == {("ServiceMonitor", "leafcast")}
    health = watched["Service", "leafcast-health"]
    monitor = watched["ServiceMonitor", "leafcast"]["spec"]
    labels = health["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    assert f'job="{labels[monitor["jobLabel"]]}"' in RULES.read_text()
    policy = watched["NetworkPolicy", "leafcast"]["spec"]
    opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
    assert "health" in opened
    off = helm4.template(role, f"--api-versions={MONITORS}", "--set=monitoring.enabled=false")
    assert set(off) == set(plain)


@pytest.mark.parametrize("role", ["centre", "relay"])
def test_who_has_children_shows_a_certificate_of_cert_manager(helm4, role):
    options = "--set=listen.issuer.name=internal,listen.host=relay.example,listen.authorities=true"
    made = helm4.template(role, options)
    asked = made["Certificate", "leafcast"]["spec"]
    assert asked["dnsNames"] == ["relay.example"]
    spec = pod(made)["spec"]
    (volume,) = (it for it in spec["volumes"] if it["name"] == "certificate")
    assert volume["secret"]["secretName"] == asked["secretName"]
    assert "--tls-ca=/certificate/ca.crt" in " ".join(spec["containers"][0]["args"]).split()


@pytest.mark.parametrize("role", ROLES)
def test_an_api_server_takes_a_role_and_its_pod_where_rights_are_restricted(helm4, server, role):
    name, kubectl = f"one-{role}", server.kubectl
    at = ("--kubeconfig", server.kubeconfig, "-n", SYSTEM)
    said = helm4("install", name, CHART, *at, "--create-namespace", f"--set=role={role}")
    try:
        assert "Next: " in said
        assert f"rollout status statefulset/{name}-leafcast" in said
        assert ("Secret leafcast-hub" if role == "centre" else "Secret leafcast-join") in said
        helm4("upgrade", name, CHART, *at, f"--set=role={role},logFormat=logfmt")
        strict = "pod-security.kubernetes.io/enforce=restricted"
        kubectl("label", "--overwrite", "namespace", SYSTEM, strict)
        template = json.loads(kubectl("-n", SYSTEM, "get", "sts", f"{name}-leafcast", "-o", "json"))
        one = template["spec"]["template"]
        # What a controller of the server makes of it, with the volume that comes by its name.
        volumes = one["spec"]["volumes"]
        volumes.append({"name": "tree", "persistentVolumeClaim": {"claimName": "tree"}})
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": one["spec"]}
        kubectl("-n", SYSTEM, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(obj))
    finally:
        helm4("uninstall", name, *at)
    mine = f"app.kubernetes.io/instance={name}"
    kinds = "sts,svc,sa,netpol,pdb,role,rolebinding,clusterrole,clusterrolebinding"
    assert kubectl("-n", SYSTEM, "get", kinds, "-l", mine, "-o", "name") == ""


OTHERWISE = (
    ("logFormat=text", "say --set role=relay, or --reset-then-reuse-values"),
    ("role=centre", "say --set role=relay, or --reset-then-reuse-values"),
    ("role=relay,members=3", "members: 3"),
    ("role=relay,persistence.size=3Gi", "say --set persistence.size=2Gi"),
    ("role=relay,persistence.size=2G", "tree-kept-leafcast-0"),
    ("role=relay", "persistence.size: 10Gi: release kept was installed with 2Gi"),
    ("role=relay,persistence.size=2Gi,persistence.storageClass=fast", "changes its class"),
    ("role=relay,nameOverride=other", "nameOverride=leafcast,fullnameOverride=kept-leafcast"),
    ("role=relay,fullnameOverride=other", "nameOverride=leafcast,fullnameOverride=kept-leafcast"),
    ("nameOverride=other,fullnameOverride=kept-leafcast,role=relay", "nameOverride=leafcast,"),
)
"""What an upgrade of a relay would have to change that no StatefulSet changes, and the word."""


def test_an_upgrade_to_another_node_name_or_volume_is_refused_before_anything_changes(helm, server):
    at = ("--kubeconfig", server.kubeconfig, "-n", SYSTEM)
    first = "--set=role=relay,persistence.size=2048Mi"
    helm("install", "kept", CHART, *at, "--create-namespace", first)
    mine = ("-n", SYSTEM, "get", "sts,svc,clusterrole,clusterrolebinding", "-o", "name")
    mine = (*mine, "-l", "app.kubernetes.io/instance=kept")
    try:
        before = server.kubectl(*mine)
        for values, said in OTHERWISE:
            fine, words = helm.run("upgrade", "kept", CHART, *at, f"--set={values}")
            assert not fine, values
            assert said in words
            assert "Forbidden" not in words
            assert server.kubectl(*mine) == before
        # One size has many words, and a server has its own.
        for values in ("role=relay,persistence.size=2Gi", "logFormat=text"):
            helm("upgrade", "kept", CHART, *at, f"--set={values}", "--reset-then-reuse-values")
    finally:
        helm("uninstall", "kept", *at)


def test_a_chart_above_has_two_nodes_in_one_release(helm4, server, tmp_path):
    """Each is found by its own name, where both are of one release."""
    (tmp_path / "charts").mkdir()
    needs = [
        {"name": "leafcast", "version": "*", "repository": f"file://{CHART}", "alias": name}
        for name in ("store", "region")
    ]
    about = {"apiVersion": "v2", "name": "above", "version": "1.0.0", "dependencies": needs}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(about))
    shutil.copytree(CHART, tmp_path / "charts" / "leafcast")
    at = ("--kubeconfig", server.kubeconfig, "-n", SYSTEM)
    (tmp_path / "values.yaml").write_text("store: {role: relay}\nregion: {role: centre}\n")
    helm4("install", "both", tmp_path, *at, "--create-namespace")
    try:
        helm4("upgrade", "both", tmp_path, *at, "--set=store.logFormat=text")
        fine, words = helm4.run("upgrade", "both", tmp_path, *at, "--set=store.fullnameOverride=x")
        assert not fine
        assert "fullnameOverride=both-store" in words
    finally:
        helm4("uninstall", "both", *at)


def test_a_server_with_the_kind_gets_a_service_monitor(helm4, server):
    server.kubectl("create", "-f", "-", stdin=json.dumps(MONITOR_KIND))
    server.await_definitions()
    at = ("--kubeconfig", server.kubeconfig, "-n", SYSTEM)
    helm4("install", "watched", CHART, *at, "--create-namespace", "--set=role=relay")
    monitors = ("-n", SYSTEM, "get", "servicemonitors", "-o", "name")
    try:
        assert "watched-leafcast" in server.kubectl(*monitors)
    finally:
        helm4("uninstall", "watched", *at)
    assert server.kubectl(*monitors) == ""
