"""Stories of single lives over a simulated disk; ``test_crashes`` has the crashes."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ripple as rp
from ripple.checkpoint import Checkpoints
from ripple.connectors import cut_record
from ripple.connectors.cut_record import Owner
from ripple.connectors.file_sink import FileCutSink
from ripple.connectors.log_sink import LogCutSink, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.text_sink import TextFormat
from ripple.log import LogSettings, PartitionReader, PartitionWriter, Topic, TopicError
from ripple.recovery.inputs import Inputs
from ripple.recovery.life import Life
from ripple.recovery.settings import Settings
from ripple.store import DiskStore
from ripple.testing import SimWorld, sim_world

SECOND_NS = 10**9
SETTINGS = Settings(batch_rows=4, replay_rows=7, commit_batches=2, checkpoint_batches=3)


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp


PLAN = (
    rp.Pipeline("vwap")
    .source("trades", Trade)
    .partition("by-symbol", key="symbol")
    .window("10s", rp.Tumbling("10s"), lateness="5s")
    .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
    .partition("all", key=())
    .fold("sum", windows=rp.count())
    .sink("out", of="vwap")
    .sink("total", of="sum")
).plan()
ROWS = [
    {
        "symbol": "ABC"[i % 3],
        "price": 10.0 + i * 0.1,
        "size": 1 + i % 4,
        "timestamp_ns": (i - (3 if i % 7 == 3 else 0)) * SECOND_NS,
    }
    for i in range(40)
]


def append(world: SimWorld, rows: list[dict[str, object]] = ROWS) -> None:
    """Append what is not there yet of ``rows``."""
    try:
        topic = Topic.open(world.disk, "trades")
    except TopicError:
        settings = LogSettings(sync_appends=0)
        topic = Topic.create(world.disk, "trades", PLAN.source.schema, settings=settings)
    with PartitionWriter(topic, 0, world.clock) as writer:
        for first in range(writer.next_offset, len(rows), 7):
            piece = rows[first : first + 7]
            writer.append(
                pa.RecordBatch.from_pylist(piece, RecordShape(topic.schema).arrow_schema())
            )


def sinks(world: SimWorld) -> dict[str, FileCutSink | LogCutSink]:
    columns = [field.name for field in PLAN.outputs[0].fields]
    owner = Owner(PLAN.name, "out")
    file = FileCutSink(world.disk, "out.csv", TextFormat(), owner, columns, guards=world.guards)
    topic = topic_for(world.disk, "totals", schema_of_output(PLAN, PLAN.outputs[1]))
    owner = Owner(PLAN.name, "total")
    return {
        "out": file,
        "total": LogCutSink(topic, 0, world.clock, owner, guards=world.guards),
    }


def life(world: SimWorld) -> Life:
    topic = Topic.open(world.disk, "trades")
    inputs = Inputs(topic, {"trades": 0}, RecordShape(PLAN.source.schema), SETTINGS.batch_rows)
    checkpoints = Checkpoints(DiskStore(world.disk, world.random), PLAN.name)
    return Life(PLAN, inputs, lambda: sinks(world), checkpoints, world, settings=SETTINGS)


def written(world: SimWorld) -> tuple[bytes, list[dict[str, object]]]:
    """Return what the outputs hold."""
    with PartitionReader(Topic.open(world.disk, "totals"), 0) as reader:
        totals = [row for entry in reader.read() for row in entry.records.to_pylist()]
    return world.disk.read_bytes("out.csv", length_max=1 << 20), totals


async def _undisturbed() -> tuple[bytes, list[dict[str, object]]]:
    world = sim_world()
    append(world)
    await life(world).run()
    return written(world)


@pytest.fixture(scope="module")
def expected() -> tuple[bytes, list[dict[str, object]]]:
    return sim_world().loop.run_until_complete(_undisturbed())


def test_output_that_was_removed_is_written_again_cut_by_cut(expected) -> None:
    """It is behind the other output, which must not get a second time what it has."""

    async def story() -> None:
        world = sim_world()
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

    sim_world().loop.run_until_complete(story())


def test_checkpoint_that_is_ahead_of_an_output_is_found_out() -> None:
    """Without the safeguard that passes it over, the removed output could not be written again."""

    async def story() -> None:
        world = sim_world()
        append(world)
        await life(world).run()
        world.disk.remove("out.csv")
        world.disk.remove("out.csv.cut")
        await life(world.without("checkpoint_behind_sinks")).run()

    with pytest.raises(AssertionError, match="committed during a replay"):
        sim_world().loop.run_until_complete(story())
