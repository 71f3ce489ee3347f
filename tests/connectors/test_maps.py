"""Fields of ``dict[str, T]``: from each kind of source, in expressions, functions and topics."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any, Mapping, Sequence  # noqa: UP035 - alone they have another origin than dict

import fastavro
import msgspec
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.formats import values_of
from ripple.connectors.formats.framed import head_of
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.forms import forms_of
from ripple.core.errors import PlanError, SchemaError
from ripple.model.expression import Expr, col
from ripple.model.records import schema_of
from ripple.model.schema.arrow import from_arrow
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.map_form import MapForm, canonical_text
from ripple.model.schema.types import (
    Bool,
    Dict,
    FieldType,
    Float,
    Int,
    Int64,
    Option,
    String,
)
from ripple.model.schema.values import Misfit
from ripple.testing import check_pipeline
from ripple.testing.reference.expressions import evaluate, expression_kind
from tests.connectors.formats.registries import OneSchema, no_registry
from tests.connectors.read_records import nested_places, read, rows_and_causes


@rp.record
class Post:
    at: int
    labels: dict[str, str]
    sizes: dict[str, int] | None = None
    marks: dict[str, float] | None = None


ROWS: list[dict[str, Any]] = [
    {
        "at": 1,
        "labels": {"env": "prod", "a": 'y"\\\né'},
        "sizes": {"b": 2, "a": -1},
        "marks": {"é": 0.1, "x": 2},
    },
    {"at": 2, "labels": {}, "sizes": None, "marks": None},
    {"at": 3, "labels": {"env": "dev"}, "sizes": {}, "marks": {"x": -0.0}},
]
STORED = [
    {
        "at": 1,
        "labels": '{"a":"y\\"\\\\\\né","env":"prod"}',
        "sizes": '{"a":-1,"b":2}',
        "marks": '{"x":2.0,"é":0.1}',
    },
    {"at": 2, "labels": "{}", "sizes": None, "marks": None},
    {"at": 3, "labels": '{"env":"dev"}', "sizes": "{}", "marks": '{"x":-0.0}'},
]
BAD: list[dict[str, Any]] = [
    {"at": 4, "labels": {"a": None}, "sizes": None, "marks": None},
    {"at": 5, "labels": None, "sizes": None, "marks": None},
]
CAUSES = ["labels is not a map of texts", "labels is empty"]
SCHEMA = pa.schema(
    {
        "at": pa.int64(),
        "labels": pa.map_(pa.string(), pa.string()),
        "sizes": pa.map_(pa.string(), pa.int32()),
        "marks": pa.map_(pa.large_string(), pa.float64()),
    }
)


def table_of(rows: Any) -> pa.Table:
    def pairs(value: Any) -> Any:
        return [*value.items()] if isinstance(value, dict) else value

    return pa.Table.from_pylist([{n: pairs(v) for n, v in row.items()} for row in rows], SCHEMA)


OWN = nested_places(table_of)


@pytest.mark.parametrize("kind", OWN)
def test_each_source_reads_maps(kind: str, tmp_path: Path) -> None:
    causes = [CAUSES[0]] * 2 if kind == "csv" else CAUSES  # where it is an empty text
    assert rows_and_causes(OWN[kind](tmp_path, ROWS + BAD), Post) == (STORED, causes)
    if kind == "table":
        assert rows_and_causes(table_of(ROWS)[1:], Post) == (STORED[1:], [])


def test_what_is_no_map_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'labels' must be a map of texts, not 5"):
        rows_and_causes([{"at": 1, "labels": 5}], Post)
    mixed = '{"at":1,"labels":{"é":1}}\n{"at":1,"labels":["a"]}\n{"at":1,"labels":"{}"}\n'
    (tmp_path / "m.jsonl").write_text(mixed)
    (found,) = read(str(tmp_path / "m.jsonl"), Post, 3)
    assert {bad.cause for bad in found.rejected} == {CAUSES[0]}
    assert json.loads(found.rejected[0].raw)["labels"] == {"é": 1}  # to be sent again
    with pytest.raises(SchemaError, match="declares a map of texts: declare a record class for"):
        rows_and_causes(pa.table({"at": [1], "labels": [{"a": 1}]}), Post)

    def declared(kind: Any) -> Any:
        return schema_of(rp.record(type("Odd", (), {"__annotations__": {"x": kind}})))

    for kind, words in (
        (dict[int, str], "Odd.x: a map has texts as its keys, as in dict[str, int]"),
        (dict[str, Post], "Odd.x: a map has texts, integers, floats or truth values, not Record"),
        (dict, "say what it has by texts, such as dict[str, int]"),
        (Mapping, "say what it has by texts, such as dict[str, int]"),
        (dict[str, int, int], "say what it has by texts, such as dict[str, int]"),  # type: ignore[type-arg]
        (Sequence, "say what it is a list of, such as list[str]"),
    ):
        with pytest.raises(SchemaError, match=re.escape(words)):
            declared(kind)
    with pytest.raises(SchemaError, match="a map has none: leave it out"):
        rule_of(Dict(Int())).form("iso", None)


NAMES = st.text(max_size=3) | st.sampled_from(["a", "b", '"', "\\", "é", ""])
KINDS: dict[FieldType, st.SearchStrategy[Any]] = {
    String(): NAMES,
    Int(): st.integers(-(2**63), 2**63 - 1),
    Float(): st.floats() | st.integers(-(2**54), 2**54),
    Bool(): st.booleans(),
}
ODD = st.none() | st.integers(-(2**70), 2**70) | st.floats() | st.just([]) | NAMES
TEXTS = st.sampled_from([
    "", "{", "{}", " { } ", "{}x", "[]", "null", '{"a":1,}', '{"a":1 "b":2}', '{"a":01}',
    '{"a":-0}',
    '{"a":1,"a":2}', '{"b":1,"a":2,"b":3}', '{"a":1.}', '{"a":1e5,"b":1E-7}', '{"a":1e999}',
    '{"a":NaN}', '{"a":12345678901234567890}', '{"a":0.1000000000000000055511151231257827}',
    '{"\\u0061":1}', '{"a":"\\ud800"}', '{"a" : "b" , "c":"d"}', '{"a":tru}', '{"a":true}', '{a:1}',
    '{"a":"b\tc"}', '{"a":{"b":1}}', '{"a":-0.0}', '{"a":9007199254740993}',
])  # fmt: skip


@given(st.sampled_from([*KINDS]), st.data())
def test_a_column_of_texts_is_read_as_each_text_is(of: FieldType, data: st.DataObject) -> None:
    objects = st.dictionaries(NAMES, KINDS[of] | ODD if data.draw(st.booleans()) else KINDS[of])
    made = objects.map(lambda one: json.dumps(one, ensure_ascii=False))
    texts = data.draw(st.lists(st.none() | TEXTS | made | objects.map(json.dumps), max_size=9))
    if data.draw(st.integers(0, 9)) == 0:  # more than are sorted by the loop
        many = {str(n * 7919 % 500): data.draw(KINDS[of]) for n in range(300)}
        texts.append(json.dumps(many, ensure_ascii=False))
    column = pa.array([None, *texts], pa.string()).slice(1)
    found, failed = MapForm(Dict(of)).parsed(column)
    for row, text in enumerate(texts):
        try:
            wanted = None if text is None else canonical_text(json.loads(text), of)
        except (ValueError, Misfit):
            wanted = None
            assert failed[row], text
        else:
            assert not failed[row], text
        assert found[row].as_py() == wanted, text


FIELDS: dict[str, FieldType] = {
    "s": Option(Dict(String())), "n": Option(Dict(Int64())), "f": Dict(Float()),
    "b": Option(Dict(Bool())),
}  # fmt: skip


@given(st.data(), st.sampled_from("snfb"), NAMES, st.integers(-4, 4) | st.just(1 << 31))
def test_members_are_those_of_python(data: st.DataObject, name: str, key: str, index: int) -> None:
    of = getattr(FIELDS[name], "of", FIELDS[name])
    of = of.of if isinstance(of, Dict) else of
    values = KINDS[Int() if of == Int64() else of]
    maps = st.dictionaries(NAMES, values, max_size=4).map(lambda one: canonical_text(one, of))
    rows = data.draw(st.lists(maps if name == "f" else st.none() | maps, min_size=1, max_size=6))
    kinds = {one: expression_kind(kind) for one, kind in FIELDS.items()}
    columns = {name: pa.array([*rows[:1], *rows], pa.string()).slice(1)}
    field = col(name).dict
    exprs: list[Expr] = [field.len() * 2, field.get(key), field.get(key).is_null()]
    exprs += [field.contains(key), field.keys().list.get(index), col(name).is_null()]
    exprs += [col(name).cast(str), field.keys().list.len()]
    for expr in exprs:
        bound = expr.bind(FIELDS).evaluate(columns, len(rows))
        seen = bound.values
        listed = seen.to_pylist() if isinstance(seen, pa.Array) else seen.tolist()
        for at, row in enumerate(rows):
            value = None if bound.valid is not None and not bound.valid[at] else listed[at]
            assert repr(value) == repr(evaluate(expr, {name: row}, kinds)), (expr, row)


@rp.record
class Size:
    at: int
    total: int


def sized(post: Post) -> Size:
    return Size(post.at, sum((post.sizes or {}).values()) + len(post.labels))


def relabelled(post: Post) -> Post:
    return Post(post.at, {"b": "x", **post.labels}, post.sizes, None)


def test_maps_are_read_and_unfolded_as_in_the_interpreter(tmp_path: Path) -> None:
    posts = rp.Pipeline("p").source("posts", Post, time="at")
    derived = posts.filter("some", col("labels").dict.len() < 9).derive(
        "d", env=col("labels").dict.get("env").fill_null("none"),
        b=col("sizes").dict.get("b"), first=col("labels").dict.keys().list.get(0),
        known=col("marks").dict.contains("x"),
    )  # fmt: skip
    by_env = derived.partition("k", key="env").fold("f", b=rp.sum("b"), m=rp.last("marks"))
    each = posts.flat_map("by-label", col("labels"), into=("label", "of"))
    twice = each.flat_map("by-size", col("sizes")).sink("rows")
    counted = each.partition("k", key="label").fold("f", n=rp.count(), of=rp.last("of"))
    mapped = posts.map("sized", sized, into=Size).sink("o")
    again = posts.map("again", relabelled, into=Post).sink("o")
    for pipeline in (by_env.sink("o"), twice, counted.sink("o"), mapped, again):
        check_pipeline(pipeline.plan(), ROWS, batch_sizes=(1, 3), restarts=(2,))
    place = OWN["jsonl"](tmp_path, ROWS)
    found = rp.collect(counted.sink("o"), place).rows()
    assert sorted((row["label"], row["n"], row["of"]) for row in found) == [
        ("a", 1, 'y"\\\né'), ("env", 2, "dev")]  # fmt: skip
    assert [row["total"] for row in rp.collect(mapped, place).rows()] == [3, 0, 1]
    unfolded = rp.collect(twice, place).rows()
    assert [(row["label"], row["key"], row["value"]) for row in unfolded] == [
        ("a", "a", -1), ("a", "b", 2), ("env", "a", -1), ("env", "b", 2)]  # fmt: skip
    for made, words in (
        (lambda: posts.derive("d", x=col("labels") + "a"), "takes no map: use .dict.get('key')"),
        (lambda: posts.derive("d", x=col("at").dict.len()), "takes a field that is a map"),
        (lambda: posts.derive("d", x=col("labels").dict.get(1)), "must be a text, not 1"),  # type: ignore[arg-type]
        (lambda: posts.flat_map("m", col("sizes"), into="x"), "and its key, two texts, not 'x'"),
        (
            lambda: posts.flat_map("m", col("sizes"), into=("x", "x")),
            "there is a field 'x' already",
        ),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            made()
    assert repr(col("a").dict.keys().list.get(0)) == 'col("a").dict.keys().list.get(0)'


def test_sinks_in_the_program_get_maps_also_in_keys() -> None:
    posts = rp.Pipeline("p").source("posts", Post, time="at")
    counted = posts.partition("k", key="labels").fold("f", n=rp.count()).sink("o")
    row = {"at": 1, "labels": {"b": "x", "a": "y"}, "sizes": {"n": 1}, "marks": None}
    rows: list[Any] = []
    batches: list[Any] = []
    rp.run(posts.sink("o"), source=[row], sink=rows)
    rp.run(counted, source=[row], sink=batches.append)
    assert (rows[0]["labels"], rows[0]["sizes"]) == (row["labels"], row["sizes"])
    rp.run(counted, source=[row], sink=rows)
    assert rows[1] == {"op": "set", "labels": {"a": "y", "b": "x"}, "n": 1}
    assert pa.types.is_map(batches[0].schema.field("labels").type)


def test_maps_have_no_order() -> None:
    rows = rp.Pipeline("p").source("posts", Post, time="at").partition("k", key="at")
    for one in (
        rp.max("labels"),
        rp.min("sizes"),
        rp.top_k("labels", 2),
        rp.arg_max("labels", "at"),
        rp.sum("sizes"),
    ):
        with pytest.raises(PlanError, match=r"not dict: take a value with \.dict\.get\('key'\)"):
            rows.fold("f", x=one)
    kept = rows.fold("f", n=rp.count_distinct("labels"), of=rp.arg_max("at", "labels"))
    (first, *_) = rp.collect(kept.sink("o"), ROWS[:1]).rows()
    assert first["n"] == 1
    assert first["of"] == ROWS[0]["labels"]


def test_lines_of_json_have_objects_that_a_source_reads(tmp_path: Path) -> None:
    posts = rp.Pipeline("p").source("posts", Post, time="at").sink("o")
    out = tmp_path / "out.jsonl"
    odd: dict[str, Any] = {"at": 4, "labels": {"NaN": ""}, "marks": {"x": float("inf")}}
    rp.run(posts, source=[*ROWS, odd], sink=str(out))
    *lines, last = out.read_text().splitlines()
    assert last == '{"at":4,"labels":{"NaN": ""},"sizes":null,"marks":{"x": null}}'
    out.write_text("".join(f"{line}\n" for line in lines))
    assert rows_and_causes(str(out), Post) == (STORED, [])


CHAIN = forms_of(RecordShape(schema_of(Post)))


def through(values: Any, given_: list[bytes]) -> tuple[list[Any], list[str]]:
    found = CHAIN.batch(values.batch(pa.array(given_, pa.binary())))
    return found.records.to_pylist(), [bad.cause for bad in found.rejected]


def test_avro_messagepack_and_protobuf_have_maps(tmp_path: Path) -> None:
    registry: Any = OneSchema()
    fields: list[Any] = [{"name": "at", "type": "long"}]
    for name, of in {"labels": "string", "sizes": "long", "marks": "double"}.items():
        made: Any = {"type": "map", "values": of}
        fields.append({"name": name, "type": made if name == "labels" else ["null", made]})
    schema = {"type": "record", "name": "R", "fields": fields}
    registry.text = json.dumps(schema)
    written = []
    for row in ROWS:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
        written.append(head_of(7) + out.getvalue())
    assert through(AvroValues(CHAIN.needed, registry), written) == (STORED, [])
    packed = [msgspec.msgpack.encode(row) for row in ROWS + BAD]
    assert through(values_of("msgpack", CHAIN.needed, no_registry), packed) == (STORED, CAUSES)
    make, options = message_with_maps(tmp_path)
    values = values_of("protobuf", CHAIN.needed, no_registry, options=options)
    sent = [make(**{n: v for n, v in row.items() if v is not None}) for row in ROWS]
    there = [row | {n: row[n] or "{}" for n in ("sizes", "marks")} for row in STORED]
    assert through(values, [one.SerializeToString() for one in sent]) == (there, [])


def message_with_maps(folder: Path) -> tuple[Any, dict[str, str]]:
    """Return the class of a message with the fields of ``Post``, and how it is read."""
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto3")
    message = file.message_type.add(name="Post")
    message.field.add(name="at", number=1, type=3, label=1)  # type: ignore[arg-type]
    for at, (name, kind) in enumerate({"labels": 9, "sizes": 3, "marks": 1}.items(), 2):
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=9, label=1)  # type: ignore[arg-type]
        entry.field.add(name="value", number=2, type=kind, label=1)  # type: ignore[arg-type]
        of = f".m.Post.{entry.name}"
        message.field.add(name=name, number=at, type=11, label=3, type_name=of)  # type: ignore[arg-type]
    path = folder / "m.bin"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("m.Post"))
    return made, {"message": "m.Post", "descriptors": str(path)}


def test_maps_of_arrow_are_a_type_of_fields() -> None:
    found = from_arrow(SCHEMA, name="post").fields
    assert [one.type for one in found[1:]] == [Dict(String()), Dict(Int()), Dict(Float())]
