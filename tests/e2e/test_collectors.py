"""Collectors on real servers: YAML of the field in, CombinedStatus and aggregated statuses out."""

import asyncio
import json

import pytest
import yaml

from leafcast.client import CallFailed, connect
from tests.awaiting import until
from tests.e2e.program import Program, did

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

EDGES = ("--regions", "2", "--sites", "2")
WORKLOAD = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {version: v2}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "shop/web:2"}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop-reader, labels: {app: shop}}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{}]
  downsync:
  - {apiGroup: "", resources: [namespaces], objectNames: [shop]}
  - namespaces: [shop]
    statusCollectors: [ready, where, later, all]
    wantMultiWECReportedState: true
  - {resources: [clusterroles], objectNames: [shop-reader], statusCollectors: [where, all]}
"""
COLLECTORS = """\
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: ready}
spec:
  filter: has(returned.status)
  limit: 20
  groupBy: [{name: v, def: obj.metadata.labels.version}]
  combinedFields:
  - {name: n, type: COUNT}
  - {name: replicas, type: SUM, subject: returned.status.readyReplicas}
  - {name: mean, type: AVG, subject: returned.status.readyReplicas}
  - {name: least, type: MIN, subject: returned.status.readyReplicas}
  - {name: most, type: MAX, subject: returned.status.readyReplicas}
  - {name: median, type: QUANTILE, subject: returned.status.readyReplicas, quantile: "0.5"}
  - {name: worst, type: TOP, subject: "-returned.status.readyReplicas", top: 1}
  - {name: kinds, type: DISTINCT, subject: returned.status.readyReplicas}
---
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: where}
spec:
  limit: 3
  select:
  - {name: edge, def: inventory.name}
  - {name: there, def: propagation.reachable}
  - {name: list, def: "[1, 2]"}
---
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: all}
spec:
  scope: Placement
  groupBy: [{name: kind, def: obj.kind}]
  combinedFields: [{name: n, type: COUNT}]
"""
LATER = """\
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: later}
spec: {combinedFields: [{name: n, type: SUM, subject: returned.status.phase}]}
"""
BAD = """\
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: bad}
spec: {filter: "returned.status ==", combinedFields: [{name: n, type: COUNT}]}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    program = Program(tmp_path_factory.mktemp("collectors"))
    did(program, "up", *EDGES)
    yield program
    program.run("down")


@pytest.fixture(autouse=True)
def workload(tree, apply):
    apply(COLLECTORS + "---\n" + WORKLOAD)
    until(lambda: combined(tree, "shop", "deployments"))


def combined(tree, namespace, resource=None):
    said = yaml.safe_load(did(tree, "get", "combinedstatus", "-n", namespace, "-o", "yaml").stdout)
    listed = said["items"] if said["kind"].endswith("List") else [said]
    label = "status.kubestellar.io/resource"
    return [o for o in listed if resource in (None, o["metadata"]["labels"][label])]


def rows(obj, collector):
    found = [result for result in obj["results"] if result["name"] == collector]
    return [
        [next((c[k] for k in c if k != "type"), None) for c in row["columns"]]
        for result in found
        for row in result["rows"]
    ]


def reported(tree, resource, collector):
    """The rows of a collector by object, of what lies in no namespace of its own."""
    return [rows(it, collector) for it in combined(tree, "kubestellar-report", resource)]


async def from_python(tree, namespace):
    async with connect(tree.place.folder) as client:
        return [rows async for rows in client.combined_status(namespace)]


def listed(tree, where, *more):
    said = did(tree, "status", "shop", "--destinations", "--filter", where, "-o", "json", *more)
    form = json.loads(said.stdout)
    return [item["path"] for item in form["destinationList"]], form["more"]


def test_destinations_are_told_of_which_an_expression_is_true(tree, apply):
    did(tree, "wait", "shop", "--for", "healthy")
    first = 'path.endsWith("site-1") && health == "healthy"'
    assert listed(tree, first) == (["/region-1/site-1", "/region-2/site-1"], False)
    assert listed(tree, first, "--limit", "1") == (["/region-1/site-1"], True)
    assert listed(tree, 'state != "synced" || !complete || object.size() > 9') == ([], False)
    alone = did(tree, "status", "shop", "--destinations", "--limit", "1", code=2).stderr
    assert "--limit goes with --filter; 'true' takes every destination" in " ".join(alone.split())
    wrong = did(tree, "status", "shop", "--destinations", "--filter", "helth", code=2).stderr
    assert 'unknown variable "helth"; there are path, state, health, wave, complete' in wrong


