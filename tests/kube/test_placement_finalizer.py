"""On an API server a placement stays to be seen until no snapshot lists it."""

import asyncio
import json

import pytest

from controllers.workloads.finalizers import FINALIZER
from relay.adapters.kubernetes import informer
from schemas.crds.definitions import custom_resource_definitions
from tests.awaiting import eventually, until_object
from tests.kube.hub_centre import HubCentre
from tests.unit.centre_world import (
    SHOP,
    USER,
    condition,
    config,
    holds,
    lists_not,
    location,
    placement,
    target,
)
from tests.unit.test_health_endpoint import ask, get, running

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


@pytest.fixture
async def centre(clean_server, tmp_path):
    made = HubCentre(tmp_path, clean_server)
    await made.apply_all(NAMESPACE)
    return made


def held(obj):
    return obj is not None and FINALIZER in obj["metadata"].get("finalizers", ())


async def issued(centre):
    """A placement of one object that is in the ledger, and finalized; its head."""
    await centre.apply_all(placement(), config("a"))
    await centre.relay.until(holds("a"))
    await until_object(centre.wds, SHOP, held)
    return centre.relay.delta("shop")


async def dropped(relay, head):
    """Whether a snapshot newer than the head lists it no more, and the ledger forgot it."""
    newer = relay.snapshots and relay.snapshots[-1].generation > head.generation
    return newer and await lists_not(relay, head.source.key) and relay.delta("shop") is None


async def test_what_is_deleted_while_the_centre_is_down_is_withdrawn(centre):
    """First the last Secret that there is, then the placement."""
    metadata = {"name": "key", "namespace": "shop"}
    await centre.apply_all({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    async with centre.running():
        await centre.apply_all(placement(), config("a"))
        await centre.relay.until(holds("a", "key"))
    await centre.kubectl("delete", "secret", "-n", "shop", "key")
    async with centre.running():
        head = await issued(centre)
    await centre.kubectl("delete", "epl", "shop", "--wait=false")
    assert "shop" in await centre.kubectl("get", "epl")
    async with centre.running():
        await centre.kubectl("wait", "--for=delete", "epl/shop", "--timeout=60s")
        assert await dropped(centre.relay, head)


async def test_what_is_deleted_while_the_centre_runs_goes_once_no_snapshot_lists_it(centre):
    async with centre.running():
        head = await issued(centre)
        await centre.kubectl("delete", "epl", "shop", "--timeout=60s")
        assert await dropped(centre.relay, head)


async def test_a_placement_that_no_snapshot_lists_any_more_is_let_go_after_a_restart(centre):
    async with centre.running():
        await issued(centre)
        await centre.kubectl("delete", "epl", "shop", "--timeout=60s")
    left = placement()
    left["metadata"]["finalizers"] = [FINALIZER]
    await centre.apply_all(left)
    await centre.kubectl("delete", "epl", "shop", "--wait=false")
    async with centre.running():
        await centre.kubectl("wait", "--for=delete", "epl/shop", "--timeout=60s")


async def test_others_finalizers_and_fields_are_left_alone(centre):
    mine = placement()
    mine["metadata"]["finalizers"] = ["example.com/mine"]
    await centre.apply_all(mine, config("a"))
    async with centre.running():
        found = await until_object(centre.wds, SHOP, held)
        assert "example.com/mine" in found["metadata"]["finalizers"]
        assert found["spec"]["downsync"] == mine["spec"]["downsync"]
        await centre.kubectl("delete", "epl", "shop", "--wait=false")
        gone = await until_object(centre.wds, SHOP, lambda obj: not held(obj))
        assert gone["metadata"]["finalizers"] == ["example.com/mine"]
        empty = json.dumps({"metadata": {"finalizers": []}})
        await centre.kubectl("patch", "epl", "shop", "--type=merge", "-p", empty)
        assert await until_object(centre.wds, SHOP, lambda obj: obj is None) is None


async def test_what_acts_on_the_hub_itself_is_named_unless_a_denatured_holds_it(centre):
    def service(group):
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1.{group}"},
            "spec": {
                "group": group,
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": "none", "namespace": "shop"},
            },
        }

    held_inside = {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Denatured",
        "metadata": {"name": "inside"},
        "spec": {"template": service("inside.example.com")},
    }
    wanted = placement(clause={"apiGroup": "apiregistration.k8s.io", "resources": ["apiservices"]})
    await centre.apply_all(service("plain.example.com"), held_inside, wanted)
    async with centre.running() as controllers:
        found = await centre.until_status(SHOP, lambda obj: condition(obj, "ActsAtCentre"))
        told = condition(found, "ActsAtCentre")
        assert told["reason"] == "NotDenatured"
        assert "apiservices.apiregistration.k8s.io/v1.plain.example.com acts" in told["message"]
        assert "inside" not in told["message"]
        assert controllers.translator.undenatured_text("shop") == told["message"]
        assert "leafcast.io/keep-at-home" in told["message"]
        await centre.relay.until(holds("v1.inside.example.com", "v1.plain.example.com"))
        at_home = ("v1.plain.example.com", "leafcast.io/keep-at-home=true")
        await centre.kubectl("annotate", "apiservice", *at_home)
        await centre.relay.until(holds("v1.inside.example.com"))
        await centre.until_status(SHOP, lambda obj: not condition(obj, "ActsAtCentre"))


async def test_a_centre_is_not_ready_while_its_api_server_is_down(
    api_server, tmp_path, monkeypatch
):
    monkeypatch.setattr(informer, "OUTAGE_SECONDS_MAX", 0.5)
    centre = HubCentre(tmp_path, api_server)
    await centre.apply_all(*custom_resource_definitions(), NAMESPACE)
    await asyncio.to_thread(api_server.await_definitions)
    async with centre.running() as controllers, running(controllers.unready) as endpoint:

        async def answers(code, words):
            found, body = await ask(endpoint, get("/readyz?verbose"))
            return found == code and words in body

        await eventually(lambda: answers(200, "[+]workloads ok"), controllers.unready)
        head = await issued(centre)
        await asyncio.to_thread(centre.server.stop)
        down = "[-]workloads: ServiceUnavailable: the API server at https://"
        await eventually(lambda: answers(503, down), controllers.unready)
        await asyncio.to_thread(centre.server.start)
        await eventually(lambda: answers(200, "[+]workloads ok"), controllers.unready)
        assert centre.relay.delta("shop") == head


WIDGET = "widgets.example.org"
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": WIDGET},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


def widget(name):
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"size": 1},
    }


