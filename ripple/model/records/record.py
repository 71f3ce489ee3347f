"""Record classes: the Python types that a pipeline's events are declared with."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform, overload

from ripple.core.arguments import need_text, need_whole, shown
from ripple.core.errors import PlanError, SchemaError
from ripple.core.frozen import frozen
from ripple.model.schema.checks import checks_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.schema.checks import Bound

C = TypeVar("C", bound=type)

CHECKS = "ripple.checks"  # in the metadata of a dataclass's field


class EventTime:
    """Marks an ``int`` that holds nanoseconds since the epoch, UTC."""


def _refuse_call(*_args: object, **_options: object) -> None:
    raise SchemaError(
        "rp.Timestamp is a type: declare at: rp.Timestamp, and how sources write it behind it, "
        'as in at: rp.Timestamp = rp.field(format="iso")'
    )


Timestamp = Annotated[int, EventTime()]
if not TYPE_CHECKING:  # called, the plain one is int(...), whose errors say nothing of fields
    # The class is no public one: with a Python in which it has changed, the plain one has to do.
    with contextlib.suppress(TypeError, AttributeError):
        _kind = types.new_class(
            "Timestamp",
            (type(Timestamp),),
            {"_root": True},
            lambda body: body.update(__call__=_refuse_call),
        )
        Timestamp = _kind(int, Timestamp.__metadata__)
"""Nanoseconds since the epoch, UTC: an ``int`` in Python, ``Int64`` in schemas and columns."""


@frozen
class RecordInfo:
    """The arguments of ``@record`` for a class."""

    name: str
    version: int
    doc: str | None


def field(
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
    kw_only: Any = dataclasses.MISSING,
    gt: Bound | None = None,
    ge: Bound | None = None,
    lt: Bound | None = None,
    le: Bound | None = None,
    finite: bool = False,
    min_length: int | None = None,
    max_length: int | None = None,
    format: str | None = None,  # noqa: A002 - the word for it
    zone: str | None = None,
) -> Any:
    """Declare a field of a record with checks, ``size: int = rp.field(gt=0)``, or a form of times.

    A source refuses a record in which one of them fails, as it does a malformed record; making an
    instance checks nothing. gt, ge, lt, le: bounds of a number, which NaN is never within. finite:
    a float that is neither infinite nor NaN. min_length, max_length: of a text, in characters.
    format: how sources write a Timestamp: ``"iso"``, a unit of numbers since 1970, ``"s"``,
    ``"ms"``, ``"us"`` or ``"ns"``, or a pattern such as ``"%d.%m.%Y %H:%M:%S"``; and bytes, in
    ``"base64"`` or ``"hex"``; of lists their items; of a text ``"json"``, for arrays and objects.
    zone: of texts that name none, such as ``"America/New_York"``, ``"UTC"`` or ``"+01:00"``.
    default, default_factory, kw_only: as for ``dataclasses.field``. Raises
    SchemaError for an invalid check.
    """
    given: dict[str, Any] = {
        "gt": gt, "ge": ge, "lt": lt, "le": le, "finite": finite, "min_length": min_length,
        "max_length": max_length,
    }  # fmt: skip
    forms = {"format": format, "zone": zone}
    checks = checks_with(given | {name: one for name, one in forms.items() if one is not None})
    return dataclasses.field(
        default=default,
        default_factory=default_factory,
        kw_only=kw_only,
        metadata={CHECKS: checks},
    )


@overload
def record(cls: C, /) -> C: ...


@overload
def record(
    *, version: int = 1, name: str | None = None, doc: str | None = None
) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field, dataclasses.field))
def record(
    cls: type | None = None,
    /,
    *,
    version: int = 1,
    name: str | None = None,
    doc: str | None = None,
) -> Any:
    """Make a class a frozen dataclass with a schema, and its attributes column expressions.

    ``Trade.price`` is then the same expression as ``ripple.col("price")``. The schema's name is the
    class's in lower case with underscores (``VwapResult`` is ``vwap_result``) unless ``name`` is
    given; its documentation is ``doc`` or else the class's docstring. Checks beyond types are
    declared with :func:`field`. Raises SchemaError if the version is not a whole number from 1 on.
    """
    version = need_whole("record: version", version, 1, SchemaError)
    for what, text in (("name", name), ("doc", doc)):
        if text is not None:
            need_text(f"record: {what}", text, SchemaError)

    def decorate(cls: Any) -> Any:
        _need_class(cls)
        text = doc or (cls.__doc__ and " ".join(cls.__doc__.split())) or None
        _hide_inherited_columns(cls)
        try:
            # A dataclass would make up a docstring of its annotations.
            cls.__doc__ = cls.__doc__ or cls.__name__
            dataclass(frozen=True)(cls)
        except (TypeError, ValueError) as error:  # errors of dataclasses about fields and defaults
            raise SchemaError(f"{cls.__name__} cannot be a record: {error}") from error
        cls.__ripple_record__ = RecordInfo(name or snake_case(cls.__name__), version, text)
        for member in dataclasses.fields(cls):
            setattr(cls, member.name, Column(member.name))
        return cls

    return decorate if cls is None else decorate(cls)


def _need_class(given: object) -> None:
    if not isinstance(given, type):
        raise SchemaError(f"record must decorate a class, not {shown(given)}")


def record_info(cls: type) -> RecordInfo | None:
    """Return the arguments of ``@record`` for ``cls`` itself, or None."""
    info = cls.__dict__.get("__ripple_record__")
    return info if isinstance(info, RecordInfo) else None


def snake_case(name: str) -> str:
    """Return ``VwapResult`` as ``vwap_result``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Column:
    """A field seen from its class: the column expression of that name.

    It defines no ``__set__``, so that an instance's own value is found first and reading a field
    costs the same as in any dataclass.
    """

    __slots__ = ("name",)  # it is part of what users' functions are, where they name the class

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is not None:
            raise AttributeError(f"this {owner.__name__} has no value for {self.name!r}")
        return _column(self.name, _inner_class(owner, self.name))


