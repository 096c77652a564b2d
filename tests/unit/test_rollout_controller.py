"""The centre steers a placement by its Rollout: status first, then the delta, and so on again."""

import asyncio
import json

import pytest

from controllers.core.rollout.rejection import Wanted
from controllers.core.rollout.rollouts import Rollouts
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Summary, cell
from tests.unit.centre_relay import LedgerRelay
from tests.unit.centre_world import (
    SHOP,
    Centre,
    condition,
    config,
    holds,
    location,
    placement,
    target,
)
from tests.unit.rollout_world import content

pytestmark = pytest.mark.leaps

ROLLOUT = ObjectKey("leafcast.io", "rollouts", "", "shop")
WAVES = ({"name": "tenth", "percent": 10}, {"name": "rest", "percent": 100})


def rollout(waves=WAVES, name="shop", annotations=None, **spec):
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"placement": {"name": "shop"}, "waves": list(waves), **spec},
    }


async def world(tmp_path):
    centre = Centre(tmp_path)
    for number in range(3):
        await centre.inventory.apply(target(f"s{number}", f"/s{number}"), "user")
    await centre.inventory.apply(location("all"), "user")
    return centre


def gates(relay):
    return relay.body(relay.delta("shop")).gates


async def answer(centre, health="healthy"):
    """The tree says of the present delta that each of its named gates has one member."""
    names = {gate.name for gate in gates(centre.relay) if gate.name}
    cells = {cell(name, "synced", health): 1 for name in names}
    key = centre.relay.delta("shop").source.key
    await centre.relay.report(key, Summary(states={"synced": 3}, cells=cells))


def phase(name):
    return lambda obj: obj.get("status", {}).get("phase") == name


def names(relay):
    return [gate.name for gate in gates(relay)]


def asking(waves=WAVES, name="shop", **said):
    return rollout(waves, name, {"leafcast.io/rollout-request": json.dumps(said)})


async def steer(centre, waves=WAVES):
    """A placement is in force, and a Rollout took it over."""
    await centre.apply(config("a"), placement())
    await centre.relay.until(lambda relay: relay.delta("shop"))
    await centre.apply(rollout(waves))
    await centre.until_status(ROLLOUT, phase("Complete"))


async def begin(centre):
    """Revision 2 is in its first wave."""
    await steer(centre)
    await centre.apply(config("a", value="2"))
    await centre.relay.until(lambda relay: len(gates(relay)) == 2)


