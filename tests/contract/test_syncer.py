"""The syncer's laws, on the space in memory and on a real bucket."""

import asyncio

import pytest

from relay.space_errors import SpaceError
from relay.syncer import stalled
from relay.syncer.object_marks import MANAGER
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ObjectKey
from schemas.values.wire import replace
from tests.awaiting import until_object
from tests.contract.spaces import config_map, deployment, namespace
from tests.contract.syncing import TREE, Bench

pytestmark = pytest.mark.leaps

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
OTHER = ObjectKey("", "configmaps", "shop", "other")
WEB = ObjectKey("apps", "deployments", "shop", "web")
SHOP = ObjectKey("", "namespaces", "", "shop")


@pytest.fixture
def bench(space, clock, dice):
    return Bench(space, clock, dice)


async def test_what_is_wanted_is_applied_and_said(bench):
    async with bench.running():
        bench.want(config_map(a="1"), deployment())
        await bench.settled()
        assert (await bench.space.get(CONFIG))["data"] == {"a": "1"}
        said = bench.said[CONFIG]
        assert (said.present, said.error, said.health) == (True, "", "healthy")
        assert said.address == bench.done.of(CONFIG).address
        assert bench.said[WEB].health == "progressing"
        assert not bench.said[WEB].reason


async def test_nothing_is_done_before_the_first_wants(bench, space):
    await space.apply(config_map(), "they")
    async with bench.running():
        await asyncio.sleep(0)
        assert not bench.syncer.idle
        assert not bench.history


async def test_intent_is_on_record_before_an_object_is_created(bench):
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
    records = [done for done in bench.done.log if done.key == CONFIG]
    assert [(bool(done.uid), done.made) for done in records] == [(False, True), (True, True)]


async def test_what_was_applied_and_not_yet_on_record_is_ours_after_a_restart(bench, space):
    bench.done.hold_up = lambda done: done and done.key == CONFIG and done.uid
    async with bench.running():
        bench.want(config_map())
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].address)
        assert not bench.syncer.idle
    assert not bench.done.of(CONFIG).uid
    bench.done.hold_up = lambda done: False
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        assert bench.done.of(CONFIG).made
        bench.want()
        await bench.settled()
        assert await space.get(CONFIG) is None
        assert bench.done.held == {}


async def test_nothing_is_created_before_its_intent_is_on_record(bench, space):
    await space.delete(SHOP)
    bench.done.hold_up = lambda done: done is not None and done.key == SHOP
    async with bench.running():
        bench.want(config_map())
        await bench.until(lambda: CONFIG in bench.said)
        assert await space.get(SHOP) is None


async def test_a_missing_namespace_is_made_and_removed_when_it_is_empty(bench):
    await bench.space.delete(SHOP)
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        assert await bench.space.get(SHOP)
        bench.want()
        await bench.settled()
        assert await bench.space.get(SHOP) is None
        assert bench.done.held == {}
        assert not bench.said[CONFIG].present
        assert SHOP not in bench.said


@pytest.mark.parametrize("wanted", [[namespace(), config_map()], [config_map()]])
async def test_a_namespace_that_holds_others_things_goes_once_it_is_empty(bench, space, wanted):
    theirs = replace(CONFIG, name="theirs")
    async with bench.running():
        await space.delete(SHOP)
        bench.want(*wanted)
        await bench.settled()
        await space.apply(config_map("theirs"), "they")
        bench.want()
        await bench.until(lambda: not bench.said[CONFIG].present)
        if len(wanted) == 2:
            await bench.until(lambda: not bench.said[SHOP].present)
            assert f"left in place: kept: not empty: {theirs}" in bench.said[SHOP].reason
        assert await space.get(SHOP)
        said = len(bench.history)
        await bench.until(lambda: [done.key for done in bench.done.held.values()] == [SHOP])
    # Also what the run before had to leave.
    async with bench.running():
        bench.want()
        assert await space.get(theirs)
        await space.delete(theirs)
        await bench.settled()
        assert await space.get(SHOP) is None
        assert bench.done.held == {}
        # Once in each run it is said why it stays.
        assert {told.key for told in bench.history[said:]} <= {SHOP}
        assert len(bench.history) <= said + 3


