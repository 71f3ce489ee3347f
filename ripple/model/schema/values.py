"""One value from users' code as a value of a field's type: where nothing is lost, and only there.

======================  ===================================================================
type                    takes
======================  ===================================================================
``Float``               floats of at most 64 bits, and integers that such a float is
``Int``, ``Int64``      integers within 64 bits; no float, not even 5.0
``Bool``                bools
``Date``                dates without a time, as the days since 1970
``DateTime``            times with a zone, as nanoseconds since 1970
``Uuid``                ``uuid.UUID``, as its text
``Bytes``               ``bytes`` and ``bytearray``, as their digits
``String``, ``Opaque``  text that has a form in UTF-8
``List``                lists, tuples and flat arrays of its type's values
``Record``              mappings by field name, and objects with the fields as attributes
``Variant``             a case's name, or the ``Enum`` member of that name; where cases have
                        arguments, the record that ``ripple.model.schema.arrow`` makes of them
======================  ===================================================================

Python's and NumPy's scalars alike. Nothing else is converted: a bool is no number, a time none, and
a number no text. Values come out as Arrow has them: a list, a dict with an entry for every field,
None for null.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.model.schema.arrow import variant_columns
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import (
    Bool,
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
    String,
    Variant,
)

# Raises Misfit for a value that is none of the type; None is one of no type but Option.
Converter: TypeAlias = Callable[[Any], Any]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

_NAMES: dict[type, str] = {
    Float: "a float",
    Int: "an int",
    Int64: "an int",
    Bool: "a bool",
    String: "a text",
    Opaque: "a text",
    List: "a list",
    Record: "a record",
    Variant: "a case",
}
_ABSENT = object()


class Misfit(Exception):  # noqa: N818  # not an error yet: the caller knows of what
    """A value is not of the type; ``str`` is the message's part after the field's name."""

    def __init__(self, wanted: str, value: Any, but: str = "") -> None:
        super().__init__(f"must be {wanted}, not {shown(value)}{but and f', {but}'}")
        self._path = ""

    def inside(self, part: str) -> Misfit:
        """Return itself, as found in this part of a list or a record."""
        self._path = part + self._path
        return self

    def __str__(self) -> str:
        return (f"at {self._path} " if self._path else "") + str(self.args[0])


def value_of(value: Any, of: FieldType, what: str) -> Any:
    """Return the value as one of type ``of``; raises SchemaError.

    what: how the message calls it, such as "the field 'size'".
    """
    try:
        return converter(of)(value)
    except Misfit as misfit:
        raise SchemaError(f"{what} {misfit}") from None


def name_of(of: FieldType) -> str:
    """Return how messages call a value of the type, with its article."""
    if isinstance(of, Logical):
        return rule_of(of).word
    return _NAMES.get(type(of), "a value")


def converter(of: FieldType) -> Converter:
    """Return the converter to column values of type ``of``."""
    match of:
        case Option():
            return _option(converter(of.of))
        case List():
            return _list(of)
        case Record():
            return _record(of.fields)
        case Variant():
            return _variant(of)
        case Logical():
            return _logical(of)
        case _:
            return _SCALARS.get(type(of), _anything)


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, (float, np.floating)) and not isinstance(value, np.longdouble):
        return float(value)
    if not _is_integer(value):
        raise Misfit("a float", value)
    number = operator.index(value)
    try:
        found = float(number)
    except OverflowError:
        found = np.inf
    if found != number:  # which Python compares exactly
        raise Misfit("a float", value, "which no float of 64 bits is")
    return found


def _int(value: Any) -> int:
    if not _is_integer(value):
        raise Misfit("an int", value)
    number = operator.index(value)
    if not INT64_MIN <= number <= INT64_MAX:
        raise Misfit("an int of 64 bits", value)
    return number


def _bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise Misfit("a bool", value)
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit("a text", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Misfit("a text", value, "which has no form in UTF-8") from None
    return str.__str__(value)  # of a StrEnum or a numpy.str_, its text


def _logical(of: Logical) -> Converter:
    rule = rule_of(of)

    def convert(value: Any) -> Any:
        number = rule.number(value)
        if number is None:
            raise Misfit(rule.word, value)
        return number

    return convert


def _anything(value: Any) -> Any:
    return value


_SCALARS: dict[type, Converter] = {
    Float: _float,
    Int: _int,
    Int64: _int,
    Bool: _bool,
    String: _text,
    Opaque: _text,
}


def _is_integer(value: Any) -> bool:
    # NumPy counts its time spans among the integers.
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def _option(inner: Converter) -> Converter:
    return lambda value: None if value is None else inner(value)


def _list(of: List) -> Converter:
    inner = converter(of.of)

    def convert(value: Any) -> list[Any]:
        items: Any = None
        if isinstance(value, (list, tuple)):
            items = value
        elif isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind not in "mM":
            items = value.tolist()
        if items is None:
            raise Misfit("a list", value)
        return [_part(inner, item, f"[{place}]") for place, item in enumerate(items)]

    return convert


def _record(fields: tuple[Field, ...]) -> Converter:
    names = [field.name for field in fields]
    parts = [
        (field.name, converter(Option(field.type) if field.optional else field.type))
        for field in fields
    ]

    def convert(value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            if not value.keys() <= set(names):
                raise Misfit(f"a record of {', '.join(names)}", value)
            found = [value.get(name) for name in names]
        else:
            found = [getattr(value, name, _ABSENT) for name in names]
            if _ABSENT in found:
                raise Misfit(f"a record of {', '.join(names)}", value)
        return {
            name: _part(inner, item, f".{name}")
            for (name, inner), item in zip(parts, found, strict=True)
        }

    return convert


def _part(inner: Converter, value: Any, part: str) -> Any:
    try:
        return inner(value)
    except Misfit as misfit:
        raise misfit.inside(part) from None


def _variant(of: Variant) -> Converter:
    columns = variant_columns(of)
    if columns is not None:
        return _record(columns.fields)
    names = [case.name for case in of.cases]

    def convert(value: Any) -> str:
        name = value.name if isinstance(value, Enum) else value
        if not isinstance(name, str) or name not in names:
            raise Misfit(f"one of {', '.join(names)}", value)
        return str.__str__(name)

    return convert
