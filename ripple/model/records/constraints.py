"""The checks of a record class, made with any library.

Taken over are those of ``ripple.field``, and from ``annotated_types``, ``msgspec.Meta`` and
pydantic: ``gt``, ``ge``, ``lt``, ``le``, ``min_length``, ``max_length``, ``IsFinite`` and
``allow_inf_nan=False``. Anything else that would reject or change a value is an error, because no
source would heed it: pydantic's validators too, and settings of the class (``declared``). A
``__post_init__`` is not run, and no error.
"""

from __future__ import annotations

import math
import types
import typing
from typing import TYPE_CHECKING, Any

from ripple.core.errors import SchemaError
from ripple.model.records.declared import unheeded
from ripple.model.records.members import (
    Annotation,
    Member,
    members_of,
    record_class_in,
    unwrap,
)
from ripple.model.schema.checks import Checks, checks_with

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAKEN_OVER = ("gt", "ge", "lt", "le", "min_length", "max_length")
_REFUSED = (
    *("multiple_of", "pattern", "max_digits", "decimal_places", "ascii_only"),
    *("strip_whitespace", "to_lower", "to_upper", "coerce_numbers_to_str"),
)
# Names of pydantic's annotations that say nothing of which values there are.
_PASSED_OVER = {"SkipJsonSchema", "WithJsonSchema", "SerializeAsAny", "SkipValidation", "Tag"}


def checks_of(cls: type) -> dict[str, Checks]:
    """Return the checks of a record class by field; fields without any are left out.

    Raises SchemaError naming the field for constraints that sources cannot check.
    """
    for setting in unheeded(cls):
        raise _refused(cls, setting)
    validators = getattr(cls, "__pydantic_decorators__", None)
    for kind in ("validators", "field_validators", "root_validators", "model_validators"):
        for name in getattr(validators, kind, ()):
            raise _refused(cls, f"{name}()")
    found: dict[str, Checks] = {}
    for member in members_of(cls):
        _check_default(cls, member)
        given: dict[str, Any] = {}
        for name, value in _declared(member.annotation):
            if name in _REFUSED or name in ("func", "the type"):
                raise _refused(cls, f"{member.name}: {name}={value!r}")
            if given.setdefault(name, value) != value:
                raise SchemaError(
                    f"{cls.__name__}.{member.name}: {name}={given[name]!r} and {name}={value!r} "
                    "are both declared: leave one out"
                )
        try:
            if given:
                found[member.name] = checks_with(given)
        except SchemaError as error:
            raise SchemaError(f"{cls.__name__}.{member.name}: {error}") from None
    return found


def nested_checks_of(cls: type) -> dict[str, Checks]:
    """Return the checks of a record class and of the records in it, by the paths of the fields.

    Raises SchemaError as ``checks_of`` does.
    """
    return dict(_checks_by_path(cls, ()))


def _checks_by_path(cls: type, inside: tuple[type, ...], at: str = "") -> Iterator[Any]:
    for name, checks in checks_of(cls).items():
        yield f"{at}{name}", checks
    for member in members_of(cls):
        inner = record_class_in(member.annotation)
        if inner is not None and inner not in (*inside, cls):  # else it is no part of columns
            yield from _checks_by_path(inner, (*inside, cls), f"{at}{member.name}.")


def _refused(cls: type, what: str) -> SchemaError:
    return SchemaError(
        f"{cls.__name__} declares {what}, which sources cannot check: leave it out, or read with "
        f"rp.schema_of({cls.__name__}), which has no checks"
    )


def _check_default(cls: type, member: Member) -> None:
    if member.default_other and _may_be_none(member.annotation):
        raise SchemaError(
            f"{cls.__name__}.{member.name} may be None and has another default, which sources do "
            "not fill in: where a record has none, it is None. Make None its default, leave None "
            f"out of its type, or read with rp.schema_of({cls.__name__})"
        )


def _may_be_none(annotation: Annotation) -> bool:
    base, _ = unwrap(annotation)
    origin: Annotation = typing.get_origin(base)
    members = typing.get_args(base)
    return types.NoneType in members or (origin is typing.Literal and None in members)


def _declared(annotation: Annotation) -> Iterator[tuple[str, Any]]:
    """Yield the checks of a field by name, also those within an optional type."""
    base, extras = unwrap(annotation)
    for extra in extras:
        yield from _declared_by(extra)
    origin: Annotation = typing.get_origin(base)
    if origin in (typing.Union, types.UnionType):
        for member in typing.get_args(base):
            yield from _declared(member)


def _declared_by(extra: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(extra, Checks):
        yield from extra.given().items()
        return
    if isinstance(extra, type):
        return
    for name in (*_TAKEN_OVER, *_REFUSED):
        value = getattr(extra, name, None)
        if value is not None and value is not False:
            yield name, value
    if (
        getattr(extra, "allow_inf_nan", None) is False
        or getattr(extra, "func", None) is math.isfinite
    ):
        yield "finite", True
    elif hasattr(extra, "func") and not hasattr(extra, "when_used"):  # that is how one is written
        yield "func", extra.func
    elif (
        hasattr(extra, "__get_pydantic_core_schema__")
        and not hasattr(extra, "when_used")
        and type(extra).__name__ not in _PASSED_OVER
    ):
        yield "the type", extra  # a text in base64, for instance
    for inner in getattr(extra, "metadata", ()):  # pydantic's Field(...) within an Annotated
        yield from _declared_by(inner)
