"""A centre that runs once goes on on three machines, and back; nothing is lost on the way."""

import json
import os
import signal

import pytest

from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import read_grant
from tests.awaiting import until
from tests.e2e.program import Program, did
from tests.e2e.trio_program import Applies, uids_at

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]
EDGE = "/store-1"


class GrowingTree:
    """A centre alone in a data directory, an edge below it, and machines beside it."""

    def __init__(self, folder):
        self.folder, self.centre = folder, Program(folder / "centre")
        self.processes = {}

    def join(self, name, token):
        program = Program(self.folder / name)
        with self.said(name).open("w") as said:
            self.processes[name] = program.start(
                "join", str(token), "--data-dir", str(self.folder / name), stdout=said, stderr=said
            )

    def said(self, name):
        return self.folder / f"{name}.said"

    def until_said(self, name, words):
        until(lambda: words in self.said(name).read_text(), f"{name} does not say {words}")

    def end(self, name):
        with self.processes.pop(name) as process:
            process.terminate()

    def uids(self):
        return uids_at(self.centre, EDGE)

    def until_learnt(self):
        """Wait until the edge knows where the members listen that came."""
        file = self.folder / "edge" / GRANT_FILE
        until(lambda: len(read_grant(file).dialled) == 3, lambda: str(read_grant(file).dialled))

    def kill_centre(self):
        """End the first machine at once: its process, and its server with that."""
        os.kill(self.centre.place.daemon()["pid"], signal.SIGKILL)

    def roles(self, at=None):
        done = (at or self.centre).run("tree", "--members", "-o", "json")
        if done.returncode:
            return None
        (centre,) = [it for it in json.loads(done.stdout)["nodes"] if it["path"] == "/"]
        return sorted(it["role"] for it in centre["members"])


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    made = GrowingTree(tmp_path_factory.mktemp("growing"))
    try:
        did(made.centre, "up", "--regions", "0")
        token = str(made.folder / "edge.token")
        did(made.centre, "node", "add", EDGE, "--approved", "-o", token)
        made.join("edge", token)
        made.until_said("edge", "in session")
        did(made.centre, "apply", "-f", "leafcast/shop")
        did(made.centre, "wait", "shop", "--for", "synced")
        yield made
    finally:
        for name in list(made.processes):
            made.end(name)
        did(made.centre, "down")


def test_a_centre_grows_to_three_and_back_and_all_that_was_acknowledged_stays(tree, tmp_path):
    for name in ("m2", "m3"):
        token = tmp_path / f"{name}.token"
        did(tree.centre, "node", "add", "/", "--member", "-o", str(token))
        tree.join(name, token)
        tree.until_said(name, "node grow /")
    before = tree.uids()
    assert before
    with Applies(tree.centre, tmp_path) as applies:
        applies.more()
        did(tree.centre, "node", "grow", "/")
        until(lambda: tree.roles() == ["active", "standby", "standby"], lambda: str(tree.roles()))
        applies.more()
    tree.until_learnt()
    tree.kill_centre()
    other = Program(tree.folder / "m2")
    lost = ["active", "silent", "standby"]
    until(lambda: tree.roles(other) == lost, lambda: str(tree.roles(other)))
    did(other, "wait", "shop", "--for", "synced")
    did(tree.centre, "up")
    until(lambda: tree.roles() == ["active", "standby", "standby"], lambda: str(tree.roles()))
    held = tree.uids()
    assert {name: held.get(name) for name in before} == before
    assert set(applies.acknowledged) <= held.keys()

    with Applies(tree.centre, tmp_path) as more:
        more.more()
        did(tree.centre, "node", "shrink", "/", "--to", "m1")
        until(lambda: tree.roles() == [], lambda: str(tree.roles()))
        for name in ("m2", "m3"):
            tree.end(name)
        more.more()
    did(tree.centre, "wait", "shop", "--for", "synced")
    after = tree.uids()
    assert {name: after.get(name) for name in held} == held
    assert set(more.acknowledged) <= after.keys()
