"""Reports in a real cluster come up as they are there, and go with it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.memory.bus import MemoryBus, MemoryNetwork
from relay.syncer.upsyncer import Upsyncer
from schemas.identity import NodePath
from schemas.manifests import load_manifests
from schemas.objects import ObjectKey
from schemas.upsync import UpsyncClause, open_copy, read_copy
from tests.awaiting import eventually
from tests.contract.spaces import on_api_server
from tests.real_manifests import folder

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

GROUP, PLURAL = "wgpolicyk8s.io", "policyreports"
REPORTS = UpsyncClause(GROUP, ("*",), ("shop",), ("*",))
EDGE = NodePath.parse("/s1")


@dataclass
class EdgeNode:
    """What its node says of what comes up."""

    upsync: frozenset = frozenset({REPORTS})
    knows_upsync: bool = True
    session: str = "first"


def report(name, fail, namespace="shop"):
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": name, "namespace": namespace, "labels": {"by": "kyverno"}},
        "summary": {"pass": 1, "fail": fail, "warn": 0, "error": 0, "skip": 0},
    }


async def test_reports_of_a_real_cluster_come_up_and_go(module_server):
    definition = Path(folder("kyverno")) / "crd-wgpolicyk8s.io_policyreports.yaml"
    (crd,) = load_manifests(definition.read_text(), str(definition))
    network, clock, node = MemoryNetwork(), SystemClock(), EdgeNode()
    parent, edge = MemoryBus(network, NodePath()), MemoryBus(network, EDGE)
    await parent.start()
    await parent.add_child("s1", "nkey")
    await edge.start()
    await parent.open_copies("s1")
    observed, moved = [], asyncio.Event()

    async def observe(event):
        observed.append(event)

    async def progress():
        await moved.wait()
        moved.clear()

    async def fails():
        page = await parent.read_copies("s1", 1)
        found = [open_copy(read_copy(copy.data, copy.key)) for copy in page.copies]
        return {obj["metadata"]["name"]: obj["summary"]["fail"] for obj in found}

    async def come(expected):
        async def same():
            return await fails() == expected

        await eventually(same, lambda: f"{observed[-1:]}", seconds=60)

    kubeconfig = module_server.kubeconfig
    async with on_api_server(kubeconfig, clock, SystemDice(), ("shop", "other")) as space:
        upsyncer = Upsyncer(space, edge, clock, observe)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(upsyncer.run(lambda: node, progress))
            await space.apply(crd.object, "me")

            async def applied():
                try:
                    return await space.apply(report("one", 3), "kyverno")
                except Exception:  # noqa: BLE001 - the kind is not served yet
                    return None

            await eventually(applied)
            await space.apply(report("elsewhere", 9, "other"), "kyverno")
            await come({"one": 3})
            await space.apply(report("two", 0), "kyverno")
            await space.apply(report("one", 4), "kyverno")
            await come({"one": 4, "two": 0})
            await eventually(lambda: observed[-1].stated and observed[-1].behind_since is None)
            await space.delete(ObjectKey(GROUP, PLURAL, "shop", "two"))
            await come({"one": 4})

            page = await parent.read_copies("s1", 1)
            metadata = open_copy(read_copy(page.copies[0].data))["metadata"]
            assert metadata["labels"] == {"by": "kyverno"}
            assert metadata["uid"]
            assert not metadata.keys() & {"managedFields", "resourceVersion"}

            node.upsync = frozenset()
            moved.set()
            await come({})
            running.cancel()
    await edge.close()
    await parent.close()
