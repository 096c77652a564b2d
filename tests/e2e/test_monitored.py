"""Debian's Prometheus beside a real tree: it fills both boards, and tells of trouble."""

import json
import time

import pytest

from tests.alert_scenes.on_servers import Watched
from tests.awaiting import until
from tests.e2e.program import EDGES, did
from tests.e2e.prometheus_beside import PROMETHEUS, prometheus
from tests.unit.test_monitoring import BOARDS

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(500),
    pytest.mark.skipif(PROMETHEUS is None, reason="Prometheus is of Debian's prometheus"),
]
APP = """\
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAME}
data: {said: SAID}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: NAME}
spec: {locationSelectors: [{}], downsync: [{namespaces: [NAME]}]}
"""
ROLLOUT = """\
---
apiVersion: leafcast.io/v1alpha1
kind: Rollout
metadata: {name: go}
spec:
  placement: {name: gated}
  waves: [{name: all, percent: 100, approval: before}]
"""
OF_EDGES = {"Objects in the cluster", "What came of changing objects"}
"""Panels that have nothing to show of a node without a cluster."""
OF_SOME = {"Notes by reason"}
"""Panels that show a node of which there is something to tell: here, who dropped a placement."""


class Tree(Watched):
    """A tree of which something is made to be told."""

    def __init__(self, folder):
        super().__init__(folder)
        self._folder = folder

    def apply(self, name, said="one", more=""):
        file = self._folder / "applied.yaml"
        file.write_text(APP.replace("NAME", name).replace("SAID", said) + more)
        did(self.tree, "apply", "-f", str(file))


def panels():
    for board in BOARDS:
        for panel in json.loads(board.read_text())["panels"]:
            for target in panel["targets"]:
                yield panel["title"], target["expr"]


def empty_panels(seen):
    """Those of which a query shows nothing that is to show something."""
    for title, query in panels():
        if "$node" not in query:
            shown, wanted = ["tree"] if seen.numbers(query) else [], ["tree"]
        else:
            wanted = list(EDGES) if title in OF_EDGES | OF_SOME else seen.nodes()
            shown = [it for it in wanted if seen.numbers(query.replace("$node", it))]
        if shown != wanted:
            yield f"{title}: {query} of {set(wanted) - set(shown)}"


def test_prometheus_fills_each_panel_of_the_boards_and_alerts_come_and_go(tmp_path):
    watched = Tree(tmp_path)
    watched.up()
    try:
        with prometheus(tmp_path, watched.port) as seen:
            _boards_are_full(watched, seen)
            _alerts_come_and_go(watched, seen)
    finally:
        watched.tree.run("down")


def _boards_are_full(watched, seen):
    # A rate is of what grew since it was seen first.
    watched.apply("shop")
    watched.apply("gated", more=ROLLOUT)
    watched.apply("former")
    did(watched.tree, "wait", "former", "--for", "synced")
    working = 'leafcast_propagation_seconds_count{stage="working", node="/"}'
    until(lambda: any(seen.numbers(working)), "no change is seen to be counted")
    assert seen.nodes() == ["/", "/region-1", *EDGES]
    watched.apply("shop", "two")
    did(watched.tree, "delete", "edgeplacement", "former")
    until(lambda: not [*empty_panels(seen)], lambda: "\n".join(empty_panels(seen)))
    notes = dict(panels())["Notes by reason"].replace("$node", EDGES[0])
    assert max(seen.numbers(notes)) >= 1, "the first note of a reason is none of a rate"
    assert {it["health"] for it in seen.rules()} == {"ok"}
    now = time.time()
    exemplars = seen.asked(
        "query_exemplars",
        query="leafcast_propagation_seconds_bucket",
        start=str(now - 300),
        end=str(now),
    )
    traces = {it["labels"]["trace_id"] for each in exemplars for it in each["exemplars"]}
    assert all(len(it) == 32 for it in traces)
    assert traces


def _alerts_come_and_go(watched, seen):
    until(lambda: seen.fires("LeafcastRolloutWaits", rollout="go"), seen.firing)
    did(watched.tree, "rollout", "approve", "go", "all")
    until(lambda: not seen.fires("LeafcastRolloutWaits"), seen.firing)

    with watched.stopped(EDGES[1]):
        until(lambda: seen.fires("LeafcastServerSilent", node=EDGES[1]), seen.firing)
    until(lambda: not seen.fires("LeafcastServerSilent"), seen.firing)

    did(watched.tree, "down")
    until(lambda: seen.fires("LeafcastDown"), seen.firing)
    watched.up()
    until(lambda: not seen.fires("LeafcastDown"), seen.firing)
