"""Of several processes that run the tests one computes, and the others wait for servers."""

from tests.sharing import CHAOS, TREES, next_unit, turn, unit_of

UP, SWARM, WIRE = "tests/kube/test_up.py", "tests/simulation/test_swarm.py", "tests/unit/test_w.py"
LINK, CLAIMS = "tests/nats/test_link.py", "tests/kube/test_claims.py"


def test_tests_of_whole_trees_are_one_unit_and_others_are_so_by_file():
    assert unit_of("tests/e2e/test_up.py::test_a[1::2]") == TREES
    assert unit_of("tests/nats/test_chaos_kills.py::test_b") == CHAOS
    assert unit_of(f"{LINK}::test_c") == LINK


def test_trees_begin_then_servers_and_of_those_with_api_servers_the_longest():
    files = [SWARM, CLAIMS, UP, LINK, "tests/nats/test_chaos_a.py", "tests/e2e/test_up.py", WIRE]
    in_turn = sorted(files, key=lambda file: turn(file, 5))
    assert in_turn == [*files[5:3:-1], LINK, UP, CLAIMS, SWARM, WIRE]


def test_one_process_computes_while_any_file_is_left_that_does():
    assert next_unit([TREES, CHAOS, UP, WIRE], is_computed=False) == TREES
    assert next_unit([CHAOS, UP, WIRE], is_computed=True) == CHAOS
    waiting = [LINK, UP, SWARM, WIRE]
    assert next_unit(waiting, is_computed=False) == SWARM
    assert next_unit(waiting, is_computed=True) == LINK


def test_nobody_is_idle_while_anything_waits():
    assert next_unit([UP, CLAIMS], is_computed=False) == UP
    assert next_unit([SWARM, WIRE], is_computed=True) == SWARM
