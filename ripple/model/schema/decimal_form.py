"""Decimals as sources write them, in text; ours are whole numbers of 10 ** -scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.core.frozen import frozen
from ripple.model.schema.logical.wide_decimals import stored_of
from ripple.model.schema.scaled import parse
from ripple.model.schema.text_columns import parts, where_found
from ripple.model.schema.types import PRECISION_MAX, Decimal, WideDecimal

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Mask = npt.NDArray[np.bool_]


@frozen
class DecimalForm:
    """The texts of a type: digits with a point and an exponent or without. None is rounded."""

    kind: Decimal

    is_text = True
    is_other_unit = False
    clocks = None

    @property
    def words(self) -> str:
        """The reason for a value that is no decimal of the type, after "the field"."""
        return _words(self.kind)

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings as int64, and where it is no decimal of the type.

        It is null there, and where the column is.
        """
        precision = min(self.kind.precision, PRECISION_MAX)
        values, verdicts = parse(*parts(column), precision, self.kind.scale)
        return where_found(values, np.asarray(verdicts) == 0, column)


@frozen
class WideDecimalForm:
    """The same of a type with more digits, stored as texts."""

    kind: WideDecimal

    is_text = True
    is_other_unit = False
    clocks = None

    @property
    def words(self) -> str:
        """The reason for a value that is no decimal of the type, after "the field"."""
        return _words(self.kind)

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings as stored, and where it is no decimal of the type."""
        from ripple.model.schema import wide  # noqa: PLC0415 - few have such decimals

        texts = parts(column)
        units, verdicts = wide.parse(*texts, self.kind.precision, self.kind.scale)
        lost = np.asarray(verdicts) != 0
        valid = ~lost if texts[0] is None else texts[0].view(np.bool_) & ~lost
        return stored_of(units, None if valid.all() else valid.view(np.uint8)), lost


def _words(kind: Decimal | WideDecimal) -> str:
    before = kind.precision - kind.scale
    return f"is no decimal of at most {before} digits before the point and {kind.scale} after"
