"""`leafcast up --kube` as its user runs it: API servers found again, and gone with the tree."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.awaiting import until
from tests.kube.bed import need_binaries
from tests.kube.program import Program
from tests.processes import alive

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SHOP = ROOT / "leafcast" / "shop"
SMALL = ("--regions", "1", "--sites", "1")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A tree with an API server for its centre. Each test makes sure that it is up."""
    need_binaries()
    program = Program(tmp_path_factory.mktemp("up") / "tree")
    yield program
    program.run("down")


def test_a_centre_on_an_api_server_is_found_again_with_its_objects(program):
    said = program.up("--kube", *SMALL)
    assert f"export KUBECONFIG={program.kubeconfig}" in said
    assert "--context centre" in said
    program.kubectl("create", "namespace", "kept")
    program.kubectl("get", "edgeplacements,locations,synctargets")
    assert "already up" in program.up()

    before, kubeconfig = program.processes(), program.kubeconfig.read_text()
    assert program.run("down").returncode == 0
    until(lambda: not any(alive(pid) for pid in before), program.processes)
    program.up()
    assert program.kubeconfig.read_text() == kubeconfig
    assert "kept" in program.kubectl("get", "namespaces")


HEAVY = ("aiohttp", "kubernetes", "nats.", "rich", "relay.adapters.kubernetes")


@pytest.mark.parametrize("words", [("status",), ("get", "ns"), ("apply", "-f")])
def test_a_command_at_an_api_server_loads_no_client_of_it(program, tmp_path, words):
    program.up("--kube", *SMALL)
    file = tmp_path / "one.json"
    file.write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}')
    more = [str(file)] if words[0] == "apply" else []
    done = program.run(*words, *more, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0, done.stderr
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "leafcast.ask.session" in loaded
    assert {name for name in loaded if name.startswith(HEAVY)} == set()


def test_what_ran_is_gone_with_a_killed_daemon_and_comes_back_with_the_next(program):
    program.up("--kube", *SMALL)
    program.kubectl("create", "namespace", "outlives")
    before = program.processes()
    os.kill(program.place.daemon()["pid"], signal.SIGKILL)
    program.up()
    until(lambda: not any(alive(pid) for pid in before), program.processes)
    assert "outlives" in program.kubectl("get", "namespaces")


def test_an_api_server_or_etcd_that_is_killed_is_started_again(program):
    program.up("--kube", *SMALL)
    uid = ("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
    known = program.kubectl(*uid)
    for name in ("kube-apiserver", "etcd"):
        (pid,) = (p for p, words in program.processes().items() if f"/{name}\0" in words)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), f"{name} does not end")  # noqa: B023
        assert until(lambda: _said(program, *uid) == known, program.place.log.read_text)


def test_a_tree_keeps_to_the_api_servers_it_was_made_with(program):
    program.up("--kube", *SMALL)
    refused = program.run("up", "--kube=all")
    assert (refused.returncode, "was made with --kube=centre" in refused.stderr) == (1, True)


def test_what_is_planned_on_an_api_server_is_what_is_done(program):
    program.up("--kube", *SMALL)
    site = ("--at", "/region-1/site-1")
    planned = program.run("plan", "-f", str(SHOP), "--all", "-o", "json")
    assert planned.returncode == 1, planned.stderr
    rows = json.loads(planned.stdout)["rows"]
    assert {row["action"] for row in rows} == {"create"}
    assert program.run("apply", "-f", str(SHOP)).returncode == 0
    assert program.run("wait", "shop", "--for", "synced").returncode == 0
    keys = [tuple(row["key"]) for row in rows]
    for group, resource in sorted({key[:2] for key in keys}):
        kind = f"{resource}.{group}" if group else resource
        found = json.loads(program.run("get", kind, "-A", "-o", "json", *site).stdout)["items"]
        names = {item["metadata"]["name"] for item in found}
        assert names == {key[3] for key in keys if key[:2] == (group, resource)}
    same = program.run("plan", "-f", str(SHOP), "--live")
    assert same.returncode == 0, same.stdout
    gone = json.loads(program.run("plan", "--delete", "-f", str(SHOP), "-o", "json").stdout)
    assert (gone["counts"]["delete"], gone["counts"]["update"]) == (len(rows), 0)
    assert program.run("delete", "-f", str(SHOP), "--confirm-removals").returncode == 0


def _said(program, *arguments):
    try:
        return program.kubectl(*arguments)
    except AssertionError:
        return ""


def test_what_kubectl_applies_at_the_centre_lives_at_a_site_and_goes_again(tmp_path):
    need_binaries()
    program = Program(tmp_path / "tree")
    try:
        _deliver(program)
    finally:
        program.run("down")


def _deliver(program):
    program.up("--kube=all", *SMALL)
    config = json.loads(program.kubectl("config", "view", "-o", "json"))
    assert [its["name"] for its in config["contexts"]] == ["centre", "region-1-site-1"]
    program.kubectl("apply", "-f", str(SHOP))
    program.kubectl("wait", "edgeplacement/shop", "--for=condition=Synced", "--timeout=150s")
    site = ("--context", "region-1-site-1", "-n", "shop")
    ready = ("wait", "deployment/web", "--timeout=150s", "--for=jsonpath={.status.readyReplicas}=")
    program.kubectl(*site, *ready[:-1], ready[-1] + "2")
    assert program.kubectl("get", "replicasets", "-n", "shop", "-o", "name") == ""
    lease = ("--context", "region-1-site-1", "-n", "kube-node-lease", "get", "lease", "node-1")
    held = program.kubectl(*lease, "-o", "jsonpath={.metadata.uid}")

    assert program.run("down").returncode == 0
    program.up()
    program.kubectl("scale", "deployment/web", "-n", "shop", "--replicas=3")
    program.kubectl(*site, *ready[:-1], ready[-1] + "3")
    # What gives Pods life does not wait until the lease of its last run is over.
    assert program.kubectl(*lease, "-o", "jsonpath={.metadata.uid}") != held
    program.kubectl("delete", "edgeplacement", "shop")
    program.kubectl(*site, "wait", "namespace/shop", "--for=delete", "--timeout=150s")


def test_without_the_programs_it_says_how_to_get_them_and_makes_nothing(tmp_path):
    program = Program(tmp_path / "tree")
    (tmp_path / "empty").mkdir()
    nowhere = {"XDG_CACHE_HOME": str(tmp_path / "empty"), "PATH": str(tmp_path / "empty")}
    assets = {"LEAFCAST_KUBE_ASSETS": "", "KUBEBUILDER_ASSETS": str(tmp_path / "empty")}
    refused = program.run("up", "--kube", **nowhere, **assets)
    assert refused.returncode == 1
    assert "no etcd, kube-apiserver, kube-controller-manager on this machine" in refused.stderr
    assert "make kube" in refused.stderr
    assert f"KUBEBUILDER_ASSETS={tmp_path / 'empty'}" in refused.stderr
    assert not program.place.folder.exists()
