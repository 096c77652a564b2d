"""A rollout goes on only after exact counts of what is open now were good, and never back."""

import pytest

from controllers.core.rollout.messages import conditions
from schemas.reports.reports import ExceptionSample
from tests.unit.rollout_world import V1, V2, V3, V4, V5, WAVES, Fleet, rollout


def test_a_finished_placement_is_taken_over_as_revision_one():
    fleet = Fleet()
    state = fleet.turn()
    assert (state.phase, state.revision) == ("Complete", 1)
    assert fleet.deltas == []


def test_a_new_content_goes_out_wave_by_wave():
    fleet = Fleet()
    fleet.exact = True
    fleet.turn()
    fleet.exact = False
    state = fleet.want(V2)
    assert (state.revision, state.over_revision, state.wave_name) == (2, 1, "canary")
    assert len(fleet.having(V2)) == 10
    fleet.exact = True
    state = fleet.turn()
    assert (state.phase, state.wave) == ("Complete", 3)
    assert len(fleet.having(V2)) == 100
    assert len(fleet.deltas) == 3
    assert [wave.phase for wave in state.waves] == ["Done"] * 3
    assert [item.outcome for item in state.history] == ["Complete", "Complete"]


def test_inexact_counts_open_nothing():
    fleet = Fleet()
    fleet.turn()
    fleet.exact = False
    fleet.want(V2)
    fleet.turn(1e6)
    assert len(fleet.having(V2)) == 10


def test_a_soak_is_unbroken_and_counts_no_downtime_and_no_inexact_time():
    waves = ({"name": "a", "percent": 10, "soak": "100s"}, {"name": "b", "percent": 100})
    fleet = Fleet(rollout(waves))
    fleet.turn()
    assert fleet.want(V2).phase == "Soaking"
    assert fleet.wake == 100
    fleet.turn(60)
    fleet.exact = False
    fleet.turn(0)
    fleet.turn(1000)
    fleet.exact = True
    assert fleet.turn().waves[0].soaked == 60
    fleet.restart()
    fleet.turn()
    assert fleet.turn(20).wave == 1
    someone = next(iter(fleet.having(V2)))
    fleet.states[someone] = "pending"
    assert fleet.turn(1).waves[0].soaked == 0
    fleet.states.clear()
    fleet.turn(0)
    assert fleet.turn(99).wave == 1
    assert fleet.turn(1).phase == "Complete"


def test_failures_over_the_maximum_stop_it_and_resume_and_abort_go_on():
    fleet = Fleet()
    fleet.turn()
    fleet.broken = {V2}
    state = fleet.want(V2)
    assert (state.phase, state.waves[0].phase) == ("Paused", "Failed")
    assert fleet.having(V2) == {
        each for each, has in fleet.labels.items() if has["ring"] == "canary"
    }
    assert fleet.ask("resume").outcome == "Done"
    assert fleet.state.phase == "Paused"
    assert fleet.ask("abort").outcome == "Done"
    assert fleet.state.phase == "Aborted"
    assert not fleet.having(V2)
    assert fleet.turn(1000).phase == "Aborted"
    assert fleet.want(V3).phase == "Complete"


def test_on_failure_abort_gives_back_the_former_content():
    fleet = Fleet(rollout(onFailure="abort"))
    fleet.turn()
    fleet.broken = {V2}
    assert fleet.want(V2).phase == "Aborted"
    assert fleet.having(V1) == set(fleet.labels)


@pytest.mark.parametrize("newer", [True, False])
def test_nothing_is_opened_or_aborted_over_what_nodes_have_newer(newer):
    """As after a restore: a person decides which one counts; and that time is nobody's fault."""
    fleet = Fleet(rollout(onFailure="abort", deadline="1m"))
    fleet.turn()
    fleet.states = dict.fromkeys(fleet.labels, "pending")
    fleet.want(V2)
    reason = "Orphaned: a newer version is here" if newer else "Withheld: it is missing"
    fleet.exceptions = (ExceptionSample(1, "", reason, 1, "/emea"),)
    fleet.turn(1)
    assert fleet.turn(10_000).phase == ("Progressing" if newer else "Aborted")
    fleet.exceptions = ()
    if newer:
        assert fleet.turn().phase == "Progressing"
        fleet.states = {}
        assert fleet.turn().phase == "Complete"


