"""The delta algebra: by row here, by column in :mod:`ripple.delta.columns`.

Rows decide what is right; columns are the same algebra over whole batches, and the tests hold
one against the other.
"""

from __future__ import annotations

from ripple.delta.algebra import PATCH_THRESHOLD, apply, compose, diff
from ripple.delta.equality import same
from ripple.delta.rows import (
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
from ripple.delta.table import Table
from ripple.delta.text import of_sexp, to_sexp

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
    "of_sexp",
    "same",
    "to_sexp",
]
