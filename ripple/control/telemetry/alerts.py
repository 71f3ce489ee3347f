"""Alerts of a worker about itself: values in, alerts out; no clock, no I/O.

    look: present measurements -> conditions that hold -> since when -> alerts that fire

The names, thresholds and waiting times are those of ``deploy/prometheus/rules.yml``, which has the
same rules for Prometheus. A condition first holds for as long as its rule says; the alert then
fires until the condition ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ripple.control.assignment import Alert
from ripple.core.setting import Alias, setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.control.telemetry.samples import Samples

WINDOW_S = 300.0
STEP_S = 5.0  # between samples that are kept of a window
LOSS_S = 900.0  # how long a loss is reported: nothing undoes it
QUANTILE = 0.99
ROWS = 1000  # of a batch; larger ones, on average, may take longer: a partition catches up
EXPIRY_S = 14 * 86_400.0  # before a certificate expires
NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert. after_s: for how long its condition must hold before it fires."""

    name: str
    severity: str
    after_s: float = 0.0


RULES = {
    rule.name: rule
    for rule in (
        Rule("StabilizationSlow", "warning", 300),
        Rule("BackpressureHigh", "critical", 60),
        Rule("LateEventsExcessive", "warning", 300),
        Rule("CheckpointStale", "critical", 10),
        Rule("WorkerSilent", "critical"),
        Rule("SchemaMismatch", "critical"),
        Rule("ProcessesDying", "critical"),
        Rule("DataLossDetected", "critical"),
        Rule("CertificateExpires", "warning"),
        Rule("ResultsNotComputed", "warning"),
        Rule("EventsFromFuture", "warning"),
        Rule("KeysOverBudget", "warning"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertThresholds:
    """Thresholds of the conditions."""

    alert_stabilization_ms: float = setting(
        "alert if the p99 of stabilization takes longer, for 1,000 records or a smaller batch",
        default=10.0,
    )
    alert_backpressure: float = setting(
        "alert if a queue is fuller, 0 to 1", default=0.8, within=(0, 1)
    )
    alert_late_share: float = setting(
        "alert if the share of very late events is larger, 0 to 1", default=0.01, within=(0, 1)
    )
    alert_checkpoint_ms: int = setting(
        "alert if a partition's checkpoint is older and incomplete", default=300_000
    )
    alert_silent_ms: int = setting("alert if no coordinator answers for longer", default=30_000)
    max_keys_per_partition: int = setting(
        "alert if a partition holds more keys (of each open window); 0: none",
        default=2000,
        least=0,
        places=(Alias("cluster.defaults.max_keys_per_partition"),),
    )


class State(Enum):
    """State of an alert: inactive; pending, while its condition holds too shortly; firing."""

    QUIET = "quiet"
    WAITING = "waiting"
    FIRING = "firing"


@dataclass(frozen=True, slots=True)
class RuleStatus:
    """State of one rule. since_ns: when that began, by the clock of ``look``."""

    rule: Rule
    state: State = State.QUIET
    since_ns: int = 0
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The input of ``look``. samples: of the whole worker; partitions that are gone have no gauges.

    silent_s: for how long no coordinator has answered. refused: why the worker cannot join, "" if
    it can. dying: report of processes that fail again and again, "" for none.
    """

    samples: Samples
    silent_s: float = 0.0
    refused: str = ""
    dying: str = ""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Counters at one time."""

    at_ns: int
    slow: tuple[int, ...]
    events: float
    very_late: float
    future: float


class Alerts:
    """The alerts of one worker."""

    def __init__(self, thresholds: AlertThresholds | None = None) -> None:
        self._thresholds = thresholds or AlertThresholds()
        self._kept: deque[_Kept] = deque()
        self._losses = 0.0
        self._lost_ns: int | None = None
        self._owing_ns: dict[tuple[str, ...], int] = {}  # since when there is something to replay
        self._looked_ns = 0
        self.standings = {name: RuleStatus(rule) for name, rule in RULES.items()}
        """How each rule stands, by its name."""

    def look(self, seen: Seen, now_ns: int) -> list[RuleStatus]:
        """Take present measurements; return the alerts that have begun or ceased to fire."""
        self._looked_ns = now_ns
        causes = dict(self._conditions(seen, now_ns))
        changed = []
        for name, before in self.standings.items():
            after = self.standings[name] = _next(before, causes.get(name), now_ns)
            if State.FIRING in (before.state, after.state) and before.state is not after.state:
                changed.append(after)
        return changed

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire, as reported to others."""
        now_ns = self._looked_ns
        return tuple(
            Alert(one.rule.name, one.rule.severity, one.cause, (now_ns - one.since_ns) / NS)
            for one in self.standings.values()
            if one.state is State.FIRING
        )

    def _conditions(self, seen: Seen, now_ns: int) -> Iterator[tuple[str, str]]:
        """Yield the rules that fire, with the cause in words."""
        limits = self._thresholds
        then, now = self._window(seen.samples, now_ns)
        slow_ms = _quantile(seen.samples, then.slow, now.slow) / 1e6
        events, batches = now.events - then.events, sum(now.slow) - sum(then.slow)
        rows = max(ROWS, events / batches) if batches else ROWS
        if slow_ms > limits.alert_stabilization_ms * rows / ROWS:
            of = f" for batches of {rows:.0f} records" if rows > ROWS else ""
            yield "StabilizationSlow", f"stabilization takes {slow_ms:.3g} ms (p99){of}"
        queues = (
            (value, labels[0])
            for (name, labels), value in seen.samples.numbers.items()
            if name == "ripple_worker_queue_fill"
        )
        fill, queue = max(queues, default=(0.0, ""))
        if fill > limits.alert_backpressure:
            yield "BackpressureHigh", f"{queue} is {fill:.0%} full"
        late = now.very_late - then.very_late
        if late > limits.alert_late_share * events:
            yield "LateEventsExcessive", f"{late / events:.2%} of events are very late"
        if now.future > then.future:
            yield (
                "EventsFromFuture",
                f"{now.future - then.future:.0f} events far ahead of their watermark",
            )
        yield from _of_state(seen.samples, limits.max_keys_per_partition)
        stale = self._stale(seen.samples, limits.alert_checkpoint_ms / 1000, now_ns)
        if stale:
            yield "CheckpointStale", stale
        yield from self._of_worker(seen)
        losses = _sum(seen.samples, "ripple_digest_mismatches_total")
        if losses > self._losses:
            self._losses, self._lost_ns = losses, now_ns
        if self._lost_ns is not None and now_ns - self._lost_ns < LOSS_S * NS:
            yield "DataLossDetected", "a restored table differs from what was committed"

    def _of_worker(self, seen: Seen) -> Iterator[tuple[str, str]]:
        """Yield the same for the worker itself, apart from its pipeline."""
        if seen.silent_s > self._thresholds.alert_silent_ms / 1000:
            yield "WorkerSilent", f"no coordinator has answered for {seen.silent_s:.0f} s"
        if seen.refused:
            yield "SchemaMismatch", seen.refused
        left_s = seen.samples.numbers.get(("ripple_worker_certificate_seconds_left", ()), EXPIRY_S)
        if left_s < EXPIRY_S:
            yield (
                "CertificateExpires",
                f"the certificate expires in {left_s / 86_400:.1f} days",
            )
        if seen.dying:
            yield "ProcessesDying", seen.dying

    def _stale(self, samples: Samples, limit_s: float, now_ns: int) -> str:
        """Return the partition with the oldest overdue checkpoint, in words; "" if there is none.

        A checkpoint that is old because nothing was new, or no partition was here, is not overdue:
        only one is that has had something to store for as long.
        """
        self._owing_ns = {
            labels: self._owing_ns.get(labels, now_ns)
            for (name, labels), value in samples.numbers.items()
            if name == "ripple_partition_replay_debt_events" and value > 0
        }
        owing = {of for of, since_ns in self._owing_ns.items() if now_ns - since_ns >= limit_s * NS}
        stale = [
            (age_s, labels[-1])
            for (name, labels), age_s in samples.numbers.items()
            if name == "ripple_partition_checkpoint_age_seconds"
            and age_s > limit_s
            and labels in owing
        ]
        if not stale:
            return ""
        age_s, partition = max(stale)
        others = f", and {len(stale) - 1} others" if len(stale) > 1 else ""
        return f"partition {partition} has had no checkpoint for {age_s:.0f} s{others}"

    def _window(self, samples: Samples, now_ns: int) -> tuple[_Kept, _Kept]:
        """Return the counters at the beginning of the window, and now."""
        now = _Kept(
            now_ns,
            _counts(samples),
            _sum(samples, "ripple_events_total"),
            _sum(samples, "ripple_window_very_late_events_total"),
            _sum(samples, "ripple_window_future_events_total"),
        )
        kept = self._kept
        if not kept or now_ns - kept[-1].at_ns >= STEP_S * NS:
            kept.append(now)
        while len(kept) > 1 and now_ns - kept[1].at_ns >= WINDOW_S * NS:
            kept.popleft()
        return kept[0], now


def _of_state(samples: Samples, keys_max: int) -> Iterator[tuple[str, str]]:
    """Yield the rules that the state of partitions breaks, with the cause in words."""
    absent = {
        labels[-1]: int(rows)
        for (name, labels), rows in samples.numbers.items()
        if name == "ripple_fold_uncomputable_rows" and rows > 0
    }
    if absent:
        folds = ", ".join(f"{rows} of {fold!r}" for fold, rows in sorted(absent.items()))
        yield "ResultsNotComputed", f"result rows that cannot be computed, and are absent: {folds}"
    held = [
        (int(keys), labels[-1])
        for (name, labels), keys in samples.numbers.items()
        if name == "ripple_partition_keys" and keys > keys_max > 0
    ]
    if held:
        keys, partition = max(held)
        others = f", and {len(held) - 1} others hold too many" if len(held) > 1 else ""
        yield (
            "KeysOverBudget",
            f"partition {partition} holds {keys} keys, more than max_keys_per_partition "
            f"({keys_max}){others}",
        )


def _next(before: RuleStatus, cause: str | None, now_ns: int) -> RuleStatus:
    """Return the next status of a rule, given the cause of its condition, if it holds."""
    if cause is None:
        is_quiet = before.state is State.QUIET
        return before if is_quiet else RuleStatus(before.rule, State.QUIET, now_ns)
    if before.state is State.FIRING:
        return RuleStatus(before.rule, State.FIRING, before.since_ns, cause)
    since_ns = now_ns if before.state is State.QUIET else before.since_ns
    if now_ns - since_ns >= before.rule.after_s * NS:
        return RuleStatus(before.rule, State.FIRING, now_ns, cause)
    return RuleStatus(before.rule, State.WAITING, since_ns, cause)


def _counts(samples: Samples) -> tuple[int, ...]:
    """Return the buckets of stabilization times, of all processes."""
    found = [
        one.counts
        for (name, _), one in samples.histograms.items()
        if name == "ripple_graph_stabilization_ns"
    ]
    return tuple(sum(each) for each in zip(*found, strict=True))


def _quantile(samples: Samples, then: Sequence[int], now: Sequence[int]) -> float:
    """Return the quantile between two counts, as Prometheus takes it; 0 without values."""
    counts = [b - a for a, b in zip(then or [0] * len(now), now, strict=True)]
    total = sum(counts)
    if not total:
        return 0.0
    bounds = next(
        one.bounds
        for (name, _), one in samples.histograms.items()
        if name == "ripple_graph_stabilization_ns"
    )
    sums = [sum(counts[: at + 1]) for at in range(len(counts))]
    rank = QUANTILE * total
    bucket = bisect_left(sums, rank)
    if bucket >= len(bounds):
        return bounds[-1]
    low = bounds[bucket - 1] if bucket else 0.0
    below = sums[bucket] - counts[bucket]
    return low + (bounds[bucket] - low) * (rank - below) / counts[bucket]


def _sum(samples: Samples, wanted: str) -> float:
    return sum(value for (name, _), value in samples.numbers.items() if name == wanted)
