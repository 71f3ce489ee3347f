"""Exact sums of decimals of up to 38 digits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.errors import WideRangeError
from ripple.model.aggregate.parts import PartsState, WholeSums
from ripple.model.schema.logical.wide_decimals import stored_text, units_in
from ripple.model.schema.types import PRECISION_OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from ripple.model.aggregate.contract import Column, Slots, Values

_BITS = 48
_MASK = np.int64((1 << _BITS) - 1)
_END = 10**PRECISION_OTHERS


class WideSumState(PartsState):
    """The sums of the bits of units, 0 to 47, 48 to 95 and the rest, a slot: none overflows."""

    def __init__(self) -> None:
        self._sums = {name: WholeSums() for name in ("low", "middle", "high")}
        super().__init__(**self._sums)

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value to its slot."""
        for name, part in _parts_of(values[0]):
            self._sums[name].add(slots, part)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each value out of its slot."""
        for name, part in _parts_of(values[0]):
            self._sums[name].remove(slots, part)

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the sums as they are stored; raises :class:`WideRangeError`."""
        low, middle, high = (_totals(part, slots) for part in self._sums.values())
        found = []
        for at, (one, two, three) in enumerate(zip(low, middle, high, strict=True)):
            total = one + (two << _BITS) + (three << 2 * _BITS)
            if abs(total) >= _END:
                raise WideRangeError(total, at)
            found.append(stored_text(total))
        return ((found, None),)


def _totals(part: WholeSums, slots: Slots) -> list[int]:
    data = part.encode(slots).tobytes()
    ends = range(0, len(data), 16)
    return [int.from_bytes(data[at : at + 16], "little", signed=True) for at in ends]


def _parts_of(values: Values) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the bits of stored decimals, by part."""
    column = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    units = units_in(column)
    low, high = units[:, 0], units[:, 1]
    yield "low", low & _MASK
    # The upper 16 bits of the lower half, which a shift fills with its sign, and 32 of the other.
    yield "middle", (low >> _BITS & 0xFFFF) | (high & 0xFFFFFFFF) << 16
    yield "high", high >> 32
