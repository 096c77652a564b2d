"""Spaces of every kind; the real ones on a nats-server, on a port of its own choosing."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relay.adapters.memory_space import MemorySpace
from tests.contract.spaces import HandClock, SeededDice, embedded

START_SECONDS = 60


@pytest.fixture(scope="session")
def nats_url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nats")
    binary = Path(sys.executable).with_name("nats-server")
    arguments = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder, "--ports_file_dir", folder]
    process = subprocess.Popen([binary, *arguments], stderr=subprocess.DEVNULL)
    try:
        yield _url(folder / f"nats-server_{process.pid}.ports")
    finally:
        process.terminate()
        process.wait()


def _url(ports: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            return json.loads(ports.read_text())["nats"][0]
        time.sleep(0.02)
    raise TimeoutError("nats-server did not start")


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def dice():
    return SeededDice()


@pytest.fixture(params=["memory", pytest.param("embedded", marks=pytest.mark.nats)])
async def space(request, clock, dice):
    if request.param == "memory":
        yield MemorySpace(clock, dice)
        return
    async with embedded(request.getfixturevalue("nats_url"), clock) as made:
        yield made
