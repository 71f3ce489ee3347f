"""Rates, ages and sums of counters, from one tick to the next.

Unknown values are None, never 0: a counter seen once has no rate.
"""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.control.telemetry.samples import Samples

# Rates are over the last ticks: a single one jumps with each commit.
TICKS = 10
CAUSES_SHOWN = 50

_OF_PARTITIONS = {
    "ripple_partition_event_lag_seconds": "lag_s",
    "ripple_partition_replay_debt_events": "debt",
    "ripple_partition_commit_age_seconds": "commit_age_s",
    "ripple_partition_checkpoint_age_seconds": "checkpoint_age_s",
    "ripple_partition_checkpoint_bytes": "checkpoint_bytes",
    "ripple_partition_recovery_remaining_events": "recovery_remaining",
    "ripple_partition_recovery_seconds": "recovery_s",
    "ripple_worker_partition_live": "live",
    "ripple_worker_partition_epoch": "epoch",
    "ripple_worker_partition_events": "events",
    "ripple_worker_partition_rows_out": "rows_out",
}
_SUMS = {
    "ripple_window_late_events_total": "mildly_late",
    "ripple_window_retractions_total": "retractions",
    "ripple_window_active_windows": "windows",
    "ripple_graph_stabilizations_total": "stabilizations",
    "ripple_graph_cutoff_hits_total": "cutoffs",
    "ripple_graph_node_count": "nodes",
    "ripple_commits_total": "commits",
    "ripple_checkpoints_total": "checkpoints",
    "ripple_checkpoint_failures_total": "checkpoint_failures",
    "ripple_digest_mismatches_total": "digest_mismatches",
    "ripple_partition_failures_total": "partition_failures",
    "ripple_transport_delta_bytes_total": "bytes_sent",
}
FATES = ("applied", "very_late", "dead_lettered")


class Rates:
    """Previous values of counters, and their rates."""

    def __init__(self) -> None:
        self._seen: dict[object, deque[tuple[int, float]]] = {}
        self._turn: set[object] = set()

    def rate(self, name: object, value: float | None, now_ns: int) -> float | None:
        """Return a counter's growth a second; None if unknown."""
        self._turn.add(name)
        if value is None:
            self._seen.pop(name, None)
            return None
        seen = self._seen.setdefault(name, deque(maxlen=TICKS + 1))
        if seen and value < seen[-1][1]:
            seen.clear()  # the counter was reset
        seen.append((now_ns, value))
        first_ns, first = seen[0]
        return None if now_ns <= first_ns else (value - first) * 1e9 / (now_ns - first_ns)

    def turn(self) -> None:
        """Forget counters that were not requested since the last call."""
        self._seen = {name: seen for name, seen in self._seen.items() if name in self._turn}
        self._turn = set()


def partitions_of(samples: Samples) -> dict[int, dict[str, Any]]:
    """Return by partition the numbers of one process."""
    found: dict[int, dict[str, Any]] = {}
    for (name, labels), value in samples.numbers.items():
        field = _OF_PARTITIONS.get(name)
        if field is not None:
            number = labels[1] if name.startswith("ripple_partition") else labels[0]
            found.setdefault(int(number), {})[field] = value
    return found


def add_sums(found: dict[str, Any], samples: Samples) -> None:
    """Add the counts of a process to those of others: ``events``, ``letters``, ``edges``."""
    events = found.setdefault("events", dict.fromkeys(FATES, 0.0))
    letters, edges = found.setdefault("letters", {}), found.setdefault("edges", {})
    for (name, labels), value in samples.numbers.items():
        field = _SUMS.get(name)
        if field is not None:
            found[field] = found.get(field, 0) + value
        elif name == "ripple_events_total":
            events[labels[1]] = events.get(labels[1], 0) + value
        elif name == "ripple_letters_total":
            letters[labels[1]] = letters.get(labels[1], 0) + value
        elif name == "ripple_transport_deltas_sent_total":
            edges[labels[1]] = edges.get(labels[1], 0) + value
    for (name, _), one in samples.histograms.items():
        if name == "ripple_graph_recompute_count":
            found["recomputes"] = found.get("recomputes", 0) + one.sum
        elif name == "ripple_graph_stabilization_ns":
            found["stabilization_ns"] = found.get("stabilization_ns", 0) + one.sum


def top_causes(letters: dict[str, float]) -> list[dict[str, Any]]:
    """Return the reasons of rejected records, most frequent first."""
    ordered = sorted(letters.items(), key=lambda one: (-one[1], one[0]))
    return [{"cause": cause, "count": count} for cause, count in ordered[:CAUSES_SHOWN]]


def most(values: Iterable[float | None]) -> float | None:
    """Return the largest known value."""
    return max((one for one in values if one is not None), default=None)


def middle(values: Iterable[float | None]) -> float | None:
    """Return the median of the known values."""
    known = [one for one in values if one is not None]
    return median(known) if known else None


def total(values: Iterable[float | None]) -> float | None:
    """Return the sum of the known values; None without any."""
    known = [one for one in values if one is not None]
    return sum(known) if known else None
