"""What the page has done: only if it may, only what a person saw, only for its own pages."""

import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from leafcast.ask.failures import CallFailed
from leafcast.ui.acts import Act, NoSuchAct, TreeActs, act, read_act
from leafcast.ui.more_rows import request_rows, rollout_acts
from tests.doubles.page_scenes import hostile_facts, troubled_facts
from tests.page_client import let_in

pytestmark = pytest.mark.timeout(60)

ACT = "/api/v1/act"
PAUSE = act("rollout-pause", rollout="shop")


class Done:
    """Notes what is to be done."""

    def __init__(self):
        self.commands = []
        self.fails = None

    async def do(self, wanted: Act) -> str:
        if self.fails is not None:
            raise self.fails
        self.commands.append(wanted.command)
        return "it is so\x1b[2J"


@asynccontextmanager
async def asked(client, form, **headers):
    said = {"origin": client.base, "content-type": "application/json"}
    said |= {"x_leafcast_act": client.act} | headers
    said = {name: value for name, value in said.items() if value}
    async with client.asked(ACT, "POST", json.dumps(form), **said) as answer:
        yield answer


async def test_what_a_person_said_yes_to_is_done_once():
    acts = Done()
    async with let_in(troubled_facts(), acts) as client, asked(client, PAUSE) as answer:
        assert answer.status == 200
        assert await answer.json() == {"done": "it is so[2J", "command": PAUSE["command"]}
    assert acts.commands == ["leafcast rollout pause shop"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": ""}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"x_leafcast_act": ""}, 403),
        ({"x_leafcast_act": "00" * 32}, 403),
        ({"cookie": "other=1"}, 401),
        ({"content-type": "text/plain"}, 400),
    ],
)
async def test_what_another_page_or_server_sends_is_not_done(headers, status):
    acts = Done()
    async with (
        let_in(troubled_facts(), acts) as client,
        asked(client, PAUSE, **headers) as answer,
    ):
        assert answer.status == status
    assert acts.commands == []


async def test_nothing_is_done_or_offered_unless_it_is_allowed():
    async with let_in(troubled_facts()) as client:
        assert client.act == ""
        async with asked(client, PAUSE, x_leafcast_act="00") as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (403, "ReadOnly")
        async with client.asked("/api/v1/requests") as answer:
            assert {row["act"] for row in (await answer.json())["view"]["rows"]} == {None}
        async with client.asked("/api/v1/rollout?name=shop") as answer:
            assert (await answer.json())["view"]["head"]["acts"] == []


async def test_each_offer_is_done_as_its_row_says():
    acts = Done()
    async with let_in(troubled_facts(), acts) as client:
        async with client.asked("/api/v1/requests") as answer:
            rows = (await answer.json())["view"]["rows"]
        for row in rows:
            assert row["act"]["command"] == row["command"]
            async with asked(client, row["act"]) as answer:
                assert answer.status == 200
        async with client.asked("/api/v1/rollout?name=billing") as answer:
            offers = (await answer.json())["view"]["head"]["acts"]
    assert acts.commands == [row["command"] for row in rows]
    assert [it["name"] for it in offers] == ["rollout-approve", "rollout-pause", "rollout-abort"]


@pytest.mark.parametrize(
    "form",
    [
        {**PAUSE, "command": "leafcast rollout pause other"},
        {"name": "rollout-pause", "words": {"rollout": "shop"}},
        {"name": "rollout-pause", "words": {"rollout": 7}, "command": ""},
        {"name": "keys-revoke", "words": {}, "command": ""},
        [],
    ],
)
async def test_what_nobody_was_shown_is_not_done(form):
    acts = Done()
    async with let_in(troubled_facts(), acts) as client, asked(client, form) as answer:
        assert answer.status == 400
    assert acts.commands == []


async def test_what_the_tree_refuses_is_said():
    acts = Done()
    acts.fails = CallFailed("rollout", "Refused", "it is complete", "")
    async with let_in(troubled_facts(), acts) as client, asked(client, PAUSE) as answer:
        assert answer.status == 409
        assert (await answer.json())["error"]["message"] == "it is complete"


@pytest.mark.parametrize("word", ["shop; id", "-o", "$(id)", "a\nb", "", "a b", "`id`"])
def test_no_word_that_is_no_name_comes_into_a_command(word):
    assert act("rollout-pause", rollout=word) is None
    with pytest.raises(NoSuchAct):
        read_act("node-approve", {"path": word})


async def test_nothing_is_offered_of_what_has_no_name():
    rows = request_rows(*await hostile_facts("$(id)").waiting())
    assert len(rows) > 1
    assert all("$" not in row["act"]["command"] for row in rows if row["act"] is not None)


def test_what_is_over_is_neither_paused_nor_aborted():
    ended = {"metadata": {"name": "a"}, "spec": {"placement": {"name": "a"}}}
    assert rollout_acts({**ended, "status": {"phase": "Complete", "revision": 1}}) == []
    paused = rollout_acts({**ended, "status": {"phase": "Paused", "revision": 1}})
    assert [it["name"] for it in paused] == ["rollout-abort"]


class Session:
    """A session that notes what is called."""

    def __init__(self, answer):
        self.called = []
        self._answer = answer

    async def call(self, verb, **said):
        said.pop("seconds")
        self.called.append((verb, {name: value for name, value in said.items() if value}))
        return self._answer


@pytest.mark.parametrize(
    ("wanted", "called"),
    [
        (("node-approve", {"path": "/a"}), ("node-approve", {"paths": ["/a"]})),
        (
            ("accept", {"placement": "epl/shop"}),
            ("accept", {"placement": "edgeplacement/shop"}),
        ),
        (("accept-space", {"space": "s1"}), ("accept", {"space": "s1"})),
        (("accept-inventory", {}), ("accept", {"inventory": True})),
        (("accept-ledger", {}), ("accept", {"ledger": True})),
    ],
)
async def test_it_asks_as_the_command_asks(wanted, called):
    session = Session({"accepted": "40 objects; apply them", "faults": []})

    @asynccontextmanager
    async def lent():
        yield session

    said = await TreeActs(SimpleNamespace(session=lent)).do(read_act(*wanted))
    assert session.called == [called]
    assert said
    session = Session({"faults": [{"message": "nobody asks", "remedy": "wait"}], "approved": []})
    if wanted[0] == "node-approve":
        with pytest.raises(CallFailed, match="nobody asks"):
            await TreeActs(SimpleNamespace(session=lent)).do(read_act(*wanted))
