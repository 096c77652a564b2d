"""The audience: numbers in ranges, label sets in bulk, and what a change costs."""

from unittest.mock import patch

import pytest

from relay.core.audience import HERE, Audience
from relay.core.audience.audience import JUDGED_MIN
from relay.core.audience.label_sets import LabelSets
from relay.core.audience.numbering import RANGE_MIN, Numbering
from relay.core.audience.selector_index import SelectorIndex
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import Alternative, LocationRecord, Profile, Source
from schemas.values.identity import NodePath

ROOT = NodePath()


def profile(path, labels, space="inv"):
    source = Source("edge.kubestellar.io/SyncTarget", space, "", path.replace("/", "."))
    where = NodePath.parse(path)
    return Profile(source, 1, False, "", f"{space}-mb-{path}", where, labels, {}, {})


def location(labels, selector, space="inv"):
    source = Source("edge.kubestellar.io/Location", space, "", "l")
    return LocationRecord(source, 1, False, "", labels, {}, selector)


def selecting(**labels):
    return LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def over_target(space="", **labels):
    return (Alternative("synctarget", selecting(**labels), space),)


def over_location(**labels):
    return (Alternative("location", selecting(**labels)),)


@pytest.fixture
def shops():
    """Three destinations behind two children; drained."""
    audience = Audience(ROOT)
    audience.put_profile("t1", profile("/a/x", {"env": "prod"}))
    audience.put_profile("t2", profile("/a/y", {"env": "dev"}))
    audience.put_profile("t3", profile("/b", {"env": "prod"}))
    audience.drain()
    return audience


def test_a_placement_concerns_the_children_with_a_destination_that_it_selects(shops):
    shops.put_placement("p", over_target(env="prod"))
    assert shops.drain() == {"p": ("a", "b")}
    assert shops.concerned("p") == ["a", "b"]
    assert [shops.expected("p", child) for child in ("a", "b", "c")] == [1, 1, 0]
    assert list(shops.placements_concerning("b")) == ["p"]
    shops.put_placement("p", None)
    assert shops.drain() == {"p": ("a", "b")}
    assert shops.concerned("p") == []


def test_a_relabelled_destination_changes_only_the_counts_of_its_child(shops):
    shops.put_placement("prod", over_target(env="prod"))
    shops.put_placement("dev", over_target(env="dev"))
    shops.put_placement("all", over_target())
    shops.drain()
    shops.put_profile("t2", profile("/a/y", {"env": "prod"}))
    assert shops.drain() == {"prod": ("a",), "dev": ("a",)}
    assert shops.expected("all", "a") == 2


def test_a_change_that_is_taken_back_before_the_drain_is_none(shops):
    shops.put_placement("p", over_target(env="prod"))
    shops.drain()
    shops.put_profile("t1", profile("/a/x", {"env": "dev"}))
    shops.put_placement("p", over_target(env="dev"))
    shops.put_profile("t1", profile("/a/x", {"env": "prod"}))
    shops.put_placement("p", over_target(env="prod"))
    assert shops.drain() == {}
    shops.assert_invariants()


def test_of_placements_with_the_same_alternatives_only_the_new_one_is_drained(shops):
    shops.put_placement("p", over_target(env="prod"))
    shops.drain()
    shops.put_placement("q", over_target(env="prod"))
    assert shops.drain() == {"q": ("a", "b")}
    shops.put_profile("t3", None)
    assert shops.drain() == {"p": ("b",), "q": ("b",)}


def test_a_destination_at_the_node_itself_counts_here_and_concerns_no_child():
    edge = Audience(NodePath.parse("/a/x"))
    edge.put_profile("me", profile("/a/x", {"env": "prod"}))
    edge.put_profile("other", profile("/a/y", {"env": "prod"}))
    edge.put_location("l", location({"zone": "z"}, selecting(env="prod")))
    edge.put_placement("p", over_target(env="prod"))
    edge.put_placement("q", over_location(zone="z"))
    edge.put_placement("r", over_location(zone="y"))
    assert edge.drain() == {"l": (HERE,), "p": (HERE,), "q": (HERE,)}
    assert edge.concerned("p") == []
    assert edge.expected("p", HERE) == 1
    assert list(edge.placements_of("me")) == ["p", "q"]
    assert list(edge.locations_of("me")) == ["l"]
    assert list(edge.placements_of("other")) == []


