"""Metrics of several pipelines on one page: each has the label ``pipeline`` beside its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.control.telemetry.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.control.telemetry.metrics import Metric

LABEL = "pipeline"


def labelled(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Return the metrics with the label."""
    return tuple(replace(one, labels=(*one.labels, LABEL)) for one in metrics)


def together(samples: Mapping[str, Samples]) -> Samples:
    """Return the samples of all pipelines, by name, with the label."""
    found = Samples()
    for pipeline, one in samples.items():
        for (name, labels), value in one.numbers.items():
            found.numbers[name, (*labels, pipeline)] = value
        for (name, labels), histogram in one.histograms.items():
            found.histograms[name, (*labels, pipeline)] = histogram
    return found
