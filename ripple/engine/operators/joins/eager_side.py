"""One side of an interval join whose pairs are shown at once: its rows, and their partners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.passed_rows import Numbers, PassedRows

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_INT64 = np.iinfo(np.int64)
FIRST_NS, LAST_NS = int(_INT64.min), int(_INT64.max)


class EagerSide:
    """Rows by their numbers, with what an interval join needs to know of each.

    counts: of partners. records: of each row its record's slot among those of both sides. alone:
    the slot of the row without a partner, -1 before there was one.
    """

    def __init__(self, schema: pa.Schema, *, shows_alone: bool) -> None:
        """Have no rows. shows_alone: whether one without a partner is there, with nulls."""
        self.rows, self.order = PassedRows(schema), RowOrder()
        self.shows_alone = shows_alone
        self._counts, self._records, self._alone = Numbers(), Numbers(), Numbers()
        self._keys: list[list[pa.Array]] = []

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def counts(self) -> Ints:
        """The number of each row's partners."""
        return self._counts.values

    @property
    def records(self) -> Ints:
        """The slot of each row's record."""
        return self._records.values

    @property
    def alone(self) -> Ints:
        """The slot of each row without a partner, -1 for none."""
        return self._alone.values

    @property
    def wanted(self) -> npt.NDArray[np.bool_]:
        """Which rows are there without a partner."""
        return np.asarray(self.counts == 0) & self.shows_alone

    def add(self, rows: pa.RecordBatch, slots: Ints, records: Ints, key: list[pa.Array]) -> Ints:
        """Add rows; return their numbers. key: where they are from; slots: -1 for a null key."""
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        numbers = len(self.rows) + np.arange(rows.num_rows)
        self.rows.add(rows, slots, times)
        keyed = slots >= 0
        self.order.add(slots[keyed], times[keyed], places[keyed], numbers[keyed])
        self._counts.add(np.zeros(len(numbers), np.int64))
        self._records.add(records)
        self._alone.add(np.full(len(numbers), -1))
        self._add_key(key)
        return numbers

    def _add_key(self, key: list[pa.Array]) -> None:
        # Small parts are merged, so that all are copied a few times only.
        while self._keys and len(self._keys[-1][0]) <= 2 * len(key[0]):
            last = self._keys.pop()
            key = [pa.concat_arrays([a, b]) for a, b in zip(last, key, strict=True)]
        self._keys.append(key)

    def key_of(self, numbers: Ints) -> list[pa.Array]:
        """Return where rows are from; of -1 a text without letters and zeros."""
        if not self._keys:
            texts = pa.array([""] * len(numbers), pa.string())
            return [texts, *(pa.array(np.zeros_like(numbers)) for _ in range(2))]
        taken = pa.array(numbers, mask=numbers < 0)
        return [
            pa.chunked_array(list(parts)).take(taken).combine_chunks().fill_null(missing)
            for parts, missing in zip(zip(*self._keys, strict=True), ("", 0, 0), strict=True)
        ]

    def near(self, slots: Ints, times: Ints, lo_ns: int, hi_ns: int) -> tuple[Ints, Ints]:
        """Return where the rows of these slots near these times begin and end in ``order``."""
        begins = self.order.first_at(slots, moved(times, lo_ns))
        ends = self.order.end_at(slots, moved(times, hi_ns))
        begins[slots < 0] = ends[slots < 0] = 0
        return begins, np.maximum(begins, ends)

    def some(self, numbers: Ints, records: Ints) -> EagerSide:
        """Return some of the rows, numbered anew, with the slots of their records."""
        found = EagerSide(self.rows.schema, shows_alone=self.shows_alone)
        new = np.full(len(self), -1)
        new[numbers] = np.arange(len(numbers))
        found.rows, found.order = self.rows.some(numbers), self.order.renumbered(new)
        found._counts.add(self.counts[numbers])
        found._records.add(records)
        found._alone.add(self.alone[numbers])
        found._keys = [self.key_of(numbers)]
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = self._counts.nbytes + self._records.nbytes + self._alone.nbytes
        keys: int = sum(one.nbytes for part in self._keys for one in part)
        return self.rows.nbytes + self.order.nbytes + own + keys


def moved(times: Ints, span_ns: int) -> Ints:
    """Return times a span later, or earlier where it is negative; those beyond as the last one."""
    if span_ns >= 0:
        span = min(span_ns, LAST_NS)
        return np.where(times > LAST_NS - span, LAST_NS, times + span)
    span = min(-span_ns, LAST_NS)
    return np.where(times < FIRST_NS + span, FIRST_NS, times - span)