async def test_a_namespace_that_somebody_takes_over_stays(bench, space):
    async with bench.running():
        await space.delete(SHOP)
        bench.want(namespace(), config_map())
        await bench.settled()
        await space.apply(config_map("theirs"), "they")
        bench.want()
        await bench.until(lambda: not bench.said[SHOP].present)
        await space.apply(namespace(), MANAGER)
        await space.delete(replace(CONFIG, name="theirs"))
        await bench.settled()
        assert await space.get(SHOP)
        assert bench.done.held == {}


async def test_a_namespace_that_was_there_is_not_removed(bench, space):
    await space.apply(namespace(), "they")
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        bench.want()
        await bench.settled()
        assert await bench.space.get(SHOP)


async def test_dependencies_are_applied_first(bench):
    async with bench.running():
        bench.want(deployment(), config_map(), namespace())
        await bench.settled()
    assert bench.space.applied == ["shop", "settings", "web"]


async def test_restart_with_done_re_applies_nothing(bench):
    async with bench.running():
        bench.want(config_map(), deployment())
        await bench.settled()
    bench.space.applied.clear()
    writes = len(bench.done.log)
    async with bench.running():
        bench.want(config_map(), deployment())
        await bench.settled()
    assert bench.space.applied == []
    assert len(bench.done.log) == writes


async def test_what_is_wanted_late_after_a_restart_is_looked_at_and_not_applied(bench):
    async with bench.running():
        bench.want(config_map(), deployment())
        await bench.settled()
    bench.space.applied.clear()
    async with bench.running():
        bench.want(may_prune=False)
        await bench.settled()
        bench.want(config_map(), deployment())
        await bench.settled()
    assert bench.space.applied == []


async def test_what_changed_while_it_was_not_wanted_is_repaired(bench, space):
    told_by = config_map("other", a="1")
    async with bench.running():
        bench.want(config_map(a="1"), told_by)
        await bench.settled()
        bench.want(told_by, may_prune=False)
        await space.apply(config_map(a="2"), "they")
        await space.apply(config_map("other", a="2"), "they")
        # The syncer has heard of both once it repaired the second.
        await until_object(space, OTHER, lambda live: live["data"] == {"a": "1"})
        bench.want(config_map(a="1"), told_by)
        await until_object(space, CONFIG, lambda live: live["data"] == {"a": "1"})


async def test_drift_that_came_while_it_was_down_is_repaired(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
    await space.apply(config_map(a="2"), "they")
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        assert (await bench.space.get(CONFIG))["data"] == {"a": "1"}


async def test_drift_is_repaired(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        await space.apply(config_map(a="2", b="3"), "they")
        await until_object(space, CONFIG, lambda live: live["data"] == {"a": "1", "b": "3"})


async def test_while_it_is_paused_nothing_is_applied_repaired_or_removed_and_afterwards_all(
    bench, space
):
    third = ObjectKey("", "configmaps", "shop", "third")
    async with bench.running():
        bench.want(config_map(a="1"), config_map("other"))
        await bench.settled()
        bench.want(config_map(a="1"), config_map("third"), paused=True)
        await space.apply(config_map(a="3"), "they")
        await bench.until(lambda: not bench.said[CONFIG].address)
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "3"}
        assert bench.space.deleted == []
        assert await space.get(third) is None
        bench.want(config_map(a="2"), config_map("third"), paused=True)
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "3"}
        bench.want(config_map(a="2"), config_map("third"))
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}
        assert await space.get(third) is not None
        assert bench.space.deleted == ["other"]
    async with bench.running():
        bench.want(config_map(a="4"), config_map("third"), paused=True)
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}, "it is paused from its start on"


