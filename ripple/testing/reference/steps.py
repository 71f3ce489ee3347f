"""The steps of a pipeline on one row, in plain Python."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from ripple.model.pipeline.nodes import (
    FLAT_ROWS_MAX,
    ConstantJoin,
    Derive,
    EventNode,
    Explode,
    Fields,
    Filter,
    FlatMap,
    Map,
    SourceSpec,
    Step,
    Union,
    type_of,
)
from ripple.model.pipeline.waiting_nodes import Waiting
from ripple.model.records.instances import instances_of
from ripple.model.schema.logical.fields import has_logical
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.values import values_of
from ripple.model.schema.types import Field, FieldType, List, Logical, Option, Record, bare_type
from ripple.testing.reference.expressions import (
    Failed,
    evaluate,
    expression_kind,
    is_int64,
    python_type,
)

Row: TypeAlias = dict[str, Any]

TIME_END_NS = 1 << 62  # event times are below it, and at or above its negative

_PASSES: dict[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "finite": lambda value, _: math.isfinite(value),
    "min_length": lambda value, length: len(value) >= length,
    "max_length": lambda value, length: len(value) <= length,
}

_DTYPES: dict[type, Any] = {float: np.float64, int: np.int64, bool: np.bool_}
_KINDS = {float: "fiu", int: "iu", bool: "b"}  # of arrays that need no conversion of their kind


class RefusedRow(Exception):  # noqa: N818  # not an error of the program: the row's fate
    """A step cannot process the row."""

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason


class FunctionFailed(Exception):  # noqa: N818  # of a user's function, for a whole batch
    """A batch function raised, or returned a wrong value."""

    def __init__(self, step: str, error: Exception) -> None:
        super().__init__(f"{step}: {type(error).__name__}: {error}")
        self.step = step
        self.reason = str(error)


@lru_cache(maxsize=1000)
def kinds_of(fields: Fields) -> dict[str, type]:
    """Return the Python type of each field's values."""
    return {field.name: expression_kind(type_of(field)) for field in fields}


def number_of(value: Any, of: FieldType) -> Any:
    """Return a value with dates, times and decimals as stored: numbers. Raises TypeError."""
    kind = bare_type(of)
    if value is None or not has_logical(kind):
        return value
    if isinstance(kind, List):
        return [number_of(one, kind.of) for one in value]
    if isinstance(kind, Record):
        return {one.name: number_of(value[one.name], one.type) for one in kind.fields}
    assert isinstance(kind, Logical), kind
    number = rule_of(kind).number(value)
    if number is None:
        raise TypeError(f"{value!r} is not {rule_of(kind).word}")
    return number


