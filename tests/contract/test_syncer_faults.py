"""A space that fails, lies, is another, or is changed by others; a record that is lost."""

import asyncio
import re
from dataclasses import replace

import pytest

from relay.core.destination.object_outcome import REASON_MAX_CHARACTERS
from relay.space_errors import SpaceError
from relay.space_port import Interest, ObjectChange, ObjectsListed, ServerUnanswered, Unserved
from relay.syncer import pending
from relay.syncer.object_marks import ours
from schemas.objects.objects import ObjectKey
from tests.awaiting import until_object
from tests.contract.spaces import config_map, definition, deployment, namespace
from tests.contract.syncing import TREE, Bench

pytestmark = pytest.mark.leaps

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
OTHER = ObjectKey("", "configmaps", "shop", "other")
WEB = ObjectKey("apps", "deployments", "shop", "web")
CONFIG_MAPS = Interest("", "configmaps", ours(TREE))


@pytest.fixture
def bench(space, clock, dice):
    return Bench(space, clock, dice)


async def test_a_list_that_shows_nothing_is_believed_of_no_object(bench, space):
    async with bench.running():
        bench.want(config_map(), deployment())
        await bench.settled()
        bench.space.applied.clear()
        uid = (await space.get(CONFIG))["metadata"]["uid"]
        bench.space.looked.clear()
        await bench.space.tell(ObjectsListed(CONFIG_MAPS, {}))
        await bench.until(lambda: bench.space.looked == ["settings"])
        await bench.settled()
        assert (await space.get(CONFIG))["metadata"]["uid"] == uid
        assert bench.said[CONFIG].present
        assert bench.space.applied == []
        assert bench.space.deleted == []


async def test_what_a_list_no_longer_shows_and_a_look_does_not_find_is_made_again(bench, space):
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        bench.space.muted = True
        await space.delete(CONFIG)
        await bench.space.tell(ObjectsListed(CONFIG_MAPS, {}))
        await until_object(space, CONFIG, lambda live: live is not None)
        await bench.settled()
        assert bench.done.of(CONFIG).made


async def test_what_goes_before_its_apply_is_answered_is_made_again(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.muted = True
        bench.space.answers["settings"] = asyncio.Event()
        bench.want(config_map(a="2"))
        last = await until_object(space, CONFIG, lambda live: live["data"] == {"a": "2"})
        await space.delete(CONFIG)
        await bench.space.tell(ObjectChange("deleted", CONFIG, last))
        bench.space.answers["settings"].set()
        await until_object(space, CONFIG, lambda live: live is not None)


async def test_what_an_object_was_before_it_was_applied_is_no_drift(bench, space):
    """A watch may tell of it late: an apply's own answer is newer."""
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        former = await space.get(CONFIG)
        bench.want(config_map(a="2"))
        await bench.settled()
        bench.space.applied.clear()
        await bench.space.tell(ObjectChange("modified", CONFIG, former))
        await bench.settled()
        assert bench.space.applied == []
        # What a list shows is the present, also in a space that went back.
        await bench.space.tell(ObjectsListed(CONFIG_MAPS, {CONFIG: former}))
        await bench.settled()
        assert bench.space.applied == ["settings"]


async def test_an_object_out_of_reach_waits_and_is_said_once(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.applied.clear()
        bench.history.clear()
        for _ in range(3):
            await bench.space.tell(Unserved(CONFIG_MAPS, "ServiceUnavailable", "it is down"))
        bench.want(config_map(a="2"))
        await asyncio.sleep(0)
        [said] = [said.error for said in bench.history]
        assert re.fullmatch(r"ServiceUnavailable: it is down; since \S+Z", said)
        assert bench.syncer.unready == said
        assert bench.said[CONFIG].present
        assert bench.space.applied == []
        await bench.space.tell(ObjectsListed(CONFIG_MAPS, {CONFIG: await space.get(CONFIG)}))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}
        assert bench.said[CONFIG].error == ""
        assert bench.syncer.unready == ""


async def test_a_server_that_gives_no_answer_is_said_of_all_objects_and_taken_back(bench, space):
    why = "Timeout: its API server gives no answer within 20 s; since 2026-01-01T00:00:00Z"
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.applied.clear()
        bench.history.clear()
        for _ in range(3):
            await bench.space.tell(ServerUnanswered(why))
        bench.want(config_map(a="2"))
        await asyncio.sleep(0)
        assert [said.error for said in bench.history] == [why]
        assert bench.syncer.unready == why
        assert bench.space.applied == []
        await bench.space.tell(ServerUnanswered(""))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}
        assert bench.said[CONFIG].error == bench.syncer.unready == ""


async def test_a_definition_goes_as_soon_as_the_last_object_of_it_is_gone(
    bench, space, monkeypatch
):
    made = definition("oxen", "Ox")
    ox = {"apiVersion": "example.com/v1", "kind": "Ox", "metadata": {"name": "one"}}
    ox["metadata"]["namespace"] = "shop"
    key = ObjectKey("example.com", "oxen", "shop", "one")
    defined = ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", made_name(made))
    gate, delete = asyncio.Event(), bench.space.delete

    async def held_up(which, uid=""):
        if which == key:
            await gate.wait()
        return await delete(which, uid)

    bench.space.delete = held_up
    async with bench.running():
        bench.want_keyed({defined: made, key: ox})
        await bench.settled()
        monkeypatch.setattr(pending, "BACKOFF_SECONDS_MIN", 60.0)
        bench.want()
        await bench.until(lambda: "are to be removed first" in bench.said[defined].error)
        gate.set()
        await bench.settled()
        assert await space.get(defined) is None


