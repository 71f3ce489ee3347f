"""What the lines of a CSV file must look like to be records."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.connectors.record_shape import TIMESTAMP_NS_END, RecordShape
from ripple.schema.checks import Checks
from ripple.schema.types import Field, Float, Int, Int64, Schema, String

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class CsvFormat(RecordShape):
    """How a line becomes a record of ``schema``.

    Records are lines: a quoted field may contain commas and doubled quotes but no line break, so
    that one stray quote costs one line. Lines end in LF or CRLF; the last end may be missing.
    Empty lines and lines that begin with ``#`` are no records. Blanks around numbers and truth
    values are ignored, in strings they count. ``-?digits`` is an integer; floats are decimal, with
    an exponent or not, or ``nan``, ``inf``, ``-inf``; ``true``, ``false``, ``1``, ``0`` are truth
    values. An empty field is none if optional, the empty string if a required string, and an error
    otherwise; ``""`` is always the empty string.

    Fields that are not among ``columns`` are checked all the same, so that which lines are records
    does not depend on it. With ``header`` the first line that is no comment names the columns, in
    any order; columns that the schema does not have are ignored, and an optional field's column
    may be missing.
    """

    header: bool = False


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
