"""Fields of decimals of over 18 digits: from each kind of source, to each kind of sink."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from pathlib import Path
from typing import Annotated, Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.log.topic_fields import check_topic
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.chain import Chain
from ripple.connectors.transforms.steps import ReadTime
from ripple.core.errors import PlanError, SchemaError
from ripple.model.keys.partitioner import key_bytes
from ripple.model.records import schema_of
from ripple.model.schema import Decimal, Field, Schema
from ripple.model.schema.logical.wide_decimals import stored_text
from ripple.spark.log_table import LogTable, batches_of
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.connectors.formats.registries import OneSchema
from tests.connectors.read_records import read as read_batches
from tests.connectors.read_records import rows_and_causes

D = decimal.Decimal
MOST = D("9" * 34 + ".9999")
WORDS = "price is no decimal of at most 34 digits before the point and 4 after"


@rp.record
class Trade:
    name: str
    price: Annotated[D, rp.Decimal(38, 4)]
    fee: Annotated[D, rp.Decimal(19, 2)] | None = None


@rp.record
class Whole:
    n: int


OBJECTS: list[dict[str, Any]] = [
    {"name": "a", "price": MOST, "fee": D("0.5")},
    {"name": "c", "price": D("-0.0001"), "fee": None},
]
WANTED = [
    {"name": "a", "price": stored_text(10**38 - 1), "fee": stored_text(50)},
    {"name": "c", "price": stored_text(-1), "fee": None},
]


def read(place: Any) -> tuple[list[dict[str, Any]], list[str]]:
    return rows_and_causes(place, Trade)


def test_texts_numbers_columns_and_objects_are_exact(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        f'{{"name":"a","price":{MOST},"fee":"0.50"}}\n'
        '{"name":"b","price":1e34}\n'
        '{"name":"c","price":-1e-4}\n'
    )
    assert read(str(tmp_path / "t.jsonl")) == (WANTED, [WORDS])
    (tmp_path / "t.csv").write_text(f"a,{MOST},0.5\nb,0.00001,\nc,-0.0001,\n")
    assert read(str(tmp_path / "t.csv")) == (WANTED, [WORDS])
    assert read(OBJECTS) == (WANTED, [])
    table = pa.Table.from_pylist(OBJECTS)
    assert read(table) == (WANTED, [])
    pq.write_table(table, tmp_path / "t.parquet")
    assert read(str(tmp_path / "t.parquet")) == (WANTED, [])
    larger = table.set_column(1, "price", table.column("price").cast(pa.decimal256(50, 10)))
    assert read(larger) == (WANTED, [])
    whole = pa.table({"name": ["a"], "price": pa.array([2], pa.int32())})
    assert read(whole)[0] == [{"name": "a", "price": stored_text(20_000), "fee": None}]
    with pytest.raises(SchemaError, match=r"'price' must be a decimal of 38 digits, .* not 1\.5"):
        read([{"name": "a", "price": 1.5}])


def test_integers_that_python_does_not_write_are_rejected() -> None:
    huge = 10**5000
    rows, causes = read([{"name": "a", "price": huge}])
    assert (rows, causes) == ([], [WORDS])
    with pytest.raises(SchemaError, match="the field 'name' must be text, not an object of type"):
        read([{"name": huge, "price": 1}])
    assert rows_and_causes([{"n": huge}], Whole) == ([], ["n does not fit in 64 bits"])


def test_results_leave_as_decimals(tmp_path: Path) -> None:
    trades = rp.Pipeline("trades").source("trades", Trade)
    rows = trades.derive("more", half=Trade.price.divide(2, scale=4))
    folded = rows.partition("by", key="name").fold(
        "f", half=rp.sum("half"), top=rp.max("price"), fee=rp.max("fee")
    )
    plan, sink = folded.sink("out").plan(), MemorySink()
    rp.run(plan, source=OBJECTS, sink=sink)
    (row,) = [row for row in sink.rows() if row["name"] == "a"]
    half = D("5" + "0" * 33 + ".0000")  # of ….99995, to the even one
    assert (row["half"], row["top"], row["fee"]) == (half, MOST, D("0.50"))
    assert sink.batches[0].schema.field("half").type == pa.decimal128(38, 4)
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        rp.run(plan, source=OBJECTS, sink=str(tmp_path / name))
    assert f"a,{half},{MOST},0.50" in (tmp_path / "out.csv").read_text()
    lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert {line["name"]: line["top"] for line in lines} == {"a": str(MOST), "c": "-0.0001"}
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.field("top").type == pa.decimal128(38, 4)
    rp.run(plan, source=OBJECTS, sink=f"delta:{tmp_path}/d")
    tops = DeltaTable(f"{tmp_path}/d").to_pyarrow_table()["top"].to_pylist()
    assert sorted(tops) == [D("-0.0001"), MOST]


def test_a_sum_beyond_38_digits_is_absent() -> None:
    sink = MemorySink()
    plan = rp.Pipeline("p").source("t", Trade).partition("p", key="name")
    summed = plan.fold("f", s=rp.sum("price")).sink("o")
    with pytest.warns(rp.LostRecordsWarning, match="does not fit in 38"):
        report = rp.run(summed, source=[OBJECTS[0]] * 2, sink=sink)
    assert report.uncomputable["f"].count == 1
    assert "does not fit in 38" in str(report.uncomputable["f"])


def test_functions_of_users_have_decimals() -> None:
    seen: list[Any] = []

    def halved(row: Any) -> Any:
        seen.append(row.price)
        return Trade(row.name, row.price / 2, row.fee)

    def whole(rows: Any) -> Any:
        return {**rows, "price": [price.quantize(D(1)) for price in rows["price"]]}

    mapped = rp.Pipeline("p").source("t", Trade).map("m", halved, into=Trade)
    sink = MemorySink()
    rp.run(mapped.map("b", whole, into=Trade, batch=True).sink("o"),
           source=[{"name": "a", "price": D("5e20")}], sink=sink)  # fmt: skip
    assert seen == [D("5e20")]
    assert sink.rows()[0]["price"] == D("2.5e20")
    for prices in (np.array([2]), pa.array([D(2)], pa.decimal128(19, 2)), [2]):
        made = (
            rp.Pipeline("p")
            .source("t", Trade)
            .map("m", lambda rows, prices=prices: {**rows, "price": prices}, into=Trade, batch=True)
        )
        assert rp.collect(made.sink("o"), OBJECTS[1:]).table()["price"].to_pylist() == [D(2)]


def test_what_has_no_rule_is_refused_by_name() -> None:
    trades = rp.Pipeline("p").source("t", Trade)
    for aggregate in (rp.mean("price"), rp.vwap("price", "price"), rp.stddev("price")):
        with pytest.raises(PlanError, match=r"not decimal(, decimal)?: cast it"):
            trades.partition("k", key="name").fold("f", x=aggregate)

    class Bound:
        price: Annotated[D, rp.Decimal(38, 4)] = rp.field(gt=0)

    with pytest.raises(SchemaError, match=r"'price' .* has no bounds: .filter"):
        rp.Pipeline("p").source("t", rp.record(Bound))
    with pytest.raises(PlanError, match="precision must be a whole number from 1 to 38"):
        rp.Decimal(39, 2)


def test_topics_hold_texts_and_spark_shows_decimals(tmp_path: Path) -> None:
    topic = Topic.create(LiveDisk(tmp_path), "trades", schema_of(Trade))
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(pa.RecordBatch.from_pylist(WANTED))
    assert read(f"log:{tmp_path / 'trades'}") == (WANTED, [])
    table = LogTable.of({"path": f"{tmp_path}/trades"})
    (batch,) = batches_of(table.splits[0])
    assert batch.select(["name", "price", "fee"]).to_pylist() == OBJECTS

    digits = ((30, 4), (38, 4), (30, 2), (19, 4))
    fields = [Schema("t", (Field("x", Decimal(*of)),)) for of in digits]
    check_topic(fields[0], fields[1], "log:t")
    check_topic(fields[3], fields[0], "log:t")
    fields.append(Schema("t", (Field("x", Decimal.wide(4)),)))
    with pytest.raises(SchemaError, match=r"declare rp\.Decimal\(18, 4\), and a .derive"):
        check_topic(fields[4], fields[3], "log:t")
    for there, declared in ((1, 0), (0, 2), (4, 0), (0, 3)):
        with pytest.raises(
            SchemaError, match=r"is rp\.Decimal\(\d+, 4\), .* rp\.Decimal.*: declare"
        ):
            check_topic(fields[there], fields[declared], "log:t")


@rp.record
class Checked:
    n: int = rp.field(gt=0)
    day: dt.date
    price: Annotated[D, rp.Decimal(38, 4)]
    fee: Annotated[D, rp.Decimal(12, 2)]
    photo: bytes


def test_rejected_records_of_topics_show_values_as_others_do(tmp_path: Path) -> None:
    topic = Topic.create(LiveDisk(tmp_path), "checked", schema_of(Checked))
    row = {"n": 0, "day": 1, "price": stored_text(-15), "fee": 150, "photo": "ff"}
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(pa.RecordBatch.from_pylist([row, row | {"price": "x", "photo": "g"}]))
    (batch,) = read_batches(f"log:{tmp_path / 'checked'}", Checked)
    shown = {"n": 0, "day": "1970-01-02", "price": "-0.0015", "fee": "1.50", "photo": "/w=="}
    damaged = shown | {"price": "x", "photo": "g"}  # which no writer of ours makes
    assert [json.loads(bad.raw) for bad in batch.rejected] == [shown, damaged]


def test_bytes_of_keys() -> None:
    rows = pa.record_batch({"price": [stored_text(10**30), stored_text(-1)]})
    assert key_bytes(rows, ("price",)).to_pylist() == [
        b"8000000c9f2c9cd04674edea40000000", b"7fffffffffffffffffffffffffffffff"
    ]  # fmt: skip


@pytest.mark.parametrize("is_slow", [False, True])
def test_avro_has_decimals_of_its_own(is_slow: bool) -> None:
    registry: Any = OneSchema()
    plan = rp.Pipeline("n").source("fills", Trade).partition("p", key="price")
    output = plan.fold("f", fee=rp.max("fee")).sink("o").plan().output("o")
    writer = row_values("avro", output, "kafka:x", registry, "o-value")
    prices = [D(0), MOST, MOST.copy_negate(), D("-0.0001"), D(2**70)]
    changes = pa.record_batch(
        {
            "price": pa.array(prices, pa.decimal128(38, 4)),
            "fee": pa.array([None, D(1), D(-1), None, D("9" * 17)], pa.decimal128(19, 2)),
        }
    )
    values = writer.values(changes)
    schema = fastavro.parse_schema(json.loads(registry.text))
    decoded = [fastavro.schemaless_reader(io.BytesIO(v[5:]), schema) for v in values.to_pylist()]
    assert decoded == changes.to_pylist()

    @rp.record
    class Row:
        price: Annotated[D, rp.Decimal(38, 4)]

    shape = RecordShape(schema_of(Row))
    chain = Chain([ReadTime(name, form) for name, form in shape.forms.items()], shape)
    found = chain.batch(AvroValues(chain.needed, registry, is_slow=is_slow).batch(values))
    wanted = [stored_text(int(one.scaleb(4, decimal.Context(prec=50)))) for one in prices]
    assert found.records.column("price").to_pylist() == wanted
