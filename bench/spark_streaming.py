"""A running VWAP by symbol in micro-batches: ``ripple.spark.run`` beside Spark's own operators with
state in Python, fed with the same trades; rates by processor time of all processes, latencies by
the clock.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import ripple.spark as rs
from bench.row import Row, at_least, beside
from bench.spark_processes import least_s, say, used, used_since
from bench.timing import QUICK
from bench.trades import Trade, trades, vwap_plan
from ripple.model.keys.partitioner import partitioned
from ripple.model.records import schema_of
from ripple.storage.log import LogSettings, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk

EVENTS = 50_000 if QUICK else 200_000
FEW = 1_000
SYMBOLS = 2_000
ROUNDS = 2 if QUICK else 5
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "symbol string, price double, size long, timestamp_ns long, venue string"
SHOWN = "symbol string, vwap double, volume long, n long"


def measure(spark: Any) -> list[Row]:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKS)
    rates, latencies = {}, {}
    for name, begin in _KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            say(f"streaming, {name}")
            try:
                rates[name], latencies[name] = _fed(*begin(spark, folder))
            except ImportError as error:
                say(f"  left out: {error}")
    ours, latency = rates.pop("ripple"), latencies.pop("ripple")
    name = f"streaming, micro-batches of {EVENTS:,} trades, per core"
    found = list(beside(name, ours, "M/s", rates, at_least(5, of_ratio=True)))
    name = f"latency of a micro-batch of {FEW:,} trades"
    return [*found, *beside(name, latency, "s", latencies, None)]


def _fed(query: Any, feed: Callable[[pa.RecordBatch], None]) -> tuple[float, float]:
    """Return millions of events per second of processor time, and seconds of a small batch.

    From when the trades are given to when their micro-batches are done.
    """
    spent_s, waited, first = [], [], 0
    try:
        for round_ in range(ROUNDS + 1):
            for count in (EVENTS, FEW):
                given = trades(count, SYMBOLS, first)
                first += count
                # What is given is taken at once, not when all is there: giving is a part of it.
                before, began_s = used(), time.perf_counter()
                feed(given)
                query.processAllAvailable()
                took_s = time.perf_counter() - began_s
                say(f"  round {round_} of {ROUNDS}: {count:,} trades in {took_s:.2f} s")
                if round_:  # in the first, code is compiled
                    waited += [took_s] if count == FEW else []
                    one_s = used_since(before)
                    spent_s += [one_s] if count == EVENTS and one_s is not None else []
    finally:
        query.stop()
    return EVENTS / least_s(spent_s) / 1e6, median(waited)


def _ours(spark: Any, folder: str) -> tuple[Any, Callable[[pa.RecordBatch], None]]:
    topic = Topic.create(
        LiveDisk(folder),
        "trades",
        schema_of(Trade),
        partitions=2,
        key=["symbol"],
        settings=LogSettings(sync_appends=0),
    )
    writers = [PartitionWriter(topic, number, LiveClock()) for number in range(2)]

    def feed(batch: pa.RecordBatch) -> None:
        for number, rows in partitioned(batch, ["symbol"], 2):
            for at in range(0, rows.num_rows, 1 << 14):
                writers[number].append(rows.slice(at, 1 << 14))

    feed(trades(FEW, SYMBOLS, 1 << 40))
    place = f"log:{folder}/"
    query = rs.run(
        spark,
        vwap_plan(),
        f"{place}trades",
        f"{place}shown",
        f"{folder}/state",
        every="0 seconds",
        batch_rows=1 << 14,
    )
    return query, feed


def _files(spark: Any, folder: str) -> tuple[Any, Callable[[pa.RecordBatch], None]]:
    Path(folder, "given").mkdir()
    number = iter(range(1 << 30))

    def feed(batch: pa.RecordBatch) -> None:
        at = next(number)
        pq.write_table(pa.Table.from_batches([batch]), f"{folder}/{at}.parquet")
        os.rename(f"{folder}/{at}.parquet", f"{folder}/given/{at}.parquet")

    feed(trades(FEW, SYMBOLS, 1 << 40))
    return spark.readStream.schema(SCHEMA).parquet(f"{folder}/given").groupBy("symbol"), feed


def _with_state(spark: Any, folder: str) -> tuple[Any, Callable[[pa.RecordBatch], None]]:
    groups, feed = _files(spark, folder)
    state = "money double, volume long, n long"
    shown = groups.applyInPandasWithState(_add, SHOWN, state, "update", "NoTimeout")
    return _begun(shown, folder), feed


def _add(key: tuple[Any, ...], frames: Iterator[Any], state: Any) -> Iterator[Any]:
    import pandas as pd  # noqa: PLC0415 - in Spark's processes only

    money, volume, n = state.get if state.exists else (0.0, 0, 0)
    for rows in frames:
        money += float((rows["price"] * rows["size"]).sum())
        volume, n = volume + int(rows["size"].sum()), n + len(rows)
    state.update((money, volume, n))
    yield pd.DataFrame([(*key, money / volume, volume, n)])


def vwap_processor(key_names: Sequence[str]) -> Any:
    """Return a processor for ``transformWithStateInPandas``. Raises ImportError."""
    import google.protobuf  # noqa: F401, PLC0415 - it needs that
    from pyspark.sql.streaming import StatefulProcessor  # noqa: PLC0415 - of newer versions

    names = [*key_names, "vwap", "volume", "n"]

    class Vwap(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("sums", "money double, volume long, n long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:  # noqa: N802, N803
            import pandas as pd  # noqa: PLC0415 - in Spark's processes only

            del timerValues
            money, volume, n = self._state.get() if self._state.exists() else (0.0, 0, 0)
            for part in rows:
                money += float((part["price"] * part["size"]).sum())
                volume, n = volume + int(part["size"].sum()), n + len(part)
            self._state.update((money, volume, n))
            yield pd.DataFrame([(*key, money / volume, volume, n)], columns=names)

        def close(self) -> None:
            pass

    return Vwap()


def _transformed(spark: Any, folder: str) -> tuple[Any, Callable[[pa.RecordBatch], None]]:
    processor = vwap_processor(["symbol"])
    groups, feed = _files(spark, folder)
    shown = groups.transformWithStateInPandas(processor, SHOWN, "Update", "None")
    return _begun(shown, folder), feed


def _begun(shown: Any, folder: str) -> Any:
    writer = shown.writeStream.format("noop").outputMode("update")
    return writer.option("checkpointLocation", f"{folder}/checkpoint").start()


_KINDS: dict[str, Callable[[Any, str], tuple[Any, Callable[[pa.RecordBatch], None]]]] = {
    "ripple": _ours,
    "applyInPandasWithState": _with_state,
    "transformWithStateInPandas": _transformed,
}
