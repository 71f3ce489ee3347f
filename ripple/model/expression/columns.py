"""Expressions over whole columns: texts are Arrow arrays, numbers and bools the machine's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.expression.bound import Column, Values, numbers, run
from ripple.model.expression.compile import compile_tree, is_input
from ripple.model.expression.functions import find
from ripple.model.expression.functions.growth import too_long
from ripple.model.expression.program import TOO_LONG
from ripple.model.expression.typed import Kind, Typed

if TYPE_CHECKING:
    from ripple.model.expression.bound import Failures, Mask
    from ripple.model.expression.compile import Compiled

PROGRAMS_MAX = 256  # compiled parts that are remembered

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
_NO_TEXT = pa.scalar(None, pa.string())


def evaluate(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    """Return the values of ``tree``, texts as a ``pyarrow.StringArray`` of ``rows``."""
    if tree.operation == "when" and tree.kind is Kind.TEXT:
        return _chosen(tree, columns, rows)
    if tree.operation == "fill_null" and tree.kind is Kind.TEXT:
        return _filled(tree, columns, rows)
    if tree.kind is Kind.TEXT and not tree.args:
        return _of_texts(_leaf(tree, columns, rows))
    if tree.kind is Kind.TEXT or is_input(tree):
        return evaluate_input(tree, columns, rows)
    compiled = _compiled(tree)
    return run(compiled.program, compiled.inputs, columns, rows)


def evaluate_input(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    """Return the values of a field, of a function, or of a test that the machine cannot do."""
    if tree.operation == "col" and tree.kind is Kind.OTHER:
        lists = _lists(columns[tree.value])
        return Values(lists, _valid(lists))
    if tree.operation == "col":
        return numbers(columns[tree.value], tree.kind)
    if tree.operation == "is_null" and tree.args[0].kind is Kind.OTHER:
        return Values(_is_null(columns[tree.args[0].value], rows))
    if tree.operation == "is_in":
        return _is_in(tree, columns, rows)
    if tree.operation in _COMPARE and tree.args[1].operation == "lit":
        args = [evaluate(tree.args[0], columns, rows), _constant(tree.args[1])]
    else:
        args = [evaluate(arg, columns, rows) for arg in tree.args]
    failures = _worst([arg.failures for arg in args])
    if tree.operation == "is_null":
        null = np.zeros(rows, np.bool_) if args[0].valid is None else ~args[0].valid
        return _with(Values(null), failures)
    if tree.operation in _COMPARE:
        result = _of_bools(_COMPARE[tree.operation](*(arg.values for arg in args)))
    elif tree.operation in _MATCH:
        result = _of_bools(_MATCH[tree.operation](args[0].values, tree.value))
    else:
        result = _called(tree, args)
        failures = _worst([failures, result.failures])
    return _with(result, failures)


def _called(tree: Typed, args: Sequence[Values]) -> Values:
    """Return a function's result, null where an operand is."""
    entry = find(tree.operation)
    assert entry.columns is not None, "formulas have become operations"
    operands, failures = [arg.values for arg in args], None
    if entry.sizes is not None:
        long = too_long(entry.sizes(*operands, *tree.value))
        if long is not None:
            operands[0] = pc.if_else(pa.array(long), _NO_TEXT, operands[0])
            failures = long * np.uint8(TOO_LONG)
    result = entry.columns(*operands, *tree.value)
    if isinstance(result, tuple):
        result, failures = result
    masks = [arg.valid for arg in args if arg.valid is not None]
    valid = reduce(np.logical_and, masks) if masks else None
    if failures is not None:
        failures = failures if valid is None else np.where(valid, failures, 0).astype(np.uint8)
    if tree.kind is Kind.TEXT:
        if valid is not None and any(arg.kind is not Kind.TEXT for arg in tree.args):
            result = pc.if_else(pa.array(valid), result, _NO_TEXT)
        return Values(result, _valid(result), failures)
    if isinstance(result, pa.Array):
        result = _of_bools(result) if tree.kind is Kind.BOOL else numbers(result, tree.kind)
        if valid is not None and result.valid is not None:
            valid = valid & result.valid
        return Values(result.values, result.valid if valid is None else valid, failures)
    return Values(result, valid, failures)


