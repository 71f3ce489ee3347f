"""What Ripple does on Spark, each part once, with the PySpark of this environment.

python -m tests.services.spark_everywhere FOLDER; a digest that differs ends it with exit code 1.
"""

from __future__ import annotations

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

    def __init__(self, folder: Path) -> None:
        settings = {"spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1"}
        self.spark = session("local[2]", is_brief=True, **settings)
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
        yield "validate", self._validate
        yield "backfill", self._backfill

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
            show=lambda _, found: reports.extend(found),
        )
        query.awaitTermination()
        found = digests_of(load_plan(self._file("minutes")), reports)[1]
        assert found == self._expected("minutes", self.place.whole, closes=False)[0].digest

    def _validate(self) -> None:
        verdict = rs.validate(
            self.spark,
            self._file("minutes"),
            self.place.whole,
            crashes=4,
            oracle_rows=100,
            against=(f"log:{self.folder}/ran/out", f"checkpoints:{self.folder}/ran-state"),
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


if __name__ == "__main__":
    import pyspark

    warnings.simplefilter("ignore")
    failed = False
    for part, does in Trial(Path(sys.argv[1])).parts():
        try:
            does()
            outcome = "as expected"
        except Exception as error:  # the others are tried, too
            failed = True
            outcome = f"{type(error).__name__}: {error}"
        sys.stdout.write(f"PySpark {pyspark.__version__}: {part}: {outcome}\n")
        sys.stdout.flush()
    sys.exit(failed)
