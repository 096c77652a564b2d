"""A command that waits for a centre of several members learns what became of who it asked."""

import asyncio
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from leafcast.ask import session
from leafcast.ask.asked_space import VERB as SPACE
from leafcast.ask.failures import CallFailed
from leafcast.ask.session import API_PREFIX, STANDING, Session
from leafcast.ask.unanswered import CHANGE_NOTHING
from leafcast.changes.forms import APPLY, DELETE, LABEL, READ, RESTORE, WRITE
from leafcast.data_dir import MEMBER_FILE, DataDir
from relay.adapters.asking import QuestionUnanswered
from relay.adapters.clock import SystemClock
from relay.core.instant import Instant
from relay.space_errors import SpaceError

ROOT = Path(__file__).resolve().parents[2]


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

    async def ask(subject, _question, seconds, put=None):
        if subject == API_PREFIX + STANDING:
            if standing is None:
                raise QuestionUnanswered(subject, nobody=True, seconds=seconds)
            return json.dumps({"result": standing}).encode()
        return await answer(subject, seconds, put)

    return Session(place, None, None, SystemClock(), ask)


async def never(_subject, _seconds, _put):
    await asyncio.Event().wait()


async def soon(_subject, _seconds, _put):
    for _ in range(20):
        await asyncio.sleep(0)
    return b'{"result": 1}'


def of_members(asked, clock=None):
    """The same, in the data directory of a member."""
    return replace(asked, has_members=True, clock=clock or asked.clock)


async def must_not(subject, _seconds, _put):
    raise AssertionError(f"{subject} was asked")


def nobody(*, is_there):
    async def answer(subject, seconds, _put):
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


async def test_a_question_ends_where_nobody_is_active_for_long(place, monkeypatch):
    monkeypatch.setattr(session, "CALL_SECONDS", 0.01)
    said = "^no member is active since 60 s; whether apply was carried out is not known"
    with pytest.raises(CallFailed, match=said):
        await opened(place, {"role": "standby", "silentSeconds": 60.0}, never).call(
            "apply", seconds=600.0
        )


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


class Seconds:
    """A clock that a test moves."""

    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return Instant(self.seconds, 0)

    async def sleep(self, seconds):
        await asyncio.sleep(0)


def becoming(place, clock, answer, heard_at, answering_takes=0.0):
    """A session with a member that is active since 0 and hears since `heard_at`."""

    async def ask(subject, _question, seconds, put=None):
        if subject == API_PREFIX + STANDING:
            hears = max(0.0, clock.seconds - heard_at)
            standing = {"activeSeconds": clock.seconds + 60, "hearsSeconds": hears}
            clock.seconds += answering_takes
            return json.dumps({"result": standing}).encode()
        return await answer(subject, seconds, put)

    return Session(place, None, None, clock, ask)


async def test_a_question_that_went_out_again_once_the_member_heard_is_waited_for(place):
    clock = Seconds()

    async def answer(subject, seconds, put):
        for clock.seconds in (0.0, 3.0, 6.0):
            put()
            await asyncio.sleep(0)
        return await soon(subject, seconds, put)

    assert await becoming(place, clock, answer, heard_at=6.0).call("apply") == 1


async def test_while_nobody_is_active_who_waits_looks_more_often(place):
    clock, pauses = Seconds(), []

    async def sleep(seconds):
        pauses.append(seconds)
        await asyncio.sleep(0)

    clock.sleep = sleep
    asked = opened(place, {"role": "standby", "silentSeconds": 4.0}, soon)
    assert await replace(asked, clock=clock).call("apply") == 1
    first, second, *_ = pauses
    assert (first, second) == (session.LOOK_SECONDS, session.ACTIVE_LOOK_SECONDS)


async def test_a_slow_word_of_the_members_makes_no_question_lost(place):
    clock = Seconds()

    async def answer(subject, seconds, put):
        clock.seconds = 6.0
        put()
        return await soon(subject, seconds, put)

    asked = becoming(place, clock, answer, heard_at=6.0, answering_takes=0.5)
    assert await asked.call("apply") == 1


