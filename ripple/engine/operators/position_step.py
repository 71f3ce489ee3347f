"""Positions of a ``.scan(...)``: its rows, states and results in units of their types."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.position import PositionCall
from ripple.engine.kernels.state_call import GivenRows
from ripple.engine.operators.rows import as_list, made_by
from ripple.engine.operators.state_step import Applied
from ripple.model.expression.bound import Values
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.wide_decimals import stored_text, units_of_text
from ripple.model.schema.types import Bool, Logical, WideDecimal, bare_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.state_step import Stored
    from ripple.model.pipeline.waiting_nodes import PositionScan
    from ripple.model.schema.types import FieldType

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


class PositionStep:
    """The same as a StateStep, for positions."""

    def __init__(self, node: PositionScan) -> None:
        of = node.position
        assert of is not None, "it is bound"
        self._node, self._reads, self._made = node, of.reads, made_by(node)
        self._initial: Stored = (0,) * 5 if of.method == "average" else (*(0,) * 5, (), ())
        self.call = PositionCall(
            of.method,
            has_fee=of.fee is not None,
            has_busted=of.busted is not None,
            factor=of.factor,
            fee_factor=of.fee_factor,
            limits=of.limits,
            lots_max=of.lots,
            has_split=bool(of.split),
            reads_wide=any(isinstance(bare_type(one.type), WideDecimal) for one in of.reads),
        )

    def given(self, columns: Mapping[str, Any]) -> GivenRows:
        """Return the values of rows."""
        return GivenRows([list(_units(columns[one.name], one.type)) for one in self._reads])

    def make(self, rows: Rows, made: Sequence[Stored]) -> None:
        """Replace each row by its result."""
        columns = zip(*made, strict=True) if made else repeat(())
        each = zip(self._made, columns, strict=bool(made))
        rows.take_columns(self._node, {f.name: _column(column, f.type) for f, column in each})

    def apply(self, states: list[Stored], slots: Ints, begins: Mask, rows: Rows) -> Applied | None:
        """Apply all rows at once; None where one has a null, or amounts have over 64 bits."""
        position = self._node.position
        assert position is not None
        if any(_has_values(rows.columns[one.name]) for one in position.split):
            return None
        reads = self._reads[: len(self._reads) - len(position.split)]
        taken = [rows.columns[one.name] for one in reads]
        columns = [_array(column, one.type) for column, one in zip(taken, reads, strict=True)]
        if not self.call.is_small or any(column is None for column in columns):
            return None
        of = dict(zip((one.name for one in reads), columns, strict=True))
        fee, busted = position.fee, position.busted
        kept = np.zeros(rows.count, np.bool_)
        out = np.empty((len(self._made), rows.count), np.int64)
        failed = self.call.run(
            states,
            slots,
            begins.view(np.uint8),
            self._initial,
            np.stack([of[position.quantity.name], of[position.price.name]]),
            None if fee is None else of[fee.name],
            None if busted is None else of[busted.name].view(np.uint8),
            out,
            kept.view(np.uint8),
        )
        each = zip(self._made, out[:, kept], strict=True)
        return Applied({one.name: Values(values, None) for one, values in each}, kept, failed)

    def state_of(self, values: Stored) -> Stored:
        """Return a state as it is kept, of the values of a checkpoint."""
        return tuple(tuple(map(int, one)) if isinstance(one, list) else int(one) for one in values)

    def result_of(self, values: Stored) -> Stored:
        """Return a result as it is kept, of the same."""
        each = zip(values, self._made, strict=True)
        return tuple(_units([_number(value, one.type)], one.type)[0] for value, one in each)


def _has_values(column: Any) -> bool:
    """Return whether a column has anything but nulls."""
    if isinstance(column, Values):
        return column.valid is None or bool(column.valid.any())
    return bool(column.null_count < len(column))


def _array(column: Any, of: FieldType) -> Any:
    """Return a column of 64-bit integers or bools as NumPy's; None for one with nulls."""
    if isinstance(bare_type(of), WideDecimal):
        return None
    if isinstance(column, Values):
        column = None if column.valid is not None and not column.valid.all() else column.values
    if isinstance(column, pa.Array):
        column = None if column.null_count else column.to_numpy(zero_copy_only=False)
    if column is None:
        return None
    kind = np.bool_ if isinstance(bare_type(of), Bool) else np.int64
    return np.ascontiguousarray(column, kind)


def _number(value: Any, of: FieldType) -> Any:
    kind = bare_type(of)
    return rule_of(kind).number(value) if isinstance(kind, Logical) else value


def _units(column: Any, of: FieldType) -> list[Any]:
    """Return a column as integers, or as bools; None for null."""
    if isinstance(bare_type(of), WideDecimal):
        return [None if text is None else units_of_text(text) for text in as_list(column)]
    if isinstance(column, pa.Array) and not column.null_count and not isinstance(of, Bool):
        column = column.to_numpy(zero_copy_only=False)
    return as_list(column)


def _column(units: Sequence[int], of: FieldType) -> Any:
    """Return integers as a column of a type."""
    if isinstance(bare_type(of), WideDecimal):
        return pa.array([stored_text(one) for one in units], pa.string())
    return Values(np.array(units, np.int64), None)
