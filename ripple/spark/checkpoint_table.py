"""State in checkpoints as a table."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.checkpoint import Checkpoint, CheckpointError, Checkpoints, partitions
from ripple.spark import options as given
from ripple.store import DiskStore
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OPTIONS = ("path", "pipeline", "partition", "fold", "checkpoint")
# What a row says of where it is from, in front of the fold's own columns.
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
    """A fold's state in one checkpoint of a partition."""

    path: str
    pipeline: str
    partition: int
    name: str
    node_key: str

    def read(self) -> pa.Table:
        """Return the rows. Raises CheckpointError and DamagedError."""
        return asyncio.run(self.table())

    async def table(self) -> pa.Table:
        """Return the rows."""
        checkpoints = Checkpoints(store_at(self.path), self.pipeline, self.partition)
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


@dataclass(frozen=True, slots=True)
class CheckpointTable:
    """What ``ripple.checkpoint`` reads: one state a partition, and their columns."""

    states: tuple[State, ...]
    schema: pa.Schema

    @classmethod
    def of(cls, options: Mapping[str, str]) -> CheckpointTable:
        """Look at the checkpoints. Raises CheckpointError and InputError."""
        found = given.checked(options, OPTIONS, ("path",), "ripple.checkpoint")
        return asyncio.run(_look(found))


async def _look(found: Mapping[str, str]) -> CheckpointTable:
    path, number = given.absolute_folder(found["path"]), found.get("partition")
    chosen = [
        (pipeline, partition)
        for pipeline, partition in await partitions(store_at(path))
        if found.get("pipeline") in (None, pipeline)
        and (number is None or given.whole_number(number, "partition") == partition)
    ]
    if len({pipeline for pipeline, _ in chosen}) != 1:
        names = ", ".join(sorted({pipeline for pipeline, _ in chosen})) or "none that fit"
        raise CheckpointError(f"{path} has checkpoints of {names}: say which, as 'pipeline'")
    states = []
    for pipeline, partition in sorted(chosen):
        present = await Checkpoints(store_at(path), pipeline, partition).list()
        if not present and "checkpoint" not in found:
            continue
        one = named(present, found.get("checkpoint"))
        node_key = _fold_of(one, found.get("fold"))
        states.append(State(path, pipeline, partition, one.name, node_key))
    if not states:
        raise CheckpointError(f"{path} has no checkpoints yet")
    return CheckpointTable(tuple(states), (await states[0].table()).schema)


def store_at(path: str) -> DiskStore:
    """Return the store in a folder, to read. Raises CheckpointError if there is none."""
    if not Path(path).is_dir():
        raise CheckpointError(f"there is no folder {path}")
    return DiskStore(LiveDisk(path, make=False))


def named(present: tuple[Checkpoint, ...], name: str | None) -> Checkpoint:
    """Return the checkpoint of that name, the latest without one. Raises CheckpointError."""
    for one in present:
        if name in (None, one.name):
            return one
    names = ", ".join(one.name for one in present) or "none"
    raise CheckpointError(f"there is no checkpoint {name or ''}: there are {names}")


def _fold_of(one: Checkpoint, fold: str | None) -> str:
    # A node's key is PIPELINE/.../NAME#DIGEST.
    folds = {
        part.node_key.rpartition("#")[0].rpartition("/")[2]: part.node_key for part in one.parts
    }
    if fold is None and len(folds) == 1:
        return next(iter(folds.values()))
    if fold not in folds:
        raise CheckpointError(f"checkpoint {one.name} has {', '.join(folds)}: say which, as 'fold'")
    return folds[fold]


def batches_of(state: State) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a state."""
    yield from state.read().to_batches()
