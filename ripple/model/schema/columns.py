"""Columns for and from users' code: arrays and lists of a field's type, where nothing is lost.

``ripple.model.schema.values`` lists the values of each type. An array with a dtype is judged by
that
alone, but for integers that may be too large, so that it costs nothing by the row; lists and arrays
of objects are judged value by value. None is null, and so are the missing values of a masked or an
Arrow array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.logical.fields import stored_fields, stored_type
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import (
    Bool,
    Date,
    DateTime,
    Decimal,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    Logical,
    Option,
    Schema,
    String,
    WideDecimal,
)
from ripple.model.schema.values import INT64_MAX, Misfit, converter, name_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask: TypeAlias = npt.NDArray[np.bool_]
    Array: TypeAlias = npt.NDArray[Any]

FLOAT_WHOLE_MAX = float(1 << 53)  # up to here every integer is a float of 64 bits

_DTYPES: dict[type, Any] = {
    Float: np.float64,
    Int: np.int64,
    Int64: np.int64,
    Date: np.int64,
    DateTime: np.int64,
    Decimal: np.int64,
    Bool: np.bool_,
}
# The kinds of arrays of which nothing is lost, but for integers that are too large.
_KINDS = {Float: "fiu", Int: "iu", Int64: "iu", Bool: "b"}
_INTS = {int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32}
# What a list may hold for NumPy to convert it as a whole.
_PLAIN: dict[type, set[type]] = {
    Float: {float, np.float16, np.float32, np.float64},
    Int: _INTS,
    Int64: _INTS,
    Date: set(),
    DateTime: set(),
    Decimal: set(),
    Bool: {bool, np.bool_},
}
_NULL = type(None)


@frozen
class Fitted:
    """A column of a type.

    values: float64, int64 or bool[n], anything where null; for other types a list, None where null.
    valid: bool[n], false where null or a misfit, or None if there are neither. misfits: the rows,
    ascending, with a value not of the type, and the reason.
    """

    values: Any
    valid: Mask | None
    misfits: dict[int, str]


def fitted(given: Any, of: FieldType, what: str, rows: int | None = None) -> Fitted:
    """Return a column of type ``of`` from users' code, with a misfit for each wrong value.

    given: a NumPy or Arrow array, or a sequence. what: how messages call it, such as "the field
    'size'". rows: how many values there must be, None if that is for ``given`` to say. Raises
    SchemaError if it is no flat array of that length or its dtype says that
    it holds another type.
    """
    of = of.of if isinstance(of, Option) else of
    if isinstance(of, Logical):
        given, of, misfits = _numbers_of(given, of, what)
        found = _fitted(given, of, what, rows)
        return replace(found, misfits=misfits) if misfits else found
    return _fitted(given, of, what, rows)


def _fitted(given: Any, of: FieldType, what: str, rows: int | None) -> Fitted:
    column, valid = _opened(given, of, what)
    if rows is not None and len(column) != rows:
        raise SchemaError(f"{what} must have {rows} values, not {len(column)}")
    if not isinstance(column, np.ndarray):
        return _fitted_list(column, of, what)
    if column.dtype.kind != "O" and (column.dtype.kind not in "TU" or type(of) in _DTYPES):
        return _fitted_array(column, valid, of, what)
    listed = column.tolist()
    if valid is not None:
        listed = [value if ok else None for value, ok in zip(listed, valid.tolist(), strict=True)]
    return _fitted_list(listed, of, what)


def _numbers_of(given: Any, of: Logical, what: str) -> tuple[Any, FieldType, dict[int, str]]:
    """Return the numbers of an array of a logical type, null for a misfit, and reasons by row.

    A list, and an array of objects, are returned unchanged.
    """
    rule = rule_of(of)
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Array) and pt.is_dictionary(given.type):
        given = decoded(given)
    if isinstance(given, np.ndarray) and not len(given):
        return [], of, {}
    is_whole = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    if is_whole and (type(of) in _DTYPES or isinstance(of, WideDecimal)):
        given = pa.array(given)
    if isinstance(given, pa.Array) and rule.takes(given.type):
        numbers = rule.stored(given)
        bad = [] if numbers.null_count == given.null_count else _lost(given, numbers)
        misfits = {row: f"{what} {_misfit(given, row, rule.word)}" for row in bad}
        return numbers, stored_type(of), misfits
    if isinstance(given, np.ndarray) and given.dtype.kind != "O":
        numbers = rule.numbers(np.ma.getdata(given))
        if numbers is None:
            raise _of_another_type(what, of, given.dtype)
        null = np.isnat(np.ma.getdata(given)) | np.ma.getmaskarray(given)
        beyond = ~null & ((numbers < rule.bounds[0]) | (numbers > rule.bounds[1]))
        misfits = {
            row: f"{what} {Misfit(rule.word, given[row])}"
            for row in np.flatnonzero(beyond).tolist()
        }
        null |= beyond
        return np.ma.MaskedArray(numbers, null) if null.any() else numbers, Int64(), misfits
    if isinstance(given, pa.Array) and not pt.is_null(given.type):
        raise _of_another_type(what, of, given.type)
    return given, of, {}


def _lost(given: pa.Array, numbers: pa.Array) -> list[int]:
    """Return the rows with a value of which there is no number."""
    found = np.asarray(given.is_valid()) & np.asarray(numbers.is_null())
    return np.flatnonzero(found).tolist()


def _misfit(given: pa.Array, row: int, word: str) -> Misfit:
    try:
        return Misfit(word, given[row].as_py())
    except (OverflowError, ValueError):  # beyond what Python has
        return Misfit(word, given.slice(row, 1).cast(pa.string())[0].as_py())


def called(function: Callable[[dict[str, Any]], Any], columns: Mapping[str, Any]) -> Any:
    """Return the result of a user's batch function for arrays by name, which it may only read.

    They share their memory with other columns and with the caller's own tables. Raises the
    function's errors; for a change in place, ValueError with the remedy.
    """
    given = {name: read_only(column) for name, column in columns.items()}
    try:
        return function(given)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(
            f"{error}: what a function is given is not changed in place; compute new arrays, as in "
            "d['x'] = d['x'] * 2, or change a copy, d['x'].copy()"
        ) from error


def read_only(column: Any) -> Any:
    """Return an array as a read-only one; anything else unchanged."""
    if not isinstance(column, np.ndarray) or not column.flags.writeable:
        return column
    view = column.view()
    view.flags.writeable = False
    return view


def objects(listed: Sequence[Any]) -> Array:
    """Return values as a flat array of objects, even if they are sequences."""
    return np.fromiter(listed, object, len(listed))


def records_of(rows: Sequence[Mapping[str, Any]], fields: Sequence[Field]) -> pa.RecordBatch:
    """Return mappings as records with these fields, null where one is left out.

    Raises SchemaError naming the row and the field of a value that is none
    of its type.
    """
    arrays = []
    for field, column in zip(fields, to_arrow(Schema("row", stored_fields(fields))), strict=True):
        listed = [row.get(field.name) for row in rows]
        found = fitted(listed, field.type, f"the field {field.name!r}")
        for row, reason in found.misfits.items():
            raise SchemaError(f"row {row}: {reason}")
        null = None if found.valid is None or isinstance(found.values, list) else ~found.valid
        arrays.append(pa.array(found.values, column.type, mask=null))
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in fields])


def decoded(column: pa.DictionaryArray) -> pa.Array:
    """Return a dictionary's values by row. Arrow itself takes none out of one of views."""
    values = column.dictionary
    if pt.is_string_view(values.type):
        column = pa.DictionaryArray.from_arrays(column.indices, values.cast(pa.large_string()))
    return column.dictionary_decode()


