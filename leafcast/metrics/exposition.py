"""Figures in the words of Prometheus: its text format, or OpenMetrics for who asks for that.

`prometheus_client` writes them, from a registry made for one answer: nothing is global.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.metrics_core import (
    Metric as Family,
)
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from leafcast.metrics.reading import Metric, MetricKind, MetricReading
from relay.shell.distribution import Distribution
from schemas.values.trace_ids import w3c_trace_id


def exposed(readings: Sequence[MetricReading], accept: str) -> tuple[str, bytes]:
    """The answer to who asks with this Accept header: its content type, and its text.

    Figures of the process itself (processor, memory, files) go with them.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Given(readings))
    ProcessCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return content_type, encode(registry)


class _Given(Collector):
    """Collects what was read before."""

    def __init__(self, readings: Sequence[MetricReading]) -> None:
        self._readings = readings

    def collect(self) -> Iterator[Family]:
        by_metric: dict[Metric, list[MetricReading]] = {}
        for reading in self._readings:
            by_metric.setdefault(reading.metric, []).append(reading)
        for metric, readings in by_metric.items():
            yield _family(metric, readings)


def _family(metric: Metric, readings: Iterable[MetricReading]) -> Family:
    name, said, labels = metric.name, metric.help, list(metric.labels)
    if metric.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, said, labels=labels)
        for reading in readings:
            assert isinstance(reading.value, Distribution)
            histogram.add_metric(
                reading.labels, list(_buckets(reading.value)), sum_value=reading.value.sum
            )
        return histogram
    if metric.kind is MetricKind.INFO:
        info = InfoMetricFamily(name.removesuffix("_info"), said)
        for reading in readings:
            info.add_metric((), dict(zip(labels, reading.labels, strict=True)))
        return info
    kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    family = kind(name, said, labels=labels)
    for reading in readings:
        assert not isinstance(reading.value, Distribution)
        family.add_metric(reading.labels, reading.value)
    return family


def _buckets(values: Distribution) -> Iterator[tuple[str, int] | tuple[str, int, Exemplar]]:
    """The bounds with how many lie within each, counted from below."""
    within = 0
    bounds = [*(repr(float(bound)) for bound in values.bounds), "+Inf"]
    for bound, count, last in zip(bounds, values.counts, values.exemplars, strict=True):
        within += count
        if last is None:
            yield bound, within
        else:
            trace = {"trace_id": w3c_trace_id(last.trace)}
            yield bound, within, Exemplar(trace, last.seconds, last.at_ms / 1000)
