"""The changes of a fold's state since each snapshot, and the copying of a begun one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP_REMOVE
from ripple.engine.snapshots.saving import STATE_OP, Saving
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import KeySpace, key_columns

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class Dumps(Protocol):
    """State by slot that a ledger is kept of."""

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the key fields of slots, then columns that change only after a call here."""

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the rest, which is cheap: numbers and flags."""

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in order."""


class Ledger:
    """Notes every slot before its state changes.

    Snapshots are numbered from 1. Invariants: _changed[s] is the number of the last snapshot begun
    before the state at s changed last, -1 if it did not change since the first; _known[s] says
    whether the key at s may be in a snapshot that is built on; the keys that were and are no more
    are in ``_freed``, with the number of the last snapshot begun before.
    """

    def __init__(self, space: KeySpace, state: Dumps) -> None:
        self._space = space
        self._state = state
        self._number = 0
        self.marks = False
        """Whether a snapshot was begun, so that changes since may be asked for."""
        self._oldest = 0
        self._changed = np.empty(0, np.int64)
        self._known = np.empty(0, np.bool_)
        self._freed: list[tuple[int, pa.Table]] = []
        self._saving: Saving | None = None

    def can_tell_since(self, number: int | None) -> bool:
        """Whether all changes since that snapshot are known: none has been begun in full since."""
        return number is not None and 0 < self._oldest <= number

    def copy(self, slots: Ints) -> None:
        """Let the snapshot being made have the state at ``slots`` before it changes."""
        if self._saving is not None:
            self._saving.keep(slots)
            if self._saving.is_complete:
                self._saving = None

    def mark(self, slots: Ints) -> None:
        """Note that the state at ``slots`` has changed, before the next snapshot is begun.

        Apart from ``copy`` because a slot changes with every event, but is marked once.
        """
        if self._number:
            self._changed = grown(self._changed, self._space.capacity, -1)
            self._changed[slots] = self._number

    def change(self, slots: Ints) -> None:
        """Copy and mark ``slots`` before their state changes."""
        self.copy(slots)
        self.mark(slots)

    def free(self, slots: Ints) -> None:
        """Take notice that ``slots`` are about to be freed."""
        self.copy(slots)
        if self.marks:
            known = slots[slots < len(self._known)]
            known = known[self._known[known]]
            if len(known):
                self._known[known] = False
                keys = key_columns(self._space, known)
                op = pa.array(np.full(len(known), OP_REMOVE, np.int8))
                self._freed.append((self._number, pa.table({**keys, STATE_OP: op})))

    def begin(self, number: int, since: int | None) -> Saving:
        """Begin the snapshot with this number: whole, or of the changes since another."""
        slots = self._space.index.live_slots()
        chosen, freed = slots, None
        if since is None:
            self._oldest = number
            self._known = np.zeros(self._space.capacity, np.bool_)
            self._freed.clear()
        else:
            self._changed = grown(self._changed, self._space.capacity, -1)
            chosen = slots[self._changed[slots] >= since]
            self._freed = [one for one in self._freed if one[0] >= since]
            none = pa.table(
                {**key_columns(self._space, slots[:0]), STATE_OP: pa.array([], pa.int8())}
            )
            freed = pa.concat_tables([none, *(table for _, table in self._freed)])
            known = np.zeros(self._space.capacity, np.bool_)
            known[: len(self._known)] = self._known
            self._known = known
        self._known[slots] = True
        self._number, self.marks = number, True
        state = self._state
        marks = state.dump_marks(chosen)
        self._saving = Saving(chosen, state.dump_rows, marks, state.columns, freed)
        return self._saving

    @property
    def nbytes(self) -> int:
        """Bytes held, apart from a snapshot being made."""
        freed: int = sum(table.nbytes for _, table in self._freed)
        return self._changed.nbytes + self._known.nbytes + freed