async def test_what_was_deleted_unheard_and_is_made_anew_is_ours_as_before(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.muted = True
        await space.delete(CONFIG)
        bench.want(config_map(a="2"))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}
        bench.space.muted = False
        bench.want()
        await bench.settled()
        assert await space.get(CONFIG) is None


async def test_what_another_made_in_its_place_unheard_is_not_taken_for_ours(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.muted = True
        await space.delete(CONFIG)
        await space.apply(config_map(theirs="1"), "they")
        bench.want(config_map(a="2"))
        await bench.settled()
        bench.want()
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"theirs": "1"}


async def test_what_goes_as_it_is_given_back_is_not_made_again(bench, space):
    apply = bench.space.apply

    async def after_it_went(obj, manager, **how):
        await space.delete(CONFIG)
        return await apply(obj, manager, **how)

    await space.apply(config_map(theirs="1"), "they")
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.apply = after_it_went
        bench.want()
        await bench.settled()
        assert await space.get(CONFIG) is None


def listing_by_kind(bench, refused):
    """Have the space listed kind by kind, as an API server is; kinds may be `refused`."""
    kinds, listed = bench.space.kinds, bench.space.list

    async def with_verbs(**how):
        verbs = frozenset({"delete", "list"})
        return tuple(replace(kind, verbs=verbs) for kind in await kinds(**how))

    async def unless_refused(group="", resource="", **how):
        if (group, resource) in refused:
            raise SpaceError("Forbidden", f"you may not list {resource}")
        return await listed(group, resource, **how)

    bench.space.kinds, bench.space.list = with_verbs, unless_refused


@pytest.mark.parametrize(("hidden", "stays"), [("secrets", True), ("events", False)])
async def test_a_namespace_stays_where_not_all_that_is_in_it_may_be_listed(
    bench, space, hidden, stays
):
    shop = ObjectKey("", "namespaces", "", "shop")
    listing_by_kind(bench, {("", hidden)})
    await space.delete(shop)
    async with bench.running():
        bench.want(namespace(), config_map())
        await bench.settled()
        bench.want()
        await bench.until(lambda: not bench.said[shop].present)
        assert (await space.get(shop) is not None) == stays
        assert ("kept: secrets cannot be listed there" in bench.said[shop].reason) == stays


async def test_of_much_that_is_said_of_an_object_begin_and_end_are_kept_in_whole_words(bench):
    long = " ".join(f"word{number}" for number in range(100))
    bench.space.refused["settings"] = SpaceError("Invalid", long)
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].error)
        said = bench.said[CONFIG].error
    assert len(said) <= REASON_MAX_CHARACTERS
    start, _, end = said.partition(" … ")
    assert f"Invalid: {long}".startswith(f"{start} ")
    assert long.endswith(f" {end}")


def made_name(obj):
    return obj["metadata"]["name"]


async def test_another_space_in_its_place_is_left_alone(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.replaced.set()
        await bench.until(lambda: "AnotherSpace" in bench.said[CONFIG].error)
        bench.want()
        await asyncio.sleep(0)
        assert await space.get(CONFIG)
        bench.space.replaced.clear()
        await bench.settled()
        assert await space.get(CONFIG) is None


async def test_a_lost_record_is_found_again_by_the_marks(bench, space):
    await space.apply(config_map("other", theirs="1"), "they")
    async with bench.running():
        bench.want(config_map(a="1"), config_map("other", a="1"), deployment())
        await bench.settled()
    marks = {at: (await space.get(CONFIG))["metadata"][at] for at in ("labels", "annotations")}
    copied = config_map("copy")
    await space.apply({**copied, "metadata": {**copied["metadata"], **marks}}, "a-controller")
    bench.done.held.clear()
    bench.space.applied.clear()
    async with bench.running():
        bench.want(deployment(), may_prune=False)
        await bench.settled()
        assert bench.done.of(CONFIG).made
        assert not bench.done.of(OTHER).made
        bench.want(deployment())
        await bench.settled()
        assert await space.get(CONFIG) is None
        assert (await space.get(OTHER))["data"] == {"theirs": "1"}
        assert await space.get(ObjectKey("", "configmaps", "shop", "copy"))
        assert await space.get(WEB)
        assert bench.space.deleted == ["settings"]


async def test_who_is_refused_for_a_namespace_that_nobody_tells_of_says_what_troubles_that(bench):
    denied = 'admission webhook "guard" denied the request: no more namespaces'
    bench.space.refused["new"] = SpaceError("Forbidden", denied)
    key = ObjectKey("", "configmaps", "new", "settings")
    async with bench.running():
        bench.want(config_map(namespace="new"))
        await bench.until(lambda: key in bench.said and denied in bench.said[key].error)
        assert bench.said[key].error.startswith("its namespace cannot be made: Forbidden: ")
        # Who selects the Namespace is told of that itself.
        bench.want(config_map(namespace="new", a="1"), namespace("new"))
        own = ObjectKey("", "namespaces", "", "new")
        await bench.until(lambda: own in bench.said and denied in bench.said[own].error)
        await bench.until(lambda: 'namespaces "new" not found' in bench.said[key].error)
