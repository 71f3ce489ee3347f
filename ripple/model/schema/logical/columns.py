"""Columns of logical types: stored numbers, and shown values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.fields import has_logical, logical_in
from ripple.model.schema.logical.rule import FIXED, rule_of
from ripple.model.schema.types import (
    PRECISION_MAX,
    Bytes,
    Date,
    DateTime,
    Decimal,
    Field,
    FieldType,
    List,
    Logical,
    LogicalText,
    Record,
    WideDecimal,
    bare_type,
    inner_types,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")


def shown(column: pa.Array, kind: FieldType) -> pa.Array:
    """Return a column of numbers with its values as dates, times and decimals; nested ones too."""
    kind = bare_type(kind)
    if isinstance(kind, Logical):
        return rule_of(kind).shown(column)
    if isinstance(kind, (List, Record)) and has_logical(kind):
        return mapped(column, shown, inner_types(kind), column.type)
    return column


def as_shown(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return a column of numbers in an Arrow type, shown if a logical type has it, else cast."""
    found = column.type
    if (kinds.is_list(arrow) and kinds.is_list(found)) or (
        kinds.is_struct(arrow) and kinds.is_struct(found)
    ):
        return mapped(column, as_shown, types_in(arrow), arrow)
    if kinds.is_string(found) and kinds.is_decimal128(arrow):
        digits = max(arrow.precision, PRECISION_MAX + 1)
        return rule_of(WideDecimal(digits, arrow.scale)).shown(column).cast(arrow)
    if kinds.is_integer(found):
        if kinds.is_decimal128(arrow):
            return rule_of(Decimal.wide(arrow.scale)).shown(column).cast(arrow)
        for rule in (FIXED[Date], FIXED[DateTime]):
            if rule.arrow == arrow:
                return rule.shown(column)
    if kinds.is_string(found) and kinds.is_binary(arrow):
        return FIXED[Bytes].shown(column)
    return column.cast(arrow)


def types_in(arrow: pa.DataType) -> list[pa.DataType]:
    """Return the types within a type of lists or structs."""
    return [arrow.field(at).type for at in range(arrow.num_fields)]


def mapped(
    column: pa.Array, each: Callable[[pa.Array, T], pa.Array], of: Iterable[T], like: pa.DataType
) -> pa.Array:
    """Return a column of lists or structs with other columns within it.

    ``each`` makes one of a column within and of its one in ``of``. like: a type with the names and
    the nullability of nested ones.
    """
    fields = [like.field(at) for at in range(like.num_fields)]
    if kinds.is_list(column.type):
        (values,) = (each(column.flatten(), one) for one in of)
        return _lists(column, values, pa.list_(fields[0].with_type(values.type)))
    parts = [each(part, one) for part, one in zip(column.flatten(), of, strict=True)]
    fields = [field.with_type(part.type) for field, part in zip(fields, parts, strict=True)]
    null = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=fields, mask=null)


def _lists(column: pa.Array, values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return a column of lists with other values. values: of all lists, concatenated."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(valid, np.diff(column.offsets.to_numpy()), 0)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    null = pa.array(~valid) if column.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends), values, type=arrow, mask=null)


def stored_columns(rows: pa.RecordBatch, fields: Iterable[Field]) -> pa.RecordBatch:
    """Return rows with the numbers of columns of these fields with logical types."""
    columns, found = rows.columns, list(rows.schema)
    for name, kind in logical_in(fields).items():
        at = rows.schema.get_field_index(name)
        if at >= 0 and rule_of(kind).takes(columns[at].type):
            columns[at] = rule_of(kind).stored(columns[at])
            found[at] = found[at].with_type(columns[at].type)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(found, rows.schema.metadata))


def text_of_number(number: Any, kind: Logical) -> str:
    """Return a number from outside as a text that the type's form reads, as ``texts_of`` does."""
    rule = rule_of(kind)
    if isinstance(kind, LogicalText):
        return rule.written(number)
    is_one = rule.bounds[0] <= number <= rule.bounds[1]
    return rule.written(number) if is_one else str(number)


def texts_of(column: pa.Array, kind: Logical) -> pa.Array:
    """Return a column of int64 from outside as texts of the type's form.

    A number beyond the type's bounds becomes its digits, an invalid text of that form.
    """
    rule = rule_of(kind)
    numbers = np.asarray(column.fill_null(0))
    beyond = (numbers < rule.bounds[0]) | (numbers > rule.bounds[1])
    null = np.asarray(column.is_null())
    inside = pa.array(np.where(beyond, 0, numbers), mask=null)
    texts = rule.texts(inside)
    if not beyond.any():
        return texts
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and seldom needed

    digits = pa.array(numbers).cast(pa.string())
    return pc.if_else(pa.array(beyond), digits, texts)


def stored(column: pa.Array, kind: FieldType) -> pa.Array:
    """Return the stored column of a flat one of logical values, or of their texts."""
    bare = bare_type(kind)
    if not isinstance(bare, Logical):
        return column
    if kinds.is_string(column.type):
        return rule_of(bare).form(None, None).parsed(column)[0]
    return rule_of(bare).stored(column) if rule_of(bare).takes(column.type) else column
