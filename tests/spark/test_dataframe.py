"""Rows of DataFrames in tasks: divided by key and in order, they give the tables of one engine."""

from __future__ import annotations

import datetime as dt
import os
import random
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import InputError, SchemaError
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.nodes import SourceSpec
from ripple.model.pipeline.plan import Plan
from ripple.spark.dataframe.division import calls_functions, division_of, numbered_why
from ripple.spark.dataframe.frame_fold import SOURCE as RANK
from ripple.spark.dataframe.frame_fold import FrameFold
from ripple.spark.dataframe.given import Given, given_of, names_of
from ripple.spark.dataframe.places import SparkPlace, check_files
from ripple.spark.dataframe.taken import chunks, repeated
from ripple.spark.packets import REPORT, ROWS
from ripple.spark.parcel import Parcel
from ripple.spark.report import Report, digests_of
from ripple.spark.task_results import WantedResults, changes_schema, times_beside
from tests.spark.graph_places import SOURCE

MORE = """
bars = minutes.fold("bars", **ends).sink("bars-out")
rows = trades.partition("r", key="symbol").fold("rows", **ends).sink("rows-out")
"""
BEGIN_NS = 1_700_000_000_000_000_000


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    t: rp.Timestamp


BARS = (
    rp.Pipeline("bars")
    .source("trades", Trade, time="t")
    .partition("by", key="symbol")
    .window("w", rp.Tumbling("10s"))
)
PLAN = BARS.fold("bar", n=rp.count(), last=rp.last("price")).sink("out").plan()
SCHEMA = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("t", pa.int64())])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pipelines") / "pipelines.py"
    path.write_text(f"{SOURCE}{MORE}")
    return path


def rows_of(plan: Plan, count: int) -> dict[str, list[dict[str, Any]]]:
    chance = random.Random(5)
    made: dict[str, list[dict[str, Any]]] = {}
    for source in plan.sources:
        made[source.name] = [
            {
                "symbol": f"S{chance.randrange(5)}",
                "price": chance.choice([0.1, 1e17, -1e17, 2.5]),
                "size": chance.randrange(9),
                "bid": chance.choice([None, 1.5]),
                "venue": chance.randrange(3),
                "t": BEGIN_NS + chance.randrange(count) * 100_000_000,
            }
            for _ in range(count)
        ]
        # In order of time and of the fields, as Spark would sort them.
        names = [field.name for field in source.fields]
        made[source.name].sort(key=lambda row: (row["t"], repr([row[name] for name in names])))
    return made


def engine_over(plan: Plan, rows: dict[str, list[dict[str, Any]]]) -> Engine:
    engine = Engine(plan, inputs=list(rows))
    for source in plan.sources:
        records = pa.RecordBatch.from_pylist(
            rows[source.name], pa.schema(arrow_fields(source.fields))
        )
        engine.apply(source.name, records, records.num_rows)
    engine.close()
    engine.stabilize()
    return engine


def given_in(
    source: SourceSpec,
    schema: pa.Schema,
    *,
    prefix: str = "",
    order_by: tuple[str, ...] = (),
    identity: tuple[str, ...] = (),
) -> Given:
    names = {name: f"{prefix}{name}" for name in schema.names}
    return given_of(source, names, schema, schema.names, order_by=order_by, identity=identity)


def replayed(
    parcel: Parcel, rows: dict[str, list[dict[str, Any]]], tasks: int, batch_rows: int = 128
) -> Report:
    """Return the report of tasks over rows divided by symbol, as Spark divides and sorts them."""
    plan = parcel.plan()
    given, columns = [], [pa.field(RANK, pa.int32())]
    for rank, source in enumerate(plan.sources):
        prefix = f"ripple_{rank}_" if len(rows) > 1 else ""
        schema = pa.schema(arrow_fields(source.fields))
        given.append(given_in(source, schema, prefix=prefix))
        columns += [field.with_name(f"{prefix}{field.name}") for field in schema]
    parts: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for rank, one in enumerate(given):
        for row in rows[one.source]:
            fields = {column: row[name] for name, column in one.columns}
            parts[int(row["symbol"][1:]) % tasks].append(
                {"rank": (row["t"], rank), RANK: rank, **fields}
            )
    fold = FrameFold(parcel, tuple(given), tasks, WantedResults((), every=batch_rows))
    reports = []
    for number in range(tasks):
        part = sorted(parts[number], key=lambda row: row["rank"])
        whole = pa.RecordBatch.from_pylist(part, pa.schema(columns))
        pieces = [whole.slice(at, 50) for at in range(0, whole.num_rows, 50)]
        found_packets = list(fold.run(number, pieces))
        reports += [packet.about for packet in found_packets if packet.kind == REPORT]
    return Report.of(plan, reports, order={one.source: "t" for one in given})


