"""What a space on an API server does beyond others: pages, metadata, kinds that come and go."""

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes import informer
from relay.space_errors import SpaceError
from relay.space_port import Interest
from schemas.objects.objects import CRD_GROUP, ObjectKey
from tests.contract.following import following, unserved
from tests.contract.spaces import OX, config_map, definition, on_api_server, ox, serve

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

CONFIG_MAPS, OXEN = Interest("", "configmaps"), Interest(OX.group, OX.resource)
SETTINGS = ObjectKey("", "configmaps", "shop", "settings")


@pytest.fixture
async def space(module_server):
    kubeconfig = module_server.kubeconfig
    async with on_api_server(kubeconfig, SystemClock(), SystemDice(), ("shop",)) as made:
        yield made


async def test_a_kind_begins_with_its_definition_and_ends_with_it(space):
    async with following(space, OXEN) as (told, _):
        [before] = unserved(told, "NotFound")
        assert 'the server doesn\'t have a resource type "oxen.example.com"' in before.message
        await serve(space, definition("oxen", "Ox"))
        made = await space.apply(ox(a=1), "me")
        await told.until(lambda told: told.objects.get(OX) == made)
        await space.delete(
            ObjectKey(CRD_GROUP, "customresourcedefinitions", "", "oxen.example.com")
        )
        await told.until(lambda told: len(unserved(told, "NotFound")) == 2)
        # The server deletes them first, and says so.
        assert told.changes[-1].kind == "deleted"


async def test_a_group_whose_server_is_away_hides_no_other(space, module_server):
    before = {kind.group_resource for kind in await space.kinds()}
    async with following(space, CONFIG_MAPS):
        service = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {
                "group": "metrics.k8s.io",
                "version": "v1beta1",
                "service": {"name": "metrics", "namespace": "shop"},
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
            },
        }
        await space.apply(service, "me")
        for _ in range(3):
            assert before <= {kind.group_resource for kind in await space.kinds()}
            assert await space.list("", "configmaps")


async def test_objects_come_as_metadata_only_where_that_is_all_that_is_wanted(space):
    await space.apply(config_map(a="1"), "me")
    async with following(space, Interest("", "configmaps", metadata_only=True)) as (told, _):
        assert told.objects[SETTINGS]["kind"] == "PartialObjectMetadata"
        assert "data" not in told.objects[SETTINGS]
        await space.apply(config_map(a="2"), "me")
        await told.until(lambda told: told.changes)
        assert "data" not in told.changes[-1].object


async def test_a_list_of_several_pages_is_whole(space, monkeypatch):
    monkeypatch.setattr(informer, "PAGE_OBJECTS_MAX", 3)
    names = {f"c{at}" for at in range(10)}
    for name in names:
        await space.apply(config_map(name, "shop"), "me")
    listed = (await space.list("", "configmaps", namespace="shop")).objects
    assert {obj["metadata"]["name"] for obj in listed} == names
    assert {(obj["apiVersion"], obj["kind"]) for obj in listed} == {("v1", "ConfigMap")}
    async with following(space, CONFIG_MAPS) as (told, _):
        assert names <= {key.name for key in told.objects}


async def test_a_namespace_that_is_being_ended_counts_as_deleted(space, module_server):
    key = ObjectKey("", "namespaces", "", "ending")
    module_server.kubectl("create", "namespace", "ending")
    uid = (await space.get(key))["metadata"]["uid"]
    assert await space.delete(key, uid)
    assert await space.delete(key, uid)
    assert (await space.get(key))["metadata"]["deletionTimestamp"]
    with pytest.raises(SpaceError, match="UID"):
        await space.delete(key, "another")


async def test_what_a_secret_holds_is_in_no_refusal(space):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "namespace": "shop"},
        "data": ["hunter22"],
    }
    with pytest.raises(SpaceError) as refused:
        await space.apply(secret, "me")
    assert refused.value.reason == "Invalid"
    assert "hunter22" not in refused.value.message
