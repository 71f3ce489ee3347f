"""A compacted input, whose offsets have holes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ripple.connectors.cutting import recut
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.source_inputs import SourceInputs
from ripple.model.batch import Batch, Rejected
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import DiskStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimWorld, sim_world
from tests.task.lives import PLAN, ROWS, SETTINGS, outputs, written

GAPS = (0, 0, 3, 0, 1, 0, 0, 21, 0, 0, 2)
SETTINGS_HERE = replace(SETTINGS, commit_batches=1, checkpoint_batches=2)


class Compacted:
    """The rows of ``ROWS``, at offsets with holes between them, and one record that is none."""

    name = "trades"

    def __init__(self, block_rows: int) -> None:
        gaps = np.array([GAPS[at % len(GAPS)] for at in range(len(ROWS))])
        self.offsets = np.arange(len(ROWS)) + np.cumsum(gaps)
        self.bad = int(self.offsets[-1]) + 2
        self.end = self.bad + 9
        self._block_rows = block_rows

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        return recut(self._blocks(), SETTINGS.batch_rows, from_offset)

    def _blocks(self) -> Iterator[Batch]:
        schema = RecordShape(PLAN.source.schema).arrow_schema()
        for first in range(0, len(ROWS), self._block_rows):
            rows = ROWS[first : first + self._block_rows]
            at = self.offsets[first : first + self._block_rows]
            yield Batch(
                pa.RecordBatch.from_pylist(rows, schema), int(at[-1]) + 1, (), at.astype(np.int64)
            )
        bad = Rejected(self.bad, None, "not a trade", b"?")
        none = np.array([], np.int64)
        yield Batch(pa.RecordBatch.from_pylist([], schema), self.end, (bad,), none)

    def close(self) -> None:
        """Hold nothing."""


async def live(world: SimWorld, block_rows: int = 7) -> PartitionTask[TaskSpec]:
    inputs = SourceInputs(Compacted(block_rows))
    state = DurableState(Checkpoints(DiskStore(world.disk, world.random), PLAN.name), world)
    spec, context = TaskSpec(PLAN, inputs, outputs(world)), TaskContext(settings=SETTINGS_HERE)
    one = PartitionTask(spec, state, context)
    await one.run()
    return one


def _expected() -> dict[str, object]:
    world = sim_world()
    one = world.loop.run_until_complete(live(world))
    return {"written": written(world), "counters": one.engine.counters, "cut": one.engine.cut}


EXPECTED = _expected()
