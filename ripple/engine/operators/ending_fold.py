"""A fold over events without windows, with keys that end: each shows its newest session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ripple.engine.operators.windowed_fold import WindowedFold
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.window import watermark

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.keys.space import KeySpace
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class EndingFold(WindowedFold):
    """One row per key, over the events of the key's newest session, until that has ended.

    State is that of a fold over sessions, so that late events may join two. A row is removed when
    the watermark has reached the session's end, and comes back if a late event moves that; the
    state is freed at end + lateness. Invariant: ``_newest`` has per slot of a key the live session
    that began last, -1 for none.
    """

    def __init__(self, graph: Graph, fold: Fold) -> None:
        self._newest = np.empty(0, np.int64)
        self._now_ns = watermark.NONE
        super().__init__(graph, fold)
        # Steps on results read the fields of a key, of which a session's has those.
        self._states_of = cast("Column", SimpleNamespace(keys=self.pairs))

    def _shown_keys(self) -> KeySpace:
        return self.pairs.left

    def settle(self, watermark_ns: int) -> None:
        """Show the changed keys at a watermark, for which the end of inputs is no time."""
        self._now_ns = watermark_ns
        super().settle(watermark_ns)

    def show(self, slots: Ints) -> None:
        """Let the keys of sessions show their newest one, if it has not ended."""
        if not len(slots):
            return
        keys = self._follow(slots)
        newest = self._newest[keys]
        lives = newest >= 0
        lives[lives] = self.windows.ends_ns(newest[lives]) > self._now_ns
        self._withdraw_keys(keys[~lives])
        keys, newest = keys[lives], newest[lives]
        if not len(keys):
            return
        kept, values, valid, failed = self.result_rows.computed(
            self._states_of, self.states, newest, None
        )
        is_kept = np.isin(newest, kept)
        self.column.erase(keys[~is_kept])
        if len(kept):
            self.column.write(self._key_of(kept), values, valid)
        failed_keys = self._key_of(np.array([*failed], np.int64)).tolist()
        self.uncomputable.note(keys, dict(zip(failed_keys, failed.values(), strict=True)))

    def _follow(self, slots: Ints) -> Ints:
        """Note the newest sessions of changed ones; return their keys."""
        keys: Ints
        keys, starts = self.pairs.index.pairs_at(slots)
        self._newest = grown(self._newest, self.pairs.left.capacity, -1)
        order = np.lexsort((starts, keys))
        is_last = np.append(keys[order][1:] != keys[order][:-1], True)
        last = order[is_last]
        keys, starts, slots = keys[last], starts[last], slots[last]
        known = self._newest[keys]
        before = np.full(len(keys), watermark.NONE)
        before[known >= 0] = self.pairs.index.pairs_at(known[known >= 0])[1]
        later = starts >= before
        self._newest[keys[later]] = slots[later]
        return keys

    def _key_of(self, slots: Ints) -> Ints:
        return self.pairs.index.pairs_at(slots)[0]

    def _withdraw(self, slots: Ints) -> None:
        """Forget sessions that became part of others, which show themselves."""
        self._leave(slots)

    def _leave(self, slots: Ints) -> None:
        keys = self._key_of(slots)
        self._newest = grown(self._newest, self.pairs.left.capacity, -1)
        gone = keys[self._newest[keys] == slots]
        self._newest[gone] = -1

    def _withdraw_keys(self, keys: Ints) -> None:
        self.column.erase(keys)
        self.uncomputable.forget(keys)

    def expired(self) -> Ints:
        """Return no slots: rows are removed before their state is freed, and none is final."""
        return _NONE

    def free(self, expired: Ints) -> None:
        """Free sessions that are over or became part of others."""
        del expired
        self.frees = False
        over, self.over = self.over, []
        absorbed, self.absorbed = self.absorbed, []
        ended = np.concatenate((_NONE, *over))
        gone = np.concatenate((ended, *absorbed))
        if not len(gone):
            return
        self.ledger.free(gone)
        self._leave(ended)
        self.windows.forget(ended)
        self.states.clear(gone)
        self.space.release(gone)

    def load(self, table: Any, watermark_ns: int) -> None:
        """Load dumped state, and show the rows that were shown at that watermark."""
        self._now_ns = watermark_ns
        super().load(table, watermark_ns)
