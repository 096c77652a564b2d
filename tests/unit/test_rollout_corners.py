"""What a rollout does where waves are of nobody, windows close, and people change their minds."""

import pytest

from controllers.core.rollout.layers import FREEZES_MAX, PINS_MAX
from controllers.core.rollout.messages import with_message
from tests.unit.rollout_world import V1, V2, V3, V4, V5, V6, Fleet, rollout

DAY = 24 * 3600
# The fleet's clock starts at 22:13:20.
OPEN_NOW = {"cron": "0 22 * * *", "duration": "30m", "zone": "UTC"}


def test_a_group_of_a_label_that_nobody_has_is_a_wave_of_nobody():
    group = {"name": "by", "perGroup": {"label": "tier"}, "allowEmpty": True}
    fleet = Fleet(rollout([group]))
    fleet.turn()
    state = fleet.want(V2)
    assert [(wave.name, wave.gate, wave.members) for wave in state.waves] == [("by", "tier", 0)]
    assert (state.phase, state.ungrouped) == ("Partial", 0)
    fleet.spec = rollout([group, {"name": "rest", "percent": 100}]).spec
    assert fleet.want(V3).phase == "Complete"
    assert fleet.having(V3) == set(fleet.labels)


def test_who_has_a_superseded_content_keeps_it_while_its_window_is_closed():
    waves = (
        {"name": "a", "percent": 50, "approval": "after"},
        {"name": "b", "percent": 100},
    )
    fleet = Fleet(rollout(waves, windows=[OPEN_NOW]))
    fleet.turn()
    fleet.want(V2)
    had = fleet.having(V2)
    assert 30 < len(had) < 70
    fleet.turn(3600)
    assert fleet.having(V2) == had
    state = fleet.want(V3)
    assert (fleet.having(V2), fleet.having(V3)) == (had, set())
    assert state.waves[0].waiting == len(had)
    fleet.turn(DAY - 3600)
    assert fleet.having(V3) == had


def test_who_waits_for_a_window_is_not_let_in_by_the_next_revision():
    fleet = Fleet(rollout([{"name": "all", "percent": 100}], windows=[OPEN_NOW]))
    fleet.turn(3600)
    fleet.want(V2)
    fleet.ask("promote", all=True)
    assert fleet.state.phase == "Complete"
    fleet.want(V3)
    assert fleet.having(V1) == set(fleet.labels)


def test_revisions_by_windows_do_not_pile_up():
    fleet = Fleet(rollout([{"name": "all", "percent": 100}], windows=[OPEN_NOW]))
    fleet.turn()
    for arm in (V2, V3, V4, V5, V6):
        assert fleet.want(arm).phase == "Complete"
        assert fleet.having(arm) == set(fleet.labels)
    assert len({gate.arm for gate in fleet.gates}) == 2


def test_what_a_rate_makes_a_wave_wait_is_not_part_of_its_deadline():
    waves = ({"name": "all", "percent": 100, "rate": {"perMinute": 10}, "deadline": "5m"},)
    fleet = Fleet(rollout(waves))
    fleet.facts = {"members": lambda _wave: 100}
    fleet.turn()
    fleet.want(V2)
    for _ in range(8):
        fleet.turn(60)
    fleet.exact = False
    fleet.turn(60)
    fleet.health = dict.fromkeys(fleet.labels, "progressing")
    fleet.exact = True
    assert fleet.turn(239).phase == "Progressing"
    assert fleet.turn(1).phase == "Paused"
    fleet.health.clear()
    # It goes on at its step: nobody waits again for the minutes before that.
    assert fleet.ask("resume").outcome == "Done"
    assert fleet.turn(60).phase == "Complete"


def test_a_selector_that_requires_nothing_is_for_everyone():
    fleet = Fleet(rollout([{"name": "all", "selector": {}}]))
    fleet.turn()
    assert fleet.want(V2).phase == "Complete"
    fleet.want(V3)
    assert len(fleet.gates) == 1


def test_a_content_that_waits_for_room_is_not_waited_for_any_more_when_it_is_taken_back():
    waves = [({"name": "a", "selector": {"matchLabels": {"g": str(number)}}},) for number in "123"]
    fleet = Fleet()
    fleet.turn()
    for each, arm in zip(waves, (V2, V3, V4), strict=True):
        fleet.spec = rollout([{**each[0], "approval": "after"}]).spec
        fleet.want(arm)
    assert fleet.want(V5).waiting_for
    assert not fleet.want(V4).waiting_for


def test_after_an_abort_the_former_content_is_no_change():
    fleet = Fleet(rollout([{"name": "a", "percent": 50, "approval": "after"}]))
    fleet.turn()
    fleet.want(V2)
    fleet.ask("abort")
    deltas = len(fleet.deltas)
    state = fleet.want(V1)
    assert (state.phase, state.revision) == ("Complete", 1)
    assert len(fleet.deltas) == deltas
    assert fleet.want(V3).revision == 3


def test_an_abort_goes_back_to_what_proved_good_and_not_to_what_was_superseded_on_its_way():
    waves = ({"name": "a", "percent": 50}, {"name": "b", "percent": 100, "approval": "before"})
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.want(V2)
    fleet.want(V3)
    fleet.ask("abort")
    assert fleet.having(V1) == set(fleet.labels)
    assert fleet.want(V2).phase == "AwaitingApproval"
    assert 30 < len(fleet.having(V2)) < 70
    fleet.ask("approve")
    assert (fleet.state.phase, fleet.having(V2)) == ("Complete", set(fleet.labels))


