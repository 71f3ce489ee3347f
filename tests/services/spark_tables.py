"""Tables of Delta Lake and Iceberg with Ripple on Spark, by the jars of a class path.

python -m tests.services.spark_tables FOLDER CLASSPATH; exit code 0 where all is as expected.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import ripple.spark as rs
from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.spark.session import session
from tests.spark.backfills import SOURCE, TRADES, UNTIL, Place
from tests.spark.logs import append, topic_of

# Sessions that merge remove rows that were shown before.
MERGED = """
shown = trades("shown").window("s", rp.Session("3s"), lateness="5s", trigger=rp.OnEveryElement()
    ).fold("rows", **ends).sink("out")
"""
COLUMNS = "symbol string, price double, size int, t long"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
}


def first_version(spark: Any, table: str, form: str) -> int:
    if form == "delta":
        return 0
    return int(spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").first()[0])


def versions_are_read(spark: Any, file: str, table: str, form: str) -> None:
    """A version of a table is replayed as it was, before later writes."""
    halves = [spark.createDataFrame(rows, COLUMNS) for rows in (TRADES[:400], TRADES[400:])]
    before = rs.Replay(spark, file, halves[0]).report().digest
    whole = rs.Replay(spark, file, halves[0].union(halves[1])).report().digest
    halves[0].writeTo(table).using(form).create()
    version = first_version(spark, table, form)
    pinned = rs.Replay(spark, file, f"table:{table}")
    open_frame = rs.Replay(spark, file, spark.table(table))
    here = [f"table:{table} VERSION AS OF {version}"]
    if form == "iceberg":
        assert open_frame.report().inputs["trades"]["tables"] == here
    between = spark.sql("SELECT unix_micros(now())").first()[0] * 1000
    halves[1].writeTo(table).append()
    assert pinned.report().digest == before
    with pytest.raises(InputError, match=r"^a table has changed between two readings: it was "):
        open_frame.report()
    for past in (f"VERSION AS OF {version}", f"TIMESTAMP AS OF {between}ns"):
        report = rs.Replay(spark, file, f"table:{table} {past}").report()
        assert report.digest == before
        assert report.inputs["trades"]["tables"] == pinned.report().inputs["trades"]["tables"]
        if form == "iceberg":
            assert report.inputs["trades"]["tables"] == here
    with pytest.raises(InputError, match="had no version at 2001-01-01T00:00:00Z: its first is"):
        rs.Replay(spark, file, f"table:{table} TIMESTAMP AS OF 2001-01-01T00:00:00Z")
    old = spark.sql(f"SELECT * FROM {table} VERSION AS OF {version}")
    assert rs.Replay(spark, file, old).report().digest == before
    assert rs.Replay(spark, file, spark.table(table)).report().digest == whole
    assert rs.Replay(spark, file, f"table:{table}").report().digest == whole


def a_backfill_notes_the_version(spark: Any, table: str, form: str, folder: Path) -> None:
    """A receipt has the version of a table, and holds when the table has grown."""
    folder.mkdir()
    place = Place(folder, 2)
    history = spark.createDataFrame([one for one in TRADES if one["t"] < UNTIL], COLUMNS)
    history.writeTo(table).using(form).create()

    def backfill(source: str) -> Any:
        store, file = str(folder / "store"), f"{place.file}:minutes"
        return rs.Backfill(spark, file, source, until_ns=UNTIL, live=place.live, store=store)

    receipt = backfill(f"table:{table}").run()
    version = first_version(spark, table, form)
    assert receipt.history == f"table:{table} VERSION AS OF {version}"
    history.writeTo(table).append()
    assert backfill(receipt.history).check(receipt) == []


def changes_are_merged(spark: Any, file: str, table: str, form: str, folder: Path) -> None:
    """A table is kept at the rows of an output, also where a micro-batch comes twice."""
    source = topic_of(folder, load_plan(file), TRADES[:400], partitions=2, key=["symbol"])
    log, merge = f"{folder}/out", rs.merge_into(table, file)

    def twice(changes: Any, number: int) -> None:
        merge(changes, number)
        merge(changes, number)

    for half in range(2):
        if half:
            append(source, file, TRADES[400:])
        query = rs.run(
            spark, file, source, f"log:{log}", f"{folder}/state", batch_rows=3, follow=False
        )
        query.awaitTermination()
        changes = spark.read.format("ripple.log").load(log)
        if not half:
            rows = changes.drop("op", "partition", "offset").limit(0)
            rows.writeTo(table).using(form).create()
        stream = spark.readStream.format("ripple.log").load(log).writeStream.foreachBatch(twice)
        stream = stream.option("checkpointLocation", f"{folder}/merging").trigger(availableNow=True)
        stream.start().awaitTermination()
        assert half or changes.where("op = 'remove'").count() > 0
        spark.sql(f"REFRESH TABLE {table}")  # Iceberg's catalog of a session holds it for 30 s
        found = spark.table(table).collect()
        expected = rs.replay(spark, file, source, closes=False).collect()
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, map(tuple, expected))) != []


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder, classpath = Path(sys.argv[1]), sys.argv[2]
    (folder / "p.py").write_text(f"{SOURCE}{MERGED}")
    place = {
        "spark.driver.extraClassPath": classpath,
        "spark.sql.catalog.ice.warehouse": f"{folder}/ice",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
    }
    spark = session("local[2]", **SETTINGS, **place)
    for form, catalog in (("delta", "default"), ("iceberg", "ice.market")):
        if form == "iceberg":
            spark.sql(f"CREATE NAMESPACE {catalog}")
        versions_are_read(spark, f"{folder}/p.py:minutes", f"{catalog}.trades", form)
        a_backfill_notes_the_version(spark, f"{catalog}.history", form, folder / f"{form}-backfill")
        own = folder / form
        own.mkdir()
        changes_are_merged(spark, f"{folder}/p.py:shown", f"{catalog}.shown", form, own)
        sys.stdout.write(f"{form}: as expected\n")
        sys.stdout.flush()
