"""What servers, children and nodes elsewhere answer is read with care, and in little room."""

import subprocess
import sys
import tracemalloc
from contextlib import suppress

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg

from controllers.core.status.generations import HubContent
from controllers.core.status.status import singleton
from leafcast.ask.decode import BadAnswer, read_objects
from relay.adapters.jetstream.connection import JetStreamRefused, checked
from relay.adapters.jetstream.delivery import NO_COUNT, count_of, place_of
from relay.adapters.jetstream.publish import sequence_of
from relay.adapters.jetstream.uplink import mailbox_info
from relay.adapters.spaces.embedded_space import key_from
from relay.objects.stored_object import decode as decode_object
from relay.ports import BusBroken
from relay.shell.asker import AskFailed, open_answer
from relay.space_errors import SpaceError
from schemas.content.answer_sealing import AnswerKey, sealed_answer
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count, ObjectResult, Summary
from schemas.values import codec
from schemas.values.codec import from_json
from schemas.values.refusals import BlobRefused, CodecError
from tests.fuzz.openers import ROOT

KEY = AnswerKey(b"a" * 32)
AT = ObjectKey("", "configmaps", "n", "a")


def said(data: bytes) -> Msg:
    return Msg(Client(), data=data)


@given(st.binary(max_size=60))
@example(b'{"delivered":{}}')
@example(b'{"delivered":3,"num_pending":1}')
@example(b'{"delivered":{"consumer_seq":"3"},"num_pending":-1}')
@example(b'{"error":"no"}')
@example(b'{"error":[1]}')
@example(b'{"seq":"x"}')
@example(b'{"seq":' + b"9" * 5000 + b"}")
@example(b"[" * 100_000)
def test_a_parents_server_that_answers_anything_is_a_broken_bus_at_most(data):
    for read in (
        lambda: checked("up.info", said(data)),
        lambda: mailbox_info(said(data)),
        lambda: sequence_of("lc.emea._stat.k", said(data)),
    ):
        with suppress(BusBroken):
            read()


def test_an_answer_that_is_as_it_should_be_is_read():
    info = b'{"delivered":{"consumer_seq":3},"num_pending":2}'
    assert mailbox_info(said(info)) == (3, 2, False)
    assert sequence_of("s", said(b'{"stream":"STAT", "seq":7}')) == 7
    assert sequence_of("s", said(b'{"stream":"STAT"}')) == 0
    with pytest.raises(JetStreamRefused, match="wrong"):
        checked("v", said(b'{"error":{"err_code":3,"description":"wrong"}}'))


# Of a subject it is one token, which has no dot: with dots in it, another one would be the count.
@given(st.text(st.characters(exclude_characters=".", exclude_categories=["Cs"]), max_size=25))
@example("²")
@example("١٢")
@example("1_0")
@example("-1")
@example("9" * 5000)
def test_a_count_is_what_servers_write_and_nothing_else(text):
    found = count_of(text)
    assert found == (int(text) if text in map(str, range(10_000)) else found)
    assert found == NO_COUNT or (0 <= found < 10**19 and text.isascii())
    assert place_of(f"$JS.ACK.MAIL.ea.1.{text}.3.4.5") is None or found >= 0
    assert place_of(f"$JS.ACK.MAIL.ea.1.2.3.4.5.{text}") is None


@pytest.mark.parametrize("text", [b"[" * 100_000, b"1e999", b"NaN", b"\xff", b"9" * 5000, b""])
def test_json_that_hurts_is_refused(text):
    with pytest.raises(CodecError):
        from_json(text)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {},
        {"objects": [], "next": "n/b"},
        {"objects": [{"metadata": {}}], "next": "n/a"},
        {"objects": [{"metadata": {}}], "next": 3},
        {"objects": [{"metadata": []}], "next": ""},
        {"objects": 1, "next": ""},
    ],
    ids=str,
)
def test_a_page_of_objects_that_does_not_lead_on_is_no_answer(answer):
    with pytest.raises(BadAnswer):
        read_objects(answer, "n/a")


def test_objects_follow_each_other_by_namespace_and_name():
    page = [{"metadata": {}}]
    assert read_objects({"objects": page, "next": "a-b/x"}, "a/z") == (page, "a-b/x")


@pytest.mark.parametrize("status", [{"a": b"x"}, {"a": {b"k": 1}}, {"a": float("nan")}, [1], 3])
def test_a_returned_status_that_no_space_would_take_is_none(status):
    result = ObjectResult(AT, 1, "d", msgpack.packb(status))
    asking = [(Count(Summary({"synced": 1}), exact=True), [result])]
    assert singleton(AT, asking, HubContent(1)).status is None


@pytest.mark.parametrize("path", ["objects", "objects.a.b", "objects.a.b.c.=", "objects.a.b.c.=z"])
def test_a_strangers_key_in_a_bucket_is_refused(path):
    with pytest.raises(SpaceError):
        key_from(path)
    with pytest.raises(CodecError):
        decode_object(codec.pack([1, {}, {}, 7]))


def test_a_reference_of_less_than_nothing_is_refused():
    with pytest.raises(BlobRefused):
        Reference("object", "0" * 64, -1)


def test_what_is_longer_than_a_record_is_counted_before_it_is_opened(monkeypatch):
    monkeypatch.setattr(codec, "VALUES_MAX", 100_000)

    def opened(data):
        tracemalloc.start()
        try:
            with pytest.raises(AskFailed, match="values"):
                open_answer(data, KEY)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    count = 2 * codec.RECORD_MAX_BYTES
    for value in (b"\x80", b"\xa1a"):
        assert opened(b"\xdd" + count.to_bytes(4, "big") + value * count) < 1_000_000
    # Few values may be long.
    data = bytes(codec.RECORD_MAX_BYTES)
    value = codec.pack({"data": data, "text": "a" * 70_000, "n": 2**63})
    for answer in (value, sealed_answer(value, KEY.public)):
        assert open_answer(answer, KEY)["data"] == data


BOMB = """
import resource
from schemas.values import codec
from schemas.records.asks import ANSWER_MAX_BYTES
{reading}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for bomb in {bombs}:
    try:
        read(bomb)
    except ValueError:
        pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
NESTED = 'b"\\xdd\\x00\\x0f\\x00\\x00" * (size // 5), b"\\xdc\\xff\\xff" * (size // 3)'
FLAT = (
    'b"\\xdd" + (size - 9).to_bytes(4, "big") + b"\\x80" * (size - 5),'
    ' b"\\xdd" + (size - 9).to_bytes(4, "big") + b"\\x90" * (size - 5)'
)


@pytest.mark.parametrize(
    ("reading", "most_kb"),
    [
        ("from schemas.reports.reports import decode_report as read; size = 65_536", 40_000),
        ("from schemas.records.signing import decode_envelope as read; size = 1_048_576", 120_000),
        ("read = lambda data: codec.unpack(data, ANSWER_MAX_BYTES); size = 29_000_000", 200_000),
    ],
    ids=["a report", "a record", "an answer"],
)
def test_a_bomb_of_the_largest_size_that_is_read_takes_a_bounded_process(reading, most_kb):
    script = BOMB.format(reading=reading, bombs=f"[{NESTED}, {FLAT}]")
    told = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(told.stdout) < most_kb, "kilobytes"
