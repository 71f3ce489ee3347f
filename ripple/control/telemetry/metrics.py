"""All metrics of our processes: stable names, one table. ``docs/metrics.md`` is made of it.

Histograms in nanoseconds have Ripple/OCaml's bounds, which are milliseconds: as nanoseconds nothing
would ever be below one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)
MS_AS_NS = tuple(bound * 1e6 for bound in BOUNDS)
S_AS_NS = tuple(bound * 1e9 for bound in BOUNDS)
COUNTS = tuple(bound * 1e3 for bound in BOUNDS)


class Kind(Enum):
    """Types of metrics, as Prometheus has them."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. bounds: upper bounds of a histogram's buckets, rising."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    about: str
    bounds: tuple[float, ...] = ()


def _counter(name: str, about: str, *labels: str) -> Metric:
    return Metric(f"ripple_{name}", Kind.COUNTER, labels, about)


def _gauge(name: str, about: str, *labels: str) -> Metric:
    return Metric(f"ripple_{name}", Kind.GAUGE, labels, about)


def _histogram(name: str, about: str, bounds: tuple[float, ...]) -> Metric:
    return Metric(f"ripple_{name}", Kind.HISTOGRAM, ("worker",), about, bounds)


_BOOK = (
    _counter("graph_stabilizations_total", "Stabilizations of the views", "worker"),
    _counter("graph_cutoff_hits_total", "Recomputed nodes whose value did not change", "worker"),
    _gauge("graph_node_count", "Nodes in the graphs of all partitions", "worker"),
    _gauge("graph_dirty_count", "Dirty nodes, waiting to be recomputed", "worker"),
    _histogram("graph_stabilization_ns", "Duration of a stabilization", MS_AS_NS),
    _histogram("graph_recompute_count", "Nodes that changed in a stabilization", COUNTS),
    _counter(
        "transport_deltas_sent_total",
        "Rows sent to other processes, by edge between stages",
        *("worker", "output"),
    ),
    _counter(
        "transport_deltas_received_total",
        "Rows received from other processes, by edge between stages",
        *("worker", "source"),
    ),
    _counter("transport_delta_bytes_total", "Bytes of deltas sent, as Arrow", "worker"),
    _histogram("transport_rpc_latency_ns", "Latency of calls to a coordinator", MS_AS_NS),
    _gauge("transport_backpressure_level", "Fill of the fullest queue, 0 to 1", "worker"),
    _gauge(
        "window_active_windows",
        "Windows held: open, or within the allowed lateness",
        "worker",
    ),
    _counter(
        "window_late_events_total", "Mildly late events, which are counted in results", "worker"
    ),
    _counter("window_very_late_events_total", "Very late events, which are not", "worker"),
    _counter("window_future_events_total", "Events far ahead of their watermark", "worker"),
    _counter(
        "window_retractions_total",
        "Rows of windows corrected or withdrawn after they were shown",
        "worker",
    ),
    _histogram(
        "system_event_lag_ns",
        "Clock minus watermark of the views, sampled once a second for each partition",
        S_AS_NS,
    ),
    _gauge("system_heap_words", "Resident memory of all processes, in words of 8 bytes", "worker"),
)

