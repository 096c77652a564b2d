"""A plan tells at each destination what something keeps back, and why, by what is there now."""

import pytest

from controllers.planning import make_plan
from leafcast.show.plans import PlanTable
from tests.unit.centre_world import SHOP, config, config_key, placement, target
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
from tests.unit.test_rollout_deleted import is_held, reasons

pytestmark = pytest.mark.leaps

A = config_key("a")
GATED = ({"name": "first", "selector": {"matchLabels": {"ring": "one"}}}, WAVES[1])


async def told(controllers, value=None):
    """What becomes of the ConfigMap where, if it is written with this value, or stays."""
    changes = {A: config("a", value=value)} if value else {}
    _, plan = await make_plan(controllers, changes, {}, [A])
    return {
        str(row.path): (row.action, row.why or ",".join(row.fields))
        for row in plan.rows()
        if row.key == A
    }


def actions(rows):
    return {path: action for path, (action, _) in rows.items()}


async def test_nothing_goes_out_of_what_a_deleted_rollout_left_frozen(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        await centre.wds.delete(ROLLOUT)
        await centre.until_status(SHOP, is_held)
        rows = await told(controllers)
        late = {path for path, action in actions(rows).items() if action == "held"}
        assert late
        assert all("RolloutDeleted" in rows[path][1] for path in late)
        assert all("leafcast rollout release epl/shop" in rows[path][1] for path in late)
        assert set(actions(await told(controllers, "3")).values()) == {"held"}
        trial, _ = await make_plan(controllers, {A: config("a", value="3")}, {}, [A])
        assert dict(trial.placements) == {"edgeplacement/shop": "held"}


async def test_a_paused_rollout_holds_what_would_go_out(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        assert set(actions(await told(controllers, "3")).values()) == {"update"}
        await centre.apply(asking(id="1", action="pause"))
        await centre.until_status(SHOP, lambda obj: reasons(obj) == ["RolloutPaused"])
        rows = await told(controllers, "3")
        assert set(actions(rows).values()) == {"held"}
        assert all("leafcast rollout resume shop" in why for _, why in rows.values())


async def test_who_has_the_newest_content_is_not_told_to_lack_it(tmp_path):
    centre = await world(tmp_path)
    await centre.inventory.apply(target("s0", "/s0", ring="one"), "user")
    waves = (GATED[0], {**WAVES[1], "approval": "before"})
    async with centre.running() as controllers:
        await steer(centre, waves)
        await centre.apply(config("a", value="2"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 2)
        await answer(centre)
        await centre.until_status(SHOP, lambda obj: reasons(obj) == ["AwaitingApproval"])
        rows = await told(controllers)
        assert actions(rows) == {"/s0": "none", "/s1": "held", "/s2": "held"}
        # Back to what the others have: only who is ahead gets another one.
        rows = await told(controllers, "1")
        assert actions(rows) == {"/s0": "update", "/s1": "none", "/s2": "none"}


async def test_a_frozen_place_keeps_a_change_from_who_is_there_alone(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await steer(centre)
        await centre.apply(asking(id="1", action="freeze", path="/s1"))
        await centre.until_status(ROLLOUT, lambda obj: obj["status"].get("freezes"))
        await controllers.caught_up()
        rows = await told(controllers, "2")
        assert actions(rows) == {"/s0": "update", "/s1": "held", "/s2": "update"}
        assert "leafcast rollout unfreeze shop --at /s1" in rows["/s1"][1]


async def test_what_only_waits_for_its_wave_is_told_to_be_on_its_way(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        rows = await told(controllers)
        assert set(actions(rows).values()) == {"none"}
        assert any("by the waves of rollout" in why for _, why in rows.values())


async def test_a_rollout_that_is_to_take_a_frozen_placement_up_holds_nothing(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        await centre.wds.delete(ROLLOUT)
        await centre.until_status(SHOP, is_held)
        changes = {ROLLOUT: rollout(), A: config("a", value="3")}
        _, plan = await make_plan(controllers, changes, {}, [A])
        assert {row.action for row in plan.rows() if row.key == A} == {"update"}
        await centre.apply(rollout())
        await centre.until_status(ROLLOUT, phase("Progressing"))


async def test_what_was_aborted_is_told_to_stay_back_whatever_else_is_written(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        await centre.apply(asking(id="1", action="abort"))
        await centre.until_status(ROLLOUT, phase("Aborted"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 1)
        await controllers.caught_up()
        await centre.until_status(SHOP, lambda obj: reasons(obj) == ["RolloutAborted"])
        rows = await told(controllers)
        assert set(actions(rows).values()) == {"held"}
        assert all("RolloutAborted" in why and "retry shop" in why for _, why in rows.values())
        changes = {config_key("b"): config("b")}
        _, plan = await make_plan(controllers, changes, {}, [A, config_key("b")])
        found = {(row.key.name, row.action) for row in plan.rows()}
        assert found == {("a", "held"), ("b", "create")}
        # Another change of the same object goes out.
        assert set(actions(await told(controllers, "9")).values()) == {"update"}


async def test_what_was_aborted_stays_back_when_nothing_steers_the_placement_any_more(tmp_path):
    centre = await world(tmp_path)
    async with centre.running() as controllers:
        await begin(centre)
        await centre.apply(asking(id="1", action="abort"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 1)
        await controllers.caught_up()
        await centre.wds.delete(ROLLOUT)
        await centre.relay.until(lambda relay: relay.delta("shop").rollout_since == 0)
        await controllers.caught_up()
        rows = await told(controllers)
        assert set(actions(rows).values()) == {"held"}
        assert all("leafcast rollout release epl/shop" in why for _, why in rows.values())


async def test_who_waits_for_a_window_is_told_until_when(tmp_path):
    centre = await world(tmp_path)
    windows = [{"cron": "0 3 1 1 *", "duration": "1h", "zone": "Europe/Berlin"}]
    async with centre.running() as controllers:
        await steer(centre)
        await centre.apply(rollout(windows=windows))
        await controllers.caught_up()
        rows = await told(controllers, "2")
        assert set(actions(rows).values()) == {"held"}
        assert all(
            "WaitingForWindow" in why and "-01-01T02:00:00Z" in why for _, why in rows.values()
        )
        await centre.apply(config("a", value="2"))
        await centre.relay.until(lambda relay: len(gates(relay)) == 2)
        await controllers.caught_up()
        rows = await told(controllers)
        assert {action for action, _ in rows.values()} <= {"held", "none"}
        waits = [why for action, why in rows.values() if action == "held"]
        turn = [why for action, why in rows.values() if action == "none"]
        assert all("WaitingForWindow" in why for why in waits)
        assert all("by the waves" in why for why in turn)


async def test_an_object_that_cannot_go_out_is_told_to_stay_as_it_is(tmp_path):
    centre = await world(tmp_path)
    bad = config("a", value="2")
    bad["metadata"]["annotations"] = {"edge.kubestellar.io/downsync-overwrite": "maybe"}
    async with centre.running() as controllers:
        await centre.apply(config("a"), placement())
        await centre.relay.until(lambda relay: relay.delta("shop"))
        _, plan = await make_plan(controllers, {A: bad}, {}, [A])
        planned = {(row.action, row.why.partition(":")[0]) for row in plan.rows()}
        await centre.apply(bad)
        await centre.until_status(SHOP, lambda obj: reasons(obj) == ["ObjectsRefused"])
        rows = await told(controllers)
        assert planned == {("held", "ObjectsRefused")}
        assert {(it, why.partition(":")[0]) for it, why in rows.values()} == planned


def test_what_keeps_back_many_copies_is_told_in_full_once():
    why = "RolloutPaused: a person paused it; leafcast rollout resume shop"
    row = {"action": "held", "fields": [], "live": "", "why": why}
    rows = [
        {**row, "destination": f"/s{at}", "key": ("apps", "deployments", "shop", "web")}
        for at in range(3)
    ]
    table = PlanTable()
    first, second, third = (line for line in table.lines(rows)[1:])
    assert first.endswith(f"held     {why}")
    assert second.endswith("held     RolloutPaused, as above")
    assert third.endswith("held     RolloutPaused, as above")
    assert "as above" in table.lines(rows)[0]


def test_what_is_alike_at_several_destinations_is_one_row_unless_all_are_asked_for():
    row = {"action": "update", "why": "", "fields": ["data.a"], "key": ("", "configmaps", "a", "b")}
    rows = [{**row, "destination": f"/s{at}"} for at in range(3)]
    rows.insert(1, {**row, "destination": "/s9", "fields": ["data.b"]})
    shown = [" ".join(line.split()) for line in PlanTable(groups=True).lines(rows)[1:]]
    assert shown == [
        "/s0 and 2 more a/configmaps/b update data.a",
        "/s9 a/configmaps/b update data.b",
    ]
    assert len(PlanTable().lines(rows)) == 5
