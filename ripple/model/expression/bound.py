"""Checked expressions: evaluated over columns, numbers by the machine and texts by Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.core.errors import NodeError, PlanError, SchemaError
from ripple.core.frozen import frozen
from ripple.core.sexp import dumps
from ripple.model.expression.compile import compile_tree
from ripple.model.expression.program import FAILURES, NULL_STATE
from ripple.model.expression.typed import FIELD_TYPES, Kind, Typed, typed
from ripple.model.schema.columns import fitted
from ripple.model.schema.notation import type_to_sexp
from ripple.model.schema.types import (
    DECIMALS,
    PRECISION_OTHERS,
    Decimal,
    FieldType,
    Logical,
    Option,
    bare_type,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.core.sexp import Sexp
    from ripple.model.expression.expr import Expr
    from ripple.model.expression.program import Program

    Array: TypeAlias = npt.NDArray[Any]
    Mask: TypeAlias = npt.NDArray[np.bool_]
    Failures: TypeAlias = npt.NDArray[np.uint8]


_DTYPES: dict[Kind, Any] = {Kind.FLOAT: np.float64, Kind.INT: np.int64, Kind.BOOL: np.bool_}
_ARRAY_BYTES_MAX = (1 << 31) - 1  # of texts, for which Arrow has offsets
_ARROW = {Kind.FLOAT: pa.float64(), Kind.INT: pa.int64(), Kind.BOOL: pa.bool_()}


@frozen
class Values:
    """A column: a result of an evaluation, and one of the forms of its inputs.

    values: NumPy float64, int64 or bool[n], a ``pyarrow.Array`` of n texts, or for other types the
    column's own sequence. valid: bool[n], False for null, or None if no row is null. failures:
    uint8[n], 0 or a key of ``FAILURES`` for rows whose arithmetic failed, which are not valid
    either, or None if no row failed. expr: the failed expression, for the reason.
    """

    values: Any
    valid: Mask | None = None
    failures: Failures | None = None
    expr: Expr | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def failed(self) -> dict[int, str]:
        """The rows that failed, ascending, and why."""
        if self.failures is None:
            return {}
        where = "" if self.expr is None else f" in {self.expr!r}"
        rows = np.flatnonzero(self.failures).tolist()
        return {row: f"{FAILURES[int(self.failures[row])]}{where}" for row in rows}

    def truth(self) -> Mask:
        """Return bool[n] of a bool column: true where it is true, false where false or null."""
        truth: Mask = self.values if self.valid is None else self.values & self.valid
        return truth


# A NumPy array without nulls, an Arrow array, a list with None for null, or Values.
Column: TypeAlias = Any


@frozen
class Bound:
    """An expression that fits the fields it was bound to.

    type: of the result, an ``Option`` if it may be null. columns: the fields that are read, in the
    order of their first use. program: computes it over ``inputs``; None for texts and for a field
    of another type as it is. canonical: equal for expressions that mean the same over fields of the
    same types, with any other fields.
    """

    expr: Expr
    type: FieldType
    columns: tuple[str, ...]
    canonical: str
    tree: Typed = field(repr=False)
    program: Program | None = field(repr=False)
    inputs: tuple[Typed, ...] = field(repr=False)

    @property
    def machine_columns(self) -> tuple[str, ...] | None:
        """The columns that ``program`` takes as its inputs, or None if some are texts tested."""
        if self.program is None or any(tree.operation != "col" for tree in self.inputs):
            return None
        return tuple(tree.value for tree in self.inputs)

    def evaluate(self, columns: Mapping[str, Column], rows: int | None = None) -> Values:
        """Return the value of every row; ``columns`` holds at least the fields that are read.

        rows: how many there are, needed only if the expression reads no column. A field declared
        without ``Option`` is taken to have no nulls. Failed rows are reported, nothing is raised.
        """
        if rows is None:
            if not columns:
                raise ValueError("an expression without columns needs the number of rows")
            rows = len(next(iter(columns.values())))
        if self.tree.operation == "col" and self.program is None:
            return _as_values(columns[self.tree.value])
        try:
            return self._evaluate(columns, rows)
        except (OverflowError, pa.ArrowCapacityError):
            # Texts on the way need more than a column has room for: half of the rows need less.
            if rows <= 1:
                raise
        middle = rows // 2
        halves = [
            self.evaluate({name: _part(columns[name], ends) for name in self.columns}, len(ends))
            for ends in (range(middle), range(middle, rows))
        ]
        return _joined(halves, self.expr)

    def _evaluate(self, columns: Mapping[str, Column], rows: int) -> Values:
        if self.program is None:
            from ripple.model.expression.columns import evaluate  # noqa: PLC0415  # needs pyarrow.compute

            return replace(evaluate(self.tree, columns, rows), expr=self.expr)
        return run(self.program, self.inputs, columns, rows, self.expr)


def bind(expr: Expr, fields: Mapping[str, FieldType]) -> Bound:
    """Return ``expr`` checked against a row of ``fields``; see :meth:`Expr.bind`."""
    tree = typed(expr, fields)
    if tree.kind is Kind.NULL:
        raise PlanError(f"{expr!r} is always null, so that it has no type")
    names = tuple(dict.fromkeys(_columns(expr)))
    kind = tree.kind
    scale = tree.value
    is_number = kind not in (Kind.DECIMAL, Kind.WIDE) and tree.operation != "logical"
    if not is_number:
        (tree,) = tree.args  # as a column holds it
    declared = fields[tree.value] if tree.operation == "col" else None
    # The number of a date, by .cast(int), is no date, and a date made of a number is one.
    if declared is not None and isinstance(bare_type(declared), Logical) is not is_number:
        result = declared
    else:
        result = FIELD_TYPES[kind] if kind in FIELD_TYPES else _decimal_of(expr, scale, kind)
        result = Option(result) if tree.nullable else result
    compiled = compile_tree(tree) if tree.kind in _DTYPES else None
    types: list[Sexp] = [[name, type_to_sexp(fields[name])] for name in names]
    return Bound(
        expr,
        result,
        names,
        dumps([expr.sexp(), ["over", *types]]),
        tree,
        compiled.program if compiled else None,
        compiled.inputs if compiled else (),
    )


def _decimal_of(expr: Expr, scale: int, kind: Kind) -> FieldType:
    if expr.operation == "cast" and isinstance(expr.value, DECIMALS):
        return expr.value
    return Decimal.wide(scale) if kind is Kind.DECIMAL else Decimal(PRECISION_OTHERS, scale)


def run(
    program: Program,
    inputs: Sequence[Typed],
    columns: Mapping[str, Column],
    rows: int,
    blamed: Expr | None = None,
) -> Values:
    """Run a program over the first ``rows`` rows of its inputs."""
    arrays: list[Array] = []
    masks: list[Mask | None] = []
    are_good = True
    for tree in inputs:
        if tree.operation == "col":
            values = numbers(columns[tree.value], tree.kind)
        else:
            from ripple.model.expression.columns import evaluate_input  # noqa: PLC0415  # needs pyarrow.compute

            values = evaluate_input(tree, columns, rows)
        arrays.append(values.values)
        masks.append(values.valid if values.failures is None else _states(values))
        are_good = are_good and values.valid is None
    result, states = program.run(arrays, rows, None if are_good else masks)
    if states is None:
        return Values(result)
    failures = np.where(states > NULL_STATE, states, 0).astype(np.uint8)
    return Values(result, states == 0, failures if failures.any() else None, blamed)


def _states(values: Values) -> Mask | None:
    """Return an input's states as the machine takes them."""
    if values.failures is None or values.valid is None:
        return values.valid
    states = np.where(values.valid, np.uint8(1), values.failures)
    return states.view(np.bool_)


