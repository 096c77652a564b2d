"""compose.yaml under a real Docker daemon: the page about it is walked, and then things break."""

import json
import os
import shutil
import subprocess
import time
import uuid

import pytest

from tests.docker.daemon import PYTHON_IMAGE, ROOT, need_docker
from tests.e2e.test_documents import Shell, walk

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

WAIT_SECONDS = 60
SITE = "/region-2/site-3"
PAGE = "docs/containers.md"
PLUGIN_BY_PROGRAM = 'docker() { shift; command docker-compose "$@"; }'
WHAT_HAPPENED = "tail -n 30 *.log; docker compose ps -a; docker compose logs --tail 5"


class Compose:
    """One project, with a name and a volume of its own."""

    def __init__(self, project: str, *program: str) -> None:
        self._command = [*program, "-p", project, "-f", str(ROOT / "compose.yaml")]

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [*self._command, *arguments], input=stdin, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def leafcast(self, *arguments: str, stdin: str = "") -> str:
        return self("exec", "-T", "centre", "leafcast", *arguments, stdin=stdin)

    def shop(self):
        """What the centre says of the placement."""
        return json.loads(self.leafcast("status", "shop", "-o", "json"))


def compose_program() -> list[str]:
    plugin = ["docker", "compose"]
    if subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0:
        return plugin
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    pytest.skip("NOT RUN: neither `docker compose` nor docker-compose; apt install docker-compose")


@pytest.fixture(scope="module")
def compose(tmp_path_factory):
    """The tree that the page shows, before its end: up, with the shop at every site."""
    need_docker(PYTHON_IMAGE)
    program, project = compose_program(), f"leafcast-page-{uuid.uuid4().hex[:8]}"
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("COMPOSE_FILE", str(ROOT / "compose.yaml"))
        environment.setenv("COMPOSE_PROJECT_NAME", project)
        environment.setenv("PYTHON_IMAGE", PYTHON_IMAGE)
        config = os.environ.get("DOCKER_CONFIG", str(folder / "docker"))
        environment.setenv("DOCKER_CONFIG", config)
        shell = Shell(folder)
        try:
            if len(program) == 1:
                shell.run(PLUGIN_BY_PROGRAM)
            walk(PAGE, shell, slice(None, -1))
            yield Compose(project, *program)
            walk(PAGE, shell, slice(-1, None))
        except AssertionError as error:
            error.add_note("\n".join(shell.run(WHAT_HAPPENED)[1]))
            raise
        finally:
            shell.run("docker compose down -v --remove-orphans --timeout 5")
            shell.end()


def until(met, what: str):
    """Ask again until it holds; failures of the question count as no."""
    end, last = time.monotonic() + WAIT_SECONDS, None
    while time.monotonic() < end:
        try:
            if last := met():
                return last
        except AssertionError as error:
            last = error
        time.sleep(0.3)
    raise AssertionError(f"{what}: {last}")


def healthy(compose, count):
    def met():
        shop = compose.shop()
        assert shop["complete"], shop
        assert shop["health"] == {"healthy": count}, shop
        return True

    until(met, f"not healthy at {count}")


def sites(compose):
    """How many sites there are, once all are counted."""
    until(lambda: compose.shop()["complete"], "not complete")
    return compose.shop()["destinations"]


def test_servers_and_nodes_that_are_killed_and_started_again_go_on(compose):
    count = sites(compose)
    healthy(compose, count)
    compose("kill", "nats-region-1", "region-2", "nats-centre", "centre")
    compose("up", "-d", "--no-build")
    until(lambda: compose.shop()["complete"], "not complete again")
    healthy(compose, count)
    setting = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"later": "yes"}}
    setting["metadata"] = {"name": "shop-settings", "namespace": "shop"}
    compose.leafcast("apply", "-f", "-", stdin=json.dumps(setting))
    arrived = ("get", "configmap", "shop-settings", "-n", "shop", "-o", "json", "--at", SITE)
    until(lambda: json.loads(compose.leafcast(*arrived))["data"].get("later") == "yes", "not there")


def test_a_site_that_was_laid_out_and_removed_does_not_come_back_with_the_centre(compose):
    count = sites(compose)
    compose.leafcast("node", "remove", "/region-1/site-1")
    healthy(compose, count - 1)
    compose("restart", "centre")
    healthy(compose, count - 1)
    listed = json.loads(compose.leafcast("node", "list", "-o", "json"))
    assert "/region-1/site-1" not in json.dumps(listed)