def test_from_python_either_kind_is_told_of_and_what_is_wrong_is_an_error_at_once(tree, apply):
    policy = {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "BindingPolicy",
        "metadata": {"name": "near"},
        "spec": {
            "clusterSelectors": [{"matchLabels": {"region": "region-1"}}],
            "downsync": [{"namespaces": ["shop"]}],
        },
    }
    apply(yaml.safe_dump(policy))
    did(tree, "wait", "bp/near", "--for", "synced")

    async def read():
        async with connect(tree.place.folder) as client:
            for name in ("near", "bp/near"):
                found = [str(it.path) async for it in client.destinations(name)]
                assert found == ["/region-1/site-1", "/region-1/site-2"]
            assert len([it async for it in client.destinations("epl/shop")]) == 4
            with pytest.raises(CallFailed, match="not CEL"):
                [it async for it in client.destinations("shop", "health ==")]
            with pytest.raises(CallFailed, match='unknown variable "nope"'):
                [it async for it in client.upsynced("configmaps", filter="nope.x")]
            with pytest.raises(CallFailed, match="/region-1 is a relay"):
                [it async for it in client.upsynced("configmaps", at="/region-1")]

    asyncio.run(read())
    did(tree, "delete", "bp/near")


def test_collectors_say_what_all_copies_say(tree, apply):
    did(tree, "wait", "shop", "--for", "healthy")
    top = [{"clusterId": "region-1-site-1", "value": "-2"}]

    def ready():
        return [rows(obj, "ready") for obj in combined(tree, "shop", "deployments")]

    def whole():
        return ready() and ready()[0] and ready()[0][0][:3] == ["v2", "4", "8"]

    until(whole, ready)
    [[[*counts, median, worst, kinds]]] = ready()
    assert counts == ["v2", "4", "8", "2", "2", "2"]
    assert (worst, kinds) == (top, "1")
    assert abs(float(median) - 2) <= 0.02
    [web] = combined(tree, "shop", "deployments")
    [first, second, third] = rows(web, "where")
    assert [first, second, third] == [
        ["region-1-site-1", True, [1, 2]],
        ["region-1-site-2", True, [1, 2]],
        ["region-2-site-1", True, [1, 2]],
    ]
    told = {(it.object.name, it.collector): it for it in asyncio.run(from_python(tree, "shop"))}
    told_ready, told_where = told["web", "ready"], told["web", "where"]
    assert (told_ready.placement, told_ready.complete) == ("edgeplacement/shop", True)
    assert told_ready.rows[0] | {"v": "v2", "n": 4.0, "replicas": 8.0} == told_ready.rows[0]
    assert told_where.rows[0] == {"edge": "region-1-site-1", "there": True, "list": [1, 2]}
    assert (len(told_where.rows), told_where.rest) == (3, 1)
    [where] = [result for result in web["results"] if result["name"] == "where"]
    assert where["rest"] == {"columns": [{"type": "Null"}] * 3, "count": "1"}
    assert where["rows"][0]["columns"][2]["type"] == "Array"
    metadata = web["metadata"]
    assert metadata["annotations"]["leafcast.io/complete"] == "true"
    assert metadata["labels"] == {
        "status.kubestellar.io/api-group": "apps",
        "status.kubestellar.io/resource": "deployments",
        "status.kubestellar.io/namespace": "shop",
        "status.kubestellar.io/name": "web",
        "status.kubestellar.io/binding-policy": "shop",
    }
    plain = json.loads(did(tree, "get", "deploy/web", "-n", "shop", "-o", "json").stdout)
    placed = json.loads(did(tree, "get", "epl/shop", "-o", "json").stdout)
    uids = [obj["metadata"]["uid"] for obj in (plain, placed)]
    assert metadata["name"] == ".".join(uids)
    assert metadata["ownerReferences"][0]["uid"] == uids[0]
    # Of cluster-scoped objects, and of the placement as a whole, in a namespace of their own.
    until(lambda: [len(each) for each in reported(tree, "clusterroles", "where")] == [3])
    whole_placement = [[["ClusterRole", "4"], ["Deployment", "4"]]]
    until(lambda: reported(tree, "edgeplacements", "all") == whole_placement)
    table = did(tree, "get", "combinedstatus", "-n", "shop").stdout
    assert "deployments/web" in table
    assert "ready where" in table
    assert (
        "region-2-site-1"
        in did(tree, "describe", "combinedstatus", metadata["name"], "-n", "shop").stdout
    )


