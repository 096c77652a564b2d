"""What the world assumes of a bus on JetStream, and the contract test that holds each to it.

So too of spaces, of the driver and of the syncer. The contract tests run over the parts in memory,
some of which the world uses, and over real nats-servers. That each one named exists is tested, too.

The world goes further than the real bus where it may: it loses session messages at any time,
delivers mail twice, breaks a link at any moment and everything on its way with it, and keeps the
lanes of one link (mail, sessions, reports) in order only each for itself. It loses reports that
are stored, and puts disks back to what they were, so that neither a full stream nor a machine that
lost its last writes is anything new to it. What is too large for a message is tested without it.
"""

from __future__ import annotations

BUS, FAULTS, ORDER = "test_bus.py", "test_bus_faults.py", "test_bus_order.py"
KEPT, STAGES = "test_bus_kept.py", "test_stages.py"
SPACE, SYNCER = "test_space.py", "test_syncer.py"
WHOLE = "test_whole_space.py"

ASSUMPTIONS = {
    "A stored record, a blob and the children's mail outlive the process": (
        BUS,
        "test_what_was_stored_is_remembered_after_a_restart",
    ),
    "Mail reaches its child alone, in order, and says what is to come": (
        BUS,
        "test_mail_arrives_at_its_child_only_in_order_and_says_when_none_is_left",
    ),
    "A mailbox keeps the last value of a slot": (
        BUS,
        "test_only_the_last_value_of_a_slot_is_kept_for_who_comes_later",
    ),
    "Slots are read in the order of their last writing": (
        ORDER,
        "test_slots_are_read_in_the_order_of_their_last_writing",
    ),
    "A reset reads again from that sequence": (
        BUS,
        "test_a_reset_delivers_again_from_that_sequence",
    ),
    "Of several resets the last one counts": (BUS, "test_the_last_reset_counts"),
    "A reset beyond the end loses nothing that is written later": (
        BUS,
        "test_after_a_reset_beyond_the_end_new_mail_still_arrives",
    ),
    "No mail comes before a reset, in each link": (
        BUS,
        "test_no_mail_is_delivered_before_it_is_read_from_somewhere",
    ),
    "A new run reads from where it will": (
        ORDER,
        "test_a_run_may_read_again_what_a_former_one_read",
    ),
    "A write that expects another sequence in the slot is refused": (
        BUS,
        "test_a_stale_writer_is_refused",
    ),
    "A slot is cleared only if nothing was written to it since": (
        BUS,
        "test_a_slot_is_cleared_only_if_nothing_was_written_to_it_since",
    ),
    "Sequences never go back": (
        ORDER,
        "test_sequences_go_on_where_a_slot_was_cleared_or_a_child_erased",
    ),
    "Reports keep the last value of a slot, also for a parent that was away": (
        BUS,
        "test_reports_reach_the_parent_and_a_parent_that_starts_later_gets_the_last_ones",
    ),
    "Session messages may be lost": (
        ORDER,
        "test_a_welcome_is_not_kept_for_a_child_that_is_away",
    ),
    "A blob comes from the own store, else from the parent's": (
        BUS,
        "test_content_comes_from_the_parent_and_then_from_the_own_store",
    ),
    "A blob that nobody has is none": (BUS, "test_content_that_nobody_has_is_none"),
    "Both ends hear of a lost link and of its return, and the mail between comes": (
        FAULTS,
        "test_a_link_cut_and_healed_is_told_and_loses_nothing",
    ),
    "A reset while the link is cut counts for nothing": (
        FAULTS,
        "test_a_reset_while_the_link_is_cut_counts_for_nothing",
    ),
    "A child that is removed is cut off, its mail and reports are erased": (
        FAULTS,
        "test_a_removed_child_is_cut_off_and_its_mail_is_gone",
    ),
    "A server that stops and starts again goes on with what it kept": (
        FAULTS,
        "test_a_parent_whose_server_restarts_goes_on",
    ),
    "What was confirmed outlives kill -9 of its server": (
        KEPT,
        "test_what_was_confirmed_outlives_its_server_however_that_ends",
    ),
    "What is erased of own records, and of what was applied, stays erased over kill -9": (
        KEPT,
        "test_what_was_erased_stays_erased_however_its_server_ends",
    ),
    "Own records come back in the order of their last writing": (
        KEPT,
        "test_records_are_read_back_in_the_order_of_their_last_writing",
    ),
    "A child whose parent's process is down reads, loads and reports": (
        KEPT,
        "test_mail_content_and_reports_need_the_parents_server_alone",
    ),
    "How many messages are to come does not count what was cleared": (
        KEPT,
        "test_what_is_yet_to_come_does_not_count_what_was_cleared",
    ),
    "Nothing is taken for a duplicate of what was written before": (
        KEPT,
        "test_the_same_bytes_written_again_are_a_message_of_their_own",
    ),
    "A report is erased only if nothing was written to its slot since": (
        KEPT,
        "test_a_report_is_dropped_only_if_nothing_was_written_to_its_slot_since",
    ),
    "Session messages that come, come in order": (
        KEPT,
        "test_welcomes_come_in_the_order_in_which_they_were_sent",
    ),
    "Who is let in again reads what was written since, from the beginning": (
        KEPT,
        "test_a_child_let_in_again_reads_what_was_written_since_from_its_beginning",
    ),
    "What is not acknowledged for long comes again, after what is newer": (
        KEPT,
        "test_mail_that_waits_too_long_comes_again_in_its_order",
    ),
    "Streams drop nothing but overwritten values, and the oldest reports when these are too many": (
        KEPT,
        "test_streams_keep_the_last_value_of_each_slot_without_end",
    ),
    "Mail comes however much of it is not acknowledged": (
        BUS,
        "test_mail_comes_however_much_of_it_waits_unacknowledged",
    ),
    "Content that was dropped is gone, and all else stays": (
        BUS,
        "test_content_that_was_dropped_is_gone_and_the_rest_stays",
    ),
    "Who is let in twice keeps its place": (FAULTS, "test_a_child_added_twice_keeps_its_place"),
    "Mail that went into a link as it broke comes again": (
        FAULTS,
        "test_mail_written_while_the_link_flaps_is_all_delivered",
    ),
    "A batch is carried out in the driver's stages": (
        STAGES,
        "test_the_world_carries_a_batch_out_as_the_driver_does",
    ),
    "A bus that cannot keep something ends the run": (
        STAGES,
        "test_nothing_follows_what_could_not_be_kept",
    ),
    "A watch goes on without a gap after a list": (
        WHOLE,
        "test_a_watch_goes_on_without_a_gap_after_a_list",
    ),
    "A watch tells each change in order, and a deletion as such": (
        WHOLE,
        "test_a_watch_tells_what_happens_while_it_runs",
    ),
    "A watch that missed something says so instead of going on": (
        WHOLE,
        "test_a_resume_older_than_what_is_surely_known_is_refused",
    ),
    "An object made again is another one": (
        SPACE,
        "test_delete_takes_only_the_object_that_was_meant",
    ),
    "Two writers of an object lose nothing": (SPACE, "test_two_writers_at_once_lose_nothing"),
    "A space has one identity, and keeps it": (
        "test_embedded_space.py",
        "test_a_bucket_is_the_same_space_after_a_restart",
    ),
    "A syncer does nothing before it was told what is wanted": (
        SYNCER,
        "test_nothing_is_done_before_the_first_wants",
    ),
    "It writes down what it is about to create": (
        SYNCER,
        "test_intent_is_on_record_before_an_object_is_created",
    ),
    "It removes nothing without leave": (SYNCER, "test_without_leave_nothing_is_pruned"),
    "It removes only what it made": (SYNCER, "test_it_prunes_only_what_it_applied"),
    "It is told of drift, and repairs it": (SYNCER, "test_drift_is_repaired"),
    "What the cluster does not take holds up nothing else": (
        SYNCER,
        "test_one_bad_object_holds_up_no_other",
    ),
    "A watch that broke is followed by a look at all": (
        "test_syncer_faults.py",
        "test_what_a_list_no_longer_shows_and_a_look_does_not_find_is_made_again",
    ),
}

FENCE, LEASE = "test_trio_fence.py", "test_trio_lease.py"
OF_CLUSTERS = {
    "A batch lands whole or not at all, and not behind another's fence": (
        FENCE,
        "test_nothing_of_a_deposed_member_lands_and_nothing_that_it_wrote_is_lost",
    ),
    "Without the fence it would land": (FENCE, "test_without_a_fence_late_writes_would_land"),
    "A fence is not taken from one that came later": (
        FENCE,
        "test_who_is_stopped_between_reading_a_fence_and_writing_it_takes_it_from_nobody",
    ),
    "What is erased takes nothing along that came later": (
        FENCE,
        "test_a_removal_erases_what_lay_there_and_spares_the_other_children",
    ),
    "A note of the lease is refused after another's": (
        LEASE,
        "test_a_renewal_after_another_took_it_ends_the_hold",
    ),
    "A memory that was lost is numbered from 1 again": (
        LEASE,
        "test_a_stream_that_lost_its_memory_is_marked_anew",
    ),
    "Without a leader that is told at once": (
        LEASE,
        "test_without_a_leader_a_renewal_that_is_wanted_is_not_sent_without_a_pause",
    ),
}
"""The same of the cluster of a node with three members, held to tests on real ones."""
