"""Laws of source objects: which was created in the place of which, and of items put back."""

from hypothesis import given
from hypothesis import strategies as st

from relay.syncer.list_items import moved_items, with_items_put_back
from relay.syncer.recreation import source_after
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import SourceObject, created_seconds
from schemas.reports.reports import Done
from schemas.values.wire import decode, encode
from tests.unit.test_list_items import applied, live, port, wish

source_objects = st.builds(
    SourceObject,
    st.sampled_from("st"),
    st.sampled_from("uvw"),
    st.integers(0, 3),
    st.integers(0, 3),
)
records = st.builds(
    lambda made_from: Done(
        ObjectKey("", "secrets", "a", "b"), "u", "", (), made=True, order=0, made_from=made_from
    ),
    st.none() | source_objects,
)


@given(source_objects, source_objects, source_objects)
def test_what_succeeds_another_is_not_succeeded_by_it(one, other, third):
    assert not one.succeeds(one)
    assert not (one.succeeds(other) and other.succeeds(one))
    if one.succeeds(other) and other.succeeds(third) and one.uid != third.uid:
        assert one.succeeds(third)
    if one.succeeds(other):
        assert one.space == other.space


@given(records, st.none() | source_objects)
def test_what_an_object_was_made_from_is_kept_within_a_space(done, source):
    after = source_after(done, source)
    assert after in (done.made_from, source)
    if done.made_from is not None and (source is None or source.space == done.made_from.space):
        assert after == done.made_from
    # An object never replaces what was just applied from it.
    if source is not None and after == source:
        assert not source.succeeds(after)


@given(records)
def test_a_record_of_an_older_version_tells_no_source_object(done):
    assert decode(Done, encode(done)) == done
    older = encode(_older(done))
    assert decode(Done, older).made_from is None


def _older(done):
    names = done.__struct_fields__
    return [getattr(done, name) for name in names[: names.index("made_from")]]


@given(st.one_of(st.none(), st.text(), st.integers(), st.lists(st.text())))
def test_any_time_of_creation_is_read(text):
    assert created_seconds({"metadata": {"creationTimestamp": text}}) >= 0
    assert created_seconds({"metadata": {"creationTimestamp": "1970-01-02T00:00:00Z"}}) == 86_400


numbers = st.integers(1, 9)


@given(st.sets(numbers, max_size=4), st.sets(numbers.map(lambda n: n + 100), max_size=3), st.data())
def test_items_put_back_are_those_that_were_applied_and_others_stay(ours, theirs, data):
    items = [port(number, f"p{number}", number) for number in sorted(ours)]
    own = [port(number, f"p{number}", number) for number in sorted(theirs)]
    renamed = data.draw(st.sets(st.sampled_from(sorted(ours)), max_size=4)) if ours else set()
    held = [
        ("them", {**it, "port": it["port"] + 1000}) if it["port"] in renamed else ("leafcast", it)
        for it in items
    ]
    there = live(*held, *(("them", it) for it in own))
    moved = moved_items(there, wish(*items), applied(*items))
    assert len(moved) == len(renamed)
    left = with_items_put_back(there, moved)["spec"]["ports"]
    assert left == [{"protocol": "TCP", **it} for it in (*items, *own)]
