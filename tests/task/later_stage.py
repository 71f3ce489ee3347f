"""A pipeline of two stages, and the sender of the first one, for tests of tasks of the second."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

import ripple as rp
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    size: int
    t: rp.Timestamp


PLAN = (
    rp.Pipeline("p")
    .source("trades", Trade, time="t")
    .partition("first", key=("symbol", "venue"))
    .fold("sizes", size=rp.sum("size"))
    .partition("second", key="symbol", partitions=1)
    .fold("total", size=rp.sum("size"))
    .sink("shown")
    .plan()
)


@dataclass
class Arrival:
    changes: EdgeChanges
    sender: int = 0
    epoch: int = 1


class Sender:
    """The one partition of the first stage, and what the stage after it takes of it."""

    def __init__(self) -> None:
        self._engine = Engine(PLAN, staged=True)
        self._arrivals: list[Arrival] = []
        self.wake = asyncio.Event()
        self._begun: Mapping[str, int] | None = None

    @property
    def cut(self) -> dict[str, int]:
        return {f"0/{name}": at for name, at in self._engine.cut.items()}

    def send(self, size: int) -> dict[str, int]:
        """Send one record's change; return the cut that it leads to."""
        at = self._engine.cut["trades"]
        schema = pa.schema(arrow_fields(PLAN.source.fields))
        row = {"symbol": "A", "venue": "X", "size": size, "t": at}
        self._engine.apply("trades", pa.RecordBatch.from_pylist([row], schema), at + 1)
        self._engine.stabilize()
        self._arrivals.append(Arrival(self._engine.outgoing_to([0])[0]))
        self.wake.set()
        return self.cut

    # --- as an Upstream ---

    def begin(self, sender: int, epoch: int | None, cut: Mapping[str, int] | None) -> None:
        self._begun = cut

    async def find(self) -> None:
        """Find nothing."""

    def start(self) -> None:
        """Send the table to a task that is not there yet."""
        is_there, self._begun = self._begun == self._engine.cut, None
        is_empty = not self._engine.cut["trades"]
        self._arrivals = [] if is_there or is_empty else [Arrival(self._engine.table_for(0))]
        self.wake.set()

    def reached_before(self, sender: int) -> None:
        return None

    def take(self) -> list[Arrival]:
        taken, self._arrivals = self._arrivals, []
        return taken

    async def sync(self) -> None:
        """Do nothing."""

    def applied(self, arrival: Arrival) -> None:
        """Do nothing."""

    def refused(self, arrival: Arrival) -> None:
        raise AssertionError("a change does not fit")

    dropped = refused

    def release(self, watermark_ns: int) -> None:
        """Do nothing."""