def _with(values: Values, failures: Failures | None) -> Values:
    """Return values of which some rows failed: they are not valid, and show no text."""
    if failures is None or not failures.any():
        return Values(values.values, values.valid)
    good = failures == 0
    valid = good if values.valid is None else values.valid & good
    result = values.values
    if isinstance(result, pa.Array):
        result = pc.if_else(pa.array(good), result, _NO_TEXT)
    return Values(result, valid, failures)


def _chosen(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    condition = evaluate(tree.args[0], columns, rows)
    chosen, other = (
        _constant(arg) if arg.operation == "lit" else evaluate(arg, columns, rows)
        for arg in tree.args[1:]
    )
    truth = condition.truth()
    array = pc.if_else(pa.array(truth), chosen.values, other.values)
    return _with(_of_texts(array), _of_branch(condition, truth, chosen, other, rows))


def _filled(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    value, fallback = (evaluate(arg, columns, rows) for arg in tree.args)
    failed = _failures(value, rows) > 0
    filled = np.zeros(rows, np.bool_) if value.valid is None else ~value.valid & ~failed
    array = pc.coalesce(value.values, fallback.values)
    return _with(
        _of_texts(array), np.where(filled, _failures(fallback, rows), _failures(value, rows))
    )


def _of_branch(
    condition: Values, truth: Mask, chosen: Values, other: Values, rows: int
) -> Failures | None:
    """Return the failures of a choice: those of the condition, or of the branch that it takes."""
    if condition.failures is None and chosen.failures is None and other.failures is None:
        return None
    own = _failures(condition, rows)
    taken = np.where(truth, _failures(chosen, rows), _failures(other, rows))
    return np.where(own > 0, own, taken)


def _is_in(tree: Typed, columns: Mapping[str, Column], rows: int) -> Values:
    value = evaluate(tree.args[0], columns, rows)
    choices = pa.array([arg.value.value for arg in tree.args[1:]], pa.string())
    found = pc.is_in(value.values, value_set=choices).to_numpy(zero_copy_only=False)
    truth = found if value.valid is None else found & value.valid
    return _with(Values(truth, value.valid), value.failures)


@lru_cache(maxsize=PROGRAMS_MAX)
def _constant(tree: Typed) -> Values:
    """Return a literal as one value, where a kernel takes it for all rows."""
    return Values(pa.scalar(tree.value.value, pa.string()))


def _leaf(tree: Typed, columns: Mapping[str, Column], rows: int) -> Any:
    if tree.operation == "col":
        return texts(columns[tree.value])
    if tree.operation == "null":
        return pa.nulls(rows, pa.string())
    return pa.repeat(pa.scalar(tree.value.value, pa.string()), rows)


def texts(column: Column) -> Any:
    """Return a column of texts as a ``pyarrow.StringArray``, null where ``Values`` say so."""
    values = column.values if isinstance(column, Values) else column
    if isinstance(values, (Sequence, np.ndarray)):
        values = pa.array(list(values), pa.string())
    elif values.type != pa.string():
        values = values.cast(pa.string())
    if isinstance(column, Values) and column.valid is not None:
        values = pc.if_else(pa.array(column.valid), values, _NO_TEXT)
    return values


def _lists(column: Column) -> Any:
    """Return a column of lists as a ``pyarrow.ListArray``, null where ``Values`` say so."""
    values = column.values if isinstance(column, Values) else column
    if isinstance(values, pa.ListArray):
        if not isinstance(column, Values) or column.valid is None:
            return values
        return values.take(pa.array(np.arange(len(values)), mask=~column.valid))
    listed = values.to_pylist() if isinstance(values, pa.Array) else list(values)
    if isinstance(column, Values) and column.valid is not None:
        valid = column.valid.tolist()
        return pa.array([one if ok else None for one, ok in zip(listed, valid, strict=True)])
    return pa.array(listed)


@lru_cache(maxsize=PROGRAMS_MAX)
def _compiled(tree: Typed) -> Compiled:
    return compile_tree(tree)


def _worst(failures: Sequence[Failures | None]) -> Failures | None:
    """Return the worst failure of each row."""
    known = [of_one for of_one in failures if of_one is not None]
    return reduce(np.maximum, known) if known else None


def _failures(values: Values, rows: int) -> Failures:
    return np.zeros(rows, np.uint8) if values.failures is None else values.failures


def _of_texts(array: Any) -> Values:
    return Values(array, _valid(array))


def _of_bools(array: Any) -> Values:
    truth = array.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    return Values(truth, _valid(array))


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
