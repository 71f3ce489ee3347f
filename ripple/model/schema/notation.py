"""Schemas as S-expressions, in the shape that Ripple/OCaml's derived converters print.

``((name trade)(version 1)(fields(((name symbol)(typ String)(optional false)(doc()))))(doc()))``
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ripple.core import sexp
from ripple.core.errors import PlanError, SchemaError
from ripple.model.schema.types import (
    DEPTH_MAX,
    PRECISION_MAX,
    Bool,
    Bytes,
    Case,
    Date,
    DateTime,
    Decimal,
    Dict,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Logical,
    Opaque,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Uuid,
    Variant,
    WideDecimal,
)

if TYPE_CHECKING:
    from ripple.core.sexp import Sexp

T = TypeVar("T")
Reader: TypeAlias = "Callable[[Sexp], T]"

SCALARS: dict[str, FieldType] = {
    "String": String(),
    "Int": Int(),
    "Int64": Int64(),
    "Float": Float(),
    "Bool": Bool(),
    "Date": Date(),
    "Date_time": DateTime(),
    "Uuid": Uuid(),
    "Bytes": Bytes(),
    "Sexp_opaque": Opaque(),
}
_AROUND: dict[str, Callable[[FieldType], FieldType]] = {
    "Option": Option,
    "List": List,
    "Dict": Dict,
}
_NINETEEN = "WideDecimal"  # of 19 digits, for results of 64 bits are (Decimal 19 ...)
_SCALAR_NAMES = {kind: name for name, kind in SCALARS.items()}


def dumps(schema: Schema) -> str:
    """Return the compact text of a schema."""
    return sexp.dumps(to_sexp(schema))


def loads(text: str) -> Schema:
    """Read the text of a schema; raises ``SexpError`` or SchemaError."""
    return from_sexp(sexp.loads(text))


def to_sexp(schema: Schema) -> Sexp:
    """Return the S-expression of a schema."""
    return [
        ["name", schema.name],
        ["version", str(schema.version)],
        ["fields", [field_to_sexp(field) for field in schema.fields]],
        ["doc", [] if schema.doc is None else [schema.doc]],
    ]


def field_to_sexp(field: Field) -> Sexp:
    """Return the S-expression of a field."""
    return [
        ["name", field.name],
        ["typ", type_to_sexp(field.type)],
        ["optional", "true" if field.optional else "false"],
        ["doc", [] if field.doc is None else [field.doc]],
    ]


def type_to_sexp(kind: FieldType) -> Sexp:
    """Return the S-expression of a field type."""
    match kind:
        case Option():
            return ["Option", type_to_sexp(kind.of)]
        case List():
            return ["List", type_to_sexp(kind.of)]
        case Record():
            return ["Record", [field_to_sexp(field) for field in kind.fields]]
        case Variant():
            return ["Variant", [_case_to_sexp(case) for case in kind.cases]]
        case Ref():
            return ["Ref", kind.name]
        case Dict():
            return ["Dict", type_to_sexp(kind.of)]
        case WideDecimal(precision=precision) if precision == PRECISION_MAX + 1:
            return [_NINETEEN, str(precision), str(kind.scale)]
        case Decimal() | WideDecimal():
            return ["Decimal", str(kind.precision), str(kind.scale)]
        case _:
            return _SCALAR_NAMES[kind]


def from_sexp(value: Sexp) -> Schema:
    """Return the schema that an S-expression says; the members of a record come in any order.

    Raises SchemaError naming the member that is missing or malformed.
    """
    name, version, fields, doc = _members(value, "schema", ("name", "version", "fields", "doc"))
    return Schema(
        _atom(name, "name"),
        _tuple(fields, "fields", _field),
        _integer(version, "version"),
        _option(doc, "doc"),
    )


def type_from_sexp(value: Sexp) -> FieldType:
    """Return the field type that an S-expression says; raises as :func:`from_sexp` does."""
    return _type(value, 1)


def _type(value: Sexp, depth: int) -> FieldType:
    if depth > DEPTH_MAX:
        raise SchemaError(f"a field type is nested deeper than {DEPTH_MAX} (DEPTH_MAX)")

    def inner(value: Sexp) -> FieldType:
        return _type(value, depth + 1)

    match value:
        case str() if value in SCALARS:
            return SCALARS[value]
        case ["Option" | "List" | "Dict" as name, of]:
            return _AROUND[name](inner(of))
        case ["Record", fields]:
            return Record(_tuple(fields, "Record", lambda field: _field(field, inner)))
        case ["Variant", cases]:
            return Variant(_tuple(cases, "Variant", lambda case: _case(case, inner)))
        case ["Ref", str() as name]:
            return Ref(name)
        case ["Decimal" | "WideDecimal" as name, str() as precision, str() as scale]:
            make = WideDecimal if name == _NINETEEN else Decimal.of
            return _decimal(make, _integer(precision, name), _integer(scale, name))
    raise SchemaError(f"not a field type: {_excerpt(value)}")


def marked(text: str) -> Logical | None:
    """Return the logical type that another notation marks with its text; None for another mark.

    Raises SchemaError for a decimal that there is not.
    """
    kind = SCALARS.get(text)
    if text.startswith(("(Decimal ", f"({_NINETEEN} ", "(Dict ")):
        try:
            kind = type_from_sexp(sexp.loads(text))
        except sexp.SexpError as error:
            raise SchemaError(f"not a field type: {error}") from None
    return kind if isinstance(kind, Logical) else None


def _decimal(make: Callable[[int, int], FieldType], precision: int, scale: int) -> FieldType:
    try:
        return make(precision, scale)
    except PlanError as error:
        raise SchemaError(str(error)) from None


def _field(value: Sexp, kind: Reader[FieldType] = type_from_sexp) -> Field:
    name, typ, optional, doc = _members(value, "field", ("name", "typ", "optional", "doc"))
    if optional not in ("true", "false"):
        raise SchemaError(f"field {name}: optional is {_excerpt(optional)}, not true or false")
    return Field(_atom(name, "name"), kind(typ), optional == "true", _option(doc, "doc"))


def _case(value: Sexp, kind: Reader[FieldType]) -> Case:
    name, args = _members(value, "case", ("case_name", "case_args"))
    return Case(_atom(name, "case_name"), _tuple(args, "case_args", kind))


def _case_to_sexp(case: Case) -> Sexp:
    return [["case_name", case.name], ["case_args", [type_to_sexp(arg) for arg in case.args]]]


def _members(value: Sexp, what: str, names: tuple[str, ...]) -> list[Sexp]:
    found: dict[str, Sexp] = {}
    for member in value if isinstance(value, list) else [value]:
        match member:
            case [str() as name, held] if name in names and name not in found:
                found[name] = held
            case _:
                raise SchemaError(
                    f"a {what} is made of {', '.join(names)}, each once; seen {_excerpt(member)}"
                )
    missing = [name for name in names if name not in found]
    if missing:
        raise SchemaError(f"a {what} lacks {', '.join(missing)}: {_excerpt(value)}")
    return [found[name] for name in names]


def _tuple(value: Sexp, what: str, read: Reader[T]) -> tuple[T, ...]:
    if isinstance(value, str):
        raise SchemaError(f"{what} is {_excerpt(value)}, not a list")
    return tuple(read(item) for item in value)


def _option(value: Sexp, what: str) -> str | None:
    match value:
        case []:
            return None
        case [str() as text]:
            return text
    raise SchemaError(f"{what} is {_excerpt(value)}, neither () nor one text in parentheses")


def _atom(value: Sexp, what: str) -> str:
    if not isinstance(value, str):
        raise SchemaError(f"{what} is {_excerpt(value)}, not an atom")
    return value


def _integer(value: Sexp, what: str) -> int:
    text = _atom(value, what)
    # Longer numbers are no versions, and int() of very long ones is slow.
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise SchemaError(f"{what} is {_excerpt(value)}, not a whole number")
    return int(text)


def _excerpt(value: Sexp) -> str:
    text = sexp.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
