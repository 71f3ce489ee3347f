"""The format of lines of CSV that are records."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from ripple.connectors.record_shape import TIMESTAMP_NS_END, RecordShape
from ripple.core.frozen import frozen
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Field, Float, Int, Int64, Schema, String

if TYPE_CHECKING:
    from collections.abc import Mapping

Comments: TypeAlias = Literal["ahead", "anywhere", "none"]


@frozen
class Dialect:
    """How fields, numbers and missing values are written.

    delimiter: between fields. decimal: before the fraction of a float. thousands: before each three
    digits of a number's whole part; "" for none, and numbers may do without. nulls: texts that,
    without quotes, stand for no value, as the empty one does; they are not of required strings.
    """

    delimiter: str = ","
    decimal: str = "."
    thousands: str = ""
    nulls: tuple[str, ...] = ()


PLAIN = Dialect()


@frozen
class CsvFormat(RecordShape):
    """How a line becomes a record of ``schema``.

    A record is a line, or several where line ends stand in a quoted field. A quoted field also
    contains commas and doubled quotes; it is closed before a comma or a line's end. Quotes that are
    not, within the length of a line and before the end of the input, are a mistake that costs one
    line, and so are quotes within a field that does not begin with one. Lines end in LF or CRLF;
    the last end may be missing. Empty lines are no records, nor are ``comments``. Blanks around
    numbers and truth values are ignored, in strings they count. Digits, with a sign or without, are
    an integer; floats are decimal, with an exponent or not, or ``nan``, ``inf``, ``infinity``, in
    any letters, with a sign or without; ``true``, ``false``, ``1``, ``0`` are truth values; all of
    them may be quoted. An empty field is none if optional, the empty string if a required string,
    and an error otherwise; ``""`` is the empty string, and empty where the field is no string.

    Fields that are not among ``columns`` are checked all the same: their choice does not decide
    whether a line is a record. With ``header`` the first line that is no comment names the columns,
    in any order; columns that the schema does not have are ignored, and an optional field's column
    may be missing.

    ``comments`` says which lines that begin with ``#`` are no records: those ``"ahead"`` of the
    header or, without one, of the first other line, unless they are records by the schema; all of
    them, ``"anywhere"``; or ``"none"``. ``dialect``: its characters stand for
    the commas and points of which this speaks.
    """

    header: bool = False
    comments: Comments = "ahead"
    dialect: Dialect = PLAIN


TRADE_SCHEMA = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String()),
    ),
)
TRADE_CHECKS: Mapping[str, Checks] = MappingProxyType(
    {
        "symbol": Checks(min_length=1),
        "price": Checks(finite=True),
        "size": Checks(gt=0),
        "timestamp_ns": Checks(ge=0, lt=TIMESTAMP_NS_END),
    }
)
TRADES = CsvFormat(TRADE_SCHEMA, TRADE_CHECKS)
