"""The coordinator's limits and periods, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.core.errors import LimitError
from ripple.core.setting import Alias, milliseconds, setting, settings_of

# Points of a process on the ring, which is built anew with each version.
VIRTUAL_NODES_MAX = 4_096
MS = 1_000_000  # nanoseconds in a millisecond


def _limit(help_text: str, default: int, *, least: int = 1, **about: Any) -> Any:
    return setting(help_text, default=default, least=least, **about)


def _seconds(*names: str) -> tuple[Alias, ...]:
    """Return places in Ripple/OCaml's file, which has seconds."""
    return tuple(Alias(f"cluster.defaults.{name}", milliseconds) for name in names)


def _places(*names: str) -> tuple[Alias, ...]:
    return tuple(Alias(f"cluster.defaults.{name}") for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a coordinator; all replicas of a cluster should have the same.

    Silence of a worker is that in all fresh views. A replica's view is fresh as long as it
    advances. Candidates that are silent together are evicted early if they ask to join anew.
    """

    partitions: int = _limit(
        "partitions of the first stage of a new cluster; must divide those of its inputs",
        128,
        most=PARTITIONS_MAX,
        places=_places("num_partitions", "total_partitions"),
    )
    virtual_nodes: int = _limit(
        "points of each process on the consistent hash ring",
        128,
        most=VIRTUAL_NODES_MAX,
        places=_places("virtual_nodes"),
    )
    heartbeat_interval_ms: int = _limit(
        "period of workers' heartbeats", 1_000, places=_seconds("heartbeat_interval_sec")
    )
    suspected_after_ms: int = _limit("silence after which a worker is suspected", 4_000)
    dead_after_ms: int = _limit(
        "silence in every fresh view after which a worker is evicted",
        8_000,
        places=_seconds("failure_detection_timeout_sec", "heartbeat_timeout_sec"),
    )
    ended_after_ms: int = _limit("the same for a worker whose stream has ended", 3_000)
    view_fresh_ms: int = _limit("time for which another coordinator's view counts", 6_000)
    view_interval_ms: int = _limit(
        "period of writing views to the store while no other coordinator answers", 2_000
    )
    mass_silence_members: int = _limit(
        "number of silent workers, if more than a third, that is treated as the observers' fault",
        2,
    )
    mass_silence_ms: int = _limit("time before workers are evicted in that case", 30_000)
    loop_late_max_ms: int = _limit("delay after which a coordinator starts to observe anew", 1_000)
    join_collect_ms: int = _limit("time for which join requests are batched", 3_000)
    version_interval_ms: int = _limit(
        "minimum time between versions of the assignment, except for commands", 1_000
    )
    jitter_ms: int = _limit("maximum random delay before a proposal", 500)
    checkpoint_interval_ms: int = _limit(
        "period of checkpoint triggers of a worker",
        120_000,
        places=_seconds("checkpoint_interval_sec"),
    )
    moves_per_target: int = _limit("planned moves to one process at once", 2)
    moves_away_per_target: int = _limit(  # a leaving worker has half a minute
        "moves to one process at once, from leaving workers", 16
    )
    moves_min: int = _limit("planned moves at once, if more than the percentage", 8)
    moves_percent: int = _limit(
        "planned moves at once, as a percentage of all partitions", 10, most=100
    )
    move_retry_ms: int = _limit("time before a failed move is tried again", 60_000)
    standbys: int = _limit("hot standbys of each partition: 0 or 1", 0, least=0, most=1)
    alert_silent_ms: int = _limit("alert if a member is silent for longer", 30_000)
    scale_busy_percent: int = _limit(
        "CPU share at which the number of wanted workers aims", 60, most=100
    )
    scale_up_after_ms: int = _limit(
        "time for which more workers are needed before some are", 30_000
    )
    scale_down_after_ms: int = _limit(
        "time for which fewer workers are needed before one may go", 600_000
    )
    scale_debt_max_ms: int = _limit(
        "age of records in no checkpoint beyond which no worker should go", 300_000
    )
    rejoin_step_ms: int = _limit(
        "additional time that a flapping worker waits after each eviction", 10_000
    )
    rejoin_max_ms: int = _limit(  # a membership as long as this clears a worker's record
        "maximum time that a flapping worker waits", 300_000
    )
    candidates_max: int = _limit("maximum number of workers that wait to join", 1_024)
    commands_max: int = _limit("maximum number of pending commands", 256)
    command_wait_ms: int = _limit("time after which a pending command is given up", 30_000)
    views_max: int = _limit("maximum number of coordinators with stored views", 16)

    def __post_init__(self) -> None:
        bounds = settings_of(Limits)
        for one in bounds:
            value = getattr(self, one.name)
            if type(value) is not int or value < (one.least or 0):
                raise LimitError(f"{one.name} is {value!r}, not an integer of at least {one.least}")
        for one in bounds:
            if one.most is not None and getattr(self, one.name) > one.most:
                raise LimitError(f"{one.name} is {getattr(self, one.name)}, at most {one.most}")
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
