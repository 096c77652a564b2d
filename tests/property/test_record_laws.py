"""Laws of all records: they come back as they went, older and newer ones are read, none other."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.records.asks import AnswerPart, AskFault
from schemas.records.records import RECORDS, DeltaBody, DeltaHead, Profile
from schemas.reports.link import Hello
from schemas.reports.reports import Report, ReportPart, Summary
from schemas.values import codec
from schemas.values.refusals import RecordRefused
from schemas.values.wire import INT_MAX, decode, encode
from tests.property import wire_records
from tests.property.examples import examples
from tests.property.test_wire_laws import any_bytes, packable
from tests.property.wire_records import array_of

kinds = {RECORDS[name]: strategy for name, strategy in wire_records.records.items()}
kinds |= {
    **wire_records.unsigned,
    Report: wire_records.reports,
    ReportPart: wire_records.later_parts,
    AskFault: wire_records.ask_faults,
    AnswerPart: wire_records.answers,
}
of_each_kind = pytest.mark.parametrize("kind", list(kinds), ids=lambda kind: kind.__name__)
others = (
    st.sampled_from([-1, 2**63, True, 1.0, None, "", b"", (), {}, (None,), {"": b""}]) | packable
)
ways = st.lists(st.integers(0, 9), min_size=1, max_size=4)


def changed(value, way, other):
    """The value with another one in the place where the way leads."""
    if not way or not value or not isinstance(value, (list, tuple, dict)):
        return other
    at, *rest = way
    if isinstance(value, dict):
        key = sorted(value)[at % len(value)]
        return {**value, key: changed(value[key], rest, other)}
    at %= len(value)
    return (*value[:at], changed(value[at], rest, other), *value[at + 1 :])


def refusal_of(kind, data):
    """Why the bytes are no such record; None if they are one."""
    try:
        decode(kind, data)
    except RecordRefused as error:
        return error.reason
    return None


@of_each_kind
@settings(max_examples=examples(30))
@given(data=st.data())
def test_a_record_comes_back_as_it_went(kind, data):
    record = data.draw(kinds[kind])
    assert decode(kind, encode(record)) == record


@of_each_kind
@settings(max_examples=examples(30))
@given(data=st.data())
def test_a_record_is_the_array_of_its_fields_with_sorted_maps(kind, data):
    array = array_of(data.draw(kinds[kind]))
    assert len(array) == len(msgspec.structs.fields(kind))
    assert codec.canonical(decodable(array)) == codec.pack(decodable(array))


def decodable(value):
    """The value with text in the place of bytes, which JSON does not have."""
    match value:
        case bytes():
            return value.hex()
        case dict():
            return {key: decodable(item) for key, item in value.items()}
        case list() | tuple():
            return [decodable(item) for item in value]
    return value


@of_each_kind
@settings(max_examples=examples(30))
@given(data=st.data(), more=st.lists(packable, max_size=3))
def test_fields_that_a_newer_program_adds_are_ignored(kind, data, more):
    record = data.draw(kinds[kind])
    assert decode(kind, codec.pack([*array_of(record), *more])) == record


@of_each_kind
@settings(max_examples=examples(30))
@given(data=st.data())
def test_fields_that_an_older_program_lacks_have_their_defaults(kind, data):
    fields = msgspec.structs.fields(kind)
    required = sum(field.required for field in fields)
    array = array_of(data.draw(kinds[kind]))
    found = decode(kind, codec.pack(array[:required]))
    assert array_of(found)[:required] == array[:required]
    assert [getattr(found, field.name) for field in fields[required:]] == [
        field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
        for field in fields[required:]
    ]
    with pytest.raises(RecordRefused, match=kind.__name__):
        decode(kind, codec.pack(array[: required - 1]))


@of_each_kind
@settings(max_examples=examples(50))
@given(data=st.data(), way=ways, other=others, length=st.just(99) | st.integers(0, 20))
def test_a_changed_record_is_read_or_refused_by_name(kind, data, way, other, length):
    value = changed(array_of(data.draw(kinds[kind])), way, other)
    packed = codec.pack(value[:length] if isinstance(value, (list, tuple)) else value)
    refusal = refusal_of(kind, packed)
    if refusal is not None:
        assert refusal.startswith(kind.__name__)
        return
    found = decode(kind, packed)
    assert decode(kind, encode(found)) == found


@of_each_kind
@settings(max_examples=examples(50))
@given(data=any_bytes)
def test_any_bytes_give_a_record_or_a_refusal(kind, data):
    refusal = refusal_of(kind, data)
    assert refusal is None or refusal.startswith(kind.__name__)


HELLO = array_of(Hello("r", "h", "i", 2, b"", 3))
SOURCE = ("a/B", "s", "", "n")
HEAD = [SOURCE, 1, "", "", b"", (), 0]
PROFILE = [SOURCE, 1, "", "", "d", "/emea", {}, {}, {}]
SELECTOR = [[("location", (("env", "In", ("a",)),))]]


def with_field(array, at, value):
    return [*array[:at], value, *array[at + 1 :]]


@pytest.mark.parametrize(
    ("kind", "array", "reason"),
    [
        (Hello, with_field(HELLO, 3, "2"), "Hello.sequence: Expected `int`, got `str`"),
        (Hello, with_field(HELLO, 3, -1), "Hello.sequence: Expected `int` >= 0"),
        (Hello, with_field(HELLO, 3, 2**63), "Hello.sequence: Expected `int` <= 9"),
        (Hello, with_field(HELLO, 3, True), "Hello.sequence: Expected `int`, got `bool`"),
        (Hello, with_field(HELLO, 3, 1.0), "Hello.sequence: Expected `int`, got `float`"),
        (Hello, with_field(HELLO, 11, 1), "Hello.farewell: Expected `bool`"),
        (Hello, with_field(HELLO, 4, "x"), "Hello.digest: Expected `bytes`"),
        (Hello, with_field(HELLO, 0, b"x"), "Hello.run: Expected `str`"),
        (Hello, with_field(HELLO, 7, [1]), "Hello.wants[0]: Expected `str`, got `int`"),
        (Hello, HELLO[:5], "Hello: Expected `array` of at least length 6, got 5"),
        (Hello, {}, "Hello: Expected `array`, got `object`"),
        (Summary, [{"a": -1}], "Summary.states[...]: Expected `int` >= 0"),
        (Summary, [{1: 1}], "Summary.states: Expected `str`, got `int`"),
        (Summary, [{}, {}, {}, [[0, "", 1]]], "Summary.exceptions[0]"),
        (Profile, with_field(PROFILE, 5, "emea"), "Profile.path: 'emea' is not a node path"),
        (Profile, with_field(PROFILE, 5, 3), "Profile.path: Expected `str`, got `int`"),
        (DeltaHead, with_field(HEAD, 0, ("\0", "", "", "")), "DeltaHead.source: a NUL"),
        (DeltaBody, [[["object", "zz", 1]], ()], "DeltaBody.content[0]: 'zz' is"),
        (
            DeltaHead,
            with_field(HEAD, 5, [["location", [["env", "In", [], "more"]]]]),
            "DeltaHead.alternatives[0].selector: selector.requirements[0]: Expected `array` of",
        ),
        (
            DeltaBody,
            [(), [[None, 1, "", "location", [["env", "Near", ["a"]]]]]],
            'DeltaBody.gates[0].selector: selector.requirements[0]: operator: "Near" is not',
        ),
    ],
)
def test_a_refusal_names_the_kind_and_the_field(kind, array, reason):
    assert refusal_of(kind, codec.pack(array)).startswith(reason)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x98\xa1\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
        encode(Hello("r", "h", "i", 2, b"", 3)) + b"\0",
        codec.pack([*HELLO, None])[:-1] + b"\x91" * 100_000 + b"\x90",
        b"\x90" * (codec.RECORD_MAX_BYTES + 1),
    ],
    ids=["empty", "no value", "no text", "claimed", "deep", "longer", "deep beyond", "too large"],
)
def test_bytes_that_are_no_value_are_refused(data):
    assert refusal_of(Hello, data).startswith("Hello: ")


def test_the_greatest_number_is_read_and_one_more_can_be_said():
    greatest = Hello("", "", "", INT_MAX, b"", 1)
    assert decode(Hello, encode(greatest)) == greatest
    beyond = Hello("", "", "", INT_MAX + 1, b"", 1)
    assert refusal_of(Hello, encode(beyond)).startswith("Hello.sequence")
