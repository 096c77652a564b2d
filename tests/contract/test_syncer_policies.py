"""What is done about objects that are not ours alone, as their annotations ask."""

import pytest

from relay.space_port import Interest
from relay.syncer.object_marks import ours
from schemas.objects.annotations import OVERWRITE
from schemas.objects.objects import ObjectKey
from tests.awaiting import until_object
from tests.contract.spaces import config_map, deployment
from tests.contract.syncing import TREE, Bench

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
OTHER = ObjectKey("", "configmaps", "shop", "other")
WEB = ObjectKey("apps", "deployments", "shop", "web")
CONFIG_MAPS = Interest("", "configmaps", ours(TREE))


@pytest.fixture
def bench(space, clock, dice):
    return Bench(space, clock, dice)


def asking(obj, **annotations):
    names = {name.replace("_", "-"): value for name, value in annotations.items()}
    said = {f"leafcast.io/{name}": value for name, value in names.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": said}}


async def test_a_field_that_another_set_before_is_not_taken_but_on_request(bench, space):
    await space.apply(config_map(a="1"), "they")
    async with bench.running():
        bench.want(config_map(a="2"))
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].error)
        assert "they owns data.a" in bench.said[CONFIG].error
        assert "leafcast.io/conflicts: force" in bench.said[CONFIG].error
        assert (await space.get(CONFIG))["data"] == {"a": "1"}
        bench.want(asking(config_map(a="2"), conflicts="force"))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}


async def test_replicas_stay_an_autoscalers_also_where_all_fields_are_to_be_taken(bench, space):
    get = bench.space.get

    async def told_who_scales(key):
        entry = {"manager": "scaler", "operation": "Update", "subresource": "scale"}
        entry["fieldsV1"] = {"f:spec": {"f:replicas": {}}}
        live = await get(key)
        return {**live, "metadata": {**live["metadata"], "managedFields": [entry]}}

    async with bench.running():
        bench.want(asking(deployment(replicas=2), conflicts="force"))
        await bench.settled()
        bench.space.get = told_who_scales
        bench.space.muted = True
        await space.apply(deployment(replicas=5, image="web:0"), "scaler")
        bench.want(asking(deployment(replicas=2, image="web:2"), conflicts="force"))
        await bench.settled()
    found = (await space.get(WEB))["spec"]
    assert found["replicas"] == 5
    assert found["template"]["spec"]["containers"][0]["image"] == "web:2"


async def test_a_field_that_was_ours_is_taken_back_also_with_new_content(bench, space):
    async with bench.running():
        bench.want(config_map(a="1", b="1"))
        await bench.settled()
    await space.apply(config_map(a="2"), "they")
    async with bench.running():
        bench.want(config_map(a="3"))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "3"}


async def test_what_is_there_is_refused_or_left_if_the_object_says_so(bench, space):
    await space.apply(config_map(theirs="1"), "they")
    await space.apply(config_map("other", theirs="1"), "they")
    async with bench.running():
        bench.want(
            asking(config_map(a="1"), existing="refuse"),
            asking(config_map("other", a="1"), existing="leave"),
        )
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].error)
        assert "AlreadyExists" in bench.said[CONFIG].error
        await bench.until(lambda: OTHER in bench.said and bench.said[OTHER].address)
        assert bench.said[OTHER].present
        bench.want()
        await bench.settled()
    for key in (CONFIG, OTHER):
        assert (await space.get(key))["data"] == {"theirs": "1"}


async def test_a_policy_that_is_none_is_said_with_the_choices(bench):
    async with bench.running():
        bench.want(asking(config_map(), existing="adpt"))
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].error)
        assert "use adopt, refuse or leave" in bench.said[CONFIG].error


