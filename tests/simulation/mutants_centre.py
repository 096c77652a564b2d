"""The faults planted in the centre's decisions, and a blind seed or life that shows each."""

from __future__ import annotations

from tests.simulation import oracle, planted_centre

PLANTED = (
    (planted_centre.believe_an_empty_list, oracle.NO_IGNORANCE, "blind:9"),
    (planted_centre.believe_an_empty_inventory, oracle.NO_IGNORANCE, "blind-apart:0"),
    (planted_centre.believe_another_space, oracle.NO_IGNORANCE, "blind:6"),
    (planted_centre.hold_no_removal, oracle.NO_IGNORANCE, "blind:3"),
    (planted_centre.hold_only_by_kind, oracle.NO_IGNORANCE, "blind:3"),
    (planted_centre.hold_only_by_number, oracle.NO_IGNORANCE, "blind:3"),
    (planted_centre.count_no_destinations, oracle.NO_IGNORANCE, "crowded:0"),
    (planted_centre.withdraw_from_many, oracle.NO_IGNORANCE, "withdrawn:0"),
    (planted_centre.forget_what_was_issued, oracle.NO_IGNORANCE, "blind-apart:3"),
    (planted_centre.accept_more_than_was_shown, oracle.NO_IGNORANCE, "accepted_alone:0"),
    (planted_centre.decide_before_the_list, oracle.NO_IGNORANCE, "blind-apart:1"),
    (planted_centre.start_from_nothing, oracle.NO_IGNORANCE, "blind-apart:1"),
    (planted_centre.restart_below, oracle.NO_RESURRECTION, "blind-still:28"),
    (planted_centre.forget_what_children_showed, oracle.NO_IGNORANCE, "blind-apart:1"),
    (planted_centre.remove_what_came_back, oracle.NO_IGNORANCE, "shown_too_little:0"),
    (planted_centre.wait_for_one_child, oracle.NO_IGNORANCE, "one_away:0"),
    (planted_centre.forget_that_it_reads, oracle.NO_IGNORANCE, "blind-apart:1"),
    (planted_centre.sweep_what_is_in_force, oracle.CONVERGENCE, "blind-apart:32"),
)