def _opened(given: Any, of: FieldType, what: str) -> tuple[Any, Mask | None]:
    """Return a flat array or a list, and where it is not null if the array does not say that."""
    valid: Mask | None = None
    original = given
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        given, valid = _from_arrow(given, of, what)
    elif isinstance(given, np.ma.MaskedArray):
        valid = ~np.ma.getmaskarray(given)
        given = given.data
    elif not isinstance(given, (list, np.ndarray)):
        if isinstance(given, Sequence) and not isinstance(given, (str, bytes, bytearray)):
            given = list(given)
        elif hasattr(given, "__array__"):
            given = np.asarray(given)
    if not isinstance(given, (list, np.ndarray)) or (type(given) is np.ndarray and not given.ndim):
        raise SchemaError(f"{what} must be an array, not {shown(original)}")
    if isinstance(given, np.ndarray) and given.ndim != 1:
        raise SchemaError(f"{what} must be a flat array, not one of {given.ndim} dimensions")
    return given, valid


def _from_arrow(
    given: pa.Array | pa.ChunkedArray, of: FieldType, what: str
) -> tuple[Any, Mask | None]:
    whole = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    if pt.is_dictionary(whole.type):
        whole = decoded(whole)
    if type(of) not in _DTYPES or pt.is_null(whole.type):
        try:
            return whole.to_pylist(), None
        except UnicodeDecodeError:
            raise SchemaError(f"{what} must be {name_of(of)}, not bytes beyond UTF-8") from None
    if not (pt.is_integer(whole.type) or pt.is_floating(whole.type) or pt.is_boolean(whole.type)):
        raise _of_another_type(what, of, whole.type)
    if not whole.null_count:
        return whole.to_numpy(zero_copy_only=False), None
    valid: Mask = whole.is_valid().to_numpy(zero_copy_only=False)
    filler = pa.scalar(0, pa.int8()).cast(whole.type)
    return whole.fill_null(filler).to_numpy(zero_copy_only=False), valid


