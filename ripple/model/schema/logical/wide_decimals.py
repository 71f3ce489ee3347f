"""Decimals of up to 38 digits: counts of 10 ** -scale in 128 bits, stored as texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.decimals import DigitsRule, of_units, units_of
from ripple.model.schema.logical.forms import need_no_form
from ripple.model.schema.text_columns import bits, parts, text_column, valid_in

if TYPE_CHECKING:
    import decimal

    import numpy.typing as npt

    from ripple.model.schema.decimal_form import WideDecimalForm
    from ripple.model.schema.types import WideDecimal

    Ints = npt.NDArray[np.int64]

_MIDDLE = 1 << 127  # added to stored numbers, so that none is negative
STORED_LETTERS = 32


class WideDecimalRule(DigitsRule):
    """The rule of one type: a stored text has the units of 10 ** -scale, plus 2 ** 127, in hex."""

    def __init__(self, kind: WideDecimal) -> None:
        super().__init__(kind, 10**kind.precision - 1)
        self._kind = kind

    def form(self, form: str | None, zone: str | None) -> WideDecimalForm:
        from ripple.model.schema.decimal_form import WideDecimalForm  # noqa: PLC0415 - few have them

        need_no_form("a decimal", form, zone)
        return WideDecimalForm(self._kind)

    def stored(self, column: pa.Array) -> pa.Array:
        is_own = kinds.is_decimal128(column.type) and column.type.scale == self._scale
        if is_own and column.type.precision <= self._kind.precision:
            return stored_of(halves_in(column), valid_in(column))
        return self.form(None, None).parsed(column.cast(pa.string()))[0]

    def shown(self, column: pa.Array) -> pa.Array:
        buffers = [bits(valid_in(column)), pa.py_buffer(units_in(column))]
        return pa.Array.from_buffers(self.arrow, len(column), buffers)

    def number(self, value: Any) -> str | None:
        units = units_of(value, self._scale, self.bounds[1])
        return None if units is None else stored_text(units)

    def value(self, number: str) -> decimal.Decimal:
        return of_units(units_of_text(number), self._scale)

    def texts(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema import wide  # noqa: PLC0415 - few have such decimals

        return text_column(*wide.texts(units_in(column), self._scale), valid_in(column))


def stored_text(units: int) -> str:
    """Return the stored text of a number of units."""
    return format(units + _MIDDLE, f"0{STORED_LETTERS}x")


def units_of_text(text: str) -> int:
    """Return the number of units of a stored text."""
    return int(text, 16) - _MIDDLE


def units_in(column: pa.Array) -> Ints:
    """Return the units of a stored column as int64[n, 2], the lower half first; 0 for null."""
    from ripple.model.schema import wide  # noqa: PLC0415 - few have such decimals

    return wide.decode(*parts(column))


def halves_in(column: pa.Array) -> Ints:
    """Return the units of a column of ``decimal128`` as int64[n, 2], the lower half first."""
    ends = 2 * column.offset, 2 * (column.offset + len(column))
    data = column.buffers()[1]  # none of a column without rows
    units = np.frombuffer(data or b"", np.int64)[ends[0] : ends[1]]
    return units.reshape(-1, 2)


def stored_of(units: Ints, valid: Any = None) -> pa.Array:
    """Return such units as a stored column. valid: uint8[n], 0 for null."""
    from ripple.model.schema import wide  # noqa: PLC0415 - few have such decimals

    letters = wide.encode(np.ascontiguousarray(units))
    offsets = np.arange(len(units) + 1, dtype=np.int32) * np.int32(STORED_LETTERS)
    return text_column(offsets, letters, valid)
