"""The walkthrough in containers prints what the page shows, under a real Docker daemon."""

import os
import uuid

import pytest

from tests.docker.daemon import NATS_IMAGE, PYTHON_IMAGE, ROOT, need_docker
from tests.docker.test_compose import compose_program
from tests.e2e.test_documents import Shell, walk

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]

PLUGIN_BY_PROGRAM = 'docker() { shift; command docker-compose "$@"; }'
WHAT_HAPPENED = "tail -n 30 *.log; docker compose ps -a; docker compose logs --tail 5"


def test_commands_of_the_page_about_containers_print_what_is_shown(tmp_path, monkeypatch):
    need_docker(NATS_IMAGE, PYTHON_IMAGE)
    program = compose_program()
    monkeypatch.setenv("COMPOSE_FILE", str(ROOT / "compose.yaml"))
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", f"leafcast-page-{uuid.uuid4().hex[:8]}")
    monkeypatch.setenv("DOCKER_CONFIG", os.environ.get("DOCKER_CONFIG", str(tmp_path / "docker")))
    shell = Shell(tmp_path)
    try:
        if len(program) == 1:
            shell.run(PLUGIN_BY_PROGRAM)
        walk("docs/containers.md", shell)
    except AssertionError as error:
        error.add_note("\n".join(shell.run(WHAT_HAPPENED)[1]))
        raise
    finally:
        shell.run("docker compose down -v --remove-orphans --timeout 5")
        shell.end()
