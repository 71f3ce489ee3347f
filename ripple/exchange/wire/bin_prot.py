"""bin_prot, OCaml's binary encoding: codecs for values of known types.

Each codec has ``dumps(value) -> bytes``, ``loads(data) -> value`` (all of it, or an error) and
``read(data, offset) -> (value, offset)``. They are built from the compiled parts in
:mod:`ripple.exchange.wire.codec`; :func:`codec_for` builds one from a schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.errors import SchemaError
from ripple.engine.changes.shape import case_of
from ripple.exchange.wire.codec import (
    BOOL,
    FLOAT,
    INT,
    INT64,
    SEXP,
    STRING,
    Codec,
    Later,
    later,
    list_of,
    option,
    record,
    variant,
)
from ripple.model.schema import types

if TYPE_CHECKING:
    from collections.abc import Mapping

# The nesting depth of references within one value.
REF_DEPTH_MAX = 64

_SCALARS: dict[type[types.FieldType], Codec[Any]] = {
    types.String: STRING,
    types.Int: INT,
    types.Int64: INT64,
    types.Date: INT,
    types.DateTime: INT64,
    types.Decimal: INT64,
    types.Uuid: STRING,
    types.Bytes: STRING,
    types.WideDecimal: STRING,
    types.Dict: STRING,
    types.Float: FLOAT,
    types.Bool: BOOL,
    types.Opaque: SEXP,
}


def codec_for(
    schema: types.Schema,
    cls: type[Any] = dict,
    refs: Mapping[str, types.Schema] | None = None,
) -> Codec[Any]:
    """Return the codec of the records that ``schema`` describes.

    Records are read as instances of ``cls``, nested ones as dicts, variants as ``(case, *args)``;
    written are also instances of record classes, enum members and members of unions. An optional
    field is encoded as an option and left out of a dict when absent. ``refs`` gives the
    schemas behind references; a schema may refer to itself. Raises :class:`SchemaError` naming
    the field whose type has no encoding.
    """
    builder = _Builder(dict(refs or {}) | {schema.name: schema})
    codec = builder.of_fields(schema.fields, cls, schema.name)
    builder.tie()
    return codec


class _Builder:
    """Builds each referenced schema once, so that references may form cycles and long chains.

    Every codec takes a byte at least, since no schema's record is empty: so there are never more
    values than bytes, however references multiply.
    """

    def __init__(self, refs: Mapping[str, types.Schema]) -> None:
        self._refs = refs
        self._built: dict[str, Later[Any]] = {}
        self._untied: list[str] = []

    def tie(self) -> None:
        while self._untied:
            name = self._untied.pop()
            self._built[name].define(self.of_fields(self._refs[name].fields, dict, name))

    def of_fields(self, fields: tuple[types.Field, ...], cls: type[Any], path: str) -> Codec[Any]:
        return record(
            cls,
            {field.name: self._of(field.type, f"{path}.{field.name}") for field in fields},
            optional={field.name for field in fields if field.optional},
        )

    def _of(self, type_: types.FieldType, path: str) -> Codec[Any]:
        match type_:
            case types.Option(of):
                return option(self._of(of, path))
            case types.List(of):
                return list_of(self._of(of, path))
            case types.Record(fields):
                return self.of_fields(fields, dict, path)
            case types.Variant(cases):
                args = {
                    case.name: tuple(self._of(arg, f"{path}.{case.name}") for arg in case.args)
                    for case in cases
                }
                return variant(args, case_of)
            case types.Ref(name):
                return self._ref(name, path)
            case _:
                return _SCALARS[type(type_)]

    def _ref(self, name: str, path: str) -> Codec[Any]:
        if name not in self._refs:
            raise SchemaError(f"{path}: the schema {name!r} is not known here")
        if name not in self._built:
            self._built[name] = later(name, REF_DEPTH_MAX)
            self._untied.append(name)
        return self._built[name]