def given_of(row: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """Return the values of fields as users' functions get them."""
    return {one.name: values_of([row[one.name]], type_of(one))[0] for one in fields}


def refuse_nulls(row: Mapping[str, Any], fields: Sequence[Field], step: str) -> None:
    """Raise :class:`RefusedRow` when one of the fields is null."""
    for field in fields:
        if row[field.name] is None:
            raise RefusedRow(step, f"the field {field.name!r} is null")


def refuse_unfit(row: Mapping[str, Any], source: SourceSpec) -> None:
    """Raise :class:`RefusedRow` when a value fails a check that the record declares."""
    for name, checks in source.checks.items():
        for check, bound in checks.given().items():
            if check not in _PASSES:  # how a source writes a time, which it has read
                continue
            if row[name] is not None and not _PASSES[check](row[name], bound):
                raise RefusedRow(source.name, f"{name} does not pass {check}={bound!r}")


def refuse_invalid(row: Mapping[str, Any], source: SourceSpec) -> None:
    """Raise :class:`RefusedRow` for a record that does not count."""
    if source.table is not None and row[source.table.deleted]:
        refuse_nulls(
            row, [one for one in source.fields if one.name in source.table.key], source.name
        )
        return
    refuse_nulls(row, [one for one in source.fields_needed if not one.optional], source.name)
    for part in source.optional_records:
        if any(row[name] is not None for name in part.values):
            of_part = [one for one in source.fields if one.name in part.required]
            refuse_nulls(row, of_part, source.name)
    refuse_unfit(row, source)


def give_time(row: Row, source: SourceSpec, watermark_ns: int | None) -> None:
    """Give a deletion without an event time the newest one of its input; raises RefusedRow."""
    name = source.time_field
    if name is None or row[name] is not None:
        return
    if watermark_ns is None:
        raise RefusedRow(source.name, f"a deletion has no {name!r}, and no record before it has")
    newest_ns = watermark_ns + source.out_of_order_ns
    row[name] = min(max(newest_ns, -TIME_END_NS), TIME_END_NS - 1)


def run_steps(steps: Sequence[EventNode], row: Row) -> Row | None:
    """Return the row that comes out, None if a filter drops it.

    Raises :class:`RefusedRow`, and :class:`FunctionFailed` for a batch function.
    """
    for step in steps:
        if isinstance(step, Filter):
            kinds = kinds_of(step.fields_in)
            if value_of(step.condition.expr, row, kinds, step.name) is not True:
                return None
        elif isinstance(step, Derive):
            kinds = kinds_of(step.fields_in)
            derived = {
                name: value_of(bound.expr, row, kinds, step.name) for name, bound in step.exprs
            }
            row = {**row, **derived}
        elif isinstance(step, ConstantJoin):
            partner = _partner(step, row)
            if partner is None and step.how == "inner":
                return None
            shown = zip(step.taken, step.added, strict=True)
            row = {**row, **{field.name: partner and partner[name] for name, field in shown}}
        elif isinstance(step, FlatMap | Explode | Union | Waiting):
            raise TypeError(f"{step.name} is no step from row to row: see rows_after")
        else:
            row = {**_mapped(step, row), **{name: row[name] for name in step.kept}}
    return row


def _partner(step: ConstantJoin, row: Row) -> Row | None:
    """Return the row of the constant that a row names."""
    named = [row[name] for name in step.on]
    if None in named:
        return None
    rows: list[Row] = step.constant.rows.to_pylist()
    return next((one for one in rows if [one[name] for name in step.constant.key] == named), None)


def rows_after(step: EventNode, branches: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Return the rows of one record after a step, from those of each node that it has come to.

    Raises :class:`RefusedRow` if one of them is refused, and :class:`FunctionFailed`.
    """
    assert not isinstance(step, Waiting), "it begins branches"
    if not isinstance(step, Union):
        return rows_of(step, branches[step.reads])
    rows = [row for name in step.reads for row in branches.get(name, ())]
    if len(rows) > FLAT_ROWS_MAX:
        raise RefusedRow(step.name, f"more than {FLAT_ROWS_MAX} rows")
    return rows


def rows_of(step: Step, rows: Sequence[Row]) -> list[Row]:
    """Return the rows of one record after a step.

    Raises :class:`RefusedRow` if one of them is refused, and :class:`FunctionFailed`.
    """
    if not isinstance(step, FlatMap | Explode):
        stepped = [run_steps((step,), row) for row in rows]
        return [row for row in stepped if row is not None]
    each = _exploded if isinstance(step, Explode) else _flat_mapped
    made = [one for row in rows for one in each(step, row)]  # type: ignore[arg-type]  # as tested
    if len(made) > FLAT_ROWS_MAX:
        raise RefusedRow(step.name, f"more than {FLAT_ROWS_MAX} rows")
    return made


def _exploded(step: Explode, row: Row) -> list[Row]:
    others = {name: value for name, value in row.items() if name != step.column}
    items = row[step.column]
    if items and len(step.into) > 1:  # a map, as it is stored
        found = sorted(json.loads(items).items())
        return [{**others, **dict(zip(step.into, pair, strict=True))} for pair in found]
    return [{**others, step.into[0]: item} for item in items or ()]


def _flat_mapped(step: FlatMap, row: Row) -> list[Row]:
    given = given_of(row, step.fields_in)
    wanted = step.schema.fields
    try:
        made = []
        instance = instances_of(step.row, tuple(given))(tuple(given.values()))
        for result in step.function(instance):
            of = result.__getitem__ if isinstance(result, dict) else partial(getattr, result)
            made.append({field.name: of(field.name) for field in wanted})
            if len(made) > FLAT_ROWS_MAX:
                raise ValueError(f"more than {FLAT_ROWS_MAX} rows")
    except Exception as error:  # any error of a user's function
        raise RefusedRow(step.name, f"{type(error).__name__}: {error}") from error
    try:
        return [{field.name: checked(one[field.name], field) for field in wanted} for one in made]
    except TypeError as error:
        raise RefusedRow(step.name, str(error)) from error


def value_of(expr: Any, row: Row, kinds: Mapping[str, type], step: str) -> Any:
    """Return the value of an expression; raises :class:`RefusedRow` when it fails."""
    value = evaluate(expr, row, kinds)
    if isinstance(value, Failed):
        raise RefusedRow(step, value.reason)
    return value


def _mapped(step: Map, row: Row) -> Row:
    wanted = [field for field in step.schema.fields if field.name not in step.kept]
    given = given_of(row, step.fields_in)
    if step.batch:
        arrays = {field.name: _array_of_one(field, row[field.name]) for field in step.fields_in}
        try:
            returned = step.function(arrays)
            made = {field.name: _only(returned[field.name], field) for field in wanted}
        except Exception as error:  # any error of a user's function
            raise FunctionFailed(step.name, error) from error
    else:
        try:
            result = step.function(instances_of(step.row, tuple(given))(tuple(given.values())))
            of = result.__getitem__ if isinstance(result, dict) else partial(getattr, result)
            made = {field.name: of(field.name) for field in wanted}
        except Exception as error:  # any error of a user's function
            raise RefusedRow(step.name, f"{type(error).__name__}: {error}") from error
    try:
        return {field.name: checked(made[field.name], field) for field in wanted}
    except TypeError as error:
        raise RefusedRow(step.name, str(error)) from error


def _array_of_one(field: Field, value: Any) -> np.ndarray[Any, Any]:
    of = type_of(field)
    if isinstance(of, Logical):
        array: np.ndarray[Any, Any] = rule_of(of).array(np.array([value]))
        array.flags.writeable = False
        return array
    value = values_of([value], of)[0]
    dtype = None if isinstance(of, Option) else _DTYPES.get(python_type(of))
    array = np.empty(1, object if dtype is None else dtype)
    array[0] = value
    array.flags.writeable = False
    return array


def _only(array: Any, field: Field) -> Any:
    """Return the value of an array of one; raises TypeError if its dtype is another type's."""
    if len(array) != 1:
        raise ValueError(f"{len(array)} values for one row")
    value = array[0]
    if value is np.ma.masked:
        return None
    of = bare_type(type_of(field))
    if isinstance(of, Logical) and isinstance(array, np.ndarray) and array.dtype != object:
        numbers = rule_of(of).numbers(array)
        if numbers is None:
            raise TypeError(f"the field {field.name!r} cannot be an array of {array.dtype}")
        return rule_of(of).value(int(numbers[0]))
    kinds = _KINDS.get(python_type(type_of(field)), "OTU")
    dtype = getattr(array, "dtype", None)
    if dtype is not None and dtype.kind not in kinds + "O":
        raise TypeError(f"the field {field.name!r} cannot be an array of {dtype}")
    return value


def checked(value: Any, field: Field) -> Any:  # one case a line
    """Return a value of the field's type; raises TypeError for another one, or a change."""
    of = type_of(field)
    kind: Any = python_type(of)
    if value is None and isinstance(of, Option):
        return None
    if value is not None and has_logical(bare_type(of)):
        return number_of(value, of)
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > 2**1023 or int(float(value)) != value:
            raise TypeError(f"the field {field.name!r} would change: {value!r}")
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"the field {field.name!r} must be {kind.__name__}, not {value!r}")
    if kind is int and not is_int64(value):
        raise TypeError(f"the field {field.name!r} does not fit 64 bits: {value!r}")
    if kind is str and value.encode(errors="replace").decode() != value:
        raise TypeError(f"the field {field.name!r} is no UTF-8: {value!r}")
    return kind(value) if kind in (int, float) else value
