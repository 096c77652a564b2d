"""Laws of the code that is written for each kind: it reads as the checked one does, or not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import codec, shape
from schemas.records import RECORDS
from schemas.reports import Report, ReportPart
from schemas.shape import ShapeError, from_array, to_array
from schemas.shape_code import REFUSALS, reader
from tests.property import wire_records as wire
from tests.property.test_wire_laws import packable

kinds = {RECORDS[name]: strategy for name, strategy in wire.records.items()}
kinds |= {**wire.unsigned, Report: wire.reports, ReportPart: wire.later_parts}
of_each_kind = pytest.mark.parametrize("kind", list(kinds), ids=lambda kind: kind.__name__)
others = (
    st.sampled_from([-1, 2**63, True, 1.0, None, "", b"", (), {}, (None,), {"": b""}]) | packable
)
ways = st.lists(st.integers(0, 9), min_size=1, max_size=4)


def said(value):
    """What comes of a value once it went over the wire."""
    return codec.unpack(codec.pack(value))


def changed(value, way, other):
    """The value with another one in the place where the way leads."""
    if not way or not value or not isinstance(value, (tuple, dict)):
        return other
    at, *rest = way
    if isinstance(value, dict):
        key = sorted(value)[at % len(value)]
        return {**value, key: changed(value[key], rest, other)}
    at %= len(value)
    return (*value[:at], changed(value[at], rest, other), *value[at + 1 :])


def read_by(decode, *given):
    """What a reader makes of it, so that True is not 1 nor a tuple a list; None if it refuses."""
    try:
        return repr(decode(*given))
    except REFUSALS:
        return None


def refusal_of(kind, value):
    try:
        from_array(kind, value, "here")
    except ShapeError as error:
        return error
    return None


@of_each_kind
@settings(max_examples=30)
@given(data=st.data())
def test_what_a_program_of_this_version_says_goes_the_short_way(kind, data):
    record = data.draw(kinds[kind])
    assert reader(kind)(said(to_array(record))) == record


@of_each_kind
@given(data=st.data(), way=ways, other=others, length=st.just(99) | st.integers(0, 20))
def test_the_short_way_comes_to_what_the_checked_one_does_or_to_nothing(
    kind, data, way, other, length
):
    record = data.draw(kinds[kind])
    value = said(changed(said(to_array(record)), way, other)[:length])
    checked = read_by(shape._record(kind), value, "here")
    assert read_by(reader(kind), value) in (checked, None)
    assert read_by(from_array, kind, value) == checked
    refusal = refusal_of(kind, value)
    assert (refusal is None) == (checked is not None)
    assert refusal is None or refusal.path.startswith("here")
