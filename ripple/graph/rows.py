"""What a row of a column is: its fields, and how Python values and arrays become them and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.errors import SchemaError
from ripple.expression.bound import numbers
from ripple.expression.typed import Kind, kind_of
from ripple.graph.column import fingerprint
from ripple.schema.arrow import to_arrow
from ripple.schema.derive import schema_of
from ripple.schema.members import is_record_class
from ripple.schema.types import Field, FieldType, Option, Schema

# Values of a field: float64, int64 or bool[n], or a list; and which of them are not null.
Array: TypeAlias = "npt.NDArray[Any] | list[Any]"
Gathered: TypeAlias = "tuple[Array, npt.NDArray[np.uint8] | None]"
# What users call a schema: a type, fields by name, a record class, or a Schema.
SchemaLike: TypeAlias = Any

KINDS = {Kind.FLOAT: "float", Kind.INT: "int", Kind.BOOL: "bool"}
# The kinds of NumPy arrays that a column of the kind takes without losing anything.
_TAKES = {Kind.FLOAT: "fiu", Kind.INT: "iu", Kind.BOOL: "b"}
_DTYPES: dict[Kind, Any] = {Kind.FLOAT: np.float64, Kind.INT: np.int64, Kind.BOOL: np.bool_}


@dataclass(frozen=True, slots=True)
class RowType:
    """The fields of a row, and what a row is in Python.

    is_single: a row is the value of its only field. make: else, what makes a row of fields by
    name: a record class, or dict.
    """

    fields: tuple[Field, ...]
    is_single: bool
    make: Callable[..., Any]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names."""
        return tuple(field.name for field in self.fields)

    @property
    def types(self) -> dict[str, FieldType]:
        """The fields' types by name, as expressions are bound to."""
        return {field.name: type_of(field) for field in self.fields}

    @property
    def storage(self) -> list[tuple[str, str, bool]]:
        """(name, kind, nullable) of each field, as a column stores it."""
        kinds = [kind_of(type_of(field)) for field in self.fields]
        return [
            (field.name, KINDS.get(kind, "object"), nullable)
            for field, (kind, nullable) in zip(self.fields, kinds, strict=True)
        ]

    @property
    def is_text(self) -> list[bool]:
        """Whether each field holds text."""
        return [kind_of(type_of(field))[0] is Kind.TEXT for field in self.fields]

    def values_of(self, row: Any) -> list[Any]:
        """Return a row's values in the order of the fields; raises TypeError naming a field."""
        if self.is_single:
            return [row]
        if isinstance(row, Mapping):
            unknown = row.keys() - set(self.names)
            if unknown:
                raise self._unknown(sorted(unknown)[0])
            return [row.get(name) for name in self.names]
        try:
            return [getattr(row, name) for name in self.names]
        except AttributeError:
            raise TypeError(
                f"a row must have the fields {', '.join(self.names)}, unlike {row!r}"
            ) from None

    def _unknown(self, name: object) -> TypeError:
        return TypeError(f"there is no field {name!r}; the fields are {', '.join(self.names)}")

    def arrays(self, columns: Any, count: int | None) -> tuple[list[Array], list[Any]]:
        """Return (values, valid) per field from arrays by name, or the array of the only field.

        count: how many values each must have, None if that is for the arrays to say. Raises
        TypeError or ValueError naming the field.
        """
        if not isinstance(columns, Mapping):
            if len(self.fields) != 1:
                raise TypeError(f"give an array for each of the fields {', '.join(self.names)}")
            columns = {self.names[0]: columns}
        for name in columns:
            if name not in self.names:
                raise TypeError(
                    f"there is no field {name!r}; the fields are {', '.join(self.names)}"
                )
        typed = [field_array(field, columns.get(field.name), count) for field in self.fields]
        return [values for values, _ in typed], [valid for _, valid in typed]

    def table(
        self, keys: Sequence[pa.Array], key_fields: tuple[Field, ...], columns: list[Gathered]
    ) -> pa.Table:
        """Return keys and gathered columns as a table."""
        schema = to_arrow(Schema("row", (*key_fields, *self.fields)))
        arrays = [
            pa.array(
                values,
                field.type,
                mask=None if valid is None or isinstance(values, list) else valid == 0,
            )
            for (values, valid), field in zip(columns, list(schema)[len(keys) :], strict=True)
        ]
        return pa.table([*keys, *arrays], schema=schema)


def type_of(field: Field) -> FieldType:
    """Return the type of a field's values, an ``Option`` if the field may be absent."""
    optional = field.optional and not isinstance(field.type, Option)
    return Option(field.type) if optional else field.type


