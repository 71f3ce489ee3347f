"""A status, as coordinators tell it."""

from __future__ import annotations

from coordinator.decisions.status import (
    AlertStatus,
    MemberStatus,
    MoveStatus,
    PartitionStatus,
    Status,
)
from coordinator.decisions.views import HealthState
from ripple.control.assignment import Alert, Backpressure, Level, Phase

STATUS = Status(
    replica="c1",
    version=9,
    cause="w2 joins",
    frozen=None,
    partitions=8,
    unowned=1,
    members=(
        MemberStatus(
            *("w1", 3, HealthState.ACTIVE, 250, 0.0, 4, False, (("health", "w1:9100"),)),
            Backpressure(Level.SLOW, 0.83, "outboxes"),
        ),
        MemberStatus("w2", 9, HealthState.SUSPECTED, 4100, None, 3, True, ()),
    ),
    moves=(MoveStatus(2, "w1/0", "w2/0", Phase.WARMING, 1),),
    pins=((0, "w1", "its cache"),),
    replicas=("c2",),
    waiting=(("w3", "joins soon"),),
    problems=("w2 is suspected: silent for 4 s",),
    owners=(PartitionStatus("main", 0, "w1/0", 3, "w2/0"), PartitionStatus("totals", 0, None, 0)),
    alerts=(
        AlertStatus("w1", Alert("CheckpointStale", "critical", "partition 3: 25 s", 12.5)),
        AlertStatus("w9", Alert("SchemaMismatch", "critical", "its code differs", 1.0)),
    ),
)
