"""A centre, run by the launcher, takes a release before its tree, and goes back by itself."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from schemas.releases.release_folder import (
    LAUNCHER,
    MANIFESTS,
    PIECES,
    RELEASES,
    LaunchState,
    read_launch_note,
)
from tests.awaiting import until
from tests.e2e.join_tree import Tree
from tests.e2e.test_launched_node import NEXT, built, rest
from tests.launched import Arrived
from tests.processes import alive

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]
BAD = "899.0.0"


class LaunchedTree(Tree):
    """A centre below a launcher, asked through its commands, also while it is away."""

    def asked(self, *words: str) -> str:
        """What a command says; words of its own while the centre cannot be asked."""
        done = subprocess.run(
            [sys.executable, "-m", "leafcast", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return " ".join((done.stdout + done.stderr).split())

    def reaches(self, path: str) -> bool:
        """Whether the centre says that it reaches a node; not while it says nothing."""
        try:
            nodes = json.loads(self.asked("node", "list", "-o", "json"))
        except ValueError:
            return False
        return any(node["path"] == path and node["reached"] for node in nodes)

    def start(self, made: Arrived, released) -> None:
        """Let a release out."""
        lies = made.folder.folder
        manifest = lies / MANIFESTS / f"{released.manifest}.json"
        words = ["--manifest", manifest, "--pieces", lies / PIECES, "--waves", "100%"]
        self.run("upgrade", "start", released.version, *words)

    def note(self):
        file = self.folder / "tree" / RELEASES / LAUNCHER
        return read_launch_note(file.read_bytes())

    @contextmanager
    def launched(self):
        place = self.folder / "tree"
        words = ["--data-dir", place, "--look-seconds", "0.2", "--soak-seconds", "2", "--"]
        words += ["up", "--foreground", "--regions", "0", "--data-dir", place]
        launcher = subprocess.Popen(
            [sys.executable, "-m", "leafcast.launcher.program", *words], env=self.environment
        )
        try:
            until(lambda: "/ " in self.asked("tree"))
            yield launcher
        finally:
            launcher.terminate()
            assert launcher.wait(80) == 0


def test_a_centre_takes_a_release_first_and_goes_back_from_one_that_does_not_start(tmp_path):
    tree, published = LaunchedTree(tmp_path), tmp_path / "published"
    published.mkdir(0o700)
    made = Arrived(published)
    bad = made.release(BAD, "ends")
    good = made.release(NEXT, wheels=[built(tmp_path), *rest()])
    tree.run("release", "pin", made.folder.pinned, "--data-dir", tmp_path / "tree")
    with tree.launched():
        site = tree.join(tree.add("/store-1"), "store-1")
        try:
            site.until("is in session")
            tree.start(made, bad)
            until(lambda: f"{BAD}: Failed. the centre could not" in tree.asked("upgrade", "status"))
            said = tree.asked("upgrade", "status")
            assert f"the centre: rolled-back: {BAD} ended before it was in session: code 3" in said
            assert f"the centre went back from {BAD}" in tree.asked("doctor")
            tree.run("upgrade", "abort", BAD)
            tree.start(made, good)
            until(lambda: f"{NEXT}: Complete" in tree.asked("upgrade", "status"))
            assert "the centre: healthy" in tree.asked("upgrade", "status")
            assert f"the centre {NEXT} healthy 1" in tree.asked("tree", "--versions")
            assert (tree.note().running, tree.note().state) == (NEXT, LaunchState.HEALTHY)
            # No daemon of another release outlives what the launcher runs.
            up = int((tmp_path / "tree" / RELEASES / "child.lock").read_text())
            daemon = json.loads((tmp_path / "tree" / "daemon.json").read_text())["pid"]
            os.kill(up, signal.SIGKILL)
            until(lambda: not alive(daemon))
            until(lambda: tree.reaches("/store-1"))
        finally:
            site.end()
