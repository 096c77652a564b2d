"""An answer to an assistant is bounded, and says what it leaves out."""

import json

import pytest
from click.testing import CliRunner

from leafcast.assistants import bounds
from leafcast.assistants.answers import NotAnswered, TreeAnswers
from leafcast.assistants.bounds import bounded
from leafcast.cli.commands import mcp as command
from relay.adapters.clock import SystemClock


def test_a_short_answer_is_whole():
    form = {"rows": [{"n": 1}, {"n": 2}], "none": None, "more": 0}
    assert json.loads(bounded(form)) == form


def test_a_long_answer_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(bounds, "ANSWER_CHARACTERS_MAX", 2_000)
    text = bounded({"rows": [{"path": f"/site-{at}"} for at in range(5_000)]})
    assert len(text) <= 2_000
    rows = json.loads(text)["rows"]
    assert rows[-1] == f"... and {5_001 - len(rows)} more"
    assert rows[0] == {"path": "/site-0"}


def test_no_shape_of_an_answer_is_longer(monkeypatch):
    monkeypatch.setattr(bounds, "ANSWER_CHARACTERS_MAX", 2_000)
    deep = "x" * 10_000
    for _ in range(50):
        deep = {"a" * 100: deep, "list": [deep] * 2 if len(str(deep)) < 50_000 else []}
    for form in (deep, {str(at): "x" * 90 for at in range(1_000)}, ["x" * 9_000] * 9):
        assert len(bounded(form)) <= 2_000 + 40


@pytest.mark.parametrize("named", [{}, {"resource": "cm"}, {"name": "settings"}])
async def test_why_of_nothing_says_what_to_name(named):
    words = {"placement": "", "resource": "", "name": "", "namespace": "", **named}
    # Neither a session nor facts are asked.
    answers = TreeAnswers(None, None, SystemClock())
    with pytest.raises(NotAnswered, match="name a placement, or a resource and the name of an"):
        await answers.why("/region-1/site-1", **words)


def test_who_lacks_the_library_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    done = CliRunner().invoke(command.mcp, [])
    assert done.exit_code == 1
    assert "mcp is not installed: pip install 'leafcast[mcp]'" in done.output
