"""A few records that a list lacks may be all that one placement reaches."""

import pytest

from controllers.core.inventory.registry import LOCATIONS, Registry
from controllers.core.ledger.destination_counts import count_destinations, hold_destinations
from controllers.core.translation.placements import Placements
from controllers.core.translation.translate import IssuedDelta
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaHead,
    LocationRecord,
    Profile,
    Source,
)
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import NodePath, destination_id
from tests.unit.centre_world import placement
from tests.unit.test_centre_decisions import TREE, keyed

SPACE = "space"


def selector(**labels):
    return LabelSelector.from_kubernetes({"matchLabels": labels})


def profile(name, **labels):
    source = Source(API_SYNC_TARGET, SPACE, "", name)
    there = (destination_id(SPACE, name), NodePath((name,)), labels, {}, {})
    return Profile(source, 1, "", "", *there)


def location(name, chooses, **labels):
    source = Source(API_LOCATION, SPACE, "", name)
    return LocationRecord(source, 1, "", "", labels, {}, chooses)


def delta(name, *alternatives):
    return DeltaHead(Source(API_PLACEMENT, SPACE, "", name), 1, "", "", b"", alternatives, 0)


EVERY = [profile(f"t{n}", env="prod" if n < 20 else "dev") for n in range(100)]
PLACES = [location("prod", selector(env="prod"), at="prod"), location("all", LabelSelector())]
BY_PLACE = delta("shop", Alternative(OVER_LOCATION, selector(at="prod")))
BY_LABEL = delta("till", Alternative(OVER_SYNC_TARGET, selector(env="prod")))


def keys(*records):
    return {record.source.key for record in records}


def test_a_placement_reaches_whom_it_selects_itself_and_by_their_locations():
    for head in (BY_PLACE, BY_LABEL):
        assert count_destinations([*EVERY, *PLACES], head.alternatives) == 20
    elsewhere = Alternative(OVER_SYNC_TARGET, LabelSelector(), "another space")
    assert count_destinations([*EVERY, *PLACES], [elsewhere]) == 0


def test_a_location_that_holds_most_of_a_placements_destinations_is_held():
    records = [*EVERY, *PLACES, BY_PLACE, BY_LABEL]
    held = hold_destinations(records, keys(PLACES[0]))
    assert held.items == keys(PLACES[0])
    assert '"shop" would lose 20 of its 20' in held.reason
    assert not hold_destinations(records, keys(PLACES[1])).items
    also = location("too", LabelSelector(), at="prod")
    assert not hold_destinations([*records, also], keys(PLACES[0])).items


def test_more_than_ten_and_a_fifth_of_one_placements_destinations_are_held():
    records = [*EVERY, *PLACES, BY_LABEL]
    assert not hold_destinations(records, keys(*EVERY[:10])).items
    held = hold_destinations(records, keys(*EVERY[:11], EVERY[50]))
    assert held.items == keys(*EVERY[:11])
    # Of all hundred they are few.
    every = delta("every", Alternative(OVER_SYNC_TARGET, LabelSelector()))
    assert not hold_destinations([*EVERY, *PLACES, every], keys(*EVERY[:11])).items


def test_the_inventory_holds_a_location_that_a_list_lacks_until_someone_accepts():
    ledger = {record.source.key: record for record in (*EVERY, *PLACES, BY_PLACE)}
    registry = Registry(SPACE, TREE, ledger)
    group = "edge.kubestellar.io"
    shown = [ObjectKey(group, "synctargets", "", record.source.name) for record in EVERY]
    shown += [ObjectKey(group, LOCATIONS, "", "all")]
    registry.listed({key: {} for key in shown})
    assert not registry.next([ObjectKey(group, LOCATIONS, "", "prod")], 0).deleted
    assert "20 of its 20 destinations" in registry.errors["locations/RemovalHeld"]
    assert registry.next(registry.accept(), 0).deleted == (PLACES[0].source.key,)


@pytest.mark.parametrize(("head", "goes"), [(BY_PLACE, []), (delta("shop"), ["shop"])])
def test_a_small_placement_that_many_have_is_held_when_a_list_lacks_it(head, goes):
    ledger = {record.source.key: record for record in (*EVERY, *PLACES, head)}
    seen = Placements(SPACE, {"shop": IssuedDelta((), {}, head=head)}, ledger)
    works = seen.next(seen.listed(keyed(placement("other"))))
    assert [work.name for work in works if work.draft is None] == goes
    assert ("shop" in seen.held) is not bool(goes)
    assert goes or "all its 20 destinations" in seen.held["shop"]
