"""A centre that runs once goes on on three machines, and back; nothing is lost on the way."""

import json
import os
import signal

import pytest

from leafcast.centre.copying import FILE as COPYING
from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import read_grant
from leafcast.members.membership import LEFT
from tests.awaiting import until
from tests.e2e.program import Program, did
from tests.e2e.trio_program import Applies, TrioProgram, uids_at

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]
EDGE = "/store-1"


class GrowingTree:
    """A centre alone in a data directory, an edge below it, and machines beside it."""

    def __init__(self, folder):
        self.folder, self.centre = folder, Program(folder / "centre")
        self.processes = {}

    def join(self, name, token, *more):
        program = Program(self.folder / name)
        words = ("join", str(token), "--data-dir", str(self.folder / name), *more)
        with self.said(name).open("w") as said:
            self.processes[name] = program.start(*words, stdout=said, stderr=said)

    def invite(self, *names, more=()):
        """Have two more machines ask to be members of the centre."""
        for name in names:
            token = self.folder / f"{name}.token"
            did(self.centre, "node", "add", "/", "--member", "-o", str(token))
            self.join(name, token, *more)
            self.until_said(name, "node grow /")

    def grow(self, *names):
        self.invite(*names)
        did(self.centre, "node", "grow", "/")
        until(lambda: self.roles() == ["active", "standby", "standby"], lambda: str(self.roles()))

    def said(self, name):
        return self.folder / f"{name}.said"

    def until_said(self, name, words):
        until(lambda: words in self.said(name).read_text(), f"{name} does not say {words}")

    def end(self, name):
        with self.processes.pop(name) as process:
            process.terminate()

    def kill(self, name):
        """End a machine's process at once, and its server with that."""
        with self.processes.pop(name) as process:
            process.kill()

    def told(self, name):
        return f"{self.said(name).read_text()} {self.centre.run('tree', '--members').stdout}"

    def members(self):
        """Who the members of the centre are once no change is under way."""
        done = self.centre.run("tree", "--members", "-o", "json")
        nodes = json.loads(done.stdout)["nodes"] if done.returncode == 0 else ()
        found = [it for node in nodes if node["path"] == "/" for it in node["members"] or ()]
        return set() if any(it["change"] for it in found) else {it["name"] for it in found}

    def step(self):
        """How far the first machine is with a change of the members; 0 before one."""
        file = self.centre.place.folder / "membership.json"
        return json.loads(file.read_text())["step"] if file.exists() else 0

    def uids(self):
        return uids_at(self.centre, EDGE)

    def until_held(self, names):
        """Wait until the edge holds these; their UIDs, and those of others."""

        def held():
            found = self.uids()
            return found if {*names} <= found.keys() else None

        return until(held, lambda: f"{ {*names} - self.uids().keys() } did not arrive")

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


@pytest.fixture
def tree(tmp_path):
    made = GrowingTree(tmp_path)
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
    """Its store is encrypted: what a copy needs lies nowhere in clear."""
    key = tmp_path / "store.key"
    key.write_text("a-key-of-the-user-of-this-tree-00000001\n")
    did(tree.centre, "down")
    did(tree.centre, "up", "--store-key-file", str(key))
    tree.invite("m2", "m3", more=("--store-key-file", str(key)))
    before = until(tree.uids, "the edge does not answer")
    with Applies(tree.centre, tmp_path) as applies:
        applies.more()
        did(tree.centre, "node", "grow", "/")
        until(lambda: tree.roles() == ["active", "standby", "standby"], lambda: str(tree.roles()))
        applies.more()
    nodes = tree.centre.json("tree", "--members")["nodes"]
    assert [it["encrypted"] for it in nodes[0]["members"]] == [True] * 3
    tree.until_learnt()
    tree.kill_centre()
    other = Program(tree.folder / "m2")
    lost = ["active", "silent", "standby"]
    until(lambda: tree.roles(other) == lost, lambda: str(tree.roles(other)))
    did(other, "wait", "shop", "--for", "synced")
    did(tree.centre, "up")
    until(lambda: tree.roles() == ["active", "standby", "standby"], lambda: str(tree.roles()))
    held = tree.until_held({*before, *applies.acknowledged})
    assert {name: held[name] for name in before} == before

    with Applies(tree.centre, tmp_path) as more:
        more.more()
        did(tree.centre, "node", "shrink", "/", "--to", "m1")
        until(lambda: tree.roles() == [], lambda: str(tree.roles()))
        for name in ("m2", "m3"):
            tree.end(name)
        more.more()
    did(tree.centre, "wait", "shop", "--for", "synced")
    after = tree.until_held({*held, *more.acknowledged})
    assert {name: after[name] for name in held} == held
    stores = [file for name in ("centre", "m2", "m3") for file in (tmp_path / name).rglob("*.blk")]
    assert stores
    assert not [file for file in stores if b"$KV.workloads." in file.read_bytes()]


@pytest.mark.long
def test_members_that_were_not_told_that_the_copy_ended_go_on_without_the_first(tree):
    """Their servers took part in it, and their processes were stopped before it was over."""
    others = ("m2", "m3")
    tree.invite(*others)
    before = until(tree.uids, "the edge does not answer")
    did(tree.centre, "node", "grow", "/")
    for name in others:
        until((tree.folder / name / COPYING).exists, lambda name=name: tree.told(name))
        tree.processes[name].send_signal(signal.SIGSTOP)
    until(lambda: not (tree.centre.place.folder / COPYING).exists(), "the copy does not end")
    until(lambda: "active" in (tree.roles() or ()), lambda: str(tree.roles()))
    tree.until_learnt()
    for name in others:
        tree.kill(name)
        assert (tree.folder / name / COPYING).exists()
    tree.kill_centre()
    left = Program(tree.folder / "m2")
    tree.join("m2", tree.folder / "m2.token")
    # One of three cannot know that it has ended.
    why = "member m2 of / does not become active: member m1 copies what the node had"
    until(lambda: why in " ".join(left.run("doctor").stdout.split()), lambda: tree.told("m2"))
    tree.join("m3", tree.folder / "m3.token")
    lost = ["active", "silent", "standby"]
    until(lambda: tree.roles(left) == lost, lambda: f"{tree.roles(left)}: {tree.told('m2')}")
    did(left, "wait", "shop", "--for", "synced")
    until(lambda: uids_at(left, EDGE) == before, lambda: f"{uids_at(left, EDGE)}, not {before}")
    assert not [name for name in others if (tree.folder / name / COPYING).exists()]


