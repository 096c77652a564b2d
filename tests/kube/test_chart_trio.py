"""deploy/helm/leafcast with `members: 3`: what its Pods run, whom they reach, and who waits."""

import json
import subprocess

import click
import pytest

from leafcast.cli.main import cli
from tests.kube.build import HELM3, HELM4
from tests.kube.helm_program import CHART, SYSTEM, Helm, pod

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

ROLES = ("centre", "relay")
THREE = "--set=members=3"
FAKE = '#!/bin/sh\nprintf "%s\\n" "$@"\n'
HOST = "leafcast.leafcast-system.svc"


@pytest.fixture(scope="module", params=[HELM3, HELM4])
def helm(request, tmp_path_factory):
    return Helm(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def helm4(tmp_path_factory):
    return Helm(HELM4, tmp_path_factory.mktemp("helm"))


class Shell:
    """The scripts of a Pod on this machine; the program only says with which words it is run."""

    def __init__(self, folder, spec):
        self._spec, self._folder = spec, folder
        for name in ("bin", "join", "tree", "hub"):
            (folder / name).mkdir()
        (folder / "bin" / "leafcast").write_text(FAKE)
        (folder / "bin" / "leafcast").chmod(0o755)

    def give(self, key):
        """Have the Secret say something under a key."""
        (self._folder / "join" / key).write_text("token")

    def run(self, pod_name, container="containers", seconds=20):
        (one,) = self._spec[container]
        program, *flags = one["command"]
        (script,) = one["args"]
        for name in ("join", "tree", "hub"):
            script = script.replace(f"/{name}/", f"{self._folder}/{name}/")
        # What follows a log goes on.
        script = script.replace("tail -n 0 -F", "true")
        return subprocess.run(
            [program, *flags, script],
            env={"POD_NAME": pod_name, "PATH": f"{self._folder / 'bin'}:/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )

    def words(self, pod_name):
        done = self.run(pod_name)
        assert done.returncode == 0, done.stderr
        words = done.stdout.splitlines()
        # Raises what click raises for arguments that the program does not take.
        command = cli.get_command(click.Context(cli), words[0])
        command.parse_args(click.Context(command, info_name=words[0]), list(words[1:]))
        return words


def shell(helm4, tmp_path, role, *more):
    return Shell(tmp_path, pod(helm4.template(role, THREE, *more))["spec"])


@pytest.mark.parametrize("role", ROLES)
def test_helm_finds_nothing_to_mend(helm, role):
    done = helm("lint", "--strict", CHART, "-n", SYSTEM, f"--set=role={role}", THREE)
    assert "1 chart(s) linted, 0 chart(s) failed" in done


def test_the_first_pod_of_a_centre_begins_it_and_the_others_join_as_members(helm4, tmp_path):
    pods = shell(helm4, tmp_path, "centre")
    first = pods.words("leafcast-0")
    assert first[:3] == ["up", "--foreground", "--regions=0"]
    assert f"--listen=leafcast-0.{HOST}:7422" in first
    assert any(word.startswith("--workloads-kubeconfig=") for word in first)
    pods.give("leafcast-1")
    words = pods.words("leafcast-1")
    assert words[0] == "join"
    assert {f"--listen=leafcast-1.{HOST}:7422", f"--member-host=leafcast-1.{HOST}:6222"} < {*words}


def test_a_member_is_not_told_again_what_its_node_says(helm4, tmp_path):
    pods = shell(helm4, tmp_path, "centre")
    (tmp_path / "tree" / "node").mkdir()
    (tmp_path / "tree" / "node" / "member.json").touch()
    assert not [word for word in pods.words("leafcast-0") if "kubeconfig" in word]


def test_a_token_of_the_first_pod_has_it_take_the_place_of_a_lost_member(helm4, tmp_path):
    pods = shell(helm4, tmp_path, "centre")
    pods.give("leafcast-0")
    assert pods.words("leafcast-0")[0] == "join"


def test_a_relay_begins_with_its_own_token_and_goes_on_with_that_of_a_member(helm4, tmp_path):
    pods = shell(helm4, tmp_path, "relay", "--set=join.durability=disk,listen.port=7522")
    pods.give("join")
    alone = pods.words("leafcast-0")
    assert alone[1].endswith("/join/join")
    assert not [word for word in alone if "member" in word]
    pods.give("leafcast-0")
    words = pods.words("leafcast-0")
    assert words[1].endswith("/join/leafcast-0")
    assert {*alone[2:], f"--member-host=leafcast-0.{HOST}:6222"} == {*words[2:]}


@pytest.mark.parametrize(
    ("role", "waiting", "begins", "says"),
    [
        ("centre", "leafcast-2", "leafcast-0", "leafcast node add / --member"),
        ("relay", "leafcast-1", "", "/PATH/OF/THE/NODE --member"),
        ("relay", "leafcast-0", "", "/PATH/OF/THE/NODE --relay"),
    ],
)
def test_a_pod_without_its_token_says_what_it_waits_for(
    helm4, tmp_path, role, waiting, begins, says
):
    pods = shell(helm4, tmp_path, role)
    with pytest.raises(subprocess.TimeoutExpired) as waits:
        pods.run(waiting, "initContainers", seconds=1)
    said = waits.value.stdout.decode()
    assert said.count("\n") == 1
    assert f"Pod {waiting} waits for key" in said
    assert "Secret leafcast-join" in said
    assert says in said
    if begins:
        assert pods.run(begins, "initContainers").stdout == ""
    pods.give(waiting)
    assert pods.run(waiting, "initContainers").returncode == 0


@pytest.mark.parametrize("role", ROLES)
def test_three_pods_start_at_once_under_names_of_their_own(helm4, role):
    made = helm4.template(role, THREE)
    spec, service = made["StatefulSet", "leafcast"]["spec"], made["Service", "leafcast"]["spec"]
    assert (spec["replicas"], spec["podManagementPolicy"]) == (3, "Parallel")
    assert spec["serviceName"] == "leafcast"
    # A Pod has a name before it is ready, since it gets ready by that.
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)
    assert {port["port"] for port in service["ports"]} == {7422, 6222}
    apart = spec["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert list(apart) == ["preferredDuringSchedulingIgnoredDuringExecution"]
    budget = made["PodDisruptionBudget", "leafcast"]["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (
        1,
        "IfHealthyBudget",
    )


def test_an_affinity_of_the_user_stands_for_that_of_the_chart(helm4):
    own = "--set-json=affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[]"
    spec = pod(helm4.template("relay", THREE, own))["spec"]
    assert list(spec["affinity"]["podAntiAffinity"]) == [
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]


def test_the_members_alone_reach_each_other_where_ways_are_bounded(helm4):
    bounds = (
        '--set-json=networkPolicy.children=[{"ipBlock":{"cidr":"10.0.0.0/8"}}]',
        '--set-json=networkPolicy.egress=[{"ports":[{"port":443}]}]',
    )
    made = helm4.template("centre", THREE, *bounds)
    policy, labels = made["NetworkPolicy", "leafcast"]["spec"], pod(made)["metadata"]["labels"]

    def of_members(rules, side):
        found = []
        for rule in rules:
            for peer in rule.get(side, ()):
                if "podSelector" in peer:
                    assert peer["podSelector"]["matchLabels"].items() <= labels.items()
                    found += [port["port"] for port in rule["ports"]]
        return found

    assert of_members(policy["ingress"], "from") == ["members", "children"]
    assert of_members(policy["egress"], "to") == [6222, 7422]
    opened = [it["ports"] for it in policy["ingress"] if "ipBlock" in it["from"][0]]
    assert [port["port"] for ports in opened for port in ports] == ["children"]


def test_from_elsewhere_each_member_has_a_name_and_an_address_of_its_own(helm4, tmp_path):
    options = "--set=listen.host=centre.example,service.type=LoadBalancer"
    made = helm4.template("centre", THREE, options)
    for name in ("leafcast-0", "leafcast-1", "leafcast-2"):
        one = made["Service", name]["spec"]
        assert one["type"] == "LoadBalancer"
        assert one["selector"]["statefulset.kubernetes.io/pod-name"] == name
    pods = Shell(tmp_path, pod(made)["spec"])
    pods.give("leafcast-1")
    words = {*pods.words("leafcast-1")}
    assert "--listen=leafcast-1.centre.example:7422" in words
    # The members reach each other within the cluster.
    assert f"--member-host=leafcast-1.{HOST}:6222" in words


@pytest.mark.parametrize("role", ROLES)
def test_an_api_server_takes_it_and_another_number_later_is_refused(helm4, server, role):
    name, kubectl = f"three-{role}", server.kubectl
    at = ("--kubeconfig", server.kubeconfig, "-n", SYSTEM)
    said = helm4("install", name, CHART, *at, "--create-namespace", f"--set=role={role}", THREE)
    try:
        assert "leafcast node grow" in said
        assert f"{name}-leafcast-2" in said or "for n in" in said
        helm4("upgrade", name, CHART, *at, f"--set=role={role},logFormat=logfmt", THREE)
        fine, words = helm4.run("upgrade", name, CHART, *at, f"--set=role={role}")
        assert not fine
        assert "members: 1" in words
        strict = "pod-security.kubernetes.io/enforce=restricted"
        kubectl("label", "--overwrite", "namespace", SYSTEM, strict)
        made = json.loads(kubectl("-n", SYSTEM, "get", "sts", f"{name}-leafcast", "-o", "json"))
        spec = made["spec"]["template"]["spec"]
        spec["volumes"].append({"name": "tree", "persistentVolumeClaim": {"claimName": "tree"}})
        obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        kubectl("-n", SYSTEM, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(obj))
    finally:
        helm4("uninstall", name, *at)
