"""Samples in Prometheus's text format, made on request, without global state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.telemetry.metrics import Kind, Metric
from ripple.core.extras import needed

with needed("cluster", "the page of metrics"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )
    from prometheus_client.exposition import generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric as Family

    from ripple.control.telemetry.samples import Samples

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(metrics: Sequence[Metric], samples: Samples) -> str:
    """Return the text of the page: every metric, also those without samples yet."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics, samples))
    return bytes(generate_latest(registry)).decode()


class _Collector:
    def __init__(self, metrics: Sequence[Metric], samples: Samples) -> None:
        self._metrics = metrics
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        numbers: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for (name, labels), value in self._samples.numbers.items():
            numbers.setdefault(name, []).append((labels, value))
        for metric in self._metrics:
            if metric.kind is Kind.HISTOGRAM:
                yield self._histogram(metric)
                continue
            make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            family = make(metric.name, metric.about, labels=metric.labels)
            for labels, value in sorted(numbers.get(metric.name, ())):
                family.add_metric(labels, value)
            yield family

    def _histogram(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.name, metric.about, labels=metric.labels)
        for (name, labels), one in self._samples.histograms.items():
            if name != metric.name:
                continue
            buckets, total = [], 0
            for bound, count in zip((*one.bounds, float("inf")), one.counts, strict=True):
                total += count
                buckets.append(("+Inf" if bound == float("inf") else repr(bound), total))
            family.add_metric(labels, buckets, one.sum)
        return family
