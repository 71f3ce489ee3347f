"""A later stage commits beside its work, and is held to what first stages are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from ripple.connectors.commit_group import OutputStatus, SinkGroup
from ripple.connectors.contract import Commit
from ripple.core.cut import is_within
from ripple.core.errors import OutputError
from ripple.core.events import Committed, Event, Stored
from ripple.storage.checkpoint import Checkpoints
from ripple.task.lifecycle import PartitionTask
from ripple.task.restore import holders
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext
from ripple.task.stage_spec import StageSpec
from ripple.task.subscribed_state import SubscribedState
from ripple.testing import SimWorld
from tests.task.later_stage import PLAN, Sender
from tests.world.clusters import in_sim_world

HELD = {"shown": OutputStatus("slow", True, None, None, holder="id")}
SETTINGS = Settings(commit_interval_ns=10**6, checkpoint_interval_ns=10**15)


@dataclass
class Outputs:
    """A group whose commits last until they are let through."""

    through: asyncio.Event = field(default_factory=asyncio.Event)
    committing: Mapping[str, int] | None = None
    committed: Commit | None = None
    error: Exception | None = None
    rows: list[Any] = field(default_factory=list)
    is_slow_to_end: bool = False
    commits_beside = True

    async def open(self, epoch: int | None, emit: Any) -> dict[str, OutputStatus]:
        return {"shown": OutputStatus("slow", True, self.committed, None, holder="id")}

    def write(self, output: str, changes: Any, reached: Commit) -> None:
        self.rows += changes.to_pylist()

    def commit(self, reached: Mapping[str, Commit]) -> Coroutine[Any, Any, None]:
        async def act() -> None:
            self.committing = reached["shown"].cut
            try:
                await self.through.wait()
            finally:
                if self.is_slow_to_end:
                    await asyncio.sleep(1)
            if self.error is not None:
                raise self.error
            self.committing, self.committed = None, reached["shown"]

        return act()

    def mark(self, output: str) -> str:
        return str(len(self.rows))

    async def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        for row in self.rows[int(mark or 0) :]:
            yield pa.RecordBatch.from_pylist([row])

    def supersede(self, output: str) -> None:
        raise AssertionError("nothing is unfinished")

    async def close(self) -> None:
        """Hold nothing."""


class SlowStore:
    """A store that never answers a put."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.is_asked = self.is_given_up = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        self.is_asked = True
        try:
            await asyncio.Event().wait()
        finally:
            self.is_given_up = True
        return True


class Published:
    """What the stage after this one gets; none of it may be ahead of what was committed."""

    is_wanted = is_owed = False

    def __init__(self, outputs: Outputs | SinkGroup) -> None:
        self._outputs = outputs
        self._taken: dict[str, int] | None = None
        self.cut: dict[str, int] = {}

    def trace(self, contexts: object) -> None:
        raise AssertionError("nothing is traced")

    def take(self, partition: Any) -> None:
        assert self._taken is None, "the cut before was not published"
        self._taken = partition.cut

    def give(self) -> None:
        if self._taken is not None:
            if isinstance(self._outputs, Outputs):
                committed = self._outputs.committed
                assert committed is not None
                assert is_within(self._taken, committed.cut), "it is not committed"
            self.cut, self._taken = self._taken, None

    def begin(self, partition: Any) -> None:
        """No rows are retained."""

    def offer_uncommitted(self, partition: Any) -> None:
        """There are no such subscribers."""


