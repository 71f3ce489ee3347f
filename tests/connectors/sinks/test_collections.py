"""Fields that are maps and lists, in each kind of sink that has such types."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
from pathlib import Path
from typing import Annotated, Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import ripple as rp
from ripple.connectors.kafka.row_collections import values_of
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.memory import MemorySink
from ripple.core.errors import OutputError
from ripple.model.pipeline.plan import Plan
from tests.connectors.formats.registries import OneSchema

D = decimal.Decimal


@rp.record
class Visit:
    at: int
    name: str
    labels: dict[str, str]
    sizes: dict[str, int] | None
    marks: dict[str, float]
    flags: dict[str, bool]
    prices: list[Annotated[D, rp.Decimal(12, 4)]]
    days: list[dt.date] | None
    blobs: list[bytes]


ROWS: list[dict[str, Any]] = [
    {
        "at": 1,
        "name": "a",
        "labels": {"b": 'é"\n', "z": "1"},
        "sizes": None,
        "marks": {"x": 1.5, "y": -0.0},
        "flags": {"t": True},
        "prices": [D("1.5"), D(2)],
        "days": None,
        "blobs": [b"\xff", b""],
    },
    {
        "at": 2,
        "name": "b",
        "labels": {},
        "sizes": {"a": 1, "b": -(2**62)},
        "marks": {},
        "flags": {},
        "prices": [],
        "days": [dt.date(2026, 1, 31)],
        "blobs": [],
    },
    {
        "at": 3,
        "name": "a",
        "labels": {f"k{at:03}": "v" for at in range(300)},
        "sizes": {f"k{at:02}": at for at in range(40)},
        "marks": {},
        "flags": {"s": False, "t": True},
        "prices": [D(at) for at in range(20)],
        "days": [],
        "blobs": [],
    },
]
VISITS = rp.Pipeline("p").source("visits", Visit, time="at")
EVENTS = VISITS.sink("o").plan()
BY_NAME = VISITS.partition("by", key="name").fold(
    "f", labels=rp.last("labels"), sizes=rp.last("sizes"), top=rp.top_k("at", 2)
)
LAST = [
    {"name": "a", "labels": ROWS[2]["labels"], "sizes": ROWS[2]["sizes"], "top": [3, 1]},
    {"name": "b", "labels": {}, "sizes": ROWS[1]["sizes"], "top": [2]},
]
BY_LABELS = VISITS.partition("by", key="labels").fold("f", n=rp.count(), sizes=rp.last("sizes"))


def dicts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return Arrow's rows with dicts for the pairs of maps."""
    maps = {"labels", "sizes", "marks", "flags"}
    return [
        {n: dict(v) if n in maps and isinstance(v, list) else v for n, v in row.items()}
        for row in rows
    ]


def test_results_in_memory_have_maps_and_lists() -> None:
    found = rp.collect(EVENTS, ROWS)
    assert found.table().schema.field("sizes").type == pa.map_(
        pa.string(), pa.field("value", pa.int64(), nullable=False)
    )
    assert found.rows() == ROWS
    found.table().validate(full=True)
    assert rp.collect(BY_NAME.sink("o"), ROWS).rows() == LAST
    by_labels = rp.collect(BY_LABELS.sink("o"), ROWS, changes=True)
    assert [row["labels"] for row in by_labels.rows()] == [
        row["labels"] for row in (ROWS[0], ROWS[2], ROWS[1])
    ]  # in the order of their texts
    assert by_labels.changes().num_rows == 3
    empty = rp.collect(EVENTS, []).table()
    assert empty.schema.field("labels").type == found.table().schema.field("labels").type


def test_files_of_parquet_have_them_and_are_read_again(tmp_path: Path) -> None:
    place = str(tmp_path / "o.parquet")
    rp.run(EVENTS, source=ROWS, sink=place)
    assert dicts(pq.read_table(place).to_pylist()) == ROWS
    assert rp.collect(EVENTS, place).rows() == ROWS
    rp.run(EVENTS, source=[], sink=str(tmp_path / "none.parquet"))
    assert pq.read_schema(tmp_path / "none.parquet").types == pq.read_schema(place).types
    rp.run(BY_LABELS.sink("o"), source=ROWS, sink=place)
    # A key is compared, and stays a text.
    assert pq.read_schema(place).field("labels").type == pa.string()
    assert pa.types.is_map(pq.read_schema(place).field("sizes").type)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_durable_runs_go_on_with_them(kind: str, tmp_path: Path) -> None:
    source, plan = tmp_path / "in", BY_NAME.sink("o").plan()
    source.mkdir()
    for number, rows in enumerate((ROWS[:2], ROWS[2:])):
        rp.run(EVENTS, source=rows, sink=str(source / f"{number}.jsonl"))
        rp.run(plan, source=f"files:{source}", sink=f"{kind}:{tmp_path}/o",
               checkpoint_dir=str(tmp_path / "state"))  # fmt: skip
    if kind == "delta":
        table = DeltaTable(str(tmp_path / "o")).to_pyarrow_table()
        assert dicts(table.sort_by("name").to_pylist()) == LAST
    else:
        changes = dicts(pq.read_table(tmp_path / "o").to_pylist())
        assert {row["name"]: row for row in changes}["a"] == {"op": "set", **LAST[0]}


