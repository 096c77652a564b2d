"""Spans are sent as OpenTelemetry has it, the same traces at each node, and nobody waits for it."""

from __future__ import annotations

import asyncio
import hashlib
from types import SimpleNamespace

import pytest

from leafcast.telemetry import process_telemetry
from leafcast.telemetry.change_spans import TracedChange, change_spans, trace_number
from leafcast.telemetry.node_spans import QUIET_SECONDS, NodeSpans
from leafcast.telemetry.otlp import OtlpSpans
from leafcast.telemetry.settings import TelemetryRefused, TelemetrySettings, telemetry_settings
from relay.adapters.clock import SystemClock
from relay.adapters.server.ports import free_port
from relay.shell.trace_ring import TraceRing, TraceSpan, TraceStage
from schemas.values.identity import NodePath, mail_key
from schemas.values.traceparent import EXAMPLE, read_traceparent
from tests.doubles.otlp_collector import OtlpCollector

KEY = mail_key("", "", "", "shop")
CENTRE, REGION, SITE = NodePath(), NodePath.parse("/r1"), NodePath.parse("/r1/s1")
ENDPOINT, RATIO = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER_ARG"
AT = {ENDPOINT: "http://collector:4318"}
BY_RATIO = AT | {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}


@pytest.mark.parametrize(
    ("said", "settings"),
    [
        ({}, None),
        ({RATIO: "none of our business"}, None),
        (AT | {"OTEL_SDK_DISABLED": "true"}, None),
        (AT | {"OTEL_TRACES_EXPORTER": "none"}, None),
        (AT, ("http://collector:4318/v1/traces", 1.0)),
        (AT | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t/in"}, ("https://t/in", 1.0)),
        (BY_RATIO | {RATIO: "0.25"}, ("http://collector:4318/v1/traces", 0.25)),
        (AT | {"OTEL_TRACES_SAMPLER": "always_off"}, ("http://collector:4318/v1/traces", 0.0)),
    ],
)
def test_spans_are_sent_where_the_environment_says_and_else_nowhere(said, settings):
    assert telemetry_settings(said) == (settings and TelemetrySettings(*settings))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({ENDPOINT: "collector:4317"}, "is 'collector:4317': it is no URL; write http://HOST:4318"),
        (AT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "is 'grpc': Leafcast sends http/protobuf"),
        (AT | {"OTEL_TRACES_SAMPLER": "jaeger"}, "say one of always_on, always_off, traceidratio"),
        (BY_RATIO | {RATIO: "2"}, f"{RATIO} is '2': it is no ratio; say a number from 0 to 1"),
        (BY_RATIO | {RATIO: "half"}, f"{RATIO} is 'half': it is no ratio"),
    ],
)
async def test_a_setting_that_cannot_be_is_one_event_with_its_remedy(said, text):
    with pytest.raises(TelemetryRefused, match=r"; ") as refused:
        telemetry_settings(said)
    assert text in str(refused.value)
    telemetry, heard, others = process_telemetry.telemetry_of(said), [], []
    assert telemetry.of_node(SimpleNamespace(), "edge", SystemClock()) is None
    with telemetry.telling(heard.append), telemetry.telling(others.append):
        assert [(it.reason, it.detail) for it in heard] == [("TracesNotSent", str(refused.value))]
        assert not others
    # A node that is the first one later is told as well.
    with telemetry.telling(others.append):
        assert len(heard) == len(others) == 1


async def test_without_the_library_an_event_says_what_to_install(monkeypatch):
    monkeypatch.setattr(process_telemetry, "LIBRARY", "no_such_library.at_all")
    heard = []
    with process_telemetry.telemetry_of(AT).telling(heard.append):
        pass
    assert "pip install 'leafcast[otel]'" in heard[0].detail


def test_spans_of_all_nodes_make_one_tree_though_none_tells_another_of_its_own():
    caller = read_traceparent(EXAMPLE)
    at_centre = TracedChange("edgeplacement/shop", 5, caller)
    below = TracedChange("edgeplacement/shop", 20)
    stages = [
        (CENTRE, TraceStage.SIGNED, at_centre),
        (CENTRE, TraceStage.ISSUED, at_centre),
        (REGION, TraceStage.RECEIVED, below),
        (SITE, TraceStage.RECEIVED, below),
        (SITE, TraceStage.APPLIED, below),
        (CENTRE, TraceStage.DELIVERED, at_centre),
    ]
    spans = {}
    for path, stage, change in stages:
        for span in change_spans(path, TraceSpan(KEY, 7, stage, 10, 20), change):
            spans[path, span.name] = span
    root = spans[CENTRE, "change"]
    assert (root.parent_id, root.caller, root.start_ms, root.end_ms) == (None, caller, 5, 20)
    assert [it for it in spans.values() if it.caller] == [root]
    assert len({it.span_id for it in spans.values()}) == len(spans) == 7
    assert {it.trace_id for it in spans.values()} == {trace_number(KEY, 7)}
    for of, over in [
        ((CENTRE, "signed"), root),
        ((CENTRE, "issued"), root),
        ((CENTRE, "counted delivered"), root),
        ((REGION, "received"), root),
        ((SITE, "received"), spans[REGION, "received"]),
        ((SITE, "applied"), spans[SITE, "received"]),
    ]:
        assert spans[of].parent_id == over.span_id


