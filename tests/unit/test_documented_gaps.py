"""What KubeStellar documents and its code lacks: each of these, and the tests that hold it here."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
HELD = """\
G1: two percents are one
  unit/test_expansion.py
    test_parameters
G2: all SyncTargets of a Location are meant, each once
  unit/test_centre_where.py
    test_a_slice_lists_each_pair_of_location_and_sync_target
  unit/test_audience.py
    test_a_destination_that_is_selected_in_two_ways_stays_meant_when_one_ends
G3: upsync wins over downsync
  unit/test_selection.py
    test_upsync_wins_over_downsync
G4: a clause that means all objects is refused
  unit/test_api_kinds.py
    test_a_downsync_clause_that_means_every_object_is_refused
  kube/test_policies.py
    test_the_server_refuses_what_the_program_refuses_of_these_kinds
G5: a placement's status has its counters
  unit/test_status.py
    test_a_status_is_one_that_the_api_knows
  unit/test_centre_status.py
    test_counts_come_back_into_the_placement
G6, G7: how many execute is a label; a second place clears the status
  unit/test_centre_status.py
    test_a_singleton_has_the_status_of_its_one_copy_and_loses_it_with_a_second
G8: a filter of null is false
  unit/test_expressions.py
    test_a_filter_of_null_is_false
G9, G10: the limit holds, and rows have an order
  property/test_collecting_laws.py
    test_the_rows_kept_are_the_least_and_whole
  e2e/test_collectors.py
    test_collectors_say_what_all_copies_say
G11: a failing column of select is a row error
  unit/test_expressions.py
    test_what_fails_at_one_row_says_which_column_and_why
  unit/test_combined_status.py
    test_a_column_that_fails_is_a_row_error_and_no_cell
G12: lists are of type Array
  unit/test_combined_status.py
    test_a_value_has_the_form_of_its_type
G13: obj has no status
  unit/test_clean_copies.py
    test_what_belongs_to_the_space_is_taken_off
  unit/test_collecting_tree.py
    test_an_expression_sees_the_object_as_it_was_sent
G14: what cannot be customized removes nothing
  e2e/test_customization.py
    test_an_expression_that_is_wrong_stops_the_placement_everywhere
  simulation/lives_customizing.py
    frozen
G15: paths have wildcards and filters; a changed CustomTransform goes out
  unit/test_json_paths.py
    test_all_that_a_path_leads_to_is_taken_out_and_nothing_else
  unit/test_policies.py
    test_a_custom_transform_is_applied_before_hashing_and_a_changed_one_goes_out
G16: statuses of all kinds are merged, and cleared when switched off
  unit/test_merged_statuses.py
    test_of_all_other_kinds_numbers_are_the_least_and_booleans_all
  e2e/test_collectors.py
    test_all_copies_return_one_status_and_none_when_it_is_switched_off
G17: what two sources say otherwise of one object is told
  property/test_claims.py
    test_of_two_sources_the_first_placement_key_wins_and_the_other_is_told
  kube/test_edge_faults.py
    test_of_two_hubs_that_want_one_object_one_has_it_and_the_other_says_so
G18: who is silent is unreachable, and since when
  unit/test_children.py
    test_a_silent_child_is_noted_once_and_back_as_soon_as_it_is_heard_and_caught_up
  contract/test_asks.py
    test_a_node_that_is_away_or_unknown_is_named_and_since_when
G19: what is being deleted counts as gone
  unit/test_selection.py
    test_a_terminating_object_counts_as_gone
G20: what the source loses the copy loses
  contract/test_syncer.py
    test_a_label_removed_at_the_source_is_removed
    test_a_section_removed_at_the_source_is_removed
G21: null does not count, and what is no number is 0 and told, for all types
  unit/test_expressions.py
    test_a_subject_is_a_number_or_counts_as_0_and_is_told
G22: names of more than 63 characters
  unit/test_policies.py
    test_a_policy_whose_name_is_no_label_is_refused
  unit/test_combined_status.py
    test_a_name_too_long_for_a_label_is_cut_and_told_in_full
"""


def gaps():
    """Each gap with its tests, as file and name."""
    found, file = {}, ""
    for line in HELD.splitlines():
        word = line.strip()
        if line == word:
            tests = found[line] = []
        elif word.endswith(".py"):
            file = word
        else:
            tests.append((file, word))
    return found


def test_every_gap_has_its_place():
    numbers = {int(number) for gap in gaps() for number in re.findall(r"G(\d+)", gap)}
    assert numbers == {*range(1, 23)}


@pytest.mark.parametrize(("gap", "tests"), gaps().items(), ids=[*gaps()])
def test_a_promise_has_its_tests(gap, tests):
    assert tests, gap
    for file, name in tests:
        assert f"def {name}(" in (TESTS / file).read_text(encoding="utf-8"), name
