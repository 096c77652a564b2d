"""What a daemon follows for a command arrives there as it was told, and long questions whole."""

import json
from pathlib import Path
from string import ascii_lowercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcast.ask.api import Api
from leafcast.ask.long_questions import (
    FORGOTTEN_SECONDS,
    PART_CHARACTERS,
    QUESTION_CHARACTERS_MAX,
    SILENT_SECONDS,
    WAITING_CHARACTERS_MAX,
    WAITING_MAX,
    LongQuestions,
    PartsLost,
    TooManyQuestions,
    parts_of,
)
from leafcast.ask.long_questions import VERB as PART
from leafcast.ask.session import API_PREFIX, CallFailed, Session
from leafcast.ask.space_events import PIECE_BYTES, EventReader, forms_of
from leafcast.data_dir import DataDir
from relay.adapters.asking import TooLong
from relay.space_port import (
    Bookmark,
    Interest,
    Kind,
    KindsServed,
    ObjectChange,
    ObjectsListed,
    ServerUnanswered,
    Synced,
    Unserved,
)
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from tests.contract.spaces import HandClock, SeededDice
from tests.doubles.memory_space import MemorySpace

words = st.text(ascii_lowercase, min_size=1, max_size=4)
keys = st.builds(ObjectKey, words, words, words, words)
objects = st.dictionaries(words, st.recursive(st.none() | words, st.lists, max_leaves=4))
selectors = st.none() | st.dictionaries(words, words).map(
    lambda labels: LabelSelector.from_kubernetes({"matchLabels": labels})
)
interests = st.builds(Interest, words, words, selectors, st.booleans(), words, words)
kinds = st.builds(
    Kind,
    words,
    words,
    words,
    words,
    st.booleans(),
    st.lists(words).map(tuple),
    st.frozensets(words),
    st.booleans(),
)
events = st.one_of(
    st.builds(KindsServed, st.lists(kinds).map(tuple)),
    st.builds(ObjectsListed, st.none() | interests, st.dictionaries(keys, objects), words),
    st.builds(
        ObjectChange, st.sampled_from(["added", "modified", "deleted"]), keys, objects, words
    ),
    st.builds(Unserved, interests, words, words),
    st.builds(ServerUnanswered, words),
    st.builds(Synced, st.none() | st.frozensets(interests)),
    st.builds(Bookmark, words),
)


@given(st.lists(events))
def test_events_are_read_as_they_were_told(told):
    forms = [form for event in told for form in forms_of(event)]
    reader = EventReader()
    read = [reader.read(form) for form in json.loads(json.dumps(forms))]
    assert [event for event in read if event is not None] == told


