"""On real API servers: what was aborted stays back, and is written back at the centre as it was."""

import json

import pytest

from tests.awaiting import until
from tests.kube.live_tree import config_map, namespace

pytestmark = [pytest.mark.kube, pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def tree(live_tree):
    return live_tree


_SHOP = """
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: undone}}
spec: {{type: NodePort, selector: {{app: web}}, ports: [{{name: http, port: 80}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: undone}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: "shop/web:{version}"{more}}}]}}
"""
_ROLLOUT = """
apiVersion: leafcast.io/v1alpha1
kind: Rollout
metadata: {name: undone}
spec:
  placement: {name: undone}
  success: {of: synced}
  waves:
  - {name: first, selector: {matchLabels: {id: region-1-site-1}}}
  - {name: rest, percent: 100, approval: before}
"""


def test_what_was_aborted_is_written_back_as_it_was_and_no_more(tree):
    tree.apply(namespace("undone"))
    tree.apply(_SHOP.format(version=1, more=""))
    tree.synced("undone")
    tree.apply(_ROLLOUT)
    tree.leafcast("wait", "epl/undone", "--for", "rolled-out")
    before = {kind: _centre_object(tree, kind) for kind in ("deploy", "svc")}
    bad = _SHOP.format(version="bad", more=', env: [{name: A, value: "1"}]')
    tree.apply(bad.replace("port: 80", "port: 81"))
    until(lambda: "needs approval" in tree.leafcast("rollout", "status", "undone"))
    done = tree.leafcast("rollout", "abort", "undone")
    assert "undone/deployments.apps/web" in done
    assert "undone/services/web" in done
    tree.apply(config_map("undone", "other", 1))
    until(lambda: tree.try_site(0, "get", "cm", "other", "-n", "undone").returncode == 0)
    assert _image(tree.site(0, "get", "deploy", "web", "-n", "undone", "-o", "json")) == "1"
    done = tree.leafcast("rollout", "restore", "undone")
    assert "undone/deployments.apps/web restored" in done
    for kind, was in before.items():
        now = _centre_object(tree, kind)
        # What the server chose stays, and its own annotations are nobody's content.
        assert now["spec"] == was["spec"], kind
    until(lambda: not tree.status("undone").get("held") or _awaits_only(tree))
    tree.leafcast("rollout", "promote", "undone", "--all")
    tree.synced("undone")
    tree.centre("delete", "epl/undone", "rollout/undone")


def _awaits_only(tree):
    return [it["reason"] for it in tree.status("undone")["held"]] == ["AwaitingApproval"]


def _centre_object(tree, kind):
    return json.loads(tree.centre("get", kind, "web", "-n", "undone", "-o", "json"))


def _image(text):
    read = json.loads(text)
    return read["spec"]["template"]["spec"]["containers"][0]["image"].rpartition(":")[2]
