"""Between the two forms: deltas as objects, and as one record batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.core.errors import DeltaError
from ripple.core.row_ops import OP, OP_FINAL, OP_PATCH, OP_REMOVE, OP_SET
from ripple.engine.changes import shape
from ripple.engine.changes.algebra import compose
from ripple.engine.changes.layout import CLEARED, Batch, Layout
from ripple.engine.changes.rows import (
    Delta,
    FieldRemove,
    FieldSet,
    Final,
    Patch,
    PatchOp,
    Remove,
    Set,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def of_rows(layout: Layout, deltas: Iterable[tuple[Any, Delta[Any]]]) -> Batch:
    """Return keyed deltas of records as a batch; a key of several fields, or of none, is a tuple.

    None and an absent field are both null. Raises :class:`DeltaError` for maps, a field that does
    not exist or is part of the key, a value of the wrong type or a required one that is missing.
    """
    columns: dict[str, list[Any]] = {name: [] for name in layout.deltas.names}
    for key, delta in deltas:
        row = dict.fromkeys(columns) | {name: False for name in columns if name.startswith(CLEARED)}
        parts = (key,) if len(layout.keys) == 1 else key
        row.update(zip(layout.keys, parts, strict=True))
        _fill(layout, row, delta)
        for name, held in row.items():
            columns[name].append(held)
    batch = pa.RecordBatch.from_arrays(
        [_array(held, layout.deltas.field(name)) for name, held in columns.items()],
        schema=layout.deltas,
    )
    layout.check(batch)
    return batch


def to_rows(layout: Layout, batch: Batch) -> list[tuple[Any, Delta[Any]]]:
    """Return each row's key and delta; a Set or Final holds a dict of the key's and other fields.

    A null is an absent field: a missing key of the dict, a FieldRemove of the patch. Raises
    :class:`DeltaError` for deltas of another layout or that contradict themselves.
    """
    batch = layout.conform(batch)
    layout.check(batch)
    return [_delta(layout, row) for row in batch.to_pylist()]


def _fill(layout: Layout, row: dict[str, Any], delta: Delta[Any]) -> None:
    match delta:
        case Set(value) | Final(value):
            row[OP] = OP_SET if isinstance(delta, Set) else OP_FINAL
            for field in layout.table:
                held = shape.read(value, field.name)
                if field.name not in layout.keys:
                    row[field.name] = held
                elif held is not None and held != row[field.name]:
                    raise DeltaError(
                        f"key {row[field.name]!r}: the value has {field.name!r} {held!r}"
                    )
        case Patch():
            row[OP] = OP_PATCH
            merged = compose(Patch(), delta)
            assert isinstance(merged, Patch)
            for op in merged.ops:
                _fill_op(layout, row, op)
        case Remove():
            row[OP] = OP_REMOVE


def _fill_op(layout: Layout, row: dict[str, Any], op: PatchOp) -> None:
    if not isinstance(op, FieldSet | FieldRemove):
        raise DeltaError(f"{type(op).__name__} has no column: only records have")
    fields = {field.name: field for field in layout.values}
    if op.name not in fields:
        raise DeltaError(f"no field {op.name!r} to change; there are {', '.join(fields)}")
    held = op.value if isinstance(op, FieldSet) else None
    if held is not None:
        row[op.name] = held
    elif fields[op.name].nullable:
        row[CLEARED + op.name] = True
    else:
        raise DeltaError(f"field {op.name!r} is required: it can be set, not removed")


def _array(held: list[Any], field: pa.Field) -> pa.Array:
    try:
        return pa.array(held, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DeltaError(f"field {field.name!r} is {field.type}: {error}") from error


def _delta(layout: Layout, row: dict[str, Any]) -> tuple[Any, Delta[Any]]:
    parts = tuple(row[name] for name in layout.keys)
    key = parts[0] if len(parts) == 1 else parts
    if row[OP] == OP_REMOVE:
        return key, Remove()
    if row[OP] in (OP_SET, OP_FINAL):
        names = layout.table.names
        value = {name: row[name] for name in names if row[name] is not None}
        return key, Set(value) if row[OP] == OP_SET else Final(value)
    ops: list[PatchOp] = []
    for field in layout.values:
        if row[field.name] is not None:
            ops.append(FieldSet(field.name, row[field.name]))
        elif row.get(CLEARED + field.name):
            ops.append(FieldRemove(field.name))
    return key, Patch(tuple(ops))
