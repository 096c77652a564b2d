"""What an API server lost, or forgot, is never taken for what somebody deleted."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes import informer, refusals
from relay.adapters.kubernetes.informer import list_pages
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import Interest, ObjectsListed
from schemas.crds.definitions import custom_resource_definitions
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.contract.following import following
from tests.contract.spaces import config_map, deployment
from tests.contract.syncing import Bench
from tests.kube.test_placement_finalizer import NAMESPACE, HubCentre
from tests.unit.centre_world import config, placement

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(240)]

SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")
SHOP = ObjectKey("", "namespaces", "", "shop")
CONFIG_MAPS = Interest("", "configmaps")


@asynccontextmanager
async def space_of(server):
    space = KubernetesSpace(Kubeconfig(str(server.kubeconfig)), SystemClock(), SystemDice())
    try:
        yield space
    finally:
        with suppress(SpaceError):
            await space.close()


async def run(verb, *arguments, **how):
    return await asyncio.to_thread(verb, *arguments, **how)


async def test_an_edge_whose_store_was_lost_while_it_was_down_is_left_alone_and_says_so(api_server):
    async with space_of(api_server) as space:
        bench = Bench(space, SystemClock(), SystemDice())
        async with bench.running():
            bench.want(config_map(a="1"), deployment())
            await bench.settled()
            kept = dict(bench.done.held)
            applied = len(bench.space.applied)
            await run(api_server.stop)
            await run(api_server.wipe)
            await run(api_server.start)
            for key in (SETTINGS, WEB):
                await bench.until(lambda key=key: "AnotherSpace" in bench.said[key].error)
            bench.want(config_map(a="2"))
            await bench.until(lambda: "AnotherSpace" in bench.said[SETTINGS].error)
            assert "AnotherSpace" in bench.syncer.unready
            assert bench.done.held == kept
            assert len(bench.space.applied) == applied
            assert bench.space.deleted == []
    assert "settings" not in await run(api_server.kubectl, "get", "configmaps", "-A", "-o", "name")


async def test_an_edge_whose_store_is_emptied_under_it_deletes_and_writes_nothing(api_server):
    async with space_of(api_server) as space:
        bench = Bench(space, SystemClock(), SystemDice())
        async with bench.running():
            bench.want(config_map(a="1"), deployment())
            await bench.settled()
            applied = len(bench.space.applied)
            await run(api_server.wipe)
            # It is told of each deletion, looks itself, and asks first who answers.
            for key in (SETTINGS, WEB):
                await bench.until(lambda key=key: "kube-system" in bench.said[key].error)
            looked = len(bench.space.looked)
            bench.want(config_map(a="2"))
            await bench.until(lambda: len(bench.space.looked) > looked)
            await bench.until(lambda: bench.said[SETTINGS].error)
            assert len(bench.space.applied) == applied
            assert bench.space.deleted == []
            assert {SETTINGS, WEB} <= {done.key for done in bench.done.held.values()}
    assert "settings" not in await run(api_server.kubectl, "get", "configmaps", "-A", "-o", "name")


@pytest.mark.parametrize("down", [False, True])
async def test_a_centre_whose_store_was_emptied_withdraws_nothing(api_server, tmp_path, down):
    centre = HubCentre(tmp_path, api_server)
    await centre.apply_all(*custom_resource_definitions(), NAMESPACE)
    await run(api_server.await_definitions)
    await centre.apply_all(config("a"), config("b"), placement())

    async def told():
        delta = centre.relay.delta("shop")
        return delta and {"a", "b"} <= set(await centre.relay.entries(delta))

    async def nobody_answers():
        try:
            await centre.wds.identity()
        except SpaceError as error:
            return "kube-system" in error.message
        return False

    async def lose_it():
        async with asyncio.timeout(150), centre.running():
            await eventually(told)
            before.append(centre.relay.delta("shop"))
            if down:
                await run(api_server.stop)
            await run(api_server.wipe)
            if down:
                await run(api_server.start)
            else:
                # Within a minute the server would make it anew by itself.
                await eventually(nobody_answers)
                await run(api_server.kubectl, "create", "namespace", "kube-system")
            # Then it is known as another.
            await asyncio.Event().wait()

    before = []
    with pytest.raises(ExceptionGroup) as ended:
        await lose_it()
    assert ended.group_contains(AnotherSpace)
    assert [centre.relay.delta("shop")] == before


async def test_a_watch_that_etcd_has_forgotten_is_listed_again(api_server, monkeypatch):
    monkeypatch.setattr(informer, "PAUSE_SECONDS_MIN", 8.0)
    failed = []

    async def noted(self, error, moved):
        failed.append((self.interest, error.reason))
        await plain(self, error, moved)

    plain = informer.KindInformer._failed
    monkeypatch.setattr(informer.KindInformer, "_failed", noted)
    async with space_of(api_server) as space, following(space, CONFIG_MAPS) as (told, _):
        one, other = (config_map(name, "default", a="1") for name in ("one", "other"))
        await space.apply(one, "me")
        await space.apply(other, "me")
        other_key = ObjectKey("", "configmaps", "default", "other")
        await told.until(lambda told: other_key in told.objects)
        await run(api_server.stop)
        await run(api_server.start)
        # Meanwhile it rests, and what it missed is not to be had as changes any more.
        await run(api_server.kubectl, "delete", "configmap", "other", "-n", "default")
        await run(api_server.compact)
        await run(api_server.restart)
        await told.until(lambda told: other_key not in told.objects)
        await told.until(lambda _: (CONFIG_MAPS, refusals.EXPIRED) in failed)
        lists = [event for event in told.events if isinstance(event, ObjectsListed)]
        assert len(lists) == 2
        assert not [change for change in told.changes if change.kind == "deleted"]


async def test_a_list_whose_pages_outlive_their_revision_is_whole(clean_server, monkeypatch):
    monkeypatch.setattr(informer, "PAGE_OBJECTS_MAX", 2)
    async with space_of(clean_server) as space, space_of(clean_server) as others:
        for at in range(5):
            await space.apply(config_map(f"one-{at}", "default"), "me")
        kind = next(k for k in await space.kinds() if k.group_resource == ("", "configmaps"))
        asked, request = [], space._api.request

        async def forgotten(method, path, query=(), **how):
            answer = await request(method, path, query, **how)
            asked.append(query)
            await others.apply(config_map("new", "default", at=str(len(asked))), "me")
            await run(clean_server.compact)
            return answer

        monkeypatch.setattr(space._api, "request", forgotten)
        found, _ = await list_pages(space._api, kind, namespace="default")
        names = {obj["metadata"]["name"] for obj in found}
        assert {f"one-{at}" for at in range(5)} <= names
        assert len(asked) > 1
