"""What a reader asks of brokers, and when."""

from __future__ import annotations

import asyncio

import pytest

from ripple.connectors.kafka.consumer import KafkaConsumer
from ripple.connectors.kafka.private import Fetched
from ripple.world.broker import Record, TopicPartition
from tests.connectors.kafka.batches import batch

PLACE = TopicPartition("t", 0)
DATA = batch(0, [(number, Record(b"k", b"v%d" % number)) for number in range(3)])


class Client:
    """Has one batch, and waits for more as brokers do."""

    brokers = "b"

    def __init__(self) -> None:
        self.fetches: list[int] = []

    def leader(self, place: TopicPartition) -> int:
        return 1

    async def fetch(self, node, wanted, **_):
        (offset,) = wanted.values()
        self.fetches.append(offset)
        if offset:
            await asyncio.sleep(60)
        return [Fetched(*PLACE, 0, 3, (), DATA)]


@pytest.mark.parametrize(("ahead", "fetches"), [(True, [0, 3]), (False, [0])])
async def test_no_fetch_waits_at_a_broker_after_the_requested_one(ahead: bool, fetches: list[int]):
    client = Client()
    consumer = KafkaConsumer(client, ahead=ahead)
    consumer.assign({PLACE: 0})
    found = await consumer.read(records_max=10, wait_s=5.0)
    assert found[PLACE].next_offset == 3
    for _ in range(10):
        await asyncio.sleep(0)
    assert client.fetches == fetches
    assert not await consumer.read(records_max=10, wait_s=0.05)
    assert client.fetches == [0, 3], "it waits for more when it is asked for that"
    await consumer.close()
