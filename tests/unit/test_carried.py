"""What travels along with a record comes off again, and changes nothing of the record."""

from hypothesis import given
from hypothesis import strategies as st

from schemas.content.carried import CARRIED_MAX_BYTES, with_carried, without_carried
from schemas.records.signing import Envelope, decode_envelope
from schemas.values import codec
from schemas.values.identity import ContentHash, KeyId, random_id

ADDRESSES = st.binary(min_size=32, max_size=32).map(lambda address: ContentHash(address.hex()))
VALUES = st.lists(st.tuples(ADDRESSES, st.binary(max_size=300)), max_size=5)


def envelope(payload, body=None):
    return Envelope("delta", KeyId(random_id(b"k" * 16)), payload, b"s" * 64, body)


@given(st.binary(max_size=400), st.none() | st.binary(max_size=400), VALUES)
def test_what_is_carried_comes_off_and_leaves_the_record_as_it_was(payload, body, values):
    record = envelope(payload, body)
    message = with_carried(record.encode(), values)
    assert without_carried(message) == (record.encode(), tuple(values))
    assert decode_envelope(message) == record


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_come_apart_without_a_refusal(head, tail):
    for data in (head, b"\x97" + head, envelope(head).encode() + tail):
        record, carried = without_carried(data)
        assert record == data or carried == () or data.startswith(b"\x97")
    laden = b"\x97" + envelope(head).encode()[1:] + tail
    record, _ = without_carried(laden)
    assert record in (laden, envelope(head).encode())


def test_what_is_carried_wrongly_or_too_much_is_left_out():
    record = envelope(b"payload").encode()
    large = [[bytes(32), bytes(CARRIED_MAX_BYTES + 1)]]
    huge = [[bytes(32), bytes(64 * CARRIED_MAX_BYTES)]]
    for carried in (large, huge, [["a", b"v"]], [[b"short", b"v"]], 7, [[bytes(32), b"v", 1]]):
        assert without_carried(b"\x97" + record[1:] + codec.pack(carried)) == (record, ())
