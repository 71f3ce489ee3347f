"""Rows beside a state by key, in their order: common to users' functions and running values."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_by_key import HeldByKey
from ripple.engine.operators.held_rows import TIME
from ripple.engine.snapshots.held_saving import Dumped
from ripple.model.pipeline.waiting_nodes import Scan
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.held_by_key import BySlot
    from ripple.engine.operators.waiting import ByInput
    from ripple.engine.snapshots.held_saving import HeldSaving

    Ints = npt.NDArray[np.int64]

S = TypeVar("S", bound=Scan)


class ScanRows(HeldByKey[S]):
    """Holds rows until they are final; then applies each to the state of its key, in order.

    Invariant: there is a state per live slot, after all rows of its key below the last mark.
    """

    def __init__(self, node: S, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, node.fields_in, feeds, by_input, node.ttl_ns)

    @abstractmethod
    def _end(self, slots: Ints) -> None:
        """Set the states of keys to the initial one."""

    @abstractmethod
    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        """Return the states of keys, with the fields of their table."""

    @abstractmethod
    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        """Load the states of keys."""

    def _begins(self, found: BySlot) -> npt.NDArray[np.bool_]:
        """Return a mask of rows with expired state: the last row of their key is too old."""
        if self.node.ttl_ns is None:
            return np.zeros(len(found.order), np.bool_)
        ends: npt.NDArray[np.bool_] = found.before <= found.times - self.node.ttl_ns
        begins: npt.NDArray[np.bool_] = ends & (found.before != watermark.NONE)
        return begins

    def _free(self, slots: Ints) -> None:
        self._end(slots)
        super()._free(slots)

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        if self.node.ttl_ns is not None and mark_ns == watermark.END:
            mark_ns = self.open_ns
        if self.node.ttl_ns is None or mark_ns == watermark.NONE:
            return np.zeros(len(slots), np.bool_)
        to_ns = max(mark_ns - self.node.ttl_ns, watermark.NONE)
        is_over: npt.NDArray[np.bool_] = self._last[slots] <= to_ns
        return is_over

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving, Dumped]:
        """Begin to dump the rows held; dump states of keys, each with the time of its last row."""
        slots = self._deciding()
        fields, states = self._state_columns(slots)
        schema = pa.schema([*arrow_fields(self.node.key), pa.field(TIME, pa.int64()), *fields])
        arrays = [*self._keys.arrays(slots), pa.array(self._last[slots]), *states]
        return self._held.saving(), Dumped(pa.Table.from_arrays(arrays, schema=schema))

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""
        held, states = tables
        slots = self._load(states, held)
        self._load_states(slots, states.columns[len(self._names) + 1 :])
