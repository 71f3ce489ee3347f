"""The running values of one field by slot: arrays of state, and the compiled loops over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.kernels import running
from ripple.model.aggregate.exact import ExactSums
from ripple.model.aggregate.integers import Counts
from ripple.model.aggregate.moments import SpreadRead
from ripple.model.aggregate.quantile import interpolate
from ripple.model.expression.functions.maths import MATHS
from ripple.model.pipeline.nodes import type_of
from ripple.model.running.functions import (
    Bar,
    Ema,
    Extreme,
    Lag,
    Rolling,
    RollingQuantile,
    RollingSpread,
    Running,
    Sum,
)
from ripple.model.schema.types import Bool, Float, Int64, bare_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.running import RowsBySlot
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.uint8]
    Array = npt.NDArray[Any]


LN2 = 0.6931471805599453
TOO_LONG = "the sum has over 64 bits"


class Found(NamedTuple):
    """Values, which are there (None for all), and which rows failed, for one reason."""

    values: Array
    valid: npt.NDArray[np.bool_] | None
    failed: npt.NDArray[np.bool_] | slice = slice(0, 0)
    reason: str = ""


class RunningColumn(ABC):
    """State by slot as arrays, of one dimension or with a row for each slot; zeros at first."""

    def __init__(self, parts: dict[str, tuple[Any, int]]) -> None:
        """Make no slots. parts: the type of each array, and its width, 0 for one dimension."""
        self.parts: dict[str, Array] = {
            name: np.zeros((0, width) if width else 0, kind)
            for name, (kind, width) in parts.items()
        }

    @abstractmethod
    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        """Return the result of each row, and change the states."""

    @property
    def part_count(self) -> int:
        """The number of arrays."""
        return len(self.parts)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self.parts.values())

    def grow(self, capacity: int) -> None:
        """Have a state for each slot."""
        for name, part in self.parts.items():
            if capacity > len(part):
                larger = np.zeros((capacity, *part.shape[1:]), part.dtype)
                larger[: len(part)] = part
                self.parts[name] = larger

    def end(self, slots: Ints) -> None:
        """Let slots begin anew."""
        for part in self.parts.values():
            part[slots] = 0

    def dump(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the states of slots."""
        found = {}
        came = self.parts["count"][slots] if "count" in self.parts else np.ones(len(slots))
        for name, part in self.parts.items():
            chosen = np.ascontiguousarray(part[slots])
            # Former states leave values behind the count, which are no part of this one.
            if part.ndim == 1:
                chosen[came == 0] = 0
            else:
                chosen[np.arange(part.shape[1]) >= came[:, None]] = 0
            flat = pa.array(chosen.reshape(-1))
            width = 0 if part.ndim == 1 else part.shape[1]
            found[name] = pa.FixedSizeListArray.from_arrays(flat, width) if width else flat
        return found

    def load(self, slots: Ints, arrays: Sequence[pa.Array]) -> None:
        """Load the states of slots, with room for them."""
        for part, array in zip(self.parts.values(), arrays, strict=True):
            flat = array if part.ndim == 1 else array.flatten()
            part[slots] = flat.to_numpy().reshape((len(slots), *part.shape[1:]))


class _Lag(RunningColumn):
    def __init__(self, of: Lag, kind: Any) -> None:
        parts = {"count": (np.int64, 0), "values": (np.int64, of.n), "valid": (np.uint8, of.n)}
        super().__init__(parts)
        self._kind = kind

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        is_bool = self._kind is np.bool_
        words = values.astype(np.int64) if is_bool else values.view(np.int64)
        out, out_valid = np.zeros(len(values), np.int64), np.zeros(len(values), np.uint8)
        count, ring, ring_valid = self.parts.values()
        running.lag(of, words, valid, count, ring, ring_valid, out, out_valid)
        found = out.astype(np.bool_) if is_bool else out.view(self._kind)
        return Found(found, out_valid.view(np.bool_))


class _Extreme(RunningColumn):
    def __init__(self, of: Extreme, kind: Any) -> None:
        super().__init__({"count": (np.int64, 0), "most": (kind, 0)})
        self._largest = of.largest

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        out = np.zeros_like(values)
        count, most = self.parts.values()
        running.extreme(of, values, valid, self._largest, count, most, out)
        return Found(out, valid.view(np.bool_))


class _Sum(RunningColumn):
    def __init__(self) -> None:
        super().__init__({"sum": (np.int64, 0)})

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        out, failed = np.zeros(len(values), np.int64), np.zeros(len(values), np.uint8)
        (sums,) = self.parts.values()
        running.cum_sum(of, values, valid, sums, out, failed)
        return Found(out, valid.view(np.bool_), failed.view(np.bool_), TOO_LONG)


