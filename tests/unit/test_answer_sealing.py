"""An answer is for who asked alone, and whatever comes in its place is a typed refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.content.answer_sealing import AnswerKey, sealed_answer
from schemas.values.refusals import RecordRefused

KEY, OTHER = AnswerKey(b"k" * 32), AnswerKey(b"o" * 32)


@given(st.binary(max_size=300))
def test_what_is_sealed_opens_with_the_key_of_its_question_alone(answer):
    sealed = sealed_answer(answer, KEY.public)
    assert KEY.open(sealed) == answer
    assert len(sealed) == len(answer) + 49
    with pytest.raises(RecordRefused, match="another question's key, or was altered"):
        OTHER.open(sealed)


@given(st.binary(min_size=1, max_size=40), st.integers(min_value=0))
def test_an_altered_answer_is_refused(answer, at):
    sealed = bytearray(sealed_answer(answer, KEY.public))
    sealed[1 + at % (len(sealed) - 1)] ^= 1
    with pytest.raises(RecordRefused):
        KEY.open(bytes(sealed))


@given(st.binary(max_size=100))
def test_any_bytes_are_an_answer_or_a_refusal(data):
    try:
        assert KEY.open(data) == data
    except RecordRefused:
        assert data.startswith(b"\xc1")


def test_a_question_without_key_is_answered_in_clear():
    assert sealed_answer(b"\x80", b"") == b"\x80"
    assert KEY.open(b"\x80") == b"\x80"


@pytest.mark.parametrize("key", [b"short", bytes(32), b"k" * 33])
def test_a_key_that_is_none_is_refused(key):
    with pytest.raises(RecordRefused, match="the key that the question brings"):
        sealed_answer(b"\x80", key)
