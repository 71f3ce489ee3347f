"""The rows of a join of streams on their way behind it: those of its left side, each longer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns, Layout
from ripple.engine.kernels.stored import gathered
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_rows import IDENTITY
from ripple.engine.operators.join_state import JoinState, SideState
from ripple.engine.operators.joins.join_side import JoinSide, key_slots
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import PlacedRows
from ripple.model.keys.space import key_space

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.stored import Stored
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.engine.snapshots.held_saving import HeldSaving
    from ripple.model.pipeline.waiting_nodes import StreamJoin
    from ripple.model.schema.exported import Made

    Ints = npt.NDArray[np.int64]


class StreamJoinRows(PlacedRows, ABC):
    """The common base of all joins of streams. taken: the rows taken last."""

    _has_slots = False
    """Whether held rows have the slots of their keys."""

    def __init__(
        self, node: StreamJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput
    ) -> None:
        """Make an empty node.

        feeds: the inputs that each side waits for. by_input: finds the inputs of rows of the left
        side.
        """
        self.node: StreamJoin = node
        self.keys = key_space(node.key_of(0))
        keys = self.keys if self._has_slots else None
        self.sides = tuple(JoinSide(node, number, of, keys) for number, of in enumerate(feeds))
        self.left, self.right = self.sides
        self.lost = UncomputableRows(self.keys)
        """Rows that a step behind this node cannot take."""
        self.given = 0
        self._matched = self._unmatched = 0
        self.taken: Rows | None = None
        self._rest: list[tuple[Ints, Ints, Ints, Stored, Ints]] = []
        """Rows to take next, the first of them last: see ``_first``."""
        self._by_input, self._finals = by_input, node.finals
        self._schema = pa.schema(arrow_fields((*node.left_fields, *node.added)))
        self._layout = Layout(self._schema)
        self._mine = [field.name for field in node.left_fields]
        self._theirs = [field.name for field in node.right_fields]

    @property
    @abstractmethod
    def bounds_ns(self) -> tuple[int, int]:
        """Up to where each side lets rows follow."""

    @property
    @abstractmethod
    def _known_count(self) -> int:
        """The rows of the right side that are not held any more, but kept for later matches."""

    @property
    def watermark_ns(self) -> int:
        """No row below follows: the match of each was certain."""
        return min(self.bounds_ns)

    @property
    def state(self) -> JoinState:
        """Where each side is, and how many rows of the left side had a partner."""
        left, right = self.sides
        left_ns, right_ns = self.bounds_ns
        rows = right.held.count + self._known_count
        return JoinState(
            (
                SideState(left.reads, left.held.count, left.watermark_ns, left_ns < right_ns),
                SideState(right.reads, rows, right.watermark_ns, right_ns < left_ns),
            ),
            self._matched,
            self._unmatched + left.keyless,
        )

    def _count(self, alone: npt.NDArray[np.bool_], lost: int = 0) -> None:
        """Count rows of the left side: which have no partner, and how many others were lost."""
        unmatched = int(np.count_nonzero(alone))
        self._unmatched += unmatched
        self._matched += len(alone) - unmatched - lost

    def _first(self, left: Ints, times: Ints, places: Ints, rows: Stored, at: Ints) -> Rows:
        """Return such rows as ``_beside`` does: the first of them, if one batch cannot have all.

        The others are left for ``_next``. Until then both sides keep their rows.
        """
        self._rest.append((left, times, places, rows, at))
        return self._next()

    def _next(self) -> Rows:
        """Return the next remaining rows, by halves where they are too large for a batch."""
        left, times, places, rows, at = self._rest.pop()
        while True:
            try:
                return self._beside(left, times, places, rows, at)
            except OverflowError:
                half = len(left) // 2
                if not half:
                    raise
                rest = left[half:], times[half:], places[half:], rows, at[half:]
                self._rest.append(rest)
                left, times, places, at = left[:half], times[:half], places[:half], at[:half]

    def _beside(self, left: Ints, times: Ints, places: Ints, rows: Stored, at: Ints) -> Rows:
        """Return rows of the left side, each beside a row of the right side, and note identities.

        left: their numbers where they are held. rows: of the right side; at: where each one's is,
        -1 for nulls.
        """
        held = self.left.held.rows
        batch = gathered(
            self._schema,
            len(left),
            [(held, self._mine, left), (rows, self._theirs, at)],
        )
        return self._made(batch, left, times, places)

    def _made(self, batch: Made, left: Ints, times: Ints, places: Ints) -> Rows:
        """Return the rows of a batch, and note identities; left: their numbers on that side."""
        made = Rows(Columns(batch, self._layout), len(left), places)
        made.times_ns = times
        if self.node.finals:
            self.identities_taken = self.left.held.rows.words(IDENTITY, left)
        return made

    @property
    def waiting_count(self) -> int:
        """The rows of both sides that the watermarks have not passed."""
        return sum(side.held.count for side in self.sides)

    def slots_of(self, batch: pa.RecordBatch, side: JoinSide) -> Ints:
        """Return the slot of each row's key, -1 where it is null."""
        return key_slots(self.keys, batch, side.names)

    def only_origin(self, places: Ints) -> tuple[str, int, int] | None:
        """Return the input of all rows at these places, if it is one; see ``ByInput``."""
        return self._by_input.only(places)

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""
        taken = self.taken
        assert taken is not None
        keys = [taken.columns.arrow(name) for name in self.left.names]
        self.lose_some(keys, np.asarray(taken.times_ns), list(refused))

    def lose_some(self, keys: Sequence[pa.Array], times: Ints, bad: Sequence[RejectedRow]) -> None:
        """Count some of those rows that have these keys and times."""
        at = np.array([one.row for one in bad], np.int64)
        fields = [column.take(pa.array(at)).to_pylist() for column in keys]
        self.lost.lose(
            UncomputableRow(key, *Failure.of(one.step, one.reason))
            for key, one in zip(zip(*fields, times[at].tolist(), strict=True), bad, strict=True)
        )

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving, HeldSaving]:
        """Begin to dump the rows of each side that are held, or may still match."""
        return self.left.held.saving(), self.right.held.saving(self._known())

    def dump(self) -> tuple[pa.Table, pa.Table]:
        """Return the rows of each side that are held, or may still match."""
        left, right = self.savings()
        left.complete()
        right.complete()
        return left.table(), right.table()

    def _known(self) -> list[pa.RecordBatch]:
        """Return the rows of the right side that are not held any more, but may still match."""
        return []

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""
        for side, table in zip(self.sides, tables, strict=True):
            for batch in table.combine_chunks().to_batches():
                side.add(batch)
