"""State in checkpoints as a table.

A Spark plan holds only the store's URI: each task opens the store with its own environment's
settings.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.spark import options as given
from ripple.storage.checkpoint import CheckpointError, Checkpoints, fold_named, named, partitions
from ripple.storage.store.opening import store_to_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OPTIONS = ("path", "pipeline", "partition", "fold", "checkpoint")
# The origin of a row, before the fold's own columns.
OWN = pa.schema(
    [
        pa.field("ripple.pipeline", pa.string()),
        pa.field("ripple.partition", pa.int32()),
        pa.field("ripple.checkpoint", pa.string()),
        pa.field("ripple.cut", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class State:
    """A fold's state in one checkpoint of a partition. store: a folder, or in S3."""

    store: str
    pipeline: str
    partition: int
    name: str
    node_key: str

    def read(self) -> pa.Table:
        """Return the rows. Raises CheckpointError, DamagedError and StoreError."""
        return asyncio.run(self._read())

    async def _read(self) -> pa.Table:
        async with store_to_read(self.store) as store:
            checkpoints = Checkpoints(store, self.pipeline, self.partition)
            one = named(await checkpoints.list(), self.name)
            table = (await checkpoints.read(one)).tables[self.node_key]
        about = [self.pipeline, self.partition, one.name, json.dumps(dict(one.cut))]
        count = table.num_rows
        own = [
            pa.repeat(pa.scalar(value, field.type), count)
            for value, field in zip(about, OWN, strict=True)
        ]
        columns = [*own, *table.columns]
        return pa.table(columns, schema=pa.schema([*OWN, *table.schema]).remove_metadata())


@dataclass(frozen=True)
class CheckpointTable:
    """The table of ``ripple.checkpoint``: one state per partition, and the columns."""

    states: tuple[State, ...]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CheckpointTable:
        """Select states. Raises CheckpointError, DamagedError, InputError, StoreError."""
        found = given.checked(options, OPTIONS, ("path",), "ripple.checkpoint")
        return asyncio.run(_look(found))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; reads a state, since manifests do not have them."""
        return self.states[0].read().schema


async def _look(found: Mapping[str, str]) -> CheckpointTable:
    place = given.absolute_store(found["path"])
    number = given.whole_number(found["partition"], "partition") if "partition" in found else None
    async with store_to_read(place) as store:
        present = await partitions(store)
        chosen = [
            (pipeline, partition)
            for pipeline, partition in present
            if found.get("pipeline") in (None, pipeline) and number in (None, partition)
        ]
        if not chosen:
            there = ", ".join(f"{pipeline}/{partition}" for pipeline, partition in present)
            such = (
                f"such checkpoints below {place}: there are {there}"
                if there
                else (f"checkpoints below {place}")
            )
            raise CheckpointError(f"there are no {such}")
        names = sorted({pipeline for pipeline, _ in chosen})
        if len(names) > 1:
            raise CheckpointError(
                f"{place} has checkpoints of {', '.join(names)}: name one, as 'pipeline'"
            )
        states = []
        for pipeline, partition in chosen:
            listed = await Checkpoints(store, pipeline, partition).list()
            if not listed and "checkpoint" not in found:
                continue
            one = named(listed, found.get("checkpoint"))
            keys = [part.node_key for part in one.parts]
            node_key = fold_named(keys, found.get("fold"), "the option 'fold'")
            states.append(State(place, pipeline, partition, one.name, node_key))
    if not states:
        raise CheckpointError(f"{place} has no checkpoints yet")
    return CheckpointTable(tuple(states))


def batches_of(state: State) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a state."""
    yield from state.read().to_batches()
