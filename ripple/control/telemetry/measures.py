"""Measurements of the partitions of one process, taken from their events.

A task's own values, such as the age of its last commit, are forgotten when it ends; the time
since which commits wait is not, since an outage may outlast many tasks. Replays are not counted:
their events were counted when they were new.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from ripple.control.telemetry.metrics import OF_WORKERS, Kind
from ripple.control.telemetry.samples import Histogram, Samples
from ripple.core import events
from ripple.core.causes import Causes
from ripple.core.cut import events_between

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ripple.core.events import Event
    from ripple.storage.store import CountedStore
    from ripple.world.ports import Clock

CAUSES_MAX = 50
CAUSE_CHARACTERS_MAX = 80
SIDES = ("left", "right")
FATES = ("applied", "very_late", "dead_lettered")
_LATE = {
    "mildly_late": "ripple_window_late_events_total",
    "very_late": "ripple_window_very_late_events_total",
    "future": "ripple_window_future_events_total",
}


class Traffic(Protocol):
    """Traffic with other processes, by edge."""

    @property
    def sent(self) -> Mapping[str, int]:
        """Rows sent."""

    @property
    def received(self) -> Mapping[str, int]:
        """Rows received."""

    @property
    def sent_bytes(self) -> Mapping[str, int]:
        """Bytes of sent bundles."""

    @property
    def received_bytes(self) -> Mapping[str, int]:
        """Bytes of received bundles."""


class _OfPartition:
    """State of the running task. Times are of the monotonic clock.

    engine: held as long as its task holds it. before: its counters at the last look, by source, and
    of all as "". joined: rows of its joins at the last look, by join and outcome. stored_ns:
    when its last checkpoint was stored; if there is none, when the task began. replay: when it was
    first reported, and how much was left then.
    """

    def __init__(self, began_ns: int | None = None) -> None:
        self.engine: Callable[[], events.EngineView | None] = lambda: None
        self.is_live = False
        self.before: Mapping[str, Mapping[str, int]] = {}
        self.joined: Mapping[tuple[str, str], int] = {}
        self.out_of_order: Mapping[str, int] = {}
        self.idle: Mapping[str, int] = {}  # inputs that go on by markers, by source
        self.idle_ns: dict[str, int] = {}  # since when a source has some
        self.cut: Mapping[str, int] = {}
        self.stored: Mapping[str, int] = {}
        self.committed_ns: int | None = None
        self.began_ns = began_ns
        self.stored_ns: int | None = None
        self.stored_bytes: int | None = None
        self.answers_bytes: int | None = None
        self.calls: dict[str, Counter[str]] = {}  # by ask: retries and failures of the task
        self.calls_now: Mapping[str, int] = {}
        self.remaining: int | None = None
        self.replay: tuple[int, int] | None = None
        self.recovery_s: float | None = None
        self.commits_wait_ns: int | None = None
        self.checkpoints_wait_ns: int | None = None
        self.input_waits_ns: int | None = None


class Measures:
    """Measurements of one process; ``samples`` returns the present numbers."""

    def __init__(
        self,
        worker: str,
        clock: Clock,
        *,
        memory_bytes: Callable[[], int] = lambda: 0,
        traffic: Traffic | None = None,
        store: CountedStore | None = None,
    ) -> None:
        """Measure for a worker. memory_bytes: of this process. traffic: with other processes."""
        self._worker = worker
        self._clock = clock
        self._memory_bytes = memory_bytes
        self._traffic = traffic
        self._store = store
        self._partitions: dict[int, _OfPartition] = {}
        self._causes = Causes(causes_max=CAUSES_MAX, characters_max=CAUSE_CHARACTERS_MAX)
        self._samples = Samples()
        for metric in OF_WORKERS:  # so that the first of its kind is a rise from zero
            if metric.kind is Kind.COUNTER and metric.labels == ("worker",):
                self._samples.add(metric.name, 0, worker)
            elif metric.kind is Kind.HISTOGRAM:
                self._samples.histograms[metric.name, (worker,)] = Histogram.of(metric.name)
        # Events of each batch, without a table lookup.
        self._took = self._samples.histograms["ripple_graph_stabilization_ns", (worker,)]
        self._recomputed = self._samples.histograms["ripple_graph_recompute_count", (worker,)]
        self._stabilizations = self._cutoffs = self._retractions = 0

    def on_event(self, partition: int, event: Event) -> None:
        """Take an event of a partition."""
        one = self._partitions.get(partition)
        if one is None:
            one = self._partitions[partition] = _OfPartition()
        if isinstance(event, events.Stabilized):
            self._stabilized(one, *event)
        else:
            self._happened(one, partition, event)
            self._count(event)

    def _happened(self, one: _OfPartition, partition: int, event: Event) -> None:
        match event:
            case events.Started():
                self._look_at_events(one)
                # The store has accepted the owner's claim.
                self._begin(partition, one.commits_wait_ns, began_ns=self._clock.monotonic_ns())
            case events.PartitionFailed():
                self._look_at_events(one)
                self._begin(partition, one.commits_wait_ns, one.checkpoints_wait_ns)
            case events.Ended():
                self._look_at_events(one)
            case events.Replaying(cut, stop):
                self._replays(one, events_between(cut, stop))
            case events.Restored():
                self._restored(one, event)
            case events.Committed():
                one.cut, one.committed_ns = event.cut, self._clock.monotonic_ns()
                one.commits_wait_ns = None
            case events.Silences():
                one.idle, now_ns = event.idle, self._clock.monotonic_ns()
                one.idle_ns = {
                    source: one.idle_ns.get(source, now_ns)
                    for source, inputs in event.idle.items()
                    if inputs
                }
            case events.Called():
                self._called(one, event)
            case events.Stored():
                one.stored, one.stored_ns = event.cut, self._clock.monotonic_ns()
                one.stored_bytes, one.checkpoints_wait_ns = event.length_bytes, None
            case _:
                self._waits(one, event)

    def _called(self, one: _OfPartition, event: events.Called) -> None:
        one.answers_bytes, one.calls_now = event.log_bytes, event.in_progress
        counts = {"calls": event.calls, "retries": event.retries, "failures": event.failures}
        for name, by_ask in counts.items():
            for ask, count in by_ask.items():
                self._add(f"ripple_ask_{name}_total", count, ask)
                one.calls.setdefault(ask, Counter())[name] += count

    def _waits(self, one: _OfPartition, event: Event) -> None:
        """Note since when an external system is waited for."""
        match event:
            case events.CommitWaits():
                one.commits_wait_ns = self._earlier(one.commits_wait_ns, event.seconds)
            case events.StoreFailed():
                one.checkpoints_wait_ns = self._earlier(one.checkpoints_wait_ns, event.seconds)
            case events.InputWaits():
                one.input_waits_ns = self._earlier(one.input_waits_ns, event.seconds)
            case events.InputBack():
                one.input_waits_ns = None
            case _:
                pass

    def _begin(
        self,
        partition: int,
        commits_wait_ns: int | None,
        checkpoints_wait_ns: int | None = None,
        began_ns: int | None = None,
    ) -> None:
        one = self._partitions[partition] = _OfPartition(began_ns)
        one.commits_wait_ns, one.checkpoints_wait_ns = commits_wait_ns, checkpoints_wait_ns

    def _restored(self, one: _OfPartition, event: events.Restored) -> None:
        one.is_live, one.remaining, one.recovery_s = True, None, event.seconds
        one.replay = None
        one.cut = event.cut
        if one.stored_ns is None:  # otherwise there was a checkpoint on the way
            one.stored, one.stored_ns = event.start, one.began_ns
            if event.written_ns is not None:  # by a clock that may be ahead of ours
                age_ns = max(0, self._clock.now_ns() - event.written_ns)
                one.stored_ns = self._clock.monotonic_ns() - age_ns
        one.commits_wait_ns = None  # the brokers have answered
        engine = one.engine()
        one.before = {} if engine is None else _counts(engine)
        one.joined = {} if engine is None else _joined(engine)
        one.out_of_order = {} if engine is None else engine.versions_out_of_order

    def _replays(self, one: _OfPartition, remaining: int) -> None:
        one.remaining = remaining
        if one.replay is None:
            one.replay = self._clock.monotonic_ns(), remaining

    def _earlier(self, since_ns: int | None, seconds: float) -> int:
        """Return the earlier of two starts of a wait, given its present length."""
        waits_ns = self._clock.monotonic_ns() - int(seconds * 1e9)
        return waits_ns if since_ns is None else min(since_ns, waits_ns)

    def _count(self, event: Event) -> None:
        """Count an event, independent of its partition."""
        match event:
            case events.Committed():
                self._add("ripple_commits_total")
                self._add("ripple_commit_rows_total", event.rows)
                self._observe("ripple_commit_seconds", event.seconds)
            case events.Stored():
                self._add("ripple_checkpoints_total")
                self._observe("ripple_checkpoint_seconds", event.seconds)
            case events.StoreFailed():
                self._add("ripple_checkpoint_failures_total")
            case events.Silences():
                for source, count in event.recorded.items():
                    self._add("ripple_source_markers_total", count, source)
            case events.Diverged():
                self._add("ripple_digest_mismatches_total")
            case events.PartitionFailed():
                self._add("ripple_partition_failures_total")
            case events.Refused():
                for cause, count in event.causes.items():
                    self._add("ripple_letters_total", count, self._causes.add(cause, count))
            case _:
                pass

    def turned(self, late_s: float) -> None:
        """Note how late the loop was."""
        self._observe("ripple_loop_late_seconds", max(0.0, late_s))

    def samples(self, hosted: Collection[int]) -> Samples:
        """Return all counters, and the gauges of hosted partitions."""
        for number, one in list(self._partitions.items()):
            self._look_at_events(one)
            if number not in hosted:
                del self._partitions[number]
        found = Samples(dict(self._samples.numbers), self._samples.histograms)
        found.set("ripple_graph_stabilizations_total", self._stabilizations, self._worker)
        found.set("ripple_graph_cutoff_hits_total", self._cutoffs, self._worker)
        found.set("ripple_window_retractions_total", self._retractions, self._worker)
        found.set("ripple_system_heap_words", self._memory_bytes() // 8, self._worker)
        if self._traffic is not None:
            self._of_traffic(found, self._traffic)
        if self._store is not None:
            found.set_each("ripple_store_requests_total", self._store.requests, self._worker)
            found.set_each("ripple_store_bytes_total", self._store.length_bytes, self._worker)
        for number, one in self._partitions.items():
            self._of_partition(found, str(number), one)
        return found

    def inspected(self, hosted: Collection[int]) -> dict[int, dict[str, Any]]:
        """Return the live graphs of the hosted partitions that have one, by number.

        Sources with inputs that go on by markers have their number, ``idle_inputs``, and for how
        long there are some, ``idle_seconds``. Asks have their ``calls_now``, which are in progress,
        and the ``retries`` and ``failures`` of the present task.
        """
        found = {}
        for number, one in sorted(self._partitions.items()):
            engine = one.engine()
            if number in hosted and engine is not None:
                found[number] = engine.inspected()
                self._note_idle(found[number]["nodes"], one)
                _note_calls(found[number]["nodes"], one)
        return found

    def _note_idle(self, nodes: Sequence[dict[str, Any]], one: _OfPartition) -> None:
        now_ns = self._clock.monotonic_ns()
        for node in nodes:
            since_ns = one.idle_ns.get(node["name"])
            if node["kind"] == "source" and since_ns is not None:
                node["idle_inputs"] = one.idle[node["name"]]
                node["idle_seconds"] = (now_ns - since_ns) / 1e9

    def _stabilized(self, one: _OfPartition, engine: events.EngineView, took_ns: int) -> None:
        if one.engine() is not engine:
            one.engine = ref(engine)
        if one.is_live:
            graph = engine.graph
            self._stabilizations += 1
            self._cutoffs += graph.last_cutoff_count
            self._retractions += engine.last_retractions
            self._took.observe(took_ns)
            self._recomputed.observe(graph.last_recompute_count)

    def _look_at_events(self, one: _OfPartition) -> None:
        """Count the outcome of events since the last call."""
        engine = one.engine()
        if engine is None or not one.is_live:
            return
        counts = _counts(engine)
        for source, counters in counts.items():
            before = one.before.get(source, {})
            for fate in FATES:
                count = counters[fate] - before.get(fate, 0)
                if source:
                    self._add("ripple_source_events_total", count, source, fate)
                else:
                    self._add("ripple_events_total", count, fate)
        before = one.before.get("", {})
        for name, metric in _LATE.items():
            if name != "future" or engine.plan.has_windows:  # nothing else depends on it
                self._add(metric, counts[""][name] - before.get(name, 0))
        one.before = counts
        joined = _joined(engine)
        for (join, fate), count in joined.items():
            self._add("ripple_join_rows_total", count - one.joined.get((join, fate), 0), join, fate)
        one.joined = joined
        for table, count in engine.versions_out_of_order.items():
            since = count - one.out_of_order.get(table, 0)
            self._add("ripple_table_versions_out_of_order_total", since, table)
        one.out_of_order = engine.versions_out_of_order

    def _of_partition(self, found: Samples, number: str, one: _OfPartition) -> None:
        worker, now_ns = self._worker, self._clock.monotonic_ns()
        engine, lag_ns = one.engine(), None
        if engine is not None:
            found.add("ripple_graph_node_count", engine.graph.node_count, worker)
            found.add("ripple_graph_dirty_count", len(engine.graph.dirty_nodes()), worker)
            found.add("ripple_window_active_windows", engine.windows, worker)
            found.set("ripple_partition_keys", engine.keys_held, worker, number)
            for fold, rows in engine.uncomputable_counts.items():
                found.add("ripple_fold_uncomputable_rows", rows, worker, fold)
            for ask, rows in engine.asked_counts.items():
                found.add("ripple_ask_waiting_rows", rows, worker, ask)
            for source, inputs in one.idle.items():
                found.add("ripple_source_idle_inputs", inputs, worker, source)
            self._of_joins(found, number, engine)
            if is_time(engine.watermark_ns):
                lag_ns = max(0, self._clock.now_ns() - engine.watermark_ns)
                self._observe("ripple_system_event_lag_ns", lag_ns)
        answered = engine.answered(one.cut) if engine is not None and one.is_live else None
        values = {
            "event_lag_seconds": None if lag_ns is None else lag_ns / 1e9,
            "replay_debt_events": events_between(one.stored, one.cut) if one.is_live else None,
            "commit_age_seconds": _age_s(one.committed_ns, now_ns),
            "checkpoint_age_seconds": _age_s(one.stored_ns, now_ns),
            "commit_waiting_seconds": _wait_s(one.commits_wait_ns, now_ns, one),
            "input_waiting_seconds": _wait_s(one.input_waits_ns, now_ns, one),
            "checkpoint_waiting_seconds": _wait_s(one.checkpoints_wait_ns, now_ns, one),
            "answers_bytes": one.answers_bytes,
            "answered_offsets": None if answered is None else answered[0],
            "committed_answers": None if answered is None else answered[1],
            "checkpoint_bytes": one.stored_bytes,
            "recovery_remaining_events": one.remaining,
            "recovery_eta_seconds": _eta_s(one, now_ns),
            "recovery_seconds": one.recovery_s,
        }
        for name, value in values.items():
            if value is not None:
                found.set(f"ripple_partition_{name}", value, worker, number)

    def _of_joins(self, found: Samples, number: str, engine: events.EngineView) -> None:
        worker, now_ns = self._worker, self._clock.now_ns()
        for join, state in engine.join_states.items():
            for side, one in zip(SIDES, state.sides, strict=True):
                found.add("ripple_join_kept_rows", one.rows, worker, join, side)
                if one.watermark_ns is None:
                    continue
                found.add("ripple_join_behind", one.is_behind, worker, join, side)
                if is_time(one.watermark_ns):
                    lag_s = max(0, now_ns - one.watermark_ns) / 1e9
                    labels = worker, number, join, side
                    found.set("ripple_join_event_lag_seconds", lag_s, *labels)

    def _of_traffic(self, found: Samples, traffic: Traffic) -> None:
        for edge, rows in traffic.sent.items():
            found.set("ripple_transport_deltas_sent_total", rows, self._worker, edge)
        for edge, rows in traffic.received.items():
            found.set("ripple_transport_deltas_received_total", rows, self._worker, edge)
        for edge, count in traffic.sent_bytes.items():
            found.set("ripple_transport_edge_sent_bytes_total", count, self._worker, edge)
        for edge, count in traffic.received_bytes.items():
            found.set("ripple_transport_edge_received_bytes_total", count, self._worker, edge)
        sent_bytes = sum(traffic.sent_bytes.values())
        found.set("ripple_transport_delta_bytes_total", sent_bytes, self._worker)

    def _add(self, name: str, value: float = 1, *labels: str) -> None:
        self._samples.add(name, value, self._worker, *labels)

    def _observe(self, name: str, value: float) -> None:
        self._samples.observe(name, value, self._worker)


def _note_calls(nodes: Sequence[dict[str, Any]], one: _OfPartition) -> None:
    for node in nodes:
        if node["kind"] == "ask":
            made = one.calls.get(node["name"], Counter())
            node["calls_now"] = one.calls_now.get(node["name"], 0)
            node["retries"], node["failures"] = made["retries"], made["failures"]


def _counts(engine: events.EngineView) -> dict[str, Mapping[str, int]]:
    """Return an engine's counters by source, where it has several, and of all as ""."""
    by_source = engine.counters_by_source
    found = {"": engine.counters.as_dict()}
    return found | {name: each.as_dict() for name, each in by_source.items() if len(by_source) > 1}


def _joined(engine: events.EngineView) -> Mapping[tuple[str, str], int]:
    """Return the rows of joins of streams, by join and outcome."""
    return {
        (join, fate): count
        for join, state in engine.join_states.items()
        for fate in ("matched", "unmatched")
        if (count := getattr(state, fate)) is not None
    }


def is_time(watermark_ns: int) -> bool:
    """Return whether a watermark is the time of an event: not before the first, nor at the end."""
    return abs(watermark_ns) < 1 << 62


def _eta_s(one: _OfPartition, now_ns: int) -> float | None:
    """Return how long a replay still takes, once part of it is done."""
    if one.replay is None or one.remaining is None:
        return None
    began_ns, at_first = one.replay
    done = at_first - one.remaining
    return (now_ns - began_ns) / 1e9 * one.remaining / done if done > 0 else None


def _age_s(since_ns: int | None, now_ns: int) -> float | None:
    return None if since_ns is None else (now_ns - since_ns) / 1e9


def _wait_s(since_ns: int | None, now_ns: int, of: _OfPartition) -> float | None:
    if since_ns is None:
        return 0.0 if of.is_live else None
    return (now_ns - since_ns) / 1e9
