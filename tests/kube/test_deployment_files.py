"""deploy/ and compose.yaml name what there is: options, kinds, and servers that start."""

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import click
import pytest
import yaml

from leafcast.cli.main import cli
from relay.adapters.server.ports import free_port
from tests.awaiting import until
from tests.kube.bed import need_binaries

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ("centre.yaml", "edge.yaml")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]

OF_UNIT = re.compile(r"^ExecStart=\S+/leafcast(?:-launcher .*? --)? (.*)$", re.MULTILINE)


def containers():
    for name in MANIFESTS:
        for obj in yaml.safe_load_all((ROOT / "deploy" / name).read_text()):
            pod = obj["spec"].get("template", {}).get("spec", {})
            for one in [*pod.get("initContainers", ()), *pod.get("containers", ())]:
                yield f"{name}/{one['name']}", one


def ours():
    """Each command line of ours in these files, by where it stands."""
    for where, one in containers():
        if one["image"] == "leafcast" and "command" not in one:
            yield where, one["args"]
    for name, service in COMPOSE.items():
        command = service.get("command")
        is_ours = service["image"] == "leafcast" and "entrypoint" not in service
        if is_ours and isinstance(command, str):
            yield name, command.replace("${LEAFCAST_SPACES:-}", "").split()
    for unit in sorted((ROOT / "deploy" / "systemd").glob("*.service")):
        # What the launcher runs stands after its own words.
        (line,) = OF_UNIT.findall(unit.read_text())
        yield unit.name, line.split()


def parsed(group, args):
    """The command that these arguments are for; raises what click raises."""
    command = group.get_command(click.Context(group), args[0])
    context = click.Context(command, info_name=args[0])
    command.parse_args(context, list(args[1:]))
    return command


@pytest.mark.parametrize(("where", "args"), [pytest.param(*one, id=one[0]) for one in ours()])
def test_every_command_line_is_one_that_the_program_takes(where, args):
    assert parsed(cli, args).callback, where


def test_probes_ask_the_port_that_the_daemon_is_told():
    for where, one in containers():
        if "livenessProbe" in one:
            (port,) = (item for item in one["ports"] if item["name"] == "health")
            assert f"--health-port={port['containerPort']}" in one["args"], where
            assert one["livenessProbe"]["httpGet"]["path"] == "/livez"
            assert one["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_an_api_server_takes_the_manifests(module_server):
    module_server.kubectl("create", "namespace", "leafcast-system")
    for name in MANIFESTS:
        module_server.kubectl("apply", "--dry-run=server", "-f", str(ROOT / "deploy" / name))


@pytest.fixture
def profile(tmp_path):
    """The servers of compose's profile `kubernetes`, on this machine: kubectl at them."""
    binaries = need_binaries()
    clients, peers, api = (free_port(tmp_path / name, 0) for name in ("clients", "peers", "api"))
    kube = tmp_path / "kube"
    kube.mkdir()
    here = {
        "/kube/": f"{kube}/",
        "=/etcd": f"={tmp_path}/etcd",
        "https://kube-apiserver:6443": f"https://127.0.0.1:{api}",
        "etcd:2379": f"127.0.0.1:{clients}",
        "0.0.0.0:2379": f"127.0.0.1:{clients}",
        "--secure-port=6443": f"--secure-port={api}",
        "/deploy/": f"{ROOT}/deploy/",
        "$$": "$",
        "chown leafcast": "chown $(id -u)",
    }

    def said(text):
        for there, now in here.items():
            text = text.replace(there, now)
        return text

    prepare = said(COMPOSE["kube-prepare"]["command"][0])
    subprocess.run(["sh", "-ec", prepare], check=True, env={**os.environ, "PATH": _path()})
    with ExitStack() as stack:
        for name in ("etcd", "kube-apiserver"):
            program, *options = map(said, COMPOSE[name]["command"])
            if name == "etcd":
                at = f"http://127.0.0.1:{peers}"
                options += [
                    f"--listen-peer-urls={at}",
                    f"--initial-advertise-peer-urls={at}",
                    f"--initial-cluster=default={at}",
                ]
            else:
                options += ["--bind-address=127.0.0.1"]
            log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            process = subprocess.Popen([binaries[program], *options], stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
        config = kube / "hub.kubeconfig"
        config.write_text(said(config.read_text()))
        yield lambda *words: subprocess.run(
            [binaries["kubectl"], f"--kubeconfig={config}", *map(said, words)],
            capture_output=True,
            text=True,
            check=False,
        )


def _path():
    """Where the shell finds the program that these tests are of."""
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def test_the_servers_of_composes_profile_start_and_take_what_is_installed(profile):
    until(lambda: profile("get", "--raw", "/readyz").returncode == 0, "no API server", seconds=60)
    done = profile(*COMPOSE["kube-install"]["command"].split()[1:])
    assert done.returncode == 0, done.stderr
    assert "edgeplacements.edge.kubestellar.io created" in done.stdout
    asked = ("wait", "--for=condition=Established", "crd", "--all")
    until(lambda: profile(*asked).returncode == 0, "the definitions are not served", seconds=60)
    assert profile("get", "edgeplacements").returncode == 0