def test_abort_keep_leaves_the_content_where_it_is():
    waves = ({"name": "a", "percent": 20, "approval": "after"}, {"name": "b", "percent": 100})
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.want(V2)
    had = fleet.having(V2)
    fleet.ask("abort", keep=True)
    assert fleet.having(V2) == had
    fleet.want(V3)
    assert fleet.having(V2) == set()  # the same ones get V3 first


def test_approval_is_waited_for_before_and_after():
    waves = (
        {"name": "a", "percent": 10, "approval": "after"},
        {"name": "b", "percent": 100, "approval": "before"},
    )
    fleet = Fleet(rollout(waves))
    fleet.turn()
    assert fleet.want(V2).phase == "AwaitingApproval"
    refused = fleet.ask("approve", wave="b")
    assert refused.outcome == "Refused"
    assert fleet.ask("approve", wave="a").outcome == "Done"
    assert (fleet.state.phase, fleet.state.wave) == ("AwaitingApproval", 2)
    assert len(fleet.having(V2)) < 30
    fleet.ask("approve", wave="b")
    assert fleet.state.phase == "Complete"
    assert fleet.ask("pause").outcome == "Refused"


def test_unreachable_members_are_outside_the_share_and_no_success():
    waves = ({"name": "a", "percent": 10}, {"name": "b", "percent": 100})
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.exact = False
    fleet.want(V2)
    members = sorted(fleet.having(V2))
    fleet.exact = True
    for each in members:
        fleet.states[each] = "unreachable"
    assert fleet.turn().wave == 1
    for each in members[1:]:
        del fleet.states[each]
    assert fleet.turn().wave == 2


def test_a_new_content_supersedes_from_the_first_wave_and_the_abandoned_stays_till_then():
    waves = (
        {"name": "a", "percent": 10},
        {"name": "b", "percent": 50, "approval": "after"},
        {"name": "c", "percent": 100},
    )
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.want(V2)
    half = fleet.having(V2)
    fleet.exact = False
    state = fleet.want(V3)
    assert state.revision == 3
    first = fleet.having(V3)
    assert first < half
    assert fleet.having(V2) == half - first
    assert [item.outcome for item in state.history] == ["Complete", "Superseded", ""]


def test_four_contents_are_out_at_most_and_what_is_newer_waits():
    waves = ({"name": "a", "percent": 50, "approval": "after"}, {"name": "b", "percent": 100})
    fleet = Fleet(rollout(waves))
    fleet.turn()
    for number, arm in enumerate((V2, V3, V4)):
        # Others each time, so that nobody takes the one content over from the other.
        waves = (
            {"name": "a", "selector": {"matchLabels": {"g": str(number)}}, "approval": "after"},
        )
        fleet.spec = rollout(waves).spec
        fleet.want(arm)
    assert len({gate.arm for gate in fleet.gates}) == 4
    state = fleet.want(V5)
    assert (state.revision, bool(state.waiting_for)) == (4, True)
    fleet.ask("abort")
    assert fleet.state.revision == 5


def test_a_step_is_taken_when_those_before_are_done():
    waves = ({"name": "a", "percent": 100, "maxConcurrent": "25%"},)
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.exact = False
    fleet.want(V2)
    assert 10 <= len(fleet.having(V2)) <= 40
    fleet.exact = True
    fleet.decide()
    fleet.issue()
    fleet.exact = False
    assert 35 <= len(fleet.having(V2)) <= 65
    fleet.exact = True
    assert fleet.turn().phase == "Complete"
    assert len(fleet.deltas) == 4


def test_a_rate_takes_a_step_each_minute():
    waves = ({"name": "a", "percent": 100, "rate": {"base": 10, "factor": 2}},)
    fleet = Fleet(rollout(waves))
    fleet.facts = {"members": lambda _wave: 100}
    fleet.turn()
    fleet.want(V2)
    shares = [len(fleet.having(V2))]
    while fleet.state.phase != "Complete":
        assert fleet.wake is not None
        fleet.turn(fleet.wake)
        shares.append(len(fleet.having(V2)))
    assert len(fleet.deltas) == 4
    assert shares == sorted(shares)
    assert [step.below for step in fleet.state.waves[0].steps] == [1000, 3000, 7000, 10000]


def test_a_deadline_stops_a_wave_that_does_not_become_good():
    fleet = Fleet(rollout(deadline="10m"))
    fleet.turn()
    for each, has in fleet.labels.items():
        if has["ring"] == "canary":
            fleet.health[each] = "progressing"
    fleet.want(V2)
    assert fleet.wake == 600
    assert fleet.turn(599).phase == "Progressing"
    assert fleet.turn(1).phase == "Paused"
    fleet.health.clear()
    fleet.ask("resume")
    assert fleet.state.phase == "Complete"


