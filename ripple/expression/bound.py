"""Checked expressions: evaluated over columns, numbers by the machine and texts by Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ripple.errors import PlanError
from ripple.expression.compile import compile_tree
from ripple.expression.program import FAILURES
from ripple.expression.typed import FIELD_TYPES, Kind, Typed, typed
from ripple.schema.types import FieldType, Option
from ripple.sexp import dumps

if TYPE_CHECKING:
    from ripple.expression.expr import Expr
    from ripple.expression.program import Program
    from ripple.sexp import Sexp

Array: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]

_DTYPES: dict[Kind, Any] = {Kind.FLOAT: np.float64, Kind.INT: np.int64, Kind.BOOL: np.bool_}


@dataclass(frozen=True, slots=True)
class Values:
    """A column: what an evaluation gives, and one of the forms that it takes.

    values: NumPy float64, int64 or bool[n], a ``pyarrow.Array`` of n texts, or for other types
    whatever sequence the column came as. valid: bool[n], False for null, or None if no row is
    null. failed: row to reason, ascending, for the rows whose arithmetic failed; they are not
    valid either.
    """

    values: Any
    valid: Mask | None = None
    failed: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def truth(self) -> Mask:
        """Return bool[n] of a bool column: true where it is true, false where false or null."""
        truth: Mask = self.values if self.valid is None else self.values & self.valid
        return truth


# A NumPy array without nulls, an Arrow array, a list with None for null, or Values.
Column: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Bound:
    """An expression that fits the fields it was bound to.

    type: of the result, an ``Option`` if it may be null. columns: the fields that are read, in
    the order of their first use. program: what computes it over ``inputs``; None for texts and
    for a field of another type as it is. canonical: equal for expressions that mean the same over
    fields of the same types, whatever other fields there are.
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
                raise ValueError("an expression without columns needs to be told the rows")
            rows = len(next(iter(columns.values())))
        if self.tree.operation == "col" and self.program is None:
            return _as_values(columns[self.tree.value])
        if self.program is None:
            from ripple.expression.text import evaluate_text  # noqa: PLC0415  # needs pyarrow.compute

            return evaluate_text(self.tree, columns, rows)
        return run(self.program, self.inputs, columns, rows, self.expr)


def bind(expr: Expr, fields: Mapping[str, FieldType]) -> Bound:
    """Return ``expr`` checked against a row of ``fields``; see :meth:`Expr.bind`."""
    tree = typed(expr, fields)
    if tree.kind is Kind.NULL:
        raise PlanError(f"{expr!r} is always null, so that it has no type")
    names = tuple(dict.fromkeys(_columns(expr)))
    if tree.operation == "col":
        result = fields[tree.value]
    else:
        result = FIELD_TYPES[tree.kind]
        result = Option(result) if tree.nullable else result
    compiled = compile_tree(tree) if tree.kind in _DTYPES else None
    types: list[Sexp] = [[name, repr(fields[name])] for name in names]
    return Bound(
        expr,
        result,
        names,
        dumps([expr.sexp(), ["over", *types]]),
        tree,
        compiled.program if compiled else None,
        compiled.inputs if compiled else (),
    )


def run(
    program: Program,
    inputs: Sequence[Typed],
    columns: Mapping[str, Column],
    rows: int,
    blamed: Expr | None = None,
) -> Values:
    """Run a program over the first ``rows`` rows of what its inputs name or test."""
    arrays, masks = [], []
    failed: dict[int, str] = {}
    for tree in inputs:
        if tree.operation == "col":
            values = numbers(columns[tree.value], tree.kind)
        else:
            from ripple.expression.text import evaluate_test  # noqa: PLC0415  # needs pyarrow.compute

            values = evaluate_test(tree, columns, rows)
            failed.update(values.failed)
        arrays.append(values.values)
        masks.append(values.valid)
    valid = None if all(mask is None for mask in masks) else masks
    result, states = program.run(arrays, rows, valid)
    if states is None:
        return Values(result, None, failed)
    where = f" in {blamed!r}" if blamed is not None else ""
    for row in np.flatnonzero(states > 1).tolist():
        failed[row] = f"{FAILURES[int(states[row])]}{where}"
    return Values(result, states == 0, dict(sorted(failed.items())))


def numbers(column: Column, kind: Kind) -> Values:
    """Return a column of floats, ints or bools as NumPy arrays, without copying if it can be."""
    dtype = _DTYPES[kind]
    if isinstance(column, Values):
        return Values(np.ascontiguousarray(column.values, dtype), column.valid)
    if isinstance(column, np.ndarray):
        return Values(np.ascontiguousarray(column, dtype))
    if isinstance(column, Sequence):
        valid = np.array([value is not None for value in column], np.bool_)
        filled = np.array([0 if value is None else value for value in column], dtype)
        return Values(filled, None if valid.all() else valid)
    mask: Mask | None = None
    if column.null_count:
        mask = column.is_valid().to_numpy(zero_copy_only=False)
    if kind is Kind.BOOL:
        return Values(column.fill_null(value=False).to_numpy(zero_copy_only=False), mask)
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
    else:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    return Values(column, None if valid.all() else valid)


def _columns(expr: Expr) -> list[str]:
    if expr.operation == "col":
        return [expr.value]
    return [name for arg in expr.args for name in _columns(arg)]
