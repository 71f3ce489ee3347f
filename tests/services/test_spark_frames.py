"""DataFrames of Spark as sources: the tables equal one engine's tables over the rows in order."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.spark.dataframe.scan import Scan
from ripple.spark.options import NOWHERE
from ripple.spark.report import digests_of
from tests.services.spark_session import MARKS, spark
from tests.services.test_spark import SOURCE, engine_over

pytestmark = [*MARKS, pytest.mark.usefixtures("quick_jvms")]
__all__ = ["spark"]

COLUMNS = "symbol string, venue string, price double, size long, t long"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipelines.py"
    path.write_text(SOURCE.replace('out_of_order="1s")', 'out_of_order="1s", key="symbol")'))
    return path


def trades(count: int) -> list[dict[str, Any]]:
    """Return trades of few times, in order of time and of their fields."""
    chance = random.Random(11)
    rows = [
        {
            "symbol": f"S{chance.randrange(30)}",
            "venue": chance.choice("AB"),
            "price": chance.choice([0.1, 1e17, -1e17, 0.0, -0.0, 2.5, 1e-9]),
            "size": chance.randrange(1, 9),
            "t": 1_700_000_000_000_000_000 + chance.randrange(count // 4) * 1_000_000,
        }
        for _ in range(count)
    ]
    order = ("t", "symbol", "venue", "price", "size")
    return sorted(rows, key=lambda row: ([row[name] for name in order], str(row["price"])))


def shuffled(spark: Any, rows: list[dict[str, Any]]) -> Any:
    frame = spark.createDataFrame(random.Random(3).sample(rows, len(rows)), COLUMNS)
    return frame.repartition(5)


@pytest.mark.parametrize("name", ["whole", "pipeline"])
def test_a_dataframe_has_the_digests_of_one_engine(spark: Any, file: Path, name: str) -> None:
    place, events = f"{file}:{name}", trades(2000)
    plan, frame = load_plan(place), shuffled(spark, events)
    digests, digest = digests_of(plan, [{"digests": engine_over(plan, events, ["trades"]).digests}])
    one = rp.spark.Replay(spark, place, frame)
    report = one.report()
    assert (report.digest, dict(report.digests)) == (digest, digests)
    assert report.inputs["trades"]["rows"] == 2000
    assert len([part for part in report.partitions if part["stage"] == 0]) == 2
    for tasks in (1, 5):
        again = rp.spark.Replay(spark, place, frame.coalesce(1), partitions=tasks).report()
        assert again.digest == digest
        assert again.inputs == report.inputs


@pytest.mark.parametrize("name", ["whole", "pipeline"])
def test_files_of_parquet_are_read_by_tasks_alike(
    spark: Any, file: Path, tmp_path: Path, name: str
) -> None:
    shuffled(spark, trades(2000)).write.parquet(f"{tmp_path}/trades")
    frame = spark.read.parquet(f"{tmp_path}/trades")
    start, stop = (f"{1_700_000_000_000_000_000 + ms * 1_000_000}ns" for ms in (101, 399))
    for more in ({}, {"partitions": 3}, {"order_by": "size"}, {"start": start, "stop": stop}):
        one = rp.spark.Replay(spark, f"{file}:{name}", frame, **more)
        other = rp.spark.Replay(spark, f"{file}:{name}", frame.where("size > -1"), **more)
        assert isinstance(one._input.sorted, Scan)
        assert not isinstance(other._input.sorted, Scan)
        found, expected = one.report(), other.report()
        assert (found.digest, found.inputs) == (expected.digest, expected.inputs), more
        assert found.counters == expected.counters


def test_however_many_cores_few_rows_are_read_by_one_task(
    spark: Any, file: Path, tmp_path: Path
) -> None:
    from ripple.spark.dataframe.file_scan import files_scan  # needs PySpark
    from ripple.spark.dataframe.source_frame import SourceFrame

    shuffled(spark, trades(40)).write.parquet(f"{tmp_path}/trades")
    plan, frame = load_plan(f"{file}:whole"), spark.read.parquet(f"{tmp_path}/trades")
    one = SourceFrame.of(frame, plan.source, rank=None)
    found = [
        files_scan(one, ("symbol",), tasks, NOWHERE, NOWHERE, few_rows=rows)
        for tasks, rows in ((32, 40), (32, 39), (32, 0), (2, 40), (2, 39))
    ]
    assert [scan and scan.tasks for scan in found] == [1, None, None, 1, 2]


def test_it_is_a_step_of_transform_and_takes_times(spark: Any, file: Path, tmp_path: Path) -> None:
    from pyspark.sql import functions

    events = trades(400)
    frame = shuffled(spark, events)
    timed = frame.withColumn("t", functions.timestamp_micros((frame.t / 1000).cast("long")))
    found = timed.transform(rp.spark.apply(f"{file}:whole"))
    assert found.columns == ["symbol", "price", "top"]
    assert found.count() == len({row["symbol"] for row in events})
    plan = load_plan(f"{file}:whole")
    digest = digests_of(plan, [{"digests": engine_over(plan, events, ["trades"]).digests}])[1]
    one = rp.spark.Replay(spark, f"{file}:whole", timed)
    assert one.write({"sums-sink": str(tmp_path / "sums")}).digest == digest
    assert spark.read.parquet(str(tmp_path / "sums")).count() == found.count()
    start = one.rows(timestamps=True)
    assert start.columns == found.columns  # it has no times
    # By name: a table, and a folder of Spark's own with a column in the names of folders.
    timed.createOrReplaceTempView("sold")
    timed.write.partitionBy("venue").parquet(f"{tmp_path}/by-venue")
    frame.select("symbol", "venue", "price", "size", "t").write.option("header", True).csv(
        f"{tmp_path}/texts"
    )
    for name in ("table:sold", f"file:{tmp_path}/by-venue", f"csv:file:{tmp_path}/texts"):
        named = rp.spark.Replay(spark, f"{file}:whole", name, header=True)
        assert named.report().digest == digest, name
    rows = spark.sql(f"SELECT * FROM ripple_replay(TABLE(sold), '{file}:whole')")
    assert rows.columns == found.columns
    assert sorted(map(tuple, rows.collect())) == sorted(map(tuple, found.collect()))
    with pytest.raises(InputError, match=r"Spark cannot read the table nowhere: .*nowhere"):
        rp.spark.replay(spark, f"{file}:whole", "table:nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"Spark cannot read file:\S+: there are no files of parq"):
        rp.spark.replay(spark, f"{file}:whole", f"file:{tmp_path}/empty")
    changes = one.changes(every=100).where("symbol = 'S1'").orderBy("partition", "cut").collect()
    (last,) = [row.price for row in found.where("symbol = 'S1'").collect()]
    assert (changes[-1].op, changes[-1].price) == ("set", last)
    # A range of time, and nothing at all.
    begin = sorted(row["t"] for row in events)[len(events) // 2]
    later = rp.spark.Replay(spark, f"{file}:whole", timed, start=f"{begin}ns").report()
    assert later.counters["consumed"] == sum(row["t"] >= begin for row in events)
    empty = rp.spark.Replay(spark, f"{file}:whole", timed.where("size > 99")).report()
    assert (empty.counters["consumed"], empty.rows) == (0, {"sums-sink": 0})


def test_microseconds_of_times_are_exact(spark: Any) -> None:
    from pyspark.sql import functions

    from ripple.spark.dataframe.source_frame import micros_of

    times = [1_700_000_000_000_000_999 + 1000 * n for n in range(50)] + [-1, -1000, 0, 999]
    frame = spark.createDataFrame([(time,) for time in times], "t long")
    found = frame.select(micros_of(functions.col("t")).alias("micros")).collect()
    assert [row.micros for row in found] == [time // 1000 for time in times]


def test_dataframes_that_cannot_be_repeated_are_refused(spark: Any, file: Path) -> None:
    from pyspark.sql import functions

    from ripple.spark.session import SparkJobError

    place, frame = f"{file}:whole", shuffled(spark, trades(20))
    numbered = frame.withColumn("n", functions.monotonically_increasing_id())
    mapped = frame.selectExpr("*", "struct(map('a', 1) AS m) AS pairs")
    for wrong, more, expected in [
        (frame.withColumn("price", functions.rand()), {}, "has other rows each time"),
        (numbered, {"order_by": "n"}, "has other rows each time"),
        (frame, {"order_by": "seq"}, "cannot be ordered by 'seq'"),
        (mapped, {"order_by": "pairs"}, "cannot be ordered by 'pairs': a column of struct<m:map<"),
        (frame.selectExpr("*", "price AS price"), {}, "has 2 columns 'price': name them apart"),
        (frame.withColumn("t", frame.t.cast("double")), {}, "event time 't' .* is double in the"),
        (frame, {"start": "17"}, "have no offsets"),
        (frame, {"cut": "state"}, "cut= is of a run"),
        (frame.drop("price"), {}, "has no column 'price'"),
    ]:
        with pytest.raises(rp.RippleError, match=expected) as failed:
            rp.spark.replay(spark, place, wrong, **more)
        assert "\n" not in str(failed.value)
    with pytest.raises(InputError, match=r"order_by= is of a DataFrame"):
        rp.spark.replay(spark, place, "log:nowhere/t", order_by="t")
    ordered = numbered.localCheckpoint()  # which has the same rows from now on
    assert rp.spark.replay(spark, place, ordered, order_by="n").count() > 0
    twice = frame.union(frame)
    with pytest.raises(SparkJobError, match="two records of trades have the identity symbol"):
        rp.spark.Replay(spark, place, twice, identity=["symbol", "size"]).report()
    report = rp.spark.Replay(spark, place, twice).report()
    assert report.inputs["trades"]["twice"] >= 20
    assert "records of trades equal another one" in report.text()


SALES = """
import datetime as dt
import decimal
from typing import Annotated

