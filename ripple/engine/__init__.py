"""The engine: one partition of a pipeline as a deterministic state machine.

engine        reads events; partition: what stands above, whatever feeds it; follower: a later stage
admission     which rows count; rows: on their way through steps; router, division: by which key
event_fold    by key, windowed_fold by window, table_fold over rows of another fold, in groups
remote_*      what other partitions have; outgoing: what the next stage gets; senders
snapshot      the state at a cut; ledger: what changed since which; increment; fitting: whose it is
changes       what is shown; deltas, showing: as those see it who follow; uncomputable; inspecting
"""

from __future__ import annotations

from ripple.engine.changes import Changes
from ripple.engine.counters import Counters
from ripple.engine.engine import Engine
from ripple.engine.rows import RejectedRow
from ripple.engine.snapshot import Snapshot, SnapshotError
from ripple.engine.uncomputable import Uncomputable, UncomputableRow
from ripple.ops import OP_REMOVE, OP_SET

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
