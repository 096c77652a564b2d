"""Waves, dependencies and moves as a user meets them, on real servers with simulated clusters."""

import json
import subprocess
import sys

import pytest

from tests.awaiting import until
from tests.e2e.program import EDGES, ROOT, did
from tests.e2e.test_policies import got, target_at

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

HERE, THERE = EDGES
RELABEL = ROOT / "examples" / "carbon" / "relabel.py"
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {name}}}
spec: {{replicas: 1, template: {{spec: {{containers: [{{name: main, image: "web:{tag}"}}]}}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: switch, namespace: {name}, annotations: {{leafcast.io/wave: "1"}}}}
data: {{to: "{tag}"}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}, annotations: {annotations}}}
spec:
  locationSelectors: [{where}]
  downsync:
  - {{apiGroup: "", resources: [namespaces], objectNames: [{name}]}}
  - {{namespaces: [{name}]}}
"""


@pytest.fixture
def apply(tree, tmp_path):
    def applied(name, tag, where="{}", code=0, **annotations):
        file = tmp_path / "manifests.yaml"
        said = json.dumps({f"leafcast.io/{k.replace('_', '-')}": v for k, v in annotations.items()})
        file.write_text(WORKLOAD.format(name=name, tag=tag, where=where, annotations=said))
        return did(tree, "apply", "-f", str(file), code=code)

    return applied


def is_at(tree, edge, kind, name, namespace):
    return tree.run("get", kind, name, "-n", namespace, "--at", edge).returncode == 0


def condition(tree, name, type_):
    listed = got(tree, "epl", name)["status"].get("conditions", [])
    return next((item for item in listed if item["type"] == type_), {})


def test_a_wave_waits_for_the_one_before_and_a_placement_for_another(tree, apply):
    apply("platform", "broken")
    apply("shop", "1", depends_on="platform")
    until(lambda: is_at(tree, HERE, "deploy", "web", "platform"))
    until(lambda: got(tree, "epl", "shop")["status"].get("waiting", 0) or waits(tree, "shop"))
    assert not is_at(tree, HERE, "cm", "switch", "platform")
    assert not is_at(tree, HERE, "deploy", "web", "shop")
    apply("platform", "1")
    did(tree, "wait", "--for", "healthy", "platform", "shop")
    for name in ("platform", "shop"):
        assert all(is_at(tree, edge, "cm", "switch", name) for edge in EDGES)
    bad = apply("platform", "1", depends_on="shop", code=1).stderr
    assert "platform, shop would wait for each other; take one out of the circle" in bad
    apply("shop", "1", depends_on="shelf")
    until(lambda: "edgeplacement/shelf: not there" in said(tree, "shop", "DependencyMissing"))


def waits(tree, name):
    return "waiting" in said(tree, name, "Synced")


def said(tree, name, type_):
    return condition(tree, name, type_).get("message", "")


def relabel(tree, tmp_path, grams):
    """Have the example label the cleanest of the Locations that these paths are in."""
    file = tmp_path / "grams.json"
    named = {target_at(tree, path)["metadata"]["name"]: it for path, it in grams.items()}
    file.write_text(json.dumps(named))
    done = subprocess.run(
        [sys.executable, RELABEL, file, "--program", f"{sys.executable} -m leafcast"],
        env=tree.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def healthy_at(tree, edge, name):
    done = tree.run("get", "deploy/web", "-n", name, "-o", "json", "--at", edge)
    status = json.loads(done.stdout).get("status", {}) if done.returncode == 0 else {}
    return status.get("availableReplicas", 0) == 1


def test_a_move_makes_before_it_breaks(tree, apply, tmp_path):
    relabel(tree, tmp_path, {HERE: 30, THERE: 600})
    apply("green", "1", "{matchLabels: {carbon: low}}", move="make-before-break")
    did(tree, "wait", "--for", "healthy", "green")
    assert healthy_at(tree, HERE, "green")
    relabel(tree, tmp_path, {HERE: 500, THERE: 200})

    def moved():
        # Asked in this order: what is lost later is seen as still there.
        before = healthy_at(tree, THERE, "green")
        kept = is_at(tree, HERE, "deploy", "web", "green")
        assert before or kept
        return before and not kept

    until(moved, "it did not move")
    until(lambda: not condition(tree, "green", "Moving"))
