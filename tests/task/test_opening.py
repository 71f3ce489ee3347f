"""Who is refused has changed nothing; who opens outputs comes after all owners that they know."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.sink import LogSink, look_at, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.core.events import Started, StoreHandedOver
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import FencedError
from ripple.storage.log import Topic
from ripple.storage.store import MemoryStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import sim_world
from ripple.testing.crash.source import TOPIC
from ripple.world import DiskLockedError
from tests.task.owners import PLAN, disk_with_input

if TYPE_CHECKING:
    from ripple.core.events import Event
    from ripple.testing import SimDisk, SimWorld

SETTINGS = Settings(batch_rows=4, commit_batches=1, checkpoint_batches=2, snapshot_rows=4, keep=2)


class Lived:
    """One life over logs, with checkpoints in a store of its own. epoch: None of a run."""

    def __init__(
        self, disk: SimDisk, store: MemoryStore, epoch: int | None = None, **more: Any
    ) -> None:
        self.world: SimWorld = replace(sim_world(7), disk=disk)
        self.told: list[Event] = []
        world = self.world
        state = DurableState(
            Checkpoints(store, PLAN.name),
            world,
            Ownership(epoch=epoch, **more),
        )
        shape = RecordShape(PLAN.source.schema, PLAN.source.checks)
        names = [output.name for output in PLAN.outputs]
        self.inputs = LogInputs(Topic.open(disk, TOPIC), {PLAN.source.name: 0}, shape, 4)
        outputs = SinkGroup(
            {name: partial(self._open, name, epoch) for name in names},
            looks=[partial(self._look, name, epoch) for name in names],
        )
        self.life = PartitionTask(
            TaskSpec(PLAN, self.inputs, outputs),
            state,
            TaskContext(settings=SETTINGS, emit=self.told.append),
        )

    def _topic(self, name: str) -> Topic:
        return topic_for(self.world.disk, f"{name}-log", schema_of_output(PLAN, PLAN.output(name)))

    def _open(self, name: str, epoch: int | None) -> LogSink:
        owner = Owner(PLAN.name, name)
        return LogSink(self._topic(name), 0, self.world.clock, owner, epoch=epoch)

    def _look(self, name: str, epoch: int | None) -> int:
        return look_at(self._topic(name), 0, Owner(PLAN.name, name), name, epoch=epoch)

    def run(self) -> int:
        """Live to the end; return the epoch."""
        self.world.loop.run_until_complete(self.life.run())
        return next(one.epoch for one in self.told if isinstance(one, Started))


def names_in(store: MemoryStore) -> list[str]:
    return asyncio.run(store.list(""))


def test_run_that_an_output_refuses_has_claimed_nothing() -> None:
    disk, store = disk_with_input(), MemoryStore()
    Lived(disk, store).run()
    there = names_in(store)
    other = Lived(disk, store)
    held = other._open("totals", None)  # a cluster at work
    with pytest.raises(DiskLockedError, match="stop that one first"):
        other.run()
    held.close()
    assert names_in(store) == there
    Lived(disk, store).run()


def test_run_over_an_empty_store_comes_after_the_owners_that_its_outputs_know() -> None:
    disk = disk_with_input()
    Lived(disk, MemoryStore(), 3072).run()
    store = MemoryStore()
    assert Lived(disk, store).run() == 3073
    assert Lived(disk, store).run() == 3074


def test_owner_below_those_that_its_outputs_know_has_claimed_nothing() -> None:
    disk, store = disk_with_input(), MemoryStore()
    Lived(disk, MemoryStore(), 3072).run()
    with pytest.raises(FencedError, match="remove assign/ from its store") as refused:
        Lived(disk, store, 1024).run()
    assert refused.value.epoch == 3072
    assert names_in(store) == []


@pytest.mark.parametrize("is_next", [True, False])
def test_owner_whose_checkpoints_were_claimed_goes_on_for_who_comes_next_alone(
    is_next: bool,
) -> None:
    disk, store = disk_with_input(), MemoryStore()
    one = Lived(disk, store, 1024, is_next=lambda epoch: is_next and epoch == 1025)

    async def claimed() -> None:
        world, theirs = one.world, Checkpoints(store, PLAN.name)
        reading = await theirs.manifest.newest()
        if reading.entry is not None and reading.entry.content.epoch == 1024:
            await theirs.claim(world.clock, world.random, epoch=1025)

    one.inputs.open = _then(one.inputs.open, claimed)  # type: ignore[method-assign]
    if is_next:
        one.run()
        assert any(isinstance(event, StoreHandedOver) for event in one.told)
        return
    with pytest.raises(FencedError, match="an owner with epoch 1025 has claimed"):
        one.run()


def _then(act: Any, then: Any) -> Any:
    async def both(*args: Any) -> None:
        await act(*args)
        await then()

    return both
