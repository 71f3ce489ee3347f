"""The last rows of each key of a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.stored import Stored, gathered
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.passed_rows import Parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from ripple.model.schema.exported import Made
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]

_PASSED_ROWS_MAX = 1024
_NONE = np.empty(0, np.int64)


class Spans(NamedTuple):
    """For each new row the rows of its window: those from ``first`` to ``last`` of ``numbers``."""

    numbers: Ints
    first: Ints
    last: Ints

    def cut(self, most: int) -> Iterator[tuple[int, int, Ints, Ints]]:
        """Yield pieces of the new rows with up to ``most`` rows in their windows, if one has fewer.

        Of each: which new rows, from and to; of each row of their windows its new row, from 0 on,
        and its place in ``numbers``.
        """
        sizes = self.last - self.first + 1
        ends = np.cumsum(sizes)
        begin = 0
        while begin < len(sizes):
            before = int(ends[begin]) - int(sizes[begin])
            end = max(int(np.searchsorted(ends, before + most, "right")), begin + 1)
            size, to = sizes[begin:end], ends[begin:end] - before
            of = np.repeat(np.arange(end - begin), size)
            at = np.arange(int(to[-1])) + np.repeat(self.first[begin:end] - (to - size), size)
            yield begin, end, of, at
            begin = end


class LastRows:
    """The last rows of each key, by slot, in their order.

    Invariant: ``_last`` has per slot with rows up to ``most`` of them, by their numbers in
    ``_rows``, which may have others that no slot needs any more.
    """

    def __init__(self, fields: Sequence[Field], most: int) -> None:
        """Have no rows. fields: of the rows to come. most: of a key."""
        own = [pa.field(TIME, pa.int64()), pa.field(PLACE, pa.int64())]
        self.schema = pa.schema([*arrow_fields(fields), *own])
        self._rows = Stored(self.schema, Parts)
        self._last: dict[int, Ints] = {}
        self._most = most

    def add(self, batch: pa.RecordBatch, slots: Ints, begins: npt.NDArray[np.bool_]) -> Spans:
        """Add rows, sorted by their slots; return the window of each: up to one row more.

        begins: which of them begin anew, without the rows of their slot before.
        """
        first = self._rows.count
        self._rows.add(list(batch.columns), batch.num_rows)
        new = np.arange(first, self._rows.count)
        starts = np.flatnonzero(np.append(True, slots[1:] != slots[:-1])[: len(slots)])
        ends = np.append(starts[1:], len(slots))
        sizes = ends - starts
        of = slots[starts].tolist()
        known = [self._last.get(slot, _NONE) for slot in of]
        counts = np.fromiter(map(len, known), np.int64, len(known))
        # Of each slot the known rows come first.
        begin = np.cumsum(counts + sizes) - counts - sizes
        last = np.arange(len(slots)) + np.repeat(begin + counts - starts, sizes)
        numbers = np.empty(len(slots) + int(counts.sum()), np.int64)
        numbers[last] = new
        at = np.repeat(begin - np.cumsum(counts) + counts, counts)
        numbers[np.arange(len(at)) + at] = np.concatenate([_NONE, *known])
        lowest = np.repeat(begin, sizes)
        lowest = np.maximum(lowest, np.maximum.accumulate(np.where(begins, last, 0)))
        spans = Spans(numbers, np.maximum(lowest, last - self._most), last)
        to = last[ends - 1] + 1
        since = np.maximum(lowest[ends - 1], to - self._most)
        for slot, first, end in zip(of, since.tolist(), to.tolist(), strict=True):
            self._last[slot] = numbers[first:end]
        return spans

    def made(self, numbers: Ints) -> Made:
        """Return rows by their numbers."""
        return gathered(self.schema, len(numbers), [(self._rows, self.schema.names, numbers)])

    def forget(self) -> None:
        """Free the rows that no slot needs, if they are many; numbers change."""
        if self._rows.count > 2 * self._most * len(self._last) + _PASSED_ROWS_MAX:
            self._keep()

    def _keep(self) -> None:
        kept = np.sort(np.concatenate([_NONE, *self._last.values()]))
        self._rows.keep(kept)
        for slot, numbers in self._last.items():
            self._last[slot] = np.searchsorted(kept, numbers)

    def end(self, slots: Sequence[int]) -> None:
        """Let slots begin anew."""
        for slot in slots:
            self._last.pop(slot, None)

    def dump(self, slots: Sequence[int]) -> list[pa.Array]:
        """Return the rows of slots, a column of lists for each of their fields."""
        each = [self._last.get(slot, _NONE) for slot in slots]
        offsets = np.cumsum([0, *map(len, each)]).astype(np.int32)
        batch = self.made(np.concatenate([_NONE, *each])).arrow()
        return [pa.ListArray.from_arrays(pa.array(offsets), column) for column in batch.columns]

    def load(self, slots: Sequence[int], columns: Sequence[pa.ListArray]) -> None:
        """Load the rows of slots."""
        first = self._rows.count
        flat = [column.flatten() for column in columns]
        kinds = zip(flat, self.schema.types, strict=True)
        self._rows.add([column.cast(kind) for column, kind in kinds], len(flat[0]))
        counts = np.asarray(columns[0].value_lengths(), np.int64)
        ends = first + np.cumsum(counts)
        for slot, begin, end in zip(slots, (ends - counts).tolist(), ends.tolist(), strict=True):
            self._last[slot] = np.arange(begin, end)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 200 more of them by slot."""
        return self._rows.nbytes + sum(200 + one.nbytes for one in self._last.values())
