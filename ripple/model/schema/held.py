"""Types whose values a column holds as whole numbers: the rule of each, and of their columns.

Inside, a value is a number of 64 bits: in columns, keys, states, checkpoints, topics and digests.
``stored_type`` is the type of that number. Outside, a value is an object of a Python class, a value
of an Arrow type, or a text. A place with a rule for held types asks here. One without refuses them
by name, since none of them is a number.

============  ============  ======================  ==============================
type          outside       Arrow                   text
============  ============  ======================  ==============================
``Date``      ``date``      ``date32``              ISO 8601, ``2026-01-31``
``DateTime``  ``datetime``  ``timestamp[ns, UTC]``  ISO 8601, in UTC, all digits
``Decimal``   ``Decimal``   ``decimal128(p, s)``    digits, s of them behind a point
============  ============  ======================  ==============================
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.arguments import shown as shown_value
from ripple.core.errors import SchemaError
from ripple.core.frozen import frozen
from ripple.core.sexp import dumps, loads
from ripple.model.schema.date_form import ISO, DateForm
from ripple.model.schema.notation import type_from_sexp, type_to_sexp
from ripple.model.schema.text_columns import where_found
from ripple.model.schema.time_texts import texts as times_written
from ripple.model.schema.types import (
    PRECISION_MAX,
    Case,
    Date,
    DateTime,
    Decimal,
    Field,
    FieldType,
    Held,
    Int64,
    List,
    Option,
    Record,
    Variant,
    bare_type,
    inner_types,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.schema.decimal_form import DecimalForm
    from ripple.model.schema.document import Json
    from ripple.model.schema.time_form import TimeForm

    Ints = npt.NDArray[np.int64]

NOTE = "ripple.type"  # in the metadata of a column

DATE_LEAST = dt.date.min.toordinal() - dt.date(1970, 1, 1).toordinal()
DATE_MOST = dt.date.max.toordinal() - dt.date(1970, 1, 1).toordinal()


class Rule(Protocol):
    """The rule of one held type.

    word: a value in messages, with its article. arrow: the type of columns outside. bounds: the
    smallest and the largest number.
    """

    word: str
    arrow: pa.DataType
    bounds: tuple[int, int]

    @property
    def avro(self) -> dict[str, Json]:
        """The type in Avro."""

    @property
    def json(self) -> dict[str, Json]:
        """The type in JSON Schema."""

    def form(self, form: str | None, zone: str | None) -> DateForm | DecimalForm | TimeForm:
        """Return how a source writes values. Raises SchemaError unless values have such a form."""

    def takes(self, arrow: pa.DataType) -> bool:
        """Tell whether columns of an Arrow type hold such values, and not texts of them."""

    def held(self, column: pa.Array) -> pa.Array:
        """Return a column of a type that ``takes`` accepts as int64, null for a misfit."""

    def shown(self, column: pa.Array) -> pa.Array:
        """Return a column of int64 as one of ``arrow``."""

    def number(self, value: Any) -> int | None:
        """Return the number of a Python value; None for a value of another type."""

    def value(self, number: int) -> Any:
        """Return the Python value of a number."""

    def text(self, value: Any) -> str | None:
        """Return the text of a Python value, for its form; None for a value of another type."""

    def written(self, number: int) -> str:
        """Return the text of a number within bounds, as sinks write it."""

    def texts(self, column: pa.Array) -> pa.Array:
        """Return a column of int64 within bounds as such texts."""

    def array(self, numbers: Ints) -> npt.NDArray[Any]:
        """Return an array for users' functions. One of dates or times shares the memory."""

    def numbers(self, array: npt.NDArray[Any]) -> Ints | None:
        """Return the numbers of such an array, None if it is another one."""


