"""Dates: days since 1970."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.core.arguments import shown
from ripple.core.errors import SchemaError
from ripple.model.schema.date_form import ISO, DateForm
from ripple.model.schema.text_columns import where_found

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.schema.document import Json

    Ints = npt.NDArray[np.int64]

_EPOCH = dt.date(1970, 1, 1).toordinal()
_DAY_MS = 86_400_000
DATE_LEAST = dt.date.min.toordinal() - _EPOCH
DATE_MOST = dt.date.max.toordinal() - _EPOCH


class DateRule:
    """The rule of dates."""

    word = "a date"
    arrow = pa.date32()
    avro: ClassVar[dict[str, Json]] = {"type": "int", "logicalType": "date"}
    json: ClassVar[dict[str, Json]] = {"type": "string", "format": "date"}
    bounds = (DATE_LEAST, DATE_MOST)

    def form(self, form: str | None, zone: str | None) -> DateForm:
        if zone is not None:
            raise SchemaError(f"zone is {shown(zone)}, and a date has none: leave it out")
        return DateForm(ISO if form is None else form)

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_date(arrow))

    def stored(self, column: pa.Array) -> pa.Array:
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
