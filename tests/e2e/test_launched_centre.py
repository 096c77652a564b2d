"""A centre, run by the launcher, takes a release before its tree, and goes back by itself."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

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
from tests.launched import STRANGER, Arrived
from tests.processes import alive
from tests.unit.releases_world import leafcast_release

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]
BAD, FORGED = "899.0.0", "898.0.0"


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

    def apply(self, made: Arrived, released) -> None:
        """Let a release out as from Git."""
        manifest = made.folder.manifest(released.manifest).decode()
        file = self.folder / f"{released.version}.json"
        file.write_text(json.dumps(leafcast_release(released.version, manifest=manifest)))
        self.run("apply", "-f", file)

    def note(self, machine: str = "tree"):
        file = self.folder / machine / RELEASES / LAUNCHER
        return read_launch_note(file.read_bytes())

    def members(self) -> list[tuple[str, str]]:
        """The roles and the versions of the centre's members; none while it says nothing."""
        try:
            nodes = json.loads(self.asked("tree", "--members", "-o", "json"))["nodes"]
        except ValueError:
            return []
        (centre,) = (node for node in nodes if node["path"] == "/")
        return sorted((it["role"], it["version"]) for it in centre["members"] or ())

    @contextmanager
    def launched(self):
        """The centre, below its launcher."""
        with self.below_launcher("tree", "up", "--foreground", "--regions", "0"):
            until(lambda: "/ " in self.asked("tree"))
            yield

    @contextmanager
    def below_launcher(self, machine: str, *what: object):
        place = self.folder / machine
        words = ["--data-dir", place, "--look-seconds", "0.2", "--soak-seconds", "2", "--"]
        words += [*what, "--data-dir", place]
        with self.log(machine).open("w") as said:
            launcher = subprocess.Popen(
                [sys.executable, "-m", "leafcast.launcher.program", *words],
                env=self.environment,
                stdout=said,
                stderr=said,
            )
        try:
            yield
        finally:
            launcher.terminate()
            assert launcher.wait(80) == 0

    def log(self, machine: str) -> Path:
        return self.folder / f"{machine}.said"

    def said(self) -> str:
        """The last words of all machines, and what the centre says."""
        files = sorted(self.folder.glob("*.said"))
        words = [f"{file.name}: {file.read_text()[-3000:]}" for file in files]
        return "\n".join([*words, self.asked("upgrade", "status"), str(self.members())])


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
            tree.apply(made, made.release(FORGED, keys=(STRANGER,)))
            said = f"{FORGED}: Refused. spec.manifest: release: 0 of the 1 signatures"
            until(lambda: said in tree.asked("upgrade", "status"), tree.said)
            assert f"ReleaseRefused / leafcastrelease/{FORGED}" in tree.asked("events")
            tree.start(made, bad)
            until(lambda: f"{BAD}: Failed. the centre could not" in tree.asked("upgrade", "status"))
            said = tree.asked("upgrade", "status")
            assert f"the centre: rolled-back: {BAD} ended before it was in session: code 3" in said
            assert f"the centre went back from {BAD}" in tree.asked("doctor")
            # Its daemon is another since: what is wrong with a release is told at each start.
            until(lambda: "ReleaseFailed" in tree.asked("events"), lambda: tree.asked("events"))
            assert f"taken back at the centre: {BAD} ended before" in tree.asked("events")
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


def test_the_machines_of_a_centre_take_a_release_one_after_the_other(tmp_path):
    tree, published = LaunchedTree(tmp_path), tmp_path / "published"
    published.mkdir(0o700)
    made = Arrived(published)
    good = made.release(NEXT, wheels=[built(tmp_path), *rest()])
    tree.run("release", "pin", made.folder.pinned, "--data-dir", tmp_path / "tree")
    machines = ("tree", "m2", "m3")
    with ExitStack() as stack:
        stack.enter_context(tree.launched())
        for name in machines[1:]:
            token = tmp_path / f"{name}.join"
            tree.run("node", "add", "/", "--member", "-o", token)
            words = ("join", token, "--publisher", made.folder.pinned)
            stack.enter_context(tree.below_launcher(name, *words))
        asks = [tree.log(name) for name in machines[1:]]
        until(lambda: all("node grow /" in it.read_text() for it in asks), tree.said)
        tree.run("node", "grow", "/")
        whole = ["active", "standby", "standby"]
        until(lambda: [role for role, _ in tree.members()] == whole, tree.said)
        tree.start(made, good)
        tried: list[set[str]] = []

        def all_are_healthy() -> bool:
            notes = {name: tree.note(name) for name in machines}
            tried.append({name for name, note in notes.items() if note.is_on_trial})
            healthy = (NEXT, LaunchState.HEALTHY)
            return all((it.running, it.state) == healthy for it in notes.values())

        until(all_are_healthy, tree.said, seconds=200)
        assert max(map(len, tried)) == 1
        # The one that ran the centre went last.
        assert max(machines, key=lambda name: (tree.note(name).since, name == "tree")) == "tree"
        until(lambda: f"{NEXT}: Complete" in tree.asked("upgrade", "status"), tree.said)
        assert "the centre: healthy" in tree.asked("upgrade", "status")
        assert {version for _, version in tree.members()} == {NEXT}