async def test_without_overwrite_an_object_is_made_once_and_stays(bench, space):
    def once(value, **data):
        obj = config_map(**data)
        said = {"edge.kubestellar.io/downsync-overwrite": value}
        return {**obj, "metadata": {**obj["metadata"], "annotations": said}}

    async with bench.running():
        bench.want(once("false", a="1"))
        await bench.settled()
        await space.apply(config_map(a="theirs"), "they")
        bench.want(once("false", a="2"))
        await bench.settled()
        assert bench.said[CONFIG].address == bench.done.of(CONFIG).address
        assert (await space.get(CONFIG))["data"] == {"a": "theirs"}
        bench.want(once("true", a="3"))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "3"}
        bench.want(once("false", a="3"))
        await bench.settled()
        bench.want()
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "3"}


def asked(value, **data):
    """A ConfigMap that says whether it is kept in step; "" says nothing of that."""
    obj = config_map(**data)
    said = {OVERWRITE: value} if value else {"team": "shop"}
    return {**obj, "metadata": {**obj["metadata"], "annotations": said}}


async def live_of(space):
    found = await space.get(CONFIG)
    return found["data"], found["metadata"].get("annotations", {}).get(OVERWRITE)


async def test_a_flip_of_overwrite_is_seen_in_the_live_object_and_does_as_it_says(bench, space):
    async def live():
        return await live_of(space)

    async with bench.running():
        bench.want(asked("true", a="1"))
        await bench.settled()
        bench.want(asked("false", a="2"))
        await bench.settled()
        assert await live() == ({"a": "1"}, "false")
        await space.apply(config_map(a="theirs"), "they")
        await bench.settled()
        assert await live() == ({"a": "theirs"}, "false")
        bench.want(asked("true", a="3"))
        await bench.settled()
        assert await live() == ({"a": "3"}, "true")
        bench.want(asked("false", a="4"))
        await bench.settled()
        bench.want(asked("", a="5"))
        await bench.settled()
        assert await live() == ({"a": "5"}, None)
        bench.want(asked("false", a="5"))
        await bench.settled()
        await space.delete(CONFIG)
        bench.want(asked("true", a="5"))
        await bench.settled()
        assert await live() == ({"a": "5"}, "true")


@pytest.mark.parametrize(("value", "kept"), [("true", "true"), ("", None)])
async def test_what_was_left_to_its_cluster_is_kept_in_step_also_by_who_must_look(
    bench, space, value, kept
):
    async with bench.running():
        bench.want(asked("true", a="1"))
        await bench.settled()
        bench.want(asked("false", a="1"))
        await bench.settled()
        bench.want()
        await bench.settled()
        bench.want(asked(value, a="2"))
        await bench.settled()
        assert await live_of(space) == ({"a": "2"}, kept)
        bench.want(asked("false", a="2"))
        await bench.settled()
    async with bench.running():
        bench.want(asked(value, a="3"))
        await bench.settled()
        assert await live_of(space) == ({"a": "3"}, kept)


async def test_another_trees_object_is_not_taken(bench, space, clock, dice):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
    other = Bench(space, clock, dice, tree="another-tree")
    async with other.running():
        other.want(config_map(a="2"))
        await other.until(lambda: CONFIG in other.said and other.said[CONFIG].error)
        assert f"the tree {TREE}'s" in other.said[CONFIG].error
        assert (await space.get(CONFIG))["data"] == {"a": "1"}


async def test_who_changes_an_object_back_each_time_is_answered_ever_more_rarely(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        for _ in range(5):
            await space.apply(config_map(a="2"), "they")
            await until_object(space, CONFIG, lambda live: live["data"] == {"a": "1"})
            await bench.settled()
        await space.apply(config_map(a="2"), "they")
        await bench.until(lambda: "Contended" in bench.said[CONFIG].error)
        assert "contended with" in bench.said[CONFIG].error
        assert bench.space.applied.count("settings") == 6
        bench.want(config_map(a="3"))
        await until_object(space, CONFIG, lambda live: live["data"] == {"a": "3"})
