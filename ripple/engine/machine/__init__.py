"""The state machine of one partition.

engine, graph_engine    the first stage, fed with events; of a plan with branches
way, port, fate         of a plan with branches: the way of rows; of a source's records; counting
follower, partition     a later stage, fed with changes; the part of all in common
inputs                  input positions
router, source_router   repartitioning: of a chain; of one source of another plan
divider, waiting_rows   their common base; records until their targets take them
targets                 the partitions of a record, for a source_router and its receivers
receiver                the first stage behind source routers
changes                 rows of outputs that changed
output_stream           the changes of one output for a subscriber; event_stream: of events
deltas                  changes and final rows of an output as one batch of deltas
counters, inspection    counts of events; the state of the graph's nodes as JSON
"""

from __future__ import annotations

from ripple.core.row_ops import OP_REMOVE, OP_SET
from ripple.engine.machine.changes import Changes
from ripple.engine.machine.counters import Counters
from ripple.engine.machine.engine import Engine
from ripple.engine.operators.rows import RejectedRow
from ripple.engine.operators.uncomputable import Uncomputable, UncomputableRow
from ripple.engine.snapshots.snapshot import Snapshot, SnapshotError

__all__ = [
    "OP_REMOVE",
    "OP_SET",
    "Changes",
    "Counters",
    "Engine",
    "RejectedRow",
    "Snapshot",
    "SnapshotError",
    "Uncomputable",
    "UncomputableRow",
]
