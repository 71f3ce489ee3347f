"""Checkpoints that are whole, and hold what no engine has computed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ripple.storage.checkpoint import Checkpoints, fold_named
from ripple.storage.store.opening import open_store
from ripple.world import LiveClock, LiveRandom


def falsify(place: str, pipeline: str, part: str) -> str:
    """Store the newest state again, with 1 more in each row; return its name.

    part: of the state of aggregates; those that keep the same have it once.
    """
    return asyncio.run(_falsified(place, pipeline, part))


async def _falsified(place: str, pipeline: str, part: str) -> str:
    async with open_store(place) as store:
        checkpoints = Checkpoints(store, pipeline, 0)
        found = await checkpoints.latest()
        assert found is not None
        tables = dict(found.snapshot.tables)
        node_key = fold_named(tables, None, "nothing")
        table = tables[node_key]
        for at, field in enumerate(table.schema):
            if field.name.endswith(f".{part}"):
                wrong = pc.add(table.column(at), pa.scalar(1, field.type))
                table = table.set_column(at, field, wrong)
        tables[node_key] = table
        owner = await checkpoints.claim(LiveClock(), LiveRandom())
        return (await owner.write(replace(found.snapshot, tables=tables))).name
