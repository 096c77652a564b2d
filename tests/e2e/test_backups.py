"""A centre is restored on another machine: nobody is driven back, and a person decides."""

import json
import re
import shutil

import pytest

from tests.awaiting import until
from tests.e2e.join_tree import Tree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

SITES = {"one": "/region-1/site-1", "two": "/region-2/site-1"}
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {name}}}
data: {{colour: {colour}}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec:
  locationSelectors: [{{}}]
  downsync:
  - {{apiGroup: "", resources: [namespaces], objectNames: [{name}]}}
  - {{namespaces: [{name}]}}
"""
REGION = "  locationSelectors: [{{matchLabels: {{region: {region}}}}}]\n"


def place(tree, name, colour, region=None):
    """A ConfigMap that says a colour, at all sites or at those of a region."""
    text = WORKLOAD
    if region:
        text = text.replace("  locationSelectors: [{{}}]\n", REGION)
    file = tree.folder / f"{name}.yaml"
    file.write_text(text.format(name=name, colour=colour, region=region))
    tree.run("apply", "-f", file)


def colours(tree):
    """Of both sites what they hold: colours by placement."""
    found = {}
    for site, path in SITES.items():
        listed = tree.ask(path, "get", resource="configmaps")["objects"]
        found[site] = {it["metadata"]["namespace"]: it["data"]["colour"] for it in listed}
    return found


def until_colours(tree, one, two):
    wanted = {"one": one, "two": two}
    until(lambda: colours(tree) == wanted, lambda: f"{colours(tree)}, not {wanted}")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "a").mkdir()
    grown = Tree(tmp_path / "a")
    grown.run("up", "--regions", "2", "--sites", "1")
    yield grown
    grown.run("down")


def moved(tree, folder):
    """The nodes below the centre as they are; of the centre's own disk nothing is left."""
    other = Tree(folder)
    (folder / "tree").mkdir(parents=True)
    for node in (tree.folder / "tree").glob("lc_*"):
        shutil.copytree(node, folder / "tree" / node.name)
    return other


def test_a_centre_restored_elsewhere_drives_nobody_back_and_a_person_decides(tree, tmp_path):
    for name, region in (("first", "region-1"), ("second", "region-2"), ("both", None)):
        place(tree, name, "green", region)
    place(tree, "gone", "green")
    until_colours(
        tree,
        {"first": "green", "both": "green", "gone": "green"},
        {"second": "green", "both": "green", "gone": "green"},
    )
    key, to = tmp_path / "operator.key", tmp_path / "backups"
    assert "closes backups for it from now on" in tree.run("backup", "key", "new", key)
    said = tree.run("backup", "--every", "15m", "--keep", "96", "--to", to)
    assert re.search(r"\d+ messages, \d+ bytes written", said)
    assert "96 are kept" in said

    for name, region in (("first", "region-1"), ("second", "region-2"), ("both", None)):
        place(tree, name, "blue", region)
    place(tree, "extra", "blue")
    tree.run("delete", "edgeplacement", "gone")
    newer = (
        {"first": "blue", "both": "blue", "extra": "blue"},
        {"second": "blue", "both": "blue", "extra": "blue"},
    )
    until_colours(tree, *newer)
    flat = " ".join(tree.run("doctor").split())
    assert "a lost disk costs all, also the backups" in flat
    assert f"{to} lie on the same disk" in flat
    tree.run("down")

    other = moved(tree, tmp_path / "b")
    assert "say --key with the file of key" in other.run("restore", to, code=1)
    other.run("restore", to, "--key", key)
    try:
        other.run("up")
        decide(other, newer)
        # The timer goes on, into the same folder.
        assert f"to {to}" in other.run("backup")
    finally:
        other.run("down")


def decide(tree, newer):
    one, two = newer
    # What was deleted since the backup is in force again; nothing else changes.
    one, two = {**one, "gone": "green"}, {**two, "gone": "green"}
    until_colours(tree, one, two)

    def listed():
        return tree.run("orphans")

    for name in ("first", "second", "both"):
        said = rf"delta {name} \(at .*, newer than at the centre"
        until(lambda said=said: re.search(said, listed()), listed)
    until(lambda: re.search(r"delta extra \(at \d nodes, e.g. [^,]*\)", listed()), listed)

    decided = tree.run("accept", "--selector", "region=region-1")
    assert "edgeplacement/first: accepted, the centre's form counts again" in decided
    assert "edgeplacement/both: left as it is: it is for others, too" in decided
    assert "second" not in decided
    until_colours(tree, {**one, "first": "green"}, two)
    tree.run("accept", "both")
    until_colours(tree, {**one, "first": "green", "both": "green"}, {**two, "both": "green"})
    assert "Nothing with these labels waits" in tree.run("accept", "-l", "region=nowhere")
    # What is applied again takes the place of what there is; the rest is withdrawn.
    place(tree, "second", "red", "region-2")
    tree.run("withdraw", "--all")
    until_colours(
        tree,
        {"first": "green", "both": "green", "gone": "green"},
        {"second": "red", "both": "green", "gone": "green"},
    )
    until(lambda: "No orphans" in listed(), listed)


def test_verifying_a_backup_touches_no_tree_and_says_what_it_holds(tree, tmp_path, other_disk):
    place(tree, "both", "green")
    key, to = tmp_path / "operator.key", other_disk / "backups"
    secret = tmp_path / "secret"
    secret.write_text("horse\n")
    tree.run("backup", "key", "new", key, "--passphrase-file", secret)
    tree.run("backup", "--every", "15m", "--to", to)
    whole = tmp_path / "centre.tar"
    tree.run("backup", whole)
    before = tree.standing()
    ending = (
        r"It is good: a centre ran of it after [\d.]+ s, with \d+ records in force, \d+ objects"
    )
    said = tree.run("backup", "verify", to, "--key", key, "--passphrase-file", secret)
    assert re.search(ending, said)
    assert re.search(r"relay/OWN: \d+ messages, the same again, [0-9a-f]{16}", said)
    assert re.search(ending, tree.run("backup", "verify", whole))
    assert tree.standing() == before
    checks = json.loads(tree.run("doctor", "-o", "json"))["checks"]
    backups = [it for it in checks if it["group"] == "Backups"]
    assert [it["state"] for it in backups] == ["ok"] * 2
    assert re.search(r"runs after [\d.]+ s, as leafcast-000001", backups[1]["said"])

    wrong = tmp_path / "wrong"
    wrong.write_text("cow")
    said = tree.run("backup", "verify", to, "--key", key, "--passphrase-file", wrong, code=1)
    assert "the passphrase is wrong" in said
    (file,) = to.glob("*.backup")
    file.write_bytes(file.read_bytes()[:-9])
    verify = ("backup", "verify", file, "--key", key, "--passphrase-file", secret)
    assert "it is damaged, or cut off; copy it again" in tree.run(*verify, code=1)


def test_backups_that_fail_are_told_of_wherever_one_looks(tree, tmp_path):
    key, to = tmp_path / "operator.key", tmp_path / "backups"
    tree.run("backup", "key", "new", key)
    tree.run("backup", "--every", "1s", "--to", to)
    to.rename(tmp_path / "not mounted")
    until(lambda: "Backups fail:" in tree.run("status"), lambda: tree.run("status"))
    flat = " ".join(tree.run("doctor").split())
    assert "backups fail since" in flat
    assert "is the disk mounted?" in flat
    until(lambda: "They fail:" in tree.run("backup"))
    until(lambda: "BackupFailed" in tree.run("events", "-o", "json"))
    (tmp_path / "not mounted").rename(to)
    until(lambda: "Backups fail:" not in tree.run("status"), "it does not go on")
    assert "No backups on a timer." in tree.run("backup", "--every", "off")
