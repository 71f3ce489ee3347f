"""The coordinator's limits and periods, by name."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.core.errors import LimitError

# Points of a process on the ring, which is built anew with each version.
VIRTUAL_NODES_MAX = 4_096
MS = 1_000_000  # nanoseconds in a millisecond

_MOST = {
    "standbys": 1,
    "partitions": PARTITIONS_MAX,
    "virtual_nodes": VIRTUAL_NODES_MAX,
    "moves_percent": 100,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a coordinator; all replicas of a cluster should have the same.

    suspected_after_ms < dead_after_ms: silence of a worker in all fresh views.
    ended_after_ms: the same for a worker whose stream has ended.
    view_fresh_ms: a replica's view that has not advanced for longer does not count.
    view_interval_ms: between writes of views to the store, while no other replica answers.
    mass_silence_members: if as many, and more than a third, are silent together, none is evicted
        before mass_silence_ms, except those that ask to join anew.
    loop_late_max_ms: a replica that was later than this observes anew.
    join_collect_ms: workers that ask to join within it join together.
    version_interval_ms: between two versions without a command. jitter_ms: before each.
    moves_per_target, moves_min, moves_percent: planned moves in progress at once; the larger of the
        last two, the percentage is of all partitions.
    moves_away_per_target: the same for moves away from a leaving worker, which has half a minute;
        their total is not limited.
    move_retry_ms: after a failed move, before the same is tried again.
    command_wait_ms: after so long, a command that could not be done is given up.
    standbys: hot standbys of each partition: 0 or 1.
    alert_silent_ms: a member that is silent for longer is an alert.
    rejoin_step_ms, rejoin_max_ms: a worker that is evicted again and again waits that much longer
        each time before it may join; a membership as long as the maximum clears its record.
    """

    partitions: int = 128
    virtual_nodes: int = 128
    heartbeat_interval_ms: int = 1_000
    suspected_after_ms: int = 4_000
    dead_after_ms: int = 8_000
    ended_after_ms: int = 3_000
    view_fresh_ms: int = 6_000
    view_interval_ms: int = 2_000
    mass_silence_members: int = 2
    mass_silence_ms: int = 30_000
    loop_late_max_ms: int = 1_000
    join_collect_ms: int = 3_000
    version_interval_ms: int = 1_000
    jitter_ms: int = 500
    checkpoint_interval_ms: int = 10_000
    moves_per_target: int = 2
    moves_away_per_target: int = 16
    moves_min: int = 8
    moves_percent: int = 10
    move_retry_ms: int = 60_000
    standbys: int = 0
    alert_silent_ms: int = 30_000
    rejoin_step_ms: int = 10_000
    rejoin_max_ms: int = 300_000
    candidates_max: int = 1_024
    commands_max: int = 256
    command_wait_ms: int = 30_000
    views_max: int = 16

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least = 0 if each.name == "standbys" else 1
            if type(value) is not int or value < least:
                raise LimitError(f"{each.name} is {value!r}, not an integer of at least {least}")
        for name, most in _MOST.items():
            if getattr(self, name) > most:
                raise LimitError(f"{name} is {getattr(self, name)}, at most {most}")
        for less, more in (
            ("heartbeat_interval_ms", "suspected_after_ms"),
            ("suspected_after_ms", "dead_after_ms"),
            ("ended_after_ms", "dead_after_ms"),
            ("view_interval_ms", "view_fresh_ms"),
            ("view_fresh_ms", "dead_after_ms"),
            ("dead_after_ms", "mass_silence_ms"),
        ):
            if getattr(self, less) >= getattr(self, more):
                raise LimitError(
                    f"{less} is {getattr(self, less)}, it must be less than {more}, "
                    f"{getattr(self, more)}"
                )

    def moves_of(self, partitions: int) -> int:
        """Return how many planned moves may be in progress, of so many partitions."""
        return max(self.moves_min, partitions * self.moves_percent // 100)
