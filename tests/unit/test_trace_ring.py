"""A trace has one name at each node, and what a node notes of it is bounded."""

from __future__ import annotations

from types import SimpleNamespace

from relay.adapters.clock import SystemClock
from relay.core.effects import SendReport
from relay.core.instant import Instant
from relay.shell.batch_news import BatchNews
from relay.shell.trace_ring import TRACES_MAX, TraceRing, TraceSpan, TraceStage
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Count, Summary
from schemas.values.identity import mail_key
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.trace_ids import trace_id
from tests.doubles.watches import centre_watch, issued_of

KEY = mail_key("", "", "", "shop")
OTHER = mail_key("", "", "", "cart")
CONFIG = ObjectKey("", "configmaps", "shop", "a")
SECRET = ObjectKey("", "secrets", "shop", "a")


def ring():
    return TraceRing(is_edge=False, began_ms=0)


def test_a_trace_is_named_by_its_slot_and_generation_alone():
    named = trace_id(KEY, 7)
    assert named == trace_id(str(KEY), 7)
    assert named not in {trace_id(KEY, 8), trace_id(OTHER, 7)}
    assert len(named) == 16


def test_the_first_moment_of_a_stage_stays_and_the_last_of_what_is_passed_on():
    traces = ring()
    for now_ms in (10, 20):
        traces.note(KEY, 1, TraceStage.RECEIVED, now_ms)
        traces.note(KEY, 1, TraceStage.LAST_PASSED_ON, now_ms)
    assert traces.of(KEY, 1) == {TraceStage.RECEIVED: 10, TraceStage.LAST_PASSED_ON: 20}


def test_the_oldest_change_makes_room_for_the_newest():
    traces = ring()
    for generation in range(1, TRACES_MAX + 2):
        traces.note(KEY, generation, TraceStage.RECEIVED, generation)
    assert sorted(traces.generations(KEY)) == list(range(2, TRACES_MAX + 2))
    assert traces.of(KEY, 1) == {}
    assert traces.forgotten == 1


def test_a_listener_hears_each_stage_once_with_where_it_began():
    traces, heard = ring(), []
    traces.listen(heard.append)
    traces.note(KEY, 1, TraceStage.RECEIVED, 10)
    traces.note(KEY, 1, TraceStage.COMPLETE, 30)
    for now_ms in (40, 50):
        traces.note(KEY, 1, TraceStage.COMPLETE, now_ms)
        traces.note(KEY, 1, TraceStage.LAST_PASSED_ON, now_ms)
    assert heard == [
        TraceSpan(KEY, 1, TraceStage.RECEIVED, 10, 10),
        TraceSpan(KEY, 1, TraceStage.COMPLETE, 10, 30),
        TraceSpan(KEY, 1, TraceStage.LAST_PASSED_ON, 30, 40),
    ]
    assert traces.spans(KEY, 1) == [*heard[:2], heard[2]._replace(end_ms=50)]


def test_what_was_reported_before_all_below_had_read_is_told_as_they_have():
    traces, summary, is_exact = ring(), Summary({"synced": 2}, {"healthy": 2}), False
    view = SimpleNamespace(
        records={KEY: SimpleNamespace(generation=1)},
        count=lambda _: Count(summary, is_exact, generation=1),
    )
    traces.note(KEY, 1, TraceStage.RECEIVED, 10)
    traces.look(BatchNews([], [SendReport(KEY, b"counts")]), view, Instant(0.0, 20))
    assert TraceStage.TOLD_DELIVERED not in traces.of(KEY, 1)
    is_exact = True
    traces.look(BatchNews([], [SendReport(PROGRESS_KEY, b"all")]), view, Instant(0.0, 30))
    told = traces.of(KEY, 1)
    assert told[TraceStage.TOLD_DELIVERED] == told[TraceStage.TOLD_WORKING] == 30


def test_what_the_translator_saw_and_signed_nothing_of_is_not_of_a_later_change():
    watch = centre_watch(SystemClock())
    batch = watch.writing([CONFIG, SECRET], 5)
    watch.seen([KEY, OTHER], CONFIG)
    watch.begun([KEY, OTHER])
    # One that comes while the translator is at work is of what it signs next.
    watch.seen([OTHER], SECRET)
    watch.settled([KEY, OTHER])
    watch.acknowledged(batch)
    assert not list(watch.traces.generations(KEY))
    watch.begun([KEY, OTHER])
    watch.issued(issued_of(KEY, 1))
    watch.issued(issued_of(OTHER, 2))
    assert TraceStage.SEEN not in watch.traces.of(KEY, 1)
    assert watch.traces.of(OTHER, 2)[TraceStage.JUDGED] == 5
    assert TraceStage.ACKNOWLEDGED in watch.traces.of(OTHER, 2)