@pytest.mark.parametrize("name", ["bars", "branches", "market"])
def test_tasks_have_the_tables_of_one_engine(file: Path, name: str) -> None:
    parcel = Parcel.of(f"{file}:{name}", lambda _: b"")
    plan = parcel.plan()
    rows = rows_of(plan, 900)
    one = engine_over(plan, rows)
    expected = digests_of(plan, [{"digests": one.digests}])
    alone = replayed(parcel, rows, 1)
    assert (dict(alone.digests), alone.digest) == expected
    apart = replayed(parcel, rows, 3, batch_rows=37)
    streams = {output.name for output in plan.outputs if output.is_stream}
    for output, digest in expected[0].items():
        if output not in streams:  # those have numbers of their own
            assert apart.digests[output] == digest, output
    assert apart.rows == alone.rows
    for source in rows:
        assert apart.inputs[source] == alone.inputs[source]
        assert apart.inputs[source]["rows"] == 900


@rp.record
class Request:
    id: uuid.UUID
    day: dt.date
    at: dt.datetime


def test_rows_are_divided_where_a_key_is_known() -> None:
    assert division_of(PLAN) == (("symbol",), None)
    assert numbered_why(PLAN) is None
    large = rp.Pipeline("p").source("trades", Trade, time="t").derive("d", big=rp.col("price") > 1)
    by_size = large.partition("by", key="big").fold("all", n=rp.count()).sink("out").plan()
    assert division_of(by_size) == ((), "no field of the records is in all keys of all")
    requests = rp.Pipeline("p").source("requests", Request)
    for key, why in (
        (["at"], "values of at may be written in several ways"),
        (["id", "at"], None),
        (["id", "day"], None),
    ):
        by_id = requests.partition("by", key=key).fold("all", n=rp.count()).sink("out").plan()
        divided, found = division_of(by_id)
        assert (divided, found is None) == (
            () if why else tuple(name for name in key if name != "at"),
            why is None,
        )
        assert why is None or why in str(found)
    texts = pa.schema([("id", pa.string()), ("at", pa.string())])
    times = texts.set(1, pa.field("at", pa.timestamp("us", "UTC")))
    by_time = requests.partition("by", key="at").fold("all", n=rp.count()).sink("out").plan()
    assert division_of(by_time, texts)[0] == ()
    assert division_of(by_time, times) == (("at",), None)
    events = rp.Pipeline("p").source("trades", Trade, time="t").sink("out").plan()
    assert division_of(events) == (("symbol",), None)
    assert "events of out have numbers" in str(numbered_why(events))
    future = rp.Pipeline("p").source("trades", Trade, time="t", reject_future="1h")
    future_plan = future.partition("by", key="symbol").fold("f", n=rp.count()).sink("out").plan()
    assert "trades rejects times" in str(division_of(future_plan)[1])
    open_windows = division_of(PLAN, is_open=True)[1]
    assert open_windows == "the windows of bar end by the watermark of all inputs"


def _renamed(trade: Trade) -> Trade:
    return Trade(trade.symbol * 2, trade.price, trade.t)


def test_functions_for_rows_are_told_from_compiled_steps() -> None:
    source = rp.Pipeline("p").source("trades", Trade)
    own = rp.custom("price", init=int, add=lambda n, _: n + 1, result=int, type=int)
    for stream, aggregate, expected in [
        (source.filter("many", rp.col("price") > 1), rp.count(), False),
        (source.map("mapped", _renamed, into=Trade), rp.count(), True),
        (source, own, True),
    ]:
        plan = stream.partition("by", key="symbol").fold("f", n=aggregate).sink("out").plan()
        assert calls_functions(plan) is expected


def test_a_map_may_make_other_keys_unless_the_source_says_not() -> None:
    for key, expected in ((None, "mapped may make other keys"), ("symbol", "None")):
        told = {} if key is None else {"key": key}
        source = rp.Pipeline("p").source("trades", Trade, time="t", **told)
        plan = source.map("mapped", _renamed, into=Trade).partition("by", key="symbol")
        assert expected in str(division_of(plan.fold("f", n=rp.count()).sink("out").plan())[1])


def test_partial_results_are_those_of_one_task() -> None:
    partial = (
        rp.Pipeline("p")
        .source("trades", Trade, time="t")
        .partition("by", key="symbol")
        .window("w", rp.Tumbling("10s"), trigger=rp.OnCount(2))
        .fold("bar", n=rp.count())
        .sink("out")
    )
    assert "partial results of bar" in str(division_of(partial.plan())[1])


