"""Replay on Spark, by processor time of JVM and Python together, beside the engine in this process,
Spark SQL's own windowed group-by of the same trades, and ``applyInPandas`` as its documentation has
it; then streaming, beside Spark's own stateful operators in Python. ``local[2]``.

Needs the extra ``spark`` and Java.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench import spark_streaming as streaming
from bench.row import Row, at_least, beside
from bench.spark_processes import rates_of
from bench.timing import QUICK
from bench.trades import Trade, blocks, vwap_plan
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

EVENTS = 1_000_000 if QUICK else 20_000_000
PANDAS_EVENTS = 200_000 if QUICK else 1_000_000
SYMBOLS = 2_000
ROUNDS = 2 if QUICK else 4


def measure() -> list[Row]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session("local[2]", is_brief=False, **{"spark.driver.memory": "2g"})
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    plan = vwap_plan(windows=True)
    with tempfile.TemporaryDirectory() as folder:
        place = _written(folder)
        source, parcel = sources_at(place, plan), Parcel.of(plan, pickled)
        replay, shown = Replay(spark, plan, place), plan.outputs[0]
        frame = Replay(spark, plan, spark.read.parquet(f"{folder}/parquet"))
        desk = PartFolder(folder, pa.schema(arrow_fields(shown.fields)))
        jobs, _ = laid_out(parcel, plan, source, WantedResults((), folders={shown.name: desk}))

        def in_process() -> None:
            for job in jobs:
                for _ in job.run():
                    pass

        calls: dict[str, Callable[[], Any]] = {
            "engine": in_process,
            "replay": lambda: replay.write({shown.name: f"{folder}/rows"}, overwrite=True),
            "sql": lambda: grouped(spark, f"{folder}/parquet"),
            "frame": lambda: frame.write({shown.name: f"{folder}/rows"}, overwrite=True),
        }
        same = {one.report().digest for one in (replay, frame)}
        if len(same) > 1:
            raise RuntimeError(f"the replays of the log and of the DataFrame differ: {same}")
        rates = rates_of(calls, EVENTS, ROUNDS)
        in_pandas = {"pandas": lambda: _in_pandas(spark, f"{folder}/parquet")}
        pandas = rates_of(in_pandas, PANDAS_EVENTS, rounds=1)
    streamed = streaming.measure(spark)
    spark.stop()
    others = {
        "the engine in this process, same log and sink": rates["engine"],
        "Spark SQL's group-by, from Parquet": rates["sql"],
        f"applyInPandas, {PANDAS_EVENTS / 1e6:g} M": pandas["pandas"],
    }
    name = f"replay of {EVENTS / 1e6:g} M trades, windows of 60 s, to Parquet, per core"
    replayed = beside(name, rates["replay"], "M/s", others, at_least(0.6, of_ratio=True))
    framed = Row(
        f"replay of a DataFrame of {EVENTS / 1e6:g} M trades in Parquet, per core",
        rates["frame"],
        "M/s",
        "Spark SQL's group-by, from Parquet",
        rates["sql"],
        at_least(1.0, of_ratio=True),
    )
    return [*replayed, framed, *streamed]


def grouped(spark: Any, folder: str) -> None:
    """Let Spark compute the same table; as text, for its own times are microseconds."""
    spark.read.parquet(folder).createOrReplaceTempView("trades")
    spark.sql(
        "select symbol, floor(timestamp_ns / 60000000000) as minute, "
        "sum(price * size) / sum(size) as vwap, sum(size) as volume, count(*) as n "
        "from trades group by symbol, floor(timestamp_ns / 60000000000)"
    ).write.format("noop").mode("overwrite").save()


def _in_pandas(spark: Any, folder: str) -> None:
    """Let pandas compute the same table, a group at a time."""
    trades = spark.read.parquet(folder).limit(PANDAS_EVENTS)
    minutes = trades.selectExpr(
        "symbol", "floor(timestamp_ns / 60000000000) as minute", "price", "size"
    )
    minutes.groupBy("symbol", "minute").applyInPandas(
        _vwap, "symbol string, minute long, vwap double, volume long, n long"
    ).write.format("noop").mode("overwrite").save()


def _vwap(key: tuple[Any, ...], rows: Any) -> Any:
    import pandas as pd  # noqa: PLC0415 - in Spark's processes only

    volume = rows["size"].sum()
    vwap = (rows["price"] * rows["size"]).sum() / volume
    return pd.DataFrame([(*key, vwap, volume, len(rows))])


def _written(folder: str) -> str:
    """Write the trades to a log and to Parquet, in two parts by symbol."""
    topic = Topic.create(
        LiveDisk(folder),
        "trades",
        schema_of(Trade),
        partitions=2,
        key=["symbol"],
        settings=LogSettings(sync_appends=0),
    )
    Path(folder, "parquet").mkdir()
    writers = [PartitionWriter(topic, number, LiveClock()) for number in range(2)]
    files: list[Any] = [None, None]
    for block in blocks(EVENTS, SYMBOLS):
        for number, rows in partitioned(block, ["symbol"], 2):
            for at in range(0, rows.num_rows, 1 << 14):
                writers[number].append(rows.slice(at, 1 << 14))
            path = f"{folder}/parquet/{number}.parquet"
            files[number] = files[number] or pq.ParquetWriter(path, rows.schema)
            files[number].write_batch(rows)
    for one in (*writers, *files):
        one.close()
    return f"log:{folder}/trades"
