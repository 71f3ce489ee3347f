"""Fields of ``list[T]``: from each kind of source, in expressions, functions and topics."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
import uuid
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.formats import values_of
from ripple.connectors.formats.framed import head_of
from ripple.connectors.locate import open_sink
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.forms import forms_of
from ripple.core.errors import OutputError, PlanError, SchemaError
from ripple.core.row_ops import OP
from ripple.model.expression import Expr, col
from ripple.model.pipeline.description import describe
from ripple.model.records import schema_of
from ripple.model.schema.list_form import ListForm
from ripple.model.schema.logical.lists import ListReading
from ripple.model.schema.types import Bool, Field, FieldType, Float, Int, List, Option, String, Uuid
from ripple.model.schema.values import Misfit, converter
from ripple.storage.log import Topic
from ripple.storage.log.body import columns_of
from ripple.task.repartition.rows import Mark, changes_of, lane_schema, records_of
from ripple.testing import check_pipeline
from ripple.testing.reference.expressions import evaluate, expression_kind
from ripple.world import LiveDisk
from tests.connectors.formats.messages import MANY, ONE, message_of
from tests.connectors.formats.registries import OneSchema, no_registry
from tests.connectors.read_records import nested_places, rows_and_causes
from tests.connectors.read_records import read as read_batches


@rp.record
class Post:
    at: int
    tags: list[str]
    sizes: list[int] | None = None
    marks: list[float] | None = None


@rp.record
class Words:
    x: list[str]


@rp.record
class Tagged:
    at: int
    tag: str


@rp.record
class Nesting:
    all: list[Tagged]


@rp.record
class Timed:
    at: list[dt.datetime]


def nesting(post: Post) -> Nesting:
    return Nesting(tagged(post))


ROWS: list[dict[str, Any]] = [
    {"at": 1, "tags": ["x", 'y"\\\né'], "sizes": [1, -2, 1 << 62], "marks": [0.1, 2]},
    {"at": 2, "tags": [], "sizes": None, "marks": None},
    {"at": 3, "tags": ["x"], "sizes": [], "marks": []},
]
BAD: list[dict[str, Any]] = [
    {"at": 4, "tags": ["x", None], "sizes": None, "marks": None},
    {"at": 5, "tags": None, "sizes": [1], "marks": [1]},
]
CAUSES = ["tags is not a list of texts", "tags is empty"]
SCHEMA = pa.schema({"at": pa.int64(), "tags": pa.list_(pa.string()), "sizes": pa.list_(pa.int64()),
                    "marks": pa.list_(pa.float64())})  # fmt: skip


OWN = nested_places(lambda rows: pa.Table.from_pylist(rows, SCHEMA))


@pytest.mark.parametrize("kind", OWN)
def test_each_source_reads_lists(kind: str, tmp_path: Path) -> None:
    causes = [CAUSES[0]] * 2 if kind == "csv" else CAUSES  # where it is an empty text
    assert rows_and_causes(OWN[kind](tmp_path, ROWS + BAD), Post) == (ROWS, causes)


def test_lists_of_arrow_and_numpy_of_any_kind_are_read() -> None:
    words = pa.array(["a"]).dictionary_encode()
    for column in (
        pa.array([["a"], []], pa.list_view(pa.string())),
        pa.ListArray.from_arrays(pa.array([0, 1, 1], pa.int32()), words),
        pa.array([["a"], []]),
    ):
        assert rows_and_causes(pa.table({"x": column}), Words)[0] == [{"x": ["a"]}, {"x": []}]
    without = pa.table({"x": [[], []]})  # whose items Arrow gives the type null
    assert rows_and_causes(without, Words)[0] == [{"x": []}, {"x": []}]
    rows = [{"at": 1, "tags": [], "sizes": [np.int64(3)], "marks": [np.float32(0.5), 1]}]
    assert rows_and_causes(rows, Post)[0] == [
        {"at": 1, "tags": [], "sizes": [3], "marks": [0.5, 1.0]}
    ]


def test_what_is_no_list_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'tags' must be a list of texts, not 5"):
        rows_and_causes([{"at": 1, "tags": 5}], Post)
    mixed = [{"at": 1, "tags": ["é"], "sizes": ["x"]}, {"at": 2, "tags": ["\ud800"], "sizes": [[]]}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed))
    (found,) = read_batches(str(tmp_path / "m.jsonl"), Post)
    first, second = (json.loads(bad.raw) for bad in found.rejected)
    assert (first["tags"], first["sizes"]) == (["é"], ["x"])  # arrays, to be sent again
    assert second["tags"] == '["\\ud800"]'  # which has no UTF-8
    table = pa.table({"at": [1], "tags": ["x"]})
    rows, causes = rows_and_causes(table, Post)
    assert (rows, causes) == ([], CAUSES[:1])
    wrong = pa.table({"at": [1], "tags": [[1.5]]})
    with pytest.raises(SchemaError, match="declares a list of texts"):
        rows_and_causes(wrong, Post)

    @rp.record
    class Nested:
        rows: list[Tagged]

    with pytest.raises(SchemaError, match="a list of one of them, a map of one of the"):
        rows_and_causes([], Nested)


JSON_ITEMS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**64), 2**64), st.floats(), st.text(max_size=3),
    st.just([]), st.sampled_from(['"', "\\", "]", "ripple.list", "\ud800", "1"]),
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(JSON_ITEMS, max_size=4).map(json.dumps),
    st.lists(JSON_ITEMS, max_size=4).map(lambda items: json.dumps(items, ensure_ascii=False)),
    st.sampled_from(['["a"]', '["b","c"]', "[]", "[1]", "[1.5]", "[true]", "[1", "[1]}", "{}",
                     '[1],"ripple.list":[2]', '[1]}\n{"ripple.list":[2]', "[1e2]", "[-0]", ""]),
)  # fmt: skip
SOUND = {String: ['["a"]', "[]"], Int: ["[1,2]"], Float: ["[1.5, 2]"], Bool: ["[true]"]}


@given(st.sampled_from([String(), Int(), Float(), Bool()]), st.lists(TEXTS | st.none()), st.data())
def test_a_column_of_texts_is_read_as_each_text_is(
    of: FieldType, texts: list[str | None], data: st.DataObject
) -> None:
    texts = [one for one in texts if one is None or one.encode(errors="ignore").decode() == one]
    if data.draw(st.booleans()):
        sound = st.none() | st.sampled_from(SOUND[type(of)])
        texts = [*data.draw(st.lists(sound)) * 9, *texts[:1], *data.draw(st.lists(sound)) * 9]
    read = converter(List(of))
    found, failed = ListForm(List(of)).parsed(pa.array(texts, pa.string()))
    for row, text in enumerate(texts):
        try:
            wanted = None if text is None else read(json.loads(text))
        except (ValueError, Misfit):
            wanted = None
            assert failed[row], text
        else:
            assert not failed[row], text
        assert repr(found[row].as_py()) == repr(wanted), text


FIELDS: dict[str, FieldType] = {"s": Option(List(String())), "n": Option(List(Int())),
                                "f": List(Float())}  # fmt: skip
LISTS = st.lists(
    st.fixed_dictionaries({
        "s": st.none() | st.lists(st.sampled_from(["", "a"]), max_size=3),
        "n": st.none() | st.lists(st.integers(-5, 5), max_size=3),
        "f": st.lists(st.floats(allow_nan=False), max_size=2),
    }), min_size=1, max_size=5,
)  # fmt: skip


@given(LISTS, st.sampled_from("snf"), st.integers(-4, 4) | st.just(1 << 31), st.integers(0, 2))
def test_items_are_those_of_python(
    rows: list[dict[str, Any]], name: str, index: int, cut: int
) -> None:
    kinds = {one: expression_kind(of) for one, of in FIELDS.items()}
    arrow = {"s": pa.string(), "n": pa.int64(), "f": pa.float64()}
    more, first = [*rows[:cut], *rows], len(rows[:cut])
    columns = {
        one: pa.array([row[one] for row in more], pa.list_(of)).slice(first)
        for one, of in arrow.items()
    }
    exprs: list[Expr] = [col(name).list.len() * 2, col(name).list.get(index)]
    exprs.append(exprs[1].is_null())
    for expr in exprs:
        found = expr.bind(FIELDS).evaluate(columns, len(rows))
        values = found.values
        listed = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
        for at, row in enumerate(rows):
            seen = None if found.valid is not None and not found.valid[at] else listed[at]
            assert seen == evaluate(expr, row, kinds), (expr, row)


def tagged(post: Post) -> list[Tagged]:
    return [Tagged(post.at, tag) for tag in post.tags]


def pipelines() -> list[rp.Plan]:
    posts = rp.Pipeline("p").source("posts", Post, time="at")
    derived = posts.filter("some", col("tags").list.len() < 9).derive(
        "d", first=col("tags").list.get(0).fill_null("none"), last=col("sizes").list.get(-1),
        many=col("tags").list.len(),
    )  # fmt: skip
    by_first = derived.partition("k", key="first")
    by_tag = posts.flat_map("tagged", tagged, into=Tagged).partition("k", key="tag")
    each = posts.flat_map("by-tag", col("tags"), into="tag").filter("some", col("tag") != "")
    twice = each.flat_map("by-size", col("sizes")).derive("more", more=col("sizes") // 2)
    return [
        each.partition("k", key="tag").fold("f", n=rp.count(), at=rp.last("at")).sink("o").plan(),
        twice.sink("rows").plan(),
        by_first.fold("f", many=rp.sum("many"), last=rp.max("last")).sink("o").plan(),
        by_tag.fold("f", n=rp.count(), last=rp.last("at")).sink("o").plan(),
    ]


def test_lists_are_read_and_unfolded_as_in_the_interpreter(tmp_path: Path) -> None:
    each, twice, derived, unfolded = pipelines()
    for plan in (each, twice, derived, unfolded):
        check_pipeline(plan, ROWS, batch_sizes=(1, 3), restarts=(2,))
    place = OWN["jsonl"](tmp_path, ROWS)
    assert sorted((row["first"], row["many"]) for row in rp.collect(derived, place).rows()) == [
        ("none", 0), ("x", 3)]  # fmt: skip
    assert sorted((row["tag"], row["n"]) for row in rp.collect(unfolded, place).rows()) == [
        ("x", 2), ('y"\\\né', 1)]  # fmt: skip


def test_items_of_a_field_become_rows_without_a_function() -> None:
    posts = rp.Pipeline("p").source("posts", Post, time="at")
    rows = posts.flat_map("tagged", col("tags"), into="tag").sink("o")
    found = rp.collect(rows, ROWS)
    wanted = [(1, "x"), (1, 'y"\\\né'), (3, "x")]
    assert [(row["at"], row["tag"]) for row in found.rows()] == wanted
    assert [*found.rows()[0]] == ["at", "tag", "sizes", "marks"]
    assert "flat_map tagged: items of tags -> at int, tag string" in describe(rows.plan())
    long = {"at": 4, "tags": ["x"] * 10_001, "sizes": None, "marks": None}
    with pytest.warns(rp.LostRecordsWarning, match="more than 10000 rows"):
        refused = rp.collect(rows, [*ROWS, long, long | {"at": 5, "tags": ["x"] * 10_000}])
    assert refused.rejected["reason"].to_pylist() == [
        "tagged: more than 10000 rows were made of the record"
    ]
    assert len(refused.rows()) == 10_003
    for made, words in (
        (lambda: posts.flat_map("m", col("at")), "the field 'at' is int: use a function"),
        (lambda: posts.flat_map("m", col("tag")), "there is no field 'tag'. Did you mean 'tags'?"),
        (lambda: posts.flat_map("m", col("tags").list.len()), "is no field: .derive it first"),
        (lambda: posts.flat_map("m", col("tags"), into="at"), "there is a field 'at' already"),
        (
            lambda: posts.flat_map("m", col("tags"), into=Tagged),
            "into= names the field of the item",
        ),
        (lambda: posts.flat_map("m", tagged), "into is None: a function makes rows of a record"),
        (
            lambda: posts.derive("d", x=col("tags") + "a"),
            "of a list, take an item with .list.get(0)",
        ),
        (
            lambda: posts.filter("f", col("tags") == "a"),
            "of a list, take an item with .list.get(0)",
        ),
        (lambda: posts.explode("m", "tags"), '.flat_map("NAME", rp.col("LIST"))'),  # type: ignore[attr-defined]
    ):
        with pytest.raises((PlanError, AttributeError), match=re.escape(words)):
            made()


def test_items_of_texts_get_their_types_by_casts() -> None:
    posts = rp.Pipeline("p").source("posts", Post, time="at").flat_map("d", col("tags"))
    days = posts.derive("days", day=col("tags").cast(dt.date, strict=False)).sink("o")
    rows: list[Any] = [{"at": 1, "tags": ["2026-01-31", "x"]}]
    found = rp.collect(days, rows).rows()
    assert [row["day"] for row in found] == [dt.date(2026, 1, 31), None]


ITEMS: dict[FieldType, tuple[st.SearchStrategy[Any], list[pa.DataType]]] = {
    String(): (st.text(max_size=3), [pa.string(), pa.large_string()]),
    Int(): (st.integers(-(2**63), 2**63 - 1), [pa.int64()]),
    Float(): (st.floats(), [pa.float64()]),
    Bool(): (st.booleans(), [pa.bool_()]),
}


@given(st.sampled_from([*ITEMS]), st.data())
def test_texts_of_columns_are_those_of_their_values(of: FieldType, data: st.DataObject) -> None:
    values, types = ITEMS[of]
    rows = data.draw(st.lists(st.none() | st.lists(st.none() | values, max_size=3)))
    kind = data.draw(st.sampled_from([pa.list_, pa.large_list]))(data.draw(st.sampled_from(types)))
    column = pa.array([None, *rows], kind).slice(1)
    read = [
        None if one is None else json.loads(one)
        for one in ListReading(List(of)).texts(column).to_pylist()
    ]
    if isinstance(of, Float):
        read = [row and [None if one is None else float(one) for one in row] for row in read]
    assert repr(read) == repr(rows)


@rp.record
class Note:
    id: uuid.UUID
    at: int
    tags: list[str]


@rp.record
class Owner:
    id: uuid.UUID
    at: int
    photo: bytes
    marks: list[int] | None = None


def test_joined_rows_have_uuids_bytes_and_lists() -> None:
    ids = [uuid.UUID(int=n << 96) for n in range(2)]
    notes: list[Any] = [
        ("notes", {"id": ids[at % 2], "at": at, "tags": ["x"] * (at % 3)}) for at in range(6)
    ]
    owners: list[Any] = [
        ("owners", {"id": ids[at % 2], "at": at, "photo": b"\xff" * at, "marks": marks})
        for at, marks in enumerate([[1], None, []])
    ]
    events = [one for pair in zip(owners, notes, strict=False) for one in pair] + notes[3:]
    for emit in ("eager", "final"):
        pipeline = rp.Pipeline("p")
        left = pipeline.source("notes", Note, time="at", out_of_order="2ns")
        right = pipeline.source("owners", Owner, time="at", out_of_order="2ns")
        joined = left.join_asof("joined", right, on="id", emit=emit)  # type: ignore[arg-type]
        check_pipeline(joined.sink("o").plan(), events, (1, 4), restarts=(3,))


def test_lists_go_to_another_partition() -> None:
    fields = (Field("id", Uuid()), Field("tags", List(String())), Field("n", List(Int()), True))
    schema = lane_schema("lane", fields)
    rows = pa.table({"id": [str(uuid.UUID(int=1))] * 2, "tags": [["x"], []], "n": [[1], None]})
    (batch,) = rows.to_batches()
    mark = Mark(None, {}, 5)
    records = records_of(schema, batch, mark)
    wanted = pa.schema([pa.field(OP, pa.int8()), *list(columns_of(schema))[4:]])
    found = changes_of(records.slice(0, 2), wanted)
    assert found.select(batch.schema.names).to_pylist() == batch.to_pylist()


def test_a_list_is_no_key_and_no_column_of_a_flat_sink(tmp_path: Path) -> None:
    posts = rp.Pipeline("p").source("posts", Post, time="at")
    with pytest.raises(PlanError, match="'tags'"):
        posts.partition("k", key="tags")
    with pytest.raises(PlanError, match="the key 'sizes' is optional list: choose a text"):
        posts.partition("k", key="sizes")  # not to fill it, which nothing can
    with pytest.raises(PlanError, match=r"last\(tags\) needs .*, not list: take an item with"):
        posts.partition("k", key="at").fold("f", last=rp.last("tags"))
    with pytest.raises(PlanError, match=r"not list: a .derive before it with .list.get"):
        posts.scan("s", key="at", settled=True, last=rp.lag("tags"))
    with pytest.raises(SchemaError, match="the key 'tags' of topic posts is a List: a key is text"):
        Topic.create(LiveDisk(tmp_path), "posts", schema_of(Post), key=["tags"])
    with pytest.raises(PlanError, match="takes a field that is a list"):
        posts.derive("d", x=col("at").list.len())
    nested = posts.map("m", nesting, into=Nesting).sink("o").plan()
    with pytest.raises(OutputError, match="Records and lists of them go to Parquet"):
        open_sink(f"delta:{tmp_path}/d", nested, "o")
    timed = rp.Pipeline("p").source("posts", Timed).sink("o").plan()
    with pytest.raises(OutputError, match="'at' is a list of times of nanoseconds, and Delta"):
        open_sink(f"delta:{tmp_path}/d", timed, "o")


CHAIN = forms_of(RecordShape(schema_of(Post)))


def read(values: Any, given_: list[bytes]) -> tuple[list[Any], list[str]]:
    found = CHAIN.batch(values.batch(pa.array(given_, pa.binary())))
    return found.records.to_pylist(), [bad.cause for bad in found.rejected]


def test_avro_messagepack_and_protobuf_have_lists(tmp_path: Path) -> None:
    registry: Any = OneSchema()
    kinds = {"tags": "string", "sizes": "long", "marks": "double"}
    fields: list[Any] = [{"name": "at", "type": "long"}]
    for name, of in kinds.items():
        array: Any = {"type": "array", "items": of}
        fields.append({"name": name, "type": array if name == "tags" else ["null", array]})
    schema = {"type": "record", "name": "R", "fields": fields}
    registry.text = json.dumps(schema)
    written = []
    for row in ROWS:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        written.append(head_of(7) + out.getvalue())
    assert read(AvroValues(CHAIN.needed, registry), written) == (ROWS, [])
    packed = [msgspec.msgpack.encode(row) for row in ROWS + BAD]
    assert read(values_of("msgpack", CHAIN.needed, no_registry), packed) == (ROWS, CAUSES)
    members = {"at": (3, ONE), "tags": (9, MANY), "sizes": (3, MANY), "marks": (1, MANY)}
    make, options = message_of(tmp_path, "Post", members)
    values = values_of("protobuf", CHAIN.needed, no_registry, options=options)
    assert read(values, [make(**row).SerializeToString() for row in ROWS]) == (
        [row | {"sizes": row["sizes"] or [], "marks": row["marks"] or []} for row in ROWS],
        [],
    )
