"""Rules of a pipeline's names, fields and keys; each error names an alternative.

Every function raises PlanError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from ripple.core.arguments import need_text, shown
from ripple.core.calls import written
from ripple.core.errors import PlanError, SchemaError
from ripple.core.row_ops import OP
from ripple.model.canonical import digest_of
from ripple.model.expression.expr import Operand, as_column
from ripple.model.expression.typed import unknown_field
from ripple.model.pipeline.nodes import (
    INTERNAL_PREFIX,
    WINDOW_FIELD_NAMES,
    Fields,
    Fold,
    type_of,
    types_of,
)
from ripple.model.records import nested_checks_of, schema_of, time_field_of
from ripple.model.schema.checks import Checks
from ripple.model.schema.enumerations import instead_of_enumeration
from ripple.model.schema.nested import OptionalRecord, flattened, optional_records
from ripple.model.schema.types import (
    DECIMALS,
    KEY_TYPES,
    KEY_WORDS,
    PRECISION_MAX,
    DateTime,
    Decimal,
    Field,
    Float,
    Int,
    Int64,
    Option,
    Schema,
    bare_type,
)
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import Session

TIME_FIELD_DEFAULT = "timestamp_ns"
PARTITIONS_MAX = 1 << 16
NAME_LENGTH_MAX = 100
IDLE_NS_MIN = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_DIGEST = re.compile(r"[0-9a-f]{32}")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def time_field_in(time: Operand, cls: type | None, schema: Schema) -> str | None:
    """Return the field with the event time, named or found; None if there is none."""
    types = types_of(schema.fields)
    if time is None:
        found = time_field_of(cls) if cls is not None else None
        by_name = types.get(TIME_FIELD_DEFAULT)
        return found or (TIME_FIELD_DEFAULT if isinstance(by_name, (Int, Int64)) else None)
    name = field_name(time, types, "time")
    if not isinstance(types[name], (Int, Int64, DateTime)):
        raise PlanError(
            f"the event time {name!r} is {type_text(types[name])}: it must be an int, nanoseconds "
            "since the epoch, or a datetime, and never null"
        )
    return name


def checks_in(cls: type | None, schema: Schema) -> dict[str, Checks]:
    """Return the checks that a record class declares, fitted to the types of its fields."""
    declared = {} if cls is None else nested_checks_of(cls)
    members = {member.name: member for member in schema.fields}
    return {field: given.fitted(members[field]) for field, given in declared.items()}


def idle_in(idle: str | int | None, time_field: str | None) -> int | None:
    """Return how long an input may be silent, in nanoseconds; None without a limit."""
    if idle is None:
        return None
    idle_ns = duration_ns(idle, "idle", of_wall_clock=True)
    if idle_ns < IDLE_NS_MIN:
        raise PlanError(f"idle must be at least 1ms, as in idle='30s', not {shown(idle)}")
    if time_field is None:
        raise PlanError(
            "idle needs an event time, since silence holds nothing else back: name it with time="
        )
    return idle_ns


def ahead_in(reject_future: str | int | None, time_field: str | None) -> int | None:
    """Return how far ahead of the watermark an event may be, in nanoseconds; None for any."""
    if reject_future is None:
        return None
    ahead_ns = duration_ns(reject_future, "reject_future")
    if time_field is None:
        raise PlanError("reject_future needs an event time: name it with time=")
    return ahead_ns


def key_field(key: Operand, fields: Fields, last: Fold | None) -> Field:
    """Return the field that rows are grouped by; ``last`` is the fold that they come from."""
    types = types_of(fields)
    name = field_name(key, types, "the key")
    found = types[name]
    check_result_field(name)
    if not isinstance(bare_type(found), (*KEY_TYPES, Float)):
        raise PlanError(
            instead_of_enumeration(name, found)
            or f"the key {name!r} is {type_text(found)}: choose {KEY_WORDS}"
        )
    if isinstance(found, Option):
        raise PlanError(
            f"the key {name!r} may be null, and null is no group: "
            f"derive one with rp.col({name!r}).fill_null(...)"
        )
    if isinstance(found, Float):
        raise PlanError(
            f"the key {name!r} is a float, of which equal-looking ones differ: derive an integer, "
            f"for instance (rp.col({name!r}) * 100).round().cast(int)"
        )
    sessions = last and last.window and isinstance(last.window.assigner, Session)
    if last and sessions and name in WINDOW_FIELD_NAMES:
        raise PlanError(
            f"the key {name!r} belongs to the session windows of {last.name!r}, which move when "
            "sessions merge: group by another field, or use Tumbling windows"
        )
    return Field(name, found)


def dividing_fields(key: Operand | Sequence[Operand], fields: Fields) -> Fields:
    """Return the key fields of events: none for None."""
    chosen = key if isinstance(key, (tuple, list)) else () if key is None else (key,)
    found = tuple(key_field(item, fields, None) for item in chosen)
    check_distinct([field.name for field in found], "key")
    return found


def field_name(key: Operand, types: Mapping[str, Any], what: str) -> str:
    """Return the name of a field that is there."""
    expr = as_column(key, what)
    if expr.operation != "col":
        raise PlanError(f"{expr!r} is computed: give it a name with .derive(...) and name that")
    if expr.value not in types:
        raise unknown_field(expr.value, types)
    name: str = expr.value
    return name


def field_of(given: Operand, fields: Fields, what: str) -> Field:
    """Return the field that an argument names. what: of messages, the argument."""
    name = field_name(given, types_of(fields), what)
    return next(field for field in fields if field.name == name)


def kept_first(schema: Schema, kept: tuple[str, ...], fields: Fields) -> Fields:
    """Return the fields of a mapped result row: its identity first, as it was."""
    by_name = {field.name: field for field in schema.fields}
    types = types_of(fields)
    for name in kept:
        if name not in by_name or type_of(by_name[name]) not in _same_width(types[name]):
            raise PlanError(
                f"result rows are identified by {', '.join(kept)}: {schema.name!r} needs the "
                f"field {name!r} ({type_text(types[name])})"
            )
    rest = tuple(field for field in schema.fields if field.name not in kept)
    return (*(field for field in fields if field.name in kept), *rest)


def _same_width(field_type: Any) -> tuple[Any, ...]:
    return (Int(), Int64()) if isinstance(field_type, (Int, Int64)) else (field_type,)


def record_of(given: type | Schema, what: str) -> tuple[type | None, Schema]:
    """Return the record class, if that was given, and the schema."""
    cls = None if isinstance(given, Schema) else given
    try:
        schema = given if isinstance(given, Schema) else schema_of(given)
    except SchemaError as error:
        raise PlanError(f"{what}: {error}") from error
    if not schema.fields:
        raise PlanError(f"{what}: schema {schema.name} has no fields, of which no row can be made")
    return cls, schema


def flat_record_of(
    given: type | Schema, what: str
) -> tuple[type | None, Schema, tuple[OptionalRecord, ...]]:
    """Return the record class, if that was given, the schema by paths, and optional records."""
    cls, schema = record_of(given, what)
    try:
        flat = flattened(schema)
    except SchemaError as error:
        raise PlanError(f"{what}: {error}") from error
    if flat is schema:
        return cls, schema, ()
    for field in flat.fields:
        check_result_field(field.name)
    return cls, flat, optional_records(schema)


def check_name(name: str) -> None:
    """Raise PlanError unless ``name`` may name a step."""
    if not isinstance(name, str) or len(name) > NAME_LENGTH_MAX or not _NAME.fullmatch(name):
        raise PlanError(
            "a name is letters, digits, '_', '-' and '.', beginning with a letter, a digit or "
            f"'_', at most {NAME_LENGTH_MAX} long, not {shown(name)}"
        )


def named(step: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a step of pipelines: a call that is not one of it says how to write it."""

    @wraps(step)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        name = args[1] if len(args) > 1 else kwargs.get("name")
        verb = step.__name__
        if not isinstance(name, str):
            way = f'write .{verb}("NAME", ...)'
            raise PlanError(f"{verb}: the name of the step comes first, not {shown(name)}: {way}")
        try:
            return step(*args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # within the step
        form = signature(step)
        try:
            form.bind(*args, **kwargs)
        except TypeError as error:
            way = written(f".{verb}", form, 2, ('"NAME"',))
            raise PlanError(f"{verb} {shown(name)}: {error}: write {way}") from None
        raise AssertionError("a call that fits was refused")

    return checked


def check_text(value: str | None, what: str) -> None:
    """Raise PlanError unless ``value`` is None or a text."""
    if value is not None:
        need_text(what, value)


def digest_in(given: str) -> str:
    """Return the digest of a node, written alone or as the end of its key."""
    digest = digest_of(given) if isinstance(given, str) else ""
    if not _DIGEST.fullmatch(digest):
        raise PlanError(
            "from_digest must be the part after the # of a node key, 32 hexadecimal digits, "
            f"not {shown(given)}: ripple plan FILE --checkpoint-dir DIR prints it"
        )
    return digest


def check_new_field(name: str, taken: Iterable[str], *, is_path: bool = False) -> None:
    """Raise PlanError unless a field of that name may be added.

    is_path: whether it may be a path, of a value of a record in a record.
    """
    if not all(part.isidentifier() for part in (name.split(".") if is_path else (name,))):
        raise PlanError(f"the field {name!r} is no Python name: use letters, digits and '_'")
    if name in taken:
        raise PlanError(
            f"there is a field {name!r} already ({', '.join(taken)}): choose another name"
        )


def check_shown_field(name: str) -> None:
    """Raise PlanError unless a field of an event that a sink shows may be called so."""
    if name == OP:
        raise PlanError(
            f"a sink shows no field {OP!r} of events: under that name changes say what became of "
            "a row; give it another one before, with .map(..., into=...)"
        )
    check_result_field(name)


def check_suffix(suffix: object) -> str:
    """Return the suffix for fields of a join's right side that the left has, too."""
    if not isinstance(suffix, str) or not suffix or not f"a{suffix}".isidentifier():
        raise PlanError(
            f"suffix is {shown(suffix)}: it must be letters, digits and '_', such as '_right'"
        )
    return suffix


def check_result_field(name: str) -> None:
    """Raise PlanError unless a key or another field of a result row may be called so."""
    if name == OP:
        raise PlanError(
            f"a result row cannot have a field {OP!r}: under that name changes say what "
            f"became of a row; give it another one, as with .derive(..., kind=rp.col({OP!r}))"
        )
    if f"{name}.".startswith(INTERNAL_PREFIX):
        raise PlanError(
            f"a result row cannot have a field {name!r}: {INTERNAL_PREFIX}... are columns of "
            "Ripple's own; give it another name"
        )


def check_distinct(names: Sequence[str], what: str) -> None:
    """Raise PlanError if a name stands there twice."""
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"the {what} names {name!r} twice")


