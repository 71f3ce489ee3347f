"""Measurements of partitions, up to the page that Prometheus reads."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import ripple as rp
from ripple.control.telemetry.exposition import exposition
from ripple.control.telemetry.measures import CAUSES_MAX, Measures
from ripple.control.telemetry.metrics import OF_WORKERS, Kind
from ripple.control.telemetry.samples import Histogram, Samples
from ripple.core import events
from ripple.core.causes import OTHERS
from ripple.engine.machine import Engine
from ripple.engine.operators.answer_rows import Identity, Outcome, answer_rows
from ripple.model.batch import Answers
from ripple.model.pipeline.input_names import answers_of
from ripple.model.schema.types import Field, Int64, Schema, String
from ripple.model.window import watermark
from tests.control.telemetry.trades import PLAN, trades
from tests.records import Trade

NS = 1_000_000_000


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at_s = 1000.0

    def now_ns(self) -> int:
        return int(self.at_s * NS)

    def monotonic_ns(self) -> int:
        return int(self.at_s * NS)

    async def sleep(self, seconds: float) -> None:
        self.at_s += seconds


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def measures(clock: Hands) -> Measures:
    return Measures("w0", clock, memory_bytes=lambda: 800)


def begin(measures: Measures, engine: Engine | None = None) -> None:
    measures.on_event(3, events.Started("vwap", 3, 1))
    if engine is not None:
        measures.on_event(3, events.Stabilized(engine, 0))
    measures.on_event(3, events.Restored(None, {}, {}, (), 0, 2.5, ""))


def of(samples: Samples, name: str, *labels: str) -> float:
    return samples.numbers[f"ripple_{name}", ("w0", *labels)]


def test_outcomes_of_several_sources_are_counted_by_source(measures: Measures) -> None:
    start = rp.Pipeline("vwap")
    taken = [start.source(name, Trade) for name in ("trades", "others")]
    engine = Engine(taken[0].sink("one").also(taken[1].sink("other")).plan())
    begin(measures, engine)
    for source, seconds in (("trades", [10, 20, 70]), ("others", [10]), ("trades", [80])):
        engine.apply(source, trades(seconds), engine.cut[source] + len(seconds))
        engine.stabilize()
        measures.on_event(3, events.Stabilized(engine, 2_000_000))
        found = measures.samples([3])
    assert of(found, "source_events_total", "trades", "applied") == 4
    assert of(found, "source_events_total", "others", "applied") == 1
    assert of(found, "source_events_total", "others", "dead_lettered") == 0
    assert of(found, "events_total", "applied") == 5


def test_joins_have_numbers_by_side(measures: Measures, clock: Hands) -> None:
    start = rp.Pipeline("vwap")
    left, right = (start.source(name, Trade) for name in ("trades", "others"))
    joined = left.join_asof("pair", right, on="symbol", lateness="1s", emit="final")
    engine = Engine(joined.sink("out").plan())
    engine.apply("trades", trades([10, 20]), 2)
    engine.apply("others", trades([30]), 1)
    engine.stabilize()
    begin(measures, engine)  # what was joined before is not counted again
    engine.apply("trades", trades([90]), 3)
    engine.apply("others", trades([40]), 2)
    engine.stabilize()
    clock.at_s = 100.0
    found = measures.samples([3])
    assert of(found, "join_kept_rows", "pair", "left") == 1
    assert of(found, "join_kept_rows", "pair", "right") > 0
    behind = [of(found, "join_behind", "pair", side) for side in ("left", "right")]
    assert behind == [0, 1]
    assert of(found, "join_event_lag_seconds", "3", "pair", "left") == 10
    assert of(found, "join_event_lag_seconds", "3", "pair", "right") == 60
    assert of(found, "join_rows_total", "pair", "unmatched") == 1
    engine.apply("others", trades([200]), 3)
    engine.apply("trades", trades([95]), 4)
    engine.stabilize()
    found = measures.samples([3])
    assert of(found, "join_rows_total", "pair", "matched") == 1
    assert 'ripple_join_rows_total{fate="matched",join="pair",worker="w0"} 1.0' in exposition(
        OF_WORKERS, found
    )


def test_idle_inputs_and_their_markers_are_counted_by_source(
    measures: Measures, clock: Hands
) -> None:
    engine = Engine(PLAN)
    begin(measures, engine)
    measures.on_event(3, events.Stabilized(engine, 0))
    measures.on_event(3, events.Silences({"trades": 2}, {"trades": 2}))
    clock.at_s += 5
    measures.on_event(3, events.Silences({"trades": 2}, {"trades": 1}))
    source = measures.inspected([3])[3]["nodes"][0]
    assert (source["idle_inputs"], source["idle_seconds"]) == (2, 5)
    assert of(measures.samples([3]), "source_idle_inputs", "trades") == 2
    measures.on_event(3, events.Silences({"trades": 0}, {}))
    found = measures.samples([3])
    assert of(found, "source_idle_inputs", "trades") == 0
    assert of(found, "source_markers_total", "trades") == 3
    assert "idle_inputs" not in measures.inspected([3])[3]["nodes"][0]


@rp.record(version=1)
class Rate:
    """An answer."""

    rate: int


async def rate(_trade: object) -> None:
    """Answer nothing: no call is made."""


def test_calls_and_the_rows_that_wait_for_them_are_counted_by_ask(measures: Measures) -> None:
    begun = rp.Pipeline("p").source("trades", Trade, out_of_order="60s")
    engine = Engine(begun.ask("rate", rate, into=Rate).sink("out").plan())
    begin(measures, engine)
    engine.apply("trades", trades([10, 20]), 2)
    engine.stabilize()
    measures.on_event(3, events.Stabilized(engine, 0))
    measures.on_event(3, events.Called({"rate": 3}, {"rate": 1}, {}, 500))
    measures.on_event(3, events.Called({"rate": 2}, {}, {"rate": 1}, 700, {"rate": 2}))
    node = measures.inspected([3])[3]["nodes"][1]
    told = ("waiting", "answered", "calls_now", "retries", "failures")
    assert [node[name] for name in told] == [2, 0, 2, 1, 1]
    found = measures.samples([3])
    assert of(found, "ask_waiting_rows", "rate") == 2
    assert of(found, "ask_calls_total", "rate") == 5
    assert of(found, "ask_retries_total", "rate") == 1
    assert of(found, "ask_failures_total", "rate") == 1
    assert of(found, "partition_answers_bytes", "3") == 700


def test_offsets_are_answered_once_they_are_committed_and_no_row_waits(
    measures: Measures,
) -> None:
    begun = rp.Pipeline("p").source("trades", Trade, out_of_order="60s")
    plan = begun.ask("rate", rate, into=Rate).sink("out").plan()
    log = answers_of(0)
    engine = Engine(plan, inputs=["trades", log])
    begin(measures, engine)

    def told() -> list[float]:
        names = "ripple_partition_answered_offsets", "ripple_partition_committed_answers"
        numbers = measures.samples([3]).numbers
        return [value for name in names for key, value in numbers.items() if key[0] == name]

    def commit() -> None:
        measures.on_event(3, events.Committed(engine.cut, 0, 0.0, {}))

    engine.apply("trades", trades([10, 20]), 2)
    engine.stabilize()
    measures.on_event(3, events.Stabilized(engine, 0))
    commit()
    assert told() == []
    outcomes = [Outcome(Identity("trades", offset, 0), Rate(1)) for offset in (0, 1)]
    rows = answer_rows(plan.asks[0], outcomes)
    engine.answer(log, Answers(watermark.NONE, 2, "rate", rows))
    engine.stabilize()
    assert told() == []  # as long as the answers are not committed
    commit()
    assert told() == [2, 2]


def test_events_ahead_of_a_watermark_that_nothing_needs_are_not_counted(measures: Measures) -> None:
    timed = Schema("tick", (Field("name", String()), Field("at", Int64())))
    plan = (
        rp.Pipeline("p")
        .source("ticks", timed, time="at")
        .partition("by", key="name")
        .fold("f", n=rp.count())
        .sink("out")
        .plan()
    )
    engine = Engine(plan)
    begin(measures)
    rows = [{"name": "a", "at": at} for at in (0, 600 * 10**9)]
    engine.apply("ticks", pa.RecordBatch.from_pylist(rows), 2)
    engine.stabilize()
    measures.on_event(3, events.Stabilized(engine, 1))
    assert engine.counters.future == 1
    assert of(measures.samples([3]), "window_future_events_total") == 0


def test_outcomes_of_events_are_counted_per_batch(measures: Measures, clock: Hands) -> None:
    engine = Engine(PLAN)
    begin(measures)
    for at, seconds in enumerate(([10, 20, 70], [30], [130], [5], [1000]), 1):
        engine.apply("trades", trades(seconds), engine.cut["trades"] + len(seconds))
        engine.stabilize()
        measures.on_event(3, events.Stabilized(engine, 2_000_000))
        assert of(measures.samples([3]), "graph_stabilizations_total") == at
    found = measures.samples([3])
    assert of(found, "events_total", "applied") == 6
    assert of(found, "events_total", "very_late") == 1
    assert of(found, "window_late_events_total") == 1
    assert of(found, "window_very_late_events_total") == 1
    assert of(found, "window_future_events_total") == 1
    assert of(found, "window_retractions_total") == 1  # by the event at 30, of the first minute
    assert of(found, "window_active_windows") == 1
    assert of(found, "partition_keys", "3") == 1
    assert of(found, "fold_uncomputable_rows", "vwap") == 0
    assert of(found, "graph_node_count") == engine.graph.node_count
    assert of(found, "graph_dirty_count") == 0
    assert of(found, "system_heap_words") == 100
    assert of(found, "partition_event_lag_seconds", "3") == 0
    took = found.histograms["ripple_graph_stabilization_ns", ("w0",)]
    assert (sum(took.counts), took.sum) == (5, 10_000_000)
    clock.at_s += 60
    assert of(measures.samples([3]), "partition_event_lag_seconds", "3") == 60


def test_recovered_partition_without_input_has_gauges(measures: Measures) -> None:
    engine = Engine(PLAN)
    engine.apply("trades", trades([10, 20]), 2)
    engine.stabilize()
    begin(measures, engine)
    found = measures.samples([3])
    assert of(found, "graph_node_count") == engine.graph.node_count
    assert of(found, "window_active_windows") == 1
    assert of(found, "partition_event_lag_seconds", "3") == 1000 - 20
    assert of(found, "events_total", "applied") == 0
    del engine
    assert ("ripple_graph_node_count", ("w0",)) not in measures.samples([3]).numbers


def test_replayed_events_are_not_counted_again(measures: Measures) -> None:
    engine = Engine(PLAN)
    measures.on_event(3, events.Started("vwap", 3, 1))
    engine.apply("trades", trades([10, 20]), 2)
    engine.stabilize()
    measures.on_event(3, events.Stabilized(engine, 1))
    measures.on_event(3, events.Replaying({"trades": 2}, {"trades": 12}))
    assert of(measures.samples([3]), "partition_recovery_remaining_events", "3") == 10
    measures.on_event(3, events.Restored(None, {}, {"trades": 2}, (), 2, 2.5, ""))
    engine.apply("trades", trades([30]), 3)
    engine.stabilize()
    measures.on_event(3, events.Stabilized(engine, 1))
    found = measures.samples([3])
    assert of(found, "events_total", "applied") == 1
    assert of(found, "graph_stabilizations_total") == 1
    assert of(found, "partition_recovery_seconds", "3") == 2.5
    assert ("ripple_partition_recovery_remaining_events", ("w0", "3")) not in found.numbers


def test_a_replay_tells_how_long_it_still_takes(measures: Measures, clock: Hands) -> None:
    def eta() -> float | None:
        name = "ripple_partition_recovery_eta_seconds", ("w0", "3")
        return measures.samples([3]).numbers.get(name)

    measures.on_event(3, events.Started("vwap", 3, 1))
    measures.on_event(3, events.Replaying({"trades": 20}, {"trades": 100}))
    assert eta() is None, "nothing of it is done"
    clock.at_s += 5
    measures.on_event(3, events.Replaying({"trades": 40}, {"trades": 100}))
    assert eta() == 15
    clock.at_s += 5
    measures.on_event(3, events.Replaying({"trades": 80}, {"trades": 100}))
    assert eta() == pytest.approx(10 / 3)
    measures.on_event(3, events.Restored(None, {}, {"trades": 100}, (), 80, 11.0, ""))
    assert eta() is None


def test_events_of_a_later_stage_are_a_debt_once_however_many_ways_they_come(
    measures: Measures,
) -> None:
    begin(measures)
    stored = {"0/trades/0": 50, "1/trades/0": 40, "0/trades/1": 7, "1/trades/1": 7}
    reached = {"0/trades/0": 70, "1/trades/0": 70, "0/trades/1": 7, "1/trades/1": 9}
    measures.on_event(3, events.Committed(stored, 5, 0.02, {}))
    measures.on_event(3, events.Stored("c", stored, 4096, 0.3))
    measures.on_event(3, events.Committed(reached, 5, 0.02, {}))
    found = measures.samples([3])
    assert of(found, "partition_replay_debt_events", "3") == 30 + 2


def test_commits_and_checkpoints_have_an_age_and_leave_a_debt(
    measures: Measures, clock: Hands
) -> None:
    begin(measures)
    measures.on_event(3, events.Committed({"a": 70, "b": 40}, 5, 0.02, {}))
    measures.on_event(3, events.Stored("c", {"a": 50}, 4096, 0.3))
    clock.at_s += 7
    measures.on_event(3, events.Committed({"a": 80, "b": 40}, 5, 0.02, {}))
    clock.at_s += 2
    found = measures.samples([3])
    assert of(found, "commit_rows_total") == 10
    assert of(found, "partition_replay_debt_events", "3") == 30 + 40
    assert of(found, "partition_checkpoint_age_seconds", "3") == 9
    assert of(found, "partition_commit_age_seconds", "3") == 2
    assert of(found, "partition_checkpoint_bytes", "3") == 4096
    assert of(found, "commits_total") == 2
    assert found.histograms["ripple_commit_seconds", ("w0",)].sum == pytest.approx(0.04)
    assert found.histograms["ripple_checkpoint_seconds", ("w0",)].sum == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("written_s", "age_s"), [(1000 - 300, 300 + 7), (1000 + 2, 7), (None, 7 + 1)]
)
def test_a_checkpoint_that_is_restored_is_as_old_as_it_was_and_never_younger_than_none(
    measures: Measures, clock: Hands, written_s: int | None, age_s: float
) -> None:
    """Its writer's clock may be ahead of ours. Where there is none, its age is the life's."""
    name = "ripple_partition_checkpoint_age_seconds", ("w0", "3")
    clock.at_s -= 1
    measures.on_event(3, events.Started("vwap", 3, 2))
    clock.at_s += 1
    assert name not in measures.samples([3]).numbers, "nobody knows yet"
    written_ns = None if written_s is None else written_s * NS
    measures.on_event(3, events.Restored("c", {}, {}, (), 0, 2.5, "", written_ns))
    clock.at_s += 7
    assert measures.samples([3]).numbers[name] == age_s


def test_a_checkpoint_of_a_replay_counts_before_what_was_restored(
    measures: Measures, clock: Hands
) -> None:
    measures.on_event(3, events.Started("vwap", 3, 2))
    measures.on_event(3, events.Stored("d", {"a": 70}, 4096, 0.3))
    clock.at_s += 5
    measures.on_event(3, events.Restored("c", {"a": 10}, {"a": 90}, (), 80, 2.5, "", 1))
    found = measures.samples([3])
    assert of(found, "partition_checkpoint_age_seconds", "3") == 5
    assert of(found, "partition_replay_debt_events", "3") == 20


def test_failures_are_counted_and_what_failed_has_no_gauges(measures: Measures) -> None:
    begin(measures)
    measures.on_event(3, events.Committed({"a": 70}, 5, 0.02, {}))
    measures.on_event(3, events.StoreFailed(None, "full"))
    measures.on_event(3, events.Diverged("output", {}, "a", "b"))
    measures.on_event(3, events.PartitionFailed(3, 1, ValueError()))
    found = measures.samples([3])
    for name in (
        "checkpoint_failures_total",
        "digest_mismatches_total",
        "partition_failures_total",
    ):
        assert of(found, name) == 1
    left = [name for name, labels in found.numbers if labels[-1] == "3"]
    assert left == ["ripple_partition_checkpoint_waiting_seconds"]


def test_since_when_commits_wait_outlives_the_lives_that_end_for_it(
    measures: Measures, clock: Hands
) -> None:
    begin(measures)
    assert of(measures.samples([3]), "partition_commit_waiting_seconds", "3") == 0
    measures.on_event(3, events.CommitWaits(30.0, 5, "no answer"))
    clock.at_s += 150
    measures.on_event(3, events.CommitWaits(180.0, 5, "no answer"))
    measures.on_event(3, events.PartitionFailed(3, 1, ValueError()))
    measures.on_event(3, events.Started("vwap", 3, 2))
    clock.at_s += 20
    measures.on_event(3, events.CommitWaits(10.0, 0, "no answer"))
    assert of(measures.samples([3]), "partition_commit_waiting_seconds", "3") == 200
    measures.on_event(3, events.Restored(None, {}, {}, (), 0, 2.5, ""))
    assert of(measures.samples([3]), "partition_commit_waiting_seconds", "3") == 0


def test_since_when_an_input_is_away_is_told_until_it_is_back(
    measures: Measures, clock: Hands
) -> None:
    begin(measures)
    measures.on_event(3, events.InputWaits(5.0, "no answer"))
    clock.at_s += 30
    measures.on_event(3, events.InputWaits(35.0, "no answer"))
    assert of(measures.samples([3]), "partition_input_waiting_seconds", "3") == 35
    measures.on_event(3, events.InputBack(36.0))
    assert of(measures.samples([3]), "partition_input_waiting_seconds", "3") == 0


def test_since_when_checkpoints_wait_is_told_until_one_is_stored(
    measures: Measures, clock: Hands
) -> None:
    begin(measures)
    for waited_s in (3.0, 13.0):
        measures.on_event(3, events.StoreFailed({"a": 5}, "away", waited_s, 40))
        clock.at_s += 10
    assert of(measures.samples([3]), "partition_checkpoint_waiting_seconds", "3") == 23
    measures.on_event(3, events.Stored("c", {"a": 50}, 4096, 0.3))
    assert of(measures.samples([3]), "partition_checkpoint_waiting_seconds", "3") == 0


def test_a_partition_that_has_left_has_no_gauges_and_stays_counted(measures: Measures) -> None:
    begin(measures)
    measures.on_event(3, events.Committed({"a": 70}, 5, 0.02, {}))
    found = measures.samples([])
    assert not [labels for (_, labels) in found.numbers if labels[-1] == "3"]
    assert of(found, "commits_total") == 1


def test_causes_of_letters_are_labels_but_never_too_many(measures: Measures) -> None:
    causes = {f"checks: {number}": 2 for number in range(CAUSES_MAX + 7)}
    measures.on_event(3, events.Refused("trades", causes))
    found = measures.samples([3])
    assert of(found, "letters_total", "checks: 0") == 2
    assert of(found, "letters_total", OTHERS) == 2 * 7


def test_processes_are_added_up_and_one_that_has_ended_still_counts() -> None:
    first, second, total = Samples(), Samples(), Samples()
    for one in (first, second):
        one.add("ripple_commits_total", 2, "w0")
        one.set("ripple_graph_node_count", 5, "w0")
        one.observe("ripple_commit_seconds", 0.02, "w0")
    total.include(first.lasting())
    total.include(Samples.from_values(second.to_values()))
    assert of(total, "commits_total") == 4
    assert of(total, "graph_node_count") == 5
    assert total.histograms["ripple_commit_seconds", ("w0",)].counts[3] == 2
    assert of(first, "commits_total") == 2, "what is included is left as it was"


def test_a_value_is_in_the_first_bucket_that_is_not_below_it() -> None:
    one = Histogram.of("ripple_commit_seconds")
    for value in (0.0, 0.001, 0.0011, 100.0, 1e9):
        one.observe(value)
    assert one.counts == [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]


def test_the_page_has_each_metric_with_its_type_and_buckets_that_add_up(measures: Measures) -> None:
    begin(measures)
    measures.on_event(3, events.Committed({"a": 70}, 5, 0.02, {}))
    page = exposition(OF_WORKERS, measures.samples([3]))
    typed = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    for metric in OF_WORKERS:
        assert typed[metric.name] == metric.kind.value
        assert metric.kind is not Kind.COUNTER or metric.name.endswith("_total")
    assert 'ripple_commit_seconds_bucket{le="0.01",worker="w0"} 0.0' in page
    assert 'ripple_commit_seconds_bucket{le="0.05",worker="w0"} 1.0' in page
    assert 'ripple_commit_seconds_bucket{le="+Inf",worker="w0"} 1.0' in page
    assert 'ripple_commit_seconds_count{worker="w0"} 1.0' in page
    assert 'ripple_digest_mismatches_total{worker="w0"} 0.0' in page
