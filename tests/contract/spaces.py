"""Clocks, dice and objects for the tests of spaces."""

import asyncio
import json
import random
import subprocess
import sys
import time
import uuid
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import nats

from relay.adapters.embedded_space import EmbeddedSpace
from relay.core.events import Instant
from tests.awaiting import until

START_SECONDS = 60


@contextmanager
def running_server(folder, *, killed=False):
    """A nats-server on what the folder holds: its address. At the end it stops, or is `killed`."""
    binary = Path(sys.executable).with_name("nats-server")
    arguments = ["-a", "127.0.0.1", "-p", "-1", "-js", "-sd", folder, "--ports_file_dir", folder]
    process = subprocess.Popen([binary, *arguments], stderr=subprocess.DEVNULL)
    try:
        yield _url(folder / f"nats-server_{process.pid}.ports")
    finally:
        (process.kill if killed else process.terminate)()
        process.wait()


def _url(ports: Path) -> str:
    def written() -> str | None:
        with suppress(OSError, ValueError):
            return json.loads(ports.read_text())["nats"][0]
        return None

    return until(written, "nats-server did not start", seconds=START_SECONDS)


class HandClock:
    """Real waiting, and a time that a test can move."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> Instant:
        seconds = asyncio.get_running_loop().time() + self.ahead
        return Instant(seconds, int((time.time() + self.ahead) * 1000))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class SeededDice:
    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def entropy(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def fraction(self) -> float:
        return self._random.random()


@asynccontextmanager
async def embedded(url, clock, bucket=None):
    connection = await nats.connect(url)
    try:
        space = EmbeddedSpace(connection, bucket or uuid.uuid4().hex, clock, SeededDice())
        await space.open()
        yield space
    finally:
        await connection.close()


def config_map(name="settings", namespace="shop", labels=None, **data):
    metadata = {"name": name, "namespace": namespace}
    if labels is not None:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def deployment(name="web", namespace="shop", image="web:1", replicas=2, **spec):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "main", "image": image}]}},
            **spec,
        },
    }


def namespace(name="shop"):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