class _DateRule:
    word = "a date"
    arrow = pa.date32()
    avro: ClassVar[dict[str, Json]] = {"type": "int", "logicalType": "date"}
    json: ClassVar[dict[str, Json]] = {"type": "string", "format": "date"}
    bounds = (DATE_LEAST, DATE_MOST)

    def form(self, form: str | None, zone: str | None) -> DateForm:
        if zone is not None:
            raise SchemaError(f"zone is {shown_value(zone)}, and a date has none: leave it out")
        return DateForm(ISO if form is None else form)

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_date(arrow))

    def held(self, column: pa.Array) -> pa.Array:
        dates = column.cast(pa.date32(), safe=False)
        days = np.asarray(dates.cast(pa.int32()).fill_null(0)).astype(np.int64)
        found = (days >= DATE_LEAST) & (days <= DATE_MOST)
        if kinds.is_date64(column.type):
            found &= np.asarray(column.cast(pa.int64()).fill_null(0)) == days * _DAY_MS
        return where_found(days, found, column)[0]

    def shown(self, column: pa.Array) -> pa.Array:
        return column.cast(pa.int32()).cast(pa.date32())

    def number(self, value: Any) -> int | None:
        if isinstance(value, np.datetime64) and value.dtype == "datetime64[D]":
            value = value.item()
        if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
            return None
        return value.toordinal() - _EPOCH

    def value(self, number: int) -> dt.date:
        return dt.date.fromordinal(number + _EPOCH)

    def text(self, value: Any) -> str | None:
        number = self.number(value)
        return None if number is None else self.written(number)

    def written(self, number: int) -> str:
        return self.value(number).isoformat()

    def texts(self, column: pa.Array) -> pa.Array:
        return self.shown(column).cast(pa.string())

    def array(self, numbers: Ints) -> npt.NDArray[Any]:
        return numbers.view("datetime64[D]")

    def numbers(self, array: npt.NDArray[Any]) -> Ints | None:
        if array.dtype != "datetime64[D]":
            return None
        return np.ascontiguousarray(array).view(np.int64)


class _DateTimeRule:
    word = "a time with a zone"
    arrow = pa.timestamp("ns", "UTC")
    avro: ClassVar[dict[str, Json]] = {"type": "long", "logicalType": "timestamp-nanos"}
    json: ClassVar[dict[str, Json]] = {"type": "string", "format": "date-time"}
    bounds = (-(1 << 63), (1 << 63) - 1)

    def form(self, form: str | None, zone: str | None) -> TimeForm:
        from ripple.model.schema.time_form import TimeForm  # noqa: PLC0415 - which knows this module's

        return TimeForm(ISO if form is None else form, zone)

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_timestamp(arrow))

    def held(self, column: pa.Array) -> pa.Array:
        numbers, unit_ns = column.cast(pa.int64()), _UNITS_NS[column.type.unit]
        if unit_ns == 1:
            return numbers
        from ripple.model.schema.time_form import in_ns  # noqa: PLC0415 - likewise

        return in_ns(numbers, unit_ns)[0]

    def shown(self, column: pa.Array) -> pa.Array:
        return column.cast(self.arrow)

    def number(self, value: Any) -> int | None:
        if not isinstance(value, dt.datetime) or _has_no_zone(value):
            return None
        since = value - _EPOCH_UTC
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        number = 1000 * micros + int(getattr(value, "nanosecond", 0))
        return number if self.bounds[0] <= number <= self.bounds[1] else None

    def value(self, number: int) -> dt.datetime:
        micros, rest = divmod(number, 1000)
        at = _EPOCH_UTC + dt.timedelta(microseconds=micros)
        if not rest:
            return at
        parts = (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)
        fine = Nanos(*parts, tzinfo=dt.UTC)
        fine.nanosecond = rest
        return fine

    def text(self, value: Any) -> str | None:
        if isinstance(value, np.datetime64):
            value = np.datetime_as_string(value, timezone="UTC")
            return str(value)
        number = self.number(value)
        if number is not None:
            return self.written(number)
        return value.isoformat() if isinstance(value, dt.datetime) else None

    def written(self, number: int) -> str:
        return str(self.texts(pa.array([number]))[0])

    def texts(self, column: pa.Array) -> pa.Array:
        offsets, data = times_written(np.ascontiguousarray(column.fill_null(0)))
        buffers = [_validity(column), pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.string(), len(column), buffers)

    def array(self, numbers: Ints) -> npt.NDArray[Any]:
        return numbers.view("datetime64[ns]")

    def numbers(self, array: npt.NDArray[Any]) -> Ints | None:
        if array.dtype != "datetime64[ns]":
            return None
        return np.ascontiguousarray(array).view(np.int64)


