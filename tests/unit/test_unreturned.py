"""A status that the hub does not take is told to whoever asks for it or looks for trouble."""

import asyncio

import pytest

from controllers.core.status.facts import PlacementFacts
from controllers.core.status.status import placement_status
from controllers.core.status.unreturned import passes, unreturned
from controllers.workloads import status_summarizer
from leafcast.daemon.event_log import EventLog, follow_conditions
from leafcast.doctor.placement_checks import placement_checks
from relay.adapters.clock import SystemClock, SystemDice
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count, ObjectResult, Summary
from schemas.values import codec
from schemas.values.faults import Fault, told_once
from schemas.values.wire import replace
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import SHOP, Centre, condition, deployment, holds, placement
from tests.unit.test_checks import facts
from tests.unit.test_checks import placement as placement_facts

WEB = ObjectKey("apps", "deployments", "shop", "web")
GADGET = ObjectKey("example.com", "gadgets", "shop", "a")
CENTRE = "system:serviceaccount:leafcast-system:leafcast-centre"
FORBIDDEN = (
    f'gadgets.example.com "a" is forbidden: User "{CENTRE}" cannot patch resource '
    '"gadgets/status" in API group "example.com" in the namespace "shop"'
)
REFUSED = unreturned(GADGET, "Forbidden", FORBIDDEN)
WELL = Count(Summary({"synced": 1}, {"healthy": 1}), exact=True)


def test_a_missing_right_is_named_with_how_to_grant_it():
    assert str(REFUSED) == (
        "shop/gadgets.example.com/a: its status is not returned: the centre may not patch the "
        f"status of gadgets.example.com; let {CENTRE} patch gadgets and gadgets/status of "
        "example.com, or those of all kinds: "
        "leafcast install --singleton-status any | kubectl apply -f -"
    )
    label = unreturned(GADGET, "Forbidden", FORBIDDEN.replace("gadgets/status", "gadgets"))
    assert "the centre may not patch gadgets.example.com" in label.message


def test_what_the_hub_says_is_told_word_for_word_if_it_lacks_no_right():
    said = unreturned(GADGET, "Invalid", "status.size: must be\n a number; sorry")
    assert "the hub says Invalid: status.size: must be a number, sorry" in said.message
    assert "definition" in said.remedy
    denied = [
        unreturned(GADGET, "Invalid", f'gadgets.example.com "{name}" is forbidden: p denied it')
        for name in "ab"
    ]
    assert denied[0] == denied[1]
    assert denied[0].message.endswith("the hub says Invalid: p denied it")
    assert "policies" in denied[0].remedy


@pytest.mark.parametrize(
    ("reason", "is_passing"),
    [
        ("ServiceUnavailable", True),
        ("Conflict", True),
        ("TooManyRequests", True),
        ("Forbidden", False),
        ("Invalid", False),
        ("InternalError", False),
    ],
)
def test_what_passes_by_itself_is_no_trouble(reason, is_passing):
    assert passes(reason) == is_passing


def test_many_that_are_refused_alike_are_one_error_and_one_condition():
    alike = tuple(unreturned(replace(GADGET, name=name), "Forbidden", FORBIDDEN) for name in "abc")
    said = placement_status(PlacementFacts(1, 1, selected=3, unreturned=alike), WELL, None, 0)
    [error] = said["errors"]
    assert error.startswith("shop/gadgets.example.com/a and 2 more: its status is not returned")
    told = condition({"status": said}, "SingletonReported")
    assert (told["status"], told["reason"], told["message"]) == ("False", "StatusRefused", error)
    assert condition({"status": said}, "Synced")["status"] == "True"


def test_states_that_found_no_room_are_told_and_take_nothing_from_the_counts():
    count = Count(WELL.summary, exact=True, unsaid=12)
    status = placement_status(PlacementFacts(1, 1, selected=1), count, None, 0)
    assert (status["destinations"], status["complete"]) == (count.summary.destinations, True)
    (error,) = status["errors"]
    assert "what 12 objects return found no room on the way" in error
    (told,) = [it for it in status["conditions"] if it["type"] == "SingletonReported"]
    assert (told["status"], told["reason"], told["message"]) == ("False", "NoRoom", error)


def test_the_doctor_names_the_right_to_grant():
    told = facts(placements=[placement_facts(unreturned=told_once([REFUSED]))])
    [check] = [it for it in placement_checks(told) if "its status" in it.said]
    assert (check.state, check.about) == ("warning", "edgeplacement/shop")
    assert check.said.startswith("shop: shop/gadgets.example.com/a: its status is not returned")
    assert check.remedy.endswith("leafcast install --singleton-status any | kubectl apply -f -")


