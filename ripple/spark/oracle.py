"""The oracle: a pipeline's expected tables in exact Python types, without the engine.

It is the reference interpreter of the test kit, which shares no code with engine, windows and
aggregates: fractions and sorted lists, each value rounded once. Here each key has windows of its
own, so that the cost of an event depends on its key's open windows only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.model.batch import Batch
from ripple.testing.reference.graph import GraphReference
from ripple.testing.reference.interpreter import EventFold, Reference, Table, View, same_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ripple.model.batch import Marker
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.reference.steps import Row
    from ripple.testing.reference.windows import Event, Key

__all__ = ["GraphOracle", "Oracle", "Table", "oracle_of", "same_row"]


def oracle_of(plan: Plan, inputs: Sequence[str]) -> Oracle | GraphOracle:
    """Return the oracle of a plan over inputs."""
    is_line = plan.is_chain and len(inputs) == 1
    return Oracle(plan) if is_line else GraphOracle(plan, inputs)


class Oracle(Reference):
    """One input through a pipeline, slow and exact."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._by_key = _ByKey(plan.folds[0])
        self._fold = self._by_key  # type: ignore[assignment] # it has all methods used

    def take(self, _: str, entry: Batch | Marker) -> None:
        """Consume the next entry of the only input."""
        if isinstance(entry, Batch):
            self.apply_rows(entry.records)
            self.refuse(len(entry.rejected))
        else:
            self.advance(self.plan.source.name, entry.watermark_ns)

    def apply_rows(self, rows: pa.RecordBatch) -> None:
        """Consume records in their order."""
        for row in rows.to_pylist():
            self.apply(row)

    def refuse(self, count: int) -> None:
        """Count records rejected by the source, which affect neither results nor watermarks."""
        self.counts["consumed"] += count
        self.counts["dead_lettered"] += count

    def finish(self) -> dict[str, Table]:
        """End every window; return each output's rows by key, and window start if windowed."""
        self.close()
        self._by_key.advance(self.watermark_ns)
        return self.tables()


class GraphOracle(GraphReference):
    """Inputs through a pipeline with branches or several sources, slow and exact."""

    def __init__(self, plan: Plan, inputs: Sequence[str]) -> None:
        super().__init__(plan, inputs)
        # What waits for the watermark needs all rows of a window when it ends.
        self._by_key = [] if plan.waiting else [_ByKey(fold) for fold in plan.event_folds]
        if self._by_key:
            self._event_folds = self._by_key  # type: ignore[assignment] # all methods used

    def take(self, name: str, entry: Batch | Marker) -> None:
        """Consume the next entry of input ``name``."""
        if not isinstance(entry, Batch):
            self.skip(entry.next_offset, name)
            self.advance(name, entry.watermark_ns)
            return
        for offset, row in zip(entry.offsets().tolist(), entry.records.to_pylist(), strict=True):
            self.skip(offset, name)
            self.apply(row, name)
        self.skip(entry.next_offset, name)
        for what in ("consumed", "dead_lettered"):
            self.counts[what] += len(entry.rejected)

    def finish(self) -> dict[str, Table]:
        """End every window; return each output's rows by key, those of folds."""
        self.close()
        for fold in self._by_key:
            fold.advance(self._reached_by(fold.fold))
        return self.tables()

    def shown(self, output: str) -> list[Row]:
        """Return the events of an output, input by input."""
        return [row for rows in self.streams()[output].values() for row in rows]


class _ByKey:
    """A fold of events, in which a key sees the watermark at its own next event only.

    That is enough: between two events of a key, its windows' rows do not change.
    """

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.over: list[Any] = []
        """The windows that ended, for nodes that wait; there are none."""
        self._folds: dict[Key, tuple[EventFold, int | None]] = {}

    def step(self, event: Event | None, before_ns: int | None, after_ns: int | None) -> None:
        """Take an event, if there is one."""
        if event is None:
            return
        known = self._folds.get(event.key)
        if known is None:
            fold = EventFold(self.fold)
        else:
            fold, seen_ns = known
            fold.step(None, seen_ns, before_ns)
        fold.step(event, before_ns, after_ns)
        self._folds[event.key] = fold, after_ns

    def advance(self, watermark_ns: int | None) -> None:
        """Advance the watermark of all keys."""
        for key, (fold, seen_ns) in self._folds.items():
            fold.step(None, seen_ns, watermark_ns)
            self._folds[key] = fold, watermark_ns

    @property
    def view(self) -> View:
        """The rows of all keys."""
        whole = View()
        for fold, _ in self._folds.values():
            whole.rows.update(fold.view.rows)
            whole.failed.update(fold.view.failed)
        return whole


def all_differences(expected: Table, found: Table) -> list[Any]:
    """Return the keys with different rows, in text order."""
    keys = [
        key
        for key in dict.fromkeys([*expected, *found])
        for one, other in [(expected.get(key), found.get(key))]
        if one is None or other is None or not same_row(one, other)
    ]
    return sorted(keys, key=repr)


def first_difference(
    expected: Table, found: Table
) -> tuple[Any, dict[str, Any] | None, dict[str, Any] | None] | None:
    """Return the first key with different rows, in text order, and both rows."""
    for key in sorted({*expected, *found}, key=repr):
        one, other = expected.get(key), found.get(key)
        if one is None or other is None or not same_row(one, other):
            return key, one, other
    return None
