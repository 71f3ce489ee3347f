"""A schema survives Arrow, and Arrow schemas from elsewhere are understood or refused by name."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given

from ripple.core.errors import SchemaError
from ripple.model.schema import (
    Bool,
    Case,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
)
from ripple.model.schema.arrow import from_arrow, to_arrow
from tests.model.schema.trade import TRADE
from tests.strategies import schemas

VWAP = Schema("vwap", (Field("value", Float()),))
ENUM = Variant((Case("BUY"), Case("SELL")))
UNION = Variant((Case("case", (Int(),)), Case("none"), Case("two", (String(), Option(Bool())))))
PLAIN = Schema(
    "plain",
    (
        Field("symbol", String(), doc="ticker"),
        Field("price", Float(), optional=True),
        Field("legs", List(Option(Record((Field("n", Int()), Field("m", Bool(), True)))))),
        Field("side", ENUM),
        Field("kind", UNION, optional=True),
    ),
    3,
    "plain rows",
)


@given(schemas())
def test_schema_survives_the_round_trip(schema: Schema) -> None:
    assert from_arrow(to_arrow(schema)) == schema


def test_schema_survives_the_bytes_of_an_arrow_file(tmp_path: Path) -> None:
    arrow = to_arrow(TRADE, {"vwap": VWAP})
    table = arrow.empty_table()
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as out, pa.ipc.new_file(out, arrow) as writer:
        writer.write_table(table)
    with pa.ipc.open_file(str(tmp_path / "t.arrow")) as reader:
        assert from_arrow(reader.schema) == TRADE
    assert from_arrow(pa.ipc.read_schema(arrow.serialize())) == TRADE


def test_columns_have_the_types_that_the_table_says() -> None:
    arrow = to_arrow(PLAIN)
    assert arrow.types == [
        pa.string(),
        pa.float64(),
        pa.list_(
            pa.struct(
                [pa.field("n", pa.int64(), nullable=False), pa.field("m", pa.bool_())],
            )
        ),
        pa.string(),
        pa.struct(
            [
                pa.field("case_", pa.string(), nullable=False),
                pa.field("case", pa.struct([pa.field("0", pa.int64(), nullable=False)])),
                pa.field(
                    "two",
                    pa.struct(
                        [pa.field("0", pa.string(), nullable=False), pa.field("1", pa.bool_())]
                    ),
                ),
            ]
        ),
    ]
    assert [field.nullable for field in arrow] == [False, True, False, False, True]


def test_table_whose_metadata_was_dropped_is_understood_from_its_types() -> None:
    bare = pa.schema([pa.field(f.name, f.type, nullable=True) for f in to_arrow(PLAIN)])
    schema = from_arrow(bare, name="plain")
    assert [field.name for field in schema.fields] == [field.name for field in PLAIN.fields]
    assert schema.fields[:2] == (
        Field("symbol", String(), optional=True),
        Field("price", Float(), optional=True),
    )


def test_references_that_multiply_are_bounded() -> None:
    names = [f"s{index}" for index in range(40)]
    known = {
        name: Schema(name, (Field("a", Ref(after)), Field("b", Ref(after))))
        for name, after in itertools.pairwise(names)
    }
    known[names[-1]] = Schema(names[-1], (Field("x", Int()),))
    with pytest.raises(SchemaError, match="more than 10000 columns"):
        to_arrow(known["s0"], known)


def test_wider_strings_and_nulls_keep_the_declared_schema() -> None:
    arrow = to_arrow(PLAIN)
    column = arrow.field("symbol").with_type(pa.large_string()).with_nullable(True)
    assert from_arrow(arrow.set(0, column)) == PLAIN


def test_selected_columns_keep_their_types() -> None:
    table = to_arrow(PLAIN).empty_table().select(["side", "price"])
    assert from_arrow(table.schema).fields == (PLAIN.fields[3], PLAIN.fields[1])


def test_cast_column_with_stale_metadata_is_refused_by_name() -> None:
    arrow = to_arrow(PLAIN)
    stale = arrow.set(1, arrow.field("price").with_type(pa.string()))
    with pytest.raises(SchemaError, match=r"plain.price: the column is string.*says Float"):
        from_arrow(stale)


def test_foreign_types_are_understood() -> None:
    arrow = pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False),
            pa.field("b", pa.int64(), nullable=False),
            pa.field("c", pa.timestamp("ns", "UTC"), nullable=False),
            pa.field("d", pa.float32()),
            pa.field("e", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("f", pa.large_list(pa.field("x", pa.uint8(), nullable=False)), nullable=False),
            pa.field("g", pa.struct([pa.field("h", pa.bool_(), nullable=False)]), nullable=False),
        ]
    )
    assert from_arrow(arrow, name="t", version=4) == Schema(
        "t",
        (
            Field("a", Int()),
            Field("b", Int64()),
            Field("c", Int64()),
            Field("d", Float(), optional=True),
            Field("e", String()),
            Field("f", List(Int())),
            Field("g", Record((Field("h", Bool()),))),
        ),
        4,
    )


@pytest.mark.parametrize(
    ("arrow", "message"),
    [
        (pa.binary(3), r"fixed_size_binary\[3\] cannot be expressed"),
        (pa.decimal256(40, 2), "cast it to string, or to int64"),
        (pa.timestamp("ms"), r"cast it to timestamp\[ns\]"),
        (pa.time64("ns"), "cast it to int64"),
        (pa.uint64(), "cast it to int64"),
        (pa.map_(pa.int64(), pa.int64()), "use texts as its keys"),
        (pa.null(), "null cannot be expressed"),
        (pa.float16(), "halffloat cannot be expressed"),
        (pa.dense_union([pa.field("x", pa.int8())]), "no field type can hold it"),
    ],
)
def test_foreign_type_that_cannot_be_expressed_is_refused_by_path(
    arrow: pa.DataType, message: str
) -> None:
    nested = pa.schema([pa.field("rows", pa.list_(pa.struct([pa.field("x", arrow)])))])
    with pytest.raises(SchemaError, match=rf"t\.rows\[\]\.x: Arrow type .*{message}"):
        from_arrow(nested, name="t")


def test_absurdly_nested_arrow_type_is_refused() -> None:
    arrow = pa.int64()
    for _ in range(60):
        arrow = pa.list_(arrow)
    with pytest.raises(SchemaError, match="nested deeper than 48"):
        from_arrow(pa.schema([pa.field("x", arrow)]), name="t")


def test_arrow_schema_without_a_name_asks_for_one() -> None:
    with pytest.raises(SchemaError, match="give name="):
        from_arrow(pa.schema([pa.field("x", pa.int64())]))


def test_version_that_is_no_number_is_refused() -> None:
    arrow = to_arrow(VWAP).with_metadata({"ripple.name": "vwap", "ripple.version": "two"})
    with pytest.raises(SchemaError, match=r"ripple\.version is 'two'"):
        from_arrow(arrow)


@pytest.mark.parametrize(
    ("kind", "optional", "message"),
    [
        (Option(Option(Int())), False, "s.x: an option of an option"),
        (List(Option(Option(Int()))), False, r"s.x\[\]: an option of an option"),
        (Option(Int()), True, "s.x: an optional field of an option"),
        (List(Ref("other")), False, r"s.x\[\]: no schema named 'other'"),
        (List(Ref("s")), False, r"s.x\[\].x\[\]: schema 's' contains itself"),
    ],
)
def test_type_without_a_column_is_refused_by_path(
    kind: FieldType, optional: bool, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        to_arrow(Schema("s", (Field("x", kind, optional),)))


def test_struct_without_fields_is_refused_by_path() -> None:
    with pytest.raises(SchemaError, match=r"t\.a: a record has no fields"):
        from_arrow(pa.schema([("a", pa.struct([]))]), name="t")
