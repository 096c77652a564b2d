"""Collectors over a whole tree in memory: YAML in, CombinedStatus out."""

import asyncio

import pytest
import yaml

from relay.core.collectors.tables import CollectedRow, CollectedTable, TableAlgebra
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from schemas.records.placements import placement_key
from schemas.reports.collectors import LABEL_PREFIX, PLACEMENT_ANNOTATION
from tests.memory_tree import config_map, memory_tree, placement

pytestmark = pytest.mark.leaps

EDGES = ["/emea", "/emea/s1", "/emea/s2", "/apac", "/apac/s3"]
READY = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: ready}
spec:
  filter: has(returned.status)
  groupBy: [{name: v, def: obj.metadata.labels.version}]
  combinedFields:
  - {name: n, type: COUNT}
  - {name: sum, type: SUM, subject: returned.status.readyReplicas}
"""
EACH = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: each}
spec:
  select:
  - {name: who, def: inventory.name}
  - {name: is, def: has(returned.status)}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {version: v2}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:2}]}
"""
PLACEMENT = """
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{}]
  downsync:
  - {namespaces: [shop], statusCollectors: [ready, each, later]}
"""


async def combined(tree, met, seconds=20):
    """Wait until the only CombinedStatus meets the condition."""
    found = None
    async with asyncio.timeout(seconds):
        while True:
            listing = await tree.workloads.list("control.kubestellar.io", "combinedstatuses")
            if listing.objects:
                found = listing.objects[0]
                if met(found):
                    return found
            await asyncio.sleep(0.05)


def rows(obj, name):
    (result,) = [r for r in obj["results"] if r["name"] == name]
    return [
        [c.get("string", c.get("float", c.get("bool"))) for c in row["columns"]]
        for row in result["rows"]
    ]


async def test_rows_of_all_edges_come_together(tmp_path):
    async with memory_tree(tmp_path, EDGES) as tree:
        await tree.apply(*[yaml.safe_load(text) for text in (READY, EACH, WEB, PLACEMENT)])
        obj = await combined(tree, lambda obj: rows(obj, "ready") == [["v2", "3", "9"]])
        assert rows(obj, "each") == [["apac-s3", True], ["emea-s1", True], ["emea-s2", True]]
        assert obj["metadata"]["labels"][f"{LABEL_PREFIX}binding-policy"] == "shop"
        placed = await tree.workloads.get(placement_key("shop"))
        said = {c["type"]: c for c in placed["status"]["conditions"]}["StatusCollectorsAvailable"]
        assert said["message"] == "Missing StatusCollector(s) [later]"


POLICY = """
apiVersion: control.kubestellar.io/v1alpha1
kind: BindingPolicy
metadata: {name: shop}
spec:
  clusterSelectors: [{matchLabels: {region: emea}}]
  downsync: [{namespaces: [shop], statusCollectors: [each]}]
"""


async def test_an_edge_that_cuts_all_rows_hides_its_own_alone(tmp_path, monkeypatch):
    write, lies = TableAlgebra._written, []

    def evil(algebra, table, room):
        if table.counted == 1 and any(b"s1" in key for key in table.rows):
            lies.append(table)
            table = CollectedTable(1, {}, cut=b"", rest=CollectedRow(1, ()), truncated=True)
        return write(algebra, table, room)

    monkeypatch.setattr(TableAlgebra, "_written", evil)
    async with memory_tree(tmp_path, EDGES) as tree:
        await tree.apply(*[yaml.safe_load(text) for text in (READY, EACH, WEB, PLACEMENT)])
        others = [["apac-s3", True], ["emea-s2", True]]
        obj = await combined(tree, lambda obj: rows(obj, "each") == others)
        (each,) = [result for result in obj["results"] if result["name"] == "each"]
        assert (each["truncated"], each["rest"]["count"]) == (True, "1")
        await combined(tree, lambda obj: rows(obj, "ready") == [["v2", "3", "9"]])
    assert lies


