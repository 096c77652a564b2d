"""Clocks, dice and objects for the tests of spaces."""

import asyncio
import base64
import json
import random
import subprocess
import sys
import time
import uuid
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import nats

from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.core.instant import Instant
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually, until

START_SECONDS = 60
MADE = (
    "clusterroles",
    "configmaps",
    "customresourcedefinitions",
    "deployments",
    "jobs",
    "services",
)
"""Resources of which the tests of all spaces make objects; those of custom kinds go with them."""


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
        loop = asyncio.get_running_loop()
        wall = time.time() + getattr(loop, "leapt", 0.0) + self.ahead
        return Instant(loop.time() + self.ahead, int(wall * 1000))

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
async def embedded(url, clock, bucket=None, namespaces=("shop",)):
    """An embedded space on a server, with these namespaces."""
    connection = await nats.connect(url)
    try:
        space = EmbeddedSpace(connection, bucket or uuid.uuid4().hex, clock, SeededDice())
        await space.open()
        for name in namespaces:
            await space.apply(namespace(name), "me", create_only=True)
        yield space
    finally:
        await connection.close()


@asynccontextmanager
async def on_api_server(kubeconfig, clock, dice, namespaces):
    """A space on a server that is used again: at the end what was made is gone.

    Namespaces stay: without controllers a server does not end them.
    """
    space = KubernetesSpace(Kubeconfig(str(kubeconfig)), clock, dice)
    try:
        for name in namespaces:
            await space.apply(namespace(name), "me")
        before, before_kinds = await _uids(space), await space.kinds()
        yield space
        for key, uid in (await _uids(space)).items():
            if before.get(key) != uid:
                await space.delete(key)
        kinds = {kind.group_resource for kind in before_kinds}

        async def as_before():
            return {kind.group_resource for kind in await space.kinds()} == kinds

        await eventually(as_before, "what was defined is still served")
    finally:
        await space.close()


async def _uids(space):
    """Which objects there are, of the kinds that tests make."""
    found = {}
    for kind in await space.kinds():
        if kind.resource in MADE:
            for obj in (await space.list(kind.group, kind.resource)).objects:
                metadata = obj["metadata"]
                place = metadata.get("namespace", "")
                key = ObjectKey(kind.group, kind.resource, place, metadata["name"])
                found[key] = metadata["uid"]
    return found


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
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


def namespace(name="shop"):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def definition(plural, kind, *, namespaced=True):
    """A kind of its own whose objects may hold anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [version],
        },
    }


OX = ObjectKey("example.com", "oxen", "shop", "ox")


def ox(**spec):
    """An object that may be as large as any: what is built in has limits of its own."""
    metadata = {"name": OX.name, "namespace": OX.namespace}
    return {"apiVersion": "example.com/v1", "kind": "Ox", "metadata": metadata, "spec": spec}


async def serve(space, wanted):
    """Apply a definition, and wait until its kind is served."""
    await space.apply(wanted, "me")
    names = (wanted["spec"]["group"], wanted["spec"]["names"]["plural"])

    async def served():
        with suppress(SpaceError):
            await space.list(*names)
            return names in {kind.group_resource for kind in await space.kinds()}
        return False

    await eventually(served, f"{names} is not served")


def noise(seed, count=1_500_000):
    """Text that no compression makes small enough for one message."""
    return base64.b64encode(SeededDice(seed).entropy(count * 3 // 4)).decode()