async def test_a_member_that_is_active_and_hears_not_yet_is_asked_again(place):
    clock, asked = Seconds(), []

    async def answer(subject, seconds, put):
        asked.append(seconds)
        put()
        clock.seconds += 5.0
        if len(asked) < 3:
            raise QuestionUnanswered(subject, nobody=True, seconds=seconds)
        return b'{"result": 1}'

    assert await becoming(place, clock, answer, heard_at=10.0).call("apply", seconds=15) == 1
    assert asked == [15, 10, 5]


async def test_a_member_that_hears_never_is_asked_no_longer_than_one_wanted_to_wait(place):
    clock = Seconds()

    async def answer(subject, seconds, put):
        put()
        clock.seconds += 5.0
        raise QuestionUnanswered(subject, nobody=True, seconds=seconds)

    with pytest.raises(CallFailed, match="the tree is not up yet"):
        await becoming(place, clock, answer, heard_at=1e9).call("apply", seconds=15)
    assert clock.seconds == 15.0


async def test_a_question_that_nobody_had_as_the_member_came_to_hear_is_not_lost(place):
    clock = Seconds()

    async def answer(subject, seconds, put):
        # It heard between two of these; the look falls before the second.
        for clock.seconds, turns in ((3.0, 1), (3.08, 1), (3.1, 0)):
            if clock.seconds != 3.08:
                put()
            for _ in range(turns):
                await asyncio.sleep(0)
        return await soon(subject, seconds, put)

    assert await becoming(place, clock, answer, heard_at=3.05).call("apply") == 1


async def test_nothing_is_asked_where_no_member_is_active_and_that_is_certain(place):
    asked = opened(place, {"role": "none", "silentSeconds": 60.0}, must_not)
    said = "^no member is active since 60 s; accepted: nothing"
    with pytest.raises(CallFailed, match=said):
        await of_members(asked).call("apply")


async def test_who_asks_as_a_member_becomes_active_waits_for_it(place):
    clock, standings = Seconds(), [None, {"silentSeconds": 4.0}, {"silentSeconds": 9.0}]

    async def ask(subject, question, _seconds, _put=None):
        if subject == API_PREFIX + STANDING:
            now = standings.pop(0) if standings else {"activeSeconds": 0.0}
            if now is None:
                raise QuestionUnanswered(subject, nobody=False, seconds=1.0)
            return json.dumps({"result": now}).encode()
        assert not standings
        return b'{"result": 1}'

    assert await Session(place, None, None, clock, ask, has_members=True).call("apply") == 1


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        (None, "no member of the centre said within 15 s that it is active; accepted: nothing"),
        ({"silentSeconds": 9.0}, "no member is active since 9 s; accepted: nothing"),
    ],
)
async def test_what_was_never_asked_was_not_accepted(place, standing, said):
    clock = Seconds()
    clock.sleep = partial(passing, clock)
    with pytest.raises(CallFailed, match=f"^{said}"):
        # To judge a batch takes up to ten minutes: nobody waits so long to be heard at all.
        await of_members(opened(place, standing, must_not), clock).call("apply", seconds=600.0)
    assert clock.seconds == session.CALL_SECONDS


async def test_a_question_ends_once_no_member_says_any_more_how_it_stands(place, monkeypatch):
    monkeypatch.setattr(session, "LOOK_SECONDS", 2.0)
    clock, standings = Seconds(), [{"activeSeconds": 60.0, "hearsSeconds": 60.0}]
    clock.sleep = partial(passing, clock)

    async def ask(subject, _question, seconds, _put=None):
        if subject == API_PREFIX + STANDING:
            if not standings:
                raise QuestionUnanswered(subject, nobody=False, seconds=seconds)
            return json.dumps({"result": standings.pop()}).encode()
        return await never(subject, seconds, _put)

    asked = Session(place, None, None, clock, ask, has_members=True)
    said = "^no member of the centre said for 1[67] s how it stands; whether apply was"
    with pytest.raises(CallFailed, match=said):
        await asked.call("apply", seconds=600.0)


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (APPLY, "accepted: nothing"),
        ("status", "accepted: nothing"),
        (WRITE, "whether the change was carried out is not known"),
        ("node-revoke", "whether node-revoke was carried out is not known"),
    ],
)
async def test_what_only_asks_was_certainly_not_accepted(place, verb, said):
    asked = opened(place, {"role": "active", "activeSeconds": -1.0}, never)
    with pytest.raises(CallFailed, match=f"another member of the centre became active; {said}"):
        await asked.call(verb)