async def test_a_change_goes_out_by_waves(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        assert names(centre.relay) == ["2.0", ""]
        assert gates(centre.relay)[0].below == 1000
        obj = await centre.until_status(ROLLOUT, phase("Progressing"))
        assert obj["status"]["waves"][0]["name"] == "tenth"
        await answer(centre)
        await centre.relay.until(lambda relay: names(relay) == ["2.0", "2.1"])
        await answer(centre)
        obj = await centre.until_status(ROLLOUT, phase("Complete"))
        assert condition(obj, "RolledOut")["status"] == "True"
        assert obj["status"]["history"][-1]["outcome"] == "Complete"
        deltas = [each for each in centre.relay.deltas() if each.source.name == "shop"]
    # The plain one, the one that says that a Rollout steers it, and one for each wave.
    assert len(deltas) == 4


async def test_a_centre_that_starts_again_goes_on_where_it_was(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        before = centre.relay.delta("shop")
    async with centre.running():
        await centre.until_status(ROLLOUT, phase("Progressing"))
        await answer(centre)
        obj = await centre.until_status(ROLLOUT, lambda obj: obj["status"]["wave"] == 2)
        assert obj["status"]["revision"] == 2
        await answer(centre)
        await centre.until_status(ROLLOUT, phase("Complete"))
    assert centre.relay.delta("shop").rollout_since == before.rollout_since


async def in_first_wave(centre):
    """A run that ends in the first wave of revision 2."""
    async with centre.running():
        await begin(centre)
    return gates(centre.relay)


def lose_ledger(centre):
    """The content is kept; what was said is forgotten."""
    lost, centre.relay = centre.relay, LedgerRelay(centre.relay.tree, centre.relay.ring)
    centre.relay.blobs.update(lost.blobs)


async def test_a_lost_ledger_gets_its_gates_back_from_the_status(tmp_path):
    centre = await world(tmp_path)
    before = await in_first_wave(centre)
    lose_ledger(centre)
    async with centre.running():
        await centre.relay.until(lambda relay: relay.delta("shop"))
        assert gates(centre.relay) == before
        obj = await centre.until_status(ROLLOUT, phase("Progressing"))
        assert (obj["status"]["revision"], obj["status"]["wave"]) == (2, 1)


async def test_with_ledger_and_status_lost_nothing_goes_out_before_a_person_says_so(tmp_path):
    centre = await world(tmp_path)
    await in_first_wave(centre)
    lose_ledger(centre)
    await centre.wds.set_status(ROLLOUT, {})
    async with centre.running() as controllers:
        obj = await centre.until_status(ROLLOUT, phase("Held"))
        assert condition(obj, "RolloutHeld")
        await controllers.caught_up()
        assert centre.relay.delta("shop") is None
        await centre.apply(asking(id="1", action="resume"))
        await centre.relay.until(lambda relay: relay.delta("shop"))
        assert len(gates(centre.relay)) == 1


async def test_a_deleted_rollout_leaves_its_placement_where_it_is(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        before = gates(centre.relay)
        await centre.wds.delete(ROLLOUT)
        await centre.apply(config("a", value="3"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RolloutGone"))
        assert gates(centre.relay) == before
        released = placement()
        released["metadata"]["annotations"] = {"leafcast.io/release-rollout": "true"}
        await centre.apply(released)
        await centre.relay.until(lambda relay: len(gates(relay)) == 1)
        assert not centre.relay.kept_history().get(centre.relay.delta("shop").source.key)
        # One that comes later knows nothing of the former one, whatever it is called.
        await centre.apply(rollout())
        obj = await centre.until_status(ROLLOUT, phase("Complete"))
        assert len(obj["status"]["history"]) == 1
        assert len(gates(centre.relay)) == 1


async def test_a_request_is_done_once_and_a_wrong_one_is_refused(tmp_path):
    centre = await world(tmp_path)
    waves = ({"name": "tenth", "percent": 10, "approval": "before"}, WAVES[1])
    async with centre.running():
        await steer(centre, waves)
        await centre.apply(config("a", value="2"))
        obj = await centre.until_status(ROLLOUT, phase("AwaitingApproval"))
        assert obj["status"]["next"] == "leafcast rollout approve shop tenth"
        assert len(gates(centre.relay)) == 1
        await centre.apply(asking(waves, id="1", action="approve", wave="rest"))
        obj = await centre.until_status(ROLLOUT, lambda obj: obj["status"].get("request"))
        assert obj["status"]["request"]["outcome"] == "Refused"
        await centre.apply(asking(waves, id="2", action="approve", wave="tenth"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 2)
        await centre.apply(asking(waves, id="3", action="abort"))
        await centre.until_status(ROLLOUT, phase("Aborted"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 1)


async def test_one_that_becomes_invalid_says_so_and_opens_nothing_until_it_is_mended(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        await centre.apply(rollout((WAVES[0], WAVES[0])))
        obj = await centre.until_status(ROLLOUT, lambda obj: condition(obj, "Valid"))
        assert 'a second wave "tenth"' in condition(obj, "Valid")["message"]
        await answer(centre)
        await controllers.caught_up()
        assert names(centre.relay) == ["2.0", ""]
        await centre.apply(rollout())
        await centre.relay.until(lambda relay: names(relay) == ["2.0", "2.1"])
        await centre.until_status(ROLLOUT, lambda obj: not condition(obj, "Valid"))


async def test_of_two_rollouts_that_share_an_object_the_later_waits(tmp_path):
    centre = await world(tmp_path)
    other = placement("other")
    second = rollout(name="z")
    second["spec"]["placement"] = {"name": "other"}
    key = ObjectKey("leafcast.io", "rollouts", "", "z")
    async with centre.running():
        await centre.apply(config("a"), placement(), other)
        await centre.relay.until(lambda relay: relay.delta("shop") and relay.delta("other"))
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Complete"))
        await centre.apply(second)
        await centre.until_status(key, phase("Complete"))
        await centre.apply(config("a", value="2"))
        await centre.until_status(ROLLOUT, phase("Progressing"))
        await centre.until_status(key, lambda obj: condition(obj, "Blocked"))
        for wanted in (["2.0", ""], ["2.0", "2.1"]):
            await centre.relay.until(lambda relay, wanted=wanted: names(relay) == wanted)
            await answer(centre)
        await centre.until_status(ROLLOUT, phase("Complete"))
        await centre.until_status(key, phase("Progressing"))


async def test_an_undo_to_a_content_of_which_an_object_is_lost_changes_nothing(tmp_path):
    centre = await world(tmp_path)
    await in_first_wave(centre)
    async with centre.running():
        await centre.until_status(ROLLOUT, phase("Progressing"))
        before = gates(centre.relay)
        first = await centre.relay.entries(centre.relay.deltas()[0])
        del centre.relay.blobs[first["a"].address]
        await centre.apply(asking(id="1", action="undo"))
        obj = await centre.until_status(ROLLOUT, lambda obj: obj["status"].get("request"))
        assert obj["status"]["request"]["outcome"] == "Refused"
        assert "is lost" in obj["status"]["request"]["message"]
        assert gates(centre.relay) == before


def test_only_a_spec_that_is_another_is_news_for_its_placement():
    known, obj = Rollouts(), rollout()
    assert known.put("shop", obj) == {"shop"}
    assert known.put("shop", {**obj, "status": {"phase": "Progressing"}}) == set()
    assert known.put("shop", asking(id="1", action="pause")) == set()
    assert known.put("shop", rollout(waves=WAVES[1:])) == {"shop"}


def test_a_rollout_that_comes_again_begins_nothing_of_what_was_wanted_before():
    known, wanted = Rollouts(), Wanted(content("given up"))
    moved = rollout()
    moved["spec"]["placement"] = {"name": "other"}
    for leaves in (lambda: known.remove("shop"), lambda: known.put("shop", moved)):
        known.put("shop", rollout())
        known.targets["shop"] = wanted
        known.put("second", rollout(name="second"))
        known.remove("second")
        assert known.targets == {"shop": wanted}
        leaves()
        assert known.targets == {}


async def test_of_two_rollouts_of_a_placement_the_older_counts(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await centre.apply(config("a"), placement(), rollout(name="a"))
        await centre.apply(rollout(name="b"))
        second = ObjectKey("leafcast.io", "rollouts", "", "b")
        await centre.until_status(second, lambda obj: condition(obj, "Superfluous"))
        await centre.apply(asking(name="b", id="1", action="pause"))
        obj = await centre.until_status(second, lambda obj: obj["status"].get("request"))
        assert obj["status"]["request"]["outcome"] == "Refused"


async def test_a_placement_that_is_deleted_and_comes_again_goes_by_waves_over_nothing(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        await centre.wds.delete(SHOP)
        await centre.until_status(ROLLOUT, phase("Waiting"))
        await centre.apply(config("a", value="3"), placement())
        await centre.relay.until(lambda relay: gates(relay)[-1].arm is None)
        obj = await centre.until_status(ROLLOUT, phase("Progressing"))
        assert [item["number"] for item in obj["status"]["history"]] == [1, 2, 3]


async def test_a_rollout_of_another_placement_brings_nothing_of_the_former_one(tmp_path):
    centre = await world(tmp_path)
    other = rollout()
    other["spec"] = {"placement": {"name": "other"}, "waves": list(WAVES)}
    async with centre.running():
        await begin(centre)
        await centre.apply(config("b"), placement("other", clause={"objectNames": ["b"]}))
        await centre.relay.until(lambda relay: relay.delta("other"))
        await centre.apply(other)
        obj = await centre.until_status(ROLLOUT, phase("Complete"))
        assert [item["number"] for item in obj["status"]["history"]] == [1]
        await centre.until_status(SHOP, lambda obj: condition(obj, "RolloutGone"))
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(config("b", value="2"))
        await centre.relay.until(lambda r: len(r.body(r.delta("other")).gates) == 2)
        arms = {gate.arm for gate in centre.relay.body(centre.relay.delta("other")).gates}
        assert arms.isdisjoint(gate.arm for gate in gates(centre.relay))


async def test_what_awaits_its_first_wave_is_held_and_stays_back_though_its_rollout_is_deleted(
    tmp_path,
):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(rollout(({**WAVES[1], "approval": "before"},)))
        await centre.apply(config("a"), placement())
        await centre.until_status(SHOP, lambda obj: held(obj) == ["AwaitingApproval"])
        # Perhaps the ledger has it by now.
        await centre.wds.delete(ROLLOUT)
        await centre.until_status(SHOP, lambda obj: held(obj) == ["RolloutDeleted"])
        await centre.relay.until(lambda relay: relay.delta("shop"))
        assert [gate.arm for gate in gates(centre.relay)] == [None]


async def test_a_placement_says_so_of_which_nobody_knows_how_far_its_rollout_was(tmp_path):
    centre = await world(tmp_path)
    await centre.apply(config("a"), placement(), rollout())
    async with centre.running():
        await centre.until_status(SHOP, lambda obj: held(obj) == ["RolloutHeld"])


def held(obj):
    return [hold["reason"] for hold in obj.get("status", {}).get("held", ())]


async def test_a_large_removal_that_was_let_go_is_held_no_more_while_waves_take_it(tmp_path):
    centre, letters = await world(tmp_path), "abcdef"
    async with centre.running() as controllers:
        await centre.apply(*map(config, letters), placement())
        await centre.relay.until(holds(*letters))
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Complete"))
        await centre.relay.until(lambda relay: relay.delta("shop").rollout_since)
        await controllers.caught_up()
        controllers.pause("apply")
        await centre.apply(placement(clause={"objectNames": ["a"]}))
        placements, said = controllers.translator.placements, ("a",)
        async with asyncio.timeout(60):
            while placements.workloads.placements["shop"].spec.downsync[0].object_names != said:
                await asyncio.sleep(0)
        controllers.confirm_removals("shop", 15)
        # What is wanted now is noted; the Rollout has yet to say who is first.
        works = placements.next(["shop"])
        assert [(work.draft, work.name) for work in works] == [(None, "shop")]
        placements.issued(works, ())
        # What is looked at again has the former content still.
        assert placements.next(["shop"]) == []
        assert placements.held == {}
