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
    _counter("graph_stabilizations_total", "Times that views were brought up to a cut", "worker"),
    _counter(
        "graph_cutoff_hits_total", "Nodes that were recomputed to the value they had", "worker"
    ),
    _gauge("graph_node_count", "Nodes in the graphs of all partitions", "worker"),
    _gauge("graph_dirty_count", "Nodes that wait to be recomputed", "worker"),
    _histogram("graph_stabilization_ns", "How long bringing the views up took", MS_AS_NS),
    _histogram("graph_recompute_count", "Nodes that took a new value, each time", COUNTS),
    _counter(
        "transport_deltas_sent_total",
        "Rows sent to other processes, by the edge between stages",
        *("worker", "output"),
    ),
    _counter(
        "transport_deltas_received_total",
        "Rows got from other processes, by the edge between stages",
        *("worker", "source"),
    ),
    _counter("transport_delta_bytes_total", "Bytes sent as deltas, as Arrow", "worker"),
    _histogram("transport_rpc_latency_ns", "From saying to a coordinator to its answer", MS_AS_NS),
    _gauge("transport_backpressure_level", "How full the fullest queue is, 0 to 1", "worker"),
    _gauge(
        "window_active_windows",
        "Windows that are held: open, or within the lateness that is allowed",
        "worker",
    ),
    _counter("window_late_events_total", "Mildly late events, which count", "worker"),
    _counter("window_very_late_events_total", "Very late events, which do not", "worker"),
    _counter("window_future_events_total", "Events far ahead of their watermark", "worker"),
    _counter(
        "window_retractions_total", "Rows of windows corrected or withdrawn once shown", "worker"
    ),
    _histogram(
        "system_event_lag_ns",
        "The clock less the watermark of the views, of each partition once a second",
        S_AS_NS,
    ),
    _gauge("system_heap_words", "Resident memory of all its processes, in 8 bytes", "worker"),
)

_PARTITION = ("worker", "partition")
_WORKER = (
    _counter(
        "events_total",
        "What became of events since they were read here: applied, very_late, dead_lettered; "
        "twice where the input is divided anew",
        *("worker", "fate"),
    ),
    _counter("letters_total", "Records that were refused, by cause", "worker", "cause"),
    _counter("commits_total", "Cuts that outputs have committed", "worker"),
    _counter("commit_rows_total", "Rows that were committed", "worker"),
    _histogram("commit_seconds", "How long commits took", BOUNDS),
    _counter(
        "transport_edge_sent_bytes_total",
        "Bytes of bundles sent to other processes, by the edge between stages",
        *("worker", "edge"),
    ),
    _counter(
        "transport_edge_received_bytes_total",
        "Bytes of bundles got from other processes, by the edge between stages",
        *("worker", "edge"),
    ),
    _counter("checkpoints_total", "Checkpoints that were stored", "worker"),
    _counter("checkpoint_failures_total", "Checkpoints that could not be stored", "worker"),
    _histogram("checkpoint_seconds", "From beginning a checkpoint to its being stored", BOUNDS),
    _counter(
        "digest_mismatches_total", "Restored tables that are not what was committed", "worker"
    ),
    _counter("partition_failures_total", "Lives of partitions that ended by an error", "worker"),
    _histogram("loop_late_seconds", "How late the loops of its processes turned", BOUNDS),
    _gauge(
        "fold_uncomputable_rows",
        "Result rows that cannot be computed, and are absent",
        *("worker", "fold"),
    ),
    _gauge(
        "partition_keys",
        "Keys, of each window that is held, in the fold that holds the most",
        *_PARTITION,
    ),
    _gauge("partition_event_lag_seconds", "The clock less the watermark of the views", *_PARTITION),
    _gauge(
        "partition_replay_debt_events",
        "Committed and in no checkpoint: to be replayed",
        *_PARTITION,
    ),
    _gauge("partition_commit_age_seconds", "Since the last commit", *_PARTITION),
    _gauge("partition_checkpoint_age_seconds", "Since the last checkpoint was stored", *_PARTITION),
    _gauge(
        "partition_commit_waiting_seconds",
        "Since the brokers of the outputs take no commit; 0 while they do",
        *_PARTITION,
    ),
    _gauge(
        "partition_input_waiting_seconds",
        "Since the input is away; 0 while it is there",
        *_PARTITION,
    ),
    _gauge(
        "partition_checkpoint_waiting_seconds",
        "Since no checkpoint could be stored; 0 while they can",
        *_PARTITION,
    ),
    _gauge("partition_checkpoint_bytes", "Of the last checkpoint", *_PARTITION),
    _gauge("partition_recovery_remaining_events", "Of a replay that is under way", *_PARTITION),
    _gauge(
        "partition_recovery_eta_seconds",
        "How long a replay will still take, by how it has got on",
        *_PARTITION,
    ),
    _gauge("partition_recovery_seconds", "How long coming back took the last time", *_PARTITION),
    _gauge("worker_alert_firing", "1 while it fires", "alert"),
    _gauge("worker_state", "1 for where it stands", "state"),
    _gauge("worker_assignment_version", "The newest version that it has heard of"),
    _gauge("worker_incarnation", "The version that let it in, 0 for none"),
    _gauge("worker_certificate_seconds_left", "Until its certificate is not believed any more"),
    _gauge("worker_keys_budget", "max_keys_per_partition: 0 for none"),
    _gauge("worker_load", "Of its busiest process, 0 to 1"),
    _gauge("worker_partitions_live", "Owned, and caught up with"),
    _gauge("worker_partitions_followed", "About to move here"),
    _gauge("worker_partitions_failing", "That do not get on"),
    _counter("worker_process_restarts_total", "Of each process", "slot"),
    _gauge(
        "worker_backpressure",
        "Of the fullest queue: 1 it warns, 2 less is taken in, 3 nothing",
        "slot",
    ),
    _gauge("worker_queue_fill", "How full, 0 to 1", "queue", "slot"),
    _gauge("worker_queue_held", "What is in it, in bytes or rows", "queue", "slot"),
    _gauge("worker_queue_limit", "What may be in it", "queue", "slot"),
    _gauge("worker_partition_live", "1 once it has caught up", "partition", "slot"),
    _gauge("worker_partition_epoch", "Its owner's fencing number", "partition", "slot"),
    _gauge(
        "worker_partition_events",
        "Records and markers applied since it came here",
        *("partition", "slot"),
    ),
    _gauge("worker_partition_rows_out", "Rows written since it came here", "partition", "slot"),
)

