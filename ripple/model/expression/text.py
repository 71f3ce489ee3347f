"""Texts: columns of them are Arrow arrays, and Arrow's kernels compare and choose between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.bound import Column, Values, run
from ripple.model.expression.compile import compile_tree
from ripple.model.expression.typed import Kind, Typed

if TYPE_CHECKING:
    from ripple.model.expression.bound import Failures, Mask

# Arrow compares UTF-8 byte by byte, which orders texts by code point as Python does.
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_MATCH: dict[str, Callable[[Any, str], Any]] = {
    "starts_with": pc.starts_with,
    "ends_with": pc.ends_with,
    "contains": pc.match_substring,
}


def evaluate_text(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    """Return the texts that ``tree`` gives, as a ``pyarrow.StringArray`` of ``rows``."""
    if tree.operation == "when":
        return _chosen(tree, columns, rows)
    array = _plain(tree, columns, rows)
    return Values(array, _valid(array))


def evaluate_test(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    """Return the bools of a test of texts, or of ``is_null`` on a field of any type."""
    if tree.operation == "is_null" and tree.args[0].kind is Kind.OTHER:
        return Values(_is_null(columns[tree.args[0].value], rows))
    first = _plain(tree.args[0], columns, rows)
    if tree.operation == "is_null":
        result = pc.is_null(first)
    elif tree.operation == "is_in":
        choices = pa.array([arg.value.value for arg in tree.args[1:]], pa.string())
        result = pc.if_else(pc.is_valid(first), pc.is_in(first, value_set=choices), None)
    elif tree.operation in _MATCH:
        result = _MATCH[tree.operation](first, tree.value)
    else:
        result = _COMPARE[tree.operation](first, _plain(tree.args[1], columns, rows))
    bools = result.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    return Values(bools, _valid(result))


def _chosen(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    compiled = compile_tree(tree.args[0])
    condition = run(compiled.program, compiled.inputs, columns, rows)
    chosen, other = (evaluate_text(arg, columns, rows) for arg in tree.args[1:])
    truth = condition.truth()
    failures = np.where(truth, _failures(chosen, rows), _failures(other, rows))
    failures = np.maximum(failures, _failures(condition, rows))
    # A failed row shows no text, however far the choice got.
    usable = pc.if_else(pa.array(truth), chosen.values, other.values)
    array = pc.if_else(pa.array(failures == 0), usable, pa.scalar(None, pa.string()))
    return Values(array, _valid(array), failures if failures.any() else None)


def _plain(tree: Typed, columns: Mapping[str, Column], rows: int) -> Any:
    """Return texts without choices as an Arrow array."""
    if tree.operation == "col":
        return texts(columns[tree.value])
    if tree.operation == "lit":
        return pa.repeat(pa.scalar(tree.value.value, pa.string()), rows)
    if tree.operation == "null":
        return pa.nulls(rows, pa.string())
    value, fallback = (_plain(arg, columns, rows) for arg in tree.args)
    return pc.coalesce(value, fallback)


def texts(column: Column) -> Any:
    """Return a column of texts as a ``pyarrow.StringArray``, null where ``Values`` say so."""
    values = column.values if isinstance(column, Values) else column
    if isinstance(values, (Sequence, np.ndarray)):
        values = pa.array(list(values), pa.string())
    elif values.type != pa.string():
        values = values.cast(pa.string())
    if isinstance(column, Values) and column.valid is not None:
        values = pc.if_else(pa.array(column.valid), values, pa.scalar(None, pa.string()))
    return values


def _failures(values: Values, rows: int) -> Failures:
    return np.zeros(rows, np.uint8) if values.failures is None else values.failures


def _is_null(column: Column, rows: int) -> Mask:
    if isinstance(column, Values):
        return np.zeros(rows, np.bool_) if column.valid is None else ~column.valid
    if isinstance(column, Sequence):
        return np.array([value is None for value in column], np.bool_)
    nulls: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _valid(array: Any) -> Mask | None:
    if not array.null_count:
        return None
    valid: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return valid
