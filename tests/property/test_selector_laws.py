"""Laws of label selectors: they match as defined, and survive every form they are written in."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.objects.selectors import LabelSelector, Requirement
from schemas.values.codec import unpack
from schemas.values.refusals import BadSelector, RecordRefused
from schemas.values.wire import encode

keys = st.sampled_from(["app", "tier", "example.com/env"])
values = st.sampled_from(["", "a", "b", "c"])
labels = st.dictionaries(keys, values)
requirements = st.one_of(
    st.builds(
        Requirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(values, min_size=1, max_size=4).map(tuple),
    ),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.lists(requirements, max_size=4).map(lambda found: LabelSelector(tuple(found)))
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def holds(requirement, found):
    value = found.get(requirement.key)
    return {
        "In": value is not None and value in requirement.values,
        "NotIn": value is None or value not in requirement.values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[requirement.operator]


@given(selectors, labels)
def test_a_selector_matches_what_meets_each_requirement(selector, found):
    assert selector.matches(found) is all(holds(item, found) for item in selector.requirements)


@given(selectors)
def test_every_written_form_reads_back_equal(selector):
    assert LabelSelector.from_wire(unpack(encode(selector))) == selector
    assert LabelSelector.from_kubernetes(selector.to_kubernetes()) == selector


@given(st.lists(requirements, max_size=4), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(found, dice):
    again = [*found, *found]
    dice.shuffle(again)
    first, second = LabelSelector(tuple(found)), LabelSelector(tuple(again))

    assert first == second
    assert hash(first) == hash(second)
    assert encode(first) == encode(second)


@given(requirements, labels)
def test_not_in_is_the_opposite_of_in(requirement, found):
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    other = Requirement(requirement.key, opposite[requirement.operator], requirement.values)
    assert other.matches(found) is not requirement.matches(found)


@given(junk)
def test_any_wire_value_gives_a_selector_or_a_refusal(value):
    try:
        selector = LabelSelector.from_wire(value)
    except RecordRefused:
        return
    assert LabelSelector.from_wire(unpack(encode(selector))) == selector


@given(st.dictionaries(st.sampled_from(["matchLabels", "matchExpressions", "x"]), junk))
def test_any_mapping_gives_a_selector_or_a_refusal(form):
    try:
        selector = LabelSelector.from_kubernetes(form)
    except BadSelector:
        return
    assert LabelSelector.from_kubernetes(selector.to_kubernetes()) == selector
