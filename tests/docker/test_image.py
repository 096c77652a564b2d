"""The image, as a container that may write nowhere but to its volume: healthy, and then not."""

import json
import os
import signal
import subprocess
import time
import uuid

import pytest

from tests.docker.daemon import PYTHON_IMAGE, ROOT, need_docker

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(300)]

WAIT_SECONDS = 90
QUICK = ("--health-interval=1s", "--health-retries=2", "--health-start-period=90s")
TREE = ("up", "--foreground", "--regions", "0", "--health-port", "8086")


def docker(*words):
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout.strip()


@pytest.fixture
def container():
    """A centre in a container of a name of its own, without a network and with a read-only root."""
    need_docker(PYTHON_IMAGE)
    name = f"leafcast-image-{uuid.uuid4().hex[:8]}"
    build = ("--build-arg", f"PYTHON_IMAGE={PYTHON_IMAGE}", "-f", str(ROOT / "deploy/Dockerfile"))
    docker("build", "-q", "-t", name, *build, str(ROOT))
    bounds = ("--read-only", "--tmpfs=/tmp", "--cap-drop", "ALL", "--network", "none")
    try:
        docker(
            "run", "-d", "--name", name, *bounds, "--volume", f"{name}:/tree", *QUICK, name, *TREE
        )
        yield name
    finally:
        for words in (("rm", "-f", name), ("volume", "rm", name), ("rmi", name)):
            subprocess.run(["docker", *words], capture_output=True, check=False)


def health_is(name, wanted):
    """Wait until the daemon says so."""
    end = time.monotonic() + WAIT_SECONDS
    while (found := json.loads(docker("inspect", name))[0]["State"])["Health"]["Status"] != wanted:
        assert found["Running"], docker("logs", name)
        assert time.monotonic() < end, found
        time.sleep(0.3)


def test_a_container_is_healthy_while_its_node_answers_and_not_when_it_hangs(container):
    health_is(container, "healthy")
    assert docker("exec", container, "id", "-u") != "0"
    assert "are what was installed" in docker("exec", container, "leafcast", "version", "--verify")
    _, *rows = docker("top", container, "-o", "pid,args").splitlines()
    # Who asks for its health may be there, too, and is killed if it is stopped.
    others = ("nats-server", "container_health")
    ours = [row for row in rows if "leafcast" in row and not any(it in row for it in others)]
    nodes = [int(row.split()[0]) for row in ours]
    for pid in nodes:
        os.kill(pid, signal.SIGSTOP)
    health_is(container, "unhealthy")
    for pid in nodes:
        os.kill(pid, signal.SIGCONT)
    health_is(container, "healthy")
