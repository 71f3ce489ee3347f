"""Pipelines with logs between stages, on clusters to which anything happens."""

from __future__ import annotations

from random import Random
from typing import Any

import ripple as rp
from ripple.testing.cluster.kit import cluster_test
from ripple.testing.cluster.trial import ClusterTrial
from tests.engine.machine.stage_plans import Trade, trades
from tests.examples import EXAMPLES

# One life of each, that of the first ones with most faults; more of them with `make wide`.
SEEDS = (4,) if EXAMPLES == 1 else range(2 * EXAMPLES)


def outliving(idle: str | None = None, **middle: Any) -> Any:
    """Return windows, and groups that outlive them and need their rows."""
    windows = (
        rp.Pipeline("p")
        .source("trades", Trade, time="t", out_of_order=3, idle=idle)
        .partition("first", key=("symbol", "venue"))
        .window("w", rp.Tumbling(10), lateness=4)
        .fold("rows", n=rp.count(), total=rp.sum("price"))
    )
    return windows.partition("second", key="venue", partitions=2).fold("by_venue", **middle)


events = ClusterTrial(
    outliving(middle=rp.median("total"), n=rp.sum("n")).sink("last").sink("shown", of="rows"),
    trades(Random("events"), 80),
)
idle_events = ClusterTrial(
    outliving("900ms", middle=rp.median("total"), n=rp.sum("n"))
    .sink("last")
    .sink("shown", of="rows"),
    trades(Random("events"), 60),
)
at_broker = ClusterTrial(events.plan, trades(Random("events"), 60), has_broker=True)
followed = ClusterTrial(
    outliving(middle=rp.median("total"), kinds=rp.count_distinct("n"))
    .partition("third", key=())
    .fold("all", kinds=rp.sum("kinds"), middle=rp.max("middle"))
    .sink("last")
    .sink("shown", of="rows"),
    trades(Random("followed"), 60),
)

# Records change partition twice: the source's, divided by something else, then those of windows.
divided = ClusterTrial(
    rp.Pipeline("p")
    .source("trades", Trade, time="t", out_of_order=3, reject_future=60, key="symbol")
    .derive("odd", odd=rp.col("size") % 2)
    .partition("first", key=("venue", "odd"), partitions=2)
    .window("w", rp.Tumbling(10), lateness=4)
    .fold("rows", n=rp.count(), total=rp.sum("price"), last=rp.last("symbol"))
    .partition("second", key="odd", partitions=2)
    .fold("by_odd", middle=rp.median("n"), windows=rp.count(), total=rp.sum("total"))
    .sink("last")
    .sink("shown", of="rows"),
    trades(Random("divided"), 60),
)

divided_at_broker = ClusterTrial(
    divided.plan, trades(Random("divided at a broker"), 60), has_broker=True
)


def test_event_edge_counts_once() -> None:
    """Each window that is over counts for its group once, whatever happens on the way."""
    cluster_test(events, seeds=SEEDS)


def test_windows_that_markers_end_count_once_behind_an_event_edge() -> None:
    cluster_test(idle_events, seeds=SEEDS)


def test_stage_behind_an_event_edge_counts_once() -> None:
    cluster_test(followed, seeds=SEEDS)


def test_records_that_are_divided_twice_count_once() -> None:
    # In run 3 a sender with inputs 2 and 10 is restored.
    cluster_test(divided, seeds=(3,) if EXAMPLES == 1 else (*SEEDS, 3))


def test_records_through_topics_of_a_broker_count_once() -> None:
    cluster_test(divided_at_broker, seeds=SEEDS)
    if EXAMPLES > 1:  # one change of partition of the two above
        cluster_test(at_broker, seeds=SEEDS)