def test_all_copies_return_one_status_and_none_when_it_is_switched_off(tree, apply):
    def web():
        return json.loads(did(tree, "get", "deploy/web", "-n", "shop", "-o", "json").stdout)

    def status():
        return web().get("status") or {}

    until(lambda: status().get("readyReplicas") == 2, status)
    assert (status()["replicas"], status()["unavailableReplicas"]) == (2, 0)
    told = {each["type"]: each["status"] for each in status()["conditions"]}
    assert told == {"Available": "True", "Progressing": "True"}
    before = web()["metadata"]["generation"]
    apply(WORKLOAD.replace("shop/web:2", "shop/web:3"))
    until(lambda: status().get("observedGeneration") == before + 1, web)
    apply(WORKLOAD.replace("    wantMultiWECReportedState: true\n", ""))
    until(lambda: not status(), status)


def test_a_collector_that_is_missing_is_said_and_fills_in_when_it_comes(tree, apply):
    def said():
        [web] = combined(tree, "shop", "deployments")
        later = [result for result in web["results"] if result["name"] == "later"]
        conditions = json.loads(did(tree, "get", "epl/shop", "-o", "json").stdout)["status"]
        [told] = [c for c in conditions["conditions"] if c["type"] == "StatusCollectorsAvailable"]
        return told["message"], later

    until(lambda: said() == ("Missing StatusCollector(s) [later]", []), said)
    apply(LATER)
    until(lambda: said()[0] == "All StatusCollector(s) are available" and said()[1], said)
    # Copies have a status only after a moment.
    until(lambda: "no such key: phase" in json.dumps(said()[1][0].get("rowErrors")), said)
    [result] = said()[1]
    # Every row fails, so the one group there is without groupBy has none.
    assert result["rows"] == [{"columns": [{"type": "Number", "float": "0"}]}]
    [error] = result["rowErrors"]
    assert error == {
        "wec": {"clusterId": "region-1-site-1"},
        "columnName": "n",
        "error": "no such key: phase",
        "count": "4",
    }
    did(tree, "delete", "statuscollector", "later")
    until(lambda: said() == ("Missing StatusCollector(s) [later]", []), said)


def test_a_collector_that_is_wrong_is_refused_before_anything_is_written(tree, apply):
    refused = apply(BAD, code=1).stderr
    assert "spec.filter: not CEL: at 1:19" in refused
    unknown = BAD.replace("returned.status ==", "self.status")
    assert 'spec.filter: unknown variable "self"' in apply(unknown, code=1).stderr
    both = BAD.replace("spec: {", "spec: {select: [{name: a, def: obj}], ").replace(" ==", "")
    assert "groupBy and combinedFields must be empty if select is not" in apply(both, code=1).stderr
    assert "bad" not in did(tree, "get", "statuscollectors").stdout


def test_what_is_not_collected_any_more_goes(tree):
    did(tree, "delete", "epl", "shop", "--confirm-removals")
    until(
        lambda: "No resources found" in did(tree, "get", "combinedstatus", "-n", "shop").stderr,
        lambda: did(tree, "get", "combinedstatus", "-A").stdout,
    )


MANY = 100
NUMBERS = ", ".join(map(str, range(120)))
DEAR = f"""\
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {{name: dear}}
spec:
  scope: Placement
  limit: 1
  filter: obj.kind == 'ConfigMap' && [{NUMBERS}].map(a, a * 2).size() == 120
  select: [{{name: what, def: obj.metadata.name}}]
---
"""


def config_maps(namespace, count, collectors="[]"):
    texts = [
        f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n",
        f"""\
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {{name: {namespace}}}
spec:
  locationSelectors: [{{}}]
  downsync:
  - {{apiGroup: "", resources: [namespaces], objectNames: [{namespace}]}}
  - {{apiGroup: "", resources: [configmaps], namespaces: [{namespace}],
      statusCollectors: {collectors}}}
""",
    ]
    texts += [
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{at:03}, namespace: {namespace}}}\n"
        for at in range(count)
    ]
    return "---\n".join(texts)


def test_a_dear_collector_over_many_objects_delays_no_sibling(tree, apply):
    def counted():
        found = yaml.safe_load(did(tree, "get", "combinedstatuses", "-A", "-o", "yaml").stdout)
        results = [it for obj in found["items"] for it in obj["results"] if it["name"] == "dear"]
        rows = [len(it["rows"]) + int(it.get("rest", {}).get("count", 0)) for it in results]
        return sum(rows)

    apply(DEAR + config_maps("many", MANY, "[dear]"))
    apply(config_maps("few", 1))
    did(tree, "wait", "few", "--for", "synced", "--timeout", "60s")
    assert counted() < 4 * MANY, "the sibling is done before all that is evaluated"
    until(lambda: counted() == 4 * MANY, counted)
    did(tree, "delete", "epl", "many", "few", "--confirm-removals")