GOES = "--for=jsonpath={.metadata.deletionTimestamp}"
LET_GO = json.dumps({"metadata": {"finalizers": None}})


def finalized(obj):
    return {**obj, "metadata": {**obj["metadata"], "finalizers": ["example.org/mine"]}}


async def test_a_definition_that_vanished_removes_nothing_until_someone_accepts(centre):
    """First that of a kind of workload, then that of placements themselves."""
    async with centre.running() as controllers:
        await centre.apply_all(WIDGETS)
        await asyncio.to_thread(centre.server.await_definitions)
        await centre.apply_all(placement(), config("a"), widget("one"), widget("two"))
        await centre.relay.until(holds("a", "one", "two", WIDGET))
        await until_object(centre.wds, SHOP, held)
        await centre.kubectl("delete", "widget", "-n", "shop", "two")
        await centre.relay.until(holds("a", "one", WIDGET))
        # First both stay to be seen while they go, then they are gone.
        await centre.apply_all(finalized(WIDGETS), finalized(widget("one")))
        await centre.kubectl("delete", "crd", WIDGET, "--wait=false")
        obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert f"{WIDGET} is gone" in condition(obj, "RemovalHeld")["message"]
        await centre.apply_all(config("b"))
        await centre.relay.until(holds("a", "b", "one", WIDGET))
        await centre.kubectl("wait", "-n", "shop", "widget/one", GOES, "--timeout=60s")
        for name in (("widget", "one", "-n", "shop"), ("crd", WIDGET)):
            await centre.kubectl("patch", *name, "--type=merge", "-p", LET_GO)
        await centre.kubectl("wait", "--for=delete", f"crd/{WIDGET}", "--timeout=60s")
        await centre.apply_all(config("c"))
        await centre.relay.until(holds("a", "b", "c", "one", WIDGET))
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("a", "b", "c"))
        before = centre.relay.delta("shop")
        # The definition waits for nobody, though placements have a finalizer of ours.
        await centre.kubectl("delete", "crd", "edgeplacements.edge.kubestellar.io")
        await eventually(lambda: "edgeplacement/shop" in controllers.errors)
        assert "definition edgeplacements" in controllers.errors["edgeplacement/shop"]
        assert centre.relay.delta("shop") == before
    async with centre.running() as controllers:
        await eventually(lambda: "edgeplacement/shop" in controllers.errors)
        assert centre.relay.delta("shop") == before
        await centre.apply_all(*custom_resource_definitions())
        await asyncio.to_thread(centre.server.await_definitions)
        await centre.apply_all(placement())
        await eventually(lambda: "edgeplacement/shop" not in controllers.errors)
        assert centre.relay.delta("shop").alternatives == before.alternatives
        await centre.kubectl("delete", "epl", "shop")
        await centre.relay.until(lambda relay: dropped(relay, before))


async def test_what_an_edit_by_kubectl_takes_is_held_until_it_is_put_back_or_accepted(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    await centre.inventory.apply(location("place", at="here"), USER)
    names = [f"c{at}" for at in range(12)]
    right = placement(selectors=({"matchLabels": {"at": "here"}},))
    wrong = placement(selectors=({"matchLabels": {"ta": "here"}},))
    async with centre.running() as controllers:
        await centre.apply_all(right, *map(config, names))
        await centre.relay.until(holds(*names))
        first = centre.relay.delta("shop")
        await centre.apply_all(wrong)
        obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert "12 copies at 1 destination" in condition(obj, "RemovalHeld")["message"]
        assert {hold["reason"] for hold in obj["status"]["held"]} == {"RemovalHeld"}
        assert first.alternatives[0] in centre.relay.delta("shop").alternatives
        await centre.apply_all(right)
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
        await centre.relay.until(
            lambda relay: relay.delta("shop").alternatives == first.alternatives
        )
        # On a busy machine it is seen to be held, too.
        await centre.kubectl("annotate", "epl", "shop", "leafcast.io/removal-grace=3s")
        wrong["metadata"]["annotations"] = {"leafcast.io/removal-grace": "3s"}
        await centre.apply_all(wrong)
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
        await centre.relay.until(
            lambda relay: first.alternatives[0] not in relay.delta("shop").alternatives
        )
        assert not controllers.translator.placements.braked
