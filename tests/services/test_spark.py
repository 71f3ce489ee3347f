"""Spark reads logs and checkpoints, and replays pipelines to the digests of one engine."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from tests.cli.processes import RIPPLE
from tests.csv_rows import lines_of
from tests.patience import PATIENCE_S, until
from tests.services.spark_session import MARKS, spark
from tests.spark.logs import TRADES, append, topic_of

pytestmark = [*MARKS, pytest.mark.usefixtures("quick_jvms")]
__all__ = ["spark"]

SOURCE = (
    TRADES
    + """
def notional(trade: Trade) -> Trade:
    return Trade(trade.symbol, trade.venue, trade.price * 2, trade.size, trade.t)

first = (
    rp.Pipeline("trades")
    .source("trades", Trade, time="t", out_of_order="1s")
    .map("doubled", notional, into=Trade)
    .partition("by-symbol", key="symbol")
)
windows = first.window("minutes", rp.Tumbling("60s"), lateness="5s").fold(
    "rows", vwap=rp.vwap("price", "size"), n=rp.count(), last=rp.last("price")
)
pipeline = (
    windows.partition("total", key="window_start_ns", partitions=3)
    .fold("totals", vwap=rp.mean("vwap"), n=rp.sum("n"))
    .sink("totals-sink")
    .sink("shown", of="rows")
)
whole = first.fold("sums", price=rp.sum("price"), top=rp.max("price")).sink("sums-sink")
"""
)


@rp.record(version=1)
class Event:
    symbol: str
    size: int


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipelines.py"
    path.write_text(SOURCE)
    return path


def trades(count: int) -> list[dict[str, Any]]:
    chance = random.Random(7)
    return [
        {
            "symbol": f"S{chance.randrange(30)}",
            "venue": chance.choice("AB"),
            "price": chance.choice([0.1, 1e17, -1e17, 2.5, 1e-9]),
            "size": chance.randrange(1, 9),
            "t": 1_700_000_000_000_000_000 + at * 100_000_000 - chance.randrange(3_000_000_000),
        }
        for at in range(count)
    ]


def engine_over(plan: Plan, events: list[dict[str, Any]], names: list[str]) -> Engine:
    """Return one engine over all, with events as they were written in turn without a key."""
    engine = Engine(plan, inputs=names)
    schema = pa.schema([(one.name, one.type) for one in _arrow(plan)])
    for number, name in enumerate(names):
        rows = pa.RecordBatch.from_pylist(events[number :: len(names)], schema)
        engine.apply(name, rows, rows.num_rows)
    engine.close()
    engine.stabilize()
    return engine


def _arrow(plan: Plan) -> pa.Schema:
    from ripple.engine.operators.arrow_types import arrow_fields

    return pa.schema(arrow_fields(plan.source.fields))


def test_a_log_is_a_table_in_order_and_narrowed(spark: Any, file: Path, tmp_path: Path) -> None:
    plan, events = load_plan(f"{file}:whole"), trades(300)
    topic_of(tmp_path / "lg", plan, events, partitions=3)
    table = spark.read.format("ripple.log").option("path", f"{tmp_path}/lg/trades").load()
    assert table.columns == ["symbol", "venue", "price", "size", "t", "partition", "offset"]
    rows = table.collect()
    assert [row.asDict() for row in rows if row.partition == 1] == [
        {**event, "partition": 1, "offset": at} for at, event in enumerate(events[1::3])
    ]
    assert len(rows) == 300
    narrow = table.where("partition = 2 and offset >= 90 and offset < 95")
    assert [row.offset for row in narrow.collect()] == [90, 91, 92, 93, 94]
    assert (table.rdd.getNumPartitions(), narrow.rdd.getNumPartitions()) == (3, 1)
    late = table.where(f"t >= {events[-30]['t']}")
    assert late.count() == sum(event["t"] >= events[-30]["t"] for event in events)
    ranged = spark.read.format("ripple.log").option("from", "0=99,1=98,2=100").option("to", "100")
    assert ranged.load(f"{tmp_path}/lg/trades").count() == 3


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"path": "nowhere/trades"}, "cannot read log:nowhere/trades"),
        ({"path": "{lg}", "form": "1"}, "ripple.log has no option 'form'"),
        ({}, "needs the option 'path'"),
        ({"path": "{lg}", "partitions": "7"}, "has no partition 7"),
        ({"path": "{lg}", "from": "yesterday"}, "an offset, offsets by partition"),
        ({"path": "{lg}", "to": "1000"}, "ends at offset 10, and 1000 was requested"),
    ],
)
def test_invalid_options_of_a_log_are_reported(
    spark: Any, file: Path, tmp_path: Path, options: dict[str, str], why: str
) -> None:
    place = topic_of(tmp_path / "lg", load_plan(f"{file}:whole"), trades(10), partitions=1)
    reader = spark.read.format("ripple.log")
    for name, text in options.items():
        reader = reader.option(name, text.format(lg=place))
    with pytest.raises(Exception, match=why):
        reader.load().count()


def test_checkpoints_are_tables(spark: Any, file: Path, tmp_path: Path) -> None:
    from ripple.cli.main import main

    place = topic_of(tmp_path / "lg", load_plan(f"{file}:whole"), trades(500)[:300], partitions=1)
    kept = f"{tmp_path}/kept"
    reader = spark.read.format("ripple.checkpoint").option("path", kept)
    found = []
    for _ in range(2):
        assert main(["run", f"{file}:whole", "--source", place, "--sink", f"{tmp_path}/out.csv",
                     "--checkpoint-dir", kept]) == 0  # fmt: skip
        found.append(reader.load().collect())
        if len(found) == 1:
            append(place, f"{file}:whole", trades(500)[300:])
    then, now = found
    assert {row.symbol for row in now} == {f"S{n}" for n in range(30)}
    assert {row["ripple.cut"] for row in now} == {'{"trades": 500}'}
    assert {row["ripple.cut"] for row in then} == {'{"trades": 300}'}
    older = then[0]["ripple.checkpoint"]
    assert older != now[0]["ripple.checkpoint"]
    reader = spark.read.format("ripple.checkpoint").option("checkpoint", older)
    assert reader.load(kept).collect() == then  # one that is kept is there as it was
    with pytest.raises(Exception, match="there is no checkpoint x: there are"):
        spark.read.format("ripple.checkpoint").option("checkpoint", "x").load(kept)


@pytest.mark.parametrize("key", [("symbol",), ()])
def test_a_replay_has_the_rows_and_digests_of_one_engine(
    spark: Any, file: Path, tmp_path: Path, key: tuple[str, ...]
) -> None:
    from ripple.spark import Replay

    plan, events = load_plan(str(file)), trades(3000)
    place = topic_of(tmp_path / "lg", plan, events, partitions=3, key=key, frame_rows=100)
    heard: list[Any] = []
    one = Replay(spark, str(file), place)
    sinks = {"shown": f"{tmp_path}/rows", "totals-sink": f"csv:{tmp_path}/totals"}
    report = one.write(sinks, show=heard.append)
    whole = engine_over(plan, events, ["a", "b", "c"]) if not key else None
    if whole is not None:
        assert report.digests == whole.digests
        assert report.digest == whole.digest
    assert report.digests == Replay(spark, str(file), place).report().digests
    assert report.counters["consumed"] == 3000
    assert heard[-1].rows == 3000
    assert heard[-1].fraction == 1.0
    written = pq.read_table(f"{tmp_path}/rows")
    assert written.num_rows == report.rows["shown"] > 0
    deltalake = pytest.importorskip("deltalake")
    deltalake.convert_to_deltalake(f"{tmp_path}/rows")
    table = deltalake.DeltaTable(f"{tmp_path}/rows").to_pyarrow_table()
    order = [("symbol", "ascending"), ("window_start_ns", "ascending")]
    assert table.sort_by(order).equals(written.sort_by(order))
    lines = [one for part in Path(tmp_path, "totals").glob("*.csv") for one in part.open()]
    assert len(lines) == report.rows["totals-sink"] > 0


MARKET = """
import ripple as rp
from pipelines import Trade

