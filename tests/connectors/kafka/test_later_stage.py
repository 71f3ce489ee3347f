"""A later stage commits to Kafka beside its work; readers see whole cuts under all faults."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from ripple.connectors.connector import Part
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.kafka.rows import Rows
from ripple.connectors.kafka.topic_target import TopicTarget
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import RetryingStore
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext
from ripple.task.stage_spec import StageSpec
from ripple.task.subscribed_state import SubscribedState
from ripple.testing import Faults, SimCluster, SimWorld, explore, on_cluster, repeat
from ripple.world.broker import TopicPartition
from tests.examples import EXAMPLES
from tests.task.later_stage import PLAN, Sender

SHOWN = TopicPartition("shown-topic", 0)
WHOSE = GroupPartition(PLAN.name, Part(0, 1), 1, ("symbol",))
SIZES = [1 << n for n in range(12)]
AHEAD = 3  # so many changes may be sent and not be committed
SETTINGS = Settings(commit_interval_ns=2_000_000, checkpoint_interval_ns=70_000_000, keep=2)


async def live(world: SimWorld, sender: Sender, epoch: int) -> None:
    """Own the stage for as long as the machine runs."""
    assert world.broker is not None
    outputs = {"shown": TopicTarget(SHOWN.topic, Rows(PLAN, PLAN.output("shown"), SHOWN.topic))}
    group = KafkaGroup(world.broker, WHOSE, outputs, clock=world.clock, guards=world.guards)
    store = RetryingStore(world.store, world.clock, world.random)
    checkpoints = Checkpoints(store, PLAN.name, 1, guards=world.guards)
    sender.wake = asyncio.Event()  # of this machine's loop
    spec: Any = StageSpec(PLAN, 1, 0, 1, sender, group, wake=sender.wake)
    state = SubscribedState(checkpoints, world, Ownership(epoch=epoch))
    await PartitionTask(spec, state, TaskContext(settings=SETTINGS)).run()


def look(cluster: SimCluster) -> int:
    """Return the offset up to which committed rows are, which must be those of the newest cut."""
    cluster.broker.make(WHOSE.place.topic, 1)
    cuts = [json.loads(one.value or b"") for one in cluster.broker.committed(WHOSE.place)]
    steps = [cut["outputs"].get("shown", {}).get("cut", {}).get("0/trades", 0) for cut in cuts]
    assert steps == sorted(steps), f"cuts went back: {steps}"
    rows = [json.loads(one.value or b"") for one in cluster.broker.committed(SHOWN)]
    reached = steps[-1] if steps else 0
    seen = rows[-1]["size"] if rows else 0
    assert seen == sum(SIZES[:reached]), f"torn: at {reached} readers see {seen}"
    return reached


@on_cluster
async def one_owner_after_the_other(cluster: SimCluster, seed: int) -> None:
    """A task, and another one whenever it has died, until all that was sent is committed."""
    cluster.broker.create(SHOWN.topic, 1)
    cluster.always(lambda: look(cluster))
    sender, host = Sender(), cluster.host("a")
    sent = 0
    for turn in range(400):
        if turn == 300:
            cluster.heal()
        reached = look(cluster)
        if reached == len(SIZES):
            return
        if not host.is_running:

            async def main(world: SimWorld, epoch: int = 1024 * (turn + 1)) -> None:
                await live(world, sender, epoch)

            host.start(main)
        while sent < min(reached + AHEAD, len(SIZES)):
            sender.send(SIZES[sent])
            sent += 1
            await asyncio.sleep((1 + (seed + sent) % 7) / 1000)
        await asyncio.sleep(10 if turn >= 300 else 0.02)
    raise AssertionError(f"only {look(cluster)} of {len(SIZES)} changes are committed")


def test_readers_see_whole_cuts_whenever_it_is_killed() -> None:
    kills = ("kill_before", "kill_after")
    broker = ("broker_late", "broker_lost_reply", "broker_unsent", "broker_refused")
    seeds, faults = range(3 * EXAMPLES), Faults(kinds=(*kills, *broker))
    report = explore(one_owner_after_the_other, seeds=seeds, faults=faults)
    assert sum(report.landed[kind] for kind in kills)


def test_rows_that_come_during_its_commit_are_of_the_next_one() -> None:
    runs = (
        repeat(one_owner_after_the_other, seed=seed, without=("rows_of_the_cut",))
        for seed in range(8)
    )
    assert any("torn" in str(run.error) for run in runs)
