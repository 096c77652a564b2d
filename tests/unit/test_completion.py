"""Shells complete our commands by asking the program."""

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from leafcast.ask.session import Session
from leafcast.cli import completion_words
from leafcast.cli.main import cli
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemClock, SystemDice
from tests.doubles.memory_space import MemorySpace

ROOT = Path(__file__).resolve().parents[2]
THERE = (
    ("Namespace", "shop", ""),
    ("ConfigMap", "texts", "shop"),
    ("ConfigMap", "prices", "shop"),
    ("EdgePlacement", "shop", ""),
)


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "leafcast", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_commands_and_options_are_completed():
    asked = {"_LEAFCAST_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    assert "plain,status" in run(**asked, COMP_WORDS="leafcast sta")
    asked["COMP_CWORD"] = "2"
    assert "plain,--destinations" in run(**asked, COMP_WORDS="leafcast status --d")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_calls_the_program(shell):
    assert f"_LEAFCAST_COMPLETE={shell}_complete" in run("completion", shell)


@pytest.fixture
def completed(monkeypatch):
    """Completes words on a tree that has a shop, its two maps, and two nodes."""

    @asynccontextmanager
    async def opened(_data_dir):
        clock = SystemClock()
        space, inventory = MemorySpace(clock, SystemDice()), MemorySpace(clock, SystemDice())
        for kind, name, namespace in THERE:
            version = "edge.kubestellar.io/v2alpha1" if kind == "EdgePlacement" else "v1"
            where = {"namespace": namespace} if namespace else {}
            obj = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **where}}
            await space.apply(obj, "test")
        yield Session(DataDir(Path("nowhere")), space, inventory, clock, tells_nodes)

    async def tells_nodes(subject, _question, _seconds, _put):
        assert subject == "leafcast.api.tree"
        return json.dumps({"result": {"nodes": [{"path": "/"}, {"path": "/north"}]}}).encode()

    monkeypatch.setattr(completion_words, "open_session", opened)

    def complete(*words):
        script = ShellComplete(cli, {}, "leafcast", "_LEAFCAST_COMPLETE")
        return [item.value for item in script.get_completions(list(words[:-1]), words[-1])]

    return complete


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("get", "configm"), ["configmaps"]),
        (("get", "svc,endpoints"), ["svc,endpoints", "svc,endpointslices"]),
        (("get", "cm", "-n", "shop", ""), ["prices", "texts"]),
        (("get", "cm", "-n", "shop", "texts", ""), ["prices"]),
        (("get", "-n", "shop", "cm/p"), ["cm/prices"]),
        (("get", "cm", ""), []),
        (("get", "nonsense", ""), []),
        (("get", "cm", "-n", ""), ["shop"]),
        (("describe", "epl", "s"), ["shop"]),
        (("delete", "cm", "-n", "shop", "pr"), ["prices"]),
        (("status", ""), ["shop"]),
        (("wait", ""), ["shop"]),
        (("wait", "shop", "--for", "h"), ["healthy"]),
        (("get", "cm", "--at", "/n"), ["/north"]),
        (("nats-config", ""), ["/", "/north"]),
        (("node", "remove", "/n"), ["/north"]),
    ],
)
def test_what_the_tree_holds_is_completed(completed, words, offered):
    assert completed(*words) == offered


def test_without_a_tree_there_are_the_kinds_that_are_known(tmp_path):
    asked = {"_LEAFCAST_COMPLETE": "bash_complete", "LEAFCAST_DATA_DIR": str(tmp_path)}
    assert "plain,deployments" in run(**asked, COMP_CWORD="2", COMP_WORDS="leafcast get dep")
