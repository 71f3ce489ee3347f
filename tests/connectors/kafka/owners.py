"""Tasks of a partition with outputs in topics of the simulated broker, and their readers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from ripple.connectors.connector import Part
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.kafka.rows import Rows
from ripple.connectors.kafka.topic_target import TopicTarget
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.core.tracing import Tracer
from ripple.model.pipeline.builder import Pipeline
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import Topic
from ripple.storage.store import RetryingStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.task.tracing import Traces
from ripple.testing import SimCluster, SimWorld
from ripple.testing.crash.source import TOPIC, CrashSource
from ripple.world.broker import TopicPartition
from tests.task import scenarios
from tests.world.clusters import simulate


def shown(events: Pipeline) -> Pipeline:
    """Show the events too, with a key and without one."""
    return scenarios.refusing(events.sink("divided", key="symbol").sink("plain"))


# Windows, refused records, outputs: rows of the keys, computed columns over them, and events.
PLAN = scenarios.pipeline(scenarios.Tumbling(50), before=shown).plan()
SOURCE = CrashSource(PLAN, scenarios.events(24), (PLAN.source.name,))
# Some commits run beside the next batches, some are waited for.
SETTINGS = Settings(
    batch_rows=4,
    replay_rows=8,
    commit_batches=2,
    commit_ahead_rows=2,
    checkpoint_batches=3,
    snapshot_rows=4,
    keep=2,
)
PARTITIONS = 3
WHOSE = GroupPartition(PLAN.name, Part(0, 1))
INPUT = TopicPartition("ticks", 0)


def topic_of(output: str) -> str:
    return f"{output}-topic"


def make_topics(cluster: SimCluster) -> None:
    for output in PLAN.outputs:
        cluster.broker.create(topic_of(output.name), PARTITIONS)


def group_of(world: SimWorld) -> KafkaGroup:
    assert world.broker is not None
    outputs = {
        output.name: TopicTarget(topic_of(output.name), Rows(PLAN, output, topic_of(output.name)))
        for output in PLAN.outputs
    }
    return KafkaGroup(
        world.broker,
        WHOSE,
        outputs,
        clock=world.clock,
        offsets=lambda cut: {INPUT: cut[PLAN.source.name]},
        guards=world.guards,
    )


async def live(
    world: SimWorld, epoch: int, settings: Settings = SETTINGS, tracer: Tracer | None = None
) -> PartitionTask[TaskSpec]:
    """Be the owner of an epoch until the input ends."""
    SOURCE.install(world, whole=True)
    shape = RecordShape(PLAN.source.schema, PLAN.source.checks)
    store = RetryingStore(world.store, world.clock, world.random)
    topic = Topic.open(world.disk, TOPIC)
    group = group_of(world)
    traces = None
    if tracer is not None:
        traces = Traces(tracer, stage=0, partition=0, group=group)
    inputs = LogInputs(topic, {PLAN.source.name: 0}, shape, SETTINGS.batch_rows)
    life = PartitionTask(
        TaskSpec(PLAN, inputs, group),
        DurableState(
            Checkpoints(store, PLAN.name, guards=world.guards), world, Ownership(epoch=epoch)
        ),
        TaskContext(settings=settings, traces=traces),
    )
    await life.run()
    return life


@dataclass
class Readers:
    """What readers of committed records see, held to the run in which nothing went wrong.

    rows: of each output, all records in the order of its partitions, by how many commits were
    seen. It knows nothing until ``learn``.
    """

    known: dict[str, dict[str, list[list[Any]]]] = field(default_factory=dict)
    _seen: Any = None  # the cluster that was looked at last, and how far its topics were committed

    def learn(self, cluster: SimCluster) -> None:
        """Note what is there now as what must be there at this cut."""
        for output, (cut, rows) in self._outputs(cluster).items():
            self.known.setdefault(output, {})[cut] = rows

    def look(self, cluster: SimCluster) -> None:
        """Raise AssertionError unless every output is at a cut, and holds what belongs there."""
        if self._seen == (seen := (cluster, self._committed(cluster))):
            return  # readers see what they have seen
        self._seen = seen
        cuts = self.cuts(cluster)
        numbers = [(cut["epoch"], cut["number"]) for cut in cuts]
        assert numbers == sorted(set(numbers)), f"cut records {numbers}"
        steps = [
            sum(one["cut"].get(PLAN.source.name, 0) for one in c["outputs"].values()) for c in cuts
        ]
        assert steps == sorted(steps), f"cuts went back: {steps}"
        for output, (cut, rows) in self._outputs(cluster).items():
            expected = self.known[output].get(cut)
            assert expected is not None, f"{cut} is no cut of an undisturbed run"
            assert rows == expected, f"torn: at {cut} readers of {output} see {rows}"

    @staticmethod
    def _committed(cluster: SimCluster) -> list[tuple[int, int]]:
        cluster.broker.make(WHOSE.place.topic, 1)
        places = [
            TopicPartition(topic_of(o.name), n) for o in PLAN.outputs for n in range(PARTITIONS)
        ]
        logs = map(cluster.broker.log, [WHOSE.place, *places])
        return [(log.start, log.stable_end) for log in logs]

    @staticmethod
    def cuts(cluster: SimCluster) -> list[dict[str, Any]]:
        broker = cluster.broker
        broker.make(WHOSE.place.topic, 1)
        return [json.loads(record.value or b"") for record in broker.committed(WHOSE.place)]

    def _outputs(self, cluster: SimCluster) -> dict[str, tuple[str, list[list[Any]]]]:
        last = (self.cuts(cluster) or [{"outputs": {}}])[-1]
        found = {}
        for output in PLAN.outputs:
            reached = last["outputs"].get(output.name)
            rows = [
                [
                    (record.key, record.value)
                    for record in cluster.broker.committed(
                        TopicPartition(topic_of(output.name), number)
                    )
                ]
                for number in range(PARTITIONS)
            ]
            cut = "nothing" if reached is None else json.dumps(reached["cut"], sort_keys=True)
            found[output.name] = cut, rows
        return found


def undisturbed() -> Readers:
    """Return readers who know what must be there at every cut."""
    readers = Readers()

    async def scenario(cluster: SimCluster, seed: int) -> None:
        make_topics(cluster)
        readers.learn(cluster)

        async def main(world: SimWorld) -> None:
            each = replace(SETTINGS, commit_batches=1, commit_ahead_rows=0)
            life = await live(world, 1024, each)
            assert life.report.rejected.total() > 0

        numbers: list[int] = []

        def look() -> None:
            cuts = readers.cuts(cluster)
            if len(cuts) not in numbers:
                numbers.append(len(cuts))
                readers.learn(cluster)

        cluster.always(look)
        cluster.host("a").start(main)
        await cluster.host("a").ended()
        assert cluster.broker.read_by(PLAN.name) == {INPUT: SOURCE.end[PLAN.source.name]}

    simulate(scenario)
    return readers
