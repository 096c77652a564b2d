"""A place in maintenance keeps what it has, is counted, and is waited for by nobody; it ends."""

import pytest

from controllers.core.inventory.records import register
from controllers.core.rollout.wave_health import tally
from controllers.core.status.facts import PlacementFacts
from controllers.core.status.status import placement_status
from leafcast.doctor.findings import NodeFacts
from relay.core.events import ObjectObserved
from relay.core.instant import Instant
from relay.core.link.session import Presence
from schemas.api.parsing import parse_kind, parse_wish
from schemas.records.maintenance import (
    MAINTENANCE,
    MAINTENANCE_REASON,
    REASON_MAX_CHARACTERS,
    in_force,
    maintenance_of,
    time_fault,
)
from schemas.reports.reports import Count, Summary
from schemas.values.faults import InvalidObject
from schemas.values.wire import replace
from tests.unit.test_checks import NOW as CHECKED_MS
from tests.unit.test_checks import wrong
from tests.unit.test_destination import Bench, mail_key, mine
from tests.unit.test_reporting import facts, summary_of

API = "edge.kubestellar.io/v2alpha1"
UNTIL = "1970-01-01T00:01:00Z"
UNTIL_MS = 60_000
BEFORE, AFTER = Instant(5.0, 5_000), Instant(61.0, 61_000)


def worked_at(**more):
    return {MAINTENANCE: UNTIL, MAINTENANCE_REASON: "new disk", **more}


class Place(Bench):
    """A destination whose profile says that a person works there until a minute has passed."""

    def annotate(self, generation, annotations):
        profile = replace(mine(generation), annotations=annotations)
        self.edge.put_profile(mail_key(0), profile)

    def told(self, now):
        """What is said of the first placement, after a look at the clock; whether wants changed."""
        changed = self.edge.resolve().wants_changed if self.edge.look(now) else False
        self.edge.assert_invariants()
        return self.edge.summary(mail_key(1), now), changed


def whole():
    place = Place()
    place.put(0)
    (wanted,) = place.edge.wanted.values()
    seen = ObjectObserved(wanted.key, True, wanted.address, "", "healthy", None)
    place.edge.observe(seen)
    return place


def test_a_place_in_maintenance_says_so_and_until_when_and_why():
    place = whole()
    place.annotate(2, worked_at())
    said, changed = place.told(BEFORE)
    assert changed
    assert (said.states, said.health) == ({"maintenance": 1}, {"maintenance": 1})
    assert said.exceptions[0].reason == f"Maintenance: until {UNTIL}: new disk"
    assert place.edge.maintenance.is_on
    assert place.told(BEFORE)[1] is False, "it is said once"


def test_it_ends_by_the_places_own_clock_and_when_it_is_said_to_end():
    for now, annotations in ((AFTER, worked_at()), (BEFORE, {})):
        place = whole()
        place.annotate(2, worked_at())
        place.told(BEFORE)
        assert 5.0 < place.edge.deadline() <= 60.0
        place.annotate(3, annotations)
        said, changed = place.told(now)
        assert changed
        assert (said.states, said.health) == ({"synced": 1}, {"healthy": 1})
        assert place.edge.deadline() is None


def test_another_end_is_told_and_lets_nothing_go_on():
    place = whole()
    place.annotate(2, worked_at())
    place.told(BEFORE)
    place.annotate(3, worked_at(**{MAINTENANCE: "1970-01-01T01:00:00Z"}))
    said, changed = place.told(AFTER)
    assert not changed
    assert "until 1970-01-01T01:00:00Z" in said.exceptions[0].reason


def test_what_arrives_meanwhile_is_wanted_and_counts_as_in_maintenance():
    place = whole()
    place.annotate(2, worked_at())
    place.told(BEFORE)
    place.put(0, revision=2)
    said, _ = place.told(BEFORE)
    assert said.states == {"maintenance": 1}
    said, _ = place.told(AFTER)
    assert said.states == {"pending": 1}


def test_who_leaves_the_place_is_not_counted_there():
    place = whole()
    place.annotate(2, worked_at())
    place.told(BEFORE)
    place.edge.drop(mail_key(1))
    place.resolve()
    assert place.told(BEFORE)[0].states == {"leaving": 1}