async def test_a_policy_has_its_own_rows_beside_a_placement_of_its_name(tmp_path):
    async with memory_tree(tmp_path, EDGES) as tree:
        texts = (READY, EACH, WEB, PLACEMENT, POLICY)
        await tree.apply(*[yaml.safe_load(text) for text in texts])

        async def of_each():
            found = await tree.workloads.list("control.kubestellar.io", "combinedstatuses")
            return sorted(
                (obj["metadata"]["annotations"][PLACEMENT_ANNOTATION], len(rows(obj, "each")))
                for obj in found.objects
                if any(result["name"] == "each" for result in obj["results"])
            )

        wanted = [("bindingpolicy/shop", 2), ("edgeplacement/shop", 3)]
        async with asyncio.timeout(60):
            while await of_each() != wanted:
                await asyncio.sleep(0.05)
        await tree.workloads.delete(placement_key("bindingpolicy/shop"))
        async with asyncio.timeout(60):
            while await of_each() != wanted[1:]:
                await asyncio.sleep(0.05)


THERE = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: there}
spec:
  scope: Placement
  limit: 1000
  select:
  - {name: what, def: obj.data.text}
  - {name: there, def: propagation.reachable}
"""


async def test_rows_that_find_no_room_are_counted_also_if_they_say_who_is_there(tmp_path):
    """Such rows travel twice: as they count now, and as they do while nobody hears from there."""
    async with memory_tree(tmp_path, ["/s1"]) as tree:
        maps = [config_map(f"c{at:03}", "shop", text="y" * 280) for at in range(110)]
        shop = placement("shop", "shop")
        shop["spec"]["downsync"] = [{"resources": ["configmaps"], "statusCollectors": ["there"]}]
        await tree.apply(*maps, yaml.safe_load(THERE), shop)

        def whole(obj):
            told = obj["results"][0]
            rest = int(told.get("rest", {}).get("count", 0))
            return rest > 0 and len(told["rows"]) + rest == 110

        obj = await combined(tree, whole)
        assert obj["results"][0]["truncated"]


SENT = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: each}
spec:
  select:
  - {name: bare, def: "!has(obj.status) && has(returned.status)"}
  - {name: nobody, def: "!has(obj.metadata.uid)"}
"""


async def test_an_expression_sees_the_object_as_it_was_sent(tmp_path):
    async with memory_tree(tmp_path, ["/s1"]) as tree:
        placed = yaml.safe_load(PLACEMENT)
        placed["spec"]["downsync"][0]["wantSingletonReportedState"] = True
        await tree.apply(yaml.safe_load(SENT), yaml.safe_load(WEB), placed)
        # The centre's own object has the status of its one copy meanwhile.
        web = ObjectKey("apps", "deployments", "shop", "web")
        async with asyncio.timeout(60):
            while not (await tree.workloads.get(web)).get("status"):
                await asyncio.sleep(0.05)
        await combined(tree, lambda obj: rows(obj, "each") == [[True, True]])


ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "shop:reader"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""
BOTH = """
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{}]
  downsync:
  - {namespaces: [shop], statusCollectors: [each]}
  - {apiGroup: rbac.authorization.k8s.io, objectNames: ["shop:reader"], statusCollectors: [each]}
"""


async def test_one_that_is_refused_is_said_and_stops_no_other(tmp_path):
    refusing = "Invalid"

    async def apply(obj, manager, **options):
        labels = obj["metadata"].get("labels") or {}
        if refusing and labels.get("status.kubestellar.io/resource") == "clusterroles":
            raise SpaceError(refusing, "not that one")
        return await applied(obj, manager, **options)

    async with memory_tree(tmp_path, ["/s1", "/s2"]) as tree:
        applied, tree.workloads.apply = tree.workloads.apply, apply
        await tree.apply(*[yaml.safe_load(text) for text in (EACH, ROLE, WEB, BOTH)])
        both = [["s1", True], ["s2", True]]
        await combined(tree, lambda obj: rows(obj, "each") == both)
        said = await collectors_condition(tree, "False")
        assert said == "a CombinedStatus was refused: ClusterRole shop:reader: not that one"
        refusing = ""
        await collectors_condition(tree, "True")
        found = await tree.workloads.list("control.kubestellar.io", "combinedstatuses")
        [role] = [obj for obj in found.objects if obj["metadata"]["namespace"] != "shop"]
        assert role["metadata"]["labels"]["status.kubestellar.io/name"].startswith("shop-reader-")


async def collectors_condition(tree, status):
    """Wait for the placement's condition; its message."""
    async with asyncio.timeout(60):
        while True:
            placement = await tree.workloads.get(placement_key("shop"))
            for said in (placement.get("status") or {}).get("conditions", ()):
                if (said["type"], said["status"]) == ("StatusCollectorsAvailable", status):
                    return said["message"]
            await asyncio.sleep(0.05)
