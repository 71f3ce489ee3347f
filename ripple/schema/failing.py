"""Checks over a column of values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.schema.checks import Checks

Mask = npt.NDArray[np.bool_]


def failing(column: pa.Array, checks: Checks) -> Iterator[tuple[str, Mask]]:
    """Yield why values fail, and bool[n] of those that do, in the order of the CSV parser.

    column: int64, float64 or string, as ``checks``, which are fitted, are for; nulls pass. Reasons
    go on after the field's name: "empty", "not finite". Nothing is yielded where nothing fails; a
    value that fails twice is in both.
    """
    if not len(column):
        return
    for reason, passed in _passed(column, checks):
        if not passed.all():
            failed = ~passed
            if column.null_count:
                failed &= column.is_valid().to_numpy(zero_copy_only=False)
            if failed.any():
                yield reason, failed


def _passed(column: pa.Array, checks: Checks) -> Iterator[tuple[str, Mask]]:
    if checks.is_measured:
        shortest, longest = checks.lengths
        by_bytes = shortest <= 1 and checks.max_length is None
        lengths = _lengths(column, in_bytes=by_bytes)
        if shortest:
            yield "empty", lengths > 0
        if not by_bytes:
            yield f"not {checks.length_words}", (lengths >= shortest) & (lengths <= longest)
    if not (checks.finite or checks.is_bounded):
        return
    # The buffer has values at nulls too, if meaningless ones.
    numbers = _buffer(column, 1, column.type.to_pandas_dtype())[: len(column)]
    if checks.finite:
        yield "not finite", np.isfinite(numbers)
    if checks.is_bounded:
        low, high = checks.interval
        yield f"not {checks.range_words}", (numbers >= low) & (numbers <= high)


def _lengths(column: pa.Array, *, in_bytes: bool) -> npt.NDArray[np.int64]:
    """Return the lengths of texts; in bytes it is faster and zero alike."""
    ends = _buffer(column, 1, np.int32)[: len(column) + 1].astype(np.int64)
    if in_bytes:
        return np.diff(ends)
    text = np.frombuffer(column.buffers()[2] or b"", np.uint8)[ends[0] : ends[-1]]
    before = np.concatenate(([0], np.cumsum((text & 0xC0) != 0x80)))  # a character's first byte
    lengths: npt.NDArray[np.int64] = np.diff(before[ends - ends[0]])
    return lengths


def _buffer(column: pa.Array, number: int, kind: Any) -> npt.NDArray[Any]:
    return np.frombuffer(column.buffers()[number], kind)[column.offset :]
