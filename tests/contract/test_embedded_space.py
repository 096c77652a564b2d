"""What the embedded space keeps in its bucket."""

from contextlib import asynccontextmanager

import nats
import pytest

from relay.space_errors import SpaceError
from schemas.api.parsing import parse_kind
from schemas.objects.objects import ObjectKey
from schemas.values.faults import InvalidObject
from tests.contract.spaces import config_map, embedded, noise
from tests.contract.test_whole_space import changes

SETTINGS = ObjectKey("", "configmaps", "shop", "settings")


@pytest.mark.nats
async def test_a_bucket_is_the_same_space_after_a_restart(nats_url, clock):
    async with embedded(nats_url, clock, "kept") as space:
        who, since = await space.identity(), (await space.list()).revision
        await space.apply(config_map(a="1"), "me")
    async with embedded(nats_url, clock, "kept") as space:
        assert await space.identity() == who
        assert [change.key for change in await changes(space, since, 1)] == [SETTINGS]
        left = await space.apply(config_map(b="2"), "me")
        assert left["data"] == {"b": "2"}


@pytest.mark.nats
async def test_what_a_space_saw_last_never_outweighs_what_others_wrote_since(nats_url, clock):
    async with (
        embedded(nats_url, clock, "mine") as mine,
        embedded(nats_url, clock, "mine") as other,
    ):
        await mine.apply(config_map(a="1"), "me")
        await other.apply(config_map(b="2"), "they")
        both = await mine.apply(config_map(a="1", c="3"), "me")
        assert both["data"] == {"a": "1", "b": "2", "c": "3"}
        await other.apply(config_map(a="9"), "they")
        assert (await mine.apply(config_map(a="1", c="3"), "me"))["data"] == {"a": "1", "c": "3"}
        await other.delete(SETTINGS)
        made = await mine.apply(config_map(a="1", c="3"), "me")
        assert made["metadata"]["uid"] != both["metadata"]["uid"]
        await other.delete(SETTINGS)
        with pytest.raises(SpaceError, match="no such object"):
            await mine.set_status(SETTINGS, {"seen": True})


async def test_no_parts_of_a_large_object_stay_behind(nats_url, clock):
    async with embedded(nats_url, clock, "parted") as space:
        for seed in range(3):
            await space.apply(config_map(a=noise(seed)), "me")
        assert len(await parts_in(nats_url, "parted")) == 3
        await space.apply(config_map(a="small"), "me")
        assert not await parts_in(nats_url, "parted")


@pytest.mark.nats
async def test_parts_that_a_broken_off_write_left_are_swept_and_no_others(nats_url, clock):
    stray = "p.o._.configmaps.shop.settings.left.0"
    async with embedded(nats_url, clock, "strayed") as space:
        await space.apply(config_map(a=noise(1)), "me")
        kept = await parts_in(nats_url, "strayed")
        async with connected(nats_url) as connection:
            await connection.jetstream().publish(f"$KV.strayed.{stray}", b"part")
    async with embedded(nats_url, clock, "strayed"):
        assert len(await parts_in(nats_url, "strayed")) == len(kept) + 1
    clock.ahead += 2 * 3600
    async with embedded(nats_url, clock, "strayed") as space:
        assert await parts_in(nats_url, "strayed") == kept
        assert (await space.get(SETTINGS))["data"] == {"a": noise(1)}


@asynccontextmanager
async def connected(url):
    connection = await nats.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def parts_in(url, bucket):
    async with connected(url) as connection:
        info = await connection.jetstream().stream_info(f"KV_{bucket}", f"$KV.{bucket}.p.>")
        return set(info.state.subjects or ())


@pytest.mark.nats
async def test_our_kinds_are_held_to_what_they_may_say_whoever_applies_them(nats_url, clock):
    placement = {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": "shop"},
        "spec": {"locationSelectors": [{"matchLabels": "emea"}], "downsync": []},
    }
    with pytest.raises(InvalidObject) as told:
        parse_kind(placement)
    async with embedded(nats_url, clock, "strict") as space:
        for how in ({}, {"dry_run": True}):
            with pytest.raises(SpaceError) as refused:
                await space.apply(placement, "me", **how)
            assert refused.value.reason == "Invalid"
            assert refused.value.message == str(told.value)
        good = {**placement, "spec": {"locationSelectors": [], "downsync": []}}
        kept = await space.apply(good, "me")
        key = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
        await space.set_status(key, {"synced": 1})
        labelled = {name: kept[name] for name in ("apiVersion", "kind")}
        labelled["metadata"] = {"name": "shop", "labels": {"a": "b"}}
        assert (await space.apply(labelled, "they"))["status"] == {"synced": 1}