_PARTITION = ("worker", "partition")
_WORKER = (
    _counter(
        "events_total",
        "Events by outcome: applied, very_late, dead_lettered; counted again by each receiver "
        "of a repartitioned record",
        *("worker", "fate"),
    ),
    _counter(
        "source_events_total",
        "The same by source, where a pipeline has several",
        *("worker", "source", "fate"),
    ),
    _gauge(
        "source_idle_inputs",
        "Inputs that are silent, and go on by markers, by source",
        *("worker", "source"),
    ),
    _counter(
        "table_versions_out_of_order_total",
        "Records of a table with an earlier event time than the row of their key, by source",
        *("worker", "source"),
    ),
    _counter("source_markers_total", "Recorded markers of idle inputs", "worker", "source"),
    _gauge("ask_waiting_rows", "Rows that wait for an answer", "worker", "ask"),
    _counter("ask_calls_total", "Calls for rows", "worker", "ask"),
    _counter("ask_retries_total", "Calls after the first one for a row", "worker", "ask"),
    _counter("ask_failures_total", "Rows without an answer after all calls", "worker", "ask"),
    _counter("letters_total", "Dead letters, by cause", "worker", "cause"),
    _counter("commits_total", "Committed cuts", "worker"),
    _counter("commit_rows_total", "Committed rows", "worker"),
    _histogram("commit_seconds", "Duration of a commit", BOUNDS),
    _counter(
        "transport_edge_sent_bytes_total",
        "Bytes of bundles sent to other processes, by edge between stages",
        *("worker", "edge"),
    ),
    _counter(
        "transport_edge_received_bytes_total",
        "Bytes of bundles received from other processes, by edge between stages",
        *("worker", "edge"),
    ),
    _counter("checkpoints_total", "Stored checkpoints", "worker"),
    _counter(
        "store_requests_total", "Requests to the store: put, get, list, delete", "worker", "kind"
    ),
    _counter("store_bytes_total", "Bytes of objects that were put and got", "worker", "kind"),
    _counter("checkpoint_failures_total", "Checkpoints that could not be stored", "worker"),
    _histogram("checkpoint_seconds", "Duration of a checkpoint, until it is stored", BOUNDS),
    _counter(
        "digest_mismatches_total", "Restored tables that differ from what was committed", "worker"
    ),
    _counter("partition_failures_total", "Tasks that ended with an error", "worker"),
    _histogram("loop_late_seconds", "Delay of the event loops", BOUNDS),
    _gauge(
        "fold_uncomputable_rows",
        "Result rows that cannot be computed, and are absent",
        *("worker", "fold"),
    ),
    _gauge(
        "join_kept_rows",
        "Rows kept of each side of a join; of a table all its rows",
        *("worker", "join", "side"),
    ),
    _gauge(
        "join_behind",
        "Partitions in which this side of a join holds the other up",
        *("worker", "join", "side"),
    ),
    _gauge(
        "join_event_lag_seconds",
        "Clock minus watermark of each side of a join of streams",
        *("worker", "partition", "join", "side"),
    ),
    _counter(
        "join_rows_total",
        "Rows of the left side of a join of streams by outcome: matched, unmatched",
        *("worker", "join", "fate"),
    ),
    _gauge(
        "partition_keys",
        "Keys, of each window held, in the fold with most of them; rows of an eager join, until"
        " they are final, are keys",
        *_PARTITION,
    ),
    _gauge("partition_event_lag_seconds", "Clock minus watermark of the views", *_PARTITION),
    _gauge(
        "partition_replay_debt_events",
        "Committed events that are in no checkpoint, and would be replayed",
        *_PARTITION,
    ),
    _gauge("partition_commit_age_seconds", "Time since the last commit", *_PARTITION),
    _gauge(
        "partition_checkpoint_age_seconds", "Time since the last checkpoint was stored", *_PARTITION
    ),
    _gauge(
        "partition_commit_waiting_seconds",
        "Time since the brokers of the outputs accept no commit; 0 while they do",
        *_PARTITION,
    ),
    _gauge(
        "partition_input_waiting_seconds",
        "Time since the input is unavailable; 0 while it is available",
        *_PARTITION,
    ),
    _gauge(
        "partition_checkpoint_waiting_seconds",
        "Time since no checkpoint can be stored; 0 while they can",
        *_PARTITION,
    ),
    _gauge(
        "partition_answered_offsets",
        "Committed offsets whose rows all have answers; absent while rows wait",
        *_PARTITION,
    ),
    _gauge("partition_committed_answers", "Committed answers; absent while rows wait", *_PARTITION),
    _gauge("partition_answers_bytes", "Size of the log of answers", *_PARTITION),
    _gauge("partition_checkpoint_bytes", "Size of the last checkpoint", *_PARTITION),
    _gauge("partition_recovery_remaining_events", "Events left in the present replay", *_PARTITION),
    _gauge(
        "partition_recovery_eta_seconds",
        "Estimated time left of the present replay",
        *_PARTITION,
    ),
    _gauge("partition_recovery_seconds", "Duration of the last recovery", *_PARTITION),
    _gauge("worker_alert_firing", "1 while the alert fires", "alert"),
    _gauge("worker_state", "1 for the present state", "state"),
    _gauge("worker_assignment_version", "Newest version of the assignment that the worker knows"),
    _gauge("worker_incarnation", "Version of the assignment that let the worker in, 0 for none"),
    _gauge("worker_certificate_seconds_left", "Time until the certificate expires"),
    _gauge("worker_keys_budget", "Setting max_keys_per_partition, 0 for none"),
    _gauge("worker_load", "Load of the busiest process, 0 to 1"),
    _gauge("worker_partitions_live", "Partitions owned and caught up"),
    _gauge("worker_partitions_followed", "Partitions followed as a standby or target of a move"),
    _gauge("worker_partitions_failing", "Partitions whose tasks fail"),
    _counter("worker_process_restarts_total", "Restarts of each engine process", "slot"),
    _gauge(
        "worker_backpressure",
        "Level of the fullest queue: 1 warns, 2 takes less in, 3 takes nothing in",
        "slot",
    ),
    _gauge("worker_queue_fill", "Fill of the queue, 0 to 1", "queue", "slot"),
    _gauge("worker_queue_held", "Content of the queue, in bytes or rows", "queue", "slot"),
    _gauge("worker_queue_limit", "Limit of the queue", "queue", "slot"),
    _gauge("worker_partition_live", "1 once the partition has caught up", "partition", "slot"),
    _gauge("worker_partition_epoch", "Epoch (fencing number) of the owner", "partition", "slot"),
    _gauge(
        "worker_partition_events",
        "Records applied since the partition came here",
        *("partition", "slot"),
    ),
    _gauge(
        "worker_partition_rows_out",
        "Rows written since the partition came here",
        "partition",
        "slot",
    ),
)

