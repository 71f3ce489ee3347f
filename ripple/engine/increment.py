"""From a snapshot and what changed since to the snapshot of later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from ripple.engine.output import OP_SET
from ripple.engine.saving import OP
from ripple.engine.snapshot import Snapshot, SnapshotError
from ripple.graph.keyspace import key_space
from ripple.schema.types import Bool, Field, Int64, String


def applied(base: Snapshot, changes: Snapshot) -> Snapshot:
    """Return the snapshot of everything at the cut of ``changes``, whose base is ``base``.

    Raises SnapshotError when they are not of one pipeline.
    """
    if base.topology_hash != changes.topology_hash or base.tables.keys() != changes.tables.keys():
        raise SnapshotError(
            f"changes at {dict(changes.cut)} are not of the pipeline whose state was stored at "
            f"{dict(base.cut)}"
        )
    tables = {key: _applied(base.tables[key], table) for key, table in changes.tables.items()}
    return replace(changes, tables=tables, since=None)


def _applied(base: pa.Table, changes: pa.Table) -> pa.Table:
    """Return the rows of ``base`` whose key did not change, then those that were set."""
    keys = changes.column_names[: changes.column_names.index(OP)]
    space = key_space([_key_field(changes.schema.field(name)) for name in keys])
    columns = [table.select(keys).combine_chunks().columns for table in (base, changes)]
    arrays = [[column.combine_chunks() for column in one] for one in columns]
    before = space.slots(arrays[0] or [np.empty(base.num_rows)])
    after = space.slots(arrays[1] or [np.empty(changes.num_rows)])
    has_changed = np.zeros(space.capacity, np.bool_)
    has_changed[after] = True
    kept = base.filter(pa.array(~has_changed[before]))
    is_set = changes.column(OP).to_numpy() == OP_SET
    new = changes.filter(pa.array(is_set)).select(base.column_names)
    return pa.concat_tables([kept, new]).combine_chunks()


def _key_field(field: pa.Field) -> Field:
    if pa.types.is_string(field.type):
        return Field(field.name, String())
    return Field(field.name, Bool() if pa.types.is_boolean(field.type) else Int64())
