"""What a joining node says quotes others: a proxy's status, a server's log."""

import asyncio
from dataclasses import replace

import pytest
from click.testing import CliRunner

from leafcast.cli.commands.join import join, say_plainly
from leafcast.join.join_request import JoinRequester, PendingRequest, request_text
from leafcast.join.joined_node import JoinFailed
from leafcast.join.kept_grant import write_grant
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.link_trouble import NO_WEBSOCKET
from relay.adapters.server.upgrade_probe import cause_at
from schemas.enrolment.tokens import Token
from schemas.values.identity import NodePath, TreeId, random_id
from tests.awaiting import eventually
from tests.unit.test_kept_grant import GRANT

TREE, PATH = TreeId(random_id(b"t" * 16)), NodePath.parse("/region-1/store-7")


async def test_the_status_of_a_proxy_cannot_steer_the_terminal(capsys):
    async def refuse(reader, writer):
        await reader.readline()
        writer.write(b"HTTP/1.1 403 \x1b]0;owned\x07\x1b[2JNot here\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        said = await cause_at([f"ws://127.0.0.1:{port}"], NO_WEBSOCKET, "ask the proxy")
    say_plainly(said)
    shown = capsys.readouterr().out
    assert "(403 ]0;owned[2JNot here)" in shown
    assert shown.rstrip("\n").isprintable()


@pytest.mark.nats
async def test_another_cause_for_which_the_tree_is_not_reached_is_said_too(tmp_path):
    refuses, said = asyncio.Event(), []

    async def answer(reader, writer):
        if refuses.is_set():
            await reader.readline()
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        at = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/web"
        token = Token(b"s" * 16, TREE, b"p" * 16, PATH)
        one = JoinRequester((at,), token, PATH, tmp_path, SystemClock(), SystemDice(), said.append)
        asking = asyncio.create_task(one.run())
        await eventually(lambda: said, "nothing is said of a link that ends")
        refuses.set()
        await eventually(lambda: "403 Forbidden" in said[-1], lambda: str(said))
        asking.cancel()
        await asyncio.wait([asking])


def test_a_folder_that_is_named_from_here_is_the_same_for_the_server(tmp_path, monkeypatch):
    """nats-server runs in another folder, so each path that it is told has to be whole."""
    told = []

    class Unasked(JoinRequester):
        async def run(self):
            told.append(self._folder)
            raise JoinFailed(PATH, "it was only looked at", "nothing")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("leafcast.cli.commands.join.JoinRequester", Unasked)
    token = Token(b"s" * 16, TREE, b"p" * 16, PATH).text
    words = ["tls://localhost:1", "--data-dir", "here"]
    found = CliRunner().invoke(join, words, env={"LEAFCAST_TOKEN": token})
    assert isinstance(found.exception, JoinFailed)
    assert "can read a token" not in found.output
    found = CliRunner().invoke(join, [*words, "--token", token])
    assert "Note: other users of this machine can read a token on a command line" in found.output
    assert told == [tmp_path / "here"] * 2


def requester(folder, token):
    clock, dice = SystemClock(), SystemDice()
    return JoinRequester(("tls://a:1",), token, GRANT.path, folder, clock, dice, print)


def test_a_grant_is_taken_up_with_the_token_that_it_came_by_and_with_no_other(tmp_path):
    token, other = (
        Token(secret * 16, GRANT.tree, b"p" * 16, GRANT.path) for secret in (b"s", b"o")
    )
    assert requester(tmp_path, token).granted_before() is None
    granted = replace(GRANT, token=token.token_id)
    write_grant(tmp_path / "bundle.json", granted)
    assert requester(tmp_path, token).granted_before() == granted
    assert requester(tmp_path, other).granted_before() is None
    # Another token that is tried in its folder changes nothing of that.
    (tmp_path / "request.json").write_text(request_text(PendingRequest(other.token_id, "/x", "")))
    assert requester(tmp_path, token).granted_before() == granted
    # One that is damaged keeps nobody from asking anew.
    (tmp_path / "bundle.json").write_text("{")
    assert requester(tmp_path, other).granted_before() is None


def test_a_grant_of_a_former_release_names_its_token_beside_the_request(tmp_path):
    token = Token(b"s" * 16, GRANT.tree, b"p" * 16, GRANT.path)
    write_grant(tmp_path / "bundle.json", GRANT)
    assert requester(tmp_path, token).granted_before() is None
    asked = PendingRequest(token.token_id, str(GRANT.path), "")
    (tmp_path / "request.json").write_text(request_text(asked))
    assert requester(tmp_path, token).granted_before() == GRANT
