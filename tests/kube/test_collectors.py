"""On an API server: StatusCollectors by kubectl, and the CombinedStatuses that answer them."""

import asyncio
import json

import pytest
import yaml

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from schemas.api.parsing import parse_kind
from schemas.records.placements import placement_key
from schemas.values.faults import InvalidObject
from tests.awaiting import eventually, until_object
from tests.kube.test_policies import refused
from tests.memory_tree import memory_tree
from tests.unit.test_collecting_tree import EDGES, PLACEMENT, READY, WEB, rows
from tests.unit.test_policies import control

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

FORMS = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: each}
spec:
  limit: 2
  select:
  - {name: text, def: inventory.name}
  - {name: list, def: "[1, 'a', [null]]"}
  - {name: map, def: "{'a': {'b': [2.5]}}"}
  - {name: none, def: "null"}
  - {name: whether, def: has(returned.status)}
"""
ODD = """
apiVersion: control.kubestellar.io/v1alpha1
kind: StatusCollector
metadata: {name: later}
spec:
  combinedFields:
  - {name: mean, type: AVG, subject: "null"}
  - {name: top, type: TOP, subject: returned.status.readyReplicas, top: 1}
"""
ONE = {"name": "a", "def": "1"}
COUNT = {"name": "n", "type": "COUNT"}
SUM = {"name": "n", "type": "SUM", "subject": "1"}
WRONG = [
    ({"select": [ONE], "combinedFields": [COUNT]}, "must be empty if select is not"),
    ({"groupBy": [ONE]}, "groupBy must be empty if combinedFields is"),
    ({}, "nothing is collected"),
    ({"select": [ONE, ONE]}, "two columns have one name"),
    ({"groupBy": [ONE], "combinedFields": [{**COUNT, "name": "a"}]}, "have one name"),
    ({"combinedFields": [{**COUNT, "subject": "1"}]}, "a COUNT has no subject"),
    ({"combinedFields": [{**COUNT, "type": "SUM"}]}, "all others need one"),
    ({"combinedFields": [{**SUM, "type": "QUANTILE"}]}, "needs a quantile"),
    ({"combinedFields": [{**SUM, "top": 3}]}, "only a TOP has top"),
    ({"select": [{**ONE, "def": "1" * 4097}]}, "may not be more than 4096"),
    ({"select": [{**ONE, "name": "a" * 64}]}, "may not be more than 63"),
    ({"select": [{**ONE, "name": f"a{at}"} for at in range(33)]}, "must have at most 32 items"),
]
SPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


class Hub:
    """A tree in memory whose workload description space is an API server."""

    def __init__(self, server):
        self.server = server
        self.wds = KubernetesSpace(Kubeconfig(str(server.kubeconfig)), SystemClock(), SystemDice())

    async def kubectl(self, *words, **given):
        return await asyncio.to_thread(self.server.kubectl, *words, **given)

    async def apply(self, *objects):
        form = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        await self.kubectl("apply", "-f", "-", stdin=json.dumps(form))

    async def combined(self):
        got = await self.kubectl("get", "combinedstatuses", "-n", "shop", "-o", "json")
        return json.loads(got)["items"]

    async def says(self, holds):
        """The CombinedStatus of the one object, once it is so."""
        found = []

        async def is_so():
            found[:] = await self.combined()
            return len(found) == 1 and holds(found[0])

        await eventually(is_so, lambda: f"{found}", seconds=60)
        return found[0]


@pytest.fixture
async def hub(clean_server, tmp_path):
    made = Hub(clean_server)
    await made.apply(SPACE)

    def prepare(tree):
        tree.workloads = made.wds

    try:
        async with memory_tree(tmp_path, EDGES, prepare=prepare):
            yield made
    finally:
        await made.wds.close()


def result(obj, name):
    return next((each for each in obj["results"] if each["name"] == name), None)


async def test_collectors_by_kubectl_are_answered_and_say_what_is_wrong(hub):
    ready, forms, odd, web, shop = map(yaml.safe_load, (READY, FORMS, ODD, WEB, PLACEMENT))
    await hub.apply(ready, forms, web, shop)
    found = await hub.says(lambda obj: rows(obj, "ready") == [["v2", "3", "9"]])
    whole, rest = result(found, "each")["rows"][0], result(found, "each")["rest"]
    assert whole["columns"] == [
        {"type": "String", "string": "apac-s3"},
        {"type": "Array", "array": [1, "a", [None]]},
        {"type": "Object", "object": {"a": {"b": [2.5]}}},
        {"type": "Null"},
        {"type": "Bool", "bool": True},
    ]
    assert rest["count"] == "1"
    uids = [
        (await hub.kubectl("get", what, "-n", "shop", "-o=jsonpath={.metadata.uid}"))
        for what in ("deploy/web", "epl/shop")
    ]
    assert found["metadata"]["name"] == ".".join(uids)
    assert found["metadata"]["ownerReferences"][0]["uid"] == uids[0]
    said = await hub.kubectl("wait", "epl/shop", "--for=condition=StatusCollectorsAvailable=False")
    assert "met" in said

    # One that comes later fills in; what no number is becomes of it is written as text.
    await hub.apply(odd)
    odd_row = [
        {"type": "Number", "float": "NaN"},
        {"type": "Array", "array": [{"clusterId": "apac-s3", "value": "3"}]},
    ]
    await hub.says(lambda obj: (result(obj, "later") or {}).get("rows") == [{"columns": odd_row}])
    await hub.kubectl("wait", "epl/shop", "--for=condition=StatusCollectorsAvailable")

    # The server refuses what a schema can tell; the status tells the rest, and it counts no more.
    await hub.apply({**ready, "spec": {**ready["spec"], "filter": "returned.status =="}})
    await hub.says(lambda obj: result(obj, "ready") is None)
    told = await hub.kubectl("get", "statuscollector", "ready", "-o=jsonpath={.status.errors}")
    assert "spec.filter: not CEL" in told
    await until_object(
        hub.wds,
        placement_key("shop"),
        lambda obj: "Missing StatusCollector(s) [ready]" in str(obj["status"]["conditions"]),
    )
    await hub.kubectl("delete", "epl", "shop", "--timeout=60s")

    async def none():
        return not await hub.combined()

    await eventually(none, "they stay", seconds=60)


async def test_what_comes_up_is_reduced_for_kubectl_and_the_new_kinds_explain_themselves(hub):
    named = {"resources": ["deployments"], "apiGroup": "apps", "namespaces": ["*"], "names": ["*"]}
    spec = {"source": {"upsync": named}, "combinedFields": [COUNT]}
    ready, web, shop = map(yaml.safe_load, (READY, WEB, PLACEMENT))
    up = {**shop, "metadata": {"name": "up"}}
    up["spec"] = {"locationSelectors": [{}], "upsync": [{**named, "statusCollectors": ["count"]}]}
    await hub.apply(control("StatusCollector", "count", spec), ready, web, shop, up)
    asked = ("get", "combinedstatus", "-n", "kubestellar-report", "-o", "yaml")

    async def all_are_counted():
        [found] = yaml.safe_load(await hub.kubectl(*asked))["items"] or [{}]
        columns = [{"columns": [{"type": "Number", "float": "3"}]}]
        return [(it["name"], it["rows"]) for it in found.get("results", ())] == [("count", columns)]

    await eventually(all_are_counted, "not all copies are counted", seconds=60)
    for path, said in (
        ("statuscollector.spec.source.upsync", "FIELDS:"),
        ("edgeplacement.spec.upsync.statusCollectors", "StatusCollectors with a source"),
        ("combinedstatus.results.rows", "FIELDS:"),
        ("rollout.spec.waves", "FIELDS:"),
    ):
        assert said in await hub.kubectl("explain", path)


async def test_the_server_refuses_a_collector_that_the_program_refuses(hub):
    for spec, said in WRONG:
        wrong = control("StatusCollector", "bad", spec)
        assert said in await refused(hub, wrong)
        with pytest.raises(InvalidObject):
            parse_kind(wrong)
