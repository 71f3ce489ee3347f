"""A pipeline of several sources spread over partitions of its stages, in one process: for tests."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa

from ripple.engine.machine import Engine, Snapshot
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.plan import Plan
from tests.engine.machine.staged import Spread, shares_of

Lanes = dict[str, list[dict[str, Any]]]


def whole_run(plan: Plan, lanes: Lanes) -> Engine:
    """Return the engine of all stages after it has read every input, closed."""
    engine = Engine(plan, inputs=list(lanes))
    for name, events in lanes.items():
        _apply(engine, name, events)
    engine.close()
    engine.stabilize()
    return engine


def _apply(engine: Engine, name: str, events: list[dict[str, Any]]) -> None:
    schema = pa.schema(arrow_fields(source_of(engine.plan, name).fields))
    rows = pa.RecordBatch.from_pylist(events, schema)
    engine.apply(name, rows, engine.cut[name] + len(events))


class LanesReader:
    """A partition of the first stage: its inputs, and what it has read of them at random."""

    def __init__(self, plan: Plan, partition: int, lanes: Lanes, random: Random) -> None:
        self.plan, self.name, self.lanes, self.epoch = plan, str(partition), lanes, 0
        self.random = random
        self.engine = self.empty()
        self.saved: Snapshot | None = None

    @property
    def events(self) -> list[dict[str, Any]]:
        """All of its records."""
        return [event for events in self.lanes.values() for event in events]

    def empty(self) -> Engine:
        """Return one that has read nothing."""
        return Engine(self.plan, int(self.name), tuple(self.lanes), staged=True)

    def read(self, count: int) -> None:
        """Apply up to so many events of each input, or of one; all if it is as many."""
        names = list(self.lanes)
        if count < len(self.events):
            names = [self.random.choice(names)]
        for name in names:
            begin = self.engine.cut[name]
            _apply(self.engine, name, self.lanes[name][begin : begin + count])

    def restart(self, *, forget: bool) -> None:
        """Begin a new epoch where the snapshot is."""
        self.epoch += 1
        if self.saved is None or forget:
            self.engine = self.empty()
        else:
            self.engine = Engine.restore(self.plan, self.saved)


class SpreadSources(Spread):
    """Partitions that each read their inputs of all sources: see Spread.

    counts: of partitions of each source, in their order; ``partitions`` divides all of them.
    """

    def __init__(
        self, plan: Plan, events: Lanes, counts: list[int], partitions: int, random: Random
    ) -> None:
        self.counts, self.lanes = counts, Lanes()
        super().__init__(plan, events, partitions, random)  # type: ignore[arg-type]

    def readers(self, events: Any, partitions: int) -> list[Any]:
        """Return the partitions of the first stage, with their inputs of each source."""
        own = [Lanes() for _ in range(partitions)]
        for source, count in zip(self.plan.sources, self.counts, strict=True):
            for at, share in enumerate(shares_of(events[source.name], source, count)):
                name = f"{source.name}/{at}"
                own[at % partitions][name] = self.lanes[name] = share
        return [LanesReader(self.plan, p, lanes, self.random) for p, lanes in enumerate(own)]