def test_a_location_concerns_the_children_with_its_destinations_and_carries_placements(shops):
    shops.put_placement("p", over_location(zone="z"))
    shops.put_location("l", location({"zone": "z"}, selecting(env="prod")))
    assert shops.drain() == {"l": ("a", "b"), "p": ("a", "b")}
    assert shops.concerned("l") == ["a", "b"]
    assert shops.expected("l", "a") == 1
    # Relabelled, it has the same destinations.
    shops.put_location("l", location({"zone": "y"}, selecting(env="prod")))
    assert shops.drain() == {"p": ("a", "b")}
    shops.put_location("l", location({"zone": "z"}, None))
    assert shops.drain() == {"l": ("a", "b")}
    assert shops.concerned("l") == []


def test_a_destination_that_is_selected_in_two_ways_stays_meant_when_one_ends(shops):
    shops.put_placement("p", (*over_location(zone="z"), *over_target(env="prod")))
    for key in ("l", "m"):
        shops.put_location(key, location({"zone": "z"}, selecting(env="prod")))
    assert shops.drain() == {"p": ("a", "b"), "l": ("a", "b"), "m": ("a", "b")}
    shops.put_location("l", None)
    shops.put_location("m", None)
    assert shops.drain() == {"l": ("a", "b"), "m": ("a", "b")}
    assert shops.expected("p", "a") == 1
    shops.assert_invariants()


def test_a_location_holds_destinations_of_its_own_space_only(shops):
    shops.put_placement("p", over_location(zone="z"))
    shops.put_location("l", location({"zone": "z"}, LabelSelector(), space="own"))
    assert shops.drain() == {}
    shops.put_profile("t4", profile("/b/z", {}, space="own"))
    assert shops.drain() == {"p": ("b",), "l": ("b",)}


def test_an_inventory_record_bears_on_a_placement_before_it_is_in_force_and_after(shops):
    shops.put_placement("p", over_target(env="prod"))
    shops.put_placement("q", over_location(zone="z"))
    shops.put_location("l", location({"zone": "z"}, selecting(env="dev")))
    prod, dev = (profile("/c", {"env": env}) for env in ("prod", "dev"))
    assert [shops.bears_on(prod, key) for key in "pq"] == [True, False]
    assert [shops.bears_on(dev, key) for key in "pq"] == [False, True]
    elsewhere = location({"zone": "z"}, selecting(env="none"))
    assert [shops.bears_on(elsewhere, key) for key in "pq"] == [False, True]
    assert not shops.bears_on(location({"zone": "z"}, None), "q")


def test_of_two_that_claim_a_path_both_count(shops):
    shops.put_placement("p", over_target())
    shops.put_profile("again", profile("/b", {}))
    assert shops.expected("p", "b") == 2
    shops.put_profile("t3", None)
    assert shops.expected("p", "b") == 1


def test_records_that_say_the_same_change_nothing(shops):
    shops.put_placement("p", over_target(env="prod"))
    shops.put_location("l", location({"zone": "z"}, selecting(env="prod")))
    shops.drain()
    with patch.object(Audience, "_matching", side_effect=AssertionError):
        shops.put_placement("p", over_target(env="prod"))
        shops.put_location("l", location({"zone": "z"}, selecting(env="prod")))
        shops.put_profile("t1", profile("/a/x", {"env": "prod"}))
    assert shops.drain() == {}


def test_many_destinations_at_once_are_not_judged_one_by_one():
    audience, count = Audience(ROOT), 3 * JUDGED_MIN
    audience.put_placement("p", over_target(env="prod"))
    audience.drain()
    with patch.object(Audience, "_matching", autospec=True, side_effect=Audience._matching) as one:
        for at in range(count):
            audience.put_profile(f"t{at}", profile(f"/c{at % 3}/e{at}", {"env": "prod"}))
        assert one.call_count == JUDGED_MIN
        assert audience.drain() == {"p": ("c0", "c1", "c2")}
        audience.put_profile("t0", profile("/c0/e0", {"env": "dev"}))
        assert one.call_count == JUDGED_MIN + 2
    assert audience.expected("p", "c0") == count // 3 - 1


