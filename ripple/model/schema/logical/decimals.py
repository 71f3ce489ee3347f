"""Decimals: counts of 10 ** -scale."""

from __future__ import annotations

import decimal
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.forms import need_no_form
from ripple.model.schema.logical.objects import ObjectArrays
from ripple.model.schema.text_columns import bits, text_column, valid_in
from ripple.model.schema.types import PRECISION_MAX, Decimal, WideDecimal

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.schema.decimal_form import DecimalForm

    Ints = npt.NDArray[np.int64]

_DIGITS_MAX = 1000  # of a value in Python; one with more cannot fit
_WIDE = decimal.Context(prec=2 * _DIGITS_MAX)


class DigitsRule(ObjectArrays):
    """The common part of the rules of narrow and wide decimals. units: the largest number."""

    def __init__(self, kind: Decimal | WideDecimal, units: int) -> None:
        self._scale = kind.scale
        self.bounds = (-units, units)
        self.word = f"a decimal of {kind.precision} digits, {kind.scale} behind the point"
        self.arrow = pa.decimal128(kind.precision, kind.scale)
        size = {"precision": kind.precision, "scale": kind.scale}
        self.avro = {"type": "bytes", "logicalType": "decimal", **size}
        self.json = {"type": "string"}

    @abstractmethod
    def value(self, number: Any) -> decimal.Decimal:
        """Return the decimal of a stored number."""

    def takes(self, arrow: pa.DataType) -> bool:
        return bool(kinds.is_decimal(arrow) or kinds.is_integer(arrow))

    def text(self, value: Any) -> str | None:
        if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
            value = decimal.Decimal(int(value))  # its text may have any number of digits
        return str(value) if isinstance(value, decimal.Decimal) else None

    def written(self, number: Any) -> str:
        return format(self.value(number), "f")


class DecimalRule(DigitsRule):
    """The rule of one decimal type: numbers count units of 10 ** -scale."""

    def __init__(self, kind: Decimal) -> None:
        fits = kind.precision <= PRECISION_MAX
        super().__init__(kind, 10**kind.precision - 1 if fits else (1 << 63) - 1)
        self._kind = kind

    def form(self, form: str | None, zone: str | None) -> DecimalForm:
        from ripple.model.schema.decimal_form import DecimalForm  # noqa: PLC0415 - few have decimals

        need_no_form("a decimal", form, zone)
        return DecimalForm(self._kind)

    def stored(self, column: pa.Array) -> pa.Array:
        return self.form(None, None).parsed(column.cast(pa.string()))[0]

    def shown(self, column: pa.Array) -> pa.Array:
        units = _units(column)
        wide = np.empty((len(units), 2), np.int64)
        wide[:, 0], wide[:, 1] = units, units >> 63
        buffers = [bits(valid_in(column)), pa.py_buffer(wide)]
        return pa.Array.from_buffers(self.arrow, len(units), buffers)

    def number(self, value: Any) -> int | None:
        return units_of(value, self._scale, self.bounds[1])

    def value(self, number: int) -> decimal.Decimal:
        return of_units(number, self._scale)

    def texts(self, column: pa.Array) -> pa.Array:
        from ripple.model.schema import scaled  # noqa: PLC0415 - few have decimals

        return text_column(*scaled.texts(_units(column), self._scale), valid_in(column))


def _units(column: pa.Array) -> Ints:
    return np.ascontiguousarray(column.fill_null(0), np.int64)


def units_of(value: Any, scale: int, most: int) -> int | None:
    """Return the units of a decimal or an integer; None for another value, and beyond ``most``."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, np.integer)):
        value = decimal.Decimal(int(value))
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        return None
    if len(value.as_tuple().digits) > _DIGITS_MAX or abs(value.adjusted()) > _DIGITS_MAX:
        return None
    units = value.scaleb(scale, _WIDE)
    number = int(units)
    return number if number == units and -most <= number <= most else None


def of_units(units: int, scale: int) -> decimal.Decimal:
    """Return the decimal of a number of units."""
    return decimal.Decimal(units).scaleb(-scale, _WIDE)
