"""The engine: one partition of a pipeline as a deterministic state machine."""

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
