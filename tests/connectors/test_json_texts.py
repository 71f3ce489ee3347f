"""Fields of text that take arrays and objects of JSON: ``rp.field(format="json")``."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.formats.formats import values_of
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.forms import forms_of
from ripple.core.errors import SchemaError
from ripple.model.expression import col
from ripple.model.records import checks_of, schema_of
from ripple.testing import check_pipeline
from tests.connectors.formats.registries import no_registry
from tests.connectors.read_records import read, rows_and_causes


@rp.record
class Order:
    at: int
    items: str = rp.field(format="json")
    more: str | None = rp.field(format="json", default=None)


@rp.record
class Line:
    at: int
    sku: str
    quantity: int


ROWS: list[dict[str, Any]] = [
    {"at": 1, "items": [{"sku": "é", "n": 2}, {"sku": "b", "n": 1}], "more": {"x": [1, None]}},
    {"at": 2, "items": [], "more": None},
]
STORED = [
    {"at": 1, "items": '[{"sku":"é","n":2},{"sku":"b","n":1}]', "more": '{"x":[1,null]}'},
    {"at": 2, "items": "[]", "more": None},
]
WORDS = "items is not an array or an object of JSON"


def test_each_source_has_arrays_and_objects_as_texts(tmp_path: Path) -> None:
    compact = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in ROWS]
    wrong = ['{"at":3,"items":5}', '{"at":3,"items":"[]"}', '{"at":3,"items":null}']
    (tmp_path / "t.jsonl").write_text("\n".join([*compact, *wrong]))
    causes = [WORDS, WORDS, "items is empty"]
    assert rows_and_causes(str(tmp_path / "t.jsonl"), Order) == (STORED, causes)
    (found,) = read(str(tmp_path / "t.jsonl"), Order, 10)
    assert json.loads(found.rejected[0].raw)["items"] == 5
    assert rows_and_causes(ROWS, Order) == (STORED, [])
    assert rows_and_causes(STORED, Order) == (STORED, [])  # texts are texts
    table = pa.table({"at": [1, 2], "items": [row["items"] for row in ROWS],
                      "more": [{"x": dt.date(2026, 1, 31)}, None]})  # fmt: skip
    wanted = [{**STORED[0], "more": '{"x":"2026-01-31"}'}, STORED[1]]
    assert rows_and_causes(table, Order) == (wanted, [])
    pq.write_table(table, tmp_path / "t.parquet")
    assert rows_and_causes(str(tmp_path / "t.parquet"), Order) == (wanted, [])
    (tmp_path / "t.csv").write_text('1,"[{""sku"":1}]",\n')
    assert rows_and_causes(str(tmp_path / "t.csv"), Order)[0] == [
        {"at": 1, "items": '[{"sku":1}]', "more": None}
    ]
    shape = RecordShape(schema_of(Order), checks_of(Order))
    chain = forms_of(shape)
    values = pa.array([msgspec.msgpack.encode(row) for row in ROWS], pa.binary())
    packed = chain.batch(values_of("msgpack", chain.needed, no_registry).batch(values))
    assert packed.records.to_pylist() == STORED
    with pytest.raises(SchemaError, match="'items' must be an array or an object of JSON, not 5"):
        rows_and_causes([{"at": 1, "items": 5}], Order)


def lines(order: Order) -> Iterator[dict[str, Any]]:
    for item in json.loads(order.items):
        yield {"at": order.at, "sku": item["sku"], "quantity": item["n"]}


def test_lists_of_records_become_rows() -> None:
    orders = rp.Pipeline("p").source("orders", Order, time="at")
    each = orders.flat_map("lines", lines, into=Line).sink("o")
    first = orders.derive("d", sku=col("items").str.json_path_match("$[0].sku")).sink("o")
    for pipeline in (each, first):
        check_pipeline(pipeline.plan(), STORED, batch_sizes=(1, 3), restarts=(1,))
    assert [row["sku"] for row in rp.collect(each, ROWS).rows()] == ["é", "b"]
    assert [row["sku"] for row in rp.collect(first, ROWS).rows()] == ["é", None]


def test_another_type_has_no_such_form() -> None:
    for kind in (int, dt.date, float, list[int]):
        made = type("Odd", (), {"__annotations__": {"x": kind}, "x": rp.field(format="json")})
        with pytest.raises(SchemaError, match="format"):
            rp.Pipeline("p").source("t", rp.record(made))


@rp.record
class Texts:
    x: str = rp.field(format="json")


def test_values_without_a_form_in_json_are_texts_or_refused() -> None:
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    one = {"at": noon, "day": noon.date(), "price": decimal.Decimal("1.50"),
           "id": uuid.UUID(int=1), "blob": b"a"}  # fmt: skip
    written = {"at": "2026-01-31T12:00:00.000000000Z", "day": "2026-01-31", "price": "1.50",
               "id": "00000000-0000-0000-0000-000000000001", "blob": "YQ=="}  # fmt: skip
    same = rp.Pipeline("p").source("s", Texts).sink("o")

    def texts(source: Any) -> list[Any]:
        return [json.loads(row["x"]) for row in rp.collect(same, source).rows()]

    assert texts([{"x": [one]}, {"x": ["\ud800"]}]) == [[written], ["\ud800"]]
    far = dt.datetime(3000, 1, 1, tzinfo=dt.UTC)
    for unit in ("s", "us"):  # of Arrow, also without a zone and beyond nanoseconds
        times = pa.array([[noon], [far]], pa.list_(pa.timestamp(unit)))
        assert texts(pa.table({"x": times})) == [[written["at"]], ["3000-01-01T00:00:00+00:00"]]
    twice = pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))
    assert texts(pa.table({"x": twice})) == [{"a": 2}]
    for kind in (pa.list_(pa.duration("s")), pa.map_(pa.date32(), pa.int64())):
        with pytest.raises(SchemaError, match="column 'x' of the table is"):
            texts(pa.table({"x": pa.array([None], kind)}))
