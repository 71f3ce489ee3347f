"""A node over one stream that holds its rows, which have keys, until they are final."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.operators.held_rows import IDENTITY, PLACE, TIME, HeldRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import PlacedRows, settled_ns
from ripple.engine.snapshots.slot_arrays import grown, order_by_slot
from ripple.model.keys.space import key_space
from ripple.model.pipeline.waiting_nodes import Distinct, Scan, sides_of
from ripple.model.schema.exported import as_arrow
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.intake import Intake
    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.waiting import ByInput, Gate
    from ripple.model.pipeline.nodes import Fields

    Ints = npt.NDArray[np.int64]

N = TypeVar("N", bound=Distinct | Scan)


class BySlot(NamedTuple):
    """Rows by slot, in a slot in their former order.

    order: the rows, with ``slots`` and ``times``. before: the time of the row of their key before
    each, or ``watermark.NONE``.
    """

    order: Ints
    slots: Ints
    times: Ints
    before: Ints


class HeldByKey(PlacedRows, Generic[N], ABC):
    """Holds rows until none on time can precede them.

    Invariants: every row held is at or above the last mark; ``_last`` has per key the greatest time
    below it, for those keys where it may still decide.
    """

    def __init__(
        self,
        node: N,
        fields: Fields,
        feeds: Feeds,
        by_input: ByInput,
        span_ns: int | None,
    ) -> None:
        """Make an empty node.

        fields: of its rows. feeds: the inputs that it waits for. by_input: finds the inputs of its
        rows. span_ns: how long a key decides after its last row; None for ever.
        """
        self.node: N = node
        self.sides: Sequence[HeldByKey[N]] = (self,)
        self.reader = node.name
        self.reads, self.lateness_ns, self.key = sides_of(node)[0]
        self._feeds = feeds
        self._by_input = by_input
        self._names = [field.name for field in node.key]
        self._keys = key_space(node.key)
        self._by_key = Keyed(self._keys, self._names)
        self.lost = UncomputableRows(self._keys)
        """Rows that this node, or a step behind it, cannot take."""
        self.given = 0
        self._taken: Rows | None = None
        self._fields = fields
        self._finals = node.finals if isinstance(node, Scan) else ""
        self._held = HeldRows(fields, identities=bool(self._finals))
        self._due: list[pa.RecordBatch] = []
        """Final rows to take next, the first of them last."""
        self._last = np.empty(0, np.int64)
        self._span_ns = span_ns
        self._swept_ns = watermark.NONE

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each was given once it was final."""
        return settled_ns(self._feeds.watermark_ns, self.lateness_ns)

    @property
    def reached_ns(self) -> int:
        """The watermark of its inputs, whose end is no time; see Feeds."""
        return self._feeds.open_ns

    @property
    def open_ns(self) -> int:
        """As ``watermark_ns``, where the end of inputs is no time."""
        return settled_ns(self.reached_ns, self.lateness_ns)

    @property
    def waiting_count(self) -> int:
        """The rows that are not final yet."""
        return self._held.count

    @property
    def state(self) -> None:
        """None: it is no join."""

    def admit(self, rows: Rows) -> None:
        """Reject the rows without a key, before any state changes."""
        rows.reject_nulls(self._names, self.node.name)

    def hold(self, rows: Rows, identities: Ints | None = None) -> None:
        """Hold rows of one batch until they are final."""
        self._held.hold(rows, identities)

    def intake(self, gate: Gate) -> Intake | None:
        """Return the intake of whole batches of a source; see HeldRows."""
        return self._held.intake(gate, self._names, None, self.lateness_ns)

    def held_rows(self) -> list[pa.RecordBatch]:
        """Return the rows held, in their order."""
        return self._held.parts()

    def take_news(self) -> pa.RecordBatch | None:
        """Return the rows held since the last call; see HeldRows."""
        news = self._held.take_news()
        return None if news is None else as_arrow(news)

    @property
    def key_types(self) -> dict[str, pa.DataType]:
        """The stored types of the key's fields."""
        return {name: self._held.schema.field(name).type for name in self._names}

    def take(self) -> Rows | None:
        """Return the rows made of new final rows, in order; None if there are none."""
        mark_ns = self.watermark_ns
        if mark_ns == watermark.NONE:
            return None
        made = self._taken = None
        if not self._due:
            self._due = self._held.take_batches(mark_ns)[::-1]
        while self._due and made is None:
            made = self._taken = self._made(*self._final(self._due.pop()))
        if made is None:
            made = self._taken = self._made_by(mark_ns)
        self.given += 0 if made is None else made.count
        if (
            not self._due
            and self._span_ns is not None
            and (self._swept_ns == watermark.NONE or mark_ns - self._swept_ns > self._span_ns)
        ):
            self._sweep(mark_ns)
        return made

    def _as_taken(self, rows: Rows) -> Rows | None:
        """Let some of the final rows be those taken; return them, None for none."""
        if self.identities_taken is not None:
            self.identities_taken = self.identities_taken[rows.origins]
        rows.origin = None
        return rows if rows.count else None

    @abstractmethod
    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        """Take final rows, in their order; return the rows made of them, None for none."""

    def _made_by(self, mark_ns: int) -> Rows | None:
        """Return further rows that follow from a mark, after all final rows were taken: none."""
        del mark_ns
        return None

    @abstractmethod
    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        """Return which keys decide nothing about any row from a mark on."""

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""
        assert self._taken is not None
        self._lose(self._taken, refused)

    def _lose(self, rows: Rows, refused: Iterable[RejectedRow]) -> None:
        """Count some rows, by their numbers, and name the first."""
        bad = list(refused)
        at = pa.array([one.row for one in bad], pa.int64())
        fields = [rows.columns.arrow(name).take(at).to_pylist() for name in self._names]
        times = [int(np.asarray(rows.times_ns)[one.row]) for one in bad]
        keys = zip(*fields, times, strict=True)
        self.lost.lose(
            UncomputableRow(key, *Failure.of(one.step, one.reason))
            for key, one in zip(keys, bad, strict=True)
        )

    def _final(self, final: pa.RecordBatch) -> tuple[Rows, Ints]:
        """Return final rows with the slots of their keys."""
        columns = {field.name: final.column(field.name) for field in self._fields}
        rows = Rows(Columns(columns), final.num_rows, np.array(final.column(PLACE)))
        rows.times_ns = np.array(final.column(TIME))
        if self._finals:
            self.identities_taken = np.array(final.column(IDENTITY))
        slots = self._by_key.slots(rows)
        self._keys.adopt(slots)
        self._grow(self._keys.capacity)
        return rows, slots

    def _by_slot(self, slots: Ints, times: Ints) -> BySlot:
        """Return rows by slot, and note the time of the last row of each key."""
        order = order_by_slot(slots)
        by_slot, at = slots[order], times[order]
        is_first = np.ones(len(slots), np.bool_)
        is_first[1:] = by_slot[1:] != by_slot[:-1]
        is_last = np.ones(len(slots), np.bool_)
        is_last[:-1] = is_first[1:]
        before = np.empty(len(slots), np.int64)
        before[1:] = at[:-1]
        before[is_first] = self._last[by_slot[is_first]]
        self._last[by_slot[is_last]] = at[is_last]
        return BySlot(order, by_slot, at, before)

    def _grow(self, capacity: int) -> None:
        """Have room for each slot below ``capacity``."""
        self._last = grown(self._last, capacity, watermark.NONE)

    def _sweep(self, mark_ns: int) -> None:
        """Free the keys that decide nothing any more: now and then, for it looks at all of them."""
        self._swept_ns = mark_ns
        slots = self._keys.index.live_slots()
        self._free(slots[self._is_over(slots, mark_ns)])

    def _free(self, slots: Ints) -> None:
        """Free keys that decide nothing any more."""
        self._last[slots] = watermark.NONE
        self._keys.release(slots)
        if len(slots):
            self._keys.trim()

    def _deciding(self) -> Ints:
        """Return the keys that may still decide."""
        slots = self._keys.index.live_slots()
        return slots[~self._is_over(slots, self.watermark_ns)]

    def _load(self, keys: pa.Table, held: pa.Table) -> Ints:
        """Load keys, each with the time of its last row, and rows held; return the keys' slots."""
        slots = self._keys.slots([keys.column(name).combine_chunks() for name in self._names])
        self._keys.adopt(slots)
        self._grow(self._keys.capacity)
        self._last[slots] = keys.column(TIME).to_numpy()
        for batch in held.combine_chunks().to_batches():
            self._held.add(batch)
        return slots

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._held.nbytes + self._last.nbytes + self._keys.index.nbytes
