"""One hub has one centre: a second one is refused by name, and writes nothing there."""

import json
import os
import signal

import pytest

from tests.awaiting import until
from tests.kube.program import Program

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

LEASES = ("-n", "leafcast-system", "get", "leases", "-o", "json")
SMALL = ("--regions", "1", "--sites", "1")
EVERYTHING = "edgeplacements,locations,synctargets,namespaces,configmaps,secrets,serviceaccounts"


@pytest.fixture
def programs(tmp_path, clean_server):
    """Two trees, and one hub that is made ready."""
    made = [Program(tmp_path / name) for name in ("one", "other")]
    install = made[0].run("install", "--kubeconfig", str(clean_server.kubeconfig))
    clean_server.kubectl("apply", "-f", "-", stdin=install.stdout)
    clean_server.await_definitions()
    yield made
    for program in made:
        program.run("down")


def on(server):
    file = str(server.kubeconfig)
    return (*SMALL, "--workloads-kubeconfig", file, "--inventory-kubeconfig", file)


def holders(server):
    return {
        it["metadata"]["name"]: it["metadata"]["annotations"]["leafcast.io/claimed-by-tree"]
        for it in json.loads(server.kubectl(*LEASES))["items"]
    }


def written(server):
    """What lies in the hub beside the leases, and in which version."""
    found = json.loads(server.kubectl("get", EVERYTHING, "-A", "-o", "json"))["items"]
    return {(it["kind"], it["metadata"]["name"]): it["metadata"]["resourceVersion"] for it in found}


def told(program, reason, word=""):
    """How often the centre noted a reason with this word in its message."""
    events = map(json.loads, program.run("events", "-o", "json").stdout.splitlines())
    return sum(it["count"] for it in events if it["reason"] == reason and word in it["message"])


def test_one_hub_has_one_centre_until_a_person_gives_it_to_another(clean_server, programs):
    one, other = programs
    one.up(*on(clean_server))
    held = holders(clean_server)
    assert held.keys() == {"leafcast-inventory", "leafcast-workloads"}
    (tree,) = set(held.values())

    before = written(clean_server)
    refused = other.run("up", *on(clean_server))
    assert refused.returncode == 1
    assert tree[:8] in refused.stderr
    assert "--take-over" in refused.stderr
    assert not other.place.folder.exists()
    # A slow machine takes longer to get so far.
    for seconds in ("6", "20", "60"):
        waits = other.run("up", *on(clean_server), "--take-over", "--timeout", seconds)
        other.run("down")
        if "it is the hub of another centre" in waits.stderr:
            break
    assert "it is the hub of another centre" in waits.stderr
    assert (written(clean_server), holders(clean_server)) == (before, held)

    # A person gives the hub to another centre by force, and takes that back.
    lease = ("-n", "leafcast-system", "annotate", "--overwrite", "lease", "leafcast-workloads")
    clean_server.kubectl(*lease, f"leafcast.io/claimed-by-tree={'b' * 32}")
    until(lambda: told(one, "HubLost", "of tree bbbbbbbb"), one.place.log.read_text)
    doctor = one.run("doctor")
    assert (doctor.returncode, "of tree bbbbbbbb" in doctor.stdout) == (1, True)
    lost = written(clean_server)
    # A busy server may have cost the lease before, for as long as it did not answer.
    once = told(one, "HubHeld")
    clean_server.kubectl("-n", "leafcast-system", "delete", "lease", "leafcast-workloads")
    until(lambda: told(one, "HubHeld") > once, one.place.log.read_text)
    assert (lost, holders(clean_server)) == (before, held)

    # Its own next run need not wait, whatever became of the last one.
    os.kill(one.place.daemon()["pid"], signal.SIGKILL)
    one.up()
    assert holders(clean_server) == held
    one.run("down")

    again = other.run("up")
    assert (again.returncode, tree[:8] in again.stderr) == (1, True)
    other.up("--take-over")
    assert set(holders(clean_server).values()).isdisjoint(held.values())
    late = one.run("up")
    assert (late.returncode, "it is the hub of another centre" in late.stderr) == (1, True)