def test_what_fails_after_an_undo_to_everyone_at_once_is_late():
    fleet = Fleet()
    fleet.turn()
    fleet.want(V2)
    fleet.ask("undo", now=True)
    assert fleet.having(V1) == set(fleet.labels)
    assert [(wave.name, wave.members) for wave in fleet.state.waves] == [("all", 100)]
    fleet.health = dict.fromkeys(sorted(fleet.labels)[:3], "degraded")
    assert fleet.turn().late == 3
    # Nor does a centre that lost the status go through waves again.
    fleet.health.clear()
    fleet.want(V1)
    deltas = len(fleet.deltas)
    fleet.restart(status=False)
    state = fleet.turn()
    assert (state.phase, state.revision, len(fleet.deltas)) == ("Complete", 3, deltas)


def test_a_rollout_with_other_waves_does_not_take_open_gates_for_its_own():
    waves = (
        {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}},
        {"name": "b", "percent": 100, "approval": "before"},
    )
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.want(V2)
    had = fleet.having(V2)
    # It is deleted, and another one comes.
    fleet.restart(status=False)
    others = ({"name": "tenth", "percent": 10}, *waves[1:])
    fleet.spec = rollout(others).spec
    fleet.exact = False
    state = fleet.turn()
    assert (state.wave_name, state.revision) == ("tenth", 3)
    assert had < fleet.having(V2)
    assert len(fleet.having(V2)) < 40
    fleet.exact = True
    assert fleet.turn().phase == "AwaitingApproval"
    fleet.ask("approve")
    assert (fleet.state.phase, fleet.having(V2)) == ("Complete", set(fleet.labels))


def test_what_was_given_up_says_why_and_keeps_its_counts():
    fleet = Fleet(rollout(failures={"maximum": 0}, onFailure="abort"))
    fleet.turn()
    fleet.broken = {V2}
    state = fleet.want(V2)
    assert (state.phase, fleet.having(V2)) == ("Aborted", set())
    assert (state.waves[0].members, state.waves[0].failing) == (10, 10)
    said = with_message(fleet.spec, fleet.known(), state, "shop").message
    assert said == 'revision 2 is aborted: wave "canary" failed: 10 of 10 fail, at most 0 may'


def test_the_history_is_as_long_as_asked_and_holds_all_that_is_in_use():
    fleet = Fleet(rollout(history=2))
    fleet.turn()
    fleet.ask("pin", path="/emea/s1", revision=1)
    for arm in (V2, V3, V4, V5):
        fleet.want(arm)
    assert [item.number for item in fleet.state.history] == [1, 3, 4, 5]
    before = fleet.gates
    refused = fleet.ask("undo", revision=2)
    assert refused.outcome == "Refused"
    assert refused.message == "revision 2 is not kept; kept are 1, 3, 4, 5"
    assert fleet.gates == before
    fleet.ask("unpin", path="/emea/s1")
    assert [item.number for item in fleet.state.history] == [3, 4, 5]


@pytest.mark.parametrize(
    ("action", "fields", "most"), [("pin", {"revision": 1}, PINS_MAX), ("freeze", {}, FREEZES_MAX)]
)
def test_pins_and_freezes_have_a_bound(action, fields, most):
    fleet = Fleet(size=2)
    fleet.turn()
    for number in range(most):
        assert fleet.ask(action, path=f"/p{number}", **fields).outcome == "Done"
    before = fleet.gates
    refused = fleet.ask(action, path="/one-more", **fields)
    assert refused.message.startswith(f"{most} {action}s at most; un{action} another place first")
    assert (refused.outcome, fleet.gates) == ("Refused", before)
    fleet.ask(f"un{action}", path="/p0")
    assert fleet.ask(action, path="/one-more", **fields).outcome == "Done"


def test_without_exact_counts_no_deadline_is_judged_and_nobody_looks_again_and_again():
    fleet = Fleet(rollout(deadline="1m"))
    fleet.turn()
    fleet.exact = False
    fleet.want(V2)
    fleet.turn(120)
    assert (fleet.state.phase, fleet.wake) == ("Progressing", None)
    fleet.exact = True
    fleet.states = dict.fromkeys(fleet.labels, "pending")
    fleet.turn()
    assert fleet.state.waves[0].reason == "it was not good within 1m"


def test_an_abort_goes_back_to_a_complete_revision_for_whose_window_some_wait():
    windows = [{"cron": "0 2 * * *", "duration": "1h", "zone": "destination"}]
    fleet = Fleet(rollout([{"name": "all", "percent": 100, "windows": windows}]))
    fleet.turn()
    fleet.want(V2)
    fleet.state = fleet.state.model_copy(update={"phase": "Complete"})
    [*older, newest] = fleet.state.history
    ended = newest.model_copy(update={"outcome": "Complete"})
    fleet.state = fleet.state.model_copy(update={"history": (*older, ended)})
    fleet.want(V3)
    fleet.ask("abort")
    assert [layer.manifest for layer in fleet.state.layers] == [V2.address, V1.address]
    assert (fleet.state.wish, fleet.state.target) == (V3.address, V2.address)