def type_text(field_type: Any) -> str:
    """Return how messages name a type."""
    if isinstance(field_type, Option):
        return f"optional {type_text(field_type.of)}"
    if isinstance(field_type, DECIMALS):
        is_result = isinstance(field_type, Decimal) and field_type.precision > PRECISION_MAX
        width = " in 64 bits" if is_result else ""  # no rp.Decimal(19, 4), which has more
        return f"decimal({field_type.precision}, {field_type.scale}){width}"
    return type(field_type).__name__.lower()


@contextmanager
def blaming(verb: str, name: object) -> Iterator[None]:
    """Put the step before the message of a PlanError."""
    try:
        yield
    except PlanError as error:
        raise PlanError(f"{verb} {shown(name)}: {error}") from error.__cause__  # shown once


@contextmanager
def blaming_field(field: str) -> Iterator[None]:
    """Put the field before the message of a PlanError."""
    try:
        yield
    except PlanError as error:
        raise PlanError(f"{field}: {error}") from error


def check_spread(partitions: object, via: object, *, key: Sequence[str]) -> None:
    """Raise PlanError unless ``partitions`` and ``via`` can be said of a partition step.

    key: its fields' names.
    """
    if partitions is not None and (
        type(partitions) is not int or not 1 <= partitions <= PARTITIONS_MAX
    ):
        raise PlanError(
            f"partitions is {shown(partitions)}: it must be a whole number from 1 on, up to "
            f"{PARTITIONS_MAX}"
        )
    if not key and partitions not in (None, 1):
        raise PlanError(f"one total is in one partition, not in {partitions}: name a key, or none")
    if via is not None and not (isinstance(via, str) and via == "log"):
        raise PlanError(f"via is {shown(via)}: 'log' is the only way that can be asked for")
