"""Reports that a policy engine makes at edges are read at their region, whatever is killed."""

import asyncio
import datetime as dt
import json
import os
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from leafcast.client import CallFailed, connect
from schemas.objects.manifest_files import load_manifests
from schemas.objects.objects import ObjectKey
from tests.namespaces import namespace_object
from tests.nats.chaos_member import LIFELINE, ROOT, until
from tests.nats.chaos_tree import chaos_tree
from tests.real_manifests import folder

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")
GROUP, PLURAL = "wgpolicyk8s.io", "policyreports"
CLAUSE = {"apiGroup": GROUP, "resources": [PLURAL], "namespaces": ["*"], "names": ["*"]}
FAST = {
    "relay.core.link.session.HELLO_SECONDS": 1.0,
    "relay.core.link.session.SILENT_AFTER_SECONDS": 3.0,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    definition = Path(folder("kyverno")) / "crd-wgpolicyk8s.io_policyreports.yaml"
    place = tmp_path_factory.mktemp("upsync")
    async with chaos_tree(place, [REGION], EDGES, FAST) as grown:
        (crd,) = load_manifests(definition.read_text(), str(definition))
        await grown.apply(crd.object)
        await grown.apply(placement([CLAUSE]))
        await grown.counted("reports", synced=len(EDGES))
        for path in EDGES:
            async with grown.members[path].space() as space:
                await space.apply(namespace_object("shop"), "kyverno")
        yield grown


def placement(upsync):
    clause = {"apiGroup": "apiextensions.k8s.io", "objectNames": [f"{PLURAL}.{GROUP}"]}
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "reports"},
        "spec": {"locationSelectors": [{}], "downsync": [clause], "upsync": upsync},
    }


def report(name, fail):
    result = {"policy": "require-labels", "rule": "check", "result": "fail", "message": "no label"}
    return {
        "apiVersion": f"{GROUP}/v1alpha2",
        "kind": "PolicyReport",
        "metadata": {"name": name, "namespace": "shop"},
        "summary": {"pass": 1, "fail": fail, "warn": 0, "error": 0, "skip": 0},
        "results": [result] * fail,
    }


async def arise(tree, path, name, fail):
    async with tree.members[path].space() as space:
        await space.apply(report(name, fail), "kyverno")


async def end(tree, path, name):
    async with tree.members[path].space() as space:
        await space.delete(ObjectKey(GROUP, PLURAL, "shop", name))


async def leafcast(tree, *arguments):
    """The command as its user runs it: its exit code, what it prints, and what it says beside."""
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "leafcast", *arguments, "--data-dir", str(tree.centre.folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"},
        stdin=LIFELINE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


async def come(tree, expected):
    """Wait until the copies that the whole tree shows are these, by edge and name, with fails."""
    seen = ("", "", "")

    async def same():
        nonlocal seen
        seen = await leafcast(tree, "get", PLURAL, "-A", "--all-edges", "-o", "json")
        return not seen[0] and counted(seen[1]) == expected

    await until(same, lambda: f"{seen[1][:3000]}{seen[2]}, not {expected}", 90)


def counted(lines):
    found = {}
    for line in lines.splitlines():
        obj = json.loads(line)
        at = obj["metadata"]["annotations"]["leafcast.io/edge"], obj["metadata"]["name"]
        found[at] = obj["summary"]["fail"]
    return found


async def test_reports_are_read_through_a_killed_region_and_with_an_edge_away(tree):
    e1, e2 = EDGES
    await arise(tree, e1, "one", 3)
    await arise(tree, e1, "two", 1)
    await arise(tree, e2, "one", 0)
    await come(tree, {(e1, "one"): 3, (e1, "two"): 1, (e2, "one"): 0})

    region = tree.members[REGION]
    region.strike_server()
    region.kill()
    await region.ended()
    code, _, said = await leafcast(tree, "get", PLURAL, "-A", "--all-edges")
    assert code == 1
    assert "not all of the tree answered: /r1" in said
    await end(tree, e1, "two")
    await arise(tree, e1, "one", 4)
    await arise(tree, e2, "new", 2)
    region.start()
    await come(tree, {(e1, "one"): 4, (e2, "one"): 0, (e2, "new"): 2})

    await read_from_python(tree)

    edge = tree.members[e1]
    edge.strike_server()
    edge.kill()
    await edge.ended()
    away_at = dt.datetime.now(dt.UTC)

    async def answers_without_it():
        nonlocal shown
        shown = await leafcast(tree, "get", PLURAL, "-A", "--at", e1)
        return not shown[0]

    shown = ()
    await until(answers_without_it, lambda: f"{shown}")
    header, row = shown[1].splitlines()
    assert header.split("   ")[-1].strip() == "AS OF"
    assert row.split()[:2] == ["shop", "one"]
    as_of = dt.datetime.fromisoformat(row.split()[-1])
    assert dt.timedelta(seconds=-2) < away_at - as_of < dt.timedelta(seconds=60)
    assert "/r1/e1 cannot be reached" in shown[2]

    edge.start()
    await arise_when_back(tree, e1)
    await come(tree, {(e1, "back"): 1, (e1, "one"): 4, (e2, "one"): 0, (e2, "new"): 2})

    await tree.apply(placement([]))

    async def nothing_is_brought_up():
        return not [it async for it in from_python(tree, None)]

    await until(nothing_is_brought_up, "copies stay at the region", 90)


async def read_from_python(tree):
    e1, e2 = EDGES
    found = {(str(it.path), it.object["metadata"]["name"]) async for it in from_python(tree, None)}
    assert found == {(e1, "one"), (e2, "one"), (e2, "new")}
    failing = from_python(tree, None, "returned.summary.fail > 2")
    assert [it.object["summary"]["fail"] async for it in failing] == [4]
    [it async for it in from_python(tree, e1)]
    with pytest.raises(CallFailed, match="no child e9"):
        [it async for it in from_python(tree, "/r1/e9")]
    async with connect(tree.centre.folder) as client:
        there = dict[str, str]()

        async def all_synced():
            nonlocal there
            there = {str(it.path): it.state async for it in client.destinations("reports")}
            return there == {e1: "synced", e2: "synced"}

        await until(all_synced, lambda: there)
        watching = client.watch("edgeplacements.edge.kubestellar.io")
        first = await anext(watching)
        assert (first.kind, first.key.name) == ("added", "reports")
        await watching.aclose()


async def from_python(tree, at, where=""):
    async with connect(tree.centre.folder) as client:
        wanted = {"at": at, "namespace": "shop", "filter": where}
        async for copy in client.upsynced(f"{PLURAL}.{GROUP}", **wanted):
            yield copy


async def arise_when_back(tree, path):
    async def done():
        try:
            await arise(tree, path, "back", 1)
        except Exception:  # noqa: BLE001 - its server is still starting
            return False
        return True

    await until(done)
