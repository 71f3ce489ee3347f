"""A partition's owners one after the other, as an assignment makes them: lives with epochs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.sink import LogSink, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.model.batch import Batch
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import PartitionReader, Topic
from ripple.storage.store import DiskStore, RetryingStore
from ripple.task.dead_letters.log import letters_in
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimDisk, sim_world
from ripple.testing.crash.source import TOPIC, CrashSource
from tests.task import scenarios

if TYPE_CHECKING:
    from ripple.world.ports import Guards

# Windows, refused records, two outputs: rows of the keys, and what is computed over them.
PLAN = scenarios.pipeline(scenarios.Tumbling(50), before=scenarios.refusing).plan()
SOURCE = CrashSource(PLAN, scenarios.events(11), (PLAN.source.name,))
SETTINGS = Settings(
    batch_rows=4, replay_rows=8, commit_batches=1, checkpoint_batches=2, snapshot_rows=4, keep=2
)
EPOCHS = (1024, 2048, 3072)


def disk_with_input() -> SimDisk:
    """Return a disk that all owners have: with the input, and nothing else."""
    world = sim_world()
    SOURCE.install(world, whole=True)
    return world.disk


def live(disk: Any, epoch: int, guards: Guards | None = None) -> PartitionTask[TaskSpec]:
    """Be the owner of an epoch until the input ends; all effects are those of ``disk``."""
    world = replace(sim_world(epoch), disk=disk)  # by chance no two are the same
    allowed = guards or world.guards

    def open_sink(name: str) -> LogSink:
        output = PLAN.output(name)
        topic = topic_for(disk, f"{name}-log", schema_of_output(PLAN, output))
        owner = Owner(PLAN.name, name)
        return LogSink(topic, 0, world.clock, owner, epoch=epoch, guards=allowed)

    shape = RecordShape(PLAN.source.schema, PLAN.source.checks)
    store = RetryingStore(DiskStore(disk, world.random), world.clock, world.random)
    inputs = LogInputs(Topic.open(disk, TOPIC), {PLAN.source.name: 0}, shape, SETTINGS.batch_rows)
    outputs = SinkGroup({output.name: partial(open_sink, output.name) for output in PLAN.outputs})
    life = PartitionTask(
        TaskSpec(PLAN, inputs, outputs),
        DurableState(Checkpoints(store, PLAN.name, guards=allowed), world, Ownership(epoch=epoch)),
        TaskContext(settings=SETTINGS),
    )
    try:
        world.loop.run_until_complete(life.run())
    finally:
        world.loop.close()
    return life


def left(disk: SimDisk) -> dict[str, Any]:
    """Return what all owners together have left: each output's rows, and the letters."""
    world = sim_world()
    found: dict[str, Any] = {}
    for output in PLAN.outputs:
        with PartitionReader(Topic.open(disk, f"{output.name}-log"), 0) as reader:
            entries = [entry for entry in reader.read() if isinstance(entry, Batch)]
        rows = [row for entry in entries for row in entry.records.to_pylist()]
        found[output.name] = repr(rows)  # so that a NaN is a NaN
    letters, damage = world.loop.run_until_complete(letters_in(DiskStore(disk), PLAN.name))
    assert not damage
    found["letters"] = [(letter.offset, letter.step) for letter in letters]
    checkpoints = Checkpoints(DiskStore(disk), PLAN.name)
    found["problems"] = world.loop.run_until_complete(checkpoints.verify())
    return found
