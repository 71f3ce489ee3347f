"""Records of a real broker, into columns and up to parsed trades, beside two clients of Python.

``python -m bench.kafka_reading READER BROKERS TOPIC COUNT`` is one reader in a process of its own:
it prints the seconds of processor time that its reading took, of all its threads.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.kafka_peers import interpreter
from bench.row import Row, at_least
from bench.timing import QUICK

RECORDS = 200_000 if QUICK else 1_000_000
ROUNDS = 1 if QUICK else 3
SYMBOLS = 100
CODECS = ("none", "lz4", "zstd")

PEERS = {"confluent": "confluent-kafka consume", "aiokafka": "aiokafka getmany"}
# Against each peer, of records into columns and up to parsed trades.
AIMS = {"columns": (4.0, 9.0), "trades": (2.5, 6.0)}
UNIT = "M records/CPU s"
AT_ONCE = 10_000
BASE_NS = 1_700_000_000_000_000_000


def measure() -> list[Row]:
    from tests.services.kafka import Broker  # noqa: PLC0415 - the readers do without it

    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "kafka") as broker:
        return [
            row for topic in _topics(broker.bootstrap) for row in _rows(broker.bootstrap, topic)
        ]


def _topics(bootstrap: str) -> Iterator[str]:
    """Yield topics that are filled: JSON of 95 bytes in each codec, CSV of 42 in one."""
    for codec in CODECS:
        yield _fill(bootstrap, "json", codec)
    yield _fill(bootstrap, "csv", "lz4")


def _rows(bootstrap: str, topic: str) -> Iterator[Row]:
    for kind, aims in AIMS.items():
        readers = ["ripple", *PEERS]
        best = dict.fromkeys(readers, float("inf"))
        for _ in range(ROUNDS):
            for reader in readers:
                asked = [f"{reader}-{kind}", bootstrap, topic, str(RECORDS)]
                command = [interpreter(reader), "-m", "bench.kafka_reading", *asked]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode:
                    raise RuntimeError(ended.stderr)
                best[reader] = min(best[reader], float(ended.stdout))
        rates = {reader: RECORDS / seconds / 1e6 for reader, seconds in best.items()}
        for (peer, versus), aim in zip(PEERS.items(), aims, strict=True):
            name = f"{topic}, into {kind}"
            yield Row(
                name, rates["ripple"], UNIT, versus, rates[peer], at_least(aim, of_ratio=True)
            )


def _fill(bootstrap: str, form: str, codec: str) -> str:
    from ripple.connectors.kafka.broker import KafkaBroker  # noqa: PLC0415 - the readers do without it
    from ripple.connectors.kafka.settings import Security  # noqa: PLC0415
    from ripple.world.broker import Record, Records, TopicPartition  # noqa: PLC0415

    topic = f"{form}-{codec}"

    async def fill() -> None:
        broker = KafkaBroker(bootstrap, Security(), compression=codec)  # type: ignore[arg-type]
        await broker.make(topic, 1)
        producer = await broker.plain_producer()
        now_ms = time.time_ns() // 1_000_000  # retention goes by it
        for first in range(0, RECORDS, AT_ONCE):
            some = [
                Record(symbol.encode(), value.encode(), now_ms)
                for symbol, value in _trades(form, first, min(AT_ONCE, RECORDS - first))
            ]
            await producer.send(TopicPartition(topic, 0), Records.of(some))
        await broker.close()

    asyncio.run(fill())
    return topic


def _trades(form: str, first: int, count: int) -> Iterator[tuple[str, str]]:
    for number in range(first, first + count):
        symbol, price = f"S{number % SYMBOLS}", 100 + number % 997 / 10
        row = (symbol, price, 1 + number % 9, BASE_NS + number * 1_000_003)
        if form == "csv":
            yield symbol, "{},{},{},{},X".format(*row)
        else:
            value = '{{"symbol": "{}", "price": {}, "size": {}, "timestamp_ns": {}, "venue": "X"}}'
            yield symbol, value.format(*row)


# Each reader in its own process.


def ripple_reads(bootstrap: str, topic: str, count: int, *, parse: bool) -> float:
    from ripple.connectors.files.csv.format import TRADE_CHECKS, TRADE_SCHEMA  # noqa: PLC0415
    from ripple.connectors.formats.contract import batch_of  # noqa: PLC0415
    from ripple.connectors.formats.formats import values_of  # noqa: PLC0415
    from ripple.connectors.kafka.reader import KafkaReader  # noqa: PLC0415
    from ripple.connectors.kafka.settings import Security  # noqa: PLC0415
    from ripple.connectors.record_shape import RecordShape  # noqa: PLC0415
    from ripple.control import event_loop  # noqa: PLC0415 - the peers do without it
    from ripple.world.broker import TopicPartition  # noqa: PLC0415

    def registry() -> Any:
        raise AssertionError("neither format has schemas elsewhere")

    values = values_of(topic.partition("-")[0], RecordShape(TRADE_SCHEMA, TRADE_CHECKS), registry)

    async def read() -> float:
        reader = KafkaReader(bootstrap, Security())
        await reader.open()
        consumer = reader.consumer()
        place, seen = TopicPartition(topic, 0), 0
        consumer.assign({place: 0})
        started = time.process_time()
        while seen < count:
            for found in (await consumer.read(records_max=1 << 20, wait_s=5)).values():
                seen += len(found.offsets)
                if parse:
                    batch = await asyncio.to_thread(batch_of, found, values)
                    assert not batch.rejected
        spent = time.process_time() - started
        await consumer.close()
        await reader.close()
        return spent

    return event_loop.run(read())  # as workers do


def confluent_reads(bootstrap: str, topic: str, count: int, *, parse: bool) -> float:
    from confluent_kafka import Consumer, KafkaPartition  # noqa: PLC0415 - of the peers

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
    )
    consumer.assign([KafkaPartition(topic, 0, 0)])
    parsed, seen = _parser(topic), 0
    started = time.process_time()
    while seen < count:
        messages = consumer.consume(AT_ONCE, 5)
        columns = (
            [message.key() for message in messages],
            [message.value() for message in messages],
            [message.offset() for message in messages],
        )
        seen += len(columns[0])
        if parse:
            parsed(columns[1])
    spent = time.process_time() - started
    consumer.close()
    return spent


def aiokafka_reads(bootstrap: str, topic: str, count: int, *, parse: bool) -> float:
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415
    from aiokafka import TopicPartition as KafkaPartition  # noqa: PLC0415

    async def read() -> float:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([KafkaPartition(topic, 0)])
        parsed, seen = _parser(topic), 0
        started = time.process_time()
        while seen < count:
            for records in (await consumer.getmany(timeout_ms=5000)).values():
                columns = (
                    [record.key for record in records],
                    [record.value for record in records],
                    [record.offset for record in records],
                )
                seen += len(columns[0])
                if parse:
                    parsed(columns[1])
        spent = time.process_time() - started
        await consumer.stop()
        return spent

    return asyncio.run(read())


def _parser(topic: str) -> Callable[[list[Any]], Any]:
    """Return the quickest way in Python from values to columns of trades."""
    import msgspec  # noqa: PLC0415 - of the peers
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

    names = ["symbol", "price", "size", "timestamp_ns", "venue"]
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.int64(), pa.string()]
    if topic.startswith("csv"):
        options = csv.ReadOptions(column_names=names, use_threads=False)
        given = csv.ConvertOptions(column_types=dict(zip(names, kinds, strict=True)))
        return lambda values: csv.read_csv(
            pa.BufferReader(b"\n".join(values)), options, convert_options=given
        )
    trade = msgspec.defstruct(
        "Trade", [*zip(names, (str, float, int, int, str), strict=True)], gc=False
    )
    decode = msgspec.json.Decoder(trade).decode

    def parsed(values: list[bytes]) -> Any:
        rows = [decode(value) for value in values]
        return pa.record_batch(
            [
                pa.array([getattr(row, name) for row in rows], kind)
                for name, kind in zip(names, kinds, strict=True)
            ],
            names,
        )

    return parsed


READERS = {"ripple": ripple_reads, "confluent": confluent_reads, "aiokafka": aiokafka_reads}

if __name__ == "__main__":
    reader, kind = sys.argv[1].split("-")
    print(READERS[reader](sys.argv[2], sys.argv[3], int(sys.argv[4]), parse=kind == "trades"))
