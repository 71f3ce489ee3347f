"""A later snapshot from an earlier one and its increments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP_SET
from ripple.engine.snapshots.saving import STATE_OP
from ripple.engine.snapshots.snapshot import Snapshot, SnapshotError
from ripple.model.keys.space import KeySpace, key_space
from ripple.model.schema.types import Bool, Field, Int64, String

if TYPE_CHECKING:
    import numpy.typing as npt


def applied(base: Snapshot, *changes: Snapshot) -> Snapshot:
    """Return the snapshot of everything at the cut of the last of ``changes``.

    Each holds the changes since the one before, the first since ``base``. Raises SnapshotError
    when they are not of one pipeline.
    """
    if not changes:
        return base
    for one in changes:
        if base.topology_hash != one.topology_hash or base.tables.keys() != one.tables.keys():
            raise SnapshotError(
                f"changes at {dict(one.cut)} are not of the pipeline with the state stored at "
                f"{dict(base.cut)}"
            )
    tables = {
        key: _applied(table, [one.tables[key] for one in changes])
        for key, table in base.tables.items()
    }
    return replace(changes[-1], tables=tables, since=None)


def _applied(base: pa.Table, changes: list[pa.Table]) -> pa.Table:
    """Return each key's row from the last table that has the key, unless it removes it."""
    first = changes[0]
    keys = first.column_names[: first.column_names.index(STATE_OP)]
    space = key_space([_key_field(first.schema.field(name)) for name in keys])
    tables = [base, *changes]
    slots = [_slots(space, table.select(keys)) for table in tables]
    last = np.zeros(space.capacity, np.int64)
    for number, present in enumerate(slots):
        last[present] = number
    kept = [base.filter(pa.array(last[slots[0]] == 0))]
    for number, table in enumerate(changes, 1):
        is_set = table.column(STATE_OP).to_numpy() == OP_SET
        current = table.filter(pa.array(is_set & (last[slots[number]] == number)))
        kept.append(current.select(base.column_names))
    return pa.concat_tables(kept).combine_chunks()


def _slots(space: KeySpace, keys: pa.Table) -> npt.NDArray[np.int64]:
    columns = [column.combine_chunks() for column in keys.columns]
    slots = space.slots(columns or [np.empty(keys.num_rows)])
    space.adopt(slots)
    return slots


def _key_field(field: pa.Field) -> Field:
    if pa.types.is_string(field.type):
        return Field(field.name, String())
    return Field(field.name, Bool() if pa.types.is_boolean(field.type) else Int64())
