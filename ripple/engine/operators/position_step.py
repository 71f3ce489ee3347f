"""Positions of a ``.scan(...)``: its rows, states and results in units of their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.position import PositionCall
from ripple.engine.operators.rows import as_list, made_by
from ripple.model.expression.bound import Values
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.wide_decimals import stored_text, units_of_text
from ripple.model.schema.types import Bool, Logical, WideDecimal, bare_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.state_step import Stored
    from ripple.model.pipeline.nodes import PositionScan
    from ripple.model.schema.types import FieldType


class PositionStep:
    """The same as a StateStep, for positions."""

    def __init__(self, node: PositionScan) -> None:
        of = node.position
        assert of is not None, "it is bound"
        self._node, self._reads, self._made = node, of.reads, made_by(node)
        self.call = PositionCall(
            of.method,
            has_fee=of.fee is not None,
            has_busted=of.busted is not None,
            factor=of.factor,
            fee_factor=of.fee_factor,
            limits=of.limits,
            lots_max=of.lots,
        )

    def given(self, columns: Mapping[str, Any]) -> Iterator[Stored]:
        """Return the values of rows."""
        return zip(*(_units(columns[one.name], one.type) for one in self._reads), strict=True)

    def make(self, rows: Rows, made: Sequence[Stored]) -> None:
        """Replace each row by its result."""
        each = enumerate(self._made)
        rows.take_columns(
            self._node, {f.name: _column([row[at] for row in made], f.type) for at, f in each}
        )

    def state_of(self, values: Stored) -> Stored:
        """Return a state as it is kept, of the values of a checkpoint."""
        return tuple([int(x) for x in one] if isinstance(one, list) else int(one) for one in values)

    def result_of(self, values: Stored) -> Stored:
        """Return a result as it is kept, of the same."""
        each = zip(values, self._made, strict=True)
        return tuple(_units([_number(value, one.type)], one.type)[0] for value, one in each)


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


def _column(units: list[int], of: FieldType) -> Any:
    """Return integers as a column of a type."""
    if isinstance(bare_type(of), WideDecimal):
        return pa.array([stored_text(one) for one in units], pa.string())
    return Values(np.array(units, np.int64), None)
