"""A placement that stands still says so in each command, and which command is next."""

import json

import pytest

from tests.awaiting import until
from tests.e2e.program import EDGES, did

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

HERE, THERE = EDGES
APP = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {name}}}
data: {{a: "{value}"}}
"""
EDGE_PLACEMENT = """\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec: {{locationSelectors: [{{}}], downsync: [{{namespaces: [{name}]}}]}}
"""
BINDING_POLICY = """\
apiVersion: control.kubestellar.io/v1alpha1
kind: BindingPolicy
metadata: {{name: {name}}}
spec: {{clusterSelectors: [{{}}], downsync: [{{namespaces: [{name}]}}]}}
"""
ROLLOUT = """\
apiVersion: leafcast.io/v1alpha1
kind: Rollout
metadata: {{name: {name}}}
spec:
  placement: {{kind: {kind}, name: {name}}}
  success: {{of: synced}}
  waves:
  - {{name: first, selector: {{matchLabels: {{id: region-1-site-1}}}}}}
  - {{name: rest, percent: 100, approval: before}}
"""
KINDS = {
    "epl": (EDGE_PLACEMENT, "EdgePlacement", "edgeplacement.edge.kubestellar.io"),
    "bp": (BINDING_POLICY, "BindingPolicy", "bindingpolicy.control.kubestellar.io"),
}


class Scene:
    """A placement under a Rollout, of which a second value waits for approval at one site."""

    def __init__(self, tree, apply, short):
        self.tree, self._apply, self.short = tree, apply, short
        self.name = f"held-{short}"
        self.placement, self.kind, self.long = KINDS[short]
        self.title = f"{short}/{self.name}"

    def write(self, value):
        self._apply(self.say(APP, value=value))

    def say(self, text, **values):
        return text.format(name=self.name, kind=self.kind, **values)

    def begin(self):
        self._apply(self.say(APP, value=1) + "---\n" + self.say(self.placement))
        did(self.tree, "wait", "--for", "synced", self.title)
        self.steer()
        did(self.tree, "wait", "--for", "rolled-out", self.title)
        self.write(2)

    def steer(self):
        self._apply(self.say(ROLLOUT))

    def held(self):
        found = json.loads(did(self.tree, "get", self.title, "-o", "json").stdout)
        return found["status"].get("held", [])

    def until_held(self, *reasons):
        until(lambda: [hold["reason"] for hold in self.held()] == [*reasons], self.held)

    def condition(self, type_):
        found = json.loads(did(self.tree, "get", self.title, "-o", "json").stdout)
        return next(it for it in found["status"]["conditions"] if it["type"] == type_)

    def value(self, at):
        done = did(self.tree, "get", "cm", "settings", "-n", self.name, "-o", "json", "--at", at)
        return json.loads(done.stdout)["data"]["a"]

    def plan(self, value):
        file = self.tree.place.folder.parent / "planned.yaml"
        file.write_text(self.say(APP, value=value))
        done = self.tree.run("plan", "-f", str(file), "--all", "-o", "json")
        rows = json.loads(done.stdout)["rows"]
        return {
            row["destination"]: (row["action"], row["why"])
            for row in rows
            if row["object"].endswith("configmaps/settings")
        }

    def refused(self, condition):
        return did(self.tree, "wait", "--for", condition, self.title, code=1).stderr


@pytest.fixture
def scene(tree, apply, request):
    made = Scene(tree, apply, getattr(request, "param", "epl"))
    made.begin()
    yield made
    tree.run("delete", made.title, f"rollout/{made.name}", "--freeze", "--ignore-not-found")
    tree.run("delete", made.title, f"rollout/{made.name}", "--ignore-not-found")


@pytest.mark.parametrize("scene", KINDS, indirect=True)
def test_what_waits_for_a_person_says_so_in_every_command(scene):
    tree, name = scene.tree, scene.name
    command = f"leafcast rollout approve {name} rest"
    for condition in ("synced", "healthy", "rolled-out"):
        said = scene.refused(condition)
        assert "needs approval to begin" in said, said
        assert command in said
    scene.until_held("AwaitingApproval")
    # Half of them have it; nobody says that it is those who count.
    did(tree, "wait", "--for", "synced", "--at-least", "50%", scene.title)
    did(tree, "wait", "--for", "synced", "--except", "id=region-1-site-2", scene.title)
    for options in (["--at-least", "51%"], ["--except", "id=region-1-site-1"]):
        said = did(tree, "wait", "--for", "synced", *options, scene.title, code=1).stderr
        assert command in said
    said = did(tree, "wait", "--for", "ready", scene.title, code=1).stderr
    assert command in said
    [hold] = scene.held()
    assert (hold["destinations"], hold["remedy"]) == (1, command)
    for type_ in ("Synced", "Healthy"):
        condition = scene.condition(type_)
        assert (condition["status"], condition["reason"]) == ("False", "AwaitingApproval")
    for words in (["status", scene.title], ["tree"], ["doctor"], ["describe", scene.title]):
        said = " ".join(did(tree, *words).stdout.split())
        assert "AwaitingApproval" in said, (words, said)
        assert command in said, (words, said)
    assert "AwaitingApproval" in did(tree, "status").stdout
    head, row = did(tree, "get", scene.title).stdout.splitlines()
    assert "HOLD" in head.split()
    assert "AwaitingApproval" in row.split()
    planned = scene.plan(2)
    assert planned[HERE] == ("none", "it is as it should be")
    assert planned[THERE][0] == "held"
    assert command in planned[THERE][1]
    did(tree, "rollout", "approve", name, "rest")
    did(tree, "wait", "--for", "rolled-out", "--for", "synced", "--for", "ready", scene.title)
    assert scene.value(THERE) == "2"
    until(lambda: not scene.held())
    # A complete one that is deleted lets go: what comes next is for everyone.
    did(tree, "delete", "rollout", name)
    scene.write(3)
    did(tree, "wait", "--for", "synced", scene.title)
    assert {scene.value(HERE), scene.value(THERE)} == {"3"}


def test_what_a_deleted_rollout_leaves_is_said_until_it_is_let_go(scene):
    tree, name = scene.tree, scene.name
    scene.until_held("AwaitingApproval")
    refused = did(tree, "delete", "rollout", name, code=1).stderr
    assert "--freeze  each destination keeps what it has" in refused
    assert f"--let-go  everyone gets it at once: 1 object: {name}/configmaps/settings" in refused
    did(tree, "get", f"rollout/{name}")
    kept = did(tree, "delete", "rollout", name, "--freeze").stdout
    assert f"{scene.title} stays as it is, until: leafcast rollout release {scene.title}" in kept
    scene.until_held("RolloutDeleted")
    scene.write(3)
    said = scene.refused("synced")
    assert "RolloutDeleted" in said
    assert f"next: leafcast rollout release {scene.title}" in said
    assert {row[0] for row in scene.plan(3).values()} == {"held"}
    assert (scene.value(HERE), scene.value(THERE)) == ("2", "1")
    done = did(tree, "rollout", "release", scene.title).stdout
    assert f"everyone gets 1 object: {name}/configmaps/settings" in done
    did(tree, "wait", "--for", "synced", scene.title)
    assert {scene.value(HERE), scene.value(THERE)} == {"3"}


def test_who_awaits_the_first_wave_of_all_has_nothing_and_counts_as_waiting(tree, apply):
    new = {"name": "held-first", "kind": "EdgePlacement"}
    waits = ROLLOUT.replace("site-1}}}}", "site-1}}}}, approval: before")
    texts = (APP.format(**new, value=1), EDGE_PLACEMENT.format(**new), waits.format(**new))
    apply("---\n".join(texts))

    def status():
        return json.loads(did(tree, "get", "epl/held-first", "-o", "json").stdout)["status"]

    def counts():
        said = status()
        return [said.get(each) for each in ("complete", "destinations", "synced", "healthy")]

    until(lambda: counts() == [True, 2, 0, 0], status)
    assert status()["waiting"] == 2
    said = did(tree, "status", "epl/held-first").stdout
    assert "delivered to 0 of 2, working at 0 of 2" in said
    assert "AwaitingApproval" in said
    said = did(tree, "status", "epl/held-first", "--destinations").stdout
    rows = [line.split() for line in said.splitlines() if line.startswith("/")]
    assert rows[-2:] == [[HERE, "waiting", "unknown"], [THERE, "waiting", "unknown"]]
    did(tree, "rollout", "approve", "held-first", "first")
    until(lambda: counts() == [True, 2, 1, 1], status)
    did(tree, "delete", "epl/held-first", "rollout/held-first")


def test_who_is_pinned_is_named_and_a_wait_ends_when_it_comes_to_be_held(scene):
    tree, name = scene.tree, scene.name
    did(tree, "rollout", "promote", name, "--all")
    did(tree, "wait", "--for", "synced", scene.title)
    did(tree, "rollout", "pin", name, "--at", THERE, "--revision", "1")
    scene.until_held("Pinned")
    [hold] = scene.held()
    assert (hold["destinations"], hold["remedy"]) == (
        1,
        f"leafcast rollout unpin {name} --at {THERE}",
    )
    assert scene.plan(9)[THERE][0] == "held"
    did(tree, "wait", "--for", "synced", "--except", "id=region-1-site-2", scene.title)
    did(tree, "wait", "--for", "synced", "--except", "id=region-1-site-1", scene.title, code=1)
    did(tree, "rollout", "unpin", name, "--at", THERE)
    did(tree, "wait", "--for", "synced", scene.title)
    until(lambda: not scene.held())
    # What is under way when the wait begins, and stands still a moment later.
    scene.write(4)
    waiting = tree.start("wait", "--for", "synced", "--timeout", "100s", scene.title)
    _, said = waiting.communicate(timeout=120)
    assert waiting.returncode == 1
    assert "AwaitingApproval" in said


OTHER = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: other, namespace: {name}}}
data: {{a: "{value}"}}
"""


