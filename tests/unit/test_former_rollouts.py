"""What is known of a Rollout that is gone outlasts a restart, and lets a placement go once only."""

import pytest

from controllers.core.rollout.rollouts import FormerRollouts
from schemas.records.records import FormerRollout
from tests.unit.centre_world import SHOP, condition, config, placement
from tests.unit.test_rollout_controller import (
    ROLLOUT,
    WAVES,
    begin,
    gates,
    phase,
    rollout,
    steer,
    world,
)
from tests.unit.test_rollout_deleted import is_free, is_held, reasons

pytestmark = pytest.mark.leaps

RELEASED = {"metadata": {"annotations": {"leafcast.io/release-rollout": "true"}}}
PLAIN = {"metadata": {}}


def annotated(value="true"):
    obj = placement()
    obj["metadata"]["annotations"] = {"leafcast.io/release-rollout": value}
    return obj


def known_of(centre):
    return centre.relay.former_known.get(centre.relay.delta("shop").source.key, FormerRollout())


async def release_once(centre):
    """The annotation let the placement go from its first Rollout, and stays."""
    await begin(centre)
    await centre.wds.delete(ROLLOUT)
    await centre.until_status(SHOP, is_held)
    await centre.apply(annotated())
    await centre.relay.until(is_free)


async def delete_another_under_way(centre):
    await centre.apply(rollout())
    await centre.until_status(ROLLOUT, phase("Complete"))
    await centre.apply(config("a", value="9"))
    await centre.until_status(ROLLOUT, phase("Progressing"))
    await centre.wds.delete(ROLLOUT)


async def test_an_annotation_that_lets_a_placement_go_counts_for_one_rollout(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await release_once(centre)
        await delete_another_under_way(centre)
        obj = await centre.until_status(SHOP, is_held)
        assert "counted for a former Rollout" in obj["status"]["held"][0]["message"]
        assert "take it off, and set it again" in condition(obj, "RolloutGone")["message"]
        # Taken off and set again it counts again.
        await centre.apply(annotated("false"))
        await controllers.caught_up()
        await centre.apply(annotated())
        await centre.relay.until(is_free)


async def test_that_it_counted_outlasts_a_restart(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await release_once(centre)
        await controllers.caught_up()
    async with centre.running():
        await delete_another_under_way(centre)
        await centre.until_status(SHOP, is_held)


async def test_one_set_beforehand_counts_for_the_rollout_that_is_deleted_next(tmp_path):
    centre = await world(tmp_path)
    async with centre.running():
        await begin(centre)
        await centre.apply(annotated())
        await centre.wds.delete(ROLLOUT)
        await centre.relay.until(is_free)
        await delete_another_under_way(centre)
        await centre.until_status(SHOP, is_held)


async def test_a_placement_lets_go_by_itself_after_a_restart_once_nothing_differs(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await steer(centre, waves=({**WAVES[0], "approval": "before"}, WAVES[1]))
        await centre.apply(config("a", value="2"))
        await centre.until_status(ROLLOUT, phase("AwaitingApproval"))
        before = gates(centre.relay)
        await centre.wds.delete(ROLLOUT)
        await centre.until_status(SHOP, is_held)
        await controllers.caught_up()
        assert known_of(centre) == FormerRollout(deleted=True)
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.until_status(SHOP, is_held)
        assert gates(centre.relay) == before
        await centre.apply(config("a"))
        await centre.relay.until(is_free)
        await centre.until_status(SHOP, lambda obj: not reasons(obj))
        await controllers.caught_up()
        assert known_of(centre) == FormerRollout()


async def test_one_that_came_and_went_unseen_lets_nothing_go_for_an_earlier_deletion(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        await centre.wds.delete(ROLLOUT)
        await centre.until_status(SHOP, is_held)
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Progressing"))
        await controllers.caught_up()
        assert known_of(centre) == FormerRollout()
    await centre.wds.delete(ROLLOUT)
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(config("a"))
        await controllers.caught_up()
        assert not is_free(centre.relay)


def test_what_is_known_is_settled_by_what_the_ledger_has():
    former = FormerRollouts()
    former.deleted.add("shop")
    kept = former.settle("shop", RELEASED, is_steered=False, is_gated=True)
    assert kept == FormerRollout(deleted=True)
    assert former.lets_go("shop", RELEASED)
    assert former.settle("shop", RELEASED, is_steered=True, is_gated=True) == FormerRollout()
    kept = former.settle("shop", RELEASED, is_steered=False, is_gated=False)
    assert kept == FormerRollout(released=True)
    assert not former.lets_go("shop", RELEASED)
    # A placement that is not seen for a moment, and is in force, is no other one.
    kept = former.settle("shop", None, is_steered=False, is_gated=True)
    assert kept == FormerRollout(released=True)
    assert former.settle("shop", None, is_steered=False, is_gated=None) == FormerRollout()


def test_an_annotation_that_comes_again_counts_again():
    former = FormerRollouts()
    former.restore("shop", FormerRollout(deleted=True, released=True))
    assert former.deleted == former.released == {"shop"}
    former.put("shop", RELEASED)
    assert not former.lets_go("shop", RELEASED)
    former.put("shop", PLAIN)
    assert former.lets_go("shop", RELEASED)
