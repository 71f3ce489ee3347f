"""What a reader of committed records sees of topics, and whether that is as it must be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition

from tests.services.kafka_topics import Topics

LINES = 40  # of what is wrong


@dataclass(frozen=True, slots=True)
class Record:
    """What a reader is given. time_ms: when it was written."""

    offset: int
    time_ms: int
    key: bytes
    value: bytes | None


Records = dict[int, list[Record]]
Row = dict[str, Any]


async def read(bootstrap: str, topic: str) -> Records:
    """Return what there is, by partition."""
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False
    ) as consumer:
        async with Topics(bootstrap) as topics:
            (told,) = await topics.described(topic)
        if not told:
            return {}  # nobody has made it yet
        places = [KafkaPartition(topic, number) for number in range(told)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        found: Records = {place.partition: [] for place in places}
        for place in places:
            while await consumer.position(place) < ends[place]:
                for records in (await consumer.getmany(place, timeout_ms=1000)).values():
                    found[place.partition] += [
                        Record(one.offset, one.timestamp, one.key, one.value) for one in records
                    ]
        return found


def table(records: Records) -> dict[bytes, Any]:
    """Return the rows that are left."""
    found: dict[bytes, Any] = {}
    for part in records.values():
        for one in part:
            if one.value is None:
                found.pop(one.key, None)
            else:
                found[one.key] = json.loads(one.value)
    return found


def check_order(topic: str, records: Records, follows: Callable[[Row | None, Row], bool]) -> None:
    """Raise AssertionError, which names all that is wrong, unless rows of a key follow each other.

    follows: takes the row before, None for the first, and the row.
    """
    newest: dict[bytes, tuple[Row, Record]] = {}
    wrong: list[str] = []
    for number, part in records.items():
        for one in part:
            row, before = json.loads(one.value or b"{}"), newest.get(one.key)
            if not follows(before and before[0], row):
                wrong.append(f"{topic}/{number}: {one} behind {before and before[1]}")
            newest[one.key] = row, one
    assert not wrong, "\n".join([f"{len(wrong)} records out of order", *wrong[:LINES]])


def check_cuts(records: Records) -> list[dict[str, Any]]:
    """Raise AssertionError unless cut records rise, by partition; return them."""
    found: list[dict[str, Any]] = []
    for part in records.values():
        cuts = [json.loads(one.value or b"") for one in part]
        numbers = [(cut["epoch"], cut["number"]) for cut in cuts]
        assert numbers == sorted(set(numbers)), numbers
        reached = [sum(sum(one["cut"].values()) for one in cut["outputs"].values()) for cut in cuts]
        assert reached == sorted(reached), reached
        found += cuts
    return found
