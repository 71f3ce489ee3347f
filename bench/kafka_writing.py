"""Result rows to a real broker, from columns to records, beside two clients of Python.

``python -m bench.kafka_writing WRITER BROKERS TOPIC COUNT`` is one writer in a process of its own:
it prints the seconds of processor time that its writing took, of all its threads.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ripple as rp
from bench.kafka_peers import interpreter
from bench.row import Row, at_least
from bench.timing import QUICK

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 500_000 if QUICK else 2_000_000
ROUNDS = 1 if QUICK else 3
SYMBOLS = 100
PEERS = {"confluent": "confluent-kafka produce", "aiokafka": "aiokafka send"}
# A peer makes an object a record, and is slow enough with fewer of them.
SHARE_OF_PEERS = 5
AIM = 5.0
UNIT = "M rows/CPU s"
AT_ONCE = 100_000  # in a transaction


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp


def measure() -> list[Row]:
    from tests.services.kafka import Broker  # noqa: PLC0415 - the writers do without it

    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder) / "kafka") as broker:
        counts = {"ripple": ROWS} | dict.fromkeys(PEERS, ROWS // SHARE_OF_PEERS)
        best = dict.fromkeys(counts, 0.0)
        for number in range(ROUNDS):
            for writer, count in counts.items():
                asked = [writer, broker.bootstrap, f"{writer}-{number}", str(count)]
                command = [interpreter(writer), "-m", "bench.kafka_writing", *asked]
                ended = subprocess.run(command, capture_output=True, text=True, check=False)
                if ended.returncode:
                    raise RuntimeError(ended.stderr)
                best[writer] = max(best[writer], count / float(ended.stdout) / 1e6)
        return [
            Row("rows in transactions, as JSON", best["ripple"], UNIT, versus, best[peer], aim)
            for (peer, versus), aim in zip(
                PEERS.items(), (at_least(AIM, of_ratio=False), None), strict=True
            )
        ]


def _plan() -> Any:
    return (
        rp.Pipeline("written")
        .source("trades", Trade)
        .partition("by-symbol", key="symbol")
        .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
        .sink("out")
    ).plan()


def _rows(count: int) -> pa.RecordBatch:
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    numbers = np.arange(count)
    return pa.record_batch(
        {
            "symbol": pa.array([f"S{number % SYMBOLS}" for number in range(count)]),
            "op": pa.array(np.zeros(count, np.int8)),
            "vwap": pa.array(100 + numbers % 997 / 10),
            "trades": pa.array(1 + numbers % 9),
        }
    )


def ripple_writes(bootstrap: str, topic: str, count: int) -> float:
    from ripple.connectors.kafka.broker import KafkaBroker  # noqa: PLC0415
    from ripple.connectors.kafka.rows import Rows  # noqa: PLC0415
    from ripple.connectors.kafka.settings import Security  # noqa: PLC0415
    from ripple.control import event_loop  # noqa: PLC0415
    from ripple.world.broker import TopicPartition  # noqa: PLC0415

    plan, batch = _plan(), _rows(AT_ONCE)
    rows = Rows(plan, plan.outputs[0], topic)

    async def write() -> float:
        broker = KafkaBroker(bootstrap, Security())
        await broker.make(topic, 1)
        producer = await broker.producer(topic)
        began_s = time.process_time()
        for _ in range(count // AT_ONCE):
            producer.begin()
            await producer.send(TopicPartition(topic, 0), rows.of(batch, 0))
            await producer.commit()
        took_s = time.process_time() - began_s
        await broker.close()
        return took_s

    return event_loop.run(write())  # as workers do


def _as_dicts(count: int) -> list[dict[str, Any]]:
    return _rows(count).drop_columns(["op"]).to_pylist()


def confluent_writes(bootstrap: str, topic: str, count: int) -> float:
    from confluent_kafka import Producer  # noqa: PLC0415 - of the peers
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions()
    rows = _as_dicts(AT_ONCE)
    began_s = time.process_time()
    for _ in range(count // AT_ONCE):
        producer.begin_transaction()
        for row in rows:
            producer.produce(topic, json.dumps(row).encode(), row["symbol"].encode())
        producer.commit_transaction()
    return time.process_time() - began_s


def aiokafka_writes(bootstrap: str, topic: str, count: int) -> float:
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # noqa: PLC0415

    rows = _as_dicts(AT_ONCE)

    async def write() -> float:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 1, 1)])
        await admin.close()
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        await producer.start()
        began_s = time.process_time()
        for _ in range(count // AT_ONCE):
            async with producer.transaction():
                for row in rows:
                    await producer.send(topic, json.dumps(row).encode(), row["symbol"].encode())
        took_s = time.process_time() - began_s
        await producer.stop()
        return took_s

    return asyncio.run(write())


WRITERS: dict[str, Callable[[str, str, int], float]] = {
    "ripple": ripple_writes,
    "confluent": confluent_writes,
    "aiokafka": aiokafka_writes,
}

if __name__ == "__main__":
    writer, bootstrap, topic, count = sys.argv[1:]
    print(WRITERS[writer](bootstrap, topic, int(count)))
