"""The program from outside: words that are no command, and errors that say what to do."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from leafcast.cli import session_calls
from leafcast.cli.commands.wait import placements_named
from leafcast.cli.main import _COMMANDS, main
from leafcast.cli.printing import print_view, terminal_width
from leafcast.show.layout import Table
from schemas.records.placements import bare_name, meant, said_placement


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


@pytest.mark.parametrize(("word", "meant"), [("aply", "apply"), ("stauts", "status")])
def test_a_word_that_is_no_command_is_told_which_one_is_meant(said, word, meant):
    code, out, err = said(word, "-f", "x")
    assert (code, out) == (2, "")
    guess = f'no such command "{word}" (did you mean "{meant}"?)'
    assert err == f"error: {guess}; see: leafcast --help\n"


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("create", "leafcast apply -f FILE"),
        ("edit", "leafcast apply -f FILE"),
        ("logs", "use kubectl there"),
        ("ls", "leafcast get KIND"),
        ("resume", "leafcast rollout steers"),
        ("auth", "admin.json"),
    ],
)
def test_a_verb_of_kubectl_that_is_not_here_is_told_what_to_use_instead(said, word, instead):
    code, _, err = said(word, "x")
    assert code == 2
    assert instead in err
    assert "did you mean" not in err


def test_a_word_like_no_command_is_told_no_nonsense(said):
    code, _, err = said("frobnicate")
    assert (code, "mean" in err, "instead" in err) == (2, False, False)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--prune", "instead: delete what you took out"),
        ("--server-side", "'--server-side'; instead: every apply is one: leave it out"),
        ("--dry-rnu", "; did you mean --dry-run?; see: "),
    ],
)
def test_an_option_that_is_not_there_is_told_what_to_use_and_nothing_misleading(said, option, hint):
    code, _, err = said("apply", "-f", "x", option)
    assert code == 2
    assert hint in err
    assert ("--dry-run" in err) == (option == "--dry-rnu")


def test_a_kubeconfig_that_leads_nowhere_is_no_word_of_a_server(said, tmp_path):
    code, _, err = said("install", "--kubeconfig", str(tmp_path / "gone"))
    assert (code, err.startswith("error: there is no kubeconfig")) == (1, True)


def test_no_guess_in_a_group_misleads(said):
    assert '"lst" (did you mean "list"?)' in said("node", "lst")[2]
    code, _, err = said("rollout", "restart", "deploy/web")
    assert (code, err) == (2, 'error: no such command "restart"; see: leafcast rollout --help\n')


@pytest.mark.parametrize("group", ["keys", "node", "rollout"])
def test_help_of_a_group_cuts_no_summary(said, group):
    _, out, _ = said(group, "--help")
    assert "..." not in out.replace("PATH...", "").replace("[ARGS]...", "")


def test_help_shows_commands_in_groups_and_cuts_no_summary(said):
    _, out, _ = said("--help")
    titles = [line[:-1] for line in out.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == ["Options", "Every day", "Look", "Nodes", "Repair", "Run it yourself"]
    assert "..." not in out.partition("Every day:")[2]
    assert all(f"  {name} " in out for name in _COMMANDS)


@pytest.mark.parametrize(
    "words",
    [
        ("apply", "--dry-run=maybe"),
        ("get", "deploy", "--at", "region-1"),
        ("status", "deploy/web"),
        ("node", "add"),
        ("completion",),
        ("completion", "csh"),
        ("get", "deploy", "-o", "jsonpath={.spec"),
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
    assert err.startswith("error: ")
    assert re.search(r"; see: leafcast [a-z ]+ --help\n\Z", err)


def test_who_closed_the_output_is_no_defect(said, monkeypatch, tmp_path):
    code, _, err = said("status", "--data-dir", str(tmp_path))
    monkeypatch.setattr(sys, "stdout", None)
    assert said("crds")[0] == 0
    assert (code, err.count("\n")) == (1, 1)


@pytest.mark.parametrize(("columns", "width"), [("40", 80), ("132", 132)])
def test_tables_are_never_squeezed_below_what_they_need(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert terminal_width() == width


def test_in_a_pipe_nothing_is_cut_however_narrow_the_terminal_is(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    table = Table()
    table.add_column("NAME", max_width=8)
    table.add_row("x" * 500)
    print_view(table)
    assert capsys.readouterr().out.splitlines() == ["NAME", "x" * 500]


@pytest.mark.parametrize(
    "words",
    [("epl", "shop", "other"), ("epl/shop", "edgeplacement/other", "edgeplacements/shop")],
)
def test_placements_to_wait_for_are_named_as_kubectl_names_objects(words):
    assert placements_named(words) == ["edgeplacement/shop", "edgeplacement/other"]
    assert placements_named(("bp", "shop")) == ["bindingpolicy/shop"]
    assert placements_named(("shop", "other")) == ["shop", "other"]
    assert placements_named(("epl",)) == ["epl"]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("shop", "bindingpolicy/shop"),
        ("both", "both"),
        ("bp/both", "bindingpolicy/both"),
        ("epl/both", "both"),
        ("epl/shop", "shop"),
        ("bp/alone", "bindingpolicy/alone"),
    ],
)
def test_a_kind_that_is_said_is_the_one_that_is_meant(said, found):
    known = ("bindingpolicy/shop", "bindingpolicy/both", "both", "alone")
    assert meant(said, known) == found
    for named in (said_placement(said), *placements_named((said,))):
        assert meant(named, known) == found
        assert bare_name(named) == bare_name(found)


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

    monkeypatch.setattr(session_calls, "open_session", interrupted)
    assert said(*words) == (130, "", "")


@pytest.mark.parametrize("module", ["click", "leafcast.errors", "leafcast.cli.commands.crds"])
def test_an_interrupt_while_the_program_starts_shows_no_traceback(module):
    interrupted = (
        "import sys; from importlib.abc import MetaPathFinder\n"
        "class Finder(MetaPathFinder):\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.argv = ['leafcast', 'crds']\n"
        "from leafcast.cli.main import main; main()\n"
    )
    done = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")
