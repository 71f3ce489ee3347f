"""Stores in trouble, and partitions to checkpoint."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ripple.engine.machine import Engine
from ripple.model.pipeline.plan import Plan
from ripple.storage.checkpoint import Checkpoints, Owner
from ripple.testing import Chance
from ripple.world import StoreError
from tests.engine.machine.trades import SCHEMA, vwap_plan
from tests.storage.log.trades import ManualClock


class TroubledStore:
    """Fails some calls, before or after the work was done, as its script says.

    ``script`` yields "", "before" or "after" for each call.
    """

    def __init__(self, store, script) -> None:
        self._store = store
        self._script = script
        self.calls = 0

    async def _call(self, name: str, run):
        self.calls += 1
        trouble = next(self._script, "")
        if trouble == "before":
            raise StoreError(f"{name} refused", done=False)
        result = await run()
        if trouble == "after":
            raise StoreError(f"{name} lost its reply", done=None)
        return result

    async def put_if_absent(self, name, data):
        return await self._call(name, lambda: self._store.put_if_absent(name, data))

    async def get(self, name, *, length_max):
        return await self._call(name, lambda: self._store.get(name, length_max=length_max))

    async def list(self, prefix):
        return await self._call(prefix, lambda: self._store.list(prefix))

    async def delete(self, name):
        return await self._call(name, lambda: self._store.delete(name))


def fed_engine(keys: int, events: int, plan: Plan | None = None, batch: int = 100_000) -> Engine:
    """Return an engine that has consumed ``events`` trades over ``keys`` symbols."""
    engine = Engine(plan or vwap_plan(total=False))
    feed(engine, keys, events, batch)
    return engine


def feed(engine: Engine, keys: int, events: int, batch: int = 100_000) -> None:
    """Go on with trades that are a function of their offset; end with a stabilize."""
    start = engine.cut["trades"]
    for at in range(start, start + events, batch):
        offsets = np.arange(at, min(at + batch, start + events))
        engine.apply("trades", trades_at(offsets, keys), int(offsets[-1]) + 1)
    engine.stabilize()


def trades_at(offsets: np.ndarray, keys: int) -> pa.RecordBatch:
    columns = [
        pa.array([f"S{key:07}" for key in (offsets * 7919 % keys).tolist()]),
        pa.array(100 + (offsets * 31 % 1009) / 10),
        pa.array(1 + offsets * 17 % 997),
        pa.array(1_000_000_000 + offsets * 1_000),
        pa.array(["XNAS"] * len(offsets)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


async def claimed(store, seed: int = 0, **options) -> tuple[Checkpoints, Owner]:
    checkpoints = Checkpoints(store, "test")
    return checkpoints, await checkpoints.claim(ManualClock(), Chance(seed), **options)