class _DecimalRule:
    """The rule of one decimal type: numbers count units of 10 ** -scale."""

    def __init__(self, kind: Decimal) -> None:
        self._kind = kind
        most = 10**kind.precision - 1 if kind.precision <= PRECISION_MAX else (1 << 63) - 1
        self.bounds = (-most, most)
        self.word = f"a decimal of {kind.precision} digits, {kind.scale} behind the point"
        self.arrow = pa.decimal128(kind.precision, kind.scale)
        size = {"precision": kind.precision, "scale": kind.scale}
        self.avro = {"type": "bytes", "logicalType": "decimal", **size}
        self.json = {"type": "string"}

    def form(self, form: str | None, zone: str | None) -> DecimalForm:
        for name, given in (("format", form), ("zone", zone)):
            if given is not None:
                raise SchemaError(f"{name} is {shown_value(given)}, and a decimal has none")
        from ripple.model.schema.decimal_form import DecimalForm  # noqa: PLC0415 - few have decimals

        return DecimalForm(self._kind)

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_decimal(arrow) or kinds.is_integer(arrow))

    def held(self, column: pa.Array) -> pa.Array:
        return self.form(None, None).parsed(column.cast(pa.string()))[0]

    def shown(self, column: pa.Array) -> pa.Array:
        units = np.ascontiguousarray(column.fill_null(0), np.int64)
        wide = np.empty((len(units), 2), np.int64)
        wide[:, 0], wide[:, 1] = units, units >> 63
        buffers = [_validity(column), pa.py_buffer(wide)]
        return pa.Array.from_buffers(self.arrow, len(units), buffers)

    def number(self, value: Any) -> int | None:
        if isinstance(value, (bool, np.bool_)):
            return None
        if isinstance(value, (int, np.integer)):
            value = decimal.Decimal(int(value))
        if not isinstance(value, decimal.Decimal) or not value.is_finite():
            return None
        if len(value.as_tuple().digits) > _DIGITS_MAX or abs(value.adjusted()) > _DIGITS_MAX:
            return None
        units = value.scaleb(self._kind.scale, _WIDE)
        number = int(units)
        is_one = number == units and self.bounds[0] <= number <= self.bounds[1]
        return number if is_one else None

    def value(self, number: int) -> decimal.Decimal:
        return decimal.Decimal(number).scaleb(-self._kind.scale, _WIDE)

    def text(self, value: Any) -> str | None:
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            return str(int(value))
        return str(value) if isinstance(value, decimal.Decimal) else None

    def written(self, number: int) -> str:
        return format(self.value(number), "f")

    def texts(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema import scaled  # noqa: PLC0415 - likewise

        offsets, data = scaled.texts(
            np.ascontiguousarray(column.fill_null(0), np.int64), self._kind.scale
        )
        plain = pa.Array.from_buffers(
            pa.string(), len(column), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        if not column.null_count:
            return plain
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and seldom needed

        return pc.if_else(column.is_valid(), plain, pa.scalar(None, pa.string()))

    def array(self, numbers: Ints) -> npt.NDArray[Any]:
        return np.array([self.value(number) for number in numbers.tolist()], object)

    def numbers(self, array: npt.NDArray[Any]) -> Ints | None:
        del array  # of dtype object it is a list
        return None


def _validity(column: pa.Array) -> pa.Buffer | None:
    """Return a bit per value, 0 for a null; None without nulls."""
    if not column.null_count:
        return None
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))


_DIGITS_MAX = 1000  # of a value in Python; one with more cannot fit
_WIDE = decimal.Context(prec=2 * _DIGITS_MAX)


class Nanos(dt.datetime):
    """A time that is finer than a microsecond. nanosecond: the rest, 1 to 999.

    Arithmetic and comparison leave the rest out.
    """

    nanosecond = 0


def _has_no_zone(value: dt.datetime) -> bool:
    # pandas' NaT is a datetime, too, and has no utcoffset.
    return value.tzinfo is None or value.utcoffset() is None


_DAY_MS = 86_400_000
_UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
_EPOCH = dt.date(1970, 1, 1).toordinal()
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_RULES: dict[type, Rule] = {Date: _DateRule(), DateTime: _DateTimeRule()}


