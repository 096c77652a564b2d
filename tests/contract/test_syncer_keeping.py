"""What becomes of objects that nobody wants any more: deleted, kept or orphaned, as they say."""

import pytest

from relay.syncer.object_marks import ADOPTED, OBJECT, TREE
from schemas.content.manifest import CREATE_ONLY, removal_flag
from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import config_map
from tests.contract.syncing import Bench, MemoryDone

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
CLAIM = ObjectKey("", "persistentvolumeclaims", "shop", "data")
SHOP = ObjectKey("", "namespaces", "", "shop")
STORE = ObjectKey("", "namespaces", "", "store")
KEEP, ORPHAN, DELETE = (removal_flag(word) for word in ("keep", "orphan", "delete"))


@pytest.fixture
def bench(space, clock, dice):
    return Bench(space, clock, dice)


def saying(obj, word):
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ON_REMOVAL: word}}}


def claim(namespace="shop", size="1Gi"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    metadata = {"name": "data", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


async def uid_of(space, key):
    found = await space.get(key)
    return found and found["metadata"]["uid"]


async def test_a_kept_object_stays_with_our_marks_and_comes_back_as_the_same_one(bench, space):
    async with bench.running():
        bench.want(saying(config_map(a="1"), "keep"))
        await bench.settled()
        uid = await uid_of(space, CONFIG)
        bench.want()
        await bench.until(lambda: bench.said[CONFIG].kept)
        await bench.settled()
        assert ON_REMOVAL in bench.said[CONFIG].reason
        assert bench.done.of(CONFIG).kept
        left = await space.get(CONFIG)
        assert left["metadata"]["labels"][TREE] == bench.tree
        await space.apply(config_map(a="theirs"), "they")
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "theirs"}
        bench.want(saying(config_map(a="2"), "keep"))
        await bench.until(lambda: bench.said[CONFIG].address == bench.address(CONFIG))
        await bench.settled()
        assert not bench.done.of(CONFIG).kept
        assert not bench.said[CONFIG].kept
    assert (await space.get(CONFIG))["data"] == {"a": "2"}
    assert await uid_of(space, CONFIG) == uid
    assert bench.space.deleted == []


async def test_an_objects_own_word_wins_over_that_of_who_asks_for_it(bench, space):
    async with bench.running():
        bench.want(saying(config_map(a="1"), "delete"), config_map("other", a="1"), flags=KEEP)
        await bench.settled()
        bench.want()
        await bench.settled()
        assert await space.get(CONFIG) is None
        other = await space.get(ObjectKey("", "configmaps", "shop", "other"))
        assert other["metadata"]["annotations"][ON_REMOVAL] == "keep"


async def test_a_claim_is_kept_by_itself_unless_someone_says_otherwise(bench, space):
    for flags, stays in ((0, True), (DELETE, False)):
        async with bench.running():
            bench.want(claim(), flags=flags)
            await bench.settled()
            bench.want()
            await bench.settled()
            assert (await space.get(CLAIM) is not None) == stays
            if stays:
                assert "holds data" in bench.said[CLAIM].reason


async def test_a_word_that_comes_later_is_taken_in_whatever_the_content(bench, space):
    for flags in (0, CREATE_ONLY):
        async with bench.running():
            bench.want(config_map(a="1"), flags=flags)
            await bench.settled()
            bench.want(config_map(a="1"), flags=flags | KEEP)
            await bench.settled()
            live = await space.get(CONFIG)
            assert live["metadata"]["annotations"][ON_REMOVAL] == "keep"
            bench.want(config_map(a="1"), flags=flags)
            await bench.settled()
            live = await space.get(CONFIG)
            assert ON_REMOVAL not in live["metadata"]["annotations"]
            bench.want()
            await bench.settled()
            assert await space.get(CONFIG) is None


@pytest.mark.parametrize("flags", [0, CREATE_ONLY])
async def test_a_syncer_without_memory_keeps_what_says_so_itself(bench, space, flags):
    async with bench.running():
        bench.want(claim(), saying(config_map(a="1"), "keep"), flags=flags)
        bench.want(claim(), saying(config_map(a="1"), "keep"), config_map("b"), flags=flags | KEEP)
        await bench.settled()
    bench.done = MemoryDone()
    async with bench.running():
        bench.want()
        await bench.settled()
        assert {done.key.name for done in bench.done.held.values() if done.kept} == {
            "settings",
            "data",
            "b",
        }
    assert bench.space.deleted == []


async def test_a_syncer_whose_record_lost_some_finds_it_by_its_marks(bench, space):
    async with bench.running():
        bench.want(config_map("lost"), config_map("kept"))
        await bench.settled()
    (lost,) = [at for at, done in bench.done.held.items() if done.key.name == "lost"]
    del bench.done.held[lost]
    left = dict(bench.done.held)
    bench.done.is_partial = True
    async with bench.running():
        bench.want(config_map("kept"))
        await bench.settled()
    assert bench.space.deleted == ["lost"]
    assert bench.done.held == left
    assert not bench.done.is_partial


async def test_an_orphan_stays_without_marks_and_comes_back_as_one_that_was_there(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"), flags=ORPHAN)
        await bench.settled()
        uid = await uid_of(space, CONFIG)
        bench.want()
        await bench.settled()
        left = await space.get(CONFIG)
        assert left["data"] == {"a": "1"}
        marks = {**left["metadata"].get("labels", {}), **left["metadata"].get("annotations", {})}
        assert not {TREE, OBJECT, ON_REMOVAL} & marks.keys()
        assert bench.done.of(CONFIG) is None
        assert "nobody's" in bench.said[CONFIG].reason
        bench.want(config_map(a="1"))
        await bench.settled()
        assert not bench.done.of(CONFIG).made
        back = await space.get(CONFIG)
        assert back["metadata"]["annotations"][ADOPTED] == "true"
        bench.want()
        await bench.settled()
    assert await uid_of(space, CONFIG) == uid


async def test_a_namespace_stays_around_what_is_kept_and_goes_after_it(bench, space):
    async with bench.running():
        bench.want(claim("store"), config_map(namespace="store", a="1"))
        await bench.settled()
        bench.want()
        inside = ObjectKey("", "persistentvolumeclaims", "store", "data")
        await bench.until(lambda: bench.said.get(inside) and bench.said[inside].kept)
        await bench.until(lambda: bench.said.get(STORE) and bench.said[STORE].reason)
        assert "persistentvolumeclaims/store/data, which is kept" in bench.said[STORE].reason
        assert await space.get(STORE) is not None
        assert await space.get(ObjectKey("", "configmaps", "store", "settings")) is None
        await space.delete(inside)
        await bench.until(lambda: not bench.said[inside].present)
        await bench.settled()
        assert await space.get(STORE) is None
        assert bench.done.held == {}


async def test_a_namespace_that_was_wanted_names_what_is_kept_in_it(bench, space):
    store = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "store"}}
    async with bench.running():
        bench.want(store, claim("store"))
        await bench.settled()
        bench.want()
        await bench.until(lambda: bench.said.get(STORE) and bench.said[STORE].reason)
        assert bench.said[STORE].reason == (
            "left in place: kept: not empty: persistentvolumeclaims/store/data, which is kept"
        )


