"""The rows of a stream that no row of their key precedes too closely, once that is certain."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import settled_ns
from ripple.engine.snapshots.internal import internal
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import key_space
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.engine.operators.waiting import Mark
    from ripple.model.pipeline.nodes import Distinct

    Ints = npt.NDArray[np.int64]
    ByInput = Callable[[Ints], Iterator[tuple[str, Ints, Ints, Ints]]]

TIME, PLACE = internal("time"), internal("place")
_MERGED_ROWS_MAX = 4096


class Held(NamedTuple):
    """Rows by (time, place), with these as columns after their own."""

    first_ns: int
    number: int
    rows: pa.RecordBatch

    @property
    def times(self) -> Ints:
        """The event time of each row, rising."""
        return np.asarray(self.rows.column(TIME))


class DistinctRows:
    """Holds rows until none on time can precede them; gives those that none precedes too closely.

    Invariants: every row held is at or above the last mark; ``_last`` has per key the greatest time
    below it, for those keys where it may still decide.
    """

    def __init__(self, node: Distinct, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node.

        feeds: what it waits for. by_input: yields the inputs with rows at some places: which rows,
        their offsets, and their indexes in their records.
        """
        self.node = node
        self._feeds = feeds
        self._by_input = by_input
        names = [field.name for field in node.key]
        self._keys = key_space(node.key)
        self._by_key = Keyed(self._keys, names)
        self.lost = UncomputableRows(self._keys)
        """Rows that a step behind this node cannot take."""
        self.given = 0
        self._taken: Rows | None = None
        self._names = names
        self._fields = arrow_fields(node.fields_out)
        own = [pa.field(TIME, pa.int64()), pa.field(PLACE, pa.int64())]
        self._schema = pa.schema([*self._fields, *own])
        self._held: list[Held] = []
        self._small: list[Held] = []
        self._numbers = 0
        self._last = np.empty(0, np.int64)
        self._swept_ns = watermark.NONE

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each was given once it was final."""
        reached_ns = min(feed.watermark_ns for feed in self._feeds)
        return settled_ns(reached_ns, self.node.lateness_ns)

    def admit(self, rows: Rows) -> None:
        """Reject the rows without a key, before any state changes."""
        rows.reject_nulls(self._names, self.node.name)

    def hold(self, rows: Rows) -> None:
        """Hold rows of one batch until they are final."""
        if not rows.count:
            return
        assert rows.offsets is not None
        own = [np.asarray(rows.times_ns, np.int64), rows.offsets]
        columns = [arrow_column(rows.columns[field.name], field.type) for field in self._fields]
        batch = pa.RecordBatch.from_arrays([*columns, *map(pa.array, own)], schema=self._schema)
        self._hold(_in_order(batch))

    def _hold(self, batch: pa.RecordBatch) -> None:
        """Hold rows by (time, place); few ones with others, so that parts are not too many."""
        while self._small and self._small[-1].rows.num_rows <= 2 * batch.num_rows:
            batch = _in_order(pa.concat_batches([self._small.pop().rows, batch]))
        self._numbers += 1
        one = Held(int(np.asarray(batch.column(TIME))[0]), self._numbers, batch)
        if batch.num_rows < _MERGED_ROWS_MAX:
            self._small.append(one)
        else:
            heappush(self._held, one)

    def take(self) -> Rows | None:
        """Return the rows that became final and stay, in their order; None if there are none."""
        mark_ns = self.watermark_ns
        if mark_ns == watermark.NONE:
            return None
        final = self._final(mark_ns)
        kept = None if final is None else self._decided(final)
        if self._swept_ns == watermark.NONE or mark_ns - self._swept_ns > self.node.within_ns:
            self._sweep(mark_ns)
        self._taken = kept
        self.given += 0 if kept is None else kept.count
        return kept

    def show(self, stream: StreamRows, name: str, rows: Rows) -> None:
        """Show some of the rows taken last, each by its input."""
        del name
        assert rows.offsets is not None
        for of, at, offsets, indexes in self._by_input(rows.offsets):
            some = rows if len(at) == rows.count else rows.branch()
            some.keep(np.isin(np.arange(rows.count), at))
            stream.add(of, some, offsets, indexes)

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""
        taken, bad = self._taken, list(refused)
        assert taken is not None
        at = pa.array([one.row for one in bad])
        fields = [taken.columns.arrow(name).take(at).to_pylist() for name in self._names]
        times = [int(np.asarray(taken.times_ns)[one.row]) for one in bad]
        keys = zip(*fields, times, strict=True)
        self.lost.lose(
            UncomputableRow(key, *Failure.of(one.step, one.reason))
            for key, one in zip(keys, bad, strict=True)
        )

    def _final(self, mark_ns: int) -> pa.RecordBatch | None:
        """Take the rows below a mark out of those that are held."""
        parts: list[pa.RecordBatch] = []
        while self._held and self._held[0].first_ns < mark_ns:
            one = heappop(self._held)
            parts.append(one.rows.slice(0, _cut(one, mark_ns)))
            self._leave(one, mark_ns, self._held)
        small, self._small = self._small, []
        for one in small:
            if one.first_ns < mark_ns:
                parts.append(one.rows.slice(0, _cut(one, mark_ns)))
            self._leave(one, mark_ns, None)
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else _in_order(pa.concat_batches(parts))

    def _leave(self, one: Held, mark_ns: int, heap: list[Held] | None) -> None:
        """Hold what is left of a part: in the heap, or with the small parts."""
        rest = one if one.first_ns >= mark_ns else None
        if rest is None:
            at = _cut(one, mark_ns)
            if at == one.rows.num_rows:
                return
            rest = Held(int(one.times[at]), one.number, one.rows.slice(at))
        if heap is None:
            self._small.append(rest)
        else:
            heappush(heap, rest)

    def _decided(self, final: pa.RecordBatch) -> Rows | None:
        """Return those of final rows, in their order, that no row precedes too closely."""
        count = final.num_rows
        columns = {field.name: final.column(field.name) for field in self._fields}
        rows = Rows(Columns(columns), count, np.array(final.column(PLACE)))
        rows.times_ns = times = np.array(final.column(TIME))
        slots = self._by_key.slots(rows)
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
        order = np.argsort(slots, kind="stable")
        by_slot, at = slots[order], times[order]
        is_first = np.ones(count, np.bool_)
        is_first[1:] = by_slot[1:] != by_slot[:-1]
        before = np.empty(count, np.int64)
        before[1:] = at[:-1]
        before[is_first] = self._last[by_slot[is_first]]
        stays = np.empty(count, np.bool_)
        stays[order] = (before == watermark.NONE) | (before < at - self.node.within_ns)
        is_last = np.ones(count, np.bool_)
        is_last[:-1] = is_first[1:]
        self._last[by_slot[is_last]] = at[is_last]
        rows.keep(stays)
        rows.origin = None
        return rows if rows.count else None

    def _sweep(self, mark_ns: int) -> None:
        """Free the keys that decide nothing any more: now and then, for it looks at all of them."""
        self._swept_ns = mark_ns
        slots = self._keys.index.live_slots()
        over = slots[self._is_over(slots, mark_ns)]
        self._last[over] = watermark.NONE
        self._keys.release(over)
        if len(over):
            self._keys.trim()

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        """Return which keys precede no row from a mark on too closely."""
        return self._last[slots] < max(mark_ns - self.node.within_ns, watermark.NONE)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held: int = sum(one.rows.nbytes for one in (*self._held, *self._small))
        return held + self._last.nbytes + self._keys.index.nbytes

    # --- snapshots ---

    def dump(self) -> pa.Table:
        """Return the rows held, and per key that still decides its time, without a place."""
        mark_ns = self.watermark_ns
        slots = self._keys.index.live_slots()
        if mark_ns != watermark.NONE:
            slots = slots[~self._is_over(slots, mark_ns)]
        arrays = dict(zip(self._names, self._keys.arrays(slots), strict=True))
        arrays[TIME] = pa.array(self._last[slots])
        nothing = (pa.nulls(len(slots), field.type) for field in self._schema)
        columns = [
            arrays.get(field.name, null) for field, null in zip(self._schema, nothing, strict=True)
        ]
        last = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        parts = [one.rows for one in sorted((*self._held, *self._small))]
        return pa.Table.from_batches([last, *parts], self._schema)

    def load(self, table: pa.Table) -> None:
        """Load dumped state."""
        is_held = table.column(PLACE).is_valid()
        last, held = table.filter(pa.array(~np.asarray(is_held))), table.filter(is_held)
        slots = self._keys.slots([last.column(name).combine_chunks() for name in self._names])
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
        self._last[slots] = last.column(TIME).to_numpy()
        if held.num_rows:
            (batch,) = held.combine_chunks().to_batches()
            self._hold(_in_order(batch))


def _cut(one: Held, mark_ns: int) -> int:
    """Return how many rows are below a mark."""
    return int(np.searchsorted(one.times, mark_ns))


def _in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows by (time, place)."""
    times, places = np.asarray(batch.column(TIME)), np.asarray(batch.column(PLACE))
    rise = times[1:] > times[:-1]
    if (rise | ((times[1:] == times[:-1]) & (places[1:] > places[:-1]))).all():
        return batch
    return batch.take(pa.array(np.lexsort((places, times))))