def test_promote_skips_the_wave_and_all_the_waves():
    fleet = Fleet()
    fleet.turn()
    fleet.broken = {V2}
    fleet.want(V2)
    fleet.exact = False
    fleet.ask("promote")
    assert fleet.state.wave == 2
    fleet.ask("promote", all=True)
    assert fleet.state.phase == "Complete"
    assert fleet.having(V2) == set(fleet.labels)
    assert fleet.state.history[-1].outcome == "Promoted"


def test_promote_all_gives_what_is_partial_to_whom_its_waves_left_out():
    fleet = Fleet(rollout(WAVES[:2]))
    fleet.turn()
    fleet.want(V2)
    assert fleet.state.phase == "Partial"
    fleet.ask("promote")
    assert fleet.state.request.outcome == "Refused"
    assert "promote --all gives it to everyone" in fleet.state.request.message
    fleet.ask("promote", all=True)
    assert fleet.state.phase == "Complete"
    assert fleet.having(V2) == set(fleet.labels)
    assert fleet.state.history[-1].outcome == "Promoted"
    # What comes next goes by the waves again.
    fleet.want(V3)
    assert fleet.state.phase == "Partial"
    assert fleet.having(V2)


def test_undo_goes_through_the_waves_or_now():
    fleet = Fleet()
    fleet.turn()
    fleet.want(V2)
    fleet.exact = False
    fleet.ask("undo")
    assert fleet.state.revision == 3
    assert len(fleet.having(V1)) == 10
    fleet.exact = True
    assert fleet.turn().phase == "Complete"
    assert fleet.having(V1) == set(fleet.labels)
    fleet.ask("undo", revision=2, now=True)
    assert fleet.having(V2) == set(fleet.labels)
    assert fleet.ask("undo", revision=99).outcome == "Refused"
    fleet.facts = {"lacks": lambda _arm: True}
    assert fleet.ask("undo").outcome == "Refused"
    assert fleet.having(V2) == set(fleet.labels)


def test_pins_and_freezes_hold():
    fleet = Fleet()
    fleet.turn()
    fleet.want(V2)
    fleet.ask("pin", path="/emea/s1", revision=1)
    assert len(fleet.having(V1)) == 1
    fleet.ask("freeze", path="/emea")
    fleet.want(V3)
    assert fleet.state.phase == "Complete"
    assert {fleet.paths[each].names[0] for each in fleet.having(V3)} == {"apac"}
    assert len(fleet.having(V1)) == 1
    fleet.ask("unfreeze", path="/emea")
    fleet.ask("unpin", path="/emea/s1")
    assert fleet.having(V3) == set(fleet.labels)


def test_to_freeze_a_place_in_a_frozen_one_lets_nothing_new_in():
    fleet = Fleet()
    fleet.turn()
    fleet.ask("freeze", path="/emea")
    fleet.want(V2)
    assert fleet.ask("freeze", path="/emea/s1").outcome == "Done"
    assert {fleet.paths[each].names[0] for each in fleet.having(V2)} == {"apac"}
    fleet.ask("unfreeze", path="/emea")
    assert len(fleet.having(V1)) == 1


def test_a_wave_that_comes_to_fail_while_the_next_waits_for_approval_opens_nothing():
    waves = ({"name": "a", "percent": 10}, {"name": "b", "percent": 100, "approval": "before"})
    fleet = Fleet(rollout(waves))
    fleet.turn()
    assert fleet.want(V2).phase == "AwaitingApproval"
    canary = fleet.having(V2)
    fleet.exact = False
    fleet.ask("approve")
    assert (fleet.state.phase, fleet.having(V2)) == ("Progressing", canary)
    fleet.exact, fleet.broken = True, {V2}
    assert (fleet.turn().phase, fleet.state.wave_name) == ("Paused", "a")
    assert fleet.having(V2) == canary
    fleet.broken = set()
    fleet.ask("resume")
    assert fleet.state.phase == "Complete"
    assert fleet.having(V2) == set(fleet.labels)


def test_a_lost_status_goes_on_from_the_ledger():
    waves = tuple({"name": f"w{n}", "percent": n, "approval": "after"} for n in (10, 50, 100))
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.want(V2)
    fleet.ask("approve")
    had, gates = fleet.having(V2), fleet.gates
    assert fleet.state.wave == 2
    fleet.restart(status=False)
    fleet.turn()
    assert (fleet.state.wave, fleet.state.revision, fleet.having(V2)) == (2, 2, had)
    assert fleet.gates == gates