start = rp.Pipeline("market")
trades = start.source("trades", Trade, time="t", out_of_order="1s")
quotes = start.source("quotes", Trade, time="t", out_of_order="2s")
both = rp.union("both", trades, quotes.filter("some", rp.col("size") > 3))
bars = both.partition("by", key="symbol").window("w", rp.Tumbling("20s"), lateness="1s").fold(
    "bars", n=rp.count(), vwap=rp.vwap("price", "size"), last=rp.last("price")
)
pipeline = both.sink("events").also(bars.sink("bars-out"))
"""


def test_a_replay_of_several_sources_has_the_digest_of_a_run(
    spark: Any, file: Path, tmp_path: Path
) -> None:
    from ripple.spark import Replay

    market = tmp_path / "market.py"
    market.write_text(MARKET)
    plan, events = load_plan(str(market)), trades(3000)
    places = {
        "trades": topic_of(
            tmp_path / "lg", plan, events, partitions=4, key=("symbol",), source="trades"
        ),
        "quotes": topic_of(
            tmp_path / "lg", plan, events[1000:], partitions=2, key=("symbol",), source="quotes"
        ),
    }
    seen: list[Any] = []
    rp.run(
        plan,
        source=places,
        sink={"events": f"{tmp_path}/events.csv"},
        on_batch=lambda engine, _: seen.append(engine),
    )
    heard: list[Any] = []
    sinks = {"events": f"{tmp_path}/events", "bars-out": f"{tmp_path}/bars"}
    one = Replay(spark, str(market), places)
    report = one.write(sinks, show=heard.append)
    assert report.digests == seen[-1].digests
    assert report.digest == seen[-1].digest
    assert [part["partition"] for part in report.partitions] == [0, 1]
    assert report.counters["consumed"] == heard[-1].rows == 5000
    shown = pq.read_table(f"{tmp_path}/events").num_rows
    assert shown == len(lines_of(tmp_path / "events.csv"))
    assert pq.read_table(f"{tmp_path}/bars").num_rows == report.rows["bars-out"]
    together = {**places, "quotes": f"{places['quotes']}/1"}
    assert "one task   read all: no number but 1" in Replay(spark, plan, together).report().text()


AT_ONCE = (
    TRADES
    + """