OF_WORKERS: tuple[Metric, ...] = _BOOK + _WORKER

OF_COORDINATORS: tuple[Metric, ...] = (
    _gauge("coordinator_ready", "1 once the assignment chain was read"),
    _gauge("coordinator_certificate_seconds_left", "Time until the certificate expires"),
    _gauge("coordinator_conversations", "Sessions with workers"),
    _gauge("coordinator_assignment_version", "Newest version of the assignment"),
    _gauge("coordinator_frozen", "1 while the assignment is frozen: no partition moves"),
    _gauge("coordinator_partitions", "Partitions of all stages"),
    _gauge("coordinator_partitions_unowned", "Partitions without an owner"),
    _gauge("coordinator_partitions_live", "Partitions that are live, with their state restored"),
    _counter("coordinator_store_requests_total", "Requests to the store, by kind", "kind"),
    _counter("coordinator_store_bytes_total", "Bytes of objects that were put and got", "kind"),
    _gauge("coordinator_moves", "Planned moves in progress"),
    _gauge("coordinator_pins", "Pinned partitions"),
    _gauge("coordinator_replicas_heard", "Other coordinators with fresh views"),
    _gauge("coordinator_candidates", "Workers waiting to join"),
    _gauge("coordinator_problems", "Problems for an operator; see ripple cluster status"),
    _gauge("coordinator_alerts", "Workers with this alert firing", "alert"),
    _gauge("coordinator_workers", "Members by health", "standing"),
    _gauge("coordinator_workers_wanted", "Workers that the load needs; see /scale"),
    _gauge("coordinator_worker_partitions", "Partitions that a worker owns", "worker"),
    _gauge("coordinator_worker_silent_seconds", "Time since a worker was last heard", "worker"),
    _gauge("coordinator_worker_load", "Last reported load of a worker, 0 to 1", "worker"),
)

OF_WATCHES: tuple[Metric, ...] = (
    _counter("validate_rounds_total", "Comparisons of a sample of the keys", "pipeline"),
    _counter("validate_compared_total", "Compared rows", "pipeline"),
    _counter("validate_differences_total", "Outputs with a difference", "pipeline"),
    _counter("validate_failures_total", "Rounds without a result", "pipeline"),
    _gauge("validate_holds", "1 if the last round found no difference", "pipeline"),
)

BY_NAME = {metric.name: metric for metric in OF_WORKERS + OF_COORDINATORS + OF_WATCHES}


def markdown(metrics: tuple[Metric, ...]) -> str:
    """Return a table of metrics."""
    lines = ["| metric | type | labels | |", "|---|---|---|---|"]
    for one in metrics:
        labels = ", ".join(f"`{label}`" for label in one.labels)
        lines.append(f"| `{one.name}` | {one.kind.value} | {labels} | {one.about} |")
    return "\n".join(lines) + "\n"