@pytest.mark.parametrize(
    ("columns", "order_by", "expected"),
    [
        ({"symbol": "str", "t": "int"}, (), "has no column 'price': it has symbol, t"),
        ({"symbol": "str", "price": "decimal", "t": "int"}, (), "'price' of the DataFrame of"),
        ({"symbol": "str", "price": "float", "t": "str"}, (), "event time 't' of trades is text"),
    ],
)
def test_a_dataframe_of_other_columns_is_refused_in_one_line(
    columns: dict[str, str], order_by: tuple[str, ...], expected: str
) -> None:
    kinds = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "decimal": pa.decimal128(10, 4),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pytest.raises(SchemaError, match=expected) as failed:
        given_in(PLAN.source, schema, order_by=order_by)
    assert "\n" not in str(failed.value)


def test_without_event_time_an_order_must_be_named() -> None:
    @rp.record(version=1)
    class Step:
        symbol: str
        price: float

    plan = rp.Pipeline("p").source("steps", Step).partition("by", key="symbol")
    source = plan.fold("f", n=rp.count()).sink("out").plan().source
    schema = SCHEMA.remove(2)
    with pytest.raises(InputError, match="order_by="):
        given_in(source, schema)
    found = given_in(source, schema, order_by=("price",), identity=("symbol",))
    assert found.order_text(source) == "price, symbol"


def test_times_of_columns_need_no_format() -> None:
    @rp.record(version=1)
    class Written:
        symbol: str
        t: rp.Timestamp = rp.field(format="iso")

    plan = rp.Pipeline("p").source("trades", Written, time="t").partition("by", key="symbol")
    source = plan.fold("f", n=rp.count()).sink("out").plan().source
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()):
        schema = pa.schema([("symbol", pa.string()), ("t", kind)])
        found = given_in(source, schema)
        assert found.checks(source)["t"].time_form is None


def test_an_identity_that_two_records_have_is_an_error_across_batches(file: Path) -> None:
    parcel = Parcel.of(f"{file}:bars", lambda _: b"")
    schema = pa.schema(arrow_fields(parcel.plan().source.fields))
    given = given_in(parcel.plan().source, schema, identity=("symbol",))
    fold = FrameFold(parcel, (given,), 1, WantedResults((), every=2))
    rows = [
        {"symbol": symbol, "price": 1.0, "size": size, "t": BEGIN_NS}
        for size, symbol in enumerate(("A", "B", "B", "C"))
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema)
    with pytest.raises(InputError, match="two records of trades have the identity symbol 'B', at"):
        list(fold.run(0, [batch]))
    told_apart = replace(fold, given=(replace(given, identity=("symbol", "size")),))
    *_, report = told_apart.run(0, [batch])
    assert report.about["inputs"]["trades"]["rows"] == 4


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_equal_records_are_counted_bit_for_bit(kind: pa.DataType) -> None:
    nan = float("nan")
    rows = [
        {"symbol": symbol, "price": price, "t": t}
        for symbol, price, t in [
            ("A", 0.0, 1),
            ("A", -0.0, 1),
            ("A", -0.0, 1),
            (None, nan, 1),
            (None, nan, 1),
            ("A", nan, 2),
        ]
    ]
    schema = SCHEMA.set(SCHEMA.get_field_index("price"), pa.field("price", kind))
    batch = pa.RecordBatch.from_pylist(rows, schema)
    assert repeated(batch, ["t", "symbol", "price"]).tolist() == [2, 4]


def test_chunks_have_the_same_rows_for_any_batches() -> None:
    whole = pa.RecordBatch.from_pydict({"n": list(range(100))})
    for size in (1, 7, 33, 100):
        pieces: Iterator[pa.RecordBatch] = (whole.slice(at, size) for at in range(0, 100, size))
        found = list(chunks(pieces, 30))
        assert [one.num_rows for one in found] == [30, 30, 30, 10]
        assert pa.Table.from_batches(found).column("n").to_pylist() == list(range(100))