async def test_what_vanished_is_made_again(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        await space.delete(CONFIG)
        await until_object(space, CONFIG, lambda live: live is not None)
        await bench.until(lambda: bench.said[CONFIG].present)
        assert bench.done.of(CONFIG).made


async def test_others_fields_and_status_are_no_drift(bench, space):
    async with bench.running():
        bench.want(deployment())
        await bench.settled()
        count = len(bench.space.applied)
        scaled = deployment(paused=True)
        await space.apply(scaled, "they")
        await space.set_status(WEB, {"observedGeneration": 2, "replicas": 0})
        await bench.until(lambda: bench.said[WEB].status is not None)
        assert len(bench.space.applied) == count


async def test_why_an_object_is_at_work_is_said_once_that_lasts_with_what_keeps_its_pods(
    bench, space, monkeypatch
):
    monkeypatch.setattr(stalled, "STALLED_SECONDS", 0.3)
    image = {"reason": "ImagePullBackOff", "message": "no such image"}
    pods = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2}
    async with bench.running():
        bench.want(deployment())
        await bench.settled()
        await space.set_status(WEB, pods)
        await bench.until(lambda: bench.said[WEB].reason == "0 of 2 replicas available")
        assert not any(told.reason for told in bench.history if told is not bench.said[WEB])
        await space.apply(pod("web-1", app="web"), "they")
        await space.apply(pod("else-1", app="else"), "they")
        for name in ("web-1", "else-1"):
            waiting = {"containerStatuses": [{"name": "main", "state": {"waiting": image}}]}
            await space.set_status(ObjectKey("", "pods", "shop", name), waiting)
        said = "0 of 2 replicas available: ImagePullBackOff: no such image"
        await bench.until(lambda: bench.said[WEB].reason == said)
        assert (bench.said[WEB].health, bench.said[WEB].error) == ("progressing", "")
        late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
        given_up = {**pods, "conditions": [{**late, "message": "ReplicaSet has timed out."}]}
        await space.set_status(WEB, given_up)
        await bench.until(lambda: bench.said[WEB].health == "degraded")
        said = "ProgressDeadlineExceeded: ReplicaSet has timed out: ImagePullBackOff: no such image"
        assert bench.said[WEB].reason == said
        await space.set_status(WEB, {**pods, "availableReplicas": 2})
        await bench.until(lambda: bench.said[WEB].health == "healthy")
        assert not bench.said[WEB].reason


def pod(name, **labels):
    metadata = {"name": name, "namespace": "shop", "labels": labels}
    spec = {"containers": [{"name": "main", "image": "web:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def test_one_bad_object_holds_up_no_other(bench):
    bench.space.refused["settings"] = SpaceError("Forbidden", "not here")
    async with bench.running():
        bench.want(config_map(), deployment())
        await bench.until(lambda: WEB in bench.said and bench.said[WEB].address)
        assert bench.said[CONFIG].error == "Forbidden: not here"
        assert not bench.said[CONFIG].present
        tries = bench.space.applied.count("settings")
        await bench.until(lambda: bench.space.applied.count("settings") > tries)
        bench.space.refused.clear()
        await bench.settled()
        assert bench.said[CONFIG].error == ""


async def test_what_is_wanted_again_as_it_is_there_fails_no_more(bench):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.refused["settings"] = SpaceError("Forbidden", "not this")
        bench.want(config_map(a="2"))
        await bench.until(lambda: bench.said[CONFIG].error)
        bench.want(config_map(a="1"))
        await bench.until(lambda: not bench.said[CONFIG].error)
        bench.space.gates["settings"] = asyncio.Event()
        bench.want(config_map(a="2"))
        tries = bench.space.applied.count("settings")
        await bench.until(lambda: bench.space.applied.count("settings") > tries)
        # It fails when nobody wants it any more.
        bench.want(config_map(a="1"))
        bench.space.gates["settings"].set()
        await bench.settled()
        assert bench.said[CONFIG].error == ""
        assert bench.said[CONFIG].address == bench.address(CONFIG)


async def test_an_object_that_hangs_holds_up_no_other(bench):
    bench.space.gates["settings"] = asyncio.Event()
    async with bench.running():
        bench.want(config_map(), deployment())
        await bench.until(lambda: WEB in bench.said and bench.said[WEB].address)
        bench.space.gates["settings"].set()
        await bench.settled()


async def test_content_that_is_missing_is_waited_for(bench):
    async with bench.running():
        bench.want(config_map(), deployment(), lost=("settings",))
        await bench.until(lambda: WEB in bench.said and bench.said[WEB].address)
        await bench.until(lambda: CONFIG in bench.said)
        assert "ContentMissing" in bench.said[CONFIG].error
        bench.want(config_map(), deployment())
        await bench.settled()
        assert bench.said[CONFIG].error == ""


async def test_what_never_came_to_be_and_is_wanted_no_more_has_its_last_word(bench):
    bench.space.gates["other"] = asyncio.Event()
    async with bench.running():
        bench.want(config_map(), config_map("other"), deployment(), lost=("settings",))
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].error)
        bench.want(deployment())
        await bench.until(lambda: not bench.said[CONFIG].error)
        bench.space.gates["other"].set()
        await bench.settled()
        assert not bench.said[CONFIG].present
        assert not bench.said[OTHER].present
        assert await bench.space.get(OTHER) is None
        assert not bench.syncer._observed.keys() - {WEB, SHOP}
        assert not bench.syncer._errors


async def test_it_prunes_only_what_it_applied(bench, space):
    await space.apply(config_map("theirs"), "they")
    async with bench.running():
        bench.want(config_map(), config_map("other"))
        await bench.settled()
        bench.want(config_map())
        await bench.settled()
        assert await space.get(OTHER) is None
        assert bench.space.deleted == ["other"]
        assert not bench.said[OTHER].present


async def test_without_leave_nothing_is_pruned(bench, space):
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        bench.want(may_prune=False)
        await bench.settled()
        assert await space.get(CONFIG)
    async with bench.running():
        bench.want(may_prune=True)
        await bench.settled()
        assert await space.get(CONFIG) is None


async def test_an_object_that_was_there_is_taken_over_and_given_back(bench, space):
    await space.apply(config_map(theirs="1", labels={"keep": "1"}), "they")
    async with bench.running():
        bench.want(config_map(ours="2"))
        await bench.settled()
        assert not bench.done.of(CONFIG).made
        assert (await space.get(CONFIG))["data"] == {"theirs": "1", "ours": "2"}
        bench.want()
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"theirs": "1"}
        assert bench.space.deleted == []
        assert not bench.said[CONFIG].present


