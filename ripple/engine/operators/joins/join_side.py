"""One side of a join of streams: its rows until the join takes them, and up to where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.keyed import Keyed
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields, null_rows
from ripple.engine.operators.held_rows import HeldRows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.pipeline.waiting_nodes import IntervalJoin, sides_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.intake import Intake
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import Gate, Mark
    from ripple.model.keys.space import KeySpace
    from ripple.model.pipeline.waiting_nodes import StreamJoin
    from ripple.model.schema.exported import Made

    Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class JoinSide:
    """Holds the rows of one side of a join, without rows of a null key, which can match nothing.

    A row of the left side is held whole, one of the right side with its key first. Rows without a
    partner are needed of the sides that the join names by ``how``.
    """

    def __init__(
        self, node: StreamJoin, number: int, feeds: Sequence[Mark], keys: KeySpace | None = None
    ) -> None:
        """Make an empty side: 0 the left one, 1 the right one.

        feeds: the inputs it waits for. keys: the keys of held rows' slots, from the beginning.
        """
        self.reads, self.lateness_ns, self.key = sides_of(node)[number]
        self.reader = f"{node.name}/{number}"
        self.names = [field.name for field in self.key]
        self._feeds = feeds
        self.mark: Mark = feeds[0] if len(feeds) == 1 else self
        """Its watermark is read here: its only feed, or itself."""
        self._needs_key = node.how not in ("full", "left" if number == 0 else "right")
        mark = () if node.deleted is None else (node.deleted,)
        fields = node.left_fields if number == 0 else (*self.key, *node.right_fields, *mark)
        has_own = number == 0 or node.how in ("right", "full")
        """Whether rows of the result have their identities from this side."""
        identities = bool(node.finals) and has_own
        if number == 1 and isinstance(node, IntervalJoin):
            identities = identities or bool(node.right_finals)  # for the key of a pair
        has_whole_rows = number == 0 or isinstance(node, IntervalJoin)
        by_slot = keys if self._needs_key and not has_whole_rows else None
        self.held = HeldRows(fields, identities=identities, slots=keys is not None, keys=by_slot)
        self._keys = keys
        self._keyed = None if keys is None else Keyed(keys, self.names)
        self.keyless = 0
        """The rows left out since the partition was restored here."""

    @property
    def watermark_ns(self) -> int:
        """No row of this side on time is missing below it."""
        return min(feed.watermark_ns for feed in self._feeds)

    @property
    def settled_ns(self) -> int:
        """No row of this side comes any more below it."""
        return settled_ns(self.watermark_ns, self.lateness_ns)

    def admit(self, rows: Rows) -> None:
        """Take all rows: one without a key only matches nothing."""

    def hold(self, rows: Rows, identities: Ints | None = None) -> None:
        """Hold rows of one batch; identities: where their places do not tell them."""
        nullable = rows.columns.nullable(self.names)
        if self._needs_key:
            for name in nullable:
                valid = rows.columns.valid(name)
                if valid is not None and not valid.all():
                    identities = None if identities is None else identities[valid]
                    self.keyless += rows.count - int(np.count_nonzero(valid))
                    rows.keep(valid)
        if not rows.count:
            return
        self.held.hold(rows, identities, self._slots_of(rows, nullable))

    def intake(self, gate: Gate) -> Intake | None:
        """Return the intake of whole batches of a source; see HeldRows."""
        index = None if self._keys is None else self._keys.index
        return self.held.intake(gate, self.names, index, self.lateness_ns)

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold rows of a snapshot."""
        slots = _NONE if self._keys is None else key_slots(self._keys, batch, self.names)
        self.held.add(batch, slots)

    def _slots_of(self, rows: Rows, nullable: Sequence[str]) -> Ints:
        """Return the slots of the keys of rows; empty without ``keys``."""
        if self._keys is None or self._keyed is None:
            return _NONE
        valid = (rows.columns.valid(name) for name in nullable)
        if all(one is None or one.all() for one in valid):
            return self._keyed.slots(rows)
        columns = [arrow_column(rows.columns[one.name], one.type) for one in arrow_fields(self.key)]
        keys = pa.RecordBatch.from_arrays(columns, self.names)
        return key_slots(self._keys, keys, self.names)

    def take_news(self) -> pa.RecordBatch | Made | None:
        """Return the rows held since the last call; see HeldRows."""
        return self.held.take_news()


def key_slots(keys: KeySpace, batch: pa.RecordBatch, names: Sequence[str]) -> Ints:
    """Return the slot of each row's key among ``keys``, a new one for a new key, -1 for a null."""
    columns = [batch.column(name) for name in names]
    nulls = null_rows(columns)
    if nulls is not None:
        columns = [column.filter(pa.array(~nulls)) for column in columns]
    slots = keys.slots(columns)
    keys.adopt(slots)
    if nulls is None:
        return slots
    found = np.full(batch.num_rows, -1, np.int64)
    found[~nulls] = slots
    return found