def _fitted_array(column: Array, valid: Mask | None, of: FieldType, what: str) -> Fitted:
    """Return an array of numbers, of bools or of other objects."""
    kinds = _KINDS.get(type(of), "")
    if not len(column):  # NumPy makes floats of no values
        return _fitted_list([], of, what)
    if column.dtype.kind not in kinds or (kinds == "fiu" and column.dtype == np.longdouble):
        raise _of_another_type(what, of, column.dtype)
    values = np.ascontiguousarray(column, _DTYPES[type(of)])
    changed = _changed(column, values)
    if changed is None:
        return Fitted(values, valid, {})
    bad = changed if valid is None else changed & valid
    convert, misfits = converter(of), {}
    for row in np.flatnonzero(bad).tolist():
        try:
            convert(column[row])
        except Misfit as misfit:
            misfits[row] = f"{what} {misfit}"
    return Fitted(values, ~bad if valid is None else valid & ~bad, misfits)


def _changed(before: Array, after: Array) -> Mask | None:
    """Return where a conversion of integers changed them, None if nowhere."""
    changed: Mask | None = None
    if after.dtype == np.int64 and before.dtype == np.uint64:
        changed = before > INT64_MAX
    elif (
        after.dtype == np.float64
        and before.dtype in (np.int64, np.uint64)
        and (np.abs(after) >= FLOAT_WHOLE_MAX).any()
    ):
        end = float(np.iinfo(before.dtype).max)  # rounded up, to the first that is too large
        beyond = after >= end
        changed = beyond | (np.where(beyond, 0.0, after).astype(before.dtype) != before)
    return changed if changed is not None and changed.any() else None


def _fitted_list(column: list[Any], of: FieldType, what: str) -> Fitted:
    """Return a column of values that are judged one by one, unless they are all of one kind."""
    kinds = set(map(type, column))
    valid = np.array([value is not None for value in column], np.bool_) if _NULL in kinds else None
    dtype = _DTYPES.get(type(of))
    if dtype is not None and kinds - {_NULL} <= _PLAIN[type(of)]:
        try:
            return Fitted(_filled(column, valid, dtype), valid, {})
        except OverflowError:  # an int beyond 64 bits: which one?
            pass
    elif isinstance(of, String) and kinds - {_NULL} <= {str} and _is_encodable(column, valid):
        return Fitted(column, valid, {})
    convert, misfits = converter(Option(of)), {}
    values = []
    for row, value in enumerate(column):
        try:
            values.append(convert(value))
        except Misfit as misfit:
            misfits[row] = f"{what} {misfit}"
            values.append(None)
    if valid is not None or misfits:
        valid = np.array([value is not None for value in values], np.bool_)
    return Fitted(values if dtype is None else _filled(values, valid, dtype), valid, misfits)


def _filled(column: list[Any], valid: Mask | None, dtype: Any) -> Array:
    if valid is not None:
        column = [0 if value is None else value for value in column]
    return np.array(column, dtype)


def _is_encodable(column: list[Any], valid: Mask | None) -> bool:
    texts = column if valid is None else [value for value in column if value is not None]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_another_type(what: str, of: FieldType, dtype: Any) -> SchemaError:
    hint = ""
    if isinstance(of, (Int, Int64)) and str(dtype).startswith("float"):
        hint = ": divide with //, or round and cast it with .astype(numpy.int64)"
    return SchemaError(f"{what} must be {name_of(of)}, not an array of {dtype}{hint}")
