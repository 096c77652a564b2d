"""What one `leafcast apply` moves from one placement to another is never gone in between."""

import asyncio
import os
import subprocess
import sys
from itertools import permutations

import pytest
import pytest_asyncio
import yaml

from schemas.objects.objects import ObjectKey
from tests.nats.chaos_member import ROOT, until
from tests.nats.chaos_tree import AWAY, chaos_tree, placement_object

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")
NAMESPACE = ObjectKey("", "namespaces", "", "moving")
COPY = ObjectKey("", "configmaps", "moving", "copy")
ALL_OF_IT = {"apiGroup": "", "resources": ["configmaps"], "namespaces": ["moving"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("apply"), [REGION], EDGES) as grown:
        yield grown


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def clean(tree):
    """Nothing is left of a former test: a namespace that is in use stays as if it were leaving."""
    await apply(tree, list(placements("").values()))
    for path in EDGES:
        await until(lambda path=path: is_empty(tree, path), lambda path=path: path)
    for name in ("left", "right"):
        await tree.counted(name, synced=2)


def placements(holder: str) -> dict[str, dict]:
    """Two placements; one of them selects all of the namespace, the other one nothing of it."""
    found = {}
    for name in ("left", "right"):
        found[name] = placement_object(name, {"env": "prod"})
        if name == holder:
            found[name]["spec"]["downsync"].append(ALL_OF_IT)
    return found


def objects(owner: str, value: str) -> dict[str, dict]:
    """The namespace, and what is in it; selected by their label alone."""
    labels = {"of": owner}
    return {
        "namespace": {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "moving", "labels": labels},
        },
        "copy": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "copy", "namespace": "moving", "labels": labels},
            "data": {"value": value},
        },
    }


async def apply(tree, documents: list[dict]) -> None:
    file = tree.folder / "moved.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    program = [sys.executable, "-m", "leafcast", "apply", "-f", str(file)]
    process = await asyncio.create_subprocess_exec(
        *[*program, "--data-dir", str(tree.centre.folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said


async def uids(tree, path: str) -> tuple[str, str] | None:
    """Of the namespace and of what is in it at an edge; None unless both are there."""
    async with tree.members[path].space() as space:
        found = [await space.get(key) for key in (NAMESPACE, COPY)]
    first, second = (obj["metadata"]["uid"] if obj else "" for obj in found)
    return (first, second) if first and second else None


async def is_empty(tree, path: str) -> bool:
    try:
        async with tree.members[path].space() as space:
            return not [key for key in (NAMESPACE, COPY) if await space.get(key)]
    except AWAY:
        return False


async def holds(tree, path: str, value: str) -> bool:
    try:
        async with tree.members[path].space() as space:
            found = await space.get(COPY)
    except AWAY:
        return False
    return found is not None and found["data"] == {"value": value}


async def counts(tree, name: str, *, leaving: int = 0) -> bool:
    form = (await tree.call("status", placement=name))["placements"][0]
    return form["complete"] and form["states"].get("leaving", 0) == leaving


async def settled(tree, value: str) -> None:
    """Until each edge has the value, and nothing is on its way or still to be removed."""
    for path in EDGES:
        await until(lambda path=path: holds(tree, path, value), lambda path=path: path)
    for name in ("left", "right"):
        await tree.counted(name, synced=2)


@pytest.mark.parametrize("order", list(permutations(("left", "right"))), ids="-".join)
async def test_what_placements_hand_over_in_one_apply_is_never_deleted(tree, order):
    """Each gives it to the other one, and gets it back."""
    start = [*objects("nobody", order[0]).values(), *placements("left").values()]
    await apply(tree, start)
    await settled(tree, order[0])
    before = {path: await uids(tree, path) for path in EDGES}
    for number, holder in enumerate(("right", "left")):
        changed = placements(holder)
        documents = [changed[name] for name in order]
        await apply(tree, [*documents, *objects("nobody", str(number)).values()])
        await settled(tree, str(number))
        await removals_are_over(tree)
        assert {path: await uids(tree, path) for path in EDGES} == before


@pytest.mark.parametrize("first", ["namespace", "copy"])
async def test_what_changes_its_label_in_one_apply_is_never_deleted(tree, first):
    """Its namespace goes with it; each document may come first."""
    start = [*objects("left", first).values(), *placements("").values()]
    both = {"apiGroup": "", "resources": ["namespaces"]}
    for name, document in placements("").items():
        clause = {**both, "labelSelectors": [{"matchLabels": {"of": name}}]}
        inside = {**ALL_OF_IT, "labelSelectors": [{"matchLabels": {"of": name}}]}
        document["spec"]["downsync"] += [clause, inside]
        start = [it for it in start if it["metadata"]["name"] != name] + [document]
    await apply(tree, start)
    await settled(tree, first)
    before = {path: await uids(tree, path) for path in EDGES}
    for number, owner in enumerate(("right", "left", "right")):
        changed = objects(owner, str(number))
        documents = [changed.pop(first), *changed.values()]
        await apply(tree, documents)
        await settled(tree, str(number))
        await removals_are_over(tree)
        assert {path: await uids(tree, path) for path in EDGES} == before


async def removals_are_over(tree) -> None:
    """What is unwanted goes under a snapshot that settles it: wait for what surely goes later."""
    await tree.place("witness")
    name = f"witness-{len(tree.told)}"
    await tree.put("witness", **{name: "w"})
    await until(lambda: has(tree, name), lambda: name)
    await tree.drop("witness", name)
    await until(lambda: lacks(tree, name), lambda: name)


async def has(tree, name: str) -> bool:
    seen = await tree.look(EDGES)
    return all(name in space.objects for space in seen.values())


async def lacks(tree, name: str) -> bool:
    seen = await tree.look(EDGES)
    return not any(name in space.objects for space in seen.values())
