"""How long a partition pauses while it moves by plan, where what it reads and writes is in Kafka.

As in ``bench/moves.py``, on a real broker: a thousand trades a second come to all partitions, and
the workers commit ten times a second. A pause is the longest time in which a reader of committed
records saw no row of a partition.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from bench.moves import move_all
from bench.running import (
    EVERY_S,
    OUTPUTS,
    PARTITIONS,
    PIPELINE,
    Watching,
    Working,
    cluster_up,
)
from bench.timing import QUICK
from bench.trades import trades
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.settings import Security
from ripple.model.keys.partitioner import partition_numbers
from ripple.world.broker import Records, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.row import Row

MOVES = 12 if QUICK else 200
SYMBOLS = 2_000
ROWS = 20  # every 20 ms
COMMIT_MS = 100
READ_S = 0.2


def measure() -> list[Row]:
    from tests.services.kafka import Broker  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder, "kafka")) as broker:
        where = broker.bootstrap
        asyncio.run(_make_topics(where))
        with _running(folder, where) as coordinator, Feed(where), Watch(where) as watch:
            watch.wait()
            moves = move_all(coordinator, watch, MOVES)
    return moves.rows(watch, {})


@contextmanager
def _running(folder: str, where: str) -> Iterator[str]:
    sinks = {name: f"kafka:{where}/{name}" for name in OUTPUTS}
    source = f"kafka:{where}/trades?key=symbol"
    with cluster_up(folder, PIPELINE, source, sinks, COMMIT_MS) as coordinator:
        yield coordinator


async def _make_topics(where: str) -> None:
    broker = KafkaBroker(where, Security())
    for topic in ("trades", OUTPUTS[0]):
        await broker.make(topic, PARTITIONS)
    await broker.close()


class Feed(Working):
    """Writes trades to all partitions, all the time."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        broker = KafkaBroker(self._where, Security())
        producer, began_s = await broker.plain_producer(), time.monotonic()
        for turn in itertools.count():
            await asyncio.sleep(max(0.0, began_s + turn * EVERY_S - time.monotonic()))
            if self.ending.is_set():
                break
            await producer.send_all(_records(trades(ROWS, SYMBOLS, turn * ROWS)))
        await broker.close()


def _records(batch: pa.RecordBatch) -> dict[TopicPartition, Records]:
    """Return trades as JSON, in the partitions where their keys put them."""
    numbers = partition_numbers(batch, ["symbol"], PARTITIONS)
    keys = batch.column("symbol").cast(pa.binary())
    values = pa.array([json.dumps(row).encode() for row in batch.to_pylist()], pa.binary())
    times = np.full(len(batch), time.time_ns() // 1_000_000)
    found = {}
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        found[TopicPartition("trades", number)] = Records(
            keys.take(rows), values.take(rows), times[rows]
        )
    return found


class Watch(Watching):
    """Reads committed rows."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        broker = KafkaBroker(self._where, Security())
        await broker.connected()
        consumer = broker.consumer()
        consumer.assign({TopicPartition(OUTPUTS[0], number): 0 for number in range(PARTITIONS)})
        while not self.ending.is_set():
            found = await consumer.read(records_max=100_000, wait_s=READ_S)
            for place, read in found.items():
                if len(read.offsets):
                    self.grew_s[place.partition].append(time.monotonic())
        await consumer.close()
        await broker.close()
