"""Fields that are decimals: from each kind of source, to each kind of sink, and between."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from pathlib import Path
from typing import Annotated, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.framed import head_of
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.log.topic_fields import check_topic
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.chain import Chain
from ripple.connectors.transforms.steps import ReadTime
from ripple.core.errors import PlanError, SchemaError
from ripple.model.records import schema_of
from ripple.model.schema import Decimal, Field, Int64, Schema
from ripple.model.schema.types import Date, DateTime
from tests.connectors.formats.registries import OneSchema
from tests.connectors.read_records import rows_and_causes

D = decimal.Decimal
MISTYPED = "price is not a decimal of 12 digits, 4 behind the point"
WORDS = "price is no decimal of at most 8 digits before the point and 4 after"


@rp.record
class Trade:
    name: str
    price: Annotated[D, rp.Decimal(12, 4)]
    fee: Annotated[D, rp.Decimal(9, 2)] | None = None


WANTED = [
    {"name": "a", "price": 1_012_500, "fee": 50},
    {"name": "c", "price": -1, "fee": None},
]
OBJECTS = [
    {"name": "a", "price": D("101.25"), "fee": D("0.5")},
    {"name": "c", "price": D("-0.0001"), "fee": None},
]


def read(place: Any) -> tuple[list[dict[str, Any]], list[str]]:
    return rows_and_causes(place, Trade)


def test_texts_and_numbers_of_json_are_exact(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"name":"a","price":101.25,"fee":"0.50"}\n'
        '{"name":"b","price":0.30000000000000004}\n'
        '{"name":"c","price":-1e-4}\n'
        '{"name":"d","price":true}\n'
    )
    assert read(str(tmp_path / "t.jsonl")) == (WANTED, [WORDS, MISTYPED])
    (tmp_path / "t.csv").write_text("a,101.25,0.5\nb,123456789,\nc,-0.0001,\n")
    assert read(str(tmp_path / "t.csv")) == (WANTED, [WORDS])


def test_columns_and_objects_are_taken() -> None:
    assert read(OBJECTS) == (WANTED, [])
    table = pa.Table.from_pylist(OBJECTS)
    assert read(table) == (WANTED, [])
    wide = table.set_column(1, "price", table.column("price").cast(pa.decimal256(40, 10)))
    assert read(wide) == (WANTED, [])
    whole = pa.table({"name": ["a"], "price": pa.array([2], pa.int32())})
    assert read(whole)[0] == [{"name": "a", "price": 20_000, "fee": None}]
    with pytest.raises(SchemaError, match=r"'price' must be a decimal of 12 digits, .* not 1\.5"):
        read([{"name": "a", "price": 1.5}])
    with pytest.raises(SchemaError, match="is double, but the schema declares a decimal"):
        read(pa.table({"name": ["a"], "price": [1.5]}))


def folded(**aggregates: Any) -> rp.Plan:
    trades = rp.Pipeline("trades").source("trades", Trade)
    rows = trades.derive("more", net=Trade.price - Trade.fee.fill_null(0), two=Trade.price * 2)
    return rows.partition("by", key="name").fold("f", **aggregates).sink("out").plan()


def test_decimals_leave_as_decimals(tmp_path: Path) -> None:
    plan = folded(net=rp.sum("net"), top=rp.max("price"), n=rp.count_distinct("fee"))
    sink = MemorySink()
    rp.run(plan, source=OBJECTS, sink=sink)
    rows = {row["name"]: row for row in sink.rows()}
    assert rows["a"]["net"] == D("100.7500")
    assert rows["c"]["top"] == D("-0.0001")
    types = {field.name: field.type for field in sink.batches[0].schema}
    assert types["top"] == pa.decimal128(12, 4)
    assert types["net"] == pa.decimal128(19, 4)
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        rp.run(plan, source=OBJECTS, sink=str(tmp_path / name))
    assert "a,100.7500,101.2500,1" in (tmp_path / "out.csv").read_text()
    made = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {row["name"]: row["net"] for row in made} == {"a": "100.7500", "c": "-0.0001"}
    assert pq.read_table(tmp_path / "out.parquet").schema.field("top").type == pa.decimal128(12, 4)


def test_functions_of_users_have_decimals() -> None:
    def doubled(row: Any) -> Any:
        return Trade(row.name, row.price * 2, row.fee)

    def whole(rows: Any) -> Any:
        return {**rows, "price": [price.quantize(D(1)) for price in rows["price"]]}

    trades = rp.Pipeline("p").source("t", Trade).map("m", doubled, into=Trade)
    mapped = trades.map("b", whole, into=Trade, batch=True)
    sink = MemorySink()
    rp.run(mapped.partition("p", key="name").fold("f", p=rp.max("price")).sink("o"),
           source=OBJECTS[:1], sink=sink)  # fmt: skip
    assert sink.rows()[0]["p"] == D("202.0000")  # of 202.5, to the even one


def test_what_has_no_rule_is_refused_by_name() -> None:
    for aggregate in (rp.mean("price"), rp.vwap("price", "price"), rp.stddev("price")):
        with pytest.raises(PlanError, match=r"not decimal(, decimal)?: cast it to float.*divide"):
            folded(x=aggregate)

    class Bare:
        price: D

    with pytest.raises(SchemaError, match="say how many digits, Annotated"):
        schema_of(rp.record(Bare))


def test_a_sum_beyond_64_bits_is_absent_as_of_integers() -> None:
    most = {"name": "a", "price": D("99999999.9999")}

    @rp.record
    class Large:
        name: str
        price: Annotated[D, rp.Decimal(18, 0)]

    rows = [{"name": "a", "price": 10**18 - 1}] * 10
    sink = MemorySink()
    summed = rp.Pipeline("p").source("l", Large).partition("p", key="name")
    with pytest.warns(rp.LostRecordsWarning, match="does not fit 64 bits"):
        report = rp.run(summed.fold("f", s=rp.sum("price")).sink("o"), source=rows, sink=sink)
    assert report.uncomputable["f"].count == 1
    assert read([most])[0][0]["price"] == 10**12 - 1


def test_aggregates_of_users_and_candles_have_decimals() -> None:
    kept = rp.custom(
        "price", init=D, add=lambda total, price: total + price, result=str, type=str, name="kept"
    )
    sink = MemorySink()
    trades = rp.Pipeline("p").source("t", Timed, out_of_order="1s").partition("p", key="name")
    rp.run(trades.fold("f", all=kept, bar=rp.ohlc("price"), rows=rp.top_rows(1, "price", ["price"]))
           .sink("o"), source=[{"name": "a", "at": 1, "price": D("1.5")},
                               {"name": "a", "at": 2, "price": D("0.25")}], sink=sink)  # fmt: skip
    (row,) = sink.rows()
    assert row["all"] == "1.7500"
    assert (row["bar_open"], row["bar_low"]) == (D("1.5"), D("0.25"))
    assert row["rows"] == [D("1.5")]


@rp.record
class Timed:
    name: str
    at: rp.Timestamp
    price: Annotated[D, rp.Decimal(12, 4)]


def test_keys_of_joins_have_one_scale() -> None:
    left, right = (
        rp.Pipeline("joined").source(
            name, Schema(name, (Field("price", of), Field("at", Int64()))), time="at"
        )
        for name, of in (("fine", Decimal(12, 4)), ("coarse", Decimal(12, 2)))
    )
    words = (
        r"'price' is a decimal\(12, 4\) in 'fine', and 'price' is a decimal\(12, 2\) in 'coarse'"
    )
    with pytest.raises(PlanError, match=words):
        left.join_asof("as-of", right, on="price", tolerance="1s", emit="final")
    with pytest.raises(PlanError, match=words):
        left.join_interval("near", right, on="price", within=("-1s", "1s"), emit="final")


def test_files_of_text_have_all_digits_also_in_lists_and_records(tmp_path: Path) -> None:
    @rp.record
    class Tick:
        key: str
        at: dt.datetime
        price: Annotated[D, rp.Decimal(10, 8)]

    rows = [
        {"key": "a", "at": "2026-01-31T09:30:00.000000007Z", "price": "0"},
        {"key": "a", "at": "2026-01-31T09:30:01Z", "price": "-0.00000001"},
    ]
    shown = [
        {"key": "a", "at": "2026-01-31T09:30:00.000000007Z", "price": "0.00000000"},
        {"key": "a", "at": "2026-01-31T09:30:01.000000000Z", "price": "-0.00000001"},
    ]
    ticks = rp.Pipeline("ticks").source("ticks", Tick)
    top = ticks.partition("by-key", key="key").fold(
        "top", rows=rp.top_rows(2, "price", ["at", "price"]), ats=rp.top_k("at", 1)
    )
    files = {name: str(tmp_path / f"{name}.jsonl") for name in ("events", "rows")}
    rp.run(ticks.sink("events").also(top.sink("rows")), source=rows, sink=files)
    lines = [json.loads(line) for line in Path(files["events"]).read_text().splitlines()]
    assert lines == shown
    (line,) = [json.loads(line) for line in Path(files["rows"]).read_text().splitlines()]
    assert line["rows"] == [{name: row[name] for name in ("at", "price")} for row in shown]
    assert line["ats"] == ["2026-01-31T09:30:01.000000000Z"]


@pytest.mark.parametrize(
    ("there", "declared", "is_same"),
    [
        (Decimal(12, 4), Decimal(14, 4), True),
        (Decimal.wide(4), Decimal(18, 4), True),
        (Decimal(12, 4), Decimal(12, 2), False),
        (Decimal(12, 4), Decimal(6, 4), False),
        (Decimal(12, 4), Int64(), False),
        (Int64(), Decimal(12, 0), False),
        (Date(), Int64(), False),
        (Date(), DateTime(), False),
        (Int64(), DateTime(), True),
        (DateTime(), Int64(), True),
    ],
)
def test_topics_are_read_as_what_they_hold(there: Any, declared: Any, is_same: bool) -> None:
    topic, wanted = (Schema("t", (Field("x", kind, optional=True),)) for kind in (there, declared))
    if is_same:
        check_topic(topic, wanted, "log:data/t")
        return
    with pytest.raises(
        SchemaError, match=r"column 'x' of log:data/t is .*, but the schema declares"
    ):
        check_topic(topic, wanted, "log:data/t")


def read_avro(registry: Any, values: pa.Array, *, is_slow: bool) -> Any:
    @rp.record
    class Row:
        price: Annotated[D, rp.Decimal(12, 4)]
        net: Annotated[D, rp.Decimal(18, 4)] | None = None

    shape = RecordShape(schema_of(Row))
    chain = Chain([ReadTime(name, form) for name, form in shape.forms.items()], shape)
    found = chain.batch(AvroValues(chain.needed, registry, is_slow=is_slow).batch(values))
    return found.records.to_pylist(), [bad.cause for bad in found.rejected]


@pytest.mark.parametrize("is_slow", [False, True])
def test_avro_has_decimals_of_its_own(is_slow: bool) -> None:
    registry: Any = OneSchema()
    plan = rp.Pipeline("n").source("fills", Trade).partition("p", key="price")
    output = plan.fold("f", net=rp.sum("fee"), fee=rp.max("fee")).sink("o").plan().output("o")
    writer = row_values("avro", output, "kafka:x", registry, "o-value")
    size = '"logicalType": "decimal", "precision": 12, "scale": 4'
    assert f'{{"type": "bytes", {size}' in registry.text
    units = [0, 1, -1, 127, -128, 128, 99_999_999_9999, -99_999_999_9999]
    prices = [D(one).scaleb(-4) for one in units]
    nets = [D(one).scaleb(-2) for one in units]
    changes = pa.record_batch(
        {
            "price": pa.array(prices, pa.decimal128(12, 4)),
            "net": pa.array(nets, pa.decimal128(19, 2)),
            "fee": pa.array([None, *nets[1:6], None, None], pa.decimal128(9, 2)),
        }
    )
    values = writer.values(changes)
    schema = fastavro.parse_schema(json.loads(registry.text))
    read = [fastavro.schemaless_reader(io.BytesIO(v[5:]), schema) for v in values.to_pylist()]
    assert read == changes.to_pylist()
    rows, lost = read_avro(registry, values, is_slow=is_slow)
    stored = [int(net * 10_000) for net in nets]
    assert (rows, lost) == (
        [{"price": a, "net": b} for a, b in zip(units, stored, strict=True)],
        [],
    )


@pytest.mark.parametrize("is_slow", [False, True])
def test_decimals_of_other_writers_of_avro_fit_or_are_dead_letters(is_slow: bool) -> None:
    registry: Any = OneSchema()
    of = {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 20}
    fields = [{"name": "price", "type": of}]
    registry.text = json.dumps({"type": "record", "name": "R", "fields": fields})
    schema = fastavro.parse_schema(json.loads(registry.text))
    values = []
    for text in ("1.5", "-0.0001", "1e-20", "99999999999999999999", "12345678.0001"):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {"price": D(text)})
        values.append(head_of(7) + out.getvalue())
    rows, lost = read_avro(registry, pa.array(values, pa.binary()), is_slow=is_slow)
    assert [row["price"] for row in rows] == [15_000, -1, 123_456_780_001]
    assert lost == [WORDS, WORDS]
