"""A kind that a hub cannot list keeps from nobody what else there is, and is read as it can be."""

import asyncio

import pytest

from relay.adapters.kubernetes import informer
from tests.awaiting import eventually
from tests.kube.aggregated_api import GROUP, VERSION, AggregatedApi, thing
from tests.kube.hub_centre import HubCentre
from tests.unit.centre_world import USER, condition, config, holds, placement, placement_key, target

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

CONVS = "convs.conv.example.com"
SCHEMA = {
    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
WEBHOOK = {
    "conversionReviewVersions": ["v1"],
    "clientConfig": {"service": {"name": "conv", "namespace": "conv"}},
}
NEWER, STORED = "v1", "v1alpha1"


def definition(stored=STORED):
    """Served in two versions, converted by a webhook that does not run."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CONVS},
        "spec": {
            "group": "conv.example.com",
            "names": {"kind": "Conv", "plural": "convs", "singular": "conv"},
            "scope": "Namespaced",
            "conversion": {"strategy": "Webhook", "webhook": WEBHOOK},
            "versions": [
                {"name": name, "served": True, "storage": name == stored, "schema": SCHEMA}
                for name in (NEWER, STORED)
            ],
        },
    }


def conv(name, version=STORED, namespace="shop"):
    return {
        "apiVersion": f"conv.example.com/{version}",
        "kind": "Conv",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": 1},
    }


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def unreadable(obj):
    said = condition(obj, "ObjectsSelected")
    return said is not None and said["reason"] == "KindUnreadable" and said["message"]


def readable(obj):
    return condition(obj, "Synced") is not None and condition(obj, "ObjectsSelected") is None


@pytest.fixture
async def centre(clean_server, tmp_path):
    made = HubCentre(tmp_path, clean_server)
    await made.apply_all(definition(), namespace("shop"), namespace("other"))
    await asyncio.to_thread(clean_server.await_definitions)
    await made.inventory.apply(target("s1", "/emea/s1"), USER)
    for name in ("shop", "other"):
        await made.apply_all(placement(name, {"namespaces": [name]}), config("a", name))
    return made


async def store_newer(centre, obj):
    """Write it as soon as the server stores what is written in the newer version."""
    await centre.apply_all(definition(NEWER))

    async def is_written():
        try:
            await centre.apply_all(obj)
        except AssertionError:
            return False
        return True

    await eventually(is_written)


async def test_what_a_webhook_does_not_convert_is_read_as_it_is_stored_and_else_named(centre):
    async with centre.running() as controllers:
        for name in ("shop", "other"):
            await centre.relay.until(holds("a", of=name))
        # A watch of the version that is preferred stands still now, and says nothing.
        await centre.apply_all(conv("one"))
        await centre.relay.until(holds("a", "one", CONVS))
        written = controllers.translator.workloads.resolver.objects
        (stored,) = [obj for key, obj in written.items() if key.resource == "convs"]
        assert stored["apiVersion"] == f"conv.example.com/{STORED}"
        assert controllers.translator.workloads.lack("shop") is None
        # What is stored in two versions can be listed in none, and is missed soon.
        await store_newer(centre, conv("two", NEWER))
        async with asyncio.timeout(60):
            await centre.until_status(placement_key("shop"), unreadable)
    async with centre.running() as controllers:
        obj = await centre.until_status(placement_key("shop"), unreadable)
        message = condition(obj, "ObjectsSelected")["message"]
        assert message.startswith("conversion webhook for conv.example.com/")
        assert f"so {CONVS} cannot be read" in message
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "one", CONVS}
        assert condition(obj, "RemovalHeld") is None
        await centre.until_status(placement_key("other"), readable)
        # Whatever becomes of it, what can be read is delivered.
        await centre.apply_all(config("b"))
        await centre.relay.until(holds("a", "b", "one", CONVS))
        plain = definition(NEWER)
        plain["spec"]["conversion"] = {"strategy": "None"}
        await centre.apply_all(plain)
        await centre.relay.until(holds("a", "b", "one", "two", CONVS))
        await centre.until_status(placement_key("shop"), readable)
        # A kind that is gone is not one that cannot be read.
        await centre.kubectl("delete", "crd", CONVS)
        obj = await centre.until_status(
            placement_key("shop"), lambda obj: condition(obj, "RemovalHeld")
        )
        assert condition(obj, "ObjectsSelected") is None
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) >= {"two", CONVS}


async def test_a_kind_whose_server_is_away_concerns_those_alone_who_have_objects_of_it(
    centre, monkeypatch
):
    monkeypatch.setattr(informer, "OUTAGE_SECONDS_MAX", 0.5)
    folder = centre.server.real.certificates
    files = folder / "apiserver.crt", folder / "apiserver.key"
    with AggregatedApi(*files, [thing("one")]) as api:
        await centre.apply_all(*api.objects())
        async with centre.running() as controllers:
            workloads = controllers.translator.workloads
            await centre.relay.until(holds("a", "one"))
            await asyncio.to_thread(api.stop)
            obj = await centre.until_status(placement_key("shop"), unreadable)
            assert "see kubectl get apiservices" in condition(obj, "ObjectsSelected")["message"]
            assert workloads.lack("other") is None
            await centre.apply_all(config("b"), config("b", "other"))
            await centre.relay.until(holds("a", "b", "one"))
            await centre.relay.until(holds("a", "b", of="other"))
        # As if the server in front had begun anew, too: it knows of none of its kinds now.
        await centre.kubectl("delete", "apiservice", f"{VERSION}.{GROUP}")
        await centre.apply_all(*api.objects())
        # Who begins while it is away misses nothing, and takes nothing for deleted.
        async with centre.running():
            await centre.apply_all(config("c"), config("c", "other"))
            await centre.relay.until(holds("a", "b", "c", of="other"))
            await centre.relay.until(holds("a", "b", "c", "one"))
            obj = await centre.until_status(placement_key("shop"), unreadable)
            assert condition(obj, "RemovalHeld") is None
            # What was never listed may lie anywhere.
            await centre.until_status(placement_key("other"), unreadable)
            await centre.kubectl("delete", "apiservice", f"{VERSION}.{GROUP}")
            await centre.until_status(placement_key("other"), readable)
            await centre.until_status(
                placement_key("shop"), lambda obj: condition(obj, "RemovalHeld")
            )
            assert "one" in await centre.relay.entries(centre.relay.delta("shop"))
