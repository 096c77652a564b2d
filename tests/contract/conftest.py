"""A plain nats-server with JetStream, on a port of its own choosing."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

START_SECONDS = 20


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
