"""From the results of a fold to the rows that its column shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.engine.arrow_types import arrow_fields
from ripple.engine.rows import Rows, as_list
from ripple.errors import NodeError
from ripple.expression.bound import Values, numbers
from ripple.expression.typed import Kind, kind_of
from ripple.plan import Fold, type_of

if TYPE_CHECKING:
    from ripple.graph.column import Column, InputColumn

Ints = npt.NDArray[np.int64]

COLUMN_KINDS = {Kind.FLOAT: "float", Kind.INT: "int", Kind.BOOL: "bool"}


class ResultRows:
    """The fields of a fold's result rows that are not part of the key, and the steps on them."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        in_key = {field.name for field in fold.key}
        if fold.window is not None:
            in_key.add("window_start_ns")
        self.fields = tuple(field for field in fold.row if field.name not in in_key)
        self.arrow_fields = arrow_fields(self.fields)
        self._kinds = [kind_of(type_of(field)) for field in self.fields]
        self.column_fields = [
            (field.name, COLUMN_KINDS.get(kind, "object"), nullable)
            for field, (kind, nullable) in zip(self.fields, self._kinds, strict=True)
        ]

    def show(
        self, column: InputColumn, results: dict[str, Values], slots: Ints, bounds: dict[str, Any]
    ) -> None:
        """Write the rows that ``results`` make to an input column."""
        kept, values, valid = self.columns(column, results, slots, bounds)
        if len(kept) < len(slots):
            column.erase(slots[np.isin(slots, kept, invert=True)])
        if len(kept):
            column.write(kept, values, valid)

    def columns(
        self, column: Column, results: dict[str, Values], slots: Ints, bounds: dict[str, Any]
    ) -> tuple[Ints, list[Any], list[Any]]:
        """Return (slots that have a row, values per field, masks per field).

        A filter on results takes rows away; a step that cannot compute a row is an error, since
        there is no record to blame for it.
        """
        named: dict[str, Any] = {**bounds, **results}
        if self.fold.steps:
            keys = zip(column.keys.fields, column.keys.arrays(slots), strict=True)
            rows = Rows({**{f.name: array for f, array in keys}, **named}, len(slots))
            rows.run(self.fold.steps)
            for bad in rows.rejected:
                raise NodeError(
                    f"step {bad.step!r} on the results of {self.fold.name!r}: {bad.reason}"
                )
            named = rows.columns
            slots = slots if rows.origin is None else slots[rows.origin]
        kinds = zip(self.fields, self._kinds, strict=True)
        typed = [_typed(named[field.name], *kind) for field, kind in kinds]
        return slots, [values for values, _ in typed], [valid for _, valid in typed]

    def dump(self, column: Column, slots: Ints) -> dict[str, pa.Array]:
        """Return the shown rows of ``slots``: ``shown`` and ``shown.field`` columns."""
        shown = column.has_rows(slots)
        arrays = row_arrays(self.arrow_fields, column.rows(slots), shown)
        named = {f"shown.{f.name}": array for f, array in zip(self.fields, arrays, strict=True)}
        return {"shown": pa.array(shown), **named}

    def load(self, column: InputColumn, slots: Ints, table: pa.Table) -> None:
        """Take over what ``dump`` wrote."""
        shown = table.column("shown").to_numpy()
        values, masks = [], []
        for field, kind in zip(self.fields, self._kinds, strict=True):
            array = table.column(f"shown.{field.name}").combine_chunks().filter(pa.array(shown))
            value, valid = _typed(array, *kind)
            values.append(value)
            masks.append(valid)
        column.write(slots[shown], values, masks)


def row_arrays(
    types: Sequence[pa.Field], gathered: list[tuple[Any, Any]], mask: npt.NDArray[np.bool_] | None
) -> list[pa.Array]:
    """Return gathered columns as Arrow arrays, null where ``mask`` is false or the value is."""
    arrays = []
    for field, (values, valid) in zip(types, gathered, strict=True):
        present = mask
        if valid is not None:
            own: npt.NDArray[np.bool_] = valid.view(np.bool_)
            present = own if mask is None else own & mask
        null = None if present is None or present.all() else ~present
        if isinstance(values, list):
            listed = (
                values
                if null is None
                else [None if gone else v for v, gone in zip(values, null.tolist(), strict=True)]
            )
            arrays.append(pa.array(listed, field.type))
        else:
            arrays.append(pa.array(values, mask=null))
    return arrays


def _typed(column: Any, kind: Kind, nullable: bool) -> tuple[Any, Any]:
    """Return values and mask as a column takes them."""
    if kind in COLUMN_KINDS:
        values = numbers(column, kind)
        return values.values, values.valid
    listed = as_list(column)
    if not nullable:
        return listed, None
    return listed, np.array([value is not None for value in listed], np.bool_)