def numbers(column: Column, kind: Kind) -> Values:
    """Return a column of floats, ints or bools as NumPy arrays, without copying if it can be.

    Raises SchemaError for values that are of another kind.
    """
    dtype = _DTYPES[kind]
    if isinstance(column, Values):
        contiguous = np.ascontiguousarray(column.values, dtype)
        return column if contiguous is column.values else replace(column, values=contiguous)
    if isinstance(column, np.ndarray) and column.dtype == dtype:
        return Values(np.ascontiguousarray(column))
    if not isinstance(column, pa.Array) or column.type != _ARROW[kind]:
        found = fitted(column, FIELD_TYPES[kind], "a column")
        for reason in found.misfits.values():
            raise SchemaError(reason)
        return Values(found.values, found.valid)
    mask: Mask | None = None
    if column.null_count:
        mask = column.is_valid().to_numpy(zero_copy_only=False)
    if mask is not None and column.null_count == len(column):
        return Values(np.zeros(len(column), dtype), mask)
    if kind is Kind.BOOL:
        return Values(column.fill_null(fill_value=False).to_numpy(zero_copy_only=False), mask)
    # A column with nulls has values at them too, if meaningless ones: read the buffer as it is.
    values: Array = np.frombuffer(column.buffers()[1], dtype)
    return Values(values[column.offset : column.offset + len(column)], mask)


def _as_values(column: Column) -> Values:
    if isinstance(column, Values):
        return column
    if isinstance(column, np.ndarray):
        return Values(column)
    if isinstance(column, Sequence):
        valid = np.array([value is not None for value in column], np.bool_)
    elif not column.null_count:
        return Values(column)
    else:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    return Values(column, None if valid.all() else valid)


def _part(column: Column, rows: range) -> Column:
    """Return a column's values of some rows."""
    if isinstance(column, Values):
        return Values(
            *(
                None if of_all is None else _part(of_all, rows)
                for of_all in (column.values, column.valid, column.failures)
            )
        )
    if isinstance(column, pa.Array):
        return column.slice(rows.start, len(rows))
    return column[rows.start : rows.stop]


def _joined(parts: Sequence[Values], expr: Expr) -> Values:
    """Return the values of rows behind each other."""
    columns = [part.values for part in parts]
    values: Any
    if not isinstance(columns[0], pa.Array):
        values = np.concatenate(columns)
    elif sum(column.nbytes for column in columns) <= _ARRAY_BYTES_MAX:
        values = pa.concat_arrays(columns)
    else:
        raise NodeError(
            f"{expr!r} makes more than 2 GiB of texts of a batch: read fewer rows at once"
        )
    valid = [np.ones(len(part), np.bool_) if part.valid is None else part.valid for part in parts]
    failures = [
        np.zeros(len(part), np.uint8) if part.failures is None else part.failures for part in parts
    ]
    return Values(
        values,
        None if all(part.valid is None for part in parts) else np.concatenate(valid),
        None if all(part.failures is None for part in parts) else np.concatenate(failures),
        expr,
    )


def _columns(expr: Expr) -> list[str]:
    if expr.operation == "col":
        return [expr.value]
    return [name for arg in expr.args for name in _columns(arg)]
