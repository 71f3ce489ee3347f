"""What lanes at a broker promise, told as one suite; the simulated one and a real one run it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

import pyarrow as pa
import pytest

from ripple.connectors.connector import Carried, Part
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.core.cut import Cut
from ripple.core.errors import InputError, OutputError
from ripple.engine.edges.edge_changes import EdgeChanges
from ripple.model.schema.types import Field, Int64, Option, String
from ripple.task.lanes import lane_name
from ripple.task.repartition import broker_reading
from ripple.task.repartition.broker_reading import BrokerReading
from ripple.task.repartition.carried import CarriedLanes
from ripple.task.repartition.lane import Section
from ripple.task.repartition.rows import lane_schema
from ripple.task.repartition.topics import LaneTopic
from ripple.world.broker import Broker, Record, Records, TopicPartition
from ripple.world.live import LiveClock
from tests.run_by import run_by

FIELDS = (Field("name", String()), Field("n", Option(Int64())))
TOPIC = LaneTopic("edges/p/records", lane_schema("p.records", FIELDS), senders=1, receivers=2)
LANES = (0, 1)
Main = Callable[[Broker], Awaitable[Any]]


def rows_of(*numbers: int) -> pa.RecordBatch:
    rows = [{"name": f"row {n}", "n": n if n % 3 else None} for n in numbers]
    return pa.RecordBatch.from_pylist(rows, pa.schema([("name", "string"), ("n", "int64")]))


class Rows:
    """Stands where a partition would: it has rows for its targets, until they are taken."""

    def __init__(self) -> None:
        self.at = 0
        self._since: dict[int, Cut | None] = dict.fromkeys(LANES)
        self._rows: dict[int, list[int]] = {lane: [] for lane in LANES}

    def go_on(self, **rows: list[int]) -> None:
        self.at += 1
        for lane in LANES:
            self._rows[lane] += rows.get(f"to_{lane}", [])

    @property
    def cut(self) -> dict[str, int]:
        return {"in": self.at}

    def outgoing_to(self, targets: Collection[int]) -> dict[int, EdgeChanges]:
        found = {}
        for lane in targets:
            rows, self._rows[lane] = self._rows[lane], []
            found[lane] = EdgeChanges(self._since[lane], self.cut, 100 * self.at, rows_of(*rows))
            self._since[lane] = self.cut
        return found


class Sender:
    """The lanes of one sender, in one group; ``partition`` outlives it."""

    def __init__(self, broker: Broker, partition: Rows, lanes: int = 2) -> None:
        numbers = {lane_name(lane): lane for lane in LANES}
        self.partition: Any = partition
        self.group = KafkaGroup(
            broker, GroupPartition("p", Part(0, 1), "records"), {}, clock=LiveClock(),
            carried=Carried("kafka:any:1/p.records", lanes, numbers),
        )  # fmt: skip
        self.lanes = CarriedLanes(TOPIC.schema, LANES, self.group)

    async def open(self, epoch: int) -> Mapping[str, Cut | None]:
        found = await self.lanes.open(epoch, await self.group.open(epoch))
        return {name: one.committed and one.committed.cut for name, one in found.items()}

    async def commit(self) -> None:
        names = [lane_name(lane) for lane in LANES]
        taken = self.lanes.take(self.partition, names)
        await self.group.commit(taken)


async def nothing() -> dict[int, Cut]:
    return {}


def reading(broker: Broker, needed: Any = nothing) -> BrokerReading:
    return BrokerReading(lambda: broker, TOPIC, LANES, LiveClock(), needed=needed)


async def sections(lanes: BrokerReading, lane: int, count: int) -> list[Section]:
    found: list[Section] = []
    while len(found) < count:
        section = lanes.next(lane)
        if section is None:
            await lanes.more()
        else:
            found.append(section)
    return found


def names_in(sections: list[Section]) -> list[list[str]]:
    return [section.rows.column("name").to_pylist() for section in sections]


in_its_world = run_by(lambda contract, main: contract.run_lanes(main), "broker")


class LaneContract:
    """Subclasses say how ``main`` runs, with a broker that has no topics of pipeline ``p``."""

    def run_lanes(self, main: Main) -> None:
        raise NotImplementedError

    @in_its_world
    async def test_cuts_come_whole_and_once_and_a_reader_goes_on_at_any(
        self, broker: Broker
    ) -> None:
        rows = Rows()
        sender = Sender(broker, rows)
        assert set((await sender.open(1)).values()) == {None}
        for number in range(6):
            rows.go_on(to_0=[number, 10 + number], to_1=[number] * (number % 2))
            await sender.commit()
        lanes = reading(broker)
        assert await lanes.ranges() == dict.fromkeys(LANES, (None, {"in": 6}))
        for since in (None, *range(7)):
            await lanes.open(dict.fromkeys(LANES, None if since is None else {"in": since}))
            left = range(since or 0, 6)
            found = await sections(lanes, 0, len(left))
            assert names_in(found) == [[f"row {n}", f"row {10 + n}"] for n in left]
            assert [one.mark.cut for one in found] == [{"in": n + 1} for n in left]
            assert [one.mark.watermark_ns for one in found] == [100 * (n + 1) for n in left]
            found = await sections(lanes, 1, len(left))
            assert names_in(found) == [[f"row {n}"] * (n % 2) for n in left]
            assert lanes.next(0) is lanes.next(1) is None
        await lanes.close()

    @in_its_world
    async def test_the_next_owner_knows_what_is_there_and_writes_nothing_twice(
        self, broker: Broker
    ) -> None:
        rows = Rows()
        first = Sender(broker, rows)
        await first.open(1)
        rows.go_on(to_0=[1])
        await first.commit()
        await first.group.close()
        second = Sender(broker, rows)
        assert set(map(str, (await second.open(2)).values())) == {"{'in': 1}"}
        await second.commit()  # at the cut that is there
        rows.go_on(to_0=[2])
        await second.commit()
        lanes = reading(broker)
        await lanes.open({0: None, 1: {"in": 1}})
        assert names_in(await sections(lanes, 0, 2)) == [["row 1"], ["row 2"]]
        assert names_in(await sections(lanes, 1, 1)) == [[]]
        assert lanes.next(0) is lanes.next(1) is None
        await lanes.close()

    @in_its_world
    async def test_records_that_no_checkpoint_needs_are_removed_and_the_last_mark_stays(
        self, broker: Broker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(broker_reading, "LOOK_INTERVAL_NS", 0)
        monkeypatch.setattr(broker_reading, "WAIT_S", 0.05)
        rows, stored = Rows(), {"in": 4}
        sender = Sender(broker, rows)
        await sender.open(1)

        async def needed() -> dict[int, Cut]:
            return dict.fromkeys(LANES, stored)

        lanes = reading(broker, needed)
        await lanes.open({})
        for number in range(5):
            rows.go_on(to_0=[number], to_1=[number])
            await sender.commit()
            for lane in LANES:
                await sections(lanes, lane, 1)
            await asyncio.sleep(0.1)
        places = [TopicPartition(TOPIC.topic, lane) for lane in LANES]
        while not all((await broker.earliest(places)).values()):
            await asyncio.sleep(0.05)
        await lanes.close()
        again = reading(broker, needed)
        for since, end in (await again.ranges()).values():
            assert since is not None
            assert 1 <= since["in"] <= 4
            assert end == {"in": 5}
        await again.open(dict.fromkeys(LANES, stored))
        assert names_in(await sections(again, 0, 1)) == [["row 4"]]
        with pytest.raises(InputError, match=r"p\.records/\d was read from its beginning on"):
            await again.open({})
        await again.close()

    @in_its_world
    async def test_a_topic_of_other_counts_is_refused_with_both(self, broker: Broker) -> None:
        await broker.make(TOPIC.topic, 3, is_kept=True)
        with pytest.raises(OutputError, match=r"p\.records has 3 partitions.* needs 2"):
            await Sender(broker, Rows()).open(1)
        with pytest.raises(OutputError, match=r"p\.records has 3 partitions.* needs 2"):
            await reading(broker).ranges()

    @in_its_world
    async def test_record_of_no_sender_is_named_with_its_place(self, broker: Broker) -> None:
        await broker.make(TOPIC.topic, 2, is_kept=True)
        other = await broker.producer("somebody")
        other.begin()
        await other.send(TopicPartition(TOPIC.topic, 1), Records.of([Record(None, b"hello")]))
        await other.commit()
        with pytest.raises(InputError, match=r"p\.records/1 holds at offset 0 what no sender"):
            await reading(broker).ranges()