@pytest.mark.long
def test_a_backup_of_a_trio_is_restored_elsewhere_and_grows_to_a_trio_again(tree, tmp_path):
    tree.grow("m2", "m3")
    backup = str(tmp_path / "trio.backup")
    did(tree.centre, "backup", backup)
    known = tree.uids()
    apply(tree, tmp_path, "later")
    until(lambda: "later" in tree.uids(), lambda: str(tree.uids()))
    before = tree.uids()
    for name in ("m2", "m3"):
        tree.end(name)
    did(tree.centre, "down")

    tree.centre = Program(tmp_path / "restored")
    did(tree.centre, "restore", backup)
    did(tree.centre, "up")
    tree.end("edge")
    token = tmp_path / "again.token"
    did(tree.centre, "node", "add", EDGE, "--replace", "--approved", "-o", str(token))
    tree.join("edge", token)
    tree.until_said("edge", "in session")
    until(lambda: "shop" in did(tree.centre, "orphans").stdout, "what is newer is not listed")
    tree.grow("m4", "m5")
    until(lambda: tree.uids() == before, lambda: f"{tree.uids()}, not {before}")
    assert "shop" in did(tree.centre, "orphans").stdout
    assert known.keys() < before.keys()

    tree.kill_centre()
    other = Program(tree.folder / "m4")
    until(lambda: "active" in (tree.roles(other) or ()), lambda: str(tree.roles(other)))
    tree.centre = other
    apply(tree, tmp_path, "later")
    did(other, "wait", "shop", "--for", "synced")
    until(lambda: tree.uids() == before, lambda: f"{tree.uids()}, not {before}")


@pytest.mark.long
def test_a_backup_of_a_centre_alone_is_restored_into_a_trio_that_drives_nobody_back(tree, tmp_path):
    backup, known = str(tmp_path / "alone.backup"), tree.uids()
    did(tree.centre, "backup", backup)
    apply(tree, tmp_path, "later")
    before = tree.until_held({*known, "later"})
    did(tree.centre, "down")

    tree.centre = TrioProgram(tmp_path / "restored")
    did(tree.centre, "restore", backup, "--members", "3")
    did(tree.centre, "up")
    tree.end("edge")
    token = tmp_path / "again.token"
    did(tree.centre, "node", "add", EDGE, "--replace", "--approved", "-o", str(token))
    tree.join("edge", token)
    tree.until_said("edge", "in session")
    until(lambda: "shop" in did(tree.centre, "orphans").stdout, "what is newer is not listed")
    tree.centre.kill_active("centre")
    # Who is active then holds back the same.
    until(lambda: "shop" in did(tree.centre, "orphans").stdout, "what is newer is not listed")
    assert tree.uids() == before
    did(tree.centre, "accept", "shop")
    until(lambda: tree.uids() == known, lambda: f"{tree.uids()}, not {known}")


def apply(tree, folder, name):
    file = folder / f"{name}.yaml"
    file.write_text(
        "apiVersion: v1\nkind: ConfigMap\n"
        f"metadata: {{name: {name}, namespace: shop}}\ndata: {{at: {name}}}\n"
    )
    did(tree.centre, "apply", "-f", str(file))


@pytest.mark.long
def test_another_machine_takes_the_place_of_a_lost_one_whoever_is_active(tree, tmp_path):
    tree.grow("m2", "m3")
    before = tree.uids()
    tree.kill("m2")
    token = tmp_path / "m4.token"
    replace = ("node", "replace", "/", "--member", "m2", "-o", str(token))
    with Applies(tree.centre, tmp_path) as applies:
        until(
            lambda: tree.centre.run(*replace).returncode == 0,
            lambda: tree.centre.run(*replace).stderr,
        )
        tree.join("m4", token)
        # Whoever is active then, two of three have carried that out, or are about to.
        until(lambda: tree.step() >= LEFT, lambda: tree.told("m4"))
        tree.kill_centre()
        did(tree.centre, "up")
        until(lambda: tree.members() == {"m1", "m3", "m4"}, lambda: tree.told("m4"))
        applies.more()
    until(lambda: tree.roles() == ["active", "standby", "standby"], lambda: str(tree.roles()))
    # One of those that were there first may be lost now.
    tree.kill_centre()
    other = Program(tree.folder / "m4")
    lost = ["active", "silent", "standby"]
    until(lambda: tree.roles(other) == lost, lambda: str(tree.roles(other)))
    did(other, "wait", "shop", "--for", "synced")
    held = uids_at(other, EDGE)
    assert {name: held.get(name) for name in before} == before
    assert set(applies.acknowledged) <= held.keys()

    old = Program(tree.folder / "m2")
    done = old.run("join", str(tree.folder / "m2.token"), "--data-dir", str(tree.folder / "m2"))
    assert done.returncode == 1
    assert "m2 is no member of / any more, whose members are m1, m3, m4" in done.stderr
    # It ends as such, and did nothing to those that are members.
    assert tree.roles(other) == lost
