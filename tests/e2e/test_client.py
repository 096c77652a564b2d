"""The examples of `leafcast.client` do what they say, on a tree of real servers."""

import asyncio
import subprocess
import sys

import pytest

import leafcast
from tests.awaiting import until
from tests.e2e.program import EDGES, ROOT

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

HERE, THERE = EDGES
SHOP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: green}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:broken"}]}
"""


@pytest.fixture(scope="module")
def example(tree):
    """Runs an example; what it prints, line by line."""

    def printed(name, *arguments):
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / "client" / f"{name}.py"), *arguments],
            env=tree.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return printed


@pytest.fixture(scope="module")
def applied(example, tmp_path_factory):
    """What the example that applies says of the shop."""
    file = tmp_path_factory.mktemp("files") / "shop.yaml"
    file.write_text(SHOP)
    return example("apply_and_wait", str(file), "shop")


def test_what_is_applied_is_waited_for(applied):
    assert applied == [
        "namespaces/shop created",
        "configmaps/shop/settings created",
        "deployments.apps/shop/web created",
        "edgeplacements.edge.kubestellar.io/shop created",
        "epl/shop: 2 of 2 synced",
    ]


def test_a_placement_is_watched_until_it_is_delivered(applied, example):
    *_, delivered, here, there = example("watch_placement", "shop")
    assert delivered.endswith(": Synced is True")
    assert (here.split(",")[0], there.split(",")[0]) == (f"{HERE}: synced", f"{THERE}: synced")


def test_why_names_the_stage_and_the_remedy(applied, example):
    def told():
        said, *remedy = example("ask_why", HERE, "deployment", "web", "shop")
        return remedy if ": not-healthy: " in said else None

    (remedy,) = until(told, "the broken workload was not told of")
    assert remedy.startswith("  do: leafcast ")


def test_what_is_wrong_is_listed_by_cause(applied, example):
    def listed():
        lines = example("list_causes")
        return lines if lines and "at 2 destinations" in lines[0] else None

    cause, one, remedy = until(listed, "no cause was told of")
    assert cause.startswith("not-healthy/deployments.apps/")
    assert "deployments.apps/shop/web" in one
    assert remedy.startswith("  do: ")


def test_a_copy_is_read_where_it_lies(applied, example):
    said = example("read_copy", THERE, "configmap", "settings", "shop")
    assert said == ["apiVersion: the same", "data: the same", "kind: the same"]


def config_map(number, **more):
    metadata = {"name": f"many-{number}", "namespace": "many"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": more}


def placed_nowhere(placement):
    """A manifest of the same placement that selects no destination any more."""
    spec = {**placement["spec"], "locationSelectors": [{"matchLabels": {"no": "where"}}]}
    kind = {name: placement[name] for name in ("apiVersion", "kind")}
    return {**kind, "metadata": {"name": placement["metadata"]["name"]}, "spec": spec}


def test_what_cannot_be_done_is_told_by_an_error_of_its_own_and_changes_nothing(tree):
    many = [config_map(number) for number in range(12)]
    everywhere = leafcast.Placing("many")

    async def tried():
        async with leafcast.connect(tree.place.folder) as it:
            with pytest.raises(leafcast.BadManifests, match="object 2"):
                await it.apply(many[0], {"apiVersion": "v1", "kind": "ConfigMap"})
            with pytest.raises(leafcast.NotFound, match="many-0"):
                await it.get("configmap", "many-0", namespace="many")
            dry = await it.apply(*many, placing=everywhere, create_namespaces=True, dry_run=True)
            made = await it.apply(*many, placing=everywhere, create_namespaces=True)
            assert [(one.key, one.verb) for one in dry] == [(one.key, one.verb) for one in made]
            await it.wait("many", seconds=120)
            placed_as = await it.get("epl", "many")
            with pytest.raises(leafcast.RemovalsUnconfirmed, match="26 copies at 2 destinations"):
                await it.apply(placed_nowhere(placed_as))
            (placed,) = await it.status("many")
            assert (placed.destinations, placed.states) == (2, {"synced": 2})
            with pytest.raises(leafcast.TimeUp, match="epl/many is not delete") as late:
                await it.wait("epl/many", condition="delete", seconds=0)
            assert late.value.placements[0].states == {"synced": 2}
            with pytest.raises(leafcast.CallFailed, match='"done" is not a condition'):
                await it.wait("many", condition="done")
            with pytest.raises(ValueError, match="name a placement"):
                await it.why(HERE)
            with pytest.raises(leafcast.UnknownKind):
                await it.objects("nonsense")
            assert len(await it.objects("cm", namespace="many", at=HERE)) == len(many)

    asyncio.run(tried())


def test_what_a_change_would_do_and_what_became_of_one_are_values(applied, tree):
    changed = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "shop"},
        "data": {"colour": "red"},
    }

    async def asked():
        async with leafcast.connect(tree.place.folder) as it:
            (one,) = await it.diff(changed)
            assert (one.verb, one.key.name) == ("configured", "settings")
            assert (one.before["data"], one.after["data"]) == ({"colour": "green"}, changed["data"])
            async with it.plan(changed) as plan:
                assert (plan.placements, plan.destinations, plan.counts["update"]) == (1, 2, 2)
                assert plan.differences == (one,)
                copies = [copy async for copy in plan.copies() if copy.action == "update"]
            assert {(str(copy.path), copy.key) for copy in copies} == {(p, one.key) for p in EDGES}
            assert not await it.diff({**changed, "data": one.before["data"]}), "it was written"
            trace = await it.trace("shop", at=HERE)
            assert (trace.placement, str(trace.at), len(trace.trace_id)) == ("epl/shop", HERE, 32)
            stages = {(str(step.path), step.stage) for step in trace.steps}
            assert {("/", "signed"), (HERE, "applied")} <= stages
            assert all(step.start <= step.end for step in trace.steps)
            with pytest.raises(leafcast.CallFailed, match="nothing"):
                await it.trace("nothing")
            found = await it.doctor()
            assert "ok" in {check.state for check in found}
            assert all(check.remedy for check in found if check.state == "failure")

    asyncio.run(asked())
