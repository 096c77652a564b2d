"""A token that is tried in one folder and then in another: it is used up in neither."""

from dataclasses import replace

import pytest

from controllers.core.access.issued_tokens import IssuedToken, IssuedTokens
from leafcast.data_dir import DataDirUnusable
from leafcast.join.default_folder import folder_of_token
from leafcast.join.folder import joined_folder
from leafcast.join.join_request import JoinRequester
from leafcast.join.joined_node import JoinFailed
from relay.adapters.clock import SystemClock, SystemDice
from schemas.enrolment.enrolment import GRANTED, PENDING, Grant, JoinAnswer
from schemas.enrolment.tokens import Token, pin_of
from schemas.values.identity import NodePath
from tests.unit.test_kept_grant import GRANT

OLD, NEW, OTHER = map(NodePath.parse, ("/r1/s", "/r2/s", "/r9/x"))
TOKEN = Token(b"s" * 16, GRANT.tree, pin_of(GRANT.tree, GRANT.roots, b""), NEW)
ANY = replace(TOKEN, path=None)


class Asking(JoinRequester):
    """Asks a centre that is in this process; `keys` are those that asked."""

    def __init__(self, folder, centre, token=TOKEN):
        clock, dice = SystemClock(), SystemDice()
        super().__init__(("tls://a:1",), token, NEW, folder, clock, dice, print)
        self.centre, self.keys = centre, []

    async def ask(self, request, opened):
        asked = request().verified(TOKEN.tree, TOKEN.public)
        self.keys.append(asked.nkey)
        verdict = self.centre.judge(TOKEN.token_id, asked, 1)
        if verdict.state == PENDING:
            self.centre.decide(TOKEN.token_id, {NEW}, GRANTED, 2)
        elif verdict.state != GRANTED:
            raise JoinFailed(NEW, verdict.reason, verdict.remedy)
        grant = Grant(TOKEN.tree, NEW, False, ("tls://a:1",), GRANT.roots, b"", {}, (OLD,))
        return JoinAnswer(GRANTED, request().digest, grant=grant)


@pytest.fixture
def centre():
    one = IssuedToken(TOKEN.public, str(NEW), GRANT.roots, 0, 10**15, approved=True)
    return IssuedTokens([one])


@pytest.fixture
def default(tmp_path, monkeypatch):
    monkeypatch.setenv("LEAFCAST_DATA_DIR", str(tmp_path / "state"))
    return folder_of_token(TOKEN, NEW)


def ran(folder, path):
    with joined_folder(folder, replace(GRANT, path=path, former=()), SystemDice()) as place:
        replace(place, admitted=True).keep()
    return folder


def started(folder, grant):
    with joined_folder(folder, grant, SystemDice()) as place:
        return place.former


@pytest.mark.parametrize("runs", [False, True])
async def test_a_moved_node_whose_folder_was_not_named_goes_on_in_it_afterwards(
    tmp_path, centre, default, runs
):
    had = ran(tmp_path / "had", OLD)
    grant = await Asking(default, centre).run()
    if runs:
        assert started(default, grant) == ()
    again = Asking(had, centre)
    assert await again.run() == grant
    assert again.keys == []
    assert again.granted_before() == grant
    assert started(had, grant) == (OLD,)
    assert not default.exists()


async def test_a_request_that_waits_is_asked_again_from_the_folder_that_is_named(
    tmp_path, centre, default
):
    had = ran(tmp_path / "had", OLD)

    class Ended(Asking):
        async def ask(self, request, opened):
            await super().ask(request, opened)
            raise KeyboardInterrupt

    first, again = Ended(default, centre), Asking(had, centre)
    with pytest.raises(KeyboardInterrupt):
        await first.run()
    assert (await again.run()).former == (OLD,)
    assert again.keys == first.keys


async def test_a_token_that_is_tried_in_the_folder_of_another_node_is_good_afterwards(
    tmp_path, centre, default
):
    had, wrong = ran(tmp_path / "had", OLD), ran(tmp_path / "wrong", OTHER)
    with pytest.raises(DataDirUnusable, match=f"it belongs to {OTHER}, not {NEW}"):
        await Asking(wrong, centre).run()
    assert started(had, await Asking(had, centre).run()) == (OLD,)
    assert not default.exists()
    assert {it.name for it in wrong.iterdir()} == {"joined.json", "bundle.json", "lock"}


async def test_what_leads_nowhere_is_refused_before_anything_is_asked(tmp_path, centre, default):
    full = tmp_path / "full"
    full.mkdir()
    (full / "photo.jpg").write_text("x")
    several = Asking(ran(tmp_path / "wrong", OTHER), centre, ANY)
    for one, said in (
        (Asking(full, centre), "it holds something else"),
        (several, f"it belongs to {OTHER}, not {NEW}"),
    ):
        with pytest.raises(DataDirUnusable, match=said):
            await one.run()
        assert one.keys == []


async def test_a_node_that_runs_is_not_begun_elsewhere_with_its_token(tmp_path, centre, default):
    grant = await Asking(default, centre).run()
    with (
        joined_folder(default, grant, SystemDice()),
        pytest.raises(DataDirUnusable, match="another process uses it"),
    ):
        await Asking(ran(tmp_path / "had", OLD), centre).run()
    with pytest.raises(DataDirUnusable, match=f"say --data-dir {default}"):
        await Asking(tmp_path / "empty", centre).run()
    assert started(default, grant) == ()
