"""A backup that the last release wrote is tried and put back by what stands here."""

import re

import pytest

from tests.awaiting import until
from tests.e2e.join_tree import Tree
from tests.e2e.test_backups import moved

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

SITE = "/region-1/site-1"
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {{name: shop}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: shop}}
data: {{colour: {colour}}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: shop}}
spec:
  locationSelectors: [{{}}]
  downsync:
  - {{apiGroup: "", resources: [namespaces], objectNames: [shop]}}
  - {{namespaces: [shop]}}
"""


def test_a_backup_of_the_last_release_is_verified_and_restored_elsewhere(releases, tmp_path):
    (tmp_path / "a").mkdir()
    old = Tree(tmp_path / "a", releases[True])
    old.run("up", "--regions", "1", "--sites", "1")
    try:
        _apply(old, "green")
        old.run("backup", tmp_path / "centre.tar")
        _apply(old, "blue")
    finally:
        old.run("down")
    new = moved(old, tmp_path / "b")
    said = new.run("backup", "verify", tmp_path / "centre.tar")
    assert re.search(r"relay/OWN: \d+ messages, the same again, [0-9a-f]+", said)
    assert "It is good" in said
    new.run("restore", tmp_path / "centre.tar")
    try:
        new.run("up")
        until(lambda: "delta shop (at" in new.run("orphans"), "what is newer is not listed")
        assert new.settings_at(SITE) == ["blue"]
        assert "the centre's form counts again" in new.run("accept", "shop")
        until(lambda: new.settings_at(SITE) == ["green"], "it does not go back")
        _apply(new, "red")
    finally:
        new.run("down")


def _apply(tree, colour):
    file = tree.folder / "shop.yaml"
    file.write_text(WORKLOAD.format(colour=colour))
    tree.run("apply", "-f", file)
    until(lambda: tree.settings_at(SITE) == [colour], f"{SITE} is not {colour}")
