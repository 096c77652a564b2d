"""Of several processes that run the tests one computes, and the others wait for servers."""

from pathlib import Path

from tests.sharing import (
    EACH_BY_ITSELF,
    LONGEST,
    MORE_TREES,
    OF_MORE_TREES,
    OF_ONE_TREE,
    TREES,
    next_unit,
    turn,
    unit_of,
)

ROOT = Path(__file__).resolve().parents[2]
UP, SWARM, WIRE = "tests/kube/test_up.py", "tests/simulation/test_swarm.py", "tests/unit/test_w.py"
LINK, CLAIMS = "tests/nats/test_link.py", "tests/kube/test_claims.py"
CUTS = "tests/nats/test_power_cuts.py"


def test_tests_of_whole_trees_are_two_units_and_most_others_are_so_by_file():
    assert unit_of("tests/e2e/test_up.py::test_a[1::2]") == TREES
    assert unit_of("tests/e2e/test_trios.py::test_a") == MORE_TREES
    assert unit_of("tests/nats/test_chaos_kills.py::test_b") == MORE_TREES
    assert unit_of(f"{LINK}::test_c") == LINK
    assert unit_of(f"{CUTS}::test_d[centre-5]") == f"{CUTS}::test_d[centre-5]"


def test_trees_begin_then_servers_and_of_those_with_api_servers_the_longest():
    trees, cut = ("tests/e2e/test_up.py", "tests/releases/test_a.py"), f"{CUTS}::test_d[centre-5]"
    in_turn = [*trees, cut, LINK, UP, CLAIMS, SWARM, WIRE]
    for at in range(len(in_turn)):
        assert sorted(in_turn[at:] + in_turn[:at], key=turn) == in_turn


def test_what_has_its_turn_by_name_is_there():
    files = {str(file.relative_to(ROOT)) for file in ROOT.glob("tests/*/test_*.py")}
    assert {*LONGEST, *OF_ONE_TREE} <= files
    assert [
        name
        for name in (*OF_MORE_TREES, *EACH_BY_ITSELF)
        if not any(it.startswith(name) for it in files)
    ] == []


def test_one_process_computes_while_any_file_is_left_that_does():
    assert next_unit([TREES, MORE_TREES, UP, WIRE], is_computed=False) == TREES
    assert next_unit([MORE_TREES, UP, WIRE], is_computed=True) == MORE_TREES
    waiting = [LINK, UP, SWARM, WIRE]
    assert next_unit(waiting, is_computed=False) == SWARM
    assert next_unit(waiting, is_computed=True) == LINK


def test_nobody_is_idle_while_anything_waits():
    assert next_unit([UP, CLAIMS], is_computed=False) == UP
    assert next_unit([SWARM, WIRE], is_computed=True) == SWARM
