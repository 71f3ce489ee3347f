"""The engine: one partition of a pipeline as a deterministic state machine.

engine        reads events; partition: what stands above, whatever feeds it; follower: a later stage
admission     which rows count; rows: on their way through steps; router, division: by which key
event_fold    by key, windowed_fold by window, table_fold over rows of another fold, in groups
remote_*      what other partitions have; outgoing: what the next stage gets; senders
snapshot      the state at a cut; ledger: what changed since which; increment; fitting: whose it is
changes       what is shown; deltas, showing: as those see it who follow; uncomputable; inspecting
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
