"""What Ripple does on Spark, each part once, with the PySpark of this environment.

python -m tests.services.spark_everywhere FOLDER [--connect]; a digest that differs ends it with
exit code 1. With --connect it starts a server of Spark Connect for the session.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import ripple.spark as rs
from ripple.model.pipeline.file import load_plan
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.report import digests_of
from ripple.spark.session import session
from tests.spark.backfills import TRADES, UNTIL, Place
from tests.spark.here import replayed


class Trial:
    """A session and inputs: a log of two partitions, and a folder of three files."""

    def __init__(self, folder: Path, *, connects: bool) -> None:
        settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
        self.connects = connects
        self.spark = connected(settings) if connects else session("local[2]", **settings)
        self.folder = folder
        self.place = Place(folder, 2)

    def parts(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield the parts by name."""
        yield "replay of a log", lambda: self._replay("minutes", self.place.whole)
        yield "replay of a folder", lambda: self._replay("minutes", f"csv:{self.folder}/history")
        yield "replay of two stages", lambda: self._replay("total", self.place.whole)
        yield "replay of a DataFrame", self._frame
        yield "ripple.log", self._table
        yield "write", self._write
        yield "run", self._run
        yield "a run that follows", self._followed
        yield "validate", self._validate
        yield "backfill", self._backfill
        yield "a streaming DataFrame", self._landing
        yield "foreachBatch", self._each_batch

    def _file(self, name: str) -> str:
        return f"{self.place.file}:{name}"

    def _expected(self, name: str, source: str, *, closes: bool = True) -> Any:
        plan = load_plan(self._file(name))
        parcel = Parcel.of(self._file(name), lambda plan: b"")
        return replayed(parcel, plan, sources_at(source, plan), closes=closes)

    def _replay(self, name: str, source: str) -> None:
        report, rows, _ = self._expected(name, source)
        one = rs.Replay(self.spark, self._file(name), source)
        assert one.report().digest == report.digest
        assert one.rows().count() == len(rows["out"]) > 0

    def _frame(self) -> None:
        file, history = self._file("minutes"), [one for one in TRADES if one["t"] < UNTIL]
        frame = self.spark.createDataFrame(history, "symbol string, price double, size int, t long")
        frame.createOrReplaceTempView("history")
        one = rs.Replay(self.spark, file, frame)
        read = rs.Replay(self.spark, file, f"csv:file:{self.folder}/history").report()
        assert one.report().digest == read.digest
        assert read.counters["consumed"] == len(history)
        rows = self.spark.sql(f"SELECT * FROM ripple_replay(TABLE(history), '{file}')").collect()
        assert sorted(rows) == sorted(one.rows().collect()) != []
        assert sorted(frame.transform(rs.apply(file)).collect()) == sorted(rows)

    def _table(self) -> None:
        table = self.spark.read.format("ripple.log").load(f"{self.folder}/whole/trades")
        assert table.count() == len(TRADES)
        assert 0 < table.where("partition = 1 and offset < 9").count() <= 9

    def _write(self) -> None:
        source = self.place.whole
        expected = self._expected("running", source)[0]
        sinks = {"out": f"{self.folder}/rows"}
        report = rs.Replay(self.spark, self._file("running"), source).write(
            sinks, letters=f"{self.folder}/letters"
        )
        assert report.digest == expected.digest
        assert pq.read_table(f"{self.folder}/rows").num_rows == report.rows["out"]

    def _run(self) -> None:
        reports: list[Any] = []
        query = rs.run(
            self.spark,
            self._file("minutes"),
            self.place.whole,
            f"log:{self.folder}/ran/out",
            f"{self.folder}/ran-state",
            follow=False,
            show=None if self.connects else lambda _, found: reports.extend(found),
        )
        query.awaitTermination()
        seen = [one["observedMetrics"]["ripple"] for one in query.recentProgress]
        counts = [one["values"][0] if self.connects else one["events"] for one in seen]
        assert sum(filter(None, counts)) == len(TRADES)
        lags = [one["values"][3] if self.connects else one["lag_ns"] for one in seen]
        known = [lag for lag in lags if lag is not None]
        assert min(known) > 0, lags  # the events are of the past
        if self.connects:  # its output is compared by the validation
            return
        found = digests_of(load_plan(self._file("minutes")), reports)[1]
        assert found == self._expected("minutes", self.place.whole, closes=False)[0].digest

    def _followed(self) -> None:
        query = rs.run(
            self.spark,
            self._file("minutes"),
            self.place.whole,
            f"log:{self.folder}/followed/out",
            f"{self.folder}/followed-state",
        )
        query.processAllAvailable()
        if not self.connects:  # no micro-batch waits for Spark's own progress
            kind = query._jsq.streamingQuery().getClass().getSimpleName()
            assert kind == "AsyncProgressTrackingMicroBatchExecution", kind
        query.stop()
        self._compared("followed", crashes=1)

    def _validate(self) -> None:
        self._compared("ran", crashes=4)

    def _compared(self, name: str, crashes: int) -> None:
        verdict = rs.validate(
            self.spark,
            self._file("minutes"),
            self.place.whole,
            crashes=crashes,
            oracle_rows=100,
            against=(f"log:{self.folder}/{name}/out", f"checkpoints:{self.folder}/{name}-state"),
        )
        assert verdict.holds, verdict.text()

    def _backfill(self) -> None:
        one = rs.Backfill(
            self.spark,
            self._file("minutes"),
            f"csv:{self.folder}/history",
            until_ns=UNTIL,
            live=self.place.live,
            store=str(self.folder / "store"),
            partitions=1,
        )
        assert one.run().rows == sum(trade["t"] < UNTIL for trade in TRADES)

    def _streamed(self) -> Any:
        given = self.folder / "given"
        if not given.exists():
            given.mkdir()
            (given / "0.json").write_text("\n".join(map(json.dumps, TRADES)))
        schema = "symbol string, price double, size int, t long"
        return self.spark.readStream.schema(schema).json(str(given))

    def _landing(self) -> None:
        query = rs.run(
            self.spark,
            self._file("minutes"),
            self._streamed(),
            f"log:{self.folder}/landed-out",
            f"{self.folder}/landed-state",
            landing=f"log:{self.folder}/landed",
            partitions=2,
            follow=False,
        )
        query.awaitTermination()
        verdict = rs.validate(
            self.spark,
            self._file("minutes"),
            f"log:{self.folder}/landed",
            crashes=0,
            oracle_rows=0,
            against=(f"log:{self.folder}/landed-out", f"checkpoints:{self.folder}/landed-state"),
        )
        assert verdict.holds, verdict.text()

    def _each_batch(self) -> None:
        file, place = self._file("minutes"), str(self.folder / "batches")

        def folded(frame: Any, number: int) -> None:
            rows = frame.transform(rs.apply(file))
            rows.write.mode("overwrite").parquet(f"{place}/{number}")

        writer = self._streamed().writeStream.foreachBatch(folded)
        writer = writer.option("checkpointLocation", f"{place}-state")
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = rs.replay(self.spark, file, f"json:file:{self.folder}/given")
        assert sorted(self.spark.read.parquet(f"{place}/0").collect()) == sorted(rows.collect())


def attempted(does: Callable[[], None]) -> None:
    """Try a part; again where Spark gave up a Python process, which it does after 10 s.

    Queries of Spark Connect start processes of their own, which import pandas before they answer.
    """
    for attempts_left in reversed(range(3)):
        try:
            does()
        except Exception as error:
            if "connect back" not in str(error) or not attempts_left:
                raise
        else:
            return


def connected(settings: dict[str, str]) -> Any:
    """Return a session of Spark Connect, with a server of its own."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.remote("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    rs.register(spark)
    return spark


if __name__ == "__main__":
    import pyspark

    warnings.simplefilter("ignore")
    failed = False
    trial = Trial(Path(sys.argv[1]), connects="--connect" in sys.argv)
    for part, does in trial.parts():
        try:
            attempted(does)
            outcome = "as expected"
        except Exception as error:  # the others are tried, too
            failed = True
            outcome = f"{type(error).__name__}: {error}"
        sys.stdout.write(f"PySpark {pyspark.__version__}: {part}: {outcome}\n")
        sys.stdout.flush()
    sys.exit(failed)
