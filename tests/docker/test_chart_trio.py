"""What Pods of the chart run, as containers: each has a name and a volume."""

import base64
import json
import re
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner

from leafcast.cli.main import cli
from relay.adapters.tls.authority import Authority, new_key, signing_request
from relay.claims.claim import PLACE_NOTE, RUN_NOTE, TREE_NOTE
from tests.docker.daemon import PYTHON_IMAGE, ROOT, need_docker
from tests.kube.build import HELM4
from tests.kube.helm_program import CHART, SYSTEM, Helm, pod

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(550)]

WAIT_SECONDS = 120
RELEASE = "leafcast"
HOST = f"{RELEASE}.{SYSTEM}.svc"
WHOLE = ["active", "standby", "standby"]
PLACEMENT = """
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: %s}
spec:
  locationSelectors: [{}]
  downsync: [{apiGroup: "", resources: [configmaps], namespaces: [shop]}]
"""
SHOP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\n"


def docker(*words, stdin=""):
    done = subprocess.run(
        ["docker", *map(str, words)], input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def until(met, what):
    """Ask again until it holds; a command that fails is a no."""
    end, last = time.monotonic() + WAIT_SECONDS, None
    while time.monotonic() < end:
        try:
            if met():
                return
        except AssertionError as error:
            last = error
        time.sleep(0.5)
    raise AssertionError(f"{what() if callable(what) else what}: {last}")


class Cluster:
    """One network, in which containers stand for Pods; what its Secrets say lies in a folder."""

    def __init__(self, image, folder):
        self.name, self._image = f"leafcast-trio-{uuid.uuid4().hex[:8]}", image
        self.secret, self.hub, self._made = folder / "join", folder / "hub", []
        self.certificate = folder / "certificate"
        for place in (self.secret, self.hub, self.certificate):
            place.mkdir()
            place.chmod(0o755)
        docker("network", "create", self.name)

    def run(self, name, host, *words, entry=()):
        """A container under the name that its Pod has in a cluster."""
        whole = f"{self.name}-{name}"
        self._made.append(whole)
        bounds = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", "--user=10001:10001")
        places = (f"{whole}:/tree", f"{self.secret}:/join:ro", f"{self.hub}:/hub:ro")
        volumes = [f"--volume={place}" for place in places]
        place = ("--network", self.name, "--network-alias", host)
        docker(
            *("run", "-d", "--name", whole, *bounds, *volumes, *place),
            *(*entry, self._image, *words),
        )

    def run_pods(self, spec):
        """Three Pods of a template: first what each waits for, then what it runs."""
        for number in range(3):
            name = f"{RELEASE}-{number}"
            scripts = []
            for one in (*spec["initContainers"], *spec["containers"]):
                assert one["command"] == ["sh", "-ec"]
                scripts += one["args"]
            waits, runs = scripts
            (program,) = spec["containers"]
            said = {it["name"]: it.get("value", name) for it in program["env"]}
            env = [f"--env={key}={value}" for key, value in said.items()]
            # Two containers of a Pod, one after the other.
            script = f"( {waits}\n)\n{runs}"
            self.run(name, f"{name}.{HOST}", "-ec", script, entry=("--entrypoint", "sh", *env))

    def lay_out(self, name, *words):
        """Write the files of a tree on the volume of a container, before it runs."""
        volume = f"--volume={self.name}-{name}:/tree"
        docker("run", "--rm", "--user=10001:10001", volume, self._image, "layout", "/tree", *words)

    def exec(self, name, *words, stdin=""):
        return docker("exec", "-i", f"{self.name}-{name}", *words, stdin=stdin)

    def logs(self, name):
        found = subprocess.run(
            ["docker", "logs", f"{self.name}-{name}"], capture_output=True, text=True, check=False
        )
        return found.stdout + found.stderr

    def until_said(self, name, words):
        until(lambda: words in self.logs(name), lambda: self.logs(name)[-3000:])

    def give(self, name, key, *words):
        """Put a token that a node hands out into the Secret."""
        script = 'leafcast node add "$@" -o /tmp/token >&2; cat /tmp/token; rm /tmp/token'
        said = self.exec(name, "sh", "-ec", script, "sh", *words)
        # Whole at once, as a kubelet writes it.
        draft = self.secret.parent / "draft"
        draft.write_text(said)
        draft.chmod(0o644)
        draft.rename(self.secret / key)

    def remove(self):
        for name in self._made:
            subprocess.run(["docker", "rm", "-f", name], capture_output=True, check=False)
            subprocess.run(["docker", "volume", "rm", name], capture_output=True, check=False)
        subprocess.run(["docker", "network", "rm", self.name], capture_output=True, check=False)


@pytest.fixture(scope="module")
def image():
    need_docker(PYTHON_IMAGE)
    name = f"leafcast-trio-{uuid.uuid4().hex[:8]}"
    build = ("--build-arg", f"PYTHON_IMAGE={PYTHON_IMAGE}", "-f", ROOT / "deploy/Dockerfile")
    docker("build", "-q", "-t", name, *build, ROOT)
    yield name
    subprocess.run(["docker", "rmi", name], capture_output=True, check=False)


@pytest.fixture
def cluster(image, tmp_path):
    made = Cluster(image, tmp_path)
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def helm(tmp_path_factory):
    return Helm(HELM4, tmp_path_factory.mktemp("helm"))


def roles(cluster, at, path):
    """Which member of a node is what, as one of its centre's Pods says."""
    listed = cluster.exec(at, "leafcast", "tree", "--members", "-o", "json")
    (node,) = [it for it in json.loads(listed)["nodes"] if it["path"] == path]
    return {it["name"]: it["role"] for it in node["members"] or ()}


HUB, OWN, SOCKET = "hub.example", "kubernetes.default.svc", "server.sock"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
FORWARDS = """
import asyncio, os, sys
listen, to = sys.argv[1:]
async def flow(source, sink):
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    sink.close()
async def serve(reader, writer):
    if "/" in to:
        there = await asyncio.open_unix_connection(to)
    else:
        there = await asyncio.open_connection(*to.split(":"))
    await asyncio.gather(flow(reader, there[1]), flow(there[0], writer), return_exceptions=True)
async def main():
    if "/" in listen:
        server = await asyncio.start_unix_server(serve, listen)
        os.chmod(listen, 0o777)
    else:
        server = await asyncio.start_server(serve, *listen.split(":"))
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def reached(cluster, server, name=HUB):
    """An API server of this machine, under a name in the network of the containers.

    What they say goes through a file: nothing listens elsewhere than on loopback.
    """
    own = yaml.safe_load(server.kubeconfig.read_text())
    (its,) = [it["cluster"] for it in own["clusters"]]
    address = urlsplit(its["server"])
    its |= {"server": f"https://{HUB}:6443", "tls-server-name": address.hostname}
    # As the Secret of a hub, which a kubelet shows to the group of the Pod.
    file = cluster.hub / "hub.kubeconfig"
    file.write_text(yaml.safe_dump(own))
    file.chmod(0o644)
    words = (cluster.hub / SOCKET, f"{address.hostname}:{address.port}")
    beside = subprocess.Popen([sys.executable, "-c", FORWARDS, *words])
    try:
        forwards = ("-c", FORWARDS, "0.0.0.0:6443", f"/hub/{SOCKET}")
        cluster.run("hub", name, *forwards, entry=("--entrypoint", "python3"))
        yield
    finally:
        beside.kill()
        beside.wait()


def grown(cluster, names):
    """Have a centre in its first Pod, and then in all three."""
    first, *others = names
    until(lambda: "ready" in health(cluster, first), lambda: cluster.logs(first))
    for name in others:
        cluster.until_said(name, f"Pod {name} waits for key {name} of Secret leafcast-join")
        cluster.give(first, name, "/", "--member")
        cluster.until_said(name, "leafcast node grow /")
    cluster.exec(first, "leafcast", "node", "grow", "/", "--host", f"{first}.{HOST}")
    until(lambda: sorted(roles(cluster, first, "/").values()) == WHOLE, lambda: cluster.logs(first))


def lose(cluster, names, lost, applied):
    """End a Pod of a centre at once, have a change acknowledged without it, and start it again."""
    docker("kill", f"{cluster.name}-{lost}")
    left = [it for it in names if it != lost]
    of = {f"m{number}": name for number, name in enumerate(names, 1)}

    def is_led():
        found = roles(cluster, left[0], "/").items()
        return [it for it, role in found if role == "active" and of[it] in left]

    def is_applied():
        shop = SHOP % applied
        return cluster.exec(left[1], "leafcast", "apply", "-f", "-", stdin=shop)

    def is_whole():
        return sorted(roles(cluster, lost, "/").values()) == WHOLE

    # As a Pod it comes back at another address, under its name.
    cluster.run(f"at-its-address-{applied}", "nobody", "600", entry=("--entrypoint", "sleep"))
    until(is_led, lambda: cluster.logs(left[0])[-3000:])
    until(is_applied, "not applied")
    docker("start", f"{cluster.name}-{lost}")
    until(is_whole, lambda: cluster.logs(lost)[-3000:])


def health(cluster, name):
    at = "http://127.0.0.1:8086/readyz"
    ask = f"from urllib.request import urlopen; print(urlopen({at!r}).read().decode())"
    return cluster.exec(name, "python3", "-c", ask)


def test_a_centre_of_three_pods_takes_changes_without_any_one_of_them(helm, cluster):
    cluster.run_pods(pod(helm.template("centre", "--set=members=3,hub.secret="))["spec"])
    first, *_ = names = [f"{RELEASE}-{number}" for number in range(3)]
    grown(cluster, names)
    # Its log is that of its container.
    cluster.until_said(first, "member m1 of /")
    for name in names:
        until(lambda name=name: "ready" in health(cluster, name), lambda n=name: cluster.logs(n))

    # Whoever is active, each Pod is lost once.
    for number, name in enumerate(names):
        lose(cluster, names, name, f"o{number}")
    listed = cluster.exec(first, "leafcast", "get", "configmaps", "-n", "default", "-o", "json")
    assert {it["metadata"]["name"] for it in json.loads(listed)["items"]} >= {"o0", "o1", "o2"}


@pytest.mark.kube
def test_three_pods_work_on_one_hub_whichever_of_them_is_lost(helm, cluster, api_server):
    words = ["install", "--kubeconfig", str(api_server.kubeconfig)]
    api_server.kubectl("apply", "-f", "-", stdin=CliRunner().invoke(cli, words).stdout)
    api_server.await_definitions()
    with reached(cluster, api_server):
        cluster.run_pods(pod(helm.template("centre", "--set=members=3"))["spec"])
        names = [f"{RELEASE}-{number}" for number in range(3)]
        grown(cluster, names)
        for number, name in enumerate(names):
            placement = f"p{number}"
            api_server.kubectl("apply", "-f", "-", stdin=PLACEMENT % placement)
            until(lambda it=placement: observed(api_server, it), lambda: cluster.logs(names[0]))
            holder = lease(api_server)
            docker("kill", f"{cluster.name}-{name}")
            left = [it for it in names if it != name]
            api_server.kubectl("apply", "-f", "-", stdin=PLACEMENT % f"{placement}-without")
            until(
                lambda it=placement: observed(api_server, f"{it}-without"),
                lambda it=left[0]: cluster.logs(it)[-3000:],
            )
            # To the hub all three are one centre.
            assert lease(api_server)[0] == holder[0]
            docker("start", f"{cluster.name}-{name}")
            until(
                lambda it=name: sorted(roles(cluster, it, "/").values()) == WHOLE,
                lambda it=name: cluster.logs(it)[-3000:],
            )


def run_alone(cluster, spec, name):
    """The one Pod of a centre; its nats-server is in the same container."""
    (program,) = spec["containers"]
    assert program["command"] == ["sh", "-ec"]
    assert {host for it in spec["hostAliases"] for host in it["hostnames"]} == {HOST}
    env = [f"--env={it['name']}={it['value']}" for it in program["env"]]
    shown = f"--volume={cluster.certificate}:/certificate:ro"
    entry = ("--entrypoint", "sh", shown, *env)
    cluster.run(name, HOST, "-ec", *program["args"], entry=entry)
    until(lambda: "ready" in health(cluster, name), lambda: cluster.logs(name)[-3000:])


def has_child(cluster, name):
    """Let a first edge in, and have it get something."""
    cluster.give(name, "join", "/store-1", "--approved")
    cluster.run("edge", "edge.example", "join", "/join/join", "--simulated")
    wanted = f"{SHOP % 'hello'}---{PLACEMENT % 'shop'}".replace("[shop]", "[default]")
    cluster.exec(name, "leafcast", "apply", "-f", "-", stdin=wanted)
    until(
        lambda: cluster.exec(name, "leafcast", "wait", "shop", "--for=synced", "--timeout=5s"),
        lambda: cluster.logs("edge")[-3000:] + cluster.logs(name)[-3000:],
    )


@pytest.mark.parametrize("own", [False, True], ids=["trees-authority", "own-certificate"])
def test_a_centre_of_one_pod_takes_children_and_comes_back_with_all_it_had(helm, cluster, own):
    options = "hub.secret="
    if own:
        # As cert-manager writes them into the Secret.
        now_ms, key = time.time_ns() // 1_000_000, new_key()
        authority = Authority.make("internal", now_ms)
        certificate = authority.issue(signing_request(key, [HOST]), now_ms)
        files = {"tls.crt": certificate, "tls.key": key, "ca.crt": authority.certificate}
        for at, text in files.items():
            (cluster.certificate / at).write_text(text)
            (cluster.certificate / at).chmod(0o644)
        options += ",listen.certificateSecret=own,listen.authorities=true"
    name = f"{RELEASE}-0"
    run_alone(cluster, pod(helm.template("centre", f"--set={options}"))["spec"], name)
    has_child(cluster, name)
    # Its log is that of its container, and each line is for programs.
    said = [line for line in cluster.logs(name).splitlines() if line.startswith("{")]
    assert {json.loads(line)["level"] for line in said} >= {"info"}
    docker("kill", f"{cluster.name}-{name}")
    docker("start", f"{cluster.name}-{name}")
    until(lambda: "ready" in health(cluster, name), lambda: cluster.logs(name)[-3000:])
    cluster.exec(name, "leafcast", "apply", "-f", "-", stdin=SHOP % "after")
    cluster.exec(name, "leafcast", "wait", "shop", "--for=synced", "--timeout=60s")


def test_a_centre_of_one_pod_goes_on_on_the_volume_of_the_chart_0_2_0(helm, cluster):
    name = f"{RELEASE}-0"
    # Its files were written before the first start, and its server ran in another container.
    cluster.lay_out(name, "--regions=0", f"--host={HOST}")
    run_alone(cluster, pod(helm.template("centre", "--set=hub.secret="))["spec"], name)
    has_child(cluster, name)
    # Without its server the container ends, and so is started again.
    kill = "import os, signal; [os.kill(int(p), signal.SIGKILL) for p in os.listdir('/proc') if "
    kill += "p.isdigit() and open(f'/proc/{p}/comm').read() == 'nats-server\\n']"
    cluster.exec(name, "python3", "-c", kill)
    until(lambda: docker("wait", f"{cluster.name}-{name}"), lambda: cluster.logs(name)[-3000:])
    docker("start", f"{cluster.name}-{name}")
    until(lambda: "ready" in health(cluster, name), lambda: cluster.logs(name)[-3000:])
    cluster.exec(name, "leafcast", "apply", "-f", "-", stdin=SHOP % "after")
    cluster.exec(name, "leafcast", "wait", "shop", "--for=synced", "--timeout=60s")


@pytest.mark.kube
def test_an_edge_delivers_to_its_cluster_by_the_rights_that_it_was_installed_with(
    helm, cluster, api_server, tmp_path
):
    up = ("up", "--foreground", "--regions=0", "--listen=centre.example:7422")
    cluster.run("centre", "centre.example", *up)
    until(lambda: cluster.exec("centre", "leafcast", "tree"), lambda: cluster.logs("centre"))
    cluster.give("centre", "join", "/store-1", "--approved")
    wanted = f"{SHOP % 'hello'}---{PLACEMENT % 'shop'}".replace("[shop]", "[default]")
    cluster.exec("centre", "leafcast", "apply", "-f", "-", stdin=wanted)

    began = time.monotonic()
    at = ("--kubeconfig", api_server.kubeconfig, "-n", SYSTEM)
    helm("install", RELEASE, CHART, *at, "--create-namespace", "--set=role=edge")
    kind = json.loads(api_server.kubectl("-n", SYSTEM, "get", "sts", RELEASE, "-o", "json"))
    spec = kind["spec"]["template"]["spec"]
    # What a kubelet shows a Pod of its account.
    account = tmp_path / "account"
    account.mkdir(mode=0o755)
    token = api_server.kubectl("-n", SYSTEM, "create", "token", spec["serviceAccountName"])
    (its,) = yaml.safe_load(api_server.kubeconfig.read_text())["clusters"]
    trusted = base64.b64decode(its["cluster"]["certificate-authority-data"]).decode()
    for name, text in (("token", token.strip()), ("ca.crt", trusted), ("namespace", SYSTEM)):
        (account / name).write_text(text)
    (program,) = spec["containers"]
    with reached(cluster, api_server, OWN):
        shown = (
            f"--volume={account}:{ACCOUNT}:ro",
            f"--env=KUBERNETES_SERVICE_HOST={OWN}",
            "--env=KUBERNETES_SERVICE_PORT=6443",
        )
        cluster.run("edge", "edge.example", *program["args"], entry=shown)
        until(
            lambda: api_server.kubectl("get", "configmap", "hello", "-o", "name"),
            lambda: cluster.logs("edge")[-3000:],
        )
    print(f"{time.monotonic() - began:.1f} s from `helm install` to the first delivery")


def observed(server, placement):
    """Whether a centre wrote the status of a placement at its hub."""
    said = json.loads(server.kubectl("get", "edgeplacement", placement, "-o", "json"))
    return said.get("status", {}).get("observedGeneration") == said["metadata"]["generation"]


def lease(server):
    """Of which tree and place the one is that has the hub, and which run of it holds it."""
    listed = json.loads(server.kubectl("-n", SYSTEM, "get", "leases", "-o", "json"))["items"]
    notes = [it["metadata"]["annotations"] for it in listed]
    (found,) = [it for it in notes if TREE_NOTE in it]
    return (found[TREE_NOTE], found[PLACE_NOTE]), found[RUN_NOTE]


def test_a_relay_of_three_pods_begins_alone_and_goes_on_without_its_active_one(helm, cluster):
    up = ("up", "--foreground", "--regions=0", "--listen=centre.example:7422")
    cluster.run("centre", "centre.example", *up)
    until(lambda: cluster.exec("centre", "leafcast", "tree"), lambda: cluster.logs("centre"))
    cluster.run_pods(pod(helm.template("relay", "--set=members=3"))["spec"])
    first, *_ = names = [f"{RELEASE}-{number}" for number in range(3)]
    cluster.until_said(first, f"Pod {first} waits for key join of Secret leafcast-join")
    cluster.give("centre", "join", "/emea", "--relay", "--approved")
    cluster.until_said(first, "is in session")
    for name in names:
        cluster.give("centre", name, "/emea", "--member")
    docker("restart", f"{cluster.name}-{first}")
    for name in names:
        cluster.until_said(name, "leafcast node grow /emea")
    cluster.exec("centre", "leafcast", "node", "grow", "/emea")
    until(
        lambda: sorted(roles(cluster, "centre", "/emea").values()) == WHOLE,
        lambda: "\n".join(cluster.logs(name)[-1500:] for name in names),
    )
    (active,) = [it for it, role in roles(cluster, "centre", "/emea").items() if role == "active"]
    lost = names[int(re.sub(r"\D", "", active)) - 1]
    docker("kill", f"{cluster.name}-{lost}")

    def another_is_active():
        now = roles(cluster, "centre", "/emea")
        return now.get(active) == "silent" and "active" in now.values()

    until(another_is_active, lambda: str(roles(cluster, "centre", "/emea")))
    docker("start", f"{cluster.name}-{lost}")
    until(
        lambda: sorted(roles(cluster, "centre", "/emea").values()) == WHOLE,
        lambda: cluster.logs(lost)[-3000:],
    )
