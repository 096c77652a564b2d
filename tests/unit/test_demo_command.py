"""The command line says what is wrong with it in one line, before anything is started."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from leafcast.cli import main
from leafcast.cli.commands.demo import demo
from leafcast.local.views import SERVERS_MAX

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("--regions", "--sites", "--depth", "--file", "--timeout", "--once", "--output")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--regions", "0"], "--regions"),
        (["--regions", "17"], "--regions"),
        (["--sites", "0"], "--sites"),
        (["--sites", "65"], "--sites"),
        (["--depth", "2"], "--depth"),
        (["--depth", "9"], "--depth"),
        (["--timeout", "0"], "--timeout"),
        (["--timeout", "nan"], "--timeout"),
        (["-o", "yaml"], "--output"),
        (["--sites", "x"], "--sites"),
        (["--regions", "16", "--sites", "64"], f"1041 nats-servers.*{SERVERS_MAX}.*lower"),
    ],
)
def test_wrong_options_are_told_by_name(arguments, said):
    ran = CliRunner().invoke(demo, arguments)
    assert ran.exit_code == 2
    ran_text = " ".join(ran.output.split())
    assert re.search(said, ran_text), ran_text


def test_all_options_are_documented():
    text = CliRunner().invoke(demo, ["--help"]).output
    assert all(option in text for option in OPTIONS)


def leafcast(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "leafcast", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_usage_error_is_one_line_with_a_remedy_and_code_2():
    ran = leafcast("demo", "--depth", "2")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert "leafcast demo --help" in ran.stderr


def test_without_a_command_it_lists_them():
    ran = leafcast()
    assert ran.returncode == 0
    assert "demo" in ran.stdout


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (ExceptionGroup("tasks", [ValueError("odd")]), "ValueError: odd; this is a defect"),
    ],
)
def test_whatever_goes_wrong_is_told_without_a_traceback(monkeypatch, capsys, error, said):
    def fail(**_):
        raise error

    monkeypatch.setattr(main.cli, "main", fail)
    monkeypatch.delenv("LEAFCAST_TRACEBACK", raising=False)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert said in told
    assert "Traceback" not in told


def test_ctrl_c_while_loading_is_quiet(monkeypatch, capsys):
    def interrupt(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(main.cli, "main", interrupt)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "")
