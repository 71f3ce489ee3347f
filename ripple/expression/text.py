"""Texts: columns of them are Arrow arrays, and Arrow's kernels compare and choose between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.expression.bound import Column, Mask, Values, run
from ripple.expression.compile import compile_tree
from ripple.expression.typed import Kind, Typed

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
    if tree.operation == "col":
        return _with_nulls(texts(columns[tree.value]), {})
    if tree.operation == "lit":
        return Values(pa.array([tree.value.value] * rows, pa.string()))
    if tree.operation == "null":
        return _with_nulls(pa.nulls(rows, pa.string()), {})
    if tree.operation == "fill_null":
        value, fallback = (evaluate_text(arg, columns, rows) for arg in tree.args)
        filled = pc.coalesce(value.values, fallback.values)
        # A failed row is null in the array; only where the value is plainly null may it fall back.
        failed = {row: why for row, why in fallback.failed.items() if _is_null(value, row)}
        return _with_nulls(filled, {**failed, **value.failed})
    condition_tree, chosen_tree, other_tree = tree.args
    condition = _evaluate_number(condition_tree, columns, rows)
    chosen, other = (evaluate_text(arg, columns, rows) for arg in (chosen_tree, other_tree))
    truth = condition.truth()
    picked = pc.if_else(pa.array(truth), chosen.values, other.values)
    failed = {row: why for row, why in chosen.failed.items() if truth[row]}
    failed |= {row: why for row, why in other.failed.items() if not truth[row]}
    return _with_nulls(picked, failed | dict(condition.failed))


def evaluate_test(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    """Return the bools of an operation on texts, or of ``is_null`` on a field of any type."""
    if tree.operation == "is_null":
        return _is_null_test(tree.args[0], columns, rows)
    operands = [evaluate_text(arg, columns, rows) for arg in tree.args[:2]]
    failed = {row: why for operand in operands[::-1] for row, why in operand.failed.items()}
    if tree.operation == "is_in":
        choices = pa.array([arg.value.value for arg in tree.args[1:]], pa.string())
        result = pc.is_in(operands[0].values, value_set=choices)
        return _bools(result, operands[0].valid, failed)
    if tree.operation in _MATCH:
        result = _MATCH[tree.operation](operands[0].values, tree.value)
    else:
        result = _COMPARE[tree.operation](operands[0].values, operands[1].values)
    valid = result.is_valid().to_numpy(zero_copy_only=False) if result.null_count else None
    return _bools(result, valid, failed)


def texts(column: Column) -> Any:
    """Return a column of texts as a ``pyarrow.StringArray``."""
    values = column.values if isinstance(column, Values) else column
    if isinstance(values, (Sequence, np.ndarray)):
        return pa.array(list(values), pa.string())
    return values if values.type == pa.string() else values.cast(pa.string())


def _evaluate_number(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    compiled = compile_tree(tree)
    return run(compiled.program, compiled.inputs, columns, rows)


def _is_null_test(arg: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    if arg.kind is Kind.NULL:
        return Values(np.ones(rows, np.bool_))
    if arg.operation != "col":
        value = evaluate_text(arg, columns, rows)
        return _bools_of(_nulls(value.valid, rows), value.failed)
    column = columns[arg.value]
    if isinstance(column, Values):
        return Values(_nulls(column.valid, rows))
    if isinstance(column, Sequence):
        return Values(np.array([value is None for value in column], np.bool_))
    return Values(column.is_null().to_numpy(zero_copy_only=False))


def _nulls(valid: Mask | None, rows: int) -> Mask:
    return np.zeros(rows, np.bool_) if valid is None else ~valid


def _with_nulls(array: Any, failed: Mapping[int, str]) -> Values:
    if not array.null_count and not failed:
        return Values(array)
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if failed:
        valid = valid.copy()
        valid[list(failed)] = False
    return Values(array, valid, failed)


def _is_null(value: Values, row: int) -> bool:
    return value.valid is not None and not value.valid[row] and row not in value.failed


def _bools(result: Any, valid: Mask | None, failed: Mapping[int, str]) -> Values:
    bools = result.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    return Values(bools, valid, failed)


def _bools_of(bools: Mask, failed: Mapping[int, str]) -> Values:
    return Values(bools, None, failed)
