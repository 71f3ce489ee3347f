"""diff, apply, compose over whole batches: ``ripple.engine.changes.algebra`` by column.

Each function gives, key by key, the result of the row form; the tests hold them against each other.
The one freedom is the order of rows: keys of the first argument in their order, then the new ones
of the second. Tables and deltas are record batches of one :class:`Layout`, each key once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.errors import DeltaError
from ripple.core.row_ops import OP, OP_FINAL, OP_NAMES, OP_PATCH, OP_REMOVE, OP_SET
from ripple.engine.changes.algebra import AFTER_FINAL, PATCH_THRESHOLD
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.equality import same
from ripple.engine.changes.layout import (
    CLEARED,
    Batch,
    Layout,
    ops_of,
    rows_valid,
    snapshot_of,
)
from ripple.model.keys.space import key_space

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


def diff(
    layout: Layout, old: Batch, new: Batch, *, patch_threshold: int = PATCH_THRESHOLD
) -> Batch:
    """Return the deltas that make the table ``new`` out of ``old``; unchanged keys have none.

    Raises :class:`DeltaError` if a table has a key twice. Columns of fixed width and of text are
    compared at once, lists and structs value by value.
    """
    old_rows, new_rows, fresh = _match(layout, old, new)
    gone = np.setdiff1d(np.arange(old.num_rows), old_rows, assume_unique=True)
    changed = [
        _differ(old.column(field.name).take(old_rows), new.column(field.name).take(new_rows))
        for field in layout.values
    ]
    counts: Rows = np.zeros(len(old_rows), np.int64)
    for differs in changed:
        counts += differs
    size = len(layout.table)
    whole = np.greater(2 * counts, size if size > patch_threshold else -1)
    some = counts > 0
    rows = np.concatenate([new_rows[some], fresh])
    patches = np.concatenate([~whole[some], np.zeros(len(fresh), np.bool_)])
    arrays = {name: new.column(name).take(rows) for name in layout.keys}
    for field, differs in zip(layout.values, changed, strict=True):
        values = new.column(field.name).take(rows)
        unchanged = patches & ~np.concatenate([differs[some], np.ones(len(fresh), np.bool_)])
        if field.nullable:
            arrays[CLEARED + field.name] = pa.array(patches & ~unchanged & ~rows_valid(values))
        arrays[field.name] = _nulled(values, unchanged)
    arrays[OP] = pa.array(np.where(patches, OP_PATCH, OP_SET).astype(np.int8))
    return _joined(layout, arrays, _removes(layout, old, gone))


def apply(layout: Layout, rows: Batch, deltas: Batch) -> Batch:
    """Return the table ``rows`` with ``deltas`` applied; ``rows`` itself stays as it is.

    Raises :class:`DeltaError` as :meth:`ColumnTable.apply` does.
    """
    table = ColumnTable(layout)
    table.apply(snapshot_of(layout, rows))
    table.apply(deltas)
    return table.rows()


def compose(layout: Layout, first: Batch, second: Batch) -> Batch:
    """Return the deltas that have the effect of ``first``, then ``second``.

    Raises :class:`DeltaError` for deltas of another layout, a key twice in one argument, and a
    Patch with changes of a key that ``first`` removes, and anything but itself after a Final.
    """
    first, second = layout.conform(first), layout.conform(second)
    layout.check(first)
    touched = layout.check(second)
    at, by, fresh = _match(layout, first, second)
    ops, new_ops = ops_of(first).copy(), ops_of(second)
    refused = (ops[at] == OP_REMOVE) & (touched[by] != 0)
    if refused.any():
        key = layout.key_at(second, int(by[np.flatnonzero(refused)[0]]))
        raise DeltaError(
            f"key {key!r}: a Patch follows a Remove: its author has lost a Set in between"
        )
    ended = (ops[at] == OP_FINAL) & ((new_ops[by] != OP_PATCH) | (touched[by] != 0))
    if ended.any():
        _check_final(layout, first.take(at[ended]), second.take(by[ended]))
    replaces = new_ops[by] != OP_PATCH
    ops[at] = np.where(replaces, new_ops[by], ops[at])
    base = first.num_rows
    keep = np.concatenate([np.arange(base), base + fresh])
    arrays = {name: _picked(first.column(name), second.column(name), keep) for name in layout.keys}
    arrays[OP] = pa.array(np.concatenate([ops, new_ops[fresh]]))
    is_patch = ops == OP_PATCH
    for field in layout.values:
        # Which of the two wrote the field last; a Patch that did not touch it leaves it.
        wrote = replaces | rows_valid(second.column(field.name))[by]
        name = CLEARED + field.name
        if field.nullable:
            wrote |= _booleans(second.column(name))[by]
        source = keep.copy()
        source[at[wrote]] = base + by[wrote]
        arrays[field.name] = _picked(first.column(field.name), second.column(field.name), source)
        if field.nullable:
            cleared = _booleans(_picked(first.column(name), second.column(name), source))
            cleared[:base] &= is_patch  # a Set with a cleared field is a Set with a null
            arrays[name] = pa.array(cleared)
    return _joined(layout, arrays, None)


def _check_final(layout: Layout, final: Batch, after: Batch) -> None:
    """Raise DeltaError unless ``after`` is, row by row, the same Final again."""
    ops = ops_of(after)
    refused = ops != OP_FINAL
    for field in layout.values:
        refused |= _differ(final.column(field.name), after.column(field.name))
    if refused.any():
        row = int(np.flatnonzero(refused)[0])
        story = f"a {OP_NAMES[ops[row]].capitalize()} {AFTER_FINAL}"
        raise DeltaError(f"key {layout.key_at(after, row)!r}: {story}")


def _match(layout: Layout, first: Batch, second: Batch) -> tuple[Rows, Rows, Rows]:
    """Return the rows of equal keys in both, pairwise, and the rows that only ``second`` has."""
    keys = key_space(layout.key_fields)
    for batch in (first, second):
        if any(column.null_count for column in layout.key_columns(batch)):
            raise DeltaError(f"the key {', '.join(layout.keys)} is null in some row")
    # The first index hands out slots in order, so a row's slot is its number.
    slots = layout.slots(keys, first)
    _check_distinct(layout, first, slots)
    met = layout.slots(keys, second)
    _check_distinct(layout, second, met)
    known = met < first.num_rows
    return met[known], np.flatnonzero(known), np.flatnonzero(~known)


def _check_distinct(layout: Layout, batch: Batch, slots: Rows) -> None:
    seen = np.full(int(slots.max(initial=-1)) + 1, -1)
    rows = np.arange(len(slots))
    seen[slots[::-1]] = rows[::-1]
    twice = np.flatnonzero(seen[slots] != rows)
    if len(twice):
        key = layout.key_at(batch, int(twice[0]))
        raise DeltaError(f"key {key!r} occurs twice in one batch: compose its deltas first")


def _differ(old: pa.Array, new: pa.Array) -> Mask:
    """Return the mask of differences of two arrays, to the bit: bool[n]."""
    had, has = rows_valid(old), rows_valid(new)
    both = had & has
    return np.not_equal(had, has) | (both & _values_differ(old, new))


def _values_differ(old: pa.Array, new: pa.Array) -> Mask:
    kind = old.type
    if pa.types.is_boolean(kind):
        return _values_differ(old.cast(pa.uint8()), new.cast(pa.uint8()))
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        differs: Mask = (_raw(old, width) != _raw(new, width)).any(axis=1)
        return differs
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _booleans(pc.not_equal(old, new).fill_null(False))
    pairs = zip(old.to_pylist(), new.to_pylist(), strict=True)
    return np.fromiter((not same(a, b) for a, b in pairs), np.bool_, len(old))


def _raw(array: pa.Array, width: int) -> npt.NDArray[np.generic]:
    """Return the values' bytes, one row each, in words as wide as they allow."""
    word = min(width, 8)
    if not len(array):
        return np.empty((0, width // word), f"u{word}")
    words = (array.offset + len(array)) * (width // word)
    data = np.frombuffer(array.buffers()[1], f"u{word}", words)
    return data.reshape(-1, width // word)[array.offset :]


def _picked(first: pa.Array, second: pa.Array, rows: Rows) -> pa.Array:
    """Return rows of ``first``, or, counting on from its end, of ``second``."""
    return pa.concat_arrays([first, second]).take(pa.array(rows))


def _nulled(values: pa.Array, where: Mask) -> pa.Array:
    """Return ``values`` with nulls where the mask says so."""
    if not where.any():
        return values
    rows = pa.array(np.arange(len(values)), mask=where)
    return values.take(rows)


def _booleans(array: pa.Array) -> Mask:
    return np.array(array.to_numpy(zero_copy_only=False), np.bool_)


def _removes(layout: Layout, old: Batch, gone: Rows) -> Batch:
    keys = [old.column(name).take(gone) for name in layout.keys]
    ops = pa.array(np.full(len(gone), OP_REMOVE, np.int8))
    return layout.conform(pa.RecordBatch.from_arrays([*keys, ops], names=[*layout.keys, OP]))


def _joined(layout: Layout, arrays: dict[str, pa.Array], more: Batch | None) -> Batch:
    batch = pa.RecordBatch.from_arrays(
        [arrays[name] for name in layout.deltas.names], schema=layout.deltas
    )
    if more is None or not more.num_rows:
        return batch
    return pa.concat_batches([more, batch])
