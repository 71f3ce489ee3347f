"""Times: nanoseconds since 1970, UTC."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.text_columns import text_column, valid_in
from ripple.model.schema.time_form import ISO, UNITS_NS, TimeForm, in_ns
from ripple.model.schema.time_texts import texts

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.schema.document import Json

    Ints = npt.NDArray[np.int64]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Nanos(dt.datetime):
    """A time with nanoseconds beyond a microsecond. nanosecond: the rest, 1 to 999.

    Arithmetic and comparison leave the rest out.
    """

    nanosecond = 0


class DateTimeRule:
    """The rule of times."""

    word = "a time with a zone"
    arrow = pa.timestamp("ns", "UTC")
    avro: ClassVar[dict[str, Json]] = {"type": "long", "logicalType": "timestamp-nanos"}
    json: ClassVar[dict[str, Json]] = {"type": "string", "format": "date-time"}
    bounds = (-(1 << 63), (1 << 63) - 1)

    def form(self, form: str | None, zone: str | None) -> TimeForm:
        return TimeForm(ISO if form is None else form, zone)

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_timestamp(arrow))

    def stored(self, column: pa.Array) -> pa.Array:
        numbers, unit_ns = column.cast(pa.int64()), UNITS_NS[column.type.unit]
        return numbers if unit_ns == 1 else in_ns(numbers, unit_ns)[0]

    def shown(self, column: pa.Array) -> pa.Array:
        return column.cast(self.arrow)

    def number(self, value: Any) -> int | None:
        if not isinstance(value, dt.datetime) or _has_no_zone(value):
            return None
        since = value - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        number = 1000 * micros + int(getattr(value, "nanosecond", 0))
        return number if self.bounds[0] <= number <= self.bounds[1] else None

    def value(self, number: int) -> dt.datetime:
        micros, rest = divmod(number, 1000)
        at = _EPOCH + dt.timedelta(microseconds=micros)
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
        written = texts(np.ascontiguousarray(column.fill_null(0)))
        return text_column(*written, valid_in(column))

    def array(self, numbers: Ints) -> npt.NDArray[Any]:
        return numbers.view("datetime64[ns]")

    def numbers(self, array: npt.NDArray[Any]) -> Ints | None:
        if array.dtype != "datetime64[ns]":
            return None
        return np.ascontiguousarray(array).view(np.int64)


def _has_no_zone(value: dt.datetime) -> bool:
    # pandas' NaT is a datetime, too, and has no utcoffset.
    return value.tzinfo is None or value.utcoffset() is None
