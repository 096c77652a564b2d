"""`leafcast why` over real servers names the first stage that blocks, and the remedy."""

import json
from pathlib import Path

import pytest

from tests.awaiting import until
from tests.e2e.page_hand import did_at_page
from tests.e2e.program import EDGES, did

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

HERE, THERE = EDGES
PLACED = """\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {name}}}
data: {{a: "{value}"}}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {name}}}
spec: {{locationSelectors: [{where}], downsync: [{{namespaces: [{name}]}}]}}
"""
ROLLOUT = """\
apiVersion: leafcast.io/v1alpha1
kind: Rollout
metadata: {name: rolled}
spec:
  placement: {kind: EdgePlacement, name: rolled}
  success: {of: synced}
  waves:
  - {name: first, selector: {matchLabels: {id: region-1-site-1}}}
  - {name: rest, percent: 100, approval: before}
"""
WAVES = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: plain}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:broken"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: later, namespace: plain, annotations: {leafcast.io/wave: "1"}}
data: {a: "1"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: plain}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: cast
  annotations: {control.kubestellar.io/expand-templates: "true"}
data: {a: "{{ .till }}"}
"""


def until_explained(tree, stage, *words, at=HERE):
    """What is said and the remedy, once it stops at this stage; else the last that was said."""
    last = []

    def there():
        done = tree.run("why", *words, "--at", at, "-o", "json")
        last[:] = [done.stdout or done.stderr]
        if done.returncode not in (0, 1):
            # The centre may not have read yet what was applied a moment ago.
            return None
        form = json.loads(done.stdout)
        assert form["ok"] == (done.returncode == 0)
        [found] = form["explanations"]
        return (found["said"], found["remedy"]) if found["stage"] == stage else None

    return until(there, lambda: str(last))


def test_what_arrives_and_what_is_meant_for_others(tree, apply, tmp_path):
    only = "{matchLabels: {id: region-1-site-1}}"
    apply(PLACED.format(name="only", value=1, where=only))
    did(tree, "wait", "only", "--for", "healthy")

    shown = did(tree, "why", "cm/settings", "-n", "only", "--at", HERE).stdout.splitlines()
    assert shown == [
        f"only/configmaps/settings at {HERE}, by edgeplacement/only",
        "  ✓ as it is meant: applied, and healthy",
    ]
    # The way of the change that brought it is told by all nodes on it.
    way = did(tree, "trace", "only", "--at", HERE).stdout
    assert way.startswith(f"edgeplacement/only to {HERE} and back: ")
    assert "no span" not in way
    form = json.loads(did(tree, "trace", "only", "-o", "json").stdout)
    assert [node["path"] for node in form["nodes"]] == ["/", str(Path(HERE).parent), HERE]
    centre = [span["stage"] for span in form["nodes"][0]["spans"]]
    assert {"judged", "acknowledged", "seen", "counted working"} <= {*centre}
    assert "there is no node /away" in did(tree, "trace", "only", "--at", "/away", code=1).stderr
    said, remedy = until_explained(tree, "not-selected", "only", at=THERE)
    assert said == (
        'location.labels.id is "region-1-site-2" (region-1-site-2), '
        'the placement wants "region-1-site-1"'
    )
    assert remedy.startswith("leafcast label location region-1-site-2 id=region-1-site-1 ")
    # What a change would alter there is told before it is made.
    everywhere = tmp_path / "everywhere.yaml"
    everywhere.write_text(PLACED.format(name="only", value=2, where="{}"))
    compared = ("why", "cm/settings", "-n", "only", "--before-after", "-f", str(everywhere))
    news = did(tree, *compared, "--at", THERE, code=1).stdout
    assert "locationSelectors of edgeplacement/only match it now" in news
    form = json.loads(did(tree, *compared, "--at", HERE, "-o", "json", code=1).stdout)
    assert [(row["action"], row["fields"]) for row in form["rows"]] == [("update", ["data.a"])]
    assert form["before"]["ok"]
    assert "goes with -f" in did(tree, "why", "--before-after", "--at", HERE, code=2).stderr
    # What it says to do does it.
    command = remedy.partition(",")[0].split()[1:]
    did(tree, *command)
    did(tree, "wait", "only", "--for", "healthy")
    until_explained(tree, "as-meant", "only", at=THERE)
    did(tree, "label", "location", "region-1-site-2", "id=region-1-site-2", "--overwrite")


def test_what_a_rollout_keeps_back(tree, apply):
    apply(PLACED.format(name="rolled", value=1, where="{}"))
    did(tree, "wait", "rolled", "--for", "synced")
    apply(ROLLOUT)
    did(tree, "wait", "rolled", "--for", "rolled-out")
    apply(PLACED.format(name="rolled", value=2, where="{}"))

    said, remedy = until_explained(tree, "approval", "rolled", at=THERE)
    assert said == 'rollout "rolled": wave "rest" needs approval to begin'
    assert remedy == "leafcast rollout approve rolled rest"
    until_explained(tree, "as-meant", "cm/settings", "-n", "rolled")
    folder = tree.place.folder
    assert "nothing more opens" in did_at_page(folder, "rollout-pause", rollout="rolled")
    said, remedy = until_explained(tree, "held", "rolled", at=THERE)
    assert (said.partition(":")[0], remedy) == ("RolloutPaused", "leafcast rollout resume rolled")
    did(tree, "rollout", "resume", "rolled")
    until_explained(tree, "approval", "rolled", at=THERE)
    did_at_page(folder, "rollout-approve", rollout="rolled", wave="rest")
    did(tree, "wait", "rolled", "--for", "rolled-out")
    until_explained(tree, "as-meant", "rolled", at=THERE)

    apply(PLACED.format(name="rolled", value=3, where="{}"))
    until_explained(tree, "approval", "rolled", at=THERE)
    did_at_page(folder, "rollout-abort", rollout="rolled")
    said, _ = until_explained(tree, "held", "rolled", at=THERE)
    assert said.startswith("RolloutAborted")


def test_what_stops_at_the_edge(tree, apply):
    apply(PLACED.format(name="plain", value=1, where="{}") + "---\n" + WAVES)

    until_explained(tree, "not-healthy", "deploy/web", "-n", "plain")
    said, _ = until_explained(tree, "earlier", "cm/later", "-n", "plain")
    assert said.startswith("for deployments.apps/plain/web of wave 0")
    until_explained(tree, "as-meant", "pvc/data", "-n", "plain")
    did(tree, "delete", "pvc/data", "-n", "plain")
    apply(WAVES.split("---", maxsplit=1)[0].replace("web:broken", "web:1"))
    _, remedy = until_explained(tree, "surplus", "pvc/data", "-n", "plain")
    assert f"--kept --at {HERE}" in remedy


def test_what_cannot_be_customized_freezes(tree, apply):
    apply(PLACED.format(name="cast", value=1, where="{}"))
    did(tree, "wait", "cast", "--for", "synced")
    did(tree, "label", "synctarget", "region-1-site-1", "till=7")
    apply(TEMPLATE)

    said, _ = until_explained(tree, "frozen", "cast", at=THERE)
    assert 'data.a: no property "till"' in said
    until_explained(tree, "as-meant", "cast")


def test_what_is_not_there_says_how_to_ask(tree):
    relay = did(tree, "why", "nothing", "--at", "/region-1", code=2).stderr
    assert f"name one below it, such as {HERE}" in relay
    nobody = did(tree, "why", "nothing", "--at", HERE, code=2).stderr
    assert 'there is no EdgePlacement "nothing"' in nobody