def test_a_lost_ledger_goes_on_from_the_status():
    waves = tuple({"name": f"w{n}", "percent": n, "approval": "after"} for n in (10, 50, 100))
    fleet = Fleet(rollout(waves))
    fleet.turn()
    fleet.want(V2)
    gates = fleet.gates
    fleet.restart(ledger=False)
    fleet.turn()
    assert fleet.gates == gates


def test_with_status_and_ledger_lost_nothing_opens_until_a_person_says_so():
    fleet = Fleet()
    fleet.turn()
    fleet.want(V2)
    fleet.request = '{"id": "old", "action": "resume"}'
    fleet.restart(status=False, ledger=False)
    fleet.facts = {"is_lost": True}
    assert fleet.turn().phase == "Held"
    assert fleet.gates is None
    assert fleet.state.request.outcome == "Ignored"
    fleet.ask("resume")
    assert fleet.having(V2) == set(fleet.labels)


def test_a_new_placement_goes_by_waves_over_nothing():
    fleet = Fleet(before=None)
    fleet.exact = False
    state = fleet.turn()
    assert state.phase == "Waiting"
    state = fleet.want(V1)
    assert (state.revision, len(fleet.having(V1)), len(fleet.having(None))) == (1, 10, 90)
    fleet.exact = True
    assert fleet.turn().phase == "Complete"


def test_a_last_wave_below_all_ends_partial():
    waves = ({"name": "a", "percent": 10},)
    fleet = Fleet(rollout(waves))
    fleet.turn()
    assert fleet.want(V2).phase == "Partial"
    few = fleet.having(V2)
    assert 3 < len(few) < 20
    assert fleet.want(V3).phase == "Partial"
    assert fleet.having(V3) == few
    assert len({gate.arm for gate in fleet.gates}) == 2
    left = len(fleet.labels) - len(few)
    [told] = [it for it in conditions(fleet.told()) if it.type == "Partial"]
    assert told.message == (
        f"revision 3 is partial: its waves leave {left} destinations out, which keep what they have"
    )
    fleet.exact = False
    assert "its waves leave some destinations out" in fleet.told().message


def test_a_wave_of_nobody_passes_if_it_may():
    nobody = {"selector": {"matchLabels": {"ring": "x"}}, "allowEmpty": True}
    waves = (
        {"name": "none", **nobody, "soak": "1h"},
        {"name": "rest", "percent": 100},
    )
    fleet = Fleet(rollout(waves))
    fleet.turn()
    state = fleet.want(V2)
    assert state.phase == "Complete"
    assert state.waves[0].members == 0


def test_groups_are_waves_in_order_and_too_many_go_together():
    waves = ({"name": "by", "perGroup": {"label": "ring"}}, {"name": "rest", "percent": 100})
    fleet = Fleet(rollout(waves))
    fleet.facts = {"label_values": lambda _label: ("canary", "main")}
    fleet.turn()
    state = fleet.want(V2)
    assert [wave.name for wave in state.waves] == ["by-canary", "by-main", "rest"]
    fleet.facts = {"label_values": lambda _label: tuple(f"r{n:02}" for n in range(30))}
    state = fleet.want(V3)
    assert len(state.waves) == 20
    assert state.ungrouped == 11
    fleet.facts = {"label_values": lambda _label: ("a.b", "a_b")}
    assert [wave.name for wave in fleet.want(V4).waves] == ["by-a-b", "by-a-b-2", "rest"]


def test_a_rollout_that_is_blocked_waits_and_says_so():
    fleet = Fleet()
    fleet.turn()
    fleet.facts = {"blocked": lambda: 'rollout "other" has objects of it'}
    state = fleet.want(V2)
    assert (state.phase, state.waiting_for) == ("Waiting", 'rollout "other" has objects of it')
    fleet.facts = {}
    assert fleet.turn().phase == "Complete"


@pytest.mark.parametrize("fields", [{}, {"path": "emea"}, {"path": "/x", "revision": 9}])
def test_a_pin_that_means_nothing_is_refused(fields):
    fleet = Fleet()
    fleet.turn()
    assert fleet.ask("pin", **fields).outcome == "Refused"
    assert fleet.ask("fly").outcome == "Refused"
