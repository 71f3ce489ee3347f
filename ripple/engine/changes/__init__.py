"""The delta algebra: by row here, by column in :mod:`ripple.engine.changes.columns`.

The row form is the reference; columns are the same algebra over whole batches, and the tests hold
one against the other.
"""

from __future__ import annotations

from ripple.engine.changes.algebra import PATCH_THRESHOLD, apply, compose, diff
from ripple.engine.changes.equality import same
from ripple.engine.changes.rows import (
    ABSENT,
    Absent,
    Delta,
    FieldRemove,
    FieldSet,
    Final,
    MapRemove,
    MapSet,
    Patch,
    PatchOp,
    Remove,
    Set,
)
from ripple.engine.changes.table import Table

__all__ = [
    "ABSENT",
    "PATCH_THRESHOLD",
    "Absent",
    "Delta",
    "FieldRemove",
    "FieldSet",
    "Final",
    "MapRemove",
    "MapSet",
    "Patch",
    "PatchOp",
    "Remove",
    "Set",
    "Table",
    "apply",
    "compose",
    "diff",
    "same",
]