def test_the_verbs_that_change_nothing_are_those_that_the_daemon_has():
    text = "".join(file.read_text() for file in (ROOT / "leafcast").rglob("*.py"))
    served = {
        *re.findall(r'@verb\("([a-z-]+)"\)', text),
        APPLY,
        DELETE,
        LABEL,
        READ,
        RESTORE,
        SPACE,
    }
    assert served >= CHANGE_NOTHING


async def passing(clock, seconds):
    clock.seconds += seconds
    await asyncio.sleep(0)


async def test_who_waits_for_a_member_learns_that_its_connection_was_lost(place):
    async def ask(subject, _question, seconds, _put=None):
        raise QuestionUnanswered(subject, nobody=False, seconds=seconds, cut=True)

    lost, clock = "^the connection to the centre's server was lost; ", Seconds()
    asked = Session(place, None, None, clock, ask, has_members=True)
    with pytest.raises(CallFailed, match=f"{lost}accepted: nothing"):
        await asked.call("apply", seconds=600.0)
    with pytest.raises(CallFailed, match=f"{lost}whether apply was carried out is not known"):
        await replace(asked, has_members=False).call("apply", seconds=600.0)
    assert clock.seconds == 0


@pytest.mark.parametrize("form", ["trios", "member"])
def test_a_data_directory_says_whether_its_centre_has_members(place, form):
    assert not place.has_members()
    if form == "trios":
        place.write_tree({"members": 3})
    else:
        (place.folder / MEMBER_FILE).write_text("{}")
    assert place.has_members()


def test_who_asks_a_member_of_a_relay_waits_for_no_member_of_the_centre(place):
    (place.folder / MEMBER_FILE).write_text("{}")
    assert place.asks_members()
    place.write_admin({"url": "nats://127.0.0.1:1", "seed": "s", "node": "/region-1"})
    assert not place.asks_members()


async def test_the_members_are_shown_while_none_of_them_is_active(place):
    members = [{"name": "m1", "role": "standby"}]
    standing = {"role": "standby", "silentSeconds": 4.5, "members": members}
    asked = of_members(opened(place, standing, must_not))
    found = await asked.unled()
    assert found["silentSeconds"] == 4.5
    assert found["nodes"] == [{"path": "/", "is_edge": False, "members": members}]
    for said in (None, {"activeSeconds": 3.0}, {"silentSeconds": 4.5}):
        assert await of_members(opened(place, said, must_not)).unled() == {}
    assert await opened(place, standing, must_not).unled() == {}


async def test_a_question_that_is_late_says_what_was_accepted(place):
    late = nobody(is_there=True)
    said = "^the tree did not answer node-revoke within 15 s; whether node-revoke was carried out"
    with pytest.raises(CallFailed, match=said):
        await opened(place, None, late).call("node-revoke")
    with pytest.raises(CallFailed, match="did not answer tree within 15 s; accepted: nothing; ask"):
        await opened(place, None, late).call("tree")


@pytest.mark.parametrize(
    ("has_members", "remedy"),
    [(True, "doctor, leafcast tree --members"), (False, "try again, and see: leafcast doctor")],
)
def test_what_a_space_does_not_do_now_comes_with_a_remedy(place, has_members, remedy):
    asked = replace(opened(place, None, never), has_members=has_members)
    assert asked.why(SpaceError("ServiceUnavailable", "it is silent")).endswith(remedy)
