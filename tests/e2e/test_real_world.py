"""Manifests that no one made for Leafcast, and objects as large as they may be, reach the edges."""

import base64
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from leafcast.demo.workload import load_files
from schemas.objects.objects import BUILT_IN_KINDS
from tests.memory_tree import memory_tree
from tests.real_manifests import folder

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("online-boutique", "kyverno", "kube-prometheus")
SMALL = ("--regions", "1", "--sites", "2", "--once", "-o", "json")
DEFINITION = "customresourcedefinitions"


def demo(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "leafcast", "demo", *SMALL, *arguments],
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", FOLDERS)
async def test_real_manifests_reach_edges_whole_and_in_an_order_that_works(tmp_path, name):
    workload = load_files([folder(name)], str)
    kinds = BUILT_IN_KINDS.extended_by(workload.objects)
    sent = [obj for obj in workload.objects if obj["kind"] != "EdgePlacement"]
    going = {kinds.key_of(obj): obj for obj in sent}
    expected = {key: obj for key, obj in going.items() if key not in workload.kept}
    async with memory_tree(tmp_path, ["/r1", "/r1/s1"]) as tree:
        [cluster], [space] = tree.clusters.values(), tree.spaces.values()
        order, apply = [], cluster.apply

        async def told(obj, manager, **options):
            applied = await apply(obj, manager, **options)
            order.append(kinds.key_of(obj))
            return applied

        cluster.apply = told
        await tree.apply(*workload.objects)
        await tree.until(
            workload.placements[0],
            lambda c: (
                c.exact and c.summary.states == {"synced": 1} and c.summary.health == {"healthy": 1}
            ),
            seconds=200,
        )
        for key, obj in expected.items():
            found = await space.get(key)
            assert found is not None, key
            for field in obj.keys() - {"metadata", "status", "stringData"}:
                assert field in found or obj[field] is None, (key, field)
    first = {key: order.index(key) for key in set(order)}
    made_by = {
        (obj["spec"]["group"], obj["spec"]["names"]["plural"]): first[kinds.key_of(obj)]
        for obj in sent
        if obj["kind"] == "CustomResourceDefinition"
    }
    for key, at in first.items():
        assert at >= made_by.get(key.group_resource, -1), key
        for namespace in (other for other in first if other.resource == "namespaces"):
            assert key.namespace != namespace.name or at > first[namespace], key


@pytest.mark.nats
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["kyverno", "kube-prometheus"])
def test_real_manifests_go_through_real_servers(tmp_path, name):
    done = demo("--file", folder(name), "--timeout", "120", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["synced"], said["healthy"]) == (2, 2)


def noise(name, size):
    """A manifest with a text that does not compress, `size` bytes long."""
    raw = random.Random(name).randbytes(size * 3 // 4)
    text = base64.b64encode(raw).decode()
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: big}}\n"
        f"data:\n  noise: {text}\n---\n"
    )


@pytest.mark.nats
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_object_up_to_the_limit_goes_through_real_servers_though_no_message_holds_it(tmp_path):
    manifest = tmp_path / "large.yaml"
    manifest.write_text(noise("largest", 1_572_000) + noise("large", 1_200_000))
    done = demo("--file", str(manifest), "--timeout", "90", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["healthy"] == 2


@pytest.mark.nats
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_an_object_over_the_limit_is_refused_with_name_size_and_limit(tmp_path):
    manifest = tmp_path / "too-large.yaml"
    manifest.write_text(noise("too-large", 1_600_000))
    done = demo("--file", str(manifest), folder=tmp_path)
    assert done.returncode == 1
    assert "configmaps/big/too-large: 1600" in done.stderr
    assert "at most 1572864" in done.stderr
