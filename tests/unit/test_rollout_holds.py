"""What a Rollout keeps back is counted exactly, and who needs a person for it says so."""

import pytest

from controllers.core.rollout.state import target_of
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.holds import holds
from controllers.core.status.rollout_holds import Steered, kept
from controllers.core.status.status import placement_status
from schemas.records.hold_reasons import ENDS_BY_ITSELF
from schemas.reports.reports import Count
from schemas.values.wire import replace
from tests.unit.rollout_world import V2, V3, WAVES, Fleet, rollout

GATED = ({**WAVES[0], "approval": "before"}, *WAVES[1:])
NOW_MS = 1_800_000_000_000


def steered(fleet, **known):
    places = {
        path: sum(path.holds(at) for at in fleet.paths.values())
        for path in {gate.path for gate in fleet.gates}
        if not path.is_root
    }
    said = {"rollout": "shop", "state": fleet.state, "places": places, **known}
    if fleet.state.wish:
        said |= {"target": target_of(fleet.state), "rejected": fleet.state.rejected}
    return Steered("shop", fleet.gates, fleet.target, **said)


def counted(fleet):
    count = fleet.count()
    waiting = sum(n for text, n in count.summary.cells.items() if "/waiting/" in text)
    states = {"synced": len(fleet.labels) - waiting, "waiting": waiting}
    healthy = {"healthy": len(fleet.labels)}
    return Count(replace(count.summary, states=states, health=healthy), count.exact)


def found(fleet, **known):
    facts = PlacementFacts(1, 1, name="shop", selected=1, steered=steered(fleet, **known))
    return holds(facts, counted(fleet))


def synced(fleet):
    facts = PlacementFacts(1, 1, name="shop", selected=1, steered=steered(fleet))
    said = placement_status(facts, counted(fleet), None, NOW_MS)
    return {it["type"]: (it["status"], it["reason"]) for it in said["conditions"]}


def lacking(fleet):
    """How many destinations really have another content than the newest."""
    return len(fleet.labels) - len(fleet.having(fleet.target))


def failed():
    fleet = Fleet()
    fleet.turn()
    fleet.broken = {V2}
    fleet.want(V2)
    return fleet


def paused():
    fleet = Fleet(rollout(GATED))
    fleet.turn()
    fleet.want(V2)
    fleet.ask("pause")
    return fleet


def awaiting():
    fleet = Fleet(rollout(GATED))
    fleet.turn()
    fleet.want(V2)
    return fleet


def aborted():
    fleet = failed()
    fleet.ask("abort")
    return fleet


def undone():
    fleet = Fleet()
    fleet.turn()
    fleet.want(V2)
    fleet.ask("undo", revision=1, now=True)
    return fleet


def partial():
    fleet = Fleet(rollout(WAVES[:2]))
    fleet.turn()
    fleet.want(V2)
    return fleet


def pinned():
    fleet = Fleet()
    fleet.turn()
    fleet.ask("pin", path="/emea", revision=1)
    fleet.want(V2)
    return fleet


def frozen():
    fleet = Fleet()
    fleet.turn()
    fleet.ask("freeze", path="/apac/s0")
    fleet.want(V2)
    return fleet


HELD = {
    "WaveFailed": (failed, "leafcast rollout abort shop"),
    "RolloutPaused": (paused, "leafcast rollout resume shop"),
    "AwaitingApproval": (awaiting, "leafcast rollout approve shop canary"),
    "RolloutAborted": (aborted, "leafcast rollout "),
    "Undone": (undone, "leafcast rollout "),
    "RolloutPartial": (partial, "leafcast rollout "),
    "Pinned": (pinned, "leafcast rollout unpin shop --at /emea"),
    "PlaceFrozen": (frozen, "leafcast rollout unfreeze shop --at /apac/s0"),
}


@pytest.mark.parametrize("reason", HELD)
def test_who_is_kept_from_the_newest_content_is_counted_exactly(reason):
    made, remedy = HELD[reason]
    fleet = made()
    [hold] = found(fleet)
    assert (hold.reason, hold.destinations) == (reason, lacking(fleet))
    assert hold.destinations
    assert hold.remedy.startswith(remedy)
    assert reason not in ENDS_BY_ITSELF


@pytest.mark.parametrize("reason", HELD)
def test_what_a_rollout_keeps_back_is_neither_synced_nor_healthy(reason):
    said = synced(HELD[reason][0]())
    assert said["Synced"] == said["Healthy"] == said["Ready"] == ("False", reason)
    assert said["Stalled"] == ("True", reason)


@pytest.mark.parametrize("reason", HELD)
def test_without_exact_counts_nobody_guesses_who_lacks_it(reason):
    fleet = HELD[reason][0]()
    fleet.exact = False
    [hold] = found(fleet)
    assert hold.reason == reason
    at_places = reason in ("Pinned", "PlaceFrozen")
    assert hold.destinations == (lacking(fleet) if at_places else None)


