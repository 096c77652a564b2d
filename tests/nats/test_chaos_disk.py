"""A node whose disk is full: nothing accepted is lost, and all goes on once there is room."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from tests.nats.chaos_member import ROOT, until
from tests.nats.chaos_tree import ChaosTree
from tests.nats.trio_tree import TrioTree, daemon_log

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(150)]

REGION, EDGE = "/r1", "/r1/e1"
DISK_BYTES = 16_000_000
# A server that cannot write answers nothing: that is what is waited for.
SETTINGS = {"relay.adapters.jetstream.publish.ANSWER_SECONDS": 2.0}


@pytest.fixture
def disk():
    """Puts a small disk of its own on a folder; skips where none may be mounted."""
    with ExitStack() as mounted:

        def mount(folder: Path, size: int = DISK_BYTES) -> Path:
            folder.mkdir(parents=True)
            command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
            able = shutil.which("mount") is not None
            if not able or subprocess.run(command, capture_output=True, check=False).returncode:
                pytest.skip("no file system may be mounted here")
            mounted.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)
            return folder

        yield mount


@pytest_asyncio.fixture
async def tree(tmp_path):
    tree = ChaosTree(tmp_path, SETTINGS)
    try:
        yield tree
    finally:
        await tree.close()


def fill(folder: Path) -> Path:
    ballast = folder / "ballast"
    opened = os.open(ballast, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(opened, b"x" * 4096)
    except OSError:
        return ballast
    finally:
        os.close(opened)


async def grown(tree) -> None:
    """The centre with a placement, a region, and an edge that holds what it should."""
    await tree.start()
    await tree.place("shop")
    await tree.put("shop", kept="k", changed="1")
    await tree.join(REGION, relay=True)
    await tree.join(EDGE)
    await tree.exact([EDGE])


@pytest.mark.parametrize("path", [REGION, EDGE])
async def test_a_node_whose_disk_is_full_says_so_and_goes_on_once_there_is_room(tree, disk, path):
    dice = random.Random(3)
    folder = disk(tree.folder / path.strip("/").replace("/", "-"))
    await grown(tree)
    member, held = tree.members[path], tree.meant()
    before = await tree.holds(EDGE, held)
    ballast = fill(folder)
    for _ in range(3):
        await tree.put("shop", changed=dice.randbytes(3_000).hex())
    await until(lambda: "is full: make room" in member.said, lambda: member.said)
    assert member.process.poll() is None
    assert (await tree.holds(EDGE, held)).writes == before.writes
    ballast.unlink()
    after = await tree.holds(EDGE, tree.meant())
    assert after.objects["kept"] == before.objects["kept"]
    assert after.asked["kept"] == before.asked["kept"]
    assert after.writes <= before.writes + 3
    await tree.counted("shop", synced=1)


async def test_folders_that_are_removed_as_nodes_run_are_made_again_and_filled_again(tree):
    await grown(tree)
    for path in (REGION, EDGE):
        member = tree.members[path]
        member.folder.rename(member.folder.with_suffix(".removed"))
        await tree.put("shop", changed=f"after what {path} stored was removed")
        await until(lambda it=member: "was removed" in it.said, lambda it=member: it.said)
        await tree.exact([EDGE])
        assert member.process.poll() is None
    await tree.counted("shop", synced=1)
    facts = await tree.call("doctor")
    assert {form["path"] for form in facts["nodes"] if form["removals"]} == {REGION, EDGE}


async def test_a_centre_whose_disk_is_full_refuses_what_it_cannot_keep_and_loses_nothing(
    tree, disk
):
    dice, folder = random.Random(4), disk(tree.folder / "tree" / "centre")
    await grown(tree)
    before = await tree.exact([EDGE])
    ballast = fill(folder)
    manifest = tree.folder / "object.yaml"

    async def apply(name: str) -> tuple[bool, str]:
        manifest.write_text(MANIFEST.format(name=name, value=dice.randbytes(3_000).hex()))
        program = [sys.executable, "-m", "leafcast", "apply", "-f", str(manifest)]
        process = await asyncio.create_subprocess_exec(
            *[*program, "--data-dir", str(tree.centre.folder)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode()
        if process.returncode == 0:
            tree.wanted["shop"][name] = manifest.read_text().rpartition('"')[0].rpartition('"')[2]
        return process.returncode == 0, said

    number, taken, said = 0, True, ""
    while taken:  # What the server had room for in files it made before is kept, and counts.
        number += 1
        taken, said = await apply(f"more{number}")
    assert "is full, so nothing was changed: make room there" in said
    facts = (await tree.call("doctor"))["nodes"]
    assert [node["free_bytes"] < 4_000_000 for node in facts if node["path"] == "/"] == [True]
    ballast.unlink()
    await until(lambda: applied(apply))
    after = (await tree.exact([EDGE]))[EDGE]
    for name, stored in before[EDGE].objects.items():
        assert after.objects[name] == stored
        assert after.asked[name] == before[EDGE].asked[name]
    await tree.counted("shop", synced=1)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_members_that_share_a_full_disk_are_back_once_there_is_room(tmp_path, disk):
    folder = disk(tmp_path / "trio", 10 * DISK_BYTES)
    tree = TrioTree(folder, SETTINGS)
    try:
        await tree.start()
        await tree.join("/edge")
        await tree.place("web")
        await tree.put("web", kept="k")
        before = (await tree.exact(["/edge"]))["/edge"]
        ballast = fill(folder)
        logs = {name: daemon_log(member) for name, member in tree.centres.items()}
        putting = asyncio.create_task(keep_putting(tree))

        def said(what: str) -> list[str]:
            """The members that said it since the disk is full."""
            centres = tree.centres.items()
            return [name for name, it in centres if what in daemon_log(it)[len(logs[name]) :]]

        await until(lambda: len(said("is full: make room there")) == 3, lambda: str(tree.said()))
        putting.cancel()
        await asyncio.wait([putting])
        await until(lambda: not tree.active(), lambda: str(tree.said()))
        ballast.unlink()
        await tree.until_active()
        await tree.put("web", changed="there is room")
        tree.wanted["web"] = await tree.centre_values()
        after = (await tree.exact(["/edge"]))["/edge"]
        assert after.objects["kept"].uid == before.objects["kept"].uid
        assert after.values["changed"] == "there is room"
    finally:
        await tree.close()


async def keep_putting(tree) -> None:
    dice = random.Random(5)
    while True:
        with suppress(Exception):
            await tree.put("web", changed=dice.randbytes(3_000).hex())


async def applied(apply) -> bool:
    return (await apply("last"))[0]


MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: default, labels: {{of: shop}}}}
data: {{value: "{value}"}}
"""