class Stage:
    """The one partition of the second stage."""

    def __init__(self, world: SimWorld, settings: Settings = SETTINGS) -> None:
        self.world, self.settings = world, settings
        self.sender, self.outputs = Sender(), Outputs()
        self.writes = True
        self.told: list[Event] = []
        self.begin()

    def begin(self) -> None:
        """Let another task own it."""
        self.is_to_stop = False
        outputs: Outputs | SinkGroup = self.outputs if self.writes else SinkGroup({})
        self.published = Published(outputs)
        self.checkpoints = Checkpoints(self.world.store, PLAN.name, 1)
        self.state = SubscribedState(self.checkpoints, self.world)
        spec: Any = StageSpec(PLAN, 1, 0, 1, self.sender, outputs, self.published, self.sender.wake)
        context = TaskContext(
            settings=self.settings, emit=self.told.append, stop=lambda: self.is_to_stop
        )
        self.task = PartitionTask(spec, self.state, context)
        self.running = asyncio.create_task(self.task.run())

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds; the task must go on meanwhile."""
        for _ in range(10_000):
            if holds():
                return
            if self.running.done():
                self.running.result()
            await self.world.clock.sleep(0.001)
        raise AssertionError("it never holds")

    async def end(self) -> None:
        """Stop it in good order."""
        self.is_to_stop = True
        self.sender.wake.set()
        await self.running

    async def kill(self) -> None:
        """End it at once."""
        self.running.cancel()
        with suppress(asyncio.CancelledError):
            await self.running


async def slowly_committing(
    world: SimWorld, settings: Settings = SETTINGS
) -> tuple[Stage, dict[str, int], dict[str, int]]:
    """Return a stage with a commit under way, the cut before, and the one that it commits."""
    stage = Stage(world, settings)
    stage.outputs.through.set()
    first = stage.sender.send(1)
    await stage.until(lambda: stage.published.cut == first)
    stage.outputs.through.clear()
    second = stage.sender.send(2)
    await stage.until(lambda: stage.outputs.committing == second)
    return stage, first, second


@in_sim_world
async def test_changes_are_taken_in_while_a_slow_commit_is_under_way(world: SimWorld) -> None:
    stage, first, second = await slowly_committing(world)
    third = stage.sender.send(4)
    await stage.until(lambda: stage.task.engine.cut == third)
    assert stage.outputs.committing == second
    assert stage.published.cut == first, "nothing is published before it is committed"
    stage.outputs.through.set()
    await stage.until(lambda: stage.published.cut == third)
    cuts = [event.cut for event in stage.told if isinstance(event, Committed)]
    assert cuts == [first, second, third]
    await stage.end()
    assert [row["size"] for row in stage.outputs.rows] == [1, 3, 7]


@in_sim_world
async def test_too_many_rows_wait_for_the_commit(world: SimWorld) -> None:
    stage, _, second = await slowly_committing(world, replace(SETTINGS, commit_ahead_rows=1))
    third = stage.sender.send(4)
    await stage.until(lambda: stage.task.engine.cut == third)
    fourth = stage.sender.send(8)
    await world.clock.sleep(1)
    assert (stage.task.engine.cut, stage.outputs.committing) == (third, second)
    stage.outputs.through.set()
    await stage.until(lambda: stage.published.cut == fourth)
    await stage.end()


@in_sim_world
async def test_commit_that_fails_ends_the_task_and_nothing_of_it_is_published(
    world: SimWorld,
) -> None:
    stage, first, _ = await slowly_committing(world)
    stage.sender.send(4)
    stage.outputs.error = OutputError("the broker is gone")
    stage.outputs.through.set()
    with pytest.raises(OutputError, match="the broker is gone"):
        await stage.running
    assert stage.published.cut == first
    assert stage.outputs.committed is not None
    assert stage.outputs.committed.cut == first


@in_sim_world
async def test_checkpoint_waits_until_its_cut_is_committed(world: SimWorld) -> None:
    stage, _, second = await slowly_committing(world)
    before = len(stored(stage))
    stage.state.ask_for_checkpoint()
    stage.sender.wake.set()
    await world.clock.sleep(1)
    assert len(stored(stage)) == before
    stage.outputs.through.set()
    await stage.until(lambda: len(stored(stage)) > before)
    assert stored(stage)[-1] == second
    await stage.end()


@in_sim_world
async def test_killed_task_is_followed_by_one_that_stores_soon(world: SimWorld) -> None:
    stage, _, _ = await slowly_committing(world, replace(SETTINGS, checkpoint_interval_ns=10**12))
    stage.outputs.through.set()
    await stage.end()
    assert await stores_after(stage, 1) == 0, "after a graceful end there is no hurry"
    await stage.kill()
    assert await stores_after(stage, 2) > 0
    await stage.end()


@in_sim_world
async def test_stage_without_outputs_stores_soon_after_a_task_that_has_stored_nothing(
    world: SimWorld,
) -> None:
    stage, _, _ = await slowly_committing(world, replace(SETTINGS, checkpoint_interval_ns=10**12))
    stage.outputs.through.set()
    await stage.end()
    stage.writes = False
    assert await stores_after(stage, 1) == 0, "the last task has ended in good order"
    await stage.kill()
    assert await stores_after(stage, 2) > 0
    await stage.kill()
    assert await stores_after(stage, 4) == 0, "the last task got as far as a checkpoint"
    await stage.end()


async def stores_after(stage: Stage, size: int) -> int:
    """Begin another task, which gets a record; return how many checkpoints it stores at once."""
    before = len(stored(stage))
    stage.begin()
    await stage.until(lambda: stage.task.report.restored is not None)
    cut = stage.sender.send(size)
    await stage.until(lambda: stage.published.cut == cut)
    await stage.world.clock.sleep(5)
    return len(stored(stage)) - before


@in_sim_world
async def test_killed_during_a_commit_it_corrects_the_outputs_once(world: SimWorld) -> None:
    stage, first, _ = await slowly_committing(world)
    third = stage.sender.send(4)
    await stage.until(lambda: stage.task.engine.cut == third)
    await stage.kill()
    assert stage.outputs.committed is not None
    assert stage.outputs.committed.cut == first
    del stage.outputs.rows[1:]  # what was not committed is gone
    stage.outputs.through.set()
    stage.begin()
    await stage.until(lambda: stage.published.cut == third)
    await stage.end()
    assert [row["size"] for row in stage.outputs.rows] == [1, 7]


@in_sim_world
async def test_task_that_is_cancelled_twice_stores_nothing_any_more(world: SimWorld) -> None:
    stage, _, second = await slowly_committing(world)
    storing = SlowStore(world.store)
    stage.checkpoints.store = stage.checkpoints.manifest.store = storing
    stage.outputs.through.set()
    stage.state.ask_for_checkpoint()
    stage.sender.wake.set()
    await stage.until(lambda: stage.published.cut == second and storing.is_asked)
    stage.outputs.through.clear()
    stage.outputs.is_slow_to_end = True
    third = stage.sender.send(4)
    await stage.until(lambda: stage.outputs.committing == third)
    stage.running.cancel()
    await world.clock.sleep(0.1)  # it waits for its commit to end
    stage.running.cancel()
    with suppress(asyncio.CancelledError):
        await stage.running
    assert storing.is_given_up


@in_sim_world
async def test_checkpoints_name_the_holders_of_outputs_from_the_first_commit_on(
    world: SimWorld,
) -> None:
    stage = Stage(world)
    stage.outputs.through.set()
    await stage.until(lambda: bool(stored(stage)))
    (of_nothing,) = await stage.checkpoints.list()
    assert not set(holders(HELD)) & set(of_nothing.notes)
    stage.sender.send(1)
    await stage.until(lambda: stage.outputs.committed is not None)
    await stage.end()
    newest, *_ = await stage.checkpoints.list()
    assert newest.notes.items() >= holders(HELD).items()
    stage.outputs.committed = None
    stage.begin()
    with pytest.raises(OutputError, match="has no record of how far it was committed"):
        await stage.running


@in_sim_world
async def test_an_output_of_one_process_is_refused_with_the_way_out(world: SimWorld) -> None:
    stage = Stage(world)
    stage.outputs.committed = Commit({"trades": 7}, "")
    with pytest.raises(OutputError, match="is at 7, a cut of one process or of other partitions"):
        await stage.running


def stored(stage: Stage) -> list[Mapping[str, int]]:
    return [event.cut for event in stage.told if isinstance(event, Stored)]
