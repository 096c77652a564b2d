"""Laws of applying one manager's wish to an object."""

from hypothesis import given
from hypothesis import strategies as st

from relay.objects.merge import fields_said, merge_applied, same, subsumes, wish_of

names = st.sampled_from(["a", "b", "metadata", "spec", "status", "uid"])
scalars = st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from(["x", "y"]))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=12,
)
objects = st.dictionaries(names, values, max_size=4)


@given(objects, objects, objects)
def test_after_a_wish_the_object_holds_all_of_it(live, previous, wanted):
    assert subsumes(merge_applied(live, previous, wanted), wanted)


@given(objects, objects, objects)
def test_applying_a_wish_twice_changes_nothing_more(live, previous, wanted):
    once = merge_applied(live, previous, wanted)
    assert same(merge_applied(once, wanted, wanted), once)


@given(objects, objects, objects)
def test_the_fields_said_are_all_that_is_needed_of_the_previous_wish(live, previous, wanted):
    assert same(
        merge_applied(live, previous, wanted), merge_applied(live, fields_said(previous), wanted)
    )


@given(objects)
def test_withdrawing_everything_from_what_one_made_leaves_nothing(wanted):
    made = merge_applied({}, {}, wanted)
    assert merge_applied(made, wanted, {}) == {}


@given(objects, st.dictionaries(st.sampled_from(["p", "q"]), values, max_size=2), objects)
def test_others_fields_are_kept(mine, others, next_wish):
    live = {**merge_applied({}, {}, mine), **others}
    merged = merge_applied(live, mine, next_wish)
    assert all(same(merged[name], value) for name, value in others.items())


@given(objects, objects)
def test_a_field_no_longer_said_is_gone(first, second):
    live = merge_applied({}, {}, first)
    assert same(merge_applied(live, first, second), wish_of(second))


@given(objects, objects, values)
def test_status_is_never_touched(live, wanted, status):
    merged = merge_applied({**live, "status": status}, {"status": 1}, {**wanted, "status": "mine"})
    assert same(merged["status"], status)


def test_a_label_and_a_whole_section_removed_at_the_source_are_removed():
    previous = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"x": {"y": 1}}}
    live = {
        "metadata": {"uid": "u", "labels": {"a": "1", "b": "2", "theirs": "3"}},
        "spec": {"x": {"y": 1}, "replicas": 3},
    }
    merged = merge_applied(live, previous, {"metadata": {"labels": {"a": "1"}}})
    assert merged == {
        "metadata": {"uid": "u", "labels": {"a": "1", "theirs": "3"}},
        "spec": {"replicas": 3},
    }


def test_lists_are_replaced_whole():
    merged = merge_applied({"l": [1, 2, 3]}, {"l": [1, 2, 3]}, {"l": [2]})
    assert merged == {"l": [2]}


def test_a_list_whose_items_got_defaults_still_holds_the_wish():
    live = {"containers": [{"name": "a", "image": "i:1", "imagePullPolicy": "Always"}]}
    assert subsumes(live, {"containers": [{"name": "a", "image": "i:1"}]})
    assert not subsumes(live, {"containers": [{"name": "a", "image": "i:2"}]})
    assert not subsumes(live, {"containers": []})


def test_true_is_not_one():
    assert not subsumes({"a": 1}, {"a": True})


def test_a_null_says_nothing():
    assert merge_applied({}, {}, {"a": None, "b": {"c": None}}) == {"b": {}}
    assert subsumes({}, {"a": None})


def test_metadata_that_a_space_writes_is_no_ones_wish():
    live = {"metadata": {"uid": "u", "resourceVersion": "3"}}
    wish = {"metadata": {"uid": "other", "resourceVersion": "1", "creationTimestamp": None}}
    assert merge_applied(live, wish, wish) == live
    assert subsumes(live, wish)
