"""Reports in a real cluster come up as they are there, and go with it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.core.collectors.upsynced import Sources
from relay.space_errors import SpaceError
from relay.syncer.upsyncer import Upsyncer
from schemas.objects.manifest_files import load_manifests
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import UpsyncClause, open_copy, read_copy
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.contract.spaces import on_api_server
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
from tests.real_manifests import folder

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

GROUP, PLURAL = "wgpolicyk8s.io", "policyreports"
NO_SOURCES = Sources(0, frozenset())
REPORTS = UpsyncClause(GROUP, ("*",), ("shop",), ("*",))
EDGE = NodePath.parse("/s1")


@dataclass
class EdgeNode:
    """What its node says of what comes up."""

    upsync: frozenset = frozenset({REPORTS})
    knows_upsync: bool = True
    session: str = "first"
    upsync_sources: Sources = NO_SOURCES


def report(name, fail, namespace="shop"):
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": name, "namespace": namespace, "labels": {"by": "kyverno"}},
        "summary": {"pass": 1, "fail": fail, "warn": 0, "error": 0, "skip": 0},
    }


@dataclass
class Bench:
    """An edge's bus and its parent's, and what the edge says of what comes up."""

    parent: MemoryBus
    edge: MemoryBus
    observed: list

    async def observe(self, event):
        self.observed.append(event)

    async def objects(self):
        page = await self.parent.read_copies("s1", 1)
        return [open_copy(read_copy(copy.data, copy.key)) for copy in page.copies]

    async def come(self, expected):
        async def same():
            found = await self.objects()
            return {obj["metadata"]["name"]: obj["summary"]["fail"] for obj in found} == expected

        await eventually(same, lambda: f"{self.observed[-1:]}", seconds=60)


@pytest.fixture
async def bench():
    network = MemoryNetwork()
    made = Bench(MemoryBus(network, NodePath()), MemoryBus(network, EDGE), [])
    await made.parent.start()
    await made.parent.add_child("s1", "nkey")
    await made.edge.start()
    await made.parent.open_copies("s1")
    yield made
    await made.edge.close()
    await made.parent.close()


async def test_reports_of_a_real_cluster_come_up_and_go(module_server, bench):
    definition = Path(folder("kyverno")) / "crd-wgpolicyk8s.io_policyreports.yaml"
    (crd,) = load_manifests(definition.read_text(), str(definition))
    clock, node, moved = SystemClock(), EdgeNode(), asyncio.Event()

    async def progress():
        await moved.wait()
        moved.clear()

    kubeconfig = module_server.kubeconfig
    async with on_api_server(kubeconfig, clock, SystemDice(), ("shop", "other")) as space:
        upsyncer = Upsyncer(space, bench.edge, clock, bench.observe)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(upsyncer.run(lambda: node, progress))
            await space.apply(crd.object, "me")

            async def applied():
                try:
                    return await space.apply(report("one", 3), "kyverno")
                except SpaceError:
                    return None

            await eventually(applied, "the kind is not served")
            await space.apply(report("elsewhere", 9, "other"), "kyverno")
            await bench.come({"one": 3})
            await space.apply(report("two", 0), "kyverno")
            await space.apply(report("one", 4), "kyverno")
            await bench.come({"one": 4, "two": 0})
            seen = bench.observed
            await eventually(lambda: seen[-1].stated and seen[-1].behind_since is None)
            await space.delete(ObjectKey(GROUP, PLURAL, "shop", "two"))
            await bench.come({"one": 4})

            (metadata,) = (obj["metadata"] for obj in await bench.objects())
            assert metadata["labels"] == {"by": "kyverno"}
            assert metadata["uid"]
            assert not metadata.keys() & {"managedFields", "resourceVersion"}

            node.upsync = frozenset()
            moved.set()
            await bench.come({})
            running.cancel()
