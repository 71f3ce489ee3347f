"""A replay at scale: 20 M generated trades of 1 M keys, skewed, in 64 partitions, ``local[2]``; by
processor time of JVM and Python together, beside the engine in this process, Spark SQL's group-by,
``transformWithStateInPandas`` of some of them, and replays of the same trades in 8 and in 512
partitions; and the memory of the processes of Spark.

Needs the extra ``spark`` and Java. ``--rows N`` trades in place of 20 million; of more than 20
million there are 64 partitions only, and one round.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.row import Row, at_least, beside
from bench.spark import grouped
from bench.spark_processes import peaks_mb, rates_of
from bench.spark_streaming import ROCKS, SCHEMA, vwap_processor
from bench.timing import QUICK
from bench.trades import INTERVAL_NS, Trade, vwap_plan
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.keys.partitioner import partitioned
from ripple.model.records import schema_of
from ripple.spark import Replay
from ripple.spark.draft import PartFolder
from ripple.spark.fold import laid_out
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.session import session
from ripple.spark.task_results import WantedResults
from ripple.spark.work import pickled
from ripple.storage.log import LogSettings, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk

ROWS = int(os.environ.get("RIPPLE_BENCH_ROWS") or (2_000_000 if QUICK else 20_000_000))
KEYS = 1_000_000
SKEW = 4
"""The first share x of keys has x ** (1 / SKEW) of the trades: 0.1 % of them has a sixth."""
PARTITIONS = 64
IS_LARGE = ROWS > 20_000_000
OTHERS = () if IS_LARGE else (8, 512)
STATEFUL_ROWS = 10_000
ROUNDS = 1 if QUICK or IS_LARGE else 3
_BLOCK = 1_000_000


def measure() -> list[Row]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session("local[2]", **{"spark.driver.memory": "2g"})
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKS)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    plan = vwap_plan(windows=True)
    shown = plan.outputs[0]
    with tempfile.TemporaryDirectory() as folder:
        places = {count: _log(f"{folder}/{count}", count) for count in (PARTITIONS, *OTHERS)}
        _parquet(f"{folder}/parquet")
        source, parcel = sources_at(places[PARTITIONS], plan), Parcel.of(plan, pickled)
        replays = {count: Replay(spark, plan, place) for count, place in places.items()}
        desk = PartFolder(folder, pa.schema(arrow_fields(shown.fields)))
        jobs, _ = laid_out(parcel, plan, source, WantedResults((), folders={shown.name: desk}))

        def in_process() -> None:
            for job in jobs:
                for _ in job.run():
                    pass

        def written(count: int) -> Callable[[], Any]:
            to = {shown.name: f"{folder}/rows"}
            return lambda: replays[count].write(to, overwrite=True)

        calls: dict[str, Callable[[], Any]] = {
            "engine": in_process,
            "sql": lambda: grouped(spark, f"{folder}/parquet"),
        } | {f"{count} partitions": written(count) for count in places}
        digests = {count: one.report().digest for count, one in replays.items()}
        if len(set(digests.values())) > 1:
            raise RuntimeError(f"replays of the same trades differ: {digests}")
        rates = rates_of(calls, ROWS, ROUNDS, warms_up=not IS_LARGE)
        peaks = peaks_mb()
        _few(f"{folder}/few")
        operators = {"stateful": lambda: _with_state(spark, f"{folder}/few")}
        rates |= rates_of(operators, STATEFUL_ROWS, 1)
    spark.stop()
    what = f"replay of {ROWS / 1e6:g} M trades, {KEYS / 1e6:g} M keys, {PARTITIONS} partitions"
    others = {
        "the engine in this process, same log and sink": rates["engine"],
        "Spark SQL's group-by, from Parquet": rates["sql"],
        f"transformWithStateInPandas, {STATEFUL_ROWS:,} of them": rates["stateful"],
    } | {f"the same in {count} partitions": rates[f"{count} partitions"] for count in OTHERS}
    memory = [Row(f"most memory of {name}", value, "MB") for name, value in sorted(peaks.items())]
    return [*beside(f"{what}, per core", rates[f"{PARTITIONS} partitions"], "M/s", others,
                    at_least(0.7, of_ratio=True)), *memory]  # fmt: skip


def _blocks() -> Iterator[pa.RecordBatch]:
    names = pa.array([f"K{number:06}" for number in range(KEYS)])
    for first in range(0, ROWS, _BLOCK):
        draw, count = np.random.default_rng(first), min(_BLOCK, ROWS - first)
        keys = (KEYS * draw.random(count) ** SKEW).astype(np.int64)
        yield pa.record_batch(
            {
                "symbol": names.take(pa.array(keys)),
                "price": np.round(draw.uniform(10, 500, count), 2),
                "size": draw.integers(1, 1000, count),
                "timestamp_ns": (1 + first + np.arange(count)) * INTERVAL_NS,
                "venue": pa.array(["XNAS", "XNYS"]).take(pa.array(draw.integers(0, 2, count))),
            }
        )


def _log(folder: str, partitions: int) -> str:
    Path(folder).mkdir()
    topic = Topic.create(
        LiveDisk(folder),
        "trades",
        schema_of(Trade),
        partitions=partitions,
        key=["symbol"],
        settings=LogSettings(sync_appends=0),
    )
    writers = [PartitionWriter(topic, number, LiveClock()) for number in range(partitions)]
    for block in _blocks():
        for number, rows in partitioned(block, ["symbol"], partitions):
            for at in range(0, rows.num_rows, 1 << 14):
                writers[number].append(rows.slice(at, 1 << 14))
    for one in writers:
        one.close()
    return f"log:{folder}/trades"


def _parquet(folder: str) -> None:
    Path(folder).mkdir()
    for number, block in enumerate(_blocks()):
        pq.write_table(pa.Table.from_batches([block]), f"{folder}/{number:03}.parquet")


def _few(folder: str) -> None:
    Path(folder).mkdir()
    rows = next(_blocks()).slice(0, STATEFUL_ROWS)
    pq.write_table(pa.Table.from_batches([rows]), f"{folder}/0.parquet")


def _with_state(spark: Any, folder: str) -> None:
    """Let Spark's operator with state in Python compute the same table, as a query of a batch."""
    minute = "floor(timestamp_ns / 60000000000) as minute"
    trades = spark.readStream.schema(SCHEMA).parquet(folder).selectExpr("*", minute)
    groups = trades.groupBy("symbol", "minute")
    shown = groups.transformWithStateInPandas(
        vwap_processor(["symbol", "minute"]),
        "symbol string, minute long, vwap double, volume long, n long",
        "Update",
        "None",
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = shown.writeStream.format("noop").outputMode("update")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