def rule_of(kind: Held) -> Rule:
    """Return the rule of a held type."""
    return _decimal_rule(kind) if isinstance(kind, Decimal) else _RULES[type(kind)]


@lru_cache(maxsize=256)
def _decimal_rule(kind: Decimal) -> Rule:
    return _DecimalRule(kind)


def held_in(fields: Iterable[Field]) -> dict[str, Held]:
    """Return the fields of held types, by name; optional ones too."""
    found = {field.name: bare_type(field.type) for field in fields}
    return {name: kind for name, kind in found.items() if isinstance(kind, Held)}


def has_held(kind: FieldType) -> bool:
    """Tell whether values of a type are, or have in them, values of a held type."""
    return isinstance(kind, Held) or any(map(has_held, inner_types(kind)))


def has_time(kind: FieldType) -> bool:
    """Tell whether values of a type are, or have in them, times."""
    return isinstance(kind, DateTime) or any(map(has_time, inner_types(kind)))


def stored_type(kind: FieldType) -> FieldType:
    """Return the type of a column that holds values of a type: whole numbers for held ones."""
    if not has_held(kind):
        return kind
    match kind:
        case Option():
            return Option(stored_type(kind.of))
        case List():
            return List(stored_type(kind.of))
        case Record():
            return Record(stored_fields(kind.fields))
        case Variant():
            cases = [Case(one.name, tuple(map(stored_type, one.args))) for one in kind.cases]
            return Variant(tuple(cases))
        case _:
            return Int64()


def stored_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return fields of the types of the columns that hold their values."""
    return tuple(
        replace(field, type=stored_type(field.type)) if has_held(field.type) else field
        for field in fields
    )


@frozen
class Showing:
    """Turns columns of numbers into columns of dates, times and decimals. fields: of these."""

    fields: tuple[Field, ...]

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of these fields shown, as far as the rows have them."""
        columns, found = rows.columns, list(rows.schema)
        for field in self.fields:
            at = rows.schema.get_field_index(field.name)
            if at >= 0:
                columns[at] = shown(columns[at], field.type)
                found[at] = pa.field(field.name, columns[at].type, found[at].nullable)
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(found, rows.schema.metadata))


def note_of(kind: FieldType) -> dict[str, str] | None:
    """Return the metadata of a column of numbers, with its type; None unless the type is held."""
    return {NOTE: dumps(type_to_sexp(kind))} if has_held(kind) else None


def noted(table: pa.Table) -> pa.Table:
    """Return a table of an engine with its columns shown, by their metadata; see ``note_of``."""
    columns, found = table.columns, list(table.schema)
    for at, field in enumerate(table.schema):
        said = (field.metadata or {}).get(NOTE.encode())
        if said is not None:
            kind = type_from_sexp(loads(said.decode()))
            chunks = columns[at].chunks or [pa.array([], field.type)]
            columns[at] = pa.chunked_array([shown(chunk, kind) for chunk in chunks])
            found[at] = pa.field(field.name, columns[at].type, field.nullable)
    return pa.Table.from_arrays(columns, schema=pa.schema(found, table.schema.metadata))


def showing(fields: Iterable[Field]) -> Showing | None:
    """Return the ``Showing`` of these fields; None if none has a held type."""
    found = tuple(field for field in fields if has_held(field.type))
    return Showing(found) if found else None


def shown_schema(stored: pa.Schema, fields: Iterable[Field]) -> pa.Schema:
    """Return the schema of shown rows of flat columns. stored: the schema inside."""
    kinds_held = held_in(fields)
    return pa.schema(
        [
            one.with_type(rule_of(kinds_held[one.name]).arrow) if one.name in kinds_held else one
            for one in stored
        ],
        stored.metadata,
    )


def shown(column: pa.Array, kind: FieldType) -> pa.Array:
    """Return a column of numbers with its values as dates, times and decimals; nested ones too."""
    kind = bare_type(kind)
    if isinstance(kind, Held):
        return rule_of(kind).shown(column)
    if isinstance(kind, List) and has_held(kind):
        values = shown(column.flatten(), kind.of)
        arrow = pa.list_(column.type.value_field.with_type(values.type))
        return list_of(column, values, arrow)
    if isinstance(kind, Record) and has_held(kind):
        parts = [
            shown(part, field.type)
            for part, field in zip(column.flatten(), kind.fields, strict=True)
        ]
        names = [field.with_type(part.type) for field, part in zip(column.type, parts, strict=True)]
        null = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=names, mask=null)
    return column


