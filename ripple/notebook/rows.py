"""Rows of a column: their fields, and the conversion from and to Python values and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.records.derive import schema_of
from ripple.model.records.members import is_record_class
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.columns import fitted
from ripple.model.schema.document import refuse_empty
from ripple.model.schema.types import Field, FieldType, Option, Schema

if TYPE_CHECKING:
    import numpy.typing as npt

# Values of a field: float64, int64 or bool[n], or a list; and which of them are not null.
Array: TypeAlias = "npt.NDArray[Any] | list[Any]"
Gathered: TypeAlias = "tuple[Array, npt.NDArray[np.uint8] | None]"
# A schema as users give it: a type, fields by name, a record class, or a Schema.
SchemaLike: TypeAlias = Any

KINDS = {Kind.FLOAT: "float", Kind.INT: "int", Kind.BOOL: "bool"}


@dataclass(frozen=True, slots=True)
class RowType:
    """The fields of a row, and its form in Python.

    is_single: a row is the value of its only field. make: else, the constructor of a row from
    fields by name: a record class, or dict.
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
        """Return a row's values in the order of the fields; raises SchemaError naming a field."""
        if self.is_single:
            return [row]
        if isinstance(row, Mapping):
            self._refuse_unknown(row)
            return [row.get(name) for name in self.names]
        try:
            return [getattr(row, name) for name in self.names]
        except AttributeError:
            raise SchemaError(
                f"a row must have the fields {', '.join(self.names)}, unlike {shown(row)}"
            ) from None

    def _refuse_unknown(self, names: Iterable[object]) -> None:
        for name in names:
            if name not in self.names:
                raise SchemaError(
                    f"there is no field {name!r}; the fields are {', '.join(self.names)}"
                )

    def arrays(self, columns: Any, count: int | None) -> tuple[list[Array], list[Any]]:
        """Return (values, valid) per field from arrays by name, or the array of the only field.

        count: how many values each must have, None if that is for the arrays to say. Raises
        SchemaError naming the field.
        """
        if not isinstance(columns, Mapping):
            if len(self.fields) != 1:
                raise SchemaError(
                    f"there must be an array for each of the fields {', '.join(self.names)}, not "
                    f"{shown(columns)}"
                )
            columns = {self.names[0]: columns}
        self._refuse_unknown(columns)
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
    """Return the type of rows of ``schema``.

    schema: a type such as ``float``, ``str | None`` or a field type, for rows that are one value
    (its field is called ``name``, or "value"); a mapping of field names to such types, for rows
    that are dicts; a ``Schema``, likewise; a record class, for rows that are its instances.
    Raises SchemaError.
    """
    try:
        if isinstance(schema, Mapping):
            return RowType(fields_of(schema), is_single=False, make=dict)
        if isinstance(schema, Schema):
            refuse_empty(schema.name, "schema", schema.fields)
            return RowType(schema.fields, is_single=False, make=dict)
        if is_record_class(schema) and not isinstance(schema, FieldType):
            return RowType(schema_of(schema).fields, is_single=False, make=schema)
        return RowType(fields_of({name or "value": schema}), is_single=True, make=dict)
    except SchemaError as error:
        raise SchemaError(f"schema: {error}") from error


def fields_of(types: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return fields from Python types or field types by name; raises SchemaError."""
    if not types:
        raise SchemaError("there must be at least one field")
    return Schema("row", tuple(_field(name, kind) for name, kind in types.items())).fields


def _field(name: str, kind: Any) -> Field:
    annotation = Annotated[Any, kind] if isinstance(kind, FieldType) else kind
    try:
        row = make_dataclass("row", [("field", annotation)], namespace={"__doc__": "A row."})
        (field,) = schema_of(row).fields
    except SchemaError as error:
        raise SchemaError(str(error).replace("row.field", str(name), 1)) from error
    return Field(name, field.type, field.optional)


def field_array(field: Field, given: Any, count: int | None) -> tuple[Array, Any]:
    """Return an array as a column takes it, with a mask or None; raises SchemaError."""
    nullable = kind_of(type_of(field))[1]
    what = f"the field {field.name!r}"
    if given is None:
        if count is None or not nullable:
            raise SchemaError(f"{what} is missing")
        given = [None] * count
    found = fitted(given, field.type, what, count)
    for reason in found.misfits.values():
        raise SchemaError(reason)
    valid = found.valid
    if valid is None or valid.all():
        return found.values, None
    if not nullable:
        raise SchemaError(f"{what} cannot be null; declare it as | None")
    return found.values, valid
