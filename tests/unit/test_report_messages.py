"""The progress goes along with the last report of a flush, and nothing is lost by that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.reports.link import Progress
from schemas.reports.reports import (
    PART_MAX_BYTES,
    Report,
    Summary,
    decode_report,
    messages_of,
    said_in,
)
from schemas.values.refusals import RecordRefused
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import encode

PROGRESS = encode(Progress("run", "parent", 7, bytes(16)))
REPORT = encode(Report("0" * 32, 0, "run", 1, 1, False, 0, Summary()))


def heard(messages):
    return [said for slot, data in messages.items() for said in said_in(slot, data)]


def test_a_progress_at_the_end_goes_along_with_the_report_before_it():
    said = {"a": REPORT, "b": REPORT, PROGRESS_KEY: PROGRESS}
    messages = messages_of(said)
    assert list(messages) == ["a", "b"]
    assert heard(messages) == list(said.items())


@pytest.mark.parametrize("last", [b"", bytes(PART_MAX_BYTES)], ids=["emptied", "full"])
def test_a_progress_stays_alone_beside_what_can_take_nothing_along(last):
    said = {"a": REPORT, "b": last, PROGRESS_KEY: PROGRESS}
    assert messages_of(said) == said


@given(st.dictionaries(st.sampled_from(["a", "b", PROGRESS_KEY]), st.just(REPORT) | st.just(b"")))
def test_whatever_is_said_is_heard_in_the_same_order(said):
    assert heard(messages_of(said)) == list(said.items())


@given(st.binary(max_size=40).map(lambda data: b"\x92" + data) | st.binary(max_size=40))
def test_whatever_lies_in_a_slot_is_read_or_refused(data):
    for slot, said in said_in("a", data):
        if slot == "a":
            with pytest.raises(RecordRefused):
                decode_report(said)
