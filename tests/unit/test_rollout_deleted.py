"""A Rollout that is deleted: complete it lets go, under way its placement stays and says so."""

import pytest

from controllers.core.planning.holdings import steered_of
from controllers.core.rollout import layers
from controllers.core.rollout.rejection import Wanted
from controllers.core.rollout.rollouts import Rollouts
from controllers.core.translation.placements import Placements
from schemas.api.rollout_status import RolloutStatus
from schemas.records.records import FormerRollout, Gate
from tests.unit.centre_world import SHOP, condition, config, config_key, placement
from tests.unit.rollout_world import content
from tests.unit.test_centre_decisions import keyed
from tests.unit.test_rollout_controller import (
    ROLLOUT,
    WAVES,
    answer,
    asking,
    begin,
    gates,
    phase,
    rollout,
    steer,
    world,
)

pytestmark = pytest.mark.leaps


def reasons(obj):
    return [hold["reason"] for hold in obj.get("status", {}).get("held", ())]


def is_held(obj):
    return reasons(obj) == ["RolloutDeleted"]


def is_free(relay):
    return relay.delta("shop").rollout_since == 0


async def test_a_complete_rollout_that_is_deleted_lets_go_of_its_placement(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await steer(centre)
        await centre.wds.delete(ROLLOUT)
        await centre.relay.until(is_free)
        before = gates(centre.relay)
        await centre.apply(config("a", value="2"))
        await centre.relay.until(lambda relay: gates(relay) != before)
        assert [gate.name for gate in gates(centre.relay)] == [""]
        obj = await centre.until_status(SHOP, lambda obj: "held" in obj.get("status", {}))
        assert not condition(obj, "RolloutGone")
        assert obj["status"]["held"] == []


def decided(seen, number=6):
    """The ledger takes what is decided of the placement now; that."""
    works = seen.next(["shop"])
    seen.issued(works, [work.draft.stamped(number) for work in works if work.draft is not None])
    seen.settle_former_rollout("shop")
    return works


def placements(*known, value="1"):
    """The ledger holds what is `known`; then the space shows a Rollout, and another content."""
    seen = Placements("space", {})
    seen.listed(keyed(config("a"), *known))
    decided(seen, 5)
    for key, obj in keyed(config("a", value=value), placement(), rollout()).items():
        seen.put(key, obj)
    return seen


def say(seen, phase):
    """What the status says; who wrote it does not know yet that it is written."""
    revision = layers.empty(1, seen.workloads.rollouts.target("shop"))
    below = (revision, layers.base(0, None))
    state = RolloutStatus(placement="shop", phase=phase, revision=1, layers=below)
    seen.put(ROLLOUT, {**rollout(), "status": state.to_mapping()})


@pytest.mark.parametrize("said", ["AwaitingApproval", ""])
def test_what_is_new_stays_back_though_its_rollout_goes_before_the_ledger_has_it(said):
    seen = placements()
    assert [work.draft for work in decided(seen)] == [None]
    if said:
        say(seen, said)
    seen.deleted(ROLLOUT)
    # Whatever was under way then is over before anything is decided of it.
    seen.settle_former_rollout("shop")
    works = decided(seen)
    assert [work.translation.gates for work in works] == [(Gate(None),)] * bool(said)
    assert decided(seen) == []
    assert seen.gone["shop"].news == "1 object: shop/configmaps/a"
    assert steered_of(seen, "shop").is_stranded
    assert seen.settle_former_rollout("shop").deleted
    seen.workloads.rollouts.let_go.add("shop")
    (work,) = decided(seen, 7)
    assert [gate.arm for gate in work.translation.gates] == [work.translation.root]
    assert decided(seen) == []
    assert seen.settle_former_rollout("shop") == FormerRollout()


def test_a_change_stays_back_though_its_rollout_goes_before_the_ledger_shows_that_it_was_there():
    seen = placements(placement(), value="2")
    before = seen.gates("shop")
    seen.deleted(ROLLOUT)
    seen.settle_former_rollout("shop")
    (work,) = decided(seen)
    assert (work.translation.gates, work.draft.record.is_gated) == (before, True)
    assert decided(seen) == []
    assert seen.gone["shop"].news == "1 object: shop/configmaps/a"
    # The former content is what everyone has: nothing is kept back any more.
    seen.put(config_key("a"), config("a"))
    (work,) = decided(seen, 7)
    assert not work.draft.record.is_gated
    assert not seen.gone


def test_one_that_comes_and_goes_holds_nothing_up_where_nothing_differs():
    seen = placements(placement())
    seen.deleted(ROLLOUT)
    assert decided(seen) == []
    seen.put(config_key("a"), config("a", value="2"))
    (work,) = decided(seen)
    assert [gate.arm for gate in work.translation.gates] == [work.translation.root]


async def test_one_that_is_under_way_freezes_and_says_so_until_it_is_let_go(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        before = gates(centre.relay)
        await centre.wds.delete(ROLLOUT)
        obj = await centre.until_status(SHOP, is_held)
        hold = obj["status"]["held"][0]
        assert "it would send 1 object: shop/configmaps/a" in hold["message"]
        assert hold["remedy"] == "leafcast rollout release epl/shop"
        assert condition(obj, "Synced")["reason"] == "RolloutDeleted"
        assert "shop/configmaps/a" in condition(obj, "RolloutGone")["message"]
        assert gates(centre.relay) == before
        controllers.translator.release("shop")
        await centre.relay.until(is_free)
        await centre.until_status(SHOP, lambda obj: not reasons(obj))


async def test_what_was_aborted_stays_back_when_its_rollout_is_deleted(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        await centre.apply(asking(id="1", action="abort"))
        await centre.until_status(ROLLOUT, phase("Aborted"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 1)
        before = gates(centre.relay)
        await centre.wds.delete(ROLLOUT)
        # Its waves let go of it, and not what was aborted.
        await centre.relay.until(is_free)
        obj = await centre.until_status(SHOP, lambda obj: reasons(obj) == ["RolloutAborted"])
        assert obj["status"]["held"][0]["remedy"] == "leafcast rollout release epl/shop"
        assert gates(centre.relay)[0].arm == before[0].arm
        # Once the centre says what everyone has, there is nothing left to be kept back.
        await centre.apply(config("a"))
        await centre.until_status(SHOP, lambda obj: not reasons(obj))


async def test_what_a_deleted_rollout_froze_is_held_since_then_through_a_restart(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        await centre.wds.delete(ROLLOUT)
        obj = await centre.until_status(SHOP, is_held)
        since, before = obj["status"]["held"][0]["since"], gates(centre.relay)
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(config("a", value="3"))
        await controllers.caught_up()
        await controllers.written(["shop"])
        obj = await centre.until_status(SHOP, is_held)
        assert obj["status"]["held"][0]["since"] == since
        assert gates(centre.relay) == before


async def test_one_that_another_rollout_takes_up_is_held_no_more(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        await centre.wds.delete(ROLLOUT)
        await centre.until_status(SHOP, is_held)
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Progressing"))
        await centre.until_status(SHOP, lambda obj: not reasons(obj))


async def test_one_that_cannot_be_read_by_a_new_run_is_not_said_to_be_deleted(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        await centre.until_status(ROLLOUT, phase("Progressing"))
    before = gates(centre.relay)
    wide = rollout()
    wide["spec"]["windows"] = "every day"
    await centre.apply(wide)
    async with centre.running():
        obj = await centre.until_status(SHOP, lambda obj: reasons(obj) == ["RolloutInvalid"])
        hold = obj["status"]["held"][0]
        assert 'rollout "shop" cannot be read' in hold["message"]
        assert hold["remedy"] == "leafcast describe rollout shop"
        assert not condition(obj, "RolloutGone")
        assert gates(centre.relay) == before
        # Mended it goes on.
        await centre.apply(rollout())
        obj = await centre.until_status(ROLLOUT, phase("Progressing"))
        assert (obj["status"]["revision"], gates(centre.relay)) == (2, before)
        await centre.until_status(SHOP, lambda obj: not reasons(obj))


def test_one_that_cannot_be_read_is_news_for_whom_it_names():
    known, bad = Rollouts(), rollout()
    bad["spec"] = {**bad["spec"], "waves": "all"}
    assert known.put("shop", bad) == {"shop"}
    assert (known.of("shop"), known.unread_of("shop")) == (None, "shop")
    assert known.put("shop", bad) == frozenset()
    # Nothing is known to have been steered by it.
    assert known.deleted("shop") == {"shop"}
    assert known.unread_of("shop") is None
    assert not known.former.deleted
    known.put("shop", rollout())
    known.put("shop", bad)
    assert (known.of("shop"), known.unread_of("shop")) == ("shop", None)
    known.remove("shop")
    known.put("shop", {**bad, "spec": 7})
    assert known.unread_of("shop") is None


async def test_a_complete_rollout_that_goes_to_another_placement_lets_the_former_go(tmp_path):
    centre = await world(tmp_path)
    other = rollout()
    other["spec"] = {"placement": {"name": "other"}, "waves": list(WAVES)}
    async with centre.running():
        await begin(centre)
        await answer(centre)
        await centre.relay.until(lambda relay: len(gates(relay)) == 2 and gates(relay)[-1].name)
        await answer(centre)
        await centre.until_status(ROLLOUT, phase("Complete"))
        await centre.apply(other, placement("other", clause={"objectNames": ["b"]}))
        await centre.relay.until(is_free)


def test_a_rollout_that_is_only_not_seen_any_more_lets_nothing_go():
    known = Rollouts()
    known.put("shop", rollout())
    known.targets["shop"] = Wanted(content("v1"))
    known.remove("shop")
    assert not known.let_go
    assert not known.former.deleted
    known.put("shop", rollout())
    known.deleted("shop")
    assert known.former.deleted == {"shop"}
    known.put("shop", rollout())
    assert not known.former.deleted


async def test_what_waits_for_a_person_waits_since_then_through_a_restart(tmp_path):
    centre = await world(tmp_path)
    waves = ({"name": "tenth", "percent": 10, "approval": "before"}, WAVES[1])
    said = []
    async with centre.running():
        await steer(centre, waves)
        await centre.apply(config("a", value="2"))
        obj = await centre.until_status(SHOP, lambda obj: reasons(obj) == ["AwaitingApproval"])
        since = obj["status"]["held"][0]["since"]
    async with centre.running() as controllers:
        await controllers.caught_up()
        await controllers.written(["shop"])
        obj = await centre.wds.get(SHOP)
        said.append((reasons(obj), condition(obj, "Synced")["reason"]))
        assert obj["status"]["held"][0]["since"] == since
    assert said == [(["AwaitingApproval"], "AwaitingApproval")]


async def test_one_that_let_in_only_some_of_a_new_placement_keeps_the_others_without_it(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(rollout())
        await centre.apply(config("a"), placement())
        await centre.until_status(ROLLOUT, phase("Progressing"))
        await centre.relay.until(lambda r: r.delta("shop") and len(gates(r)) == 2)
        before = gates(centre.relay)
        assert [gate.arm is None for gate in before] == [False, True]
        await centre.wds.delete(ROLLOUT)
        obj = await centre.until_status(SHOP, is_held)
        assert "it would send 1 object: shop/configmaps/a" in obj["status"]["held"][0]["message"]
        assert gates(centre.relay) == before
