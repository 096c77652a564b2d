"""A wave of nobody is no canary: nothing passes it, unless a person says that it may be empty."""

import pytest

from controllers.core.rollout.empty_waves import EMPTY, empty_condition
from controllers.core.rollout.messages import with_message
from tests.unit.rollout_world import V1, V2, V3, Fleet, rollout

REST = {"name": "rest", "percent": 100}
SLIP = {"name": "canary", "selector": {"matchLabels": {"rign": "canary"}}, "soak": "30s"}
GOOD = {**SLIP, "selector": {"matchLabels": {"ring": "canary"}}}
SAID = (
    'wave "canary" admits nobody: no destination of the placement has rign=canary; correct the '
    "labels, or write allowEmpty: true on the wave"
)


def fleet_by(*waves, **how):
    fleet = Fleet(rollout(waves), **how)
    fleet.turn()
    return fleet


def told(fleet):
    state = with_message(fleet.spec, fleet.known(), fleet.state, "shop")
    return state.message, state.next


def conditions(fleet):
    return [it.message for it in empty_condition(fleet.spec, fleet.state, fleet.known())]


@pytest.mark.parametrize(
    ("whom", "said"),
    [
        (
            {"selector": {"matchLabels": {"rign": "a"}}},
            "no destination of the placement has rign=a",
        ),
        (
            {"selector": {"matchLabels": {"true": "a"}}},
            "no destination of the placement has true=a",
        ),
        (
            {"locationSelector": {"matchLabels": {"zone": "x"}}},
            "no destination of the placement is at a Location with zone=x",
        ),
        ({"perGroup": {"label": "tier"}}, "no destination of the placement has tier"),
        ({"selector": {"matchLabels": {"a": "b"}}, "percent": 10}, "has a=b"),
    ],
)
def test_a_wave_whose_labels_nobody_has_waits_for_a_person_and_says_so(whom, said):
    fleet = fleet_by({"name": "canary", **whom}, REST)
    assert fleet.want(V2).phase == "AwaitingApproval"
    fleet.turn(7 * 24 * 3600)
    assert fleet.having(V1) == set(fleet.labels)
    message, command = told(fleet)
    assert message.startswith('wave "canary')
    assert said in message
    assert "allowEmpty: true" in message
    assert command == f"leafcast rollout approve shop {fleet.state.wave_name}"
    [condition] = conditions(fleet)
    assert said in condition


def test_it_goes_on_by_approval_and_by_no_restart():
    fleet = fleet_by(SLIP, REST)
    fleet.want(V2)
    assert told(fleet)[0] == f"{SAID}, or approve it"
    fleet.restart()
    assert fleet.turn().phase == "AwaitingApproval"
    fleet.ask("approve", wave="canary")
    assert fleet.state.phase == "Complete"
    assert fleet.having(V2) == set(fleet.labels)


def test_what_may_be_empty_passes_also_if_it_is_said_meanwhile():
    fleet = fleet_by(SLIP, REST)
    fleet.want(V2)
    fleet.spec = rollout([{**SLIP, "allowEmpty": True}, REST]).spec
    assert fleet.turn().phase == "Complete"
    assert fleet.state.revision == 2
    assert conditions(fleet) == []


def test_once_someone_has_the_label_the_wave_is_as_any_other():
    fleet = fleet_by(SLIP, REST)
    fleet.want(V2)
    one = min(fleet.labels)
    fleet.labels[one] = {"rign": "canary"}
    assert fleet.turn().phase == "Soaking"
    assert fleet.having(V2) == {one}
    assert fleet.state.waves[0].reason == ""
    assert fleet.turn(31).phase == "Complete"


def test_a_wave_that_is_corrected_is_gone_through_from_its_beginning():
    fleet = fleet_by(SLIP, REST)
    fleet.want(V2)
    fleet.spec = rollout([GOOD, REST]).spec
    state = fleet.turn()
    assert (state.phase, state.revision, state.wave_name) == ("Soaking", 3, "canary")
    assert len(fleet.having(V2)) == 10
    assert conditions(fleet) == []
    assert fleet.turn(31).phase == "Complete"
    assert fleet.want(V3).phase == "Soaking"


def test_an_abort_takes_back_what_waits_with_nobody():
    fleet = fleet_by(SLIP, REST)
    fleet.want(V2)
    fleet.ask("abort")
    assert fleet.having(V1) == set(fleet.labels)
    assert fleet.state.phase == "Aborted"


def test_a_share_that_draws_nobody_is_no_canary_and_later_no_hindrance():
    # One in a hundred of ten: nobody, by this draw.
    few = {"name": "few", "percent": 1}
    fleet = fleet_by(few, REST, size=10, canaries=1)
    assert fleet.want(V2).phase == "AwaitingApproval"
    assert "1% draws none of 10 who could try it" in told(fleet)[0]
    assert conditions(fleet) == []
    fleet = fleet_by({**GOOD, "soak": "0s"}, few, REST, size=10, canaries=1)
    assert fleet.want(V2).phase == "Complete"


def test_who_never_joined_tries_nothing_for_others():
    fleet = fleet_by({**GOOD, "soak": "0s"}, {"name": "half", "percent": 50}, REST)
    for each, labels in fleet.labels.items():
        if labels["ring"] == "canary":
            fleet.states[each] = "never joined"
    assert fleet.want(V2).phase == "AwaitingApproval"
    said = "of 10 with ring=canary nobody has joined and is out of maintenance"
    assert said in told(fleet)[0]
    fleet.states.clear()
    assert fleet.turn().phase == "Complete"
    everyone = {"name": "all", "percent": 100}
    fleet = fleet_by(everyone, size=3, canaries=0)
    fleet.states = dict.fromkeys(fleet.labels, "never joined")
    assert fleet.want(V2).phase == "Complete"


def test_where_places_are_frozen_a_share_of_nobody_is_no_slip():
    fleet = fleet_by({"name": "half", "percent": 50}, REST)
    for path in ("/emea", "/apac"):
        fleet.ask("freeze", path=path)
    assert fleet.want(V2).phase == "Complete"


def test_a_wave_of_which_all_were_admitted_before_has_nothing_to_prove():
    all_of_them = {
        "name": "all",
        "selector": {"matchExpressions": [{"key": "ring", "operator": "Exists"}]},
    }
    fleet = fleet_by(all_of_them, {**GOOD, "soak": "1h"}, REST)
    assert fleet.want(V2).phase == "Complete"
    assert conditions(fleet) == []


def test_a_group_that_only_others_have_and_a_placement_of_nobody_hold_up_nothing():
    group = {"name": "by", "perGroup": {"label": "ring"}}
    fleet = Fleet(rollout([group, REST]))
    fleet.facts = {"label_values": lambda _label: ("canary", "main", "others")}
    fleet.turn()
    assert fleet.want(V2).phase == "Complete"
    fleet = fleet_by(SLIP, REST, size=0, canaries=0)
    assert fleet.want(V2).phase == "Complete"
    assert conditions(fleet) == []


def test_a_pin_of_a_place_that_is_gone_is_said():
    fleet = fleet_by(GOOD, REST)
    fleet.ask("pin", path="/emea", revision=1)
    assert conditions(fleet) == []
    fleet.facts = {"is_place": lambda _path: False}
    [condition] = empty_condition(fleet.spec, fleet.state, fleet.known())
    assert (condition.type, condition.message) == (EMPTY, "/emea pinned, and no node is there")
