"""What placements and singletons are told."""

from types import SimpleNamespace

import pytest

from controllers.core.translation.placements import Placements
from controllers.core.workloads.customizers import Customizers
from controllers.core.workloads.executing_count import EXECUTING_COUNT
from controllers.work_queue import ALL, WorkQueue
from controllers.workloads.status_summarizer import MANAGER, StatusSummarizer
from relay.space_errors import SpaceError
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.reports.reports import ExceptionSample, ObjectResult, Summary
from schemas.values import codec
from tests.leaping_time import LoopClock
from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    condition,
    config,
    deployment,
    holds,
    location,
    placement,
    placement_key,
)

pytestmark = pytest.mark.leaps


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_bad_placement_says_so_and_its_last_good_state_stays_in_force(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        good = centre.relay.delta("shop")
        await centre.apply(placement(clause={"resources": ["*"]}))
        bad = await centre.until_status(
            SHOP, lambda obj: (condition(obj, "Valid") or {}).get("status") == "False"
        )
        assert "edgeplacement/shop" in controllers.errors
        await centre.apply(placement())
        await centre.until_status(
            SHOP, lambda obj: (condition(obj, "Valid") or {}).get("status") == "True"
        )
    assert condition(bad, "Valid")["reason"] == "Invalid"
    assert "spec.downsync[0]" in condition(bad, "Valid")["message"]
    assert "narrow apiGroup" in condition(bad, "Valid")["message"]
    assert centre.relay.delta("shop") == good


async def test_a_placement_that_was_never_valid_waits_for_no_reports(centre):
    await centre.apply(config("a"), placement(clause={"resources": ["*"]}))
    async with centre.running():
        bad = await centre.until_status(SHOP, lambda obj: condition(obj, "Valid"))
    for type_ in ("Valid", "Synced", "Healthy"):
        told = condition(bad, type_)
        assert (told["status"], told["reason"]) == ("False", "Invalid")
        assert "narrow apiGroup" in told["message"]
        assert told["message"].endswith("it was never valid, so nothing of it goes out")


async def test_counts_come_back_into_the_placement(centre):
    await centre.inventory.apply(location("l1", env="prod"), USER)
    await centre.inventory.apply(location("l2", env="test"), USER)
    await centre.apply(config("a"), placement(selectors=[{"matchLabels": {"env": "prod"}}]))
    sample = ExceptionSample(0, "deployments.apps/shop/web", "ImagePullBackOff", 3, "/emea/s1")
    async with centre.running():
        await centre.relay.until(holds("a"))
        summary = Summary({"synced": 2, "failing": 3}, {"healthy": 2}, {}, (sample,))
        await centre.relay.report(centre.relay.delta("shop").source.key, summary)
        obj = await centre.until_status(SHOP, lambda obj: obj.get("status", {}).get("destinations"))
        await centre.until_status(SHOP, lambda obj: obj["status"]["matchingLocationCount"] == 1)
    status = obj["status"]
    assert (status["destinations"], status["synced"], status["failing"]) == (5, 2, 3)
    assert status["complete"] is True
    assert status["errors"] == [
        "shop/deployments.apps/web: ImagePullBackOff (3 destinations, e.g. /emea/s1)"
    ]
    assert condition(obj, "Synced")["reason"] == "Failing"


async def test_what_holds_placements_is_told_without_a_look_at_all_locations(centre, monkeypatch):
    for at in range(8):
        await centre.inventory.apply(location(f"l{at}", env="prod"), USER)
    names = [f"p{at}" for at in range(8)]
    bad = placement("bad", clause={"resources": ["*"]})
    prod = [{"matchLabels": {"env": "prod"}}]
    await centre.apply(config("a"), bad, *(placement(name, selectors=prod) for name in names))
    looks = []
    for looked_at, method in ((LabelSelector, "matches"), (Customizers, "missing")):
        original = getattr(looked_at, method)

        def noting(self, *arguments, method=method, original=original):
            looks.append(method)
            return original(self, *arguments)

        monkeypatch.setattr(looked_at, method, noting)
    async with centre.running() as controllers:
        for name in names:
            await centre.until_status(
                placement_key(name),
                lambda obj: (obj.get("status") or {}).get("matchingLocationCount") == 8,
            )
        assert set(looks) == {"matches", "missing"}
        looks.clear()
        held = {name: controllers.summarizer.held(name) for name in ("bad", *names)}
        assert not looks
    assert [hold["reason"] for hold in held.pop("bad")] == ["Invalid"]
    assert not any(held.values())


async def test_what_is_asked_for_no_more_is_tried_again_until_the_space_takes_it(monkeypatch):
    wanting = placement("shop", wantSingletonReportedState=True)
    web, key = deployment("web"), ObjectKey("apps", "deployments", "shop", "web")
    seen = Placements("space", {})
    other = placement("other", wantSingletonReportedState=True)
    seen.listed({BUILT_IN_KINDS.key_of(obj): obj for obj in (web, wanting, other)})
    clock = LoopClock()
    translator = SimpleNamespace(workloads=seen.workloads, relay=None, space=None, clock=clock)
    summarizer = StatusSummarizer(translator, WorkQueue(clock), None)
    asked, answers = [], [None, SpaceError("ServerTimeout", "wait"), None, None]

    async def give_back(_summarizer, key):
        asked.append(key)
        return answers.pop(0)

    async def write(_summarizer, _name):
        return True

    monkeypatch.setattr(StatusSummarizer, "_return", give_back)
    monkeypatch.setattr(StatusSummarizer, "_write_all", write)
    names = frozenset({"shop"})
    assert not await summarizer.reconcile(names)
    # The other one still asks for it, so that nothing but this says that it changed.
    seen.put(SHOP, placement("shop"))
    assert await summarizer.reconcile(names) == names
    assert not await summarizer.reconcile(names)
    assert not await summarizer.reconcile(names)
    assert asked == [key] * 3


async def test_a_singleton_has_the_status_of_its_one_copy_and_loses_it_with_a_second(centre):
    web = ObjectKey("apps", "deployments", "shop", "web")
    await centre.apply(deployment("web"), placement(wantSingletonReportedState=True))
    returned = codec.canonical({"readyReplicas": 1})
    async with centre.running():
        await centre.relay.until(holds("web"))
        key = centre.relay.delta("shop").source.key
        one = ObjectResult(web, 1, "d1", returned)
        await centre.relay.report(key, Summary({"synced": 1}), (one,))
        obj = await centre.until_status(web, lambda obj: obj.get("status") and _count(obj))
        assert (obj["status"], _count(obj)) == ({"readyReplicas": 1}, "1")
        await centre.relay.report(key, Summary({"synced": 2}), (ObjectResult(web, 2),))
        await centre.until_status(web, lambda obj: not obj.get("status") and _count(obj) == "2")
        await centre.relay.report(key, Summary({"synced": 1}), (one,))
        await centre.until_status(web, lambda obj: obj.get("status") and _count(obj) == "1")
        await centre.apply(placement())
        await centre.until_status(web, lambda obj: not obj.get("status") and not _count(obj))


async def test_a_report_has_the_centre_look_at_the_objects_of_its_placement_alone(centre):
    names, looks = [f"p{at}" for at in range(12)], []
    for name in names:
        clause = {"resources": ["deployments"], "objectNames": [name]}
        wish = placement(name, clause, wantSingletonReportedState=True)
        await centre.apply(deployment(name), wish)
    webs = {name: ObjectKey("apps", "deployments", "shop", name) for name in names}
    async with centre.running() as controllers:
        summarizer, results = controllers.summarizer, centre.relay.results
        reconcile = summarizer.reconcile

        async def noting(listed):
            looks.append((listed, set()))
            return await reconcile(listed)

        def noted(key):
            looks[-1][1].add(key)
            return results(key)

        summarizer.reconcile, centre.relay.results = noting, noted
        for name in names:
            await centre.relay.until(holds(name, of=name))
            key = centre.relay.delta(name).source.key
            one = ObjectResult(webs[name], 1, "d1", codec.canonical({"readyReplicas": 1}))
            await centre.relay.report(key, Summary({"synced": 1}), (one,))
            await centre.until_status(webs[name], lambda obj: obj.get("status") and _count(obj))
        key_of = {name: centre.relay.delta(name).source.key for name in names}
    for listed, asked in looks:
        assert asked <= {key_of[name] for name in names if {name, ALL} & listed}
    assert set().union(*(asked for _, asked in looks)) == set(key_of.values())


async def test_an_object_loses_the_count_of_the_one_placement_that_lets_go_of_it(centre):
    web, wish = ObjectKey("apps", "deployments", "shop", "web"), "wantSingletonReportedState"
    await centre.apply(deployment("web"), *(placement(name, **{wish: True}) for name in "ab"))
    async with centre.running():
        for name, where in (("a", "d1"), ("b", "d2")):
            await centre.relay.until(holds("web", of=name))
            key = centre.relay.delta(name).source.key
            one = ObjectResult(web, 1, where, codec.canonical({"readyReplicas": 1}))
            await centre.relay.report(key, Summary({"synced": 1}), (one,))
        await centre.until_status(web, lambda obj: not obj.get("status") and _count(obj) == "2")
        await centre.apply(placement("a"))
        await centre.until_status(web, lambda obj: obj.get("status") and _count(obj) == "1")


async def test_a_singleton_at_another_number_of_places_than_one_is_named_in_the_placement(centre):
    webs = [deployment(f"web{at}") for at in range(6)]
    await centre.apply(*webs, placement(wantSingletonReportedState=True))
    async with centre.running():
        await centre.relay.until(holds(*(web["metadata"]["name"] for web in webs)))
        key = centre.relay.delta("shop").source.key
        await centre.relay.report(key, Summary({"synced": 2}))
        told = await centre.until_status(SHOP, lambda obj: condition(obj, "SingletonReported"))
        [error] = told["status"]["errors"]
        await centre.relay.report(key, Summary({"synced": 1}))
        await centre.until_status(SHOP, lambda obj: not condition(obj, "SingletonReported"))
    assert condition(told, "SingletonReported")["message"] == error
    assert "shop/deployments.apps/web0 (2)" in error
    assert "web3 (2) and 2 more" in error
    assert "web4" not in error


async def test_what_nobody_selects_any_more_loses_its_count_though_only_its_metadata_is_kept(
    centre,
):
    web, form = ObjectKey("apps", "deployments", "shop", "web"), deployment("web")
    other = {"resources": ["deployments"], "labelSelectors": [{"matchLabels": {"app": "other"}}]}
    await centre.apply(form, placement(clause=other))
    metadata = {**form["metadata"], "annotations": {EXECUTING_COUNT: "1"}}
    await centre.wds.apply({**form, "metadata": metadata}, MANAGER)
    async with centre.running():
        await centre.until_status(web, lambda obj: not _count(obj))


def _count(obj):
    assert EXECUTING_COUNT not in obj["metadata"].get("labels", {}), "that is a BindingPolicy's"
    return obj["metadata"].get("annotations", {}).get(EXECUTING_COUNT)


async def test_what_may_be_away_is_said_at_once_and_sends_nothing(centre):
    async with centre.running():
        await centre.apply(config("a"), placement())
        await centre.relay.until(holds("a"))
        head = centre.relay.delta("shop")
        away = Summary(states={"synced": 8, "unreachable": 2}, health={"healthy": 8, "unknown": 2})
        centre.relay.away[head.source.key] = [("emea", 2)]
        await centre.relay.report(head.source.key, away)
        found = await centre.until_status(SHOP, says_ready("False"))
        told = condition(found, "Ready")["message"]
        assert "2 cannot be reached, and 1 may be away: /emea (2)" in told
        await centre.apply(placement(readiness={"maxUnavailable": "20%"}))
        await centre.until_status(SHOP, says_ready("True"))
        assert centre.relay.delta("shop").generation == head.generation


def says_ready(status):
    return lambda obj: (condition(obj, "Ready") or {}).get("status") == status
