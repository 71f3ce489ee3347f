"""A sender that is crashed at every effect: lanes have each record once, and lose none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ripple.model.aggregate as ra
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.engine.machine.router import Router
from ripple.engine.machine.waiting_rows import OFFSET
from ripple.model.expression import col
from ripple.model.pipeline.division import divided_into
from ripple.model.window import Tumbling
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import Topic
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.repartition.lane import LaneReader
from ripple.task.repartition.lanes import SentLanes
from ripple.task.repartition.topics import lanes_of_records
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimWorld, explore, repeat
from ripple.testing.crash.source import TOPIC, CrashSource
from tests.engine.machine.ticks import keyed
from tests.examples import EXAMPLES, SAMPLED
from tests.task import scenarios

# Its records are divided anew, and then once more, when windows are over but their group is not.
PLAN = (
    keyed(
        Tumbling(50),
        None,
        lateness=30,
        reject_future=150,
        before=lambda pipeline: pipeline.derive("grouped", group=col("timestamp_ns") % 5),
        by=("size", "group"),
        partitions=3,
    )
    .fold("sums", n=ra.count(), total=ra.sum("price"), last=ra.last("symbol"))
    .partition("over-all", key="group", partitions=2)
    .fold("all", middle=ra.median("n"), windows=ra.count(), total=ra.sum("total"))
    .sink("rows", of="sums")
    .sink("ever", of="all")
    .plan()
)
NAMES = ("ticks",)
RECEIVERS = divided_into(PLAN)
EVENTS: list[Any] = [
    (NAMES[0], event) for event in scenarios.events(9) if not isinstance(event, scenarios.Marker)
]
SOURCE = CrashSource(PLAN, EVENTS, NAMES)
LANES = lanes_of_records(PLAN, len(NAMES), RECEIVERS)
SETTINGS = Settings(batch_rows=4, commit_batches=1, checkpoint_batches=2, snapshot_rows=4, keep=2)
EXPECTED: dict[int, list[int]] = {}


async def sends(world: SimWorld, seed: int) -> None:
    """Read all there is, as the next owner."""
    SOURCE.install(world, whole=True)
    shape = RecordShape(PLAN.source.schema, PLAN.source.checks)
    inputs = LogInputs(
        Topic.open(world.disk, TOPIC), {n: at for at, n in enumerate(NAMES)}, shape, 4
    )
    epoch = world.witness["epoch"] = world.witness.get("epoch", 0) + 1
    assert world.store is not None
    checkpoints = Checkpoints(world.store, PLAN.name, guards=world.guards)

    async def needed(_: int) -> None:
        return None

    numbers = {at: LANES.lane(0, at) for at in range(RECEIVERS)}
    lanes = SentLanes(lambda: LANES.open(world.disk), numbers, world, needed)
    state = DurableState(checkpoints, world, Ownership(epoch=epoch))
    life = PartitionTask(
        TaskSpec(PLAN, inputs, SinkGroup({}), staged=True, lanes=lanes, engine=Router),
        state,
        TaskContext(settings=SETTINGS),
    )
    await life.run()
    look(world, seed)
    found = read(world)
    assert found == (EXPECTED or found)
    EXPECTED.update(found)
    assert sum(map(len, found.values())) > 5


def read(world: SimWorld) -> dict[int, list[int]]:
    """Return per lane the offsets of its records."""
    found: dict[int, list[int]] = {}
    if not world.disk.exists(f"{LANES.path}/topic"):
        return found
    topic = LANES.open(world.disk)
    for lane in range(topic.partitions):
        with LaneReader(topic, lane) as reader:
            offsets = found[lane] = []
            while (section := reader.next()) is not None:
                offsets += section.rows.column(OFFSET).to_pylist()
                assert all(at < section.mark.cut[NAMES[0]] for at in offsets)
    return found


def look(world: SimWorld, seed: int) -> None:
    """What a reader finds is a beginning of what it will find, and not less than before."""
    for lane, offsets in read(world).items():
        assert offsets == EXPECTED.get(lane, offsets)[: len(offsets)], lane
        promised = world.witness.setdefault("seen", {})
        assert len(offsets) >= promised.get(lane, 0), "a record was taken back"
        promised[lane] = len(offsets)


def crashed(*without: str) -> Iterator[BaseException | None]:
    """Crash at effects of a run, and yield what was wrong each time.

    All effects if asked for, or something is missing: every seventh, then those beside them.
    """
    clean = repeat(sends, seed=0)
    assert clean.error is None
    places = sorted(range(len(clean.effects[0])), key=lambda at: at % 7)
    if not without and EXAMPLES == 1:
        places = [at for at in places if at % 7 == 0]
    kinds = ("kill_before", "kill_after", "power_before")
    plans = [f"0.{at}:{kinds[at % 3]}:{at}" for at in places]
    assert len(plans) > 20
    for one in plans:
        yield repeat(sends, seed=0, plan=one, check=look, without=without).error


def test_a_sender_survives_a_crash_at_any_effect() -> None:
    for error in crashed():
        if error is not None:
            raise error


def test_a_sender_survives_random_faults() -> None:
    explore(sends, seeds=range(10 * EXAMPLES // SAMPLED), check=look)


def test_a_lane_that_is_not_muted_while_it_has_everything_is_found_out() -> None:
    assert any(crashed("lane_muted"))