start = rp.Pipeline("market")
trades = start.source("trades", Trade, time="t", out_of_order="2s")
quotes = start.source("quotes", Trade, time="t", out_of_order="2s")
rows = trades.join_asof("at", quotes, on="symbol", tolerance="9s", lateness="1s", emit="eager")
few = rows.filter("of-more", rp.col("size") > 1)
totals = few.partition("by", key="symbol").fold("totals", n=rp.count(), met=rp.count("price_right"))
pipeline = few.sink("rows").also(totals.sink("totals-out"))
"""
)


def test_rows_at_once_are_replayed_by_partition(spark: Any, tmp_path: Path) -> None:
    from ripple.spark import Replay

    market = tmp_path / "market.py"
    market.write_text(AT_ONCE)
    plan, events = load_plan(str(market)), trades(3000)
    places = {
        source: topic_of(
            tmp_path / "lg", plan, made, partitions=count, key=("symbol",), source=source
        )
        for source, made, count in (("trades", events, 4), ("quotes", events[1000:], 2))
    }
    seen: list[Any] = []
    rp.run(
        plan,
        source=places,
        sink={"rows": f"{tmp_path}/rows.jsonl", "totals-out": f"{tmp_path}/totals.jsonl"},
        on_batch=lambda engine, _: seen.append(engine),
    )
    one = Replay(spark, str(market), places)
    report = one.write({"rows": f"{tmp_path}/rows", "totals-out": f"{tmp_path}/totals"})
    assert report.digests == seen[-1].digests
    assert [part["partition"] for part in report.partitions] == [0, 1]
    for output, key in (
        ("rows", ("row_input", "row_offset", "row_index")),
        ("totals", ("symbol",)),
    ):
        changes = map(json.loads, Path(tmp_path, f"{output}.jsonl").read_text().splitlines())
        newest = {str([row[name] for name in key]): row for row in changes}
        shown = pq.read_table(f"{tmp_path}/{output}").to_pylist()
        replayed = {str([row[name] for name in key]): {"op": "set", **row} for row in shown}
        assert replayed == newest
    still = Replay(spark, str(market), places, closes=False).report()
    assert len(still.partitions) == 2


def test_a_pipeline_object_is_replayed(spark: Any, tmp_path: Path) -> None:
    import ripple.spark as rs

    pipeline = (
        rp.Pipeline("p")
        .source("trades", Event)
        .partition("by", key="symbol")
        .fold("sums", n=rp.count(), size=rp.sum("size"))
        .sink("sums-sink")
    )
    rows = [{"symbol": f"S{at % 3}", "size": at} for at in range(100)]
    pq.write_table(pa.Table.from_pylist(rows), f"{tmp_path}/trades.parquet")
    found = rs.replay(spark, pipeline, f"{tmp_path}/trades.parquet", stop=99)
    assert sorted(tuple(row) for row in found.collect()) == [
        (f"S{k}", 33, sum(at for at in range(99) if at % 3 == k)) for k in range(3)
    ]


def test_rejected_records_become_dead_letters(spark: Any, file: Path, tmp_path: Path) -> None:
    from ripple.spark import Replay

    good = "S0,A,1.5,2,1700000000000000000\n"
    Path(tmp_path, "trades.csv").write_text(good + "S0,A,cheap,2,1700000000000000000\n" + good)
    one = Replay(spark, f"{file}:whole", f"{tmp_path}/trades.csv")
    report = one.write({"sums-sink": f"{tmp_path}/sums"}, letters=f"{tmp_path}/letters")
    assert report.counters["consumed"] == 3
    assert sum(report.letters.values()) == 1
    lines = [
        json.loads(x) for part in Path(tmp_path, "letters").glob("*.json") for x in part.open()
    ]
    assert [(one["offset"], one["line_number"], one["raw"]) for one in lines] == [
        (1, 2, "S0,A,cheap,2,1700000000000000000")
    ]


def test_executor_with_another_topology_is_reported(spark: Any, file: Path, tmp_path: Path) -> None:
    from ripple.spark import Replay
    from ripple.spark.session import SparkJobError

    Path(tmp_path, "rates.py").write_text("def rate(x):\n    return x * 2\n")
    file.write_text(
        SOURCE.replace("import ripple as rp", "import ripple as rp\nfrom rates import rate", 1)
        .replace("trade.price * 2", "rate(trade.price)")
    )  # fmt: skip
    place = topic_of(tmp_path / "lg", load_plan(f"{file}:whole"), trades(10), partitions=1)
    one = Replay(spark, f"{file}:whole", place)
    # Of another length: within a second Python takes a file of the same one for unchanged.
    Path(tmp_path, "rates.py").write_text("def rate(x):\n    return x * 30\n")
    with pytest.raises(SparkJobError, match="a file that it imports differs"):
        one.report()


def test_jobs_have_a_group_and_a_description_and_are_cancelled_by_it(
    spark: Any, file: Path, tmp_path: Path
) -> None:
    from ripple.spark import Replay
    from ripple.spark.session import SparkJobError, jobs

    place = topic_of(tmp_path / "lg", load_plan(f"{file}:whole"), trades(10), partitions=1)
    context = spark.sparkContext
    before = set(context.statusTracker().getJobIdsForGroup("ripple-trades"))
    Replay(spark, f"{file}:whole", place).report()
    ids = set(context.statusTracker().getJobIdsForGroup("ripple-trades")) - before
    assert ids
    listed = context._jsc.sc().statusStore().jobsList(None)
    ours = [one for one in map(listed.apply, range(listed.size())) if one.jobId() in ids]
    assert {one.description().get() for one in ours} == {"ripple trades: replay"}
    assert context.getLocalProperty("spark.jobGroup.id") is None

    def endless(batches: Any) -> Any:
        yield from batches
        threading.Event().wait()

    def is_ended() -> bool:
        context.cancelJobGroup("ripple-endless")
        return ended.is_set()

    ended = threading.Event()
    cancelling = threading.Thread(target=until, args=(is_ended,))
    cancelling.start()
    with pytest.raises(SparkJobError, match="cancelled"), jobs(spark, "endless", "replay"):
        spark.range(2).mapInArrow(endless, "id long").collect()
    ended.set()
    cancelling.join()


def test_slow_start_of_a_python_process_is_reported(tmp_path: Path) -> None:
    plan, slow = load_plan("examples/vwap.py"), tmp_path / "python"
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *daemon*) ;; *) sleep 12 ;; esac\nexec {sys.executable} "$@"\n'
    )
    slow.chmod(0o755)
    place = topic_of(tmp_path, plan, [], partitions=1)
    ended = subprocess.run(
        [*RIPPLE, "spark", "run", "examples/vwap.py", "--source", place, "--sink",
         f"log:{tmp_path}/out", "--store", f"{tmp_path}/state", "--master", "local[1]"],
        env={**os.environ, "PYSPARK_PYTHON": str(slow)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "Spark has waited in vain for a Python process that it started" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_impossible_replay_is_rejected_before_a_job_begins(
    spark: Any, file: Path, tmp_path: Path
) -> None:
    from ripple.core.errors import OutputError
    from ripple.spark import Replay
    from ripple.spark.session import SparkJobError

    with pytest.raises(InputError, match="there is no topic"):
        Replay(spark, str(file), f"log:{tmp_path}/missing")
    with pytest.raises(InputError, match="standard input"):
        Replay(spark, str(file), "-")
    place = topic_of(tmp_path / "lg", load_plan(str(file)), trades(10), partitions=1)
    with pytest.raises(OutputError, match="the outputs totals-sink, shown: choose one"):
        Replay(spark, str(file), place).rows()
    with pytest.raises(InputError, match="ends at offset 10"):
        Replay(spark, str(file), place, stop=11)
    one = Replay(spark, str(file), place)
    with pytest.raises(SparkJobError, match="Spark knows no format 'delta': give the package"):
        one.write({"shown": f"delta:{tmp_path}/d"}, show=lambda _: pytest.fail("it began"))
    (tmp_path / "there").mkdir()
    with pytest.raises(OutputError, match="already exists"):
        Replay(spark, str(file), place).write({"shown": f"{tmp_path}/there"})
    (tmp_path / "lone").touch()
    with pytest.raises(OutputError, match=r"cannot write .*/lone/rows: "):
        Replay(spark, str(file), place).write({"shown": f"{tmp_path}/lone/rows"})


def test_a_folder_that_spark_wrote_is_one_input(spark: Any, file: Path, tmp_path: Path) -> None:
    import ripple.spark as rs

    given = trades(60)
    frame = spark.createDataFrame(
        given, "symbol string, venue string, price double, size int, t long"
    )
    frame.coalesce(1).write.parquet(str(tmp_path / "DIR"))
    rows = rs.replay(spark, f"{file}:whole", f"parquet:{tmp_path}/DIR")
    assert rows.count() == len({one["symbol"] for one in given})


def test_error_of_a_task_is_reported(spark: Any) -> None:
    from ripple.spark.session import SparkJobError, blaming

    def raises(batches: Any) -> Any:
        raise KeyError("no such row")
        yield

    why = r"^Spark: KeyError: 'no such row' \(in a task, at "
    with pytest.raises(SparkJobError, match=why), blaming():
        spark.range(1).mapInArrow(raises, "id long").collect()


def test_executor_whose_python_cannot_begin_is_named() -> None:
    from pyspark.errors import PySparkException

    from ripple.spark.session import SparkJobError, blaming

    begun = "Task 0 failed 1 times (10.0.0.7 executor 3): org.apache.spark.SparkException: \n"
    for text, why in [
        (
            "Error from python worker:\n  Traceback (most recent call last):\n"
            '    File "compat.py", line 15, in <module>\n  SyntaxError: invalid syntax\n'
            "PYTHONPATH was:\n  /lib/pyspark.zip\n",
            "SyntaxError: invalid syntax",
        ),
        ('Caused by: java.io.IOException: Cannot run program "/bin/no": error=2\n', "Cannot run"),
        ("EOFException occurred while reading the port number from stdout\n", "EOFException"),
    ]:
        with pytest.raises(SparkJobError) as failed, blaming():
            raise PySparkException(begun + text)
        line = str(failed.value)
        assert line.startswith(f"executor 3 on 10.0.0.7 cannot begin its Python ({why}")
        assert "\n" not in line
