"""What a real tree shows to Prometheus: every figure of the catalogue, and true ones."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from urllib.request import urlopen

import pytest

from leafcast.local.tree import local_tree
from leafcast.local.views import TreeShape
from leafcast.metrics.catalogue import HELD, NOTES, SECTIONS
from leafcast.node.health_endpoint import HealthEndpoint
from relay.adapters.clock import SystemClock
from relay.adapters.server.ports import free_port
from schemas.values.traceparent import EXAMPLE
from tests.doubles.otlp_collector import OtlpCollector
from tests.e2e.program import SMALL, Program, did
from tests.memory_tree import config_map, placement
from tests.namespaces import apply_in_namespaces
from tests.scraped import at, samples
from tests.unit.test_health_endpoint import ask, get

pytestmark = [pytest.mark.nats, pytest.mark.slow]

SHAPE = TreeShape(1, 2, 3)
REGION, SITES = "/region-1", ("/region-1/site-1", "/region-1/site-2")
WAIT_SECONDS = 60
SHOP = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: shop}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec: {locationSelectors: [{}], downsync: [{namespaces: [shop]}]}
"""


ROLLOUT = {
    "apiVersion": "leafcast.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "go"},
    "spec": {
        "placement": {"name": "shop"},
        "waves": [{"name": "all", "percent": 100}],
    },
}


@asynccontextmanager
async def watched(folder):
    """A real tree in this process, and the endpoint where its figures are."""
    tree = local_tree(SHAPE, folder)
    centre = tree.centre
    endpoint = HealthEndpoint(centre.unready, SystemClock(), 0, readings=centre.readings)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tree.run()), group.create_task(endpoint.run())]
        await centre.up.wait()
        await endpoint.listening.wait()
        yield centre, endpoint
        for task in tasks:
            task.cancel()


async def scraped(endpoint):
    code, body = await ask(endpoint, get("/metrics"))
    assert code == 200, body
    return samples(body)


async def scraped_until(endpoint, met):
    async with asyncio.timeout(WAIT_SECONDS):
        while not met(found := await scraped(endpoint)):
            await asyncio.sleep(0.1)
    return found


def test_a_tree_that_up_started_shows_its_figures_and_sends_its_spans(tmp_path):
    program, port = Program(tmp_path / "data"), free_port(tmp_path, 7)
    objects = tmp_path / "shop.yaml"
    objects.write_text(SHOP)
    with OtlpCollector().serving() as collector:
        program.environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        try:
            did(program, "up", *SMALL, "--health-port", str(port))
            with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                found = samples(answer.read().decode())
            assert found[at("leafcast_check", check="centre")] == 1
            assert found[at("leafcast_node_info", node="/", role="centre")] == 1
            assert found[at("leafcast_node_info", node=SITES[0], role="edge")] == 1
            did(program, "apply", "-f", str(objects), "--traceparent", EXAMPLE)
            spans_make_one_tree(collector)
        finally:
            program.run("down")


def spans_make_one_tree(collector):
    """What one apply leads to is told by all nodes as one trace, which links to who applied."""
    path, working = "leafcast.path", {"/": "counted working", REGION: "reported working"}
    working |= dict.fromkeys(SITES, "reported working")

    def of_shop(spans):
        roots = [it for it in spans if it.links]
        return [it for it in spans if it.trace == roots[0].trace] if roots else []

    came = collector.until(
        lambda spans: working.items() <= {(it.source[path], it.name) for it in of_shop(spans)}
    )
    spans = {(it.source[path], it.name): it for it in of_shop(came)}
    (root,) = [it for it in spans.values() if not it.parent]
    assert root is spans["/", "change"]
    assert root.links == [EXAMPLE[3:-3]]
    assert root.attributes["leafcast.placement"] == "edgeplacement/shop"
    assert all(
        it.parent in {other.span for other in spans.values()}
        for it in spans.values()
        if it is not root
    )
    assert spans[REGION, "received"].parent == root.span
    for site in SITES:
        received = spans[site, "received"]
        assert received.parent == spans[REGION, "received"].span
        assert received.source["leafcast.role"] == "edge"
        assert spans[site, "healthy"].parent == received.span
        assert root.start_ns <= received.start_ns <= spans[site, "healthy"].end_ns
    assert {it.source["service.name"] for it in spans.values()} == {"leafcast"}


async def test_a_real_tree_shows_true_figures_of_each_of_its_nodes(tmp_path):
    async with watched(tmp_path) as (centre, endpoint):
        objects = [placement("shop", "shop"), placement("bare", "nothing")]
        await apply_in_namespaces(centre.workloads, [*objects, config_map("a", "shop")], "tests")
        await centre.apply([ROLLOUT])
        shop = {"space": "1", "placement": "shop"}
        synced = at("leafcast_placement_destinations", **shop, state="synced")
        healthy = at("leafcast_placement_healthy_destinations", **shop)
        found = await scraped_until(
            endpoint, lambda it: it.get(synced) == 2 and it.get(healthy) == 2
        )
        assert found[at("leafcast_placements", space="1")] == 2
        condition = partial(at, "leafcast_placement_status_condition", **shop, type="Synced")
        assert found[condition(status="true")] == 1
        assert found[condition(status="false")] == 0
        for path, role in [("/", "centre"), (REGION, "relay"), *((it, "edge") for it in SITES)]:
            assert found[at("leafcast_node_info", node=path, role=role)] == 1
            assert found[at("leafcast_node_ready", node=path)] == 1
            assert found[at("leafcast_nats_up", node=path)] == 1
            assert found[at("leafcast_nats_streams", node=path)] > 0
            assert found[at("leafcast_nats_starts_total", node=path)] == 1
        assert found[at("leafcast_children", node="/", state="up")] == 1
        assert found[at("leafcast_children", node=REGION, state="up")] == 2
        assert found[at("leafcast_mail_bytes_total", node=REGION)] > 0
        for site in SITES:
            # The ConfigMap, and the Namespace that it needs.
            assert found[at("leafcast_objects", node=site, state="applied")] == 2
            assert found[at("leafcast_apply_objects_total", node=site, result="applied")] >= 2
        names = {name.removesuffix("_bucket") for name, _ in found}
        wanted = {it.name for section in SECTIONS.values() for it in section}
        # Of these there is a line only once there is something to tell.
        assert wanted - names <= {NOTES.name, HELD.name}