OF_WORKERS: tuple[Metric, ...] = _BOOK + _WORKER

OF_COORDINATORS: tuple[Metric, ...] = (
    _gauge("coordinator_ready", "1 once the chain of assignments was read"),
    _gauge(
        "coordinator_certificate_seconds_left", "Until its certificate is not believed any more"
    ),
    _gauge("coordinator_conversations", "Workers that speak with this replica"),
    _gauge("coordinator_assignment_version", "The newest version of the assignment"),
    _gauge("coordinator_frozen", "1 while the assignment is frozen: no partition moves"),
    _gauge("coordinator_partitions", "Partitions of all stages"),
    _gauge("coordinator_partitions_unowned", "Partitions that nobody owns"),
    _gauge("coordinator_partitions_live", "Partitions that are at work, with their state"),
    _gauge("coordinator_moves", "Planned moves under way"),
    _gauge("coordinator_pins", "Partitions that are pinned"),
    _gauge("coordinator_replicas_heard", "Other coordinators whose views are fresh"),
    _gauge("coordinator_candidates", "Workers that wait to join"),
    _gauge("coordinator_problems", "What somebody should look at; see status"),
    _gauge("coordinator_alerts", "Workers of which an alert fires", "alert"),
    _gauge("coordinator_workers", "Members by how they are seen", "standing"),
    _gauge("coordinator_worker_partitions", "Partitions that a worker owns", "worker"),
    _gauge("coordinator_worker_silent_seconds", "For how long nobody has heard a worker", "worker"),
    _gauge("coordinator_worker_load", "A worker's load, 0 to 1, as it said last", "worker"),
)

OF_WATCHES: tuple[Metric, ...] = (
    _counter("validate_rounds_total", "Times that a sample of the keys was compared", "pipeline"),
    _counter("validate_compared_total", "Rows that were compared", "pipeline"),
    _counter("validate_differences_total", "Outputs that differed in a bit", "pipeline"),
    _counter("validate_failures_total", "Rounds that came to no result", "pipeline"),
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
