"""A replay of ten files, a day each, beside one with the same rows, and Spark SQL's group-by of
the ten: processor time of JVM and Python together, ``local[2]``; as DataFrames, and by name.

Needs the extra ``spark`` and Java. ``--rows N`` trades in place of four million.
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

from bench.row import Row, at_most
from bench.spark import grouped
from bench.spark_processes import spent_s_of
from bench.timing import QUICK
from bench.trades import blocks, vwap_plan
from ripple.spark import Replay
from ripple.spark.session import session

ROWS = int(os.environ.get("RIPPLE_BENCH_ROWS") or 4_000_000)
FILES = 10
SYMBOLS = 100
ROUNDS = 2 if QUICK else 4


def measure() -> list[Row]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = session("local[2]", **{"spark.driver.memory": "2g"})
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    plan = vwap_plan(windows=True)
    with tempfile.TemporaryDirectory() as folder:
        _write(folder)
        one, ten = f"{folder}/one", f"{folder}/ten"
        replays = {
            "one file": Replay(spark, plan, spark.read.parquet(one)),
            "ten files": Replay(spark, plan, spark.read.parquet(ten)),
            "one file by name": Replay(spark, plan, f"parquet:{one}/0.parquet"),
            "ten files by name": Replay(spark, plan, f"parquet:{ten}"),
        }
        digests = {name: replay.report().digest for name, replay in replays.items()}
        if len(set(digests.values())) > 1:
            raise RuntimeError(f"replays of the same rows differ: {digests}")
        calls: dict[str, Callable[[], Any]] = {name: one.report for name, one in replays.items()}
        calls["sql"] = lambda: grouped(spark, ten)
        spent_s = spent_s_of(calls, ROUNDS)
    spark.stop()
    rows = []
    for kind in ("", " by name"):
        ours, what = spent_s[f"ten files{kind}"], f"replay of {FILES} files{kind}, {ROWS / 1e6:g} M"
        rows += [
            Row(what, ours, "s", f"one file{kind}", spent_s[f"one file{kind}"], _limit(1.3)),
            Row(what, ours, "s", "Spark SQL's group-by", spent_s["sql"], _limit(1.0)),
        ]
    return rows


def _limit(ratio: float) -> Any:
    return at_most(ratio, of_ratio=True)


def _write(folder: str) -> None:
    """Write the trades in order of time, to one file and to ten."""
    for name in ("one", "ten"):
        Path(folder, name).mkdir()
    whole = None
    for number, block in enumerate(blocks(ROWS, SYMBOLS, -(-ROWS // FILES))):
        rows = pa.Table.from_batches([block])
        whole = whole or pq.ParquetWriter(f"{folder}/one/0.parquet", rows.schema)
        whole.write_table(rows, row_group_size=1 << 18)
        pq.write_table(rows, f"{folder}/ten/{number}.parquet", row_group_size=1 << 18)
    assert whole is not None
    whole.close()
