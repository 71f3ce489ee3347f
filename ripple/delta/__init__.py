"""The delta algebra, by row and by column."""

from __future__ import annotations

from ripple.delta.rows import (
    Delta,
    FieldRemove,
    FieldSet,
    MapRemove,
    MapSet,
    Patch,
    PatchOp,
    Remove,
    Set,
)

__all__ = [
    "Delta",
    "FieldRemove",
    "FieldSet",
    "MapRemove",
    "MapSet",
    "Patch",
    "PatchOp",
    "Remove",
    "Set",
]
