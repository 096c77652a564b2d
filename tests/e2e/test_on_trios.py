"""What a user does with one machine at each place, on a tree whose centre and region are trios.

Before every fourth test the active member of the centre, or of the region, is killed: who takes
over goes on with what the tests before left.
"""

from itertools import count, cycle

import pytest

from tests.awaiting import until
from tests.e2e import test_holds, test_object_commands, test_plan, test_render, test_truth
from tests.e2e.program import SMALL, did
from tests.e2e.trio_program import TrioProgram

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(400)]

scene = test_holds.scene
test_what_waits_for_a_person_says_so_in_every_command = (
    test_holds.test_what_waits_for_a_person_says_so_in_every_command
)
test_who_is_pinned_is_named_and_a_wait_ends_when_it_comes_to_be_held = (
    test_holds.test_who_is_pinned_is_named_and_a_wait_ends_when_it_comes_to_be_held
)
store = test_object_commands.store
test_a_batch_with_a_fault_changes_nothing = (
    test_object_commands.test_a_batch_with_a_fault_changes_nothing
)
test_a_change_is_seen_applied_awaited_and_there = (
    test_object_commands.test_a_change_is_seen_applied_awaited_and_there
)
test_a_watch_shows_each_change_until_it_is_interrupted = (
    test_object_commands.test_a_watch_shows_each_change_until_it_is_interrupted
)
test_secrets_are_shown_at_the_centre_and_redacted_from_the_edge = (
    test_object_commands.test_secrets_are_shown_at_the_centre_and_redacted_from_the_edge
)
test_what_is_deleted_goes_from_the_edges = (
    test_object_commands.test_what_is_deleted_goes_from_the_edges
)
test_what_was_planned_is_what_is_done = test_plan.test_what_was_planned_is_what_is_done
written = test_plan.written
test_each_site_has_its_own_and_render_says_why = (
    test_render.test_each_site_has_its_own_and_render_says_why
)
test_a_placement_made_of_files_follows_them_and_takes_nothing_else = (
    test_truth.test_a_placement_made_of_files_follows_them_and_takes_nothing_else
)
test_a_selector_that_matches_nobody_is_told_of_before_and_holds_up_a_rollout = (
    test_truth.test_a_selector_that_matches_nobody_is_told_of_before_and_holds_up_a_rollout
)
test_what_comes_later_makes_a_placement_whole = (
    test_truth.test_what_comes_later_makes_a_placement_whole
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    program = TrioProgram(tmp_path_factory.mktemp("trios") / "data")
    did(program, "up", "--members", "3", *SMALL)
    yield program
    did(program, "down")


@pytest.fixture(scope="module")
def takeovers(tree):
    """Makes another member active, of the centre and of the region in turn."""
    nodes = cycle(("centre", "lc_region-1"))

    def take_over():
        tree.kill_active(next(nodes))
        until(lambda: tree.run("tree").returncode == 0, "the centre answers no command")

    return take_over


@pytest.fixture(scope="module")
def number():
    return count(1)


@pytest.fixture(autouse=True)
def another_member(number, takeovers):
    if next(number) % 4 == 0:
        takeovers()
