from typing import Any

import numpy as np
import numpy.typing as npt

from ripple.model.aggregate.exact import ExactSums
from ripple.model.aggregate.integers import Counts
from ripple.model.aggregate.part import Read

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.uint8]

class RowsBySlot:
    def __init__(self, slots: Ints, begins: Flags, times: Ints) -> None: ...

def lag(
    rows: RowsBySlot,
    values: Ints,
    valid: Flags,
    counts: Ints,
    ring: Ints,
    ring_valid: Flags,
    out: Ints,
    out_valid: Flags,
) -> None: ...
def gaps(rows: RowsBySlot, valid: Flags, counts: Ints, lasts: Ints, out: Ints) -> None: ...
def ema(
    rows: RowsBySlot,
    values: Floats,
    valid: Flags,
    weights: Floats,
    counts: Ints,
    means: Floats,
    out: Floats,
) -> None: ...
def extreme(
    rows: RowsBySlot,
    values: npt.NDArray[Any],
    valid: Flags,
    largest: bool,
    counts: Ints,
    most: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def bar(
    rows: RowsBySlot,
    values: npt.NDArray[Any],
    valid: Flags,
    every: float,
    numbers: Ints,
    filled: npt.NDArray[Any],
    out: Ints,
) -> None: ...
def part_counts(
    rows: RowsBySlot,
    values: Ints,
    valid: Flags,
    every: int,
    most: int,
    filled: Ints,
    counts: Ints,
) -> None: ...
def bar_parts(
    rows: RowsBySlot,
    values: Ints,
    every: int,
    counts: Ints,
    numbers: Ints,
    filled: Ints,
    out: Ints,
    parts: Ints,
) -> None: ...
def cum_sum(
    rows: RowsBySlot,
    values: Ints,
    valid: Flags,
    sums: Ints,
    out: Ints,
    failed: Flags,
) -> None: ...
def rolling_sum(
    rows: RowsBySlot,
    values: npt.NDArray[Any],
    valid: Flags,
    divides: bool,
    counts: Ints,
    ring: npt.NDArray[Any],
    out: Floats,
    whole: Ints,
    failed: Flags,
) -> None: ...
def rolling_extreme(
    rows: RowsBySlot,
    values: npt.NDArray[Any],
    valid: Flags,
    largest: bool,
    counts: Ints,
    ring: npt.NDArray[Any],
    out: npt.NDArray[Any],
) -> None: ...
def rolling_ranked(
    rows: RowsBySlot,
    values: npt.NDArray[Any],
    valid: Flags,
    numerator: int,
    denominator: int,
    counts: Ints,
    ring: npt.NDArray[Any],
    lower: npt.NDArray[Any],
    upper: npt.NDArray[Any],
    remainders: Ints,
) -> None: ...
def rolling_spread(
    rows: RowsBySlot,
    values: npt.NDArray[Any],
    valid: Flags,
    sums: ExactSums,
    squares: ExactSums,
    tally: Counts,
    read: Read,
    counts: Ints,
    ring: npt.NDArray[Any],
    bits: Ints,
    found: Flags,
) -> None: ...
