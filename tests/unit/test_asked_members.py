"""A command that waits for a centre of several members learns what became of who it asked."""

import asyncio
import json

import pytest

from leafcast.ask import session
from leafcast.ask.failures import CallFailed
from leafcast.ask.session import API_PREFIX, STANDING, Session
from leafcast.data_dir import DataDir
from relay.adapters.asking import QuestionUnanswered
from relay.adapters.clock import SystemClock


@pytest.fixture
def place(tmp_path):
    place = DataDir(tmp_path)
    with place.locked():
        yield place


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(session, "LOOK_SECONDS", 0.0)


def opened(place, standing, answer):
    """A session: `standing` is what members say, and `answer` what is asked else."""

    async def ask(subject, _question, seconds):
        if subject == API_PREFIX + STANDING:
            if standing is None:
                raise QuestionUnanswered(subject, nobody=True, seconds=seconds)
            return json.dumps({"result": standing}).encode()
        return await answer(subject, seconds)

    return Session(place, None, None, SystemClock(), ask)


async def never(_subject, _seconds):
    await asyncio.Event().wait()


async def soon(_subject, _seconds):
    for _ in range(20):
        await asyncio.sleep(0)
    return b'{"result": 1}'


def nobody(*, is_there):
    async def answer(subject, seconds):
        raise QuestionUnanswered(subject, nobody=not is_there, seconds=seconds)

    return answer


async def test_a_question_to_a_member_that_is_active_no_more_ends(place):
    asked = opened(place, {"role": "active", "activeSeconds": -1.0}, never)
    with pytest.raises(CallFailed, match="another member of the centre became active") as failure:
        await asked.call("apply")
    assert "whether apply was carried out is not known" in str(failure.value)


async def test_a_question_ends_that_was_lost_with_the_server_of_the_active_member(place):
    standing = {"role": "active", "activeSeconds": 60.0, "hearsSeconds": -1.0}
    with pytest.raises(CallFailed, match="or its server was started again; whe"):
        await opened(place, standing, never).call("apply")


@pytest.mark.parametrize(
    "standing",
    [
        None,
        {},
        {"activeSeconds": 60.0},
        {"activeSeconds": 60.0, "hearsSeconds": 60.0},
        {"silentSeconds": 60.0},
    ],
)
async def test_a_question_is_waited_for_as_long_as_nobody_else_became_active(place, standing):
    assert await opened(place, standing, soon).call("apply") == 1


@pytest.mark.parametrize(
    ("is_there", "said"),
    [
        (False, "no member is active since 12 s; accepted: nothing"),
        (True, "no member is active since 12 s; whether apply was carried out is not known"),
    ],
)
async def test_without_an_active_member_it_says_what_was_accepted(place, is_there, said):
    asked = opened(place, {"role": "standby", "silentSeconds": 12.3}, nobody(is_there=is_there))
    with pytest.raises(CallFailed, match=f"^{said}"):
        await asked.call("apply")


async def test_of_a_stream_that_takes_no_writes_it_names_the_server_and_the_remedy(place):
    standing = {"role": "active", "stuck": {"OWN": "lc.m2"}}
    said = "stream OWN, led by lc.m2, takes no writes; whether apply was carried out is not known"
    with pytest.raises(CallFailed, match=f"^{said}") as failure:
        await opened(place, standing, nobody(is_there=True)).call("apply")
    assert "start the process of that member anew" in str(failure.value)


async def test_a_centre_that_is_alone_says_what_it_said(place):
    with pytest.raises(CallFailed, match="the tree is not up yet"):
        await opened(place, None, nobody(is_there=False)).call("apply")
