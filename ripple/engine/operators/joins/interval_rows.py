"""The rows of an interval join: each of the left side with its near ones of the right."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns, Layout
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.kernels.runs import paired, records_of
from ripple.engine.kernels.stored import gathered
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_rows import PLACE, SLOT, TIME
from ripple.engine.operators.joins import pieces
from ripple.engine.operators.joins.near_rows import NearRows
from ripple.engine.operators.joins.stream_join_rows import StreamJoinRows
from ripple.engine.operators.rows import RejectedRow, Rows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.schema.types import Bool, bare_type
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.pipeline.waiting_nodes import IntervalJoin

    Ints = npt.NDArray[np.int64]

TOO_MANY = f"more than {FLAT_ROWS_MAX} rows would be made of the record"


L = TypeVar("L")
D = TypeVar("D", bound="Due[Any]")


class PiecewiseRows(StreamJoinRows, Generic[D]):
    """Gives the pairs of settled rows in pieces: ``_due`` are the rows left; see ``_settle``."""

    def __init__(
        self, node: IntervalJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput
    ) -> None:
        """Make an empty node; see StreamJoinRows."""
        super().__init__(node, feeds, by_input)
        self._due: D | None = None

    def take(self) -> Rows | None:
        """Return the next rows of the settled ones; None if there are no more."""
        self.taken = None
        if self._rest:
            self.taken = self._next()
        elif self._due is None:
            self._settle()
        while self._due is not None and self.taken is None:
            self.taken = self._paired(self._due)
            self._due = None if self._due.is_over else self._due
        if self._due is None and not self._rest:
            self._end()
        self.given += 0 if self.taken is None else self.taken.count
        return self.taken

    @abstractmethod
    def _settle(self) -> None:
        """Let settled rows be due, if there are any."""

    @abstractmethod
    def _paired(self, due: D) -> Rows | None:
        """Return the next piece of those due, None for one without pairs."""

    @abstractmethod
    def _end(self) -> None:
        """Note that all settled rows were given, and free unneeded rows, now and then."""


class IntervalRows(PiecewiseRows["Due[Ints]"]):
    """Holds rows of both sides until no row on time can join them; gives the pairs of the left.

    A left row is settled once neither it nor a partner of it can come any more. A right row is
    kept until each left row that could have it for a partner is settled: by the marks of both
    sides, since a left row that waits for its later partners still needs the earlier ones. Pairs
    are made in pieces, of whole records.

    Invariants: every left row held is at or above the last mark; ``_near`` has the right rows below
    the mark of their side, from ``_freed_ns`` on: that is ``_free_ns`` when rows were taken last. A
    key of one field has its slot from the arrival of its first row on, others from their use on.
    """

    node: IntervalJoin

    def __init__(
        self, node: IntervalJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput
    ) -> None:
        """Make an empty node; see StreamJoinRows."""
        key = node.key_of(0)
        # Of such a key an intake finds the slots by itself.
        self._has_slots = len(key) == 1 and not isinstance(bare_type(key[0].type), Bool)
        super().__init__(node, feeds, by_input)
        self._near = NearRows(self.right.held.schema)
        self._freed_ns = watermark.NONE
        self._marks_ns: tuple[int, int] | None = None
        self._frees_ns = watermark.NONE
        self._has_ended = True
        self._keyed = [Keyed(self.keys, side.names) for side in self.sides]
        self._key_schemas = [pa.schema(arrow_fields(side.key)) for side in self.sides]

    @property
    def bounds_ns(self) -> tuple[int, int]:
        """Up to where each side lets rows follow."""
        return self.left.settled_ns, settled_ns(self.right.settled_ns, self.node.hi_ns)

    @property
    def _known_count(self) -> int:
        return self._near.count

    @property
    def _free_ns(self) -> int:
        """No unsettled left row has a partner below."""
        return settled_ns(self.watermark_ns, -self.node.lo_ns)

    def _settle(self) -> None:
        """Know the right rows below the mark of their side; let settled left rows be due."""
        left_ns, right_ns = self.left.watermark_ns, self.right.watermark_ns
        if (left_ns, right_ns) == self._marks_ns:
            return  # no row waits below the same marks
        self._marks_ns, self._has_ended = (left_ns, right_ns), False
        left_ns = settled_ns(left_ns, self.left.lateness_ns)
        right_ns = settled_ns(right_ns, self.right.lateness_ns)
        held = self.right.held
        right = held.take_numbers(right_ns)
        if len(right):
            slots, capacity = self._slots(1, right), self.keys.capacity
            self._near.add_some(held.rows, right, slots, capacity, self._freed_ns)
            held.forget()
        watermark_ns = min(left_ns, settled_ns(right_ns, self.node.hi_ns))
        self._frees_ns = settled_ns(watermark_ns, -self.node.lo_ns)
        left = self.left.held.take_numbers(watermark_ns)
        if len(left):
            times, places = (self.left.held.rows.words(name, left) for name in (TIME, PLACE))
            self._due = Due(left, self._slots(0, left), times, places)

    def _slots(self, number: int, numbers: Ints) -> Ints:
        """Return the slots of the keys of rows that a side holds, -1 for a null."""
        if self._has_slots:
            return self.sides[number].held.rows.words(SLOT, numbers)
        side, schema = self.sides[number], self._key_schemas[number]
        keys = gathered(schema, len(numbers), [(side.held.rows, side.names, numbers)])
        columns = Columns(keys, Layout(schema))
        if columns.nullable(side.names):
            return self.slots_of(keys.arrow(), side)
        return self._keyed[number].slots(Rows(columns, len(numbers)))

    def _paired(self, due: Due[Ints]) -> Rows | None:
        """Return the next left rows with their partners, in their order."""
        node = self.node
        here, counts, numbers = due.match(self._near, node)
        left, times = due.left[here], due.times[here]
        least = np.ones(len(counts), np.int64) if node.how == "left" else None
        at, theirs, places, rows_lost, alone = paired(
            due.records[here],
            due.places[here],
            counts,
            numbers,
            FLAT_ROWS_MAX,
            least,
            self._near.first,
        )
        self._unmatched += alone
        self._matched += len(counts) - alone - len(rows_lost)
        if len(rows_lost):
            held = self.left.held.rows
            keys = gathered(self._key_schemas[0], len(left), [(held, self.left.names, left)])
            lost = [RejectedRow(row, node.name, TOO_MANY) for row in rows_lost.tolist()]
            self.lose_some(keys.arrow().columns, times, lost)
        if not len(at):
            return None
        return self._first(left[at], times[at], places, self._near.rows, theirs)

    def _end(self) -> None:
        if self._has_ended:
            return
        self._freed_ns, self._has_ended = self._frees_ns, True
        self.left.held.forget()
        if self._near.has_grown(len(self.keys.index) + self.waiting_count):
            self._free()

    def _free(self) -> None:
        """Free rows and keys that nothing needs: now and then, since it looks at all that wait."""
        slots = self.keys.index.live_slots()
        empty = self._near.free_below(self._freed_ns, slots, self.waiting_count)
        if self._has_slots and len(empty):
            is_used = np.zeros(self.keys.capacity, np.bool_)
            for side in self.sides:
                waiting = side.held.rows.words(SLOT, side.held.waiting.numbers())
                is_used[waiting[waiting >= 0]] = True
            empty = empty[~is_used[empty]]
        if len(empty):
            self.keys.release(empty)
            self.keys.trim()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = sum(side.held.nbytes for side in self.sides)
        return held + self._near.nbytes + self.keys.index.nbytes

    # --- snapshots ---

    def _known(self) -> list[pa.RecordBatch]:
        return self._near.parts(self._free_ns)


class Due(Generic[L]):
    """Rows by (time, record), for the pairs of the left ones among them.

    records: rising numbers of their records.
    """

    def __init__(self, left: L, slots: Ints, times: Ints, places: Ints) -> None:
        """left: the left rows. slots: of the keys of all, -1 for a row that makes no pairs."""
        self.left = left
        self.times, self.places = times, places
        self._slots = slots
        self.at = 0
        """How many of them had their turn."""
        self.records = records_of(times, places, FLAT_ROWS_MAX)

    @property
    def is_over(self) -> bool:
        """Whether all of them had their turn."""
        return self.at == len(self.times)

    def match(
        self, near: NearRows, node: IntervalJoin, most: int | None = None
    ) -> tuple[slice, Ints, Ints]:
        """Return the next rows, the number of partners of each, and the partners' numbers.

        most: with so many rows, or partners, no other record begins.
        """
        rest, room = slice(self.at, None), pieces.PAIRS_AT_ONCE
        if most is not None:
            last = self.records[min(self.at + most, len(self.records)) - 1]
            rest = slice(self.at, int(np.searchsorted(self.records, last, side="right")))
            room = most
        counts, numbers = near.match(
            self._slots[rest],
            self.times[rest],
            node.lo_ns,
            node.hi_ns,
            FLAT_ROWS_MAX,
            self.records[rest],
            room,
        )
        self.at += len(counts)
        return slice(rest.start, self.at), counts, numbers