import ripple as rp

Price = Annotated[decimal.Decimal, rp.Decimal(12, 4)]

@rp.record
class Leg:
    size: int
    price: Price | None = None
    expires: dt.date | None = None

@rp.record
class Sale:
    symbol: str
    day: dt.date
    leg: Leg
    f: float | None
    at: dt.datetime
    paid: Annotated[decimal.Decimal, rp.Decimal(38, 6)]

sales = (
    rp.Pipeline("sales").source("sales", Sale).partition("by", key=["symbol", "day"])
    .fold("of", n=rp.count(), price=rp.sum("leg.price"), expires=rp.last("leg.expires"),
        size=rp.sum("leg.size"), at=rp.last("at"), f=rp.last("f"),
        paid=rp.sum("paid"), most=rp.max("paid")).sink("out")
)
"""


def test_records_in_records_dates_times_and_decimals(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "sales.py").write_text(SALES)
    place, chance, nan = f"{tmp_path}/sales.py:sales", random.Random(2), float("nan")
    rows = [
        {
            "symbol": chance.choice("ABC"),
            "day": dt.date(2024, 3, chance.randrange(9, 12)),
            "leg": {
                "size": chance.randrange(9),
                "price": chance.choice([None, decimal.Decimal(number).scaleb(-4)]),
                "expires": chance.choice([None, dt.date(1969, 12, 31)]),
            },
            "f": chance.choice([None, nan, 0.0, -0.0, 2.5]),
            "at": dt.datetime(2024, 3, 10, chance.randrange(4, 9), 30, 0, number, tzinfo=dt.UTC),
            "paid": decimal.Decimal(chance.randrange(-9, 9) * 10**20 + number).scaleb(-6),
        }
        for number in range(90)
    ]
    leg = pa.struct({"size": pa.int8(), "price": pa.decimal128(12, 4), "expires": pa.date32()})
    at = pa.timestamp("us", "UTC")
    kinds = {"symbol": pa.string(), "day": pa.date32(), "leg": leg, "f": pa.float64(), "at": at}
    kinds["paid"] = pa.decimal128(38, 6)
    rows.sort(key=lambda row: row["at"])
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    digest = digest_over(table, place)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # clocks skip an hour that day
    try:
        frame = spark.createDataFrame(table).repartition(3)
        one = rp.spark.Replay(spark, place, frame)
        assert one.report().digest == digest
        frame.createOrReplaceTempView("sales")
        found = spark.sql(f"SELECT * FROM ripple_replay(TABLE(sales), '{place}')").collect()
        assert sorted(map(repr, found)) == sorted(map(repr, one.rows().collect()))
        texts = frame.selectExpr(
            "symbol", "day", "leg.size", "leg.price", "leg.expires", "cast(f as string)",
            "date_format(at, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\") at", "paid",
        )  # fmt: skip
        wrong = (
            "A,2024-03-10,1,1.23456,,,2024-03-10T04:00:00Z,1",
            "A,2024-03-10,1,,,,2024-03-10 04:00:00,1",
        )
        texts.write.csv(f"{tmp_path}/texts")
        (tmp_path / "texts" / "more.csv").write_text("\n".join(wrong))
        read = rp.spark.Replay(spark, place, f"csv:file:{tmp_path}/texts")
        assert read.report().digest == digest
        reasons = sorted(row.reason for row in read.letters().collect())
        assert reasons[0] == "at is empty"
        assert reasons[1].startswith("leg.price is no decimal of at most")
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def digest_over(table: pa.Table, place: str) -> str:
    """Return the digest of a run of a pipeline in this process."""
    seen: list[Any] = []
    plan = load_plan(place)
    rp.run(plan, source=table, sink={}, on_batch=lambda engine, _: seen.append(engine))
    return digests_of(plan, [{"digests": seen[-1].digests}])[1]


REQUESTS = """
import uuid

