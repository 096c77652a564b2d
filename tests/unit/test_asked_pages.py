"""Pages are asked for again where that may help, whoever walks down the tree for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leafcast.ask.destinations import destinations_where, nodes_below
from leafcast.ask.pages import ATTEMPTS
from leafcast.ask.session import CallFailed, Session
from leafcast.ask.upsynced import CopiesWanted, Unreached, copies_of_tree
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock
from tests.unit.test_hostile_child import child


class Clock(SystemClock):
    """Nobody waits."""

    async def sleep(self, seconds):
        pass


def session(*answers):
    """One whose tree says these, one after another: a word is a failure."""
    waiting = list(answers)

    async def ask(subject, question, seconds, _put):
        said = waiting.pop(0)
        if isinstance(said, str):
            said = {"error": {"code": said, "message": "not now"}}
        else:
            said = {"result": said}
        return json.dumps(said).encode()

    return Session(DataDir(Path("nowhere")), None, None, Clock(), ask), waiting


PAGES = (("s1", "s1"), ("s2", ""))
NOBODY = {"children": [], "next": ""}


@pytest.mark.parametrize("word", ["Busy", "NoAnswer", "Restarting"])
async def test_destinations_are_asked_for_again(word):
    asking, waiting = session(word, word, NOBODY)
    assert await destinations_where(asking, "p", "true", 5) == ([], [], False)
    assert not waiting


async def test_who_stays_silent_or_says_nonsense_is_named():
    asking, waiting = session(*["Busy"] * ATTEMPTS, NOBODY)
    assert await destinations_where(asking, "p", "true", 5) == ([], ["/"], False)
    assert waiting == [NOBODY]
    for answer in ("Unreachable", {"children": 7}):
        asking, _ = session(answer)
        assert await destinations_where(asking, "p", "true", 5) == ([], ["/"], False)


async def test_who_is_busy_is_asked_again_after_the_others_and_named_if_it_stays_so():
    one, two = ({"children": [child(name, "d")], "next": ""} for name in ("s1", "s2"))
    asking, waiting = session("Busy", one, two)
    found, silent = await nodes_below(asking, "p", ["/a", "/b"])
    assert ([node["path"] for node in found], silent, waiting) == (["/b/s1", "/a/s2"], [], [])
    asking, waiting = session("Busy", one, *["Busy"] * (ATTEMPTS - 1), NOBODY)
    found, silent = await nodes_below(asking, "p", ["/a", "/b"])
    assert ([node["path"] for node in found], silent, waiting) == (["/b/s1"], ["/a"], [NOBODY])


async def test_a_page_that_is_refused_once_is_followed_by_the_rest():
    pages = ({"children": [child(name, "d")], "next": after} for name, after in PAGES)
    asking, _ = session(next(pages), "Busy", *pages)
    found, silent = await nodes_below(asking, "p", ["/a"])
    assert ([node["path"] for node in found], silent) == (["/a/s1", "/a/s2"], [])


async def test_a_wrong_question_is_asked_once():
    asking, _ = session("BadArguments")
    with pytest.raises(CallFailed):
        await destinations_where(asking, "p", "1 +", 5)


async def test_copies_are_asked_for_as_often():
    asking, waiting = session(*["Busy"] * ATTEMPTS, NOBODY)
    with pytest.raises(Unreached):
        [_ async for _ in copies_of_tree(asking, CopiesWanted("", "configmaps"))]
    assert waiting == [NOBODY]
