"""The program from outside: words that are no command, and errors that say what to do."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from leafcast.commands import running
from leafcast.commands.showing import table_console
from leafcast.commands.wait import placements_named
from leafcast.main import main


@pytest.fixture
def said(monkeypatch, capsys):
    """Run the program with these words: its exit code, output and errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["leafcast", *words])
        with pytest.raises(SystemExit) as end:
            main()
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return run


def test_help_and_version_are_words_as_well(said):
    assert said("help") == said("--help")
    assert said("help", "node", "list") == said("node", "list", "--help")
    assert said("version") == said("--version")


@pytest.mark.parametrize(("word", "meant"), [("aply", "apply"), ("create", "apply"), ("ls", "get")])
def test_a_word_that_is_no_command_is_told_which_one_is_meant(said, word, meant):
    code, out, err = said(word, "-f", "x")
    assert (code, out) == (2, "")
    guess = f'no such command "{word}" (did you mean "{meant}"?)'
    assert err == f"leafcast: {guess}; see: leafcast --help\n"


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--dry-run"),
        ("completion",),
        ("completion", "csh"),
        ("get", "deploy", "-o", "jsonpath={.spec}"),
        ("get", "deploy", "-o", "nonsense"),
        ("get", "deploy", "-f", "x"),
        ("get", "deploy", "-l", "a=b=c"),
        ("wait", "shop"),
        ("wait", "shop", "--for", "rain"),
        ("wait", "shop", "--for", "synced", "--timeout", "soon"),
        ("status", "--tree"),
        ("delete",),
    ],
)
def test_wrong_usage_is_one_line_and_says_where_to_look(said, words):
    code, out, err = said(*words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.endswith(f"; see: leafcast {words[0]} --help\n")


def test_who_closed_the_output_is_no_defect(said, monkeypatch, tmp_path):
    code, _, err = said("status", "--data-dir", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", None)
    assert said("crds")[0] == 0
    assert (code, err.count("\n")) == (1, 1)


@pytest.mark.parametrize(("columns", "width"), [("40", 80), ("132", 132)])
def test_tables_are_never_squeezed_below_what_they_need(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert table_console().width == width


@pytest.mark.parametrize(
    "words",
    [("shop", "other"), ("epl", "shop", "other"), ("epl/shop", "edgeplacement/other", "shop")],
)
def test_placements_to_wait_for_are_named_as_kubectl_names_objects(words):
    assert placements_named(words) == ["shop", "other"]
    assert placements_named(("epl",)) == ["epl"]


@pytest.fixture
def heeded():
    """Ctrl-C, also where what runs the tests ignores it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("words", [("node", "list"), ("accept",), ("tree",)])
@pytest.mark.usefixtures("heeded")
def test_an_interrupt_while_the_tree_is_asked_is_silent(said, monkeypatch, words):
    @asynccontextmanager
    async def interrupted(*_given):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(running, "open_session", interrupted)
    assert said(*words) == (130, "", "")


@pytest.mark.parametrize("module", ["click", "leafcast.errors", "leafcast.commands.crds"])
def test_an_interrupt_while_the_program_starts_shows_no_traceback(module):
    interrupted = (
        "import sys; from importlib.abc import MetaPathFinder\n"
        "class Finder(MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['leafcast', 'crds']\n"
        "from leafcast.main import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")
