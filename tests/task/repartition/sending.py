"""A sender of rows to lanes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ripple.model.schema.types import Field, Int64, Option, String
from ripple.storage.log import Topic
from ripple.task.repartition.lane import LaneWriter
from ripple.task.repartition.rows import Mark, lane_schema, records_of
from ripple.task.repartition.topics import SETTINGS
from ripple.testing import SimWorld
from ripple.world.ports import all_guards

FIELDS = (Field("name", String()), Field("n", Option(Int64())))
SCHEMA = lane_schema("p.records", FIELDS)


def rows_of(*numbers: int) -> pa.RecordBatch:
    rows = [{"name": f"row {n}", "n": n if n % 3 else None} for n in numbers]
    return pa.RecordBatch.from_pylist(rows, pa.schema([("name", "string"), ("n", "int64")]))


def cut_of(at: int) -> dict[str, int]:
    return {"in/0": at, "in/2": 2 * at}


class Sender:
    """A sender whose cuts have so many rows each, over its lives."""

    def __init__(self, world: SimWorld, settings: Any = SETTINGS) -> None:
        self.world = world
        self.topic = Topic.create(world.disk, "edges/p/records", SCHEMA, settings=settings)
        self.epoch = 0
        self.sent: list[tuple[list[str], int]] = []
        self.come_back()

    def come_back(self, guards: Any = all_guards) -> None:
        self.epoch += 1
        self.lane = LaneWriter(self.topic, 0, self.world.clock, epoch=self.epoch, guards=guards)

    @property
    def mark(self) -> Mark:
        at = len(self.sent)
        return Mark(cut_of(at) if at else None, cut_of(at + 1), 100 * at)

    def send(self, count: int) -> None:
        rows = rows_of(*range(count))
        self.lane.add(rows, self.mark)
        self.sent.append((rows.column("name").to_pylist(), 100 * len(self.sent)))

    def die_halfway(self, count: int) -> None:
        """Leave rows without their mark, as who is killed between two frames of a cut."""
        records = records_of(SCHEMA, rows_of(*range(1000, 1000 + count)), self.mark)
        self.lane._writer.append(records.slice(0, count))
        self.lane.close()
