"""A node over one stream that holds its rows, which have keys, until they are final."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.operators.held_rows import PLACE, TIME, HeldRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import PlacedRows, settled_ns
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import key_space
from ripple.model.pipeline.nodes import Distinct, Scan, sides_of
from ripple.model.schema.exported import as_arrow
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.intake import Intake
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.waiting import ByInput, Gate, Mark, Origins
    from ripple.model.pipeline.nodes import Fields

    Ints = npt.NDArray[np.int64]

N = TypeVar("N", bound=Distinct | Scan)


class HeldByKey(PlacedRows, Generic[N]):
    """Holds rows until none on time can precede them.

    Invariants: every row held is at or above the last mark; ``_last`` has per key the greatest time
    below it, for those keys where it may still decide.
    """

    def __init__(self, node: N, fields: Fields, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node.

        fields: of its rows. feeds: the inputs that it waits for. by_input: finds the inputs of its
        rows.
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
        self._held = HeldRows(fields)
        self._last = np.empty(0, np.int64)

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each was given once it was final."""
        reached_ns = min(feed.watermark_ns for feed in self._feeds)
        return settled_ns(reached_ns, self.lateness_ns)

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

    def origins_of(self, places: Ints, identities: Ints | None, finals: str) -> Origins:
        """Yield where rows are from; these are all of records."""
        del identities, finals
        return self._by_input(places)

    @property
    def key_types(self) -> dict[str, pa.DataType]:
        """The types of the key's fields, as they are held."""
        return {name: self._held.schema.field(name).type for name in self._names}

    def _given(self, rows: Rows | None) -> Rows | None:
        """Note the rows that follow, and return them."""
        self._taken = rows
        self.given += 0 if rows is None else rows.count
        return rows

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

    def _final(self, mark_ns: int) -> tuple[Rows, Ints] | None:
        """Take out the rows below a mark, in their order, with the slots of their keys."""
        final = self._held.take_below(mark_ns)
        if final is None:
            return None
        columns = {field.name: final.column(field.name) for field in self._fields}
        rows = Rows(Columns(columns), final.num_rows, np.array(final.column(PLACE)))
        rows.times_ns = np.array(final.column(TIME))
        slots = self._by_key.slots(rows)
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
        return rows, slots

    def _free(self, slots: Ints) -> None:
        """Free keys that decide nothing any more."""
        self._last[slots] = watermark.NONE
        self._keys.release(slots)
        if len(slots):
            self._keys.trim()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._held.nbytes + self._last.nbytes + self._keys.index.nbytes