@pytest.mark.parametrize(
    ("presence", "state"),
    [
        (Presence.SILENT, "maintenance"),
        (Presence.LEFT, "maintenance"),
        (Presence.CATCHING_UP, "maintenance"),
        (Presence.NEVER_JOINED, "never joined"),
    ],
)
def test_a_place_that_is_off_in_its_maintenance_counts_as_in_maintenance(presence, state):
    known = facts(presence=presence, maintained=lambda: 1)
    assert summary_of(known, None).states == {state: 1}


def test_of_a_region_that_is_off_those_count_so_that_are_in_maintenance():
    known = facts(presence=Presence.SILENT, edge=False, expected=5, maintained=lambda: 2)
    assert summary_of(known, None).states == {"maintenance": 2, "unreachable": 3}
    assert summary_of(known, None).health == {"maintenance": 2, "unknown": 3}


def status(**states):
    health = {"maintenance": states["maintenance"], "healthy": states.get("synced", 0)}
    count = Count(Summary(states, {k: n for k, n in health.items() if n}), exact=True)
    return placement_status(PlacementFacts(1, 1, selected=1), count, None, 0)


def conditions(found):
    return {item["type"]: item for item in found["conditions"]}


def test_no_condition_waits_for_a_place_in_maintenance_and_the_status_says_it():
    found = status(synced=2, maintenance=1)
    for name in ("Synced", "Healthy", "Ready"):
        assert conditions(found)[name]["status"] == "True", name
        assert "1 in maintenance" in conditions(found)[name]["message"]
    assert found["destinations"] == 3
    (held,) = found["held"]
    assert (held["reason"], held["destinations"]) == ("Maintenance", 1)


def test_who_lacks_something_beside_it_is_waited_for():
    found = status(synced=1, pending=1, maintenance=1)
    assert conditions(found)["Synced"]["status"] == "False"
    assert conditions(found)["Ready"]["status"] == "False"


def test_a_wave_has_no_member_that_is_in_maintenance():
    cells = {"7.0/synced/healthy": 2, "7.0/maintenance/maintenance": 3}
    found = tally(cells, "7.0", "healthy")
    assert (found.members, found.healthy, found.failing, found.unreachable) == (2, 2, 0, 0)


def target(annotations):
    metadata = {"name": "s1", "annotations": {"leafcast.io/path": "/emea/s1", **annotations}}
    form = {
        "apiVersion": API,
        "kind": "SyncTarget",
        "metadata": {**metadata, "uid": "u"},
        "spec": {},
    }
    return parse_wish(form)


def profile(annotations, now_ms):
    (draft,), _ = register("i", [target(annotations)], lambda _: True, now_ms=now_ms)
    return draft.record


def test_the_centre_tells_of_a_maintenance_until_it_is_over():
    during, after = (profile(worked_at(), now_ms) for now_ms in (UNTIL_MS - 1, UNTIL_MS))
    assert maintenance_of(during.annotations).until_ms == UNTIL_MS
    assert after.annotations == {"leafcast.io/path": "/emea/s1"}


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-11-27", "2026-11-27T20:00:00", "2h", "\0"])
def test_what_is_no_time_is_no_maintenance_and_refused_by_name(text):
    assert maintenance_of({MAINTENANCE: text}).until_ms == 0
    assert time_fault(text)
    assert MAINTENANCE not in in_force({MAINTENANCE: text}, 0)
    metadata = {"name": "s1", "annotations": {MAINTENANCE: text}}
    with pytest.raises(InvalidObject, match=r"leafcast\.io/maintenance.*is no time"):
        parse_kind({"apiVersion": API, "kind": "SyncTarget", "metadata": metadata})


def test_a_reason_is_one_line_of_bounded_length():
    said = maintenance_of(worked_at(**{MAINTENANCE_REASON: "a\nb " + "x" * 999}))
    assert "\n" not in said.reason
    assert len(said.reason) <= REASON_MAX_CHARACTERS


def test_the_doctor_names_it_once_and_blames_nobody_for_being_off():
    fields = {"role": "edge", "state": "unreachable", "since_ms": 1}
    until = {"maintenance_until_ms": CHECKED_MS + 60_000, "maintenance_reason": "new disk"}
    nodes = [NodeFacts(path=f"/s{at}", **fields, **until) for at in range(3)]
    (check,) = [it for it in wrong(*nodes) if "maintenance" in it.said]
    assert check.state == "warning"
    assert "3 nodes are in maintenance" in check.said
    assert not [it for it in wrong(*nodes) if it.group == "Links" and it.state == "failure"]
