"""The Docker daemon of the tests, if there is one: what needs it is skipped with the remedy."""

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NATS_IMAGE = "nats:2.15.1"
[PYTHON_IMAGE] = re.findall(r"PYTHON_IMAGE:-([^@]+)@", (ROOT / "deploy/Dockerfile").read_text())
"""Without its digest: where it cannot be pulled, another one has its name."""
READY_SECONDS = 60
_REMEDY = "as root, `eval $(tests/docker/prepare)` gets a daemon and the images"


def need_docker(*images: str) -> None:
    """Skip the test, and say how to get it, unless a daemon runs and has the images."""
    lacking = next(filter(None, map(_lacking, images)), None)
    if lacking:
        pytest.skip(f"NOT RUN: {lacking}; {_REMEDY}")


@functools.cache
def _lacking(image: str) -> str | None:
    try:
        run = subprocess.run
        asked = {"capture_output": True, "text": True, "timeout": 20, "check": False}
        if run(["docker", "info", "--format", "{{.ServerVersion}}"], **asked).returncode:
            return "no Docker daemon answers"
        if run(["docker", "image", "inspect", image], **asked).returncode:
            return f"the Docker daemon has no image {image}"
    except FileNotFoundError:
        return "there is no program docker"
    except subprocess.TimeoutExpired:
        return "the Docker daemon does not answer in time"
    return None


def nats_container(folder: Path, config: Path):
    """A NATS container on this machine's own network, that runs on a file of the folder."""
    from testcontainers.core.config import testcontainers_config
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    # The reaper is an image of its own, to be pulled; each container is stopped by its test.
    testcontainers_config.ryuk_disabled = True
    ready = LogMessageWaitStrategy("Server is ready").with_startup_timeout(READY_SECONDS)
    return (
        DockerContainer(NATS_IMAGE)
        .with_command(["--config", str(config)])
        .with_volume_mapping(str(folder), str(folder), "rw")
        .with_kwargs(network_mode="host")
        .waiting_for(ready)
    )