class Kept:
    """The way to a collector: what is sent is kept."""

    def __init__(self):
        self.sent = []

    def takes(self, _):
        return True

    def send(self, span, source):
        self.sent.append((span, dict(source.attributes)))


def sending(path, role, kept):
    ring = TraceRing(is_edge=False, began_ms=0)
    config, node = SimpleNamespace(path=path), SimpleNamespace(records={})
    driver = SimpleNamespace(traces=ring, config=config, node=node)
    return ring, NodeSpans(driver, role, SystemClock(), kept)


def test_a_centre_with_very_many_children_sends_no_span_for_each():
    kept = Kept()
    ring, spans = sending(CENTRE, "centre", kept)
    ring.note(KEY, 7, TraceStage.ISSUED, 10)
    for child in range(10_000):
        ring.note(KEY, 7, TraceStage.FIRST_PASSED_ON, 20 + child)
        ring.note(KEY, 7, TraceStage.LAST_PASSED_ON, 20 + child)
    spans.settle(10_000)
    names = [span.name for span, _ in kept.sent]
    assert names == ["change", "issued", "first passed on"]
    spans.settle(10_019 + int(QUIET_SECONDS * 1000))
    spans.settle(10**9)
    last, source = kept.sent[-1]
    assert (len(kept.sent), last.name, last.start_ms, last.end_ms) == (
        4,
        "last passed on",
        20,
        10_019,
    )
    assert source["leafcast.path"] == "/"
    assert source["leafcast.role"] == "centre"
    assert source["service.name"] == "leafcast"


def test_the_users_own_words_of_a_resource_win(monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shops")
    kept = Kept()
    ring, _ = sending(SITE, "edge", kept)
    ring.note(KEY, 7, TraceStage.RECEIVED, 10)
    _, source = kept.sent[0]
    assert source["service.name"] == "shops"
    assert source["deployment.environment.name"] == "prod"
    assert source["leafcast.path"] == "/r1/s1"


@pytest.fixture
def hurried(monkeypatch):
    """The library tries often, and briefly."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "64")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")


def test_two_nodes_send_the_same_traces_and_a_smaller_ratio_some_of_them(hurried):
    url = "http://127.0.0.1:9/v1/traces"
    ways = [OtlpSpans(TelemetrySettings(url, ratio), print) for ratio in (0.5, 0.5, 0.1)]
    try:
        taken = [
            {generation for generation in range(1000) if way.takes(trace_number(KEY, generation))}
            for way in ways
        ]
    finally:
        for way in ways:
            way.close()
    assert taken[0] == taken[1] > taken[2]
    assert 400 < len(taken[0]) < 600
    assert 50 < len(taken[2]) < 150


async def test_a_collector_that_is_away_is_one_event_and_nobody_waits_for_it(hurried, tmp_path):
    port, heard, more = free_port(tmp_path, 3), [], asyncio.Event()
    telemetry = process_telemetry.telemetry_of({ENDPOINT: f"http://me:secret@127.0.0.1:{port}"})

    def hear(noted):
        heard.append(noted)
        more.set()

    ring, role = TraceRing(is_edge=False, began_ms=0), "relay"
    config, node = SimpleNamespace(path=REGION), SimpleNamespace(records={})
    telemetry.of_node(SimpleNamespace(traces=ring, config=config, node=node), role, SystemClock())
    try:
        with telemetry.telling(hear):
            for generation in range(1, 5001):
                ring.note(KEY, generation, TraceStage.RECEIVED, 10)
            await asyncio.wait_for(more.wait(), 60)
            more.clear()
            assert [it.reason for it in heard] == ["CollectorAway"]
            assert heard[0].subject == f"http://127.0.0.1:{port}/v1/traces"
            assert "the collector takes no spans (" in heard[0].detail
            collector = OtlpCollector(port)
            with collector.serving():
                ring.note(KEY, 9000, TraceStage.RECEIVED, 10)
                await asyncio.wait_for(more.wait(), 60)
                ring.note(KEY, 9001, TraceStage.RECEIVED, 10)
                came = await asyncio.to_thread(
                    collector.until, lambda _: "9001" in generations(collector)
                )
    finally:
        await asyncio.to_thread(telemetry.close)
    assert [it.reason for it in heard] == ["CollectorAway", "CollectorBack"]
    # What there was no room for is dropped, the oldest first.
    assert "1" not in generations(collector)
    assert len(came) <= 5 * 64
    assert {it.source["leafcast.path"] for it in came} == {"/r1"}
    assert collector.paths == {"/v1/traces"}


def generations(collector):
    return {it.attributes["leafcast.generation"] for it in collector.spans}


def test_span_ids_are_of_the_trace_the_node_and_the_stage():
    (span,) = change_spans(
        REGION, TraceSpan(KEY, 7, TraceStage.COMPLETE, 1, 2), TracedChange("", 1)
    )
    trace = trace_number(KEY, 7).to_bytes(16, "big")
    said = b"span\0" + trace + b"\0/r1\0content complete"
    assert span.span_id == int.from_bytes(hashlib.sha256(said).digest()[:8], "big")