def test_a_location_of_many_destinations_has_its_placements_counted_anew():
    audience = Audience(ROOT)
    for at in range(100):
        audience.put_profile(f"t{at}", profile(f"/c{at % 3}/e{at}", {"env": "prod"}))
    audience.put_placement("p", over_location(zone="z"))
    audience.put_placement("q", over_target(env="prod"))
    audience.drain()
    with patch.object(Audience, "_selections_among", side_effect=AssertionError):
        audience.put_location("l", location({"zone": "z"}, selecting(env="prod")))
    assert audience.drain() == {"p": ("c0", "c1", "c2"), "l": ("c0", "c1", "c2")}
    audience.assert_invariants()


def test_labels_that_each_destination_has_of_its_own_need_no_set_of_their_own():
    sets, count = LabelSets(), 5000
    for at in range(count):
        sets.put(at, "inv", {"host": f"h{at}", "store": f"s{at}", "env": "prod"})
    several = [term for term, at in sets._ids.items() if not isinstance(sets._members[at], int)]
    assert sorted(several) == ["=inv", "env", "env=prod", "host", "store"]
    chosen = Requirement("host", "In", tuple(f"h{at}" for at in range(0, count, 2)))
    assert list(sets.select("", LabelSelector((chosen,)))) == list(range(0, count, 2))
    other = Requirement("store", "NotIn", tuple(f"s{at}" for at in range(1, count)))
    assert list(sets.select("inv", LabelSelector((chosen, other)))) == [0]
    sets.assert_invariants()
    for at in range(count):
        sets.put(at, "inv", {"host": f"new-{at}"})
    # What nobody has any more makes room for what is new.
    assert len(sets._terms) <= 2 * count + 5
    sets.assert_invariants()


def test_labels_that_no_selector_can_name_are_not_taken_for_others():
    odd = {"env=prod": "x", "": "inv", "a": "b=c"}
    sets, index = LabelSets(), SelectorIndex()
    sets.put(0, "other", odd)
    index.put("pair", "", selecting(env="prod"))
    index.put("space", "inv", LabelSelector())
    index.put("key", "", LabelSelector((Requirement("a", "Exists"),)))
    assert not sets.select("", selecting(env="prod"))
    assert not sets.select("inv", LabelSelector())
    assert list(sets.select("", LabelSelector((Requirement("a", "Exists"),)))) == [0]
    assert list(index.matching("other", odd)) == ["key"]


def test_selectors_stand_under_the_term_that_fewest_share():
    index = SelectorIndex()
    for at in range(100):
        index.put(at, "", selecting(env="prod", store=f"s{at}"))
    assert max(map(len, index._by_term.values())) <= 2
    assert list(index.matching("", {"env": "prod", "store": "s7"})) == [7]
    index.assert_invariants()


def test_a_child_that_outgrows_its_range_moves_and_its_place_is_used_again():
    numbering = Numbering()
    first = numbering.range_for("a")
    taken = [first.take() for _ in range(RANGE_MIN)]
    assert taken == list(range(RANGE_MIN))
    numbering.range_for("b")
    assert first.is_full
    assert numbering.widen(first) == 0
    assert (first.start, first.capacity, list(first.offsets())) == (8, 8, [0, 1, 2, 3])
    assert numbering.range_for("c").start == 0
    assert [numbering.range_at(number).child for number in (0, 4, 8, 15)] == ["c", "b", "a", "a"]
    numbering.assert_invariants()


def test_children_that_come_and_go_need_no_more_numbers_than_those_that_stay():
    audience = Audience(ROOT)
    audience.put_placement("p", over_target())
    for round_ in range(20):
        for at in range(50):
            audience.put_profile(f"t{at}", profile(f"/r{round_}c{at % 5}/e{at}", {}))
        audience.drain()
    assert len(audience._numbering.by_child) == 5
    assert audience._numbering.indices <= 10
    assert audience._numbering.end <= 8 * 50
    audience.assert_invariants()


def test_a_child_that_leaves_and_one_that_comes_are_not_taken_for_each_other(shops):
    shops.put_placement("p", over_target())
    shops.drain()
    shops.put_profile("t3", None)
    shops.put_profile("t4", profile("/c", {}))
    assert shops.drain() == {"p": ("b", "c")}
    shops.put_profile("t5", profile("/d", {}))
    assert shops.drain() == {"p": ("d",)}
    assert sorted(shops.concerned("p")) == ["a", "c", "d"]