def test_names_are_by_source_where_there_are_several(file: Path) -> None:
    plan = load_plan(f"{file}:market")
    assert names_of(PLAN, "price", "order_by") == {"trades": ("price",)}
    assert names_of(plan, {"quotes": ["bid"]}, "order_by") == {"quotes": ("bid",)}
    with pytest.raises(InputError, match="order_by is by source"):
        names_of(plan, ["bid"], "order_by")
    with pytest.raises(InputError, match="identity names the source 'none'"):
        names_of(plan, {"none": "bid"}, "identity")
    for wrong in (5, ["price", 5]):
        with pytest.raises(InputError, match="order_by has the names of columns"):
            names_of(PLAN, wrong, "order_by")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("table:db.trades", SparkPlace(table="db.trades")),
        ("s3a://b/trades", SparkPlace(form="parquet", path="s3a://b/trades")),
        ("csv:hdfs://h/t", SparkPlace(form="csv", path="hdfs://h/t")),
        ("csv:file:d/t", SparkPlace(form="csv", path=f"file:{os.path.abspath('d/t')}")),
        ("table:db.t VERSION AS OF 12", SparkPlace(table="db.t", version=12)),
        ("table:db.t timestamp as of '5ns'", SparkPlace(table="db.t", at_ns=5)),
        (
            "delta:s3a://b/t version as of 0",
            SparkPlace(form="delta", path="s3a://b/t", version=0),
        ),
        ("file:///d/t.json.gz", SparkPlace(form="json", path="file:///d/t.json.gz")),
        ("log:data/trades", None),
        ("parquet:data", None),
        ("data/file.csv", None),
        ("kafka:h:9092/t", None),
    ],
)
def test_places_that_spark_reads_are_told_by_their_text(
    text: str, expected: SparkPlace | None
) -> None:
    assert SparkPlace.of(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table:t VERSION AS OF new", "VERSION AS OF is followed by a whole number, not 'new'"),
        ("table:t TIMESTAMP AS OF noon", "TIMESTAMP AS OF is followed by a time, as in 2024"),
        ("file:///d VERSION AS OF 1", "file:///d has files of parquet, which have no versions"),
        ("table: VERSION AS OF 1", "table: needs the name of a table"),
        ("s3a:b/trades", "s3a:b/trades is no path of s3a: it begins at the root, as s3a:/b/trades"),
    ],
)
def test_a_version_that_is_none_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        SparkPlace.of(text)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "there are no files of csv at file:/d; another format is named before the path"),
        (["file:/d/a.csv", "file:/d/b.parquet"], "file:/d has a file of parquet where those of"),
    ],
)
def test_an_empty_or_mixed_folder_is_an_error(files: list[str], message: str) -> None:
    place = SparkPlace(form="csv", path="file:/d")
    check_files(["file:/d/a.csv", "file:/d/part-0"], place)
    with pytest.raises(InputError, match=f"^{message}"):
        check_files(files, place)


def test_a_column_without_a_type_is_an_error() -> None:
    schema = SCHEMA.set(2, pa.field("t", pa.null()))
    with pytest.raises(
        SchemaError, match=r"^the column 't' of the DataFrame of trades has no type"
    ):
        given_in(PLAN.source, schema)


def test_a_second_report_of_other_records_is_refused() -> None:
    one = Report.of(PLAN, [], order={})
    inputs = {"trades": {"rows": 3, "digest": "00"}}
    first, second = replace(one, inputs=inputs), replace(one, inputs=inputs)
    second.check_same_inputs(None)
    second.check_same_inputs(first)
    other = replace(one, inputs={"trades": {"rows": 3, "digest": "01"}})
    with pytest.raises(InputError, match=r"^the DataFrame of trades has changed between two read"):
        other.check_same_inputs(first)


def test_times_get_names_for_timestamps_beside_them(file: Path) -> None:
    plan = load_plan(f"{file}:branches")
    beside = {"window_start_ns": "window_start", "window_end_ns": "window_end"}
    assert times_beside(plan, "bars-out") == beside
    assert times_beside(plan, "events") == {"t": "t_time"}
    last = rp.Pipeline("p").source("trades", Trade).partition("by", key="symbol")
    made = last.fold("f", t_ns=rp.max("t")).derive("d", at=rp.col("t_ns").cast(dt.datetime))
    assert times_beside(made.sink("o").plan(), "o") == {"t_ns": "t", "at": "at_time"}
    assert changes_schema(plan, "bars-out").names[:4] == ["partition", "cut", "op", "symbol"]


def test_changes_lead_to_the_last_table(file: Path) -> None:
    parcel = Parcel.of(f"{file}:rows", lambda _: b"")
    plan = parcel.plan()
    schema = pa.schema(arrow_fields(plan.source.fields))
    given = given_in(plan.source, schema)
    records = pa.RecordBatch.from_pylist(rows_of(plan, 300)["trades"], schema)

    def rows(*, changes: bool) -> list[dict[str, Any]]:
        wanted = WantedResults(("rows-out",), changes=changes, every=50)
        packets = FrameFold(parcel, (given,), 1, wanted).run(0, [records])
        return [row for one in packets if one.kind == ROWS for row in one.rows().to_pylist()]

    table: dict[str, dict[str, Any]] = {}
    found = rows(changes=True)
    assert {change["cut"] for change in found} == {50, 100, 150, 200, 250, 300}
    for change in found:
        assert (change.pop("partition"), change.pop("op")) == (0, "set")
        del change["cut"]
        table[change["symbol"]] = change
    assert sorted(table.values(), key=repr) == sorted(rows(changes=False), key=repr)
