"""Fields of ``uuid.UUID``: from each kind of source, to each kind of sink, and between."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.memory import MemorySink
from ripple.core.errors import PlanError, SchemaError
from ripple.testing import check_pipeline
from tests.connectors.read_records import PLACES, rows_and_causes

A, B, C = (uuid.UUID(int=n << 96 | 0xABCDEF) for n in (1, 2, 0xF0000000))
WORDS = "id is no UUID such as 123e4567-e89b-12d3-a456-426614174000"


@rp.record
class Order:
    id: uuid.UUID
    size: int
    buyer: uuid.UUID | None = None


@rp.record
class Twice:
    twice: uuid.UUID
    size: int


ROWS: list[dict[str, Any]] = [
    {"id": str(A).upper(), "size": 1, "buyer": str(B)},
    {"id": A.hex, "size": 2, "buyer": None},
    {"id": str(C), "size": 3, "buyer": None},
    {"id": str(A), "size": 4, "buyer": str(C)},
]
WANTED = [
    {"id": str(A), "size": 1, "buyer": str(B)},
    {"id": str(C), "size": 3, "buyer": None},
    {"id": str(A), "size": 4, "buyer": str(C)},
]


def read(place: Any) -> tuple[list[dict[str, Any]], list[str]]:
    return rows_and_causes(place, Order)


@pytest.mark.parametrize("kind", PLACES)
def test_texts_of_either_case_are_uuids(kind: str, tmp_path: Path) -> None:
    assert read(PLACES[kind](tmp_path, ROWS)) == (WANTED, [WORDS])


@pytest.mark.parametrize("arrow", [pa.uuid(), pa.binary(16)])
def test_columns_of_16_bytes_are_uuids(arrow: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([A.bytes, None, C.bytes], arrow), "size": [1, 2, 3]})
    pq.write_table(table, tmp_path / "o.parquet")
    wanted = [{"id": str(A), "size": 1, "buyer": None}, {"id": str(C), "size": 3, "buyer": None}]
    assert read(table) == read(str(tmp_path / "o.parquet")) == (wanted, ["id is empty"])


def test_objects_are_uuids_and_numbers_are_none() -> None:
    assert read([{"id": A, "size": 1, "buyer": None}]) == ([{"id": str(A), "size": 1,
                                                             "buyer": None}], [])  # fmt: skip
    with pytest.raises(SchemaError, match="'id' must be a UUID, not 5"):
        read([{"id": 5, "size": 1}])
    with pytest.raises(SchemaError, match="a UUID has none"):
        rp.Pipeline("p").source("o", rp.record(type("O", (), {
            "__annotations__": {"id": uuid.UUID}, "id": rp.field(format="iso")})))  # fmt: skip


def folded() -> Any:
    orders = (
        rp.Pipeline("orders").source("orders", Order, time="size").filter("no_b", Order.buyer != B)
    )
    return orders.partition("by_id", key="id").fold(
        "f", size=rp.sum("size"), first=rp.min("buyer"), last=rp.last("buyer"),
        buyers=rp.count_distinct("buyer"),
    )  # fmt: skip


MORE = [
    {"id": A, "size": 2, "buyer": A},
    {"id": A, "size": 1, "buyer": B},
    {"id": C, "size": 3, "buyer": None},
    {"id": A, "size": 4, "buyer": C},
    {"id": C, "size": 5, "buyer": A},
]


def test_a_uuid_is_a_key_and_a_result_as_in_the_interpreter() -> None:
    plan, sink = folded().sink("out").plan(), MemorySink()
    rp.run(plan, source=MORE, sink=sink)
    (rows,) = [batch.to_pylist() for batch in sink.batches]
    found = {row["id"]: row for row in rows}
    assert found[str(A)]["first"] == str(A)
    assert found[str(A)]["last"] == str(C)
    assert found[str(C)] | {"op": 0} == {"op": 0, "id": str(C), "size": 5, "first": str(A),
                                         "last": str(A), "buyers": 1}  # fmt: skip
    check_pipeline(folded().sink("out"), MORE, batch_sizes=(1, 3), restarts=(2,))


def test_uuids_leave_as_texts(tmp_path: Path) -> None:
    plan = rp.Pipeline("p").source("o", Order, time="size").partition("k", key="id").fold(
        "f", last=rp.last("buyer")).sink("out").plan()  # fmt: skip
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        rp.run(plan, source=WANTED[:1], sink=str(tmp_path / name))
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == [f"{A},{B}"]
    assert json.loads((tmp_path / "out.jsonl").read_text())["last"] == str(B)
    assert pq.read_table(tmp_path / "out.parquet").to_pylist()[0]["id"] == str(A)
    rows = pa.RecordBatch.from_pylist([{"op": 1, "id": str(A), "last": str(B)}])
    (value,) = row_values("msgpack", plan.output("out"), "t").values(rows).to_pylist()
    assert msgspec.msgpack.decode(value) == {"id": str(A), "last": str(B)}


def test_functions_of_users_have_uuids() -> None:
    seen: list[Any] = []

    def swapped(row: Any) -> Any:
        seen.append((row.id, row.buyer))
        return Order(row.buyer or row.id, row.size, row.id)

    def batched(columns: Any) -> Any:
        seen.append(columns["id"][0])
        return {"twice": columns["id"], "size": columns["size"]}

    orders = (
        rp.Pipeline("p").source("orders", Order, time="size").map("swapped", swapped, into=Order)
    )
    more = orders.map("b", batched, into=Twice, batch=True)
    sink = MemorySink()
    rp.run(more.partition("k", key="twice").fold("f", n=rp.count()).sink("o"), source=WANTED,
           sink=sink)  # fmt: skip
    assert seen[:3] == [(A, B), (C, None), (A, C)]
    assert seen[3] == B
    assert {row["twice"] for batch in sink.batches for row in batch.to_pylist()} == {
        str(B), str(C)}  # fmt: skip


def test_a_uuid_and_a_text_do_not_mix() -> None:
    orders = rp.Pipeline("p").source("orders", Order, time="size")
    with pytest.raises(PlanError, match=r"mixes a UUID and a text: write a constant as uuid.UUID"):
        orders.filter("f", Order.id == str(A))
    with pytest.raises(PlanError, match=r"takes no UUID: use comparisons"):
        orders.derive("d", x=Order.id + "x")


@dataclass
class Last:
    id: uuid.UUID = A
    rows: int = 0


def scanned(last: Last, row: Order) -> Order:
    before, last.id = last.id, row.id
    last.rows += 1
    return Order(before, last.rows, row.id)


def test_states_hold_uuids() -> None:
    orders = rp.Pipeline("p").source("orders", Order, time="size").derive("one", all=1)
    with pytest.raises(PlanError, match="lag takes numbers, not uuid: a state of"):
        orders.scan("lag", key="all", settled=True, before=rp.lag("id"))
    own = orders.scan("own", key="all", state=Last, step=scanned, into=Order, settled=True)
    by_id = own.partition("k", key="id").fold("f", n=rp.count())
    check_pipeline(by_id.sink("out"), MORE, (1, 3), restarts=(2,))