def test_a_rollout_that_goes_on_by_its_waves_holds_nothing_and_is_not_synced_either():
    fleet = Fleet(rollout(({**WAVES[0], "soak": "1h"}, *WAVES[1:])))
    fleet.turn()
    assert synced(fleet)["Synced"] == ("True", "Synced")
    fleet.want(V2)
    assert fleet.state.phase == "Soaking"
    assert found(fleet) == ()
    assert synced(fleet)["Synced"] == synced(fleet)["Healthy"] == ("False", "RollingOut")
    assert synced(fleet)["Ready"] == ("False", "RollingOut")
    assert synced(fleet)["Reconciling"] == ("True", "RollingOut")
    assert kept(steered(fleet), counted(fleet)) == 90
    fleet.turn(3600)
    assert fleet.state.phase == "Complete"
    assert kept(steered(fleet), counted(fleet)) == 0
    assert synced(fleet)["Synced"] == ("True", "Synced")
    assert synced(fleet)["Ready"] == ("True", "Available")


def test_a_pin_to_the_newest_revision_keeps_nothing_back():
    fleet = Fleet()
    fleet.turn()
    fleet.want(V2)
    fleet.ask("pin", path="/emea", revision=2)
    assert found(fleet) == ()
    fleet.want(V3)
    assert [hold.reason for hold in found(fleet)] == ["Pinned"]


def test_a_place_where_nobody_is_keeps_nothing_from_anyone():
    fleet = frozen()
    places = dict.fromkeys(steered(fleet).places, 0)
    assert found(fleet, places=places) == ()


def test_whom_a_pin_keeps_the_waves_do_not_count_again():
    fleet = awaiting()
    fleet.ask("pin", path="/emea", revision=1)
    by_reason = {hold.reason: hold.destinations for hold in found(fleet)}
    assert by_reason == {"AwaitingApproval": 50, "Pinned": 50}


def test_a_wave_that_needs_a_person_when_everyone_has_the_content_holds_nothing():
    fleet = Fleet(rollout([{"name": "all", "percent": 100, "approval": "after"}]))
    fleet.turn()
    fleet.want(V2)
    assert fleet.state.phase == "AwaitingApproval"
    assert found(fleet) == ()
    assert synced(fleet)["Synced"] == ("True", "Synced")


def test_who_waits_for_a_window_is_held_until_it_opens():
    windows = [{"cron": "0 2 * * *", "duration": "1h", "zone": "Europe/Berlin"}]
    fleet = Fleet(rollout(windows=windows))
    fleet.turn()
    fleet.want(V2)
    window, *_ = found(fleet, opens="2023-11-15T01:00:00Z")
    assert (window.reason, window.destinations) == ("WaitingForWindow", 10)
    assert "2023-11-15T01:00:00Z" in window.message
    assert window.reason in ENDS_BY_ITSELF


def test_a_rollout_that_cannot_be_read_holds_what_it_had_begun():
    fleet = Fleet(rollout(({**WAVES[0], "soak": "1h"}, *WAVES[1:])))
    fleet.turn()
    assert found(fleet, invalid="waves: twice") == ()
    fleet.want(V2)
    [hold] = found(fleet, invalid="waves: twice")
    assert (hold.reason, hold.destinations) == ("RolloutInvalid", 90)


def test_what_a_deleted_rollout_left_is_held_and_tells_what_it_would_send():
    fleet = failed()
    [hold] = found(fleet, rollout="", state=None, news="1 object: shop/deployments.apps/web")
    assert (hold.reason, hold.destinations) == ("RolloutDeleted", 90)
    assert "1 object: shop/deployments.apps/web" in hold.message
    assert hold.remedy == "leafcast rollout release epl/shop"


def test_a_place_of_its_own_is_counted_with_what_a_deleted_rollout_left():
    fleet = pinned()
    [hold] = found(fleet, rollout="", state=None)
    assert (hold.reason, hold.destinations) == ("RolloutDeleted", 50)


def test_what_nobody_knows_to_be_wanted_is_not_held_back():
    fleet = Fleet()
    fleet.turn()
    fleet.target = None
    assert kept(steered(fleet), counted(fleet)) == 0
    assert found(fleet) == ()


def test_who_has_nothing_before_its_wave_is_going_out_and_not_pending():
    fleet = Fleet(rollout(({**WAVES[0], "soak": "1h"}, *WAVES[1:])))
    fleet.turn()
    fleet.want(V2)
    whole = len(fleet.labels)
    count = counted(fleet)
    nothing = replace(count.summary, states={"waiting": whole}, health={"unknown": whole})
    facts = PlacementFacts(1, 1, name="shop", selected=1, steered=steered(fleet))
    said = placement_status(facts, Count(nothing, exact=True), None, NOW_MS)
    listed = {it["type"]: it for it in said["conditions"]}
    assert (said["synced"], said["waiting"], said["healthy"]) == (0, whole, 0)
    for type_ in ("Synced", "Healthy"):
        assert (listed[type_]["status"], listed[type_]["reason"]) == ("False", "RollingOut")
        assert "still to get the newest content by the waves" in listed[type_]["message"]