def test_what_was_aborted_stays_back_until_the_centre_agrees_again(scene, apply):
    tree, name = scene.tree, scene.name
    scene.until_held("AwaitingApproval")
    done = did(tree, "rollout", "abort", name).stdout
    assert f"  {name}/configmaps/settings" in done
    assert f"leafcast rollout restore {name}" in done
    scene.until_held("RolloutAborted")
    until(lambda: [hold.get("destinations") for hold in scene.held()] == [2])
    # Another object goes out, and nothing else.
    file = tree.place.folder.parent / "other.yaml"
    file.write_text(scene.say(OTHER, value=1))
    done = tree.run("plan", "-f", str(file), "--all", "-o", "json")
    rows = {(row["object"], row["action"]) for row in json.loads(done.stdout)["rows"]}
    held = (f"{name}/configmaps/settings", "held")
    assert rows == {(f"{name}/configmaps/other", "create"), held}
    apply(scene.say(OTHER, value=1))
    until(lambda: "3" in did(tree, "rollout", "status", name).stdout.split())
    did(tree, "rollout", "promote", name, "--all")
    until(lambda: tree.run("get", "cm", "other", "-n", name, "--at", THERE).returncode == 0)
    assert (scene.value(HERE), scene.value(THERE)) == ("1", "1")
    scene.until_held("RolloutAborted")
    assert f"next: leafcast rollout restore {name}" in scene.refused("rolled-out")
    assert f"{name}/configmaps/settings restored" in did(tree, "rollout", "restore", name).stdout
    scene.until_held()
    did(tree, "wait", "--for", "synced", scene.title)
    assert "nothing to restore" in did(tree, "rollout", "restore", scene.title).stdout
    assert name in did(tree, "rollout", "list").stdout
    listed = json.loads(did(tree, "rollout", "list", "-o", "json").stdout)
    assert (listed["kind"], listed["items"][0]["kind"]) == ("List", "Rollout")
    did(tree, "wait", "--for", "rolled-out", scene.title)
    assert did(tree, "events", "--for", scene.title).stdout.startswith("AGE")
    assert not did(tree, "events", "--for", scene.title, "--no-headers").stdout.startswith("AGE")
    told = did(tree, "delete", scene.title, "--dry-run=server").stderr
    assert "takes away 4 copies at 2 destinations" in told
    assert "nothing is rejected" in did(tree, "rollout", "retry", scene.title, code=1).stderr


def test_an_undo_may_write_the_former_content_at_the_centre(scene):
    tree, name = scene.tree, scene.name
    scene.until_held("AwaitingApproval")
    did(tree, "rollout", "promote", name, "--all")
    did(tree, "wait", "--for", "synced", scene.title)
    done = did(tree, "rollout", "undo", name, "--to", "1", "--now", "--restore").stdout
    assert f"{name}/configmaps/settings restored" in done
    did(tree, "wait", "--for", "synced", scene.title)
    assert {scene.value(HERE), scene.value(THERE)} == {"1"}
    assert 'a: "1"' in did(tree, "get", "cm", "settings", "-n", name, "-o", "yaml").stdout