import ripple as rp

@rp.record
class Request:
    id: uuid.UUID
    body: bytes
    at: int
    tags: list[str]
    labels: dict[str, int]
    sizes: list[int] | None = None

requests = (
    rp.Pipeline("requests").source("requests", Request, time="at")
    .derive("more", tag=rp.col("tags").list.get(0).fill_null("none"),
        many=rp.col("sizes").list.len(), length=rp.col("body").bin.size(),
        b=rp.col("labels").dict.get("b"))
    .flat_map("labels", rp.col("labels"), into=("label", "value"))
    .partition("by", key=["id", "tag", "label"])
    .fold("of", body=rp.max("body"), many=rp.sum("many"), length=rp.sum("length"),
        last=rp.last("id"), b=rp.sum("b"), value=rp.sum("value"))
    .sink("out")
)
"""


def test_uuids_bytes_lists_and_maps(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "requests.py").write_text(REQUESTS)
    place, chance = f"{tmp_path}/requests.py:requests", random.Random(4)
    rows = [
        {
            "id": chance.choice([str.upper, str.lower])(
                str(uuid.UUID(int=chance.randrange(10, 14) << 96))
            ),
            "body": bytes([chance.randrange(256)] * chance.randrange(4)),
            "at": number,
            "tags": [chance.choice('xyé"')] * chance.randrange(3),
            "labels": [*chance.choice([{"a": 1}, {"é": number, "b": 2}]).items()],
            "sizes": chance.choice([None, [], [1, number]]),
        }
        for number in range(60)
    ]
    kinds = {"id": pa.string(), "body": pa.binary(), "at": pa.int64(),
             "tags": pa.list_(pa.string()), "labels": pa.map_(pa.string(), pa.int64()),
             "sizes": pa.list_(pa.int64())}  # fmt: skip
    table = pa.Table.from_pylist(rows, pa.schema(kinds))
    digest = digest_over(table, place)
    one = rp.spark.Replay(spark, place, spark.createDataFrame(table).repartition(3))
    report = one.report()
    assert (report.digest, report.together_why) == (digest, None)
    found = one.rows().collect()
    assert {bytes(row["body"]) for row in found} <= {row["body"] for row in rows}
    assert {row["id"] for row in found} == {row["id"].lower() for row in rows}
