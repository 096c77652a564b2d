"""compose.yaml under a real Docker daemon: the whole tree in containers, as its user runs it."""

import json
import shutil
import subprocess
import time
import uuid

import pytest

from tests.docker.daemon import NATS_IMAGE, PYTHON_IMAGE, ROOT, need_docker

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

WAIT_SECONDS = 60
SITES = 6
SITE = "/region-2/site-3"
SHOP = sorted((ROOT / "leafcast" / "shop").glob("*.yaml"))


class Compose:
    """One project, with a name and a volume of its own."""

    def __init__(self, *program: str) -> None:
        project = f"leafcast-test-{uuid.uuid4().hex[:8]}"
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
def compose():
    """The tree, up, with the shop at every site."""
    need_docker(NATS_IMAGE, PYTHON_IMAGE)
    made = Compose(*compose_program())
    try:
        made("up", "-d", "--build")
        until(lambda: "/" in made("exec", "-T", "centre", "ls", "/tree/admin.json"), "no centre")
        text = "\n---\n".join(file.read_text() for file in SHOP)
        until(lambda: made.leafcast("apply", "-f", "-", stdin=text), "the centre does not answer")
        healthy(made, SITES)
        yield made
    finally:
        made("down", "-v", "--timeout", "5")


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


def test_what_is_applied_in_the_centres_container_works_at_every_site(compose):
    healthy(compose, sites(compose))
    seen = compose.leafcast("get", "deployments", "-n", "shop", "-o", "name", "--at", SITE)
    assert "deployment.apps/web" in seen


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


def test_a_node_joins_from_a_container_of_its_own_and_leaves_for_good(compose):
    count = sites(compose)
    bundle, path = "/tree/late.join.json", "/region-1/late"
    compose.leafcast("node", "add", path, "--bundle", "-o", bundle)
    joining = ("join", bundle, "--data-dir", "/tree/late")
    compose("run", "-d", "--no-deps", "region-1-site-1", *joining)
    healthy(compose, count + 1)
    compose.leafcast("node", "remove", path)
    healthy(compose, count)


def test_a_site_that_was_laid_out_and_removed_does_not_come_back_with_the_centre(compose):
    count = sites(compose)
    compose.leafcast("node", "remove", "/region-1/site-1")
    healthy(compose, count - 1)
    compose("restart", "centre")
    healthy(compose, count - 1)
    listed = json.loads(compose.leafcast("node", "list", "-o", "json"))
    assert "/region-1/site-1" not in json.dumps(listed)