def row_type(schema: SchemaLike, name: str | None) -> RowType:
    """Return what rows of ``schema`` are.

    schema: a type such as ``float``, ``str | None`` or a field type, for rows that are one value
    (its field is called ``name``, or "value"); a mapping of field names to such types, for rows
    that are dicts; a ``Schema``, likewise; a record class, for rows that are its instances.
    Raises SchemaError.
    """
    if isinstance(schema, Mapping):
        return RowType(fields_of(schema), is_single=False, make=dict)
    if isinstance(schema, Schema):
        return RowType(schema.fields, is_single=False, make=dict)
    if is_record_class(schema) and not isinstance(schema, FieldType):
        return RowType(schema_of(schema).fields, is_single=False, make=schema)
    return RowType(fields_of({name or "value": schema}), is_single=True, make=dict)


def fields_of(types: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return fields from Python types or field types by name; raises SchemaError."""
    if not types:
        raise SchemaError("a schema has at least one field")
    listed = [(n, Annotated[Any, t] if isinstance(t, FieldType) else t) for n, t in types.items()]
    places = {f"field_{i}": name for i, (name, _) in enumerate(listed)}
    row = make_dataclass("row", zip(places, (kind for _, kind in listed), strict=True))
    return tuple(
        Field(places[field.name], field.type, field.optional) for field in schema_of(row).fields
    )


def field_array(field: Field, given: Any, count: int | None) -> tuple[Array, Any]:
    """Return an array as a column takes it, with a mask or None; raises TypeError, ValueError."""
    kind, nullable = kind_of(type_of(field))
    if given is None:
        if count is None or not nullable:
            raise TypeError(f"the field {field.name!r} is missing")
        given = [None] * count
    try:
        length = len(given)
    except TypeError:
        raise TypeError(f"the field {field.name!r} needs an array, not {given!r}") from None
    if count is not None and length != count:
        raise ValueError(f"the field {field.name!r} has {length} values for {count} keys")
    values, valid = _number_array(kind, given) if kind in KINDS else _list_array(kind, given)
    if valid is not None and not nullable:
        raise TypeError(f"the field {field.name!r} cannot be null; declare it as | None")
    if values is None:
        raise TypeError(f"the field {field.name!r} must be {kind.value}, not {_shown(given)}")
    return values, valid


def _number_array(kind: Kind, given: Any) -> tuple[Any, Any]:
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        whole = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
        if pa.types.is_dictionary(whole.type) or whole.type not in _ARROW[kind]:
            return None, None
        cast = whole.cast(_ARROW[kind][0])
        found = numbers(cast, kind)
        return found.values, found.valid
    array = np.asarray(given)
    if array.ndim != 1:
        return None, None
    valid = None
    if array.dtype == object:
        valid = np.array([value is not None for value in array.tolist()], np.bool_)
        rest = [value for value in array.tolist() if value is not None]
        filled = np.zeros(len(array), _DTYPES[kind])
        if rest:
            inner, _ = _number_array(kind, rest) if _plain(rest) else (None, None)
            if inner is None:
                return None, None
            filled[valid] = inner
        return filled, None if valid.all() else valid
    if len(array) and (array.dtype.kind not in _TAKES[kind] or _mixed_bools(given, kind)):
        return None, None
    if array.dtype == np.uint64 and kind is Kind.INT and len(array) and array.max() >= 1 << 63:
        return None, None
    return np.ascontiguousarray(array, _DTYPES[kind]), None


def _plain(values: list[Any]) -> bool:
    """Return whether NumPy makes a typed array of these; it tries only once."""
    return np.asarray(values).dtype != object


def _mixed_bools(given: Any, kind: Kind) -> bool:
    """Return whether bools stand among numbers in a list, which NumPy silently converts."""
    if kind is Kind.BOOL or isinstance(given, np.ndarray):
        return False
    return any(value is True or value is False for value in given)


_FLOATS = (pa.float64(), pa.float32())
_INTS = (pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.uint32(), pa.uint16(), pa.uint8())
_ARROW: dict[Kind, tuple[pa.DataType, ...]] = {
    Kind.FLOAT: (*_FLOATS, *_INTS[1:], _INTS[0]),
    Kind.INT: _INTS,
    Kind.BOOL: (pa.bool_(),),
}


def _list_array(kind: Kind, given: Any) -> tuple[Any, Any]:
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        listed = given.to_pylist()
    elif isinstance(given, np.ndarray):
        listed = given.tolist()
    elif isinstance(given, str):
        return None, None
    else:
        listed = list(given)
    valid = np.array([value is not None for value in listed], np.bool_)
    if kind is Kind.TEXT and not all(isinstance(v, str) for v in listed if v is not None):
        return None, None
    for value in listed if kind is not Kind.TEXT else ():
        fingerprint(value)  # refuses what a column cannot hold
    return listed, None if valid.all() else valid


def _shown(given: Any) -> str:
    if isinstance(given, np.ndarray):
        return f"an array of {given.dtype}"
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        return f"an array of {given.type}"
    return repr(given) if len(given) <= 5 else f"{repr(given[:5])[:-1]}, ...]"
