"""A release goes to the three machines of a relay one by one, and the node goes on meanwhile.

One that does not start ends at the first of them.
"""

import json
import subprocess
import sys
from contextlib import ExitStack

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
from tests.e2e.join_tree import ENVIRONMENT, Tree
from tests.e2e.test_backups import place
from tests.e2e.test_launched_node import NEXT, built, rest
from tests.launched import Arrived

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(400)]
NAMES, BAD = ("m1", "m2", "m3"), "899.0.0"
WHOLE = ["active", "standby", "standby"]


class Region:
    """The relay /emea of three machines, each with a launcher of its own."""

    def __init__(self, tree: Tree, stack: ExitStack, pinned) -> None:
        self.tree = tree
        self.folders = {name: tree.folder / name for name in NAMES}
        alone = tree.join(tree.add("/emea", "--relay"), "m1")
        alone.until("is in session")
        alone.end()
        for name, folder in self.folders.items():
            token = tree.folder / f"{name}.join"
            tree.run("node", "add", "/emea", "--member", "-o", token)
            words = ["--data-dir", folder, "--look-seconds", "0.2", "--soak-seconds", "2", "--"]
            words += ["join", token, "--data-dir", folder, "--publisher", pinned]
            said = stack.enter_context((tree.folder / f"{name}.said").open("w"))
            launcher = subprocess.Popen(
                [sys.executable, "-m", "leafcast.launcher.program", *words],
                env=ENVIRONMENT,
                stdout=said,
                stderr=said,
            )
            stack.callback(launcher.wait, 80)
            stack.callback(launcher.terminate)
        until(lambda: all("node grow /emea" in self.said(name) for name in NAMES), self.all_said)
        tree.run("node", "grow", "/emea")
        until(lambda: sorted(self.roles().values()) == WHOLE, self.all_said)

    def said(self, name: str) -> str:
        return (self.tree.folder / f"{name}.said").read_text()

    def all_said(self) -> str:
        return "\n".join(f"{name}: {self.said(name)[-3000:]}" for name in NAMES)

    def members(self):
        nodes = json.loads(self.tree.run("tree", "--members", "-o", "json"))["nodes"]
        return [it for node in nodes if node["path"] == "/emea" for it in node["members"] or ()]

    def roles(self) -> dict[str, str]:
        return {it["name"]: it["role"] for it in self.members()}

    def standing(self) -> list[tuple[str, str]]:
        return sorted((it["role"], it["version"]) for it in self.members())

    def note(self, name: str):
        return read_launch_note((self.folders[name] / RELEASES / LAUNCHER).read_bytes())

    def came(self) -> list[str]:
        """The members by when the release was found healthy there, to the second."""
        notes = {name: self.note(name) for name in NAMES}
        return sorted(NAMES, key=lambda name: notes[name].since)


def test_the_machines_of_a_relay_take_a_release_one_after_the_other(tmp_path):
    tree, published = Tree(tmp_path), tmp_path / "published"
    published.mkdir(0o700)
    made = Arrived(published)
    bad, good = made.release(BAD, "ends"), made.release(NEXT, wheels=[built(tmp_path), *rest()])
    tree.run("up", "--regions", "0")
    try:
        with ExitStack() as stack:
            region = Region(tree, stack, made.folder.pinned)
            goes_back_at_the_first_machine(region, made, bad, stack)
            (active,) = [name for name, role in region.roles().items() if role == "active"]
            standbys = sorted({*NAMES} - {active})
            start(tree, made, good)
            healthy = (NEXT, LaunchState.HEALTHY)
            tried: list[set[str]] = []

            def all_are_healthy() -> bool:
                notes = {name: region.note(name) for name in NAMES}
                tried.append({name for name, note in notes.items() if note.is_on_trial})
                return all((it.running, it.state) == healthy for it in notes.values())

            until(all_are_healthy, region.all_said, seconds=200)
            assert max(map(len, tried)) == 1
            assert region.came() == [*standbys, active]
            whole = sorted((role, NEXT) for role in WHOLE)
            until(lambda: region.standing() == whole, region.all_said)
            until(lambda: f"/emea {NEXT} healthy 1" in " ".join(versions(tree)), region.all_said)
    finally:
        tree.run("down")


def goes_back_at_the_first_machine(region: Region, made: Arrived, bad, stack: ExitStack) -> None:
    """A machine goes back, no other one tries, and what is placed is delivered meanwhile."""
    tree, before = region.tree, region.standing()
    site = tree.join(tree.add("/emea/store-1"), "store-1")
    stack.callback(site.end)
    site.until("is in session")
    first, *others = sorted(NAMES, key=lambda name: (region.roles()[name] == "active", name))
    start(tree, made, bad)
    until(lambda: f"{BAD}: Failed" in tree.run("upgrade", "status"), region.all_said)
    why = f"member {first}: {BAD} ended before it was in session: code 3"
    assert f"/emea: rolled-back: {why}" in " ".join(tree.run("upgrade", "status").split())
    waits = f"it waits for its turn: at {first} it is rolled-back"
    until(lambda: all(waits in region.note(name).why for name in others), region.all_said)
    assert f"{BAD}: starting" not in "".join(region.said(name) for name in others)
    until(lambda: region.standing() == before, region.all_said)
    place(tree, "one", "red")
    until(lambda: tree.ask("/emea/store-1", "get", resource="configmaps")["objects"])
    tree.run("upgrade", "abort", BAD)


def start(tree: Tree, made: Arrived, released) -> None:
    """Let a release out."""
    lies = made.folder.folder
    manifest = lies / MANIFESTS / f"{released.manifest}.json"
    words = ["--manifest", manifest, "--pieces", lies / PIECES, "--waves", "100%"]
    tree.run("upgrade", "start", released.version, *words)


def versions(tree: Tree) -> list[str]:
    return tree.run("tree", "--versions").split()