def as_shown(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return a column of numbers in an Arrow type, shown if a held type has it, else cast."""
    if kinds.is_list(arrow) and kinds.is_list(column.type):
        values = as_shown(column.flatten(), arrow.value_type)
        return list_of(column, values, arrow)
    if kinds.is_struct(arrow) and kinds.is_struct(column.type):
        parts = [
            as_shown(part, one.type) for part, one in zip(column.flatten(), arrow, strict=True)
        ]
        null = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=list(arrow), mask=null)
    if kinds.is_integer(column.type):
        if kinds.is_decimal128(arrow):
            return rule_of(Decimal.wide(arrow.scale)).shown(column).cast(arrow)
        for rule in _RULES.values():
            if rule.arrow == arrow:
                return rule.shown(column)
    return column.cast(arrow)


def list_of(column: pa.Array, values: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return a column of lists with other values. values: of all lists, one behind the other."""
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    lengths = np.where(valid, np.diff(column.offsets.to_numpy()), 0)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    null = pa.array(~valid) if column.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends), values, type=arrow, mask=null)


def array_of(numbers: npt.NDArray[Any], kind: FieldType) -> npt.NDArray[Any]:
    """Return a column without nulls as users' functions get it."""
    return rule_of(kind).array(numbers) if isinstance(kind, Held) else numbers


def values_of(listed: list[Any], kind: FieldType) -> list[Any]:
    """Return the numbers of a column as Python values of its type; None stays."""
    if not has_held(kind):
        return listed
    return [_value_of(one, kind) for one in listed]


def _value_of(one: Any, kind: FieldType) -> Any:
    kind = bare_type(kind)
    if one is None or not has_held(kind):
        return one
    if isinstance(kind, Held):
        return rule_of(kind).value(one)
    if isinstance(kind, List):
        return [_value_of(item, kind.of) for item in one]
    if isinstance(kind, Record):
        types = {field.name: field.type for field in kind.fields}
        return {name: _value_of(item, types[name]) for name, item in one.items()}
    return one


def held_columns(rows: pa.RecordBatch, fields: Iterable[Field]) -> pa.RecordBatch:
    """Return rows with the numbers of columns of these fields whose types are held."""
    columns, found = rows.columns, list(rows.schema)
    for name, kind in held_in(fields).items():
        at = rows.schema.get_field_index(name)
        if at >= 0 and rule_of(kind).takes(columns[at].type):
            columns[at] = rule_of(kind).held(columns[at])
            found[at] = found[at].with_type(columns[at].type)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(found, rows.schema.metadata))


def text_of_number(number: int, kind: Held) -> str:
    """Return a number from outside as a text that the type's form reads, as ``texts_of`` does."""
    rule = rule_of(kind)
    is_one = rule.bounds[0] <= number <= rule.bounds[1]
    return rule.written(number) if is_one else str(number)


def texts_of(column: pa.Array, kind: Held) -> pa.Array:
    """Return a column of int64 from outside as texts that the type's form reads.

    A number beyond the type's bounds gives its digits, which are no text of the form.
    """
    rule = rule_of(kind)
    numbers = np.asarray(column.fill_null(0))
    beyond = (numbers < rule.bounds[0]) | (numbers > rule.bounds[1])
    null = np.asarray(column.is_null())
    inside = pa.array(np.where(beyond, 0, numbers), mask=null)
    texts = rule.texts(inside)
    if not beyond.any():
        return texts
    import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and seldom needed

    digits = pa.array(numbers).cast(pa.string())
    return pc.if_else(pa.array(beyond), digits, texts)


def held(column: pa.Array, kind: FieldType) -> pa.Array:
    """Return the numbers of a flat column of dates, times, decimals, or their texts."""
    bare = bare_type(kind)
    if not isinstance(bare, Held):
        return column
    if kinds.is_string(column.type):
        return rule_of(bare).form(None, None).parsed(column)[0]
    return rule_of(bare).held(column) if rule_of(bare).takes(column.type) else column