class RecordColumn:
    """A record in a record, seen from its class: its attributes are columns named by their path.

    Attributes of its own have names that a field would hardly have. What is no field is asked of
    the column expression of that name.
    """

    __slots__ = ("_ripple_class", "_ripple_column")

    def __init__(self, path: str, cls: type) -> None:
        self._ripple_column, self._ripple_class = path, cls

    def __getattr__(self, name: str) -> Any:
        from ripple.model.expression import col  # noqa: PLC0415 - as in _column
        from ripple.model.records.members import field_names  # noqa: PLC0415 - it knows this module

        path, cls = self._ripple_column, self._ripple_class
        known = field_names(cls)
        if name in known:
            return _column(f"{path}.{name}", _inner_class(cls, name))
        if name.startswith("_") or hasattr(col(path), name):
            return getattr(col(path), name)
        listed = ", ".join(f"{path}.{one}" for one in known)
        raise _NoFieldError(f"there is no field {f'{path}.{name}'!r}. The fields are: {listed}")

    def __repr__(self) -> str:
        return f"col({self._ripple_column!r})"


class _NoFieldError(PlanError, AttributeError):
    """A field that a record in a record does not have."""


def _column(path: str, inner: type | None) -> Any:
    # Expressions know schemas, so schemas meet expressions only when one is asked for.
    from ripple.model.expression import col  # noqa: PLC0415  # as just said

    return col(path) if inner is None else RecordColumn(path, inner)


def _inner_class(cls: type, name: str) -> type | None:
    from ripple.model.records.members import inner_class_of  # noqa: PLC0415 - it knows this module

    return inner_class_of(cls, name)


def _hide_inherited_columns(cls: type) -> None:
    # A field declared again without a default would otherwise take the inherited column for one.
    for name in inspect.get_annotations(cls):
        inherited = any(isinstance(base.__dict__.get(name), Column) for base in cls.__mro__[1:])
        if inherited and name not in cls.__dict__:
            setattr(cls, name, dataclasses.field())
