"""A centre of three members whose spaces are an API server: one writes there, and none late."""

import json
import os
import signal

import pytest

from tests.awaiting import until
from tests.e2e.program import did
from tests.e2e.trio_program import TrioProgram, uids_at
from tests.processes import stands_still

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.long, pytest.mark.timeout(400)]
CENTRE, SITE = "centre", "/region-1/site-1"
SMALL = ("--regions", "1", "--sites", "1")
LEASES = ("-n", "leafcast-system", "get", "leases", "-o", "json")
SETTINGS = ("configmap", "trio-settings", "-n", "shop")


@pytest.fixture
def hub(clean_server, tmp_path):
    """A tree of members that works on an API server, and that server."""
    tree, file = TrioProgram(tmp_path / "tree"), str(clean_server.kubeconfig)
    made_ready = did(tree, "install", "--kubeconfig", file).stdout
    clean_server.kubectl("apply", "-f", "-", stdin=made_ready)
    clean_server.await_definitions()
    spaces = ("--workloads-kubeconfig", file, "--inventory-kubeconfig", file)
    try:
        did(tree, "up", "--members", "3", *SMALL, *spaces)
        yield tree, clean_server
    finally:
        did(tree, "down")


def holders(server):
    """Which run of the centre holds each lease, by the lease; and of which places those are."""
    listed = {
        it["metadata"]["name"]: it["metadata"]
        for it in json.loads(server.kubectl(*LEASES))["items"]
    }
    notes = {name: it["annotations"] for name, it in listed.items()}
    runs = {name: it["leafcast.io/claimed-by-run"] for name, it in notes.items()}
    return runs, {it["leafcast.io/claimed-by-place"] for it in notes.values()}


def until_taken(server, former):
    """Wait until another run holds both leases; which one."""
    (known,) = set(former.values())

    def taken():
        runs = set(holders(server)[0].values())
        return runs.pop() if len(runs) == 1 and known not in runs else ""

    return until(taken, lambda: f"{holders(server)} is as it was")


def change(tree, server, said):
    """Have a person change an object at the hub, and wait until the site holds it."""
    form = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"said": said}}
    form["metadata"] = {"name": "trio-settings", "namespace": "shop"}
    server.kubectl("apply", "-f", "-", stdin=json.dumps(form))

    def held():
        done = tree.run("get", *SETTINGS, "--at", SITE, "-o", "json")
        return done.returncode == 0 and f'"{said}"' in done.stdout

    until(held, lambda: f"{said} does not arrive: {tree.run('status').stdout}")


def test_a_member_that_takes_over_writes_to_the_hub_and_the_former_one_no_more(hub):
    tree, server = hub
    did(tree, "apply", "-f", "leafcast/shop")
    did(tree, "wait", "shop", "--for", "synced")
    change(tree, server, "first")
    before, (runs, places) = uids_at(tree, SITE), holders(server)

    # It is stopped, another one writes, and what it meant to write comes late.
    former = tree.until_active(CENTRE)
    pid = tree.pid(CENTRE, former)
    os.kill(pid, signal.SIGSTOP)
    until(lambda: stands_still(pid), f"process {pid} does not stand still")
    successor = until_taken(server, runs)
    change(tree, server, "second")
    os.kill(pid, signal.SIGCONT)
    until(lambda: tree.active(CENTRE) != former, f"{former} is active")
    until(lambda: "has lost" in tree.log(CENTRE, former).split("is active")[-1], former)
    change(tree, server, "third")
    did(tree, "wait", "shop", "--for", "synced")
    assert holders(server) == (dict.fromkeys(runs, successor), places)
    assert uids_at(tree, SITE) == before

    # One that is killed is followed at once, as all are one centre to the hub.
    tree.kill(CENTRE, tree.until_active(CENTRE))
    until_taken(server, dict.fromkeys(runs, successor))
    change(tree, server, "fourth")
    did(tree, "wait", "shop", "--for", "synced")
    assert (uids_at(tree, SITE), holders(server)[1]) == (before, places)