def values(plan: Plan, form: Any, registry: Any = None, rows: Any = ROWS) -> list[bytes]:
    held = MemorySink()
    rp.run(plan, source=rows, sink=held)
    (batch,) = held.batches
    writer = row_values(form, plan.output("o"), "kafka:x", registry, "o-value")
    return [one.as_py() for one in writer.values(batch)]


def test_values_of_kafka_have_them() -> None:
    # MessagePack has another head for maps of 65,536 members and more.
    large = [ROWS[1] | {"labels": {f"k{at:05}": "v" for at in range(65_536)}}]
    packed = msgspec.msgpack.decode(values(EVENTS, "msgpack", rows=large)[0])
    assert packed["labels"] == large[0]["labels"]
    texts = [
        row
        | {
            "prices": [f"{one:.4f}" for one in row["prices"]],
            "days": None if row["days"] is None else [str(one) for one in row["days"]],
        }
        for row in ROWS
    ]
    assert [msgspec.msgpack.decode(one) for one in values(EVENTS, "msgpack")] == texts
    registry: Any = OneSchema()
    written = values(EVENTS, "avro", registry)
    schema = fastavro.parse_schema(json.loads(registry.text))
    assert [fastavro.schemaless_reader(io.BytesIO(one[5:]), schema) for one in written] == ROWS
    objects = [json.loads(one) for one in values(EVENTS, "json")]
    assert [one["labels"] for one in objects] == [row["labels"] for row in ROWS]
    keyed: Any = OneSchema()
    rows = values(BY_NAME.sink("o").plan(), "avro", keyed)
    schema = fastavro.parse_schema(json.loads(keyed.text))
    found = [fastavro.schemaless_reader(io.BytesIO(one[5:]), schema) for one in rows]
    assert sorted(found, key=lambda row: row["name"]) == LAST


@pytest.mark.parametrize("of", [list, dict])
def test_values_of_kafka_have_any_number_of_members(of: Any) -> None:
    lengths = np.array([0, 15, 16, 0, 63, 64, 1 << 16])
    numbers = [list(range(length)) for length in lengths]
    wanted = numbers if of is list else [{str(one): one for one in row} for row in numbers]
    items = pa.array([one for row in numbers for one in row])
    members = [items] if of is list else [items.cast(pa.string()), items]
    kind = {"type": "array", "items": "long"} if of is list else {"type": "map", "values": "long"}
    for like in (pa.array(lengths), pa.array(lengths, mask=lengths == 0)):
        packed = values_of(members, lengths, like, avro=False)
        assert packed.is_null().equals(like.is_null())
        of_avro = values_of(members, lengths, like, avro=True)
        for row, one, other in zip(wanted, packed.to_pylist(), of_avro.to_pylist(), strict=True):
            if one is not None:
                assert msgspec.msgpack.decode(one) == row
                assert fastavro.schemaless_reader(io.BytesIO(other), kind) == row


def test_a_table_of_texts_is_named(tmp_path: Path) -> None:
    @rp.record
    class Plain:
        at: int
        name: str
        labels: str

    rows = [{"at": 1, "name": "a", "labels": "{}"}]
    source = tmp_path / "in"
    source.mkdir()
    rp.run(rp.Pipeline("p").source("visits", Plain, time="at").sink("o"), source=rows,
           sink=str(source / "0.jsonl"))  # fmt: skip
    plain = rp.Pipeline("p").source("visits", Plain, time="at").partition("by", key="name")
    rp.run(plain.fold("f", labels=rp.last("labels")).sink("o"), source=f"files:{source}",
           sink=f"delta:{tmp_path}/o", checkpoint_dir=str(tmp_path / "state"))  # fmt: skip
    with pytest.raises(OutputError, match=r"'labels' \(map<string, string>\), which is string"):
        rp.run(
            VISITS.partition("by", key="name").fold("f", labels=rp.last("labels")).sink("o"),
            source=f"files:{source}",
            sink=f"delta:{tmp_path}/o",
            checkpoint_dir=str(tmp_path / "other"),
        )
