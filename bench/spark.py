"""Replay on Spark, by processor time of JVM and Python together, beside the engine in this process
and Spark SQL's own windowed group-by of the same trades; ``local[2]``.

Needs the extra ``spark`` and Java.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.row import Row, at_least, beside
from bench.timing import QUICK
from bench.trades import Trade, blocks, vwap_plan
from ripple.keys.partitioner import partitioned
from ripple.log import LogSettings, PartitionWriter, Topic
from ripple.records import schema_of
from ripple.spark import Replay
from ripple.spark.fold import Wanted, laid_out
from ripple.spark.parcel import Parcel
from ripple.spark.session import session
from ripple.spark.shares import source_at
from ripple.spark.work import pickled
from ripple.world import LiveClock, LiveDisk

EVENTS = 1_000_000 if QUICK else 10_000_000
SYMBOLS = 2_000
ROUNDS = 2 if QUICK else 4
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def measure() -> list[Row]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session("local[2]", **{"spark.driver.memory": "2g"})
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    plan = vwap_plan(windows=True)
    with tempfile.TemporaryDirectory() as folder:
        place = _written(folder)
        source, parcel = source_at(place, plan), Parcel.of(plan, pickled)
        jobs, _ = laid_out(parcel, plan, source, Wanted(()))
        replay = Replay(spark, plan, place)

        def in_process() -> None:
            for job in jobs:
                for _ in job.run():
                    pass

        calls: dict[str, Callable[[], Any]] = {
            "engine": in_process,
            "replay": replay.report,
            "sql": lambda: _grouped(spark, f"{folder}/parquet"),
        }
        rates = _rates(calls)
    spark.stop()
    others = {
        "the engine in this process, same log": rates["engine"],
        "Spark SQL's group-by, from Parquet": rates["sql"],
    }
    name = f"replay of {EVENTS / 1e6:g} M trades, windows of 60 s, per core"
    return list(beside(name, rates["replay"], "M/s", others, at_least(0.6, of_ratio=True)))


def _grouped(spark: Any, folder: str) -> None:
    """Let Spark compute the same table; as text, for its own times are microseconds."""
    spark.read.parquet(folder).createOrReplaceTempView("trades")
    spark.sql(
        "select symbol, floor(timestamp_ns / 60000000000) as minute, "
        "sum(price * size) / sum(size) as vwap, sum(size) as volume, count(*) as n "
        "from trades group by symbol, floor(timestamp_ns / 60000000000)"
    ).write.format("noop").mode("overwrite").save()


def _rates(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return millions of events per second of processor time; the calls take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for round_ in range(ROUNDS + 1):
        for name, call in calls.items():
            before_s = _processor_s()
            call()
            used_s = _processor_s() - before_s
            if round_:  # in the first, code is compiled
                best[name] = min(best[name], used_s)
    return {name: EVENTS / used_s / 1e6 for name, used_s in best.items()}


def _processor_s() -> float:
    """Return the processor time of this process and all that it has started, seconds."""
    time.sleep(0.2)  # what was done is noted when tasks end
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = sum(map(int, fields[11:15]))
    own = os.getpid()
    return sum(ticks for pid, ticks in used.items() if _is_below(pid, own, parents)) / TICKS_PER_S


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == ancestor:
            return True
        pid = parents[pid]
    return False


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