def test_a_listing_that_no_answer_holds_comes_in_pieces():
    large = {"data": "x" * (PIECE_BYTES // 3)}
    listed = ObjectsListed(None, {ObjectKey("", "c", "", str(at)): large for at in range(10)}, "7")
    forms = list(forms_of(listed))
    assert len(forms) == 5
    assert all(len(json.dumps(form)) < 2 * PIECE_BYTES for form in forms)
    reader = EventReader()
    assert [reader.read(form) for form in forms] == [None] * 4 + [listed]


@given(st.integers(1, 3 * PART_CHARACTERS))
def test_a_long_question_is_put_together_once_its_last_part_came(size):
    question = "".join(f"{at:07}" for at in range(size // 7 + 1))
    taken = LongQuestions()
    *early, last = [
        taken.take(part["name"], part["at"], part["parts"], part["text"], 0.0)
        for part in parts_of("space", question, "a")
    ]
    assert early == [None] * len(early)
    assert last == question


def test_a_part_that_is_missing_or_comes_twice_loses_the_question():
    taken = LongQuestions()
    assert taken.take("a", 0, 3, "x", 0.0) is None
    with pytest.raises(PartsLost):
        taken.take("a", 2, 3, "z", 0.0)
    with pytest.raises(PartsLost):
        taken.take("a", 1, 3, "y", 0.0)
    assert taken.take("a", 0, 2, "x", 0.0) is None
    assert taken.take("a", 1, 2, "y", 0.0) == "xy"


def test_a_question_of_which_nothing_comes_for_long_is_given_up():
    taken = LongQuestions()
    assert taken.take("slow", 0, 3, "x", 0.0) is None
    assert taken.take("killed", 0, 3, "x", 0.0) is None
    assert taken.take("slow", 1, 3, "y", FORGOTTEN_SECONDS) is None
    taken.forget(FORGOTTEN_SECONDS + 1)
    assert list(taken._waiting) == ["slow"]
    assert taken.take("slow", 2, 3, "z", 2 * FORGOTTEN_SECONDS) == "xyz"
    assert taken.take("gone", 0, 2, "x", 0.0) is None
    with pytest.raises(PartsLost):
        taken.take("gone", 1, 2, "y", FORGOTTEN_SECONDS + 1)


@pytest.mark.parametrize("size", [1, QUESTION_CHARACTERS_MAX])
def test_a_newcomer_is_refused_unless_another_fell_silent(size):
    taken = LongQuestions()
    most = WAITING_MAX if size == 1 else WAITING_CHARACTERS_MAX // size
    for at in range(most):
        assert taken.take(f"q{at}", 0, 2, "x" * size, float(at > 0)) is None
    with pytest.raises(TooManyQuestions):
        taken.take("new", 0, 2, "x", 1.0)
    assert taken.take("new", 0, 2, "x", SILENT_SECONDS) is None
    with pytest.raises(PartsLost):
        taken.take("q0", 1, 2, "y", SILENT_SECONDS)
    assert taken.take("new", 1, 2, "y", SILENT_SECONDS) == "xy"


@pytest.mark.parametrize(
    "wrong",
    [{"name": 7}, {"verb": None}, {"at": "0"}, {"parts": 1.5}, {"text": ["x"]}, {"more": 1}],
    ids=str,
)
async def test_what_is_no_part_of_a_question_is_refused(wrong):
    part = {"name": "a", "verb": "space", "at": 0, "parts": 2, "text": "x", **wrong}
    api = Api()
    for question in (part, list(part)):
        answer = json.loads(await api.answer(API_PREFIX + PART, json.dumps(question).encode()))
        assert answer["error"]["code"] == "Invalid"
    assert not api._long._waiting


async def test_what_a_killed_command_said_goes_with_the_next_question_of_anybody():
    now = 0.0
    api = Api(lambda: now)
    part = {"name": "a", "verb": "space", "at": 0, "parts": 2, "text": "x"}
    await api.answer(API_PREFIX + PART, json.dumps(part).encode())
    assert api._long._waiting
    now = FORGOTTEN_SECONDS + 1
    await api.answer(API_PREFIX + "anything", b"{}")
    assert not api._long._waiting


def test_all_parts_that_wait_have_a_bound_and_silent_ones_go(monkeypatch):
    monkeypatch.setattr("leafcast.ask.long_questions.WAITING_CHARACTERS_MAX", 5)
    taken = LongQuestions()
    for name in "ab":
        assert taken.take(name, 0, 3, "xx", 0.0) is None
    with pytest.raises(TooManyQuestions):
        taken.take("c", 0, 3, "xx", 0.0)
    assert list(taken._waiting) == ["a", "b"]
    assert taken.take("b", 1, 3, "yy", SILENT_SECONDS) is None
    assert list(taken._waiting) == ["b"], "not the one that goes on"
    assert taken.take("b", 2, 3, "zzzzz", SILENT_SECONDS) == "xxyyzzzzz"


async def test_a_question_that_no_parts_hold_is_told_of_with_its_bound():
    async def ask(_, question, *__):
        raise TooLong(len(question), 1_048_576)

    space = MemorySpace(HandClock(), SeededDice())
    session = Session(DataDir(Path("nowhere")), space, space, HandClock(), ask)
    with pytest.raises(CallFailed, match=f"at most {QUESTION_CHARACTERS_MAX} are taken"):
        await session.call("apply-judge", batch="x" * QUESTION_CHARACTERS_MAX)
