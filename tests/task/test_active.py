"""Stories of single lives over a simulated disk; ``test_crashes`` has the crashes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import ripple as rp
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text import cut_record
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.core.events import Committed, Ended, Event, Restored, Stabilized, Started, Stored
from ripple.engine.machine import Engine
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import FencedError
from ripple.storage.log import Topic
from ripple.storage.store import DiskStore, RetryingStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.report import Report
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimWorld, sim_world
from ripple.testing.sim.faults import Fault
from ripple.testing.sim.run import run
from ripple.testing.sim.time import SimulationStuckError
from tests.records import Fill
from tests.task.lives import PLAN, ROWS, SECOND_NS, SETTINGS, append, life, written
from tests.world.clusters import in_sim_world


async def _undisturbed() -> tuple[bytes, list[dict[str, object]]]:
    world = sim_world()
    append(world)
    await life(world).run()
    return written(world)


@pytest.fixture(scope="module")
def expected() -> tuple[bytes, list[dict[str, object]]]:
    return sim_world().loop.run_until_complete(_undisturbed())


@in_sim_world
async def test_output_that_was_removed_is_written_again_cut_by_cut(
    world: SimWorld, expected
) -> None:
    """It is behind the other output, which must not get a second time what it has."""
    append(world)
    await life(world).run()
    world.disk.remove("out.csv")
    world.disk.remove("out.csv.cut")
    await life(world).run()
    assert written(world) == expected
    record = cut_record.read(world.disk, "out.csv.cut")
    assert record is not None
    assert record.reached is not None
    assert record.reached.cut == {"trades": len(ROWS)}


@in_sim_world
async def test_checkpoint_that_is_ahead_of_an_output_is_found_out(world: SimWorld) -> None:
    """Without the safeguard that passes it over, the removed output could not be written again."""
    append(world)
    await life(world).run()
    world.disk.remove("out.csv")
    world.disk.remove("out.csv.cut")
    with pytest.raises(AssertionError, match=r"out\.csv is behind"):
        await life(world.without("checkpoint_behind_sinks")).run()


# --- killed over and over ---

LONG = [
    {"symbol": "ABC"[i % 3], "price": 10.0, "size": 1, "timestamp_ns": i * SECOND_NS}
    for i in range(400)
]
# As in use, where replays are too short for a checkpoint: nothing is due before the end.
RARELY = Settings(batch_rows=4, replay_rows=8, commit_batches=10_000, checkpoint_batches=10_000)


class Deadline:
    """Somebody who kills each life after the same number of effects, without an end."""

    def __init__(self, effects: int) -> None:
        self._effects = effects

    def at(self, life: int, effect: int, name: str) -> Fault | None:
        if effect < self._effects or name == "read":
            return None
        return Fault(life, effect, "kill_before")

    def healed(self, life: int) -> bool:
        return False


NEVER = Deadline(1 << 60)


def effects_of(story: Any) -> int:
    done = run(story, 0, NEVER)
    assert done.error is None, done.error
    assert done.lives == 1
    return len(done.effects[0])


@pytest.fixture(scope="module")
def long_log() -> dict[str, bytes]:
    world = sim_world()
    append(world, LONG)
    return world.disk.image()


def without_checkpoints(image: dict[str, bytes]) -> dict[str, bytes]:
    state = ("vwap/00000/manifest/", "vwap/00000/state/")
    return {path: data for path, data in image.items() if not path.startswith(state)}


def test_deadline_that_no_life_meets_as_a_whole_does_not_stop_a_partition(long_log) -> None:
    """Each life gets further: it commits and stores checkpoints long before they are due."""

    async def story(world: SimWorld, seed: int) -> None:
        if not world.disk.exists("trades/topic"):
            world.disk.install(long_log)
        await life(world, RARELY).run()

    done = run(story, 0, Deadline(effects_of(story) // 3))
    assert done.error is None, done.error
    assert 3 < done.lives < 100  # it comes to its end; how fast depends on the effects of a start


def test_replay_that_is_killed_over_and_over_comes_to_its_end(long_log) -> None:
    """All checkpoints are lost, and there is no time to replay the log in one life."""

    async def left() -> dict[str, bytes]:
        world = sim_world()
        world.disk.install(long_log)
        await life(world, RARELY).run()
        return without_checkpoints(world.disk.image())

    image = sim_world().loop.run_until_complete(left())

    async def story(world: SimWorld, seed: int) -> None:
        if not world.disk.exists("trades/topic"):
            world.disk.install(image)
        await life(world, RARELY).run()

    done = run(story, 0, Deadline(2 * effects_of(story) // 3))
    assert done.error is None, done.error
    assert 3 < done.lives < 100  # it comes to its end; how fast depends on the effects of a start


# --- replays ---


@in_sim_world
async def test_replay_frees_windows_as_the_life_did_that_it_repeats(
    world: SimWorld, long_log
) -> None:
    held = {"live": 0, "replay": 0}

    def watch(engine: Any, report: Any) -> None:
        kind = "live" if report.stabilizations else "replay"
        held[kind] = max(held[kind], engine.nbytes)

    world.disk.install(long_log)
    await life(world, RARELY, watch=watch).run()
    assert held["replay"] == 0
    image = without_checkpoints(world.disk.image())
    world = sim_world()
    world.disk.install(image)
    await life(world, RARELY, watch=watch).run()
    assert 0 < held["replay"] <= held["live"]


@pytest.mark.parametrize(
    ("assigner", "batch_rows", "rows"),
    [
        (None, 7, 16_384),
        (rp.Tumbling("1s"), 1000, 16_384),
        (rp.Session("1s"), 1000, 16_384),
        (rp.Sliding("10s", "1s"), 1000, 13_107),
        (rp.Sliding("1000s", "1s"), 1000, 1000),
        (rp.Sliding("10000s", "1s"), 50, 50),
        (rp.Sliding("10000s", "1s"), 1, 13),
        (rp.Sliding("10000s", "1s"), 1 << 20, 16_384),
    ],
)
def test_replay_takes_no_more_at_once_than_the_life_did(assigner, batch_rows, rows) -> None:
    keyed = rp.Pipeline("p").source("trades", Fill).partition("k", key="symbol")
    if assigner is not None:
        keyed = keyed.window("w", assigner)
    plan = keyed.fold("n", n=rp.count()).sink("out").plan()
    assert Settings(batch_rows=batch_rows).rows_per_replay_step(plan) == rows


# --- many lives in one process ---


@in_sim_world
async def test_lives_of_two_partitions_share_a_process_and_a_disk(world: SimWorld) -> None:
    append(world)
    told: dict[int, list[Event]] = {0: [], 1: []}

    def of(partition: int, epoch: int | None) -> PartitionTask[TaskSpec]:
        topic = Topic.open(world.disk, "trades")
        # As workers do: partitions may put what is of the whole pipeline at once.
        store = RetryingStore(DiskStore(world.disk, world.random), world.clock, world.random)
        inputs = LogInputs(topic, {"trades": 0}, RecordShape(PLAN.source.schema), 4)
        return PartitionTask(
            TaskSpec(PLAN, inputs, SinkGroup({"out": MemorySink})),
            DurableState(Checkpoints(store, PLAN.name, partition), world, Ownership(epoch=epoch)),
            TaskContext(settings=SETTINGS, emit=told[partition].append),
        )

    for _ in range(2):
        lives = of(0, None), of(1, None)
        await asyncio.gather(*(life.run() for life in lives))
        assert [life.engine.partition for life in lives] == [0, 1]
        assert lives[0].engine.digest == lives[1].engine.digest
    restored = [event for event in told[1] if isinstance(event, Restored)]
    assert [event.start for event in restored] == [{"trades": 0}, {"trades": len(ROWS)}]
    kept, *_ = await Checkpoints(DiskStore(world.disk, world.random), PLAN.name, 1).list()
    assert [event.written_ns for event in restored] == [None, kept.written_ns]
    await of(1, 7).run()
    began = [event for event in told[1] if isinstance(event, Started)]
    epochs = [event.epoch for event in began]
    assert [event.partition for event in began] == [1, 1, 1]
    assert epochs[-1] == 7
    assert epochs == sorted(set(epochs))
    with pytest.raises(FencedError):
        await of(1, 7).run()


@in_sim_world
async def test_life_tells_what_it_does_in_order(world: SimWorld) -> None:
    append(world)
    told: list[Event] = []
    one = life(world, emit=told.append)
    await one.run()
    kinds = [type(event) for event in told if not isinstance(event, Stabilized)]
    assert kinds[:2] == [Started, Restored]
    assert kinds[-1] is Ended
    assert Stored in kinds
    committed = [event for event in told if isinstance(event, Committed)]
    assert committed[-1].cut == {"trades": len(ROWS)}
    assert committed[-1].digests == one.engine.digests
    assert sum(event.rows for event in committed) == one.report.rows_out


async def _followed(world: SimWorld, **more: Any) -> tuple[list[float], PartitionTask[TaskSpec]]:
    """Follow a log that grows every ten seconds; return how long each record waited."""
    append(world, ROWS[:1])
    settings = replace(SETTINGS, commit_batches=1000, checkpoint_batches=1000)
    waited: list[float] = []

    def seen(engine: Engine, _: Report) -> None:
        if engine.cut["trades"] > 1:
            waited.append((world.clock.monotonic_ns() - appended_ns) / 1e9)

    one = life(world, settings, follow=True, watch=seen, stop=lambda: len(waited) == 5)
    living = asyncio.create_task(one.run())
    for count in range(2, 7):
        await world.clock.sleep(10)
        appended_ns = world.clock.monotonic_ns()
        append(world, ROWS[:count])
    await living
    return waited, one


def test_record_is_taken_in_when_it_is_appended_and_nobody_looks_before() -> None:
    world = sim_world()
    waited, one = world.loop.run_until_complete(_followed(world))
    assert one.report.events == 6
    assert max(waited) < 0.001


def test_life_whose_watch_tells_nothing_waits_for_ever() -> None:
    world = sim_world().without("watch")
    with pytest.raises(SimulationStuckError, match="nothing will ever happen"):
        world.loop.run_until_complete(_followed(world))
    world.loop.close()  # the life still waits


@in_sim_world
async def test_life_commits_what_comes_first_at_once_then_when_due_and_stops_when_woken(
    world: SimWorld,
) -> None:
    append(world)
    settings = replace(SETTINGS, commit_batches=0, checkpoint_batches=0)
    stopped = False
    one = life(world, settings, follow=True, stop=lambda: stopped)
    living = asyncio.create_task(one.run())
    await world.clock.sleep(0.5)
    assert one.report.commits == 1
    await world.clock.sleep(1)
    assert one.report.commits == 2
    await world.clock.sleep(10)
    assert one.engine.cut == {"trades": len(ROWS)}
    store = DiskStore(world.disk, world.random)
    checkpoints = await Checkpoints(store, PLAN.name).list()
    assert [dict(each.cut) for each in checkpoints] == [{"trades": len(ROWS)}]
    began_ns = world.clock.monotonic_ns()
    stopped = True
    one._spec.inputs.wake()
    await living
    assert world.clock.monotonic_ns() - began_ns < SECOND_NS // 100


@in_sim_world
async def test_life_that_has_nothing_to_commit_commits_what_comes_next_at_once(
    world: SimWorld,
) -> None:
    settings = replace(SETTINGS, commit_batches=0, checkpoint_batches=1000)
    append(world, ROWS[:0])
    stopped = False
    one = life(world, settings, follow=True, stop=lambda: stopped)
    living = asyncio.create_task(one.run())
    for turn in range(1, 4):
        await world.clock.sleep(2.5)
        before = one.report.commits
        append(world, ROWS[: 2 * turn])
        await world.clock.sleep(0.1)
        assert (one.report.commits, one.report.events) == (before + 1, 2 * turn)
    stopped = True
    one._spec.inputs.wake()
    await living
