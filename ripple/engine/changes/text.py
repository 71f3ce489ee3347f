"""Deltas as S-expressions, in the shapes that Ripple/OCaml prints, the source of this design.

A patch is ``(Patch ((Field_set (field_name price) (value 150.25))))``, a whole value ``(Set
((symbol GOOG)(vwap 2801.5)))``, a removal ``Remove``; an addition of ours is ``(Final ((symbol
GOOG)(vwap 2801.5)))``. Values print as OCaml's sexplib prints them:

- a float as the shorter of 15 and 17 significant digits that reads back (``150.25``; ``150`` for
  150.0; ``1E+22``; ``NAN``, whose payload the text does not keep);
- ``Option`` as ``()`` or ``(x)``; an optional field as ``(name x)``, left out when absent;
- a record as its fields in the order of the schema, a map as ``((key value)...)``;
- a variant as its case's name, or ``(Name arg...)``.

Reading needs the schema, because the text of ``150`` does not say of which type it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ripple.core.errors import DeltaError
from ripple.engine.changes import shape
from ripple.engine.changes.equality import field_names
from ripple.engine.changes.rows import (
    Delta,
    FieldRemove,
    FieldSet,
    Final,
    MapRemove,
    MapSet,
    Patch,
    PatchOp,
    Remove,
    Set,
)
from ripple.model.schema import types

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.core.sexp import Sexp


def to_sexp(delta: Delta[Any], schema: types.Schema | None = None) -> Sexp:
    """Return the S-expression of a delta; raises :class:`DeltaError` if it does not fit."""
    match delta:
        case Set(value) | Final(value):
            name, fields = type(delta).__name__, shape.fields_of(value, schema)
            if fields is None:
                return [name, value_to_sexp(value)]
            return [name, _record_to_sexp(value, tuple(fields.values()))]
        case Patch(ops):
            fields = {field.name: field for field in schema.fields} if schema else None
            return ["Patch", [_op_to_sexp(op, fields) for op in ops]]
        case Remove():
            return "Remove"


def of_sexp(sexp: Sexp, schema: types.Schema) -> Delta[Any]:
    """Return the delta of an S-expression; records are dicts, variants ``(case, *args)``.

    Raises :class:`DeltaError` if it is not one, or does not fit the schema.
    """
    fields = {field.name: field for field in schema.fields}
    match sexp:
        case "Remove":
            return Remove()
        case ["Set", value]:
            return Set(_record_of_sexp(value, schema.fields))
        case ["Final", value]:
            return Final(_record_of_sexp(value, schema.fields))
        case ["Patch", [*ops]]:
            return Patch(tuple(_op_of_sexp(op, fields) for op in ops))
        case _:
            raise DeltaError(f"neither Set, Patch, Remove nor Final: {sexp!r}")


def float_text(value: float) -> str:
    """Return the text that sexplib prints for a float."""
    short = f"{value:.15G}"
    return short if float(short) == value or value != value else f"{value:.17G}"  # noqa: PLR0124


def value_to_sexp(value: Any, kind: types.FieldType | None = None) -> Sexp:
    """Return the S-expression of a value; without its type, None is ``()`` and the rest bare."""
    match kind:
        case types.Option(of):
            return [] if value is None else [value_to_sexp(value, of)]
        case types.List(of):
            return [value_to_sexp(item, of) for item in value]
        case types.Record(members):
            return _record_to_sexp(value, members)
        case types.Variant(cases):
            return _variant_to_sexp(value, cases)
        case _:
            return _plain_to_sexp(value)


def value_of_sexp(sexp: Sexp, kind: types.FieldType) -> Any:
    """Return the value of type ``kind``; raises :class:`DeltaError` if the text has another."""
    match kind, sexp:
        case types.Option(), []:
            return None
        case types.Option(of), [inner]:
            return value_of_sexp(inner, of)
        case types.List(of), [*items]:
            return [value_of_sexp(item, of) for item in items]
        case types.Record(members), _:
            return _record_of_sexp(sexp, members)
        case types.Variant(cases), _:
            return _variant_of_sexp(sexp, cases)
        case types.Opaque(), _:
            return sexp
        case _, str() if type(kind) in _READERS:
            return _READERS[type(kind)](sexp)
        case _:
            raise DeltaError(f"expected {kind!r}, found {sexp!r}")


def _op_to_sexp(op: PatchOp, fields: shape.Fields | None) -> Sexp:
    match op:
        case FieldSet(name, value):
            if fields is not None and name not in fields:
                raise shape.unknown_field(name, fields)
            kind = fields[name].type if fields is not None else None
            return ["Field_set", ["field_name", name], ["value", value_to_sexp(value, kind)]]
        case FieldRemove(name):
            return ["Field_remove", ["field_name", name]]
        case MapSet(key, value):
            return ["Map_set", ["key", value_to_sexp(key)], ["value", value_to_sexp(value)]]
        case MapRemove(key):
            return ["Map_remove", ["key", value_to_sexp(key)]]


def _op_of_sexp(sexp: Sexp, fields: shape.Fields) -> PatchOp:
    match sexp:
        case ["Field_set", ["field_name", str(name)], ["value", value]]:
            if name not in fields:
                raise shape.unknown_field(name, fields)
            return FieldSet(name, value_of_sexp(value, fields[name].type))
        case ["Field_remove", ["field_name", str(name)]]:
            return FieldRemove(name)
        case ["Map_set", ["key", key], ["value", value]]:
            return MapSet(key, value)
        case ["Map_remove", ["key", key]]:
            return MapRemove(key)
        case _:
            raise DeltaError(f"not an operation of a patch: {sexp!r}")


def _record_to_sexp(value: Any, members: tuple[types.Field, ...]) -> Sexp:
    out: list[Sexp] = []
    for member in members:
        held = shape.read(value, member.name)
        if held is not None or not member.optional:
            out.append([member.name, value_to_sexp(held, member.type)])
    return out


def _record_of_sexp(sexp: Sexp, members: tuple[types.Field, ...]) -> dict[str, Any]:
    fields = {member.name: member for member in members}
    record: dict[str, Any] = {}
    for entry in sexp if isinstance(sexp, list) else [sexp]:
        match entry:
            case [str(name), value] if name in fields and name not in record:
                record[name] = value_of_sexp(value, fields[name].type)
            case _:
                raise DeltaError(f"{entry!r} is not one of the fields {', '.join(fields)}, once")
    shape.check_record(record, fields)
    return record


def _variant_to_sexp(value: Any, cases: tuple[types.Case, ...]) -> Sexp:
    name, args = shape.case_of(value)
    for case in cases:
        if case.name == name and len(case.args) == len(args):
            inner = [value_to_sexp(arg, of) for arg, of in zip(args, case.args, strict=True)]
            return [name, *inner] if inner else name
    raise DeltaError(f"{value!r} is none of the cases {', '.join(case.name for case in cases)}")


def _variant_of_sexp(sexp: Sexp, cases: tuple[types.Case, ...]) -> tuple[Any, ...]:
    name, *args = [sexp] if isinstance(sexp, str) else sexp or [""]
    for case in cases:
        if case.name == name and len(case.args) == len(args):
            inner = zip(args, case.args, strict=True)
            return (name, *(value_of_sexp(arg, of) for arg, of in inner))
    raise DeltaError(f"{sexp!r} is none of the cases {', '.join(case.name for case in cases)}")


def _plain_to_sexp(value: Any) -> Sexp:
    names = field_names(value)
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case str() | int():
            return str(value)
        case None:
            return []
        case Mapping():
            return [[value_to_sexp(key), value_to_sexp(held)] for key, held in value.items()]
        case list() | tuple():
            return [value_to_sexp(item) for item in value]
        case _ if names is not None:
            return [[name, value_to_sexp(getattr(value, name))] for name in names]
        case _:
            raise DeltaError(f"a {type(value).__name__} has no S-expression: {value!r}")


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise DeltaError(f"expected an integer, found {text!r}") from None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DeltaError(f"expected a float, found {text!r}") from None


def _bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise DeltaError(f"expected true or false, found {text!r}")
    return text == "true"


_READERS: dict[type[types.FieldType], Callable[[str], Any]] = {
    types.String: str,
    types.Int: _int,
    types.Int64: _int,
    types.Float: _float,
    types.Bool: _bool,
}
