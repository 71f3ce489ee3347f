"""Columnar deltas: many keys' changes as one Arrow record batch.

=================  ==============================================================
column             holds
=================  ==============================================================
each key field     the key; no nulls; no key twice in one batch
``op``             int8: 0 Set, 1 Patch, 2 Remove, 3 Final
each other field   the new value; null where there is none
``_cleared.NAME``  bool, for a nullable field only: the Patch makes it null
=================  ==============================================================

The meaning of a null depends on the operation, and one more bit separates the two of a Patch:

========  ==================  ===========================
``op``    value, cleared      the field
========  ==================  ===========================
Set       value, no           holds the value
Set       null, no            is null (nullable ones only)
Patch     value, no           holds the value
Patch     null, yes           is null
Patch     null, no            stays
Remove    null, no            is gone with its key
Final     as of a Set         held so at last; gone with its key
========  ==================  ===========================

Every other combination is an error. So pandas and Polars show a patch as it is, a row with
values where something changed; a snapshot is the table itself with a column of zeros; and a table
without nullable fields pays nothing for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.core.errors import DeltaError, SchemaError
from ripple.core.row_ops import OP, OP_FINAL, OP_PATCH, OP_REMOVE, OP_SET
from ripple.engine.changes.kernel import note_changes
from ripple.model.schema import types

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.model.keys.space import KeySpace

    Bytes: TypeAlias = npt.NDArray[np.uint8]
    Ops: TypeAlias = npt.NDArray[np.int8]

Batch: TypeAlias = pa.RecordBatch

CLEARED = "_cleared."

NOTHING: Bytes = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Layout:
    """A table's columns, which of them are the key, and the columns of its deltas.

    ``table`` is the Arrow schema of the table. Key fields are text, integers or booleans; a total
    has none, and one row at most. A field is required unless it is nullable. Raises
    SchemaError for a key that does not exist or has another type, and for a
    field that a delta cannot hold.
    """

    # Invariants: keys come first in both schemas; names are distinct.
    table: pa.Schema
    keys: tuple[str, ...]
    deltas: pa.Schema = field(init=False)
    values: tuple[pa.Field, ...] = field(init=False)

    def __post_init__(self) -> None:
        _check(self.table, self.keys)
        keys = [self.table.field(name).with_nullable(False) for name in self.keys]
        values = tuple(column for column in self.table if column.name not in self.keys)
        cleared = [
            pa.field(CLEARED + column.name, pa.bool_(), nullable=False)
            for column in values
            if column.nullable
        ]
        columns = [pa.field(OP, pa.int8(), nullable=False)]
        columns += [column.with_nullable(True) for column in values]
        metadata = {"ripple.keys": json.dumps(self.keys)}
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "table", pa.schema([*keys, *values]))
        object.__setattr__(self, "deltas", pa.schema([*keys, *columns, *cleared], metadata))

    @property
    def key_fields(self) -> tuple[types.Field, ...]:
        """The fields of the key, as the key space wants them."""
        return tuple(types.Field(k, _key_type(self.table.field(k).type)) for k in self.keys)

    def key_columns(self, batch: Batch) -> list[pa.Array]:
        """Return the key columns of a table or of deltas."""
        return [batch.column(name) for name in self.keys]

    def slots(self, space: KeySpace, batch: Batch) -> npt.NDArray[np.int64]:
        """Return the slot of each row's key, adding new ones; of a total, one for all rows."""
        return space.slots(self.key_columns(batch) or [batch.column(0)])

    def key_at(self, batch: Batch, row: int) -> Any:
        """Return one row's key: the value, or a tuple of as many as there are."""
        parts = tuple(column[row].as_py() for column in self.key_columns(batch))
        return parts[0] if len(parts) == 1 else parts

    def conform(self, batch: Batch) -> Batch:
        """Return deltas with this layout's columns in their order; missing ones are unchanged.

        Raises :class:`DeltaError` for a column that does not exist or has another type.
        """
        if batch.schema.equals(self.deltas):
            return batch
        self.check_columns(batch.schema)
        # Untouched pages of zeros cost no memory, however many rows are claimed.
        zeros = pa.py_buffer(np.zeros(16 * (batch.num_rows + 1), np.uint8))
        arrays = [
            batch.column(column.name)
            if batch.schema.get_field_index(column.name) >= 0
            else self._idle(column, batch.num_rows, zeros)
            for column in self.deltas
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.deltas)

    def without_idle_columns(self, batch: Batch) -> Batch:
        """Return deltas without the columns in which nothing changes, to be sent or stored."""
        idle = {
            column.name
            for column in self.values
            if batch.column(column.name).null_count == batch.num_rows
        }
        idle |= {
            name
            for name in batch.schema.names
            if name.startswith(CLEARED) and not batch.column(name).true_count
        }
        return batch.select([name for name in batch.schema.names if name not in idle])

    def _idle(self, column: pa.Field, rows: int, zeros: pa.Buffer) -> pa.Array:
        kind = column.type
        if column.name == OP or column.name in self.keys:
            raise DeltaError(f"the deltas lack their column {column.name!r}")
        if column.name.startswith(CLEARED):
            return pa.Array.from_buffers(kind, rows, [None, zeros])
        if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
            return pa.Array.from_buffers(kind, rows, [zeros, zeros])
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            return pa.Array.from_buffers(kind, rows, [zeros, zeros, zeros])
        return pa.nulls(rows, kind)

    def check_columns(self, schema: pa.Schema) -> None:
        """Raise :class:`DeltaError` unless every column is one of the deltas', with its type."""
        for column in schema:
            at = self.deltas.get_field_index(column.name)
            if at < 0:
                names = ", ".join(self.deltas.names)
                raise DeltaError(f"no field {column.name!r} in these deltas; they have {names}")
            if column.type != self.deltas.field(at).type:
                raise DeltaError(
                    f"field {column.name!r} is {self.deltas.field(at).type}, "
                    f"but the deltas hold {column.type}"
                )
        if len(set(schema.names)) != len(schema.names):
            raise DeltaError(f"two columns of the same name: {', '.join(schema.names)}")

    def check(self, batch: Batch) -> Bytes:
        """Check conforming deltas row by row; return uint8[n]: where a Patch changes something.

        Raises :class:`DeltaError` naming the key and field of a row that contradicts itself.
        Whether the rows fit a table is for the table to say.
        """
        for name in (*self.keys, OP):
            if batch.column(name).null_count:
                raise DeltaError(f"the column {name!r} of these deltas has nulls")
        ops = ops_of(batch)
        unknown = np.flatnonzero((ops < OP_SET) | (ops > OP_FINAL))
        if len(unknown):
            row = int(unknown[0])
            raise DeltaError(f"key {self.key_at(batch, row)!r}: there is no operation {ops[row]}")
        changed = np.zeros(len(ops), np.uint8)
        for column in self.values:
            valid = bitmap(batch.column(column.name))
            cleared = cleared_bitmap(batch, column)
            row = note_changes(ops, *valid, *cleared, not column.nullable, changed)
            if row >= 0:
                raise self._contradiction(batch, row, column)
        return changed

    def _contradiction(self, batch: Batch, row: int, column: pa.Field) -> DeltaError:
        op = int(ops_of(batch)[row])
        story = {
            OP_SET: f"a Set leaves the required field {column.name!r} null, or also clears it",
            OP_FINAL: f"a Final leaves the required field {column.name!r} null, or also clears it",
            OP_PATCH: f"a Patch both sets and clears the field {column.name!r}",
            OP_REMOVE: f"a Remove holds a value of the field {column.name!r}",
        }[op]
        return DeltaError(f"key {self.key_at(batch, row)!r}: {story}")