async def test_a_kept_object_whose_marks_were_taken_off_is_nobodys(bench, space):
    async with bench.running():
        bench.want(saying(config_map(a="1"), "keep"))
        await bench.settled()
        bench.want()
        await bench.until(lambda: bench.said[CONFIG].kept)
        left = await space.get(CONFIG)
        await space.disown(CONFIG, left["metadata"]["uid"], ["leafcast"], [TREE])
        await bench.until(lambda: bench.done.of(CONFIG) is None)


async def test_a_kept_object_is_known_again_after_a_restart(bench, space):
    async with bench.running():
        bench.want(claim())
        await bench.settled()
        bench.want()
        await bench.until(lambda: bench.said[CLAIM].kept)
        await bench.settled()
    bench.said.clear()
    async with bench.running():
        bench.want()
        await bench.until(lambda: CLAIM in bench.said and bench.said[CLAIM].kept)
    await space.delete(CLAIM)
    async with bench.running():
        bench.want()
        await bench.until(lambda: bench.done.of(CLAIM) is None)


async def test_what_stays_is_not_counted_among_what_is_to_be_taken_back(bench, space):
    await space.apply({**config_map("theirs", namespace="other"), "data": {}}, "they")
    async with bench.running():
        bench.want(claim("store"), config_map(namespace="other", a="1"))
        await bench.settled()
        assert (bench.syncer.applied, bench.syncer.kept) == (4, 0)
        bench.want()
        await bench.until(lambda: (bench.syncer.applied, bench.syncer.kept) == (0, 1))


async def test_what_was_left_to_its_cluster_is_left_there_without_memory_too(bench, space):
    obj = config_map(a="1")
    said = {"edge.kubestellar.io/downsync-overwrite": "false"}
    async with bench.running():
        bench.want({**obj, "metadata": {**obj["metadata"], "annotations": said}})
        await bench.settled()
    bench.done = MemoryDone()
    async with bench.running():
        bench.want()
        await bench.settled()
    assert await space.get(CONFIG)
