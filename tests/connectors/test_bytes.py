"""Fields of ``bytes``: from each kind of source, to each kind of sink, and between."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple as rp
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.memory import MemorySink
from ripple.core.errors import PlanError, SchemaError
from ripple.model.schema.bytes_form import BASE64, HEX, BytesForm
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import Bytes
from ripple.testing import check_pipeline
from tests.connectors.read_records import PLACES, rows_and_causes

RAW, FEW, ALL = b"\x00\xff\n", b"a", bytes(range(256))
WORDS = "body is no base64 such as SGVsbG8=, with its padding"


@rp.record
class Packet:
    body: bytes
    size: int
    tag: bytes | None = rp.field(format="hex", default=None)


def text(value: bytes) -> str:
    return base64.b64encode(value).decode()


ROWS: list[dict[str, Any]] = [
    {"body": text(RAW), "size": 1, "tag": "00FF"},
    {"body": "SGVsbG8", "size": 2, "tag": None},
    {"body": text(ALL), "size": 3, "tag": None},
    {"body": text(FEW), "size": 4, "tag": "0"},
]
WANTED = [
    {"body": RAW.hex(), "size": 1, "tag": "00ff"},
    {"body": ALL.hex(), "size": 3, "tag": None},
]
CAUSES = [WORDS, "tag is no bytes of two hexadecimal digits each, such as 48656c6c6f"]


def read(place: Any) -> tuple[list[dict[str, Any]], list[str]]:
    return rows_and_causes(place, Packet)


@given(st.lists(st.none() | st.binary(max_size=40), max_size=8), st.integers(0, 3))
def test_texts_are_read_as_python_writes_them(values: list[bytes | None], at: int) -> None:
    plain = pa.array(values, pa.binary()).slice(at)
    rule, listed = rule_of(Bytes()), values[at:]
    stored = rule.stored(plain)
    assert stored.to_pylist() == [None if one is None else one.hex() for one in listed]
    assert rule.shown(stored).equals(plain)
    texts = [None if one is None else text(one) for one in listed]
    assert rule.texts(stored).to_pylist() == texts
    for form, written in ((BASE64, pa.array(texts, pa.string())), (HEX, stored)):
        found, failed = BytesForm(form).parsed(written)
        assert found.equals(stored)
        assert not failed.any()


@given(st.text("AQg+/=-_ \n", max_size=9))
def test_base64_is_strict(given_: str) -> None:
    found, failed = BytesForm().parsed(pa.array([given_, "QQ=="]))
    try:
        value = base64.b64decode(given_, validate=True)
        is_one = text(value) == given_  # and no second text of the same bytes
    except ValueError:
        is_one = False
    assert failed.tolist() == [not is_one, False]
    assert found.to_pylist() == [value.hex() if is_one else None, "41"]


@pytest.mark.parametrize("kind", PLACES)
def test_texts_of_the_form_are_bytes(kind: str, tmp_path: Path) -> None:
    assert read(PLACES[kind](tmp_path, ROWS)) == (WANTED, CAUSES)


@pytest.mark.parametrize("arrow", [pa.binary(), pa.large_binary(), pa.binary(2)])
def test_columns_of_bytes_are_taken(arrow: pa.DataType, tmp_path: Path) -> None:
    values = pa.array([b"\0\xff", None, b"ab"], arrow)
    table = pa.table({"body": values, "size": [1, 2, 3], "tag": values})
    pq.write_table(table, tmp_path / "o.parquet")
    wanted = [{"body": "00ff", "size": 1, "tag": "00ff"}, {"body": "6162", "size": 3,
                                                          "tag": "6162"}]  # fmt: skip
    assert read(table) == read(str(tmp_path / "o.parquet")) == (wanted, ["body is empty"])


def test_objects_are_bytes_and_numbers_are_none() -> None:
    assert read([{"body": RAW, "size": 1, "tag": RAW}]) == (
        [{"body": RAW.hex(), "size": 1, "tag": RAW.hex()}], [])  # fmt: skip
    with pytest.raises(SchemaError, match="'body' must be bytes, not 5"):
        read([{"body": 5, "size": 1}])

    @rp.record
    class Wrong:
        body: bytes = rp.field(format="%Y-%m-%d")

    with pytest.raises(SchemaError, match="that of bytes is 'base64' or 'hex'"):
        rp.run(rp.Pipeline("p").source("o", Wrong).sink("o"), source=[{"body": b""}])


MORE = [
    {"body": RAW, "size": 1, "tag": FEW},
    {"body": FEW, "size": 2, "tag": None},
    {"body": RAW, "size": 3, "tag": ALL},
    {"body": b"", "size": 4, "tag": b""},
]


def folded() -> rp.Plan:
    packets = rp.Pipeline("packets").source("packets", Packet, time="size")
    named = packets.filter("no_b", Packet.body != b"b").derive(
        "more", length=rp.col("body").bin.size(), spelled=rp.col("body").bin.encode("base64"),
        hash=rp.col("body").hash(),
    )  # fmt: skip
    by_body = named.partition("by_body", key="body")
    return by_body.fold(
        "f", size=rp.sum("length"), first=rp.min("tag"), last=rp.last("tag"),
        spelled=rp.last("spelled"), tags=rp.count_distinct("tag"), hash=rp.max("hash"),
    ).sink("out").plan()  # fmt: skip


def test_bytes_are_a_key_and_a_result_as_in_the_interpreter(tmp_path: Path) -> None:
    plan, sink = folded(), MemorySink()
    rp.run(plan, source=MORE, sink=sink)
    found = {row["body"]: row for batch in sink.batches for row in batch.to_pylist()}
    assert found[RAW]["size"] == 6
    assert (found[RAW]["first"], found[RAW]["last"]) == (ALL, ALL)
    assert found[RAW]["spelled"] == text(RAW)
    check_pipeline(plan, MORE, batch_sizes=(1, 3), restarts=(2,))
    engines: list[Any] = []
    rp.run(plan, source=MORE, sink={}, on_batch=lambda engine, _: engines.append(engine))
    assert engines[-1].digests == {"out": "416a4e624fba083d"}
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        rp.run(plan, source=MORE[:1], sink=str(tmp_path / name))
    assert f"\n{text(RAW)},3,{text(FEW)}," in (tmp_path / "out.csv").read_text()
    assert json.loads((tmp_path / "out.jsonl").read_text())["last"] == text(FEW)
    kept = pq.read_table(tmp_path / "out.parquet")
    assert kept.schema.field("body").type == pa.binary()
    assert kept.to_pylist()[0]["body"] == RAW


@dataclass
class Last:
    body: bytes = b""
    rows: int = 0


def scanned(last: Last, row: Packet) -> Packet:
    before, last.body = last.body, row.body
    last.rows += 1
    return Packet(before + row.body, last.rows, before)


def test_functions_and_states_have_bytes() -> None:
    packets = rp.Pipeline("p").source("packets", Packet, time="size").derive("one", all=1)
    own = packets.scan("own", key="all", state=Last, step=scanned, into=Packet, settled=True)
    mapped = own.map("b", lambda columns: columns, into=Packet, batch=True)
    plan = mapped.partition("k", key="body").fold("f", n=rp.count()).sink("o").plan()
    sink = MemorySink()
    rp.run(plan, source=MORE, sink=sink)
    found = {row["body"] for batch in sink.batches for row in batch.to_pylist()}
    assert found == {RAW, RAW + FEW, FEW + RAW}
    check_pipeline(plan, MORE, batch_sizes=(1, 3), restarts=(2,))


def test_messagepack_and_avro_have_bytes_of_their_own() -> None:
    output = folded().output("out")
    sizes = (0, 31, 255, 256, 70_000)
    rows = pa.table({
        "op": [1] * 5, "body": pa.array([b"\xff" * n for n in sizes]), "size": [1] * 5,
        "first": pa.array([None, *[RAW] * 4]), "last": pa.array([RAW] * 5),
        "spelled": ["x"] * 5, "tags": [0] * 5, "hash": [0] * 5,
    })  # fmt: skip
    (batch,) = rows.to_batches()
    made = row_values("msgpack", output, "t").values(batch).to_pylist()
    found = [msgspec.msgpack.decode(value) for value in made]
    assert [one["body"] for one in found] == [b"\xff" * n for n in sizes]
    assert [one["first"] for one in found[:2]] == [None, RAW]


def test_bytes_and_a_text_do_not_mix() -> None:
    packets = rp.Pipeline("p").source("packets", Packet)
    with pytest.raises(PlanError, match=r"mixes bytes and a text: write a constant as b'abc'"):
        packets.filter("f", Packet.body == "x")
    with pytest.raises(PlanError, match=r"takes no bytes: use comparisons"):
        packets.derive("d", x=rp.col("body").cast(str))
    with pytest.raises(PlanError, match=r"'base64' or 'hex', not 'utf8'"):
        rp.col("body").bin.encode("utf8")  # type: ignore[arg-type]
