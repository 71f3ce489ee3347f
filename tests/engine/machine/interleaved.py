"""A reading of several inputs in a random order."""

from __future__ import annotations

import random
from typing import Any

import ripple as rp
from ripple.engine.machine import Engine
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of
from tests.engine.machine.ticks import Tick

FIELDS = rp.schema_of(Tick).fields


def read_mixed(pipeline: Pipeline, lanes: dict[str, list[Any]], seed: int) -> Any:
    """Return the results after a reading of inputs in a random order, with restores.

    lanes: the records of each input. The digests, the counters and the state at the end.
    """
    plan, chance = pipeline.plan(), random.Random(seed)
    engine = Engine(plan, inputs=list(lanes))
    left = {name: list(rows) for name, rows in lanes.items()}
    while any(left.values()):
        name = chance.choice([name for name, rows in left.items() if rows])
        size = chance.randint(1, 7)
        rows, left[name] = left[name][:size], left[name][size:]
        engine.apply(name, records_of(rows, FIELDS), engine.cut[name] + len(rows))
        if chance.random() < 0.5:
            engine.stabilize()
            if chance.random() < 0.2:
                engine = Engine.restore(plan, engine.snapshot())
    engine.stabilize()
    held = {
        name: sorted(map(repr, table.to_pylist()))
        for name, table in engine.snapshot().tables.items()
    }
    return engine.digests, engine.counters, held
