"""Nodes of three members keep every law, whoever of them is killed, stopped, cut off or late."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.assumptions import OF_CLUSTERS
from tests.simulation.lives_members import LIVES, play_trio
from tests.simulation.replay import end_of
from tests.simulation.trios import run_trio

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 6


@pytest.mark.parametrize("life", LIVES)
def test_every_law_holds_in_the_life_of_members(life):
    outcome = play_trio(f"{life}:0")
    assert not outcome.law, end_of(outcome)


@pytest.mark.parametrize("first", range(1, 13, CHUNK))
def test_every_law_holds_while_members_take_over(first):
    broken = [it for seed in range(first, first + CHUNK) if (it := run_trio(seed)).law]
    assert not broken, "\n".join([end_of(broken[0]), *map(str, broken[1:])])


def test_a_seed_of_members_is_the_same_run_in_every_process():
    code = "from tests.simulation.trios import run_trio\nprint(run_trio(5, story=True).trace)"
    own = os.environ.get("PYTHONHASHSEED", "")
    env = {**os.environ, "PYTHONHASHSEED": "1" if own == "0" else "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == run_trio(5, story=True).trace


def test_every_assumption_about_clusters_has_a_test_on_a_real_one():
    for file, test in OF_CLUSTERS.values():
        text = (ROOT / "tests" / "nats" / file).read_text(encoding="utf-8")
        assert f"async def {test}(" in text, f"{test} is not in {file}"
