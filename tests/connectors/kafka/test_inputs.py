"""Topics come through the same cuts, however they are fetched; on a simulated broker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ripple.connectors.inputs import Signal, is_inputs
from ripple.connectors.kafka import inputs as module
from ripple.connectors.kafka.growth import LOOK_S, Growth
from ripple.connectors.kafka.inputs import KafkaInputs
from ripple.connectors.source_inputs import ended
from ripple.core.errors import InputError
from ripple.core.tracing import FIELD, TracedInputs
from ripple.task.one_shot import at_once, entries
from ripple.testing import SimWorld
from ripple.testing.sim.broker import SimBroker
from ripple.world.broker import Consumer, Read, Record, Records, TopicPartition
from tests.connectors.kafka.playing import (
    ROWS,
    VALUES,
    A,
    B,
    C,
    Reader,
    all_of,
    inputs_of,
    play,
    played,
    written,
)


@played
async def test_topic_partitions_fulfil_the_contract_of_inputs(world: SimWorld) -> None:
    assert is_inputs(inputs_of(world))
    assert inputs_of(world).names == ("in/0", "in/1", "in/2")
    assert inputs_of(world, keyed_by=("x",)).keyed_by == ("x",)
    assert inputs_of(world, count=1, keyed_by=("x",)).keyed_by is None


@played
async def test_each_input_has_its_turn_in_whole_batches_up_to_its_end(
    broker: SimBroker, world: SimWorld
) -> None:
    written(broker, A, range(25))
    written(broker, B, range(12))
    inputs = inputs_of(world)
    start = dict.fromkeys(inputs.names, 0)
    whole = await all_of(inputs, start)
    assert [(name, first, behind) for name, first, behind, _ in whole] == [
        *(("in/0", 0, 10), ("in/1", 0, 10), ("in/0", 10, 20), ("in/1", 10, 12)),
        ("in/0", 20, 25),
    ]
    assert [row for name, _, _, rows in whole if name == "in/0" for row in rows] == [*range(25)]
    # From any cut the same batches come, also with a stop.
    for place in range(1, len(whole)):
        cut = start | {name: behind for name, _, behind, _ in whole[:place]}
        assert await all_of(inputs, cut) == whole[place:]
    stop = {"in/0": 17, "in/1": 3, "in/2": 0}
    assert [(name, behind) for name, _, behind, _ in await all_of(inputs, start, stop)] == [
        *(("in/0", 10), ("in/1", 3), ("in/0", 17))
    ]
    assert await inputs.bounds() == (start, {"in/0": 25, "in/1": 12, "in/2": 0})
    await inputs.close()
    await inputs.close()


def test_headers_say_which_trace_a_batch_belongs_to_and_change_no_batch() -> None:
    async def scene(broker: SimBroker, world: SimWorld) -> None:
        for number in range(25):
            headers = (("other", b"x"), (FIELD, b"trace %d" % number)) if number % 5 == 0 else ()
            broker.append(A, [Record(None, b"%d" % number, 1000, headers)])
        plain, traced = inputs_of(world, count=1), inputs_of(world, count=1)
        assert isinstance(traced, TracedInputs)
        traced.trace()
        expected = await all_of(plain, {"in/0": 0})
        await traced.open({"in/0": 0}, ROWS)
        cut, found = {"in/0": 0}, []
        while (entry := traced.next(cut)) is not Signal.ENDED:
            if entry is Signal.WAITING:
                await traced.more()
                continue
            name, batch = entry
            found.append((batch.next_offset, traced.contexts(name, batch.next_offset)))
            cut[name] = batch.next_offset
        assert [behind for behind, _ in found] == [behind for _, _, behind, _ in expected]
        assert [contexts for _, contexts in found] == [
            ["trace 0", "trace 5"],
            ["trace 10", "trace 15"],
            ["trace 20"],
        ]
        await plain.close()
        await traced.close()

    play(scene, 1)


@pytest.mark.parametrize("read_rows", [1, 3, 7, 100])
@played
async def test_cuts_do_not_depend_on_how_much_is_fetched_at_once(
    broker: SimBroker, world: SimWorld, monkeypatch, read_rows: int
) -> None:
    monkeypatch.setattr(module, "READ_ROWS", read_rows)
    producer = await world.broker.producer("p")
    for turn in range(12):
        producer.begin()
        for place in (A, B):
            rows = [Record(None, b"%d" % (turn * 3 + at), 1) for at in range(3)]
            await producer.send(place, Records.of(rows))
        await (producer.abort() if turn % 4 == 2 else producer.commit())
    written(broker, C, range(31))
    inputs = inputs_of(world)
    found = await all_of(inputs, dict.fromkeys(inputs.names, 0))
    # Of every four offsets one is a mark; of every four transactions one was aborted.
    assert [(name, behind) for name, _, behind, _ in found] == [
        *(("in/0", 10), ("in/1", 10), ("in/2", 10), ("in/0", 20), ("in/1", 20), ("in/2", 20)),
        *(("in/0", 30), ("in/1", 30), ("in/2", 30), ("in/0", 40), ("in/1", 40), ("in/2", 31)),
        *(("in/0", 48), ("in/1", 48)),
    ]
    numbers = [row for name, _, _, rows in found if name == "in/1" for row in rows]
    assert numbers == [row for row in range(36) if row // 3 % 4 != 2]
    await inputs.close()


@played
async def test_followed_topic_waits_and_yields_short_batches_at_its_end(
    broker: SimBroker, world: SimWorld
) -> None:
    inputs = inputs_of(world, follow=True)
    cut = dict.fromkeys(inputs.names, 0)
    await inputs.open(cut, ROWS)
    assert inputs.next(cut) is Signal.WAITING
    written(broker, B, range(3))
    while (entry := inputs.next(cut)) is Signal.WAITING:
        await inputs.more()
    name, batch = entry
    assert (name, batch.next_offset, batch.records.num_rows) == ("in/1", 3, 3)
    inputs.wake()
    await inputs.more()
    await inputs.close()


@dataclass
class Asked(Reader):
    """It notes what is asked where a topic begins and ends."""

    bounds: int = 0

    async def earliest(self, places: Sequence[TopicPartition]) -> Any:
        self.bounds += 1
        return await self.port.earliest(places)


@played
async def test_open_at_the_present_position_sends_no_request(
    broker: SimBroker, world: SimWorld
) -> None:
    written(broker, A, range(25))
    written(broker, B, range(12))
    reader = Asked(world.broker)
    names = {f"in/{number}": TopicPartition("in", number) for number in range(2)}
    inputs = KafkaInputs(reader, names, VALUES, ROWS, follow=True)
    start, stops = {"in/0": 0, "in/1": 0}, [{"in/0": 17, "in/1": 3}, {"in/0": 25, "in/1": 12}]
    found = await all_of(inputs, start, stops[0])
    assert [(name, behind) for name, _, behind, _ in found] == [
        *(("in/0", 10), ("in/1", 3), ("in/0", 17))
    ]
    await inputs.check(stops[1], {})
    found = await all_of(inputs, stops[0], stops[1], rows=6)
    assert [(name, behind) for name, _, behind, _ in found] == [
        *(("in/1", 6), ("in/1", 12), ("in/0", 18), ("in/0", 24), ("in/0", 25))
    ]
    assert [row for name, _, _, rows in found if name == "in/0" for row in rows] == [*range(17, 25)]
    await inputs.open(stops[1], ROWS)
    assert inputs.next(stops[1]) is Signal.WAITING
    assert reader.bounds == 1
    written(broker, A, [25])
    while (entry := inputs.next(stops[1])) is Signal.WAITING:
        await inputs.more()
    name, batch = entry
    assert (name, batch.records.column(0).to_pylist()) == ("in/0", [25])
    # Whoever goes elsewhere asks, and finds what is there.
    with pytest.raises(InputError, match="ends at offset 26, and the run has read up to 27"):
        await inputs.check({"in/0": 27, "in/1": 12}, {})
    found = await all_of(inputs, start, stops[0])
    assert [row for name, _, _, rows in found if name == "in/0" for row in rows] == [*range(17)]
    assert reader.bounds == 3
    await inputs.close()


@played
async def test_stop_in_a_hole_is_come_to_where_more_was_read_already(world: SimWorld) -> None:
    producer = await world.broker.producer("p")
    for turn in range(3):
        producer.begin()
        rows = [Record(None, b"%d" % (turn * 3 + at), 1) for at in range(3)]
        await producer.send(A, Records.of(rows))
        await (producer.abort() if turn == 1 else producer.commit())
    inputs = inputs_of(world, count=1, follow=True)
    assert [batch[2:] for batch in await all_of(inputs, {"in/0": 0}, {"in/0": 2})] == [(2, [0, 1])]
    assert [batch[2:] for batch in await all_of(inputs, {"in/0": 2}, {"in/0": 6})] == [(6, [2])]
    assert [batch[2:] for batch in await all_of(inputs, {"in/0": 6}, {"in/0": 7})] == [(7, [])]
    assert [batch[2:] for batch in await all_of(inputs, {"in/0": 7}, {"in/0": 11})] == [
        (10, [6, 7]),
        (11, [8]),
    ]
    await inputs.close()


@played
async def test_an_input_that_is_not_in_turn_does_not_fill_the_memory(
    broker: SimBroker, world: SimWorld, monkeypatch
) -> None:
    monkeypatch.setattr(module, "ROWS_AHEAD", 3)
    monkeypatch.setattr(module, "READ_ROWS", 50)
    written(broker, A, range(500))
    written(broker, B, range(500))
    inputs = inputs_of(world)
    start = dict.fromkeys(inputs.names, 0)
    await inputs.open(start, ROWS)
    await asyncio.sleep(60)
    held = [ahead.through for ahead in inputs._ahead.values()]
    assert max(held) <= 100
    assert [(name, behind) for name, _, behind, _ in await all_of(inputs, start)] == [
        (name, behind) for behind in range(10, 501, 10) for name in ("in/0", "in/1")
    ]
    await inputs.close()


@played
async def test_removed_records_are_an_error_with_a_way_out(
    broker: SimBroker, world: SimWorld
) -> None:
    written(broker, A, range(30))
    inputs = inputs_of(world, count=1)
    broker.remove_before(A, 20)
    assert (await inputs.bounds())[0] == {"in/0": 20}
    with pytest.raises(InputError, match="in/0 begins at offset 20, and the run has read up"):
        await inputs.check({"in/0": 10}, {})
    await inputs.check({"in/0": 20}, {})
    with pytest.raises(InputError, match="in/0 ends at offset 30, and the run has read up to"):
        await inputs.check({"in/0": 31}, {})
    with pytest.raises(InputError, match=r"no offset 10, the log has 20 to 30.*start over"):
        await all_of(inputs, {"in/0": 10})
    await inputs.close()


@played
async def test_topic_deleted_during_reading_is_an_error_with_a_way_out(
    broker: SimBroker, world: SimWorld
) -> None:
    written(broker, A, range(30))
    inputs = inputs_of(world, count=1, follow=True)
    broker.later(5.0, lambda: broker.delete("in"))
    with pytest.raises(InputError, match=r"there is no .* any more.*start over"):
        await all_of(inputs, {"in/0": 0})
    await inputs.close()


@played
async def test_recreated_topic_is_detected_by_the_last_record_read(
    broker: SimBroker, world: SimWorld
) -> None:
    written(broker, A, range(30))
    written(broker, B, range(1, 31))
    first = inputs_of(world, count=1)
    await all_of(first, {"in/0": 0})
    (seen,) = (await first.identities({"in/0": 20})).values()
    assert seen == "19@1019"
    again = inputs_of(world, count=1)
    await again.check({"in/0": 20}, {"in/0": seen})
    await again.open({"in/0": 20}, ROWS)
    assert await again.identities({"in/0": 20}) == {"in/0": seen}
    other = KafkaInputs(Reader(world.broker), {"in/0": B}, VALUES, ROWS)
    with pytest.raises(InputError, match=r"offset 19 is of 1020 ms.*another topic of this name"):
        await other.check({"in/0": 20}, {"in/0": seen})
    for each in (first, again, other):
        await each.close()


@played
async def test_added_partitions_are_reported_once(broker: SimBroker, world: SimWorld) -> None:
    told: list[str] = []
    inputs = inputs_of(world, follow=True, growth=Growth(world.broker, "in", 3, told.append))
    cut = dict.fromkeys(inputs.names, 0)
    await inputs.open(cut, ROWS)
    await asyncio.sleep(2 * LOOK_S)
    assert not told
    broker.create("in", 5)
    await asyncio.sleep(3 * LOOK_S)
    assert len(told) == 1
    assert "has 5 partitions now" in told[0]
    assert "?partitions=3" in told[0]
    await inputs.close()
    broker.create("in", 6)
    await asyncio.sleep(2 * LOOK_S)
    assert len(told) == 1


class AtOnce:
    """A broker that has all at once."""

    away_s, losses = 0.0, 0

    def __init__(self) -> None:
        self.records = [Record(None, b"%d" % number) for number in range(25)]
        self.is_open = False
        self.stable_ends: dict = {}

    def topic_id(self, topic):
        return ""

    async def open(self) -> None:
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def earliest(self, places):
        return dict.fromkeys(places, 3)

    async def ends(self, places):
        return dict.fromkeys(places, 23)

    def consumer(self, *, ahead=True) -> Consumer:
        return self

    def assign(self, positions) -> None:
        ((self.place, self.at),) = positions.items()

    async def read(self, *, records_max, wait_s):
        first, self.at = self.at, min(self.at + 7, 25)
        rows = self.records[first : self.at]
        offsets = np.arange(first, self.at)
        return {self.place: Read(offsets, Records.of(rows), self.at)}


def test_source_of_a_plain_run_ends_where_the_topic_ended_at_its_beginning() -> None:
    broker = AtOnce()
    for from_offset, firsts in ((None, [3, 10, 20]), (12, [12, 20])):
        source = ended(KafkaInputs(broker, {"numbers": A}, VALUES, ROWS), "numbers")
        at_once(source.bounds())
        batches = list(entries(source, ROWS, from_offset and {"numbers": from_offset}))
        assert [batch.first_offset for batch in batches] == firsts
        assert batches[-1].next_offset == 23
        assert source.fraction_read == 1.0
        at_once(source.close())
        assert not broker.is_open