async def test_anothers_object_of_the_same_name_is_not_deleted(bench, space):
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
    await space.delete(CONFIG)
    await space.apply(config_map(theirs="1"), "they")
    async with bench.running():
        bench.want()
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"theirs": "1"}


async def test_a_label_removed_at_the_source_is_removed(bench, space):
    async with bench.running():
        bench.want(config_map(labels={"a": "1", "b": "2"}))
        await bench.settled()
        bench.want(config_map(labels={"a": "1"}))
        await bench.settled()
        labels = (await space.get(CONFIG))["metadata"]["labels"]
        assert labels == {"a": "1", "leafcast.io/tree": TREE}


async def test_a_section_removed_at_the_source_is_removed(bench, space):
    async with bench.running():
        noted = config_map(a="1")
        noted["metadata"]["annotations"] = {"note": "x"}
        bench.want(noted)
        await bench.settled()
        bare = config_map()
        bare.pop("data", None)
        bench.want(bare)
        await bench.settled()
        live = await space.get(CONFIG)
        assert not live.get("data")
        assert "note" not in live["metadata"].get("annotations", {})


async def test_create_only_is_never_overwritten_while_it_exists(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"), flags=CREATE_ONLY)
        await bench.settled()
        await space.apply(config_map(a="2"), "they")
        bench.want(config_map(a="3"), flags=CREATE_ONLY)
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "2"}
        await space.delete(CONFIG)
        await until_object(space, CONFIG, lambda live: live and live["data"] == {"a": "3"})


async def test_an_intent_left_by_a_crash_is_ours_only_if_it_holds_what_was_intended(bench, space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
    for key, done in list(bench.done.held.items()):
        bench.done.held[key] = replace(done, uid="")
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        assert bench.done.of(CONFIG).made
    for key, done in list(bench.done.held.items()):
        bench.done.held[key] = replace(done, uid="")
    await space.delete(CONFIG)
    await space.apply(config_map(b="1"), "they")
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        assert not bench.done.of(CONFIG).made


async def test_wants_that_change_while_it_works_are_met_in_the_end(bench, space):
    bench.space.gates["settings"] = asyncio.Event()
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.until(lambda: "settings" in bench.space.applied)
        bench.want(config_map(a="2"))
        bench.want(config_map(a="3"), config_map("other"))
        bench.space.gates["settings"].set()
        await bench.settled()
        assert (await space.get(CONFIG))["data"] == {"a": "3"}


async def test_many_objects_are_applied_and_taken_back(bench, space):
    async with bench.running():
        bench.want(*(config_map(f"c{at}", f"n{at % 3}") for at in range(60)))
        await bench.settled()
        assert len((await space.list("", "configmaps")).objects) == 60
        bench.want(*(config_map(f"c{at}", f"n{at % 3}") for at in range(0, 60, 3)))
        await bench.settled()
        assert len((await space.list("", "configmaps")).objects) == 20
        assert [
            obj["metadata"]["name"] for obj in (await space.list("", "namespaces")).objects
        ] == ["n0", "other", "shop"]
