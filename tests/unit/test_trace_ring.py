"""A trace has one name at each node, and what a node notes of it is bounded."""

from __future__ import annotations

from relay.shell.trace_ring import TRACES_MAX, TraceRing, TraceStage, trace_id
from schemas.values.identity import mail_key

KEY = mail_key("", "", "", "shop")


def test_a_trace_is_named_by_its_slot_and_generation_alone():
    assert trace_id(KEY, 7) == trace_id(str(KEY), 7)
    others = {trace_id(KEY, 8), trace_id(mail_key("", "", "", "cart"), 7)}
    assert trace_id(KEY, 7) not in others
    assert len(bytes.fromhex(trace_id(KEY, 7))) == 16


def test_the_first_moment_of_a_stage_stays_and_the_last_of_what_is_passed_on():
    traces = TraceRing(is_edge=False)
    for now_ms in (10, 20):
        traces.note(KEY, 1, TraceStage.RECEIVED, now_ms)
        traces.note(KEY, 1, TraceStage.LAST_PASSED_ON, now_ms)
    assert traces.of(KEY, 1) == {TraceStage.RECEIVED: 10, TraceStage.LAST_PASSED_ON: 20}


def test_the_oldest_change_makes_room_for_the_newest():
    traces = TraceRing(is_edge=False)
    for generation in range(1, TRACES_MAX + 2):
        traces.note(KEY, generation, TraceStage.RECEIVED, generation)
    assert sorted(traces.generations(KEY)) == list(range(2, TRACES_MAX + 2))
    assert traces.of(KEY, 1) == {}
