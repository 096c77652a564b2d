"""What keeps the newest content from destinations is listed, one value for each reason."""

import re
from pathlib import Path

import pytest

from controllers.core.status.facts import PlacementFacts
from controllers.core.status.holds import as_status, holds
from controllers.core.status.rollout_holds import Steered
from controllers.core.status.status import placement_status
from controllers.core.workloads.missing_references import Lack
from schemas.api.placement_details import HOLD_TEXT_MAX, HOLDS_MAX, Hold
from schemas.objects.objects import ObjectKey
from schemas.records import hold_reasons
from schemas.reports.reports import Count, ExceptionSample, Summary
from schemas.values.faults import Fault

ROOT = Path(__file__).resolve().parents[2]
START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
WHOLE = Count(Summary({"synced": 2}, {"healthy": 2}), exact=True)
HELD = {
    "RolloutDeleted": PlacementFacts(1, 1, name="shop", steered=Steered("shop", (), None)),
    "RemovalHeld": PlacementFacts(1, 1, name="shop", removal_held="9 would go; accept"),
    "Invalid": PlacementFacts(1, 1, name="shop", invalid="spec: wrong"),
    "ObjectsRefused": PlacementFacts(1, 1, name="shop", faults=(Fault("a", "bad", "mend"),)),
    "KindUnreadable": PlacementFacts(1, 1, name="shop", lack=Lack("KindUnreadable", "not shown")),
    "Moving": PlacementFacts(1, 1, name="shop", keeping=1),
}


def status(facts, before=None, now_ms=START_MS, count=WHOLE):
    return placement_status(facts, count, before, now_ms)


def condition(said, type_):
    return next(item for item in said["conditions"] if item["type"] == type_)


@pytest.mark.parametrize("reason", HELD)
def test_what_holds_a_placement_is_in_its_status_with_the_next_command(reason):
    said = status(HELD[reason])
    assert [hold["reason"] for hold in said["held"]] == [reason]
    assert said["held"][0]["remedy"].startswith(("leafcast ", "correct it"))
    assert said["held"][0]["since"] == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize("reason", HELD)
def test_a_held_placement_is_not_synced_however_many_hold_what_may_go_out(reason):
    synced = condition(status(HELD[reason]), "Synced")
    assert (synced["status"], synced["reason"]) == ("False", reason)


def test_nothing_is_held_of_a_placement_that_goes_out():
    said = status(PlacementFacts(1, 1, name="shop"))
    assert said["held"] == []
    assert condition(said, "Synced")["status"] == "True"


def test_a_hold_is_held_since_its_reason_came():
    first = status(HELD["Invalid"])
    later = status(HELD["Invalid"], first, START_MS + HOUR_MS)
    other = status(HELD["Moving"], later, START_MS + 2 * HOUR_MS)
    assert later["held"] == first["held"]
    assert other["held"][0]["since"] == "2027-01-15T10:00:00Z"


def test_who_needs_a_person_comes_before_what_ends_by_itself():
    facts = PlacementFacts(1, 1, name="shop", keeping=1, invalid="spec: wrong")
    assert [hold.reason for hold in holds(facts, WHOLE)] == ["Invalid", "Moving"]


def test_what_is_wrong_goes_before_what_ends_by_itself():
    ill = Count(Summary({"synced": 2}, {"healthy": 1, "degraded": 1}), exact=True)
    said = placement_status(HELD["Moving"], ill, None, START_MS)
    assert condition(said, "Healthy")["reason"] == "Degraded"
    assert "held: " in condition(said, "Healthy")["message"]
    assert condition(said, "Synced")["reason"] == "Moving"
    assert condition(status(HELD["Invalid"]), "Healthy")["reason"] == "Invalid"


def test_a_reason_is_listed_once_and_no_more_than_the_bound():
    many = tuple(Hold(reason=f"Reason{at}", message="x" * 999) for at in range(99))
    found = holds(PlacementFacts(1, 1, holds=(*many, *many)), WHOLE)
    listed = as_status(found, None, START_MS)
    assert len(listed) == len({hold["reason"] for hold in listed}) == HOLDS_MAX
    assert all(len(hold["message"]) == HOLD_TEXT_MAX for hold in listed)


def test_who_cannot_be_customized_is_counted_where_the_count_is_exact():
    summary = Summary({"synced": 1, "frozen": 1}, {"healthy": 2})
    exact = holds(PlacementFacts(1, 1, name="shop"), Count(summary, exact=True))
    vague = holds(PlacementFacts(1, 1, name="shop"), Count(summary, exact=False))
    assert [hold.destinations for hold in exact] == [1]
    sample = ExceptionSample(0, "configmaps/shop/a", 'Frozen: no property "till"', 1, "/s1")
    told = Count(Summary({"frozen": 1}, {}, exceptions=(sample,)), exact=True)
    [hold] = holds(PlacementFacts(1, 1, name="shop"), told)
    assert 'shop/configmaps/a: Frozen: no property "till"' in hold.message
    assert [hold.destinations for hold in vague] == [None]


def test_the_page_of_holds_has_each_reason_and_says_rightly_which_end_by_themselves():
    page = (ROOT / "docs" / "holds.md").read_text()
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    told = {word: row[3] for row in rows for word in re.findall(r"`([A-Z]\w+)`", row[1])}
    reasons = {
        said
        for name, said in vars(hold_reasons).items()
        if name.isupper() and isinstance(said, str)
    }
    assert told.keys() == reasons
    by_itself = {reason for reason, ends in told.items() if ends.strip().startswith("by itself")}
    assert by_itself == hold_reasons.ENDS_BY_ITSELF


def test_who_never_joined_holds_nothing_for_want_of_a_key():
    facts = PlacementFacts(1, 1, name="shop", keyless=("s1", "s2"))
    absent = Summary({"synced": 1, "never joined": 2}, {"healthy": 1})
    assert holds(facts, Count(absent, exact=True)) == ()
    one_joined = Summary({"synced": 2, "never joined": 1}, {"healthy": 2})
    [hold] = holds(facts, Count(one_joined, exact=True))
    assert (hold.reason, hold.destinations) == ("SecretsUnopened", 1)


def test_what_another_placement_says_otherwise_is_held_with_who_has_it():
    sample = ExceptionSample(
        1, "configmaps/shop/a", "Overridden: edgeplacement/b says otherwise", 2, "/s1"
    )
    summary = Summary({"synced": 1, "failing": 2}, {"healthy": 3}, exceptions=(sample,))
    [hold] = holds(PlacementFacts(1, 1, name="shop"), Count(summary, exact=True))
    assert (hold.reason, hold.destinations) == ("Overridden", 2)
    assert "shop/configmaps/a: Overridden: edgeplacement/b" in hold.message


def test_placements_that_differ_are_held_both():
    key = ObjectKey("", "configmaps", "shop", "a")
    facts = PlacementFacts(1, 1, name="shop", differing={"bindingpolicy/b": [key]})
    [hold] = holds(facts, WHOLE)
    assert hold.reason == "PlacementsDiffer"
    assert "bindingpolicy/b" in hold.message
    assert "shop/configmaps/a" in hold.message
