"""Engines that are wrong on purpose: each check must find those that it is there for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ripple.engine.machine import Engine
from ripple.engine.machine.graph_engine import GraphEngine
from ripple.model.schema.exported import Part, as_arrow

Rows = pa.RecordBatch | Part


class Forgetting:
    """Comes back without the state of its first key."""

    @classmethod
    def restore(cls, plan: Any, snapshot: Any, **rest: Any) -> Any:
        engine = super().restore(plan, snapshot, **rest)  # type: ignore[misc] # an engine's
        engine.skips = 1
        return engine

    def apply(self, source: str, batch: Rows, next_offset: int, *rest: Any, **named: Any) -> Any:
        if getattr(self, "skips", 0) and batch.num_rows > 1:
            # The first record that comes again is counted for the second one.
            rows = as_arrow(batch)
            batch = pa.concat_batches([rows.slice(1, 1), rows.slice(1)])
            self.skips = 0
        return super().apply(source, batch, next_offset, *rest, **named)  # type: ignore[misc] # likewise


class Inflating:
    """Takes the first record of each batch at another price, which no rounding hides."""

    def apply(self, source: str, batch: Rows, next_offset: int, *rest: Any, **named: Any) -> Any:
        rows = as_arrow(batch)
        at = rows.schema.get_field_index("price")
        prices = rows.column(at).to_numpy().copy()
        prices[:1] = 7e20
        rows = rows.set_column(at, rows.schema.field(at), pa.array(prices))
        return super().apply(source, rows, next_offset, *rest, **named)  # type: ignore[misc] # likewise


class Miscounts(Engine):
    """Counts one refused record less."""

    def apply(self, source: str, batch: Rows, next_offset: int, *rest: Any, **named: Any) -> Any:
        found = super().apply(source, batch, next_offset, *rest, **named)
        self.counters.dead_lettered -= 1
        return found


class Unrestorable:
    """Finds its own state damaged."""

    @classmethod
    def restore(cls, plan: Any, snapshot: Any, **rest: Any) -> Any:
        from ripple.engine.snapshots.snapshot import SnapshotError

        raise SnapshotError("it is not mine")


class Forgets(Forgetting, Engine):
    """Of a chain."""


class GraphForgets(Forgetting, GraphEngine):
    """Of branches and several sources."""


class Inflates(Inflating, Engine):
    """Of a chain."""


class GraphInflates(Inflating, GraphEngine):
    """Of branches and several sources."""


class CannotRestore(Unrestorable, Engine):
    """Of a chain."""


class GraphCannotRestore(Unrestorable, GraphEngine):
    """Of branches and several sources."""
