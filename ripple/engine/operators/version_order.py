"""Records of a table with an earlier event time than the row of their key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.engine.snapshots.slot_arrays import order_by_slot
from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.kernels.keyed import Keyed
    from ripple.engine.kernels.states import States
    from ripple.engine.operators.rows import Rows
    from ripple.model.keys.space import KeySpace

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_NEVER = np.iinfo(np.int64).min


class VersionOrder:
    """Counts the records with an earlier event time than the record before them of their key.

    A table goes by offsets and its versions by event time, so that there they disagree. A record
    right after a deletion is not compared: there is no row, and in which state a deleted key is
    would depend on when it was reported. So the count is a function of the cut, as long as a key is
    in one input.
    """

    def __init__(self, keys: KeySpace, names: list[str], time: str, mark: str) -> None:
        """names: of the key's fields. time, mark: of the event time, and of a deletion's mark."""
        self.count = 0
        self._keys, self._names, self._time, self._mark = keys, names, time, mark
        self._newest_ns = _NEVER
        """No row has a later time."""

    def begin(self, slots: Ints, states: States) -> None:
        """Take note of restored rows."""
        if len(slots):
            self._newest_ns = int(self._stored_ns(slots, states).max())

    def look(self, rows: Rows, by_key: Keyed, states: States) -> None:
        """Count rows before their addition to ``states``, in the order of their offsets."""
        times, timed = _ints(rows, self._time, Kind.INT)
        if not len(times):
            return
        if not timed.all():
            times = np.where(timed, times, _NEVER)
        newest = np.maximum.accumulate(np.concatenate(([self._newest_ns], times)))
        self._newest_ns = int(newest[-1])
        suspects = np.flatnonzero((times < newest[:-1]) & timed)
        if not len(suspects):
            return
        known = self._keys.known([rows.columns.key(name) for name in self._names])
        slots = known if (known >= 0).all() else by_key.slots(rows)
        chosen = np.flatnonzero(np.isin(slots, slots[suspects]))
        self.count += self._went_back(
            slots[chosen], known[chosen], times[chosen], self._is_row(rows, chosen), states
        )

    def _went_back(
        self, slots: Ints, known: Ints, times: Ints, is_row: Mask, states: States
    ) -> int:
        """Return the number of records earlier than the previous row of their key.

        known: the slots before these records, -1 of a new key. is_row: False for deletions.
        """
        order = order_by_slot(slots)
        slots, known, times = slots[order], known[order], times[order]
        was_ns = np.concatenate(([_NEVER], np.where(is_row[order], times, _NEVER)[:-1]))
        first = np.concatenate(([True], slots[1:] != slots[:-1]))
        was_ns[first] = _NEVER
        stored = first & (known >= 0)
        was_ns[stored] = self._stored_ns(known[stored], states)
        return int(np.count_nonzero((times < was_ns) & (times != _NEVER)))

    def _is_row(self, rows: Rows, chosen: Ints) -> Mask:
        deleted, is_marked = _ints(rows, self._mark, Kind.BOOL)
        is_row: Mask = ~(deleted[chosen] & is_marked[chosen])
        return is_row

    def _stored_ns(self, slots: Ints, states: States) -> Ints:
        """Return the times of the rows at ``slots``, ``_NEVER`` where there is none."""
        _, results, _ = states.results(slots)
        time, mark = results[self._time], results[self._mark]
        gone = mark.values & (True if mark.valid is None else mark.valid)
        there = ~gone if time.valid is None else ~gone & time.valid
        return np.where(there, time.values, _NEVER)


def _ints(rows: Rows, name: str, kind: Kind) -> tuple[npt.NDArray[Any], Mask]:
    values: Values = numbers(rows.columns[name], kind)
    valid = np.ones(rows.count, np.bool_) if values.valid is None else values.valid
    return np.asarray(values.values), valid