def layout_of(deltas: pa.Schema) -> Layout:
    """Return a layout that deltas with these columns have, as far as the columns tell.

    The key is the columns before ``op``. All fields count as nullable, since a ``_cleared`` column
    without cleared fields may be absent. Raises SchemaError for columns that are no deltas.
    """
    at = deltas.get_field_index(OP)
    if at < 0:
        raise SchemaError(f"no column {OP!r} among {', '.join(deltas.names)}")
    columns = [c for c in deltas if c.name != OP and not c.name.startswith(CLEARED)]
    return Layout(pa.schema(columns), tuple(deltas.names[:at]))


def snapshot_of(layout: Layout, rows: Batch) -> Batch:
    """Return the deltas that make the table ``rows`` out of an empty one: a Set per row."""
    ops = pa.array(np.zeros(rows.num_rows, np.int8))
    names = [*layout.keys, *(column.name for column in layout.values)]
    arrays = [rows.column(name) for name in names]
    sets = pa.RecordBatch.from_arrays([ops, *arrays], names=[OP, *names])
    return layout.conform(sets)


def ops_of(batch: Batch) -> Ops:
    """Return the operations of deltas: int8[n], without a copy."""
    ops: Ops = batch.column(OP).to_numpy()
    return ops


def bitmap(array: pa.Array) -> tuple[Bytes, int]:
    """Return an array's validity as (bytes, offset in bits); no bytes when all are valid."""
    bits = array.buffers()[0] if array.null_count else None
    return (NOTHING, 0) if bits is None else (np.frombuffer(bits, np.uint8), array.offset)


def cleared_bitmap(batch: Batch, column: pa.Field) -> tuple[Bytes, int]:
    """Return which rows clear a field, as (bytes, offset in bits); no bytes when none can."""
    if not column.nullable or not batch.num_rows:
        return NOTHING, 0
    cleared = batch.column(CLEARED + column.name)
    if cleared.null_count:
        raise DeltaError(f"the column {CLEARED + column.name!r} of these deltas has nulls")
    return np.frombuffer(cleared.buffers()[1], np.uint8), cleared.offset


def rows_valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which rows of an array hold a value: bool[n]."""
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _check(table: pa.Schema, keys: Sequence[str]) -> None:
    if len(set(keys)) != len(keys):
        raise SchemaError(f"the key of a table is distinct fields, not {keys!r}")
    if not len(table):
        raise SchemaError("a table without any field")
    if len(set(table.names)) != len(table.names):
        raise SchemaError(f"two fields of a table have the same name: {', '.join(table.names)}")
    for name in keys:
        if name not in table.names:
            raise SchemaError(f"no field {name!r}; the fields are {', '.join(table.names)}")
        _key_type(table.field(name).type, name)
    for column in table:
        if column.name == OP or column.name.startswith(CLEARED):
            raise SchemaError(f"{column.name!r} is a name of the deltas' own; rename the field")
        if pa.types.is_dictionary(column.type):
            raise SchemaError(f"field {column.name!r} is dictionary-encoded; decode it first")


def _key_type(arrow: pa.DataType, name: str = "") -> types.FieldType:
    if pa.types.is_string(arrow):
        return types.String()
    if pa.types.is_int64(arrow):
        return types.Int64()
    if pa.types.is_boolean(arrow):
        return types.Bool()
    raise SchemaError(f"key field {name!r} is {arrow}; keys are string, int64 or bool")