async def test_it_is_one_event():
    clock, log = SystemClock(), EventLog()
    space = MemorySpace(clock, SystemDice())
    kind = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    known = PlacementFacts(1, 1, selected=1, unreturned=(REFUSED,))
    said = placement_status(known, WELL, None, 0)
    async with asyncio.TaskGroup() as group:
        following = group.create_task(follow_conditions(space, log, clock))
        async with asyncio.timeout(60):
            await space.apply({**kind, "metadata": {"name": "shop"}}, "test")
            await space.set_status(SHOP, said)
            while not any(item["reason"] == "Delivered" for item in log.since(0)):
                await clock.sleep(0.01)
        following.cancel()
    told = [item for item in log.since(0) if "not returned" in item["message"]]
    assert [(item["type"], item["reason"]) for item in told] == [("Warning", "StatusRefused")]


async def test_a_refused_status_is_an_error_of_the_placement_until_it_is_taken(tmp_path):
    centre = Centre(tmp_path / "keys")
    await centre.apply(deployment("web"), placement(wantSingletonReportedState=True))
    take = centre.wds.set_status

    async def refuse(key, status):
        if key == WEB:
            raise SpaceError("Forbidden", FORBIDDEN.replace("gadgets", "deployments"))
        return await take(key, status)

    centre.wds.set_status = refuse
    returned = ObjectResult(WEB, 1, "d1", codec.canonical({"readyReplicas": 1}))
    async with centre.running() as controllers:
        await centre.relay.until(holds("web"))
        key = centre.relay.delta("shop").source.key
        await centre.relay.report(key, WELL.summary, (returned,))
        told = await centre.until_status(SHOP, lambda obj: condition(obj, "SingletonReported"))
        [error] = told["status"]["errors"]
        assert error.startswith("shop/deployments.apps/web: its status is not returned")
        assert controllers.summarizer.unreturned("shop")
        centre.wds.set_status = take
        more = ObjectResult(WEB, 1, "d1", codec.canonical({"readyReplicas": 2}))
        await centre.relay.report(key, WELL.summary, (more,))
        await centre.until_status(WEB, lambda obj: obj.get("status") == {"readyReplicas": 2})
        await centre.until_status(SHOP, lambda obj: not condition(obj, "SingletonReported"))


def test_what_is_not_sent_as_it_is_is_delivered_and_works_nowhere():
    known = PlacementFacts(1, 1, selected=2, faults=(Fault("shop/configmaps/a", "too large", "x"),))
    count = Count(Summary({"synced": 2, "failing": 1}, {"healthy": 2, "degraded": 1}), exact=True)
    said = placement_status(known, count, None, 0)
    assert (said["synced"], said["failing"], said["healthy"]) == (0, 3, 0)
    types = {item["type"]: (item["status"], item["reason"]) for item in said["conditions"]}
    assert types["Synced"] == types["Healthy"] == types["Ready"] == ("False", "ObjectsRefused")
    assert types["Stalled"] == types["ObjectsRefused"] == ("True", "ObjectsRefused")
    mended = placement_status(PlacementFacts(1, 1, selected=2), WELL, said, 0)
    assert (mended["synced"], mended["healthy"]) == (1, 1)


async def test_a_placement_whose_own_status_is_refused_is_noted_once(tmp_path, monkeypatch):
    monkeypatch.setattr(status_summarizer, "REFUSED_SECONDS", 0.05)
    centre = Centre(tmp_path / "keys")
    await centre.apply(deployment("web"), placement())
    take, tries = centre.wds.set_status, []

    async def refuse(key, status):
        if key != SHOP:
            return await take(key, status)
        tries.append(status)
        kind = '"edgeplacements/status" in API group "edge.kubestellar.io"'
        raise SpaceError("Forbidden", f'User "c" cannot patch resource {kind} at the cluster scope')

    centre.wds.set_status = refuse
    async with centre.running() as controllers, asyncio.timeout(60):
        while len(tries) < 3:
            await centre.clock.sleep(0.01)
        [told] = controllers.summarizer.unreturned("shop")
        centre.wds.set_status = take
        await centre.until_status(SHOP, lambda obj: condition(obj, "Valid"))
        assert controllers.summarizer.unreturned("shop") == ()
    assert centre.noted == [("StatusRefused", "edgeplacement/shop", str(told))]
    assert "may not patch the status of edgeplacements.edge.kubestellar.io" in told.message
    assert told.remedy.endswith("leafcast install | kubectl apply -f -")
