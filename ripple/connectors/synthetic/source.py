"""Trades made by rule, any number of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.files.csv.format import TRADES
from ripple.connectors.record_shape import TIMESTAMP_NS_END
from ripple.core.errors import InputError
from ripple.model.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.connector import Reading

SYMBOLS = 100
FIRST_TIMESTAMP_NS = 1_000_000_000
INTERVAL_NS = 1_000_000
EVENTS_MAX = (TIMESTAMP_NS_END - FIRST_TIMESTAMP_NS) // INTERVAL_NS

# Periods without a common factor, so that a symbol's price and size change from trade to trade.
_PRICES = 101
_SIZES = 7


def open_source(path: str, reading: Reading) -> SyntheticSource:
    """Return the source of ``path`` events; raises InputError."""
    return SyntheticSource(_events(path), name=reading.name, batch_rows=reading.batch_rows)


def check(path: str) -> str:
    """Return a description of a URI's trades; raises InputError."""
    trades = SyntheticSource(_events(path))
    return f"made by rule, the same each time: trades, {trades.events}"


def _events(path: str) -> int:
    if not path.isascii() or not path.isdigit():
        raise InputError(f"'synthetic:{path}': after 'synthetic:' comes a number of events")
    return int(path)


class SyntheticSource:
    """``events`` trades over 100 symbols, 1 ms apart, the same on every run.

    Trade i is of symbol SYM0000 + i % 100 at 100.0 + (i % 101) / 10, its size 100 * (1 + i % 7),
    its time 1 s + i ms, its venue XNAS for even i and XNYS for odd. Repeating columns are slices
    of one pattern: making a batch costs one arange.
    """

    def __init__(self, events: int, *, name: str = "trades", batch_rows: int = 1000) -> None:
        if not 0 <= events <= EVENTS_MAX or batch_rows < 1:
            raise InputError(
                f"a synthetic source needs 0 to {EVENTS_MAX} events in batches of 1 or more, "
                f"not {events} in batches of {batch_rows}"
            )
        self.name = name
        self.events = events
        self._batch_rows = batch_rows
        self._given = 0

    @property
    def fraction_read(self) -> float | None:
        """How many of the events were given, 0.0 to 1.0."""
        return self._given / self.events if self.events else None

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the trades from ``from_offset`` on; see Source."""
        schema = TRADES.arrow_schema()
        # With their types: to find a type Arrow imports dateutil.
        longest = min(self._batch_rows, max(self.events, 1))
        symbols = _pattern(pa.array([f"SYM{i:04}" for i in range(SYMBOLS)], pa.string()), longest)
        # An integer over ten is the double nearest to the decimal; adding tenths is not.
        prices = _pattern(
            pa.array([(1000 + i) / 10 for i in range(_PRICES)], pa.float64()), longest
        )
        sizes = _pattern(pa.array([100 * (1 + i) for i in range(_SIZES)], pa.int64()), longest)
        venues = _pattern(pa.array(["XNAS", "XNYS"], pa.string()), longest)
        start = from_offset
        while start < self.events:
            stop = min(start + self._batch_rows - start % self._batch_rows, self.events)
            rows = stop - start
            times = FIRST_TIMESTAMP_NS + INTERVAL_NS * np.arange(start, stop, dtype=np.int64)
            columns = [
                symbols.slice(start % SYMBOLS, rows),
                prices.slice(start % _PRICES, rows),
                sizes.slice(start % _SIZES, rows),
                pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(times)]),
                venues.slice(start % 2, rows),
            ]
            self._given = stop
            yield Batch(pa.RecordBatch.from_arrays(columns, schema=schema), stop)
            start = stop

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _pattern(period: pa.Array, longest: int) -> pa.Array:
    """Repeat ``period`` so often that from any place in it ``longest`` values follow."""
    return pa.concat_arrays([period] * (longest // len(period) + 2))