class _Ema(RunningColumn):
    def __init__(self, of: Ema) -> None:
        parts = {"count": (np.int64, 0), "mean": (np.float64, 0)}
        if of.half_life_ns is not None:
            parts |= {"seen": (np.int64, 0), "last": (np.int64, 0)}
        super().__init__(parts)
        self._of = of

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        out, parts = np.zeros(len(values)), self.parts
        running.ema(
            of,
            values.astype(np.float64, copy=False),
            valid,
            self._weights(of, valid),
            parts["count"],
            parts["mean"],
            out,
        )
        return Found(out, valid.view(np.bool_))

    def _weights(self, of: RowsBySlot, valid: Flags) -> npt.NDArray[np.float64]:
        """Return the weight of each row."""
        if self._of.half_life_ns is None:
            return np.full(len(valid), self._of.alpha, np.float64)
        since, parts = np.empty(len(valid), np.int64), self.parts
        running.gaps(of, valid, parts["seen"], parts["last"], since)
        columns = MATHS["expm1"].columns  # 1 - 2 ** -t has few digits left for a small t
        assert columns is not None, "it has a form for columns"
        half_lives = np.maximum(since, 0) / float(self._of.half_life_ns)
        weights: npt.NDArray[np.float64] = -columns(-(half_lives * LN2))
        return weights


class _Bar(RunningColumn):
    def __init__(self, every: float, kind: Any) -> None:
        super().__init__({"number": (np.int64, 0), "filled": (kind, 0)})
        self._every = every

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        out = np.zeros(len(values), np.int64)
        number, filled = self.parts.values()
        running.bar(of, values, valid, self._every, number, filled, out)
        return Found(out, None)


class SplitBar(_Bar):
    """Bars that divide rows."""

    def counts(self, of: RowsBySlot, values: Ints, valid: Flags, most: int) -> Ints:
        """Return the number of parts of each row; 0 for ``most`` or more."""
        counts, every = np.zeros(len(values), np.int64), int(self._every)
        filled = self.parts["filled"].copy()
        running.part_counts(of, values, valid, every, most, filled, counts)
        return counts

    def divided(self, of: RowsBySlot, values: Ints, counts: Ints) -> tuple[Ints, Ints]:
        """Return the bar of each part, and its share of the value."""
        bars, shares = np.zeros((2, int(counts.sum())), np.int64)
        number, filled = self.parts.values()
        every = int(self._every)
        running.bar_parts(of, values, every, counts, number, filled, bars, shares)
        return bars, shares


class _Rolling(RunningColumn):
    def __init__(self, of: Rolling, kind: Any) -> None:
        super().__init__({"count": (np.int64, 0), "values": (kind, of.n)})
        self._what, self._kind = of.what, kind

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        (came, ring), is_valid = self.parts.values(), valid.view(np.bool_)
        if self._what in ("min", "max"):
            most, largest = np.zeros_like(values), self._what == "max"
            running.rolling_extreme(of, values, valid, largest, came, ring, most)
            return Found(most, is_valid)
        divides, count = self._what == "mean", len(values)
        out, whole = np.zeros(count), np.zeros(count, np.int64)
        failed = np.zeros(count, np.uint8)
        running.rolling_sum(of, values, valid, divides, came, ring, out, whole, failed)
        is_whole = self._kind is np.int64 and not divides
        return Found(whole if is_whole else out, is_valid, failed.view(np.bool_), TOO_LONG)


class _RollingQuantile(RunningColumn):
    def __init__(self, of: RollingQuantile, kind: Any) -> None:
        super().__init__({"count": (np.int64, 0), "values": (kind, of.n)})
        self._share = of.numerator, of.denominator

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        (came, ring), count = self.parts.values(), len(values)
        lower, upper = np.zeros((2, count), values.dtype)
        rest = np.zeros(count, np.int64)
        running.rolling_ranked(of, values, valid, *self._share, came, ring, lower, upper, rest)
        return Found(interpolate(lower, upper, rest, self._share[1]), valid.view(np.bool_))


class _RollingSpread(RunningColumn):
    def __init__(self, of: RollingSpread, kind: Any) -> None:
        super().__init__({"count": (np.int64, 0), "values": (kind, of.n)})
        self._sums, self._squares, self._tally = ExactSums(), ExactSums(), Counts()
        for part in (self._sums, self._squares, self._tally):
            part.resize(1)
        self._read = SpreadRead(self._sums, self._squares, self._tally, of.ddof, of.root)

    def apply(self, of: RowsBySlot, values: Array, valid: Flags) -> Found:
        (came, ring), count = self.parts.values(), len(values)
        bits, found = np.zeros(count, np.int64), np.zeros(count, np.uint8)
        parts = self._sums, self._squares, self._tally, self._read
        running.rolling_spread(of, values, valid, *parts, came, ring, bits, found)
        return Found(bits.view(np.float64), found.view(np.bool_))


def running_column(of: Running, read: Field | None) -> RunningColumn:
    """Return the state of a function of a field, without slots."""
    bare = None if read is None else bare_type(type_of(read))
    kind: Any = np.float64 if isinstance(bare, Float) else np.int64
    match of:
        case Lag():
            return _Lag(of, np.bool_ if isinstance(bare, Bool) else kind)
        case Extreme():
            return _Extreme(of, kind)
        case Sum():
            return _Sum()
        case Ema():
            return _Ema(of)
        case Bar():
            every = of.every_of(Int64() if read is None else type_of(read))
            return (SplitBar if of.split else _Bar)(every, kind)
        case Rolling():
            return _Rolling(of, kind)
        case RollingQuantile():
            return _RollingQuantile(of, kind)
        case RollingSpread():
            return _RollingSpread(of, kind)
    raise TypeError(f"no loop computes {of.name}")
