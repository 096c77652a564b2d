"""Who waits for an answer is told for what and for how long, at a terminal, and no script is."""

import asyncio
import json
import os
import pty
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from leafcast.ask import session
from leafcast.ask.session import Session
from leafcast.cli import session_calls
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock
from relay.adapters.server.nkey_pairs import new_user_nkey


@pytest.fixture
def said():
    return []


@pytest.fixture
def opened(said, tmp_path):
    """A session whose questions are answered once something was told."""

    async def ask(_subject, _question, _seconds, _put):
        while not said:
            await asyncio.sleep(0)
        return b'{"result": 1}'

    return Session(DataDir(tmp_path), None, None, SystemClock(), ask, said.append)


@pytest.mark.parametrize(
    ("verb", "given", "told"),
    [
        ("doctor", {}, "waiting for all nodes to answer, 30 s at most"),
        ("status", {}, "waiting for the tree to answer, 30 s at most"),
        ("ask", {"path": "/a/{b}"}, "waiting for /a/{b} to answer, 30 s at most"),
        ("node-remove", {"path": "/a"}, "waiting for /a to delete what it was sent, 30 s"),
    ],
)
async def test_a_call_that_takes_long_says_what_it_waits_for(
    opened, said, monkeypatch, verb, given, told
):
    monkeypatch.setattr(session, "TOLD_AFTER_SECONDS", 0.01)
    assert await opened.call(verb, seconds=30, **given) == 1
    [line] = said
    assert line.startswith(told)


async def test_an_answer_in_time_is_not_waited_for_aloud(said, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "TOLD_AFTER_SECONDS", 0)

    async def ask(_subject, _question, _seconds, _put):
        return b'{"result": 1}'

    at_once = Session(DataDir(tmp_path), None, None, SystemClock(), ask, said.append)
    assert await at_once.call("doctor") == 1
    for _ in range(10):
        await asyncio.sleep(0)
    assert said == []


def test_a_script_is_told_nothing_and_a_person_each_thing_once(capsys, monkeypatch):
    tell = session_calls.teller()
    tell("waiting for a")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    tell("waiting for a\x1b[2J")
    tell("waiting for a\x1b[2J")
    tell("waiting for b")
    assert capsys.readouterr() == (
        "",
        "leafcast: waiting for a[2J ...\nleafcast: waiting for b ...\n",
    )


def test_a_server_that_does_not_answer_is_named_while_it_is_waited_for(tmp_path):
    """With a tree whose server takes connections and says nothing, as one that is frozen does."""
    with closing(socket.create_server(("127.0.0.1", 0))) as mute, DataDir(tmp_path).locked():
        url = f"nats://127.0.0.1:{mute.getsockname()[1]}"
        seed, _ = new_user_nkey(os.urandom(32))
        (tmp_path / "admin.json").write_text(json.dumps({"url": url, "seed": seed}))
        person, program = pty.openpty()
        with os.fdopen(person, "rb", buffering=0) as terminal:
            done = subprocess.run(
                [sys.executable, "-m", "leafcast", "doctor", "--json", "--data-dir", tmp_path],
                stdout=subprocess.PIPE,
                stderr=program,
                check=False,
            )
            shown = terminal.read(4096).decode()
            os.close(program)
    assert "leafcast: waiting for the centre's nats-server to answer ..." in shown
    assert done.returncode == 1
    assert json.loads(done.stdout)["failures"] == 1
    assert done.stdout.count(b"leafcast down") == 1
