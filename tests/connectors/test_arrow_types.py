"""Every type of Arrow, and the frames of pandas and Polars, against every type of field.

A column becomes its field unchanged, or is refused by an error of ours that names it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.connectors.files.parquet.files import ParquetSource
from ripple.connectors.formats.arrow import NOT_ONE, OTHER_COLUMNS, ArrowValues
from ripple.connectors.memory import IteratorSource, MemorySource
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError, SchemaError
from ripple.model.schema.types import Bool, Field, Float, Int, Schema, String

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ripple.connectors.contract import Source

DAY_NS = 86_400 * 10**9
INT32 = pa.int32()
UUID = pa.array([b"a" * 16, None], pa.binary(16))
KINDS: dict[str, Any] = {"text": String(), "int": Int(), "float": Float(), "bool": Bool()}


def dictionary(values: pa.Array, index: pa.DataType = INT32) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, None], index), values)


# Per column of one value and one null: the value of each kind of field that it can be.
COLUMNS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "null": (pa.nulls(2), dict.fromkeys(KINDS)),
    **{
        str(kind): (pa.array([3, None], kind), {"int": 3, "float": 3.0})
        for kind in (
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        )
    },
    **{
        str(kind): (pa.array([1.5, None], pa.float64()).cast(kind), {"float": 1.5})
        for kind in (pa.float16(), pa.float32(), pa.float64())
    },
    "bool": (pa.array([True, None]), {"bool": True}),
    **{
        str(kind): (pa.array(["ä", None], kind), {"text": "ä"})
        for kind in (pa.string(), pa.large_string(), pa.string_view())
    },
    **{
        str(kind): (pa.array([b"a", None], kind), {})
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1))
    },
    **{
        str(kind): (pa.array([2, None], kind), {"int": 2 * ns})
        for kind, ns in (
            (pa.timestamp("s"), 10**9),
            (pa.timestamp("ms", "UTC"), 10**6),
            (pa.timestamp("us"), 10**3),
            (pa.timestamp("ns", "Europe/Berlin"), 1),
            (pa.date32(), DAY_NS),
        )
    },
    "date64": (pa.array([2 * DAY_NS // 10**6, None], pa.date64()), {"int": 2 * DAY_NS}),
    **{
        str(kind): (pa.array([2, None], kind), {})
        for kind in (
            *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
            *(pa.duration("s"), pa.duration("ns")),
        )
    },
    "interval": (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), {}),
    **{
        str(kind): (pa.array([Decimal("1.5"), None], kind), {})
        for kind in (
            *(pa.decimal32(5, 2), pa.decimal64(5, 2), pa.decimal128(5, 2), pa.decimal256(5, 2)),
        )
    },
    **{
        str(kind): (pa.array([["a"], None], kind), {})
        for kind in (
            *(pa.list_(pa.string()), pa.large_list(pa.string()), pa.list_view(pa.string())),
            pa.list_(pa.string(), 1),
        )
    },
    "struct": (pa.array([{"a": 1}, None]), {}),
    "map": (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), {}),
    "union": (pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, 2])]), {}),
    "runs": (pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), ["a", None]), {}),
    "uuid": (pa.ExtensionArray.from_storage(pa.uuid(), UUID), {}),
    "dictionary of null": (dictionary(pa.nulls(1)), dict.fromkeys(KINDS)),
    "dictionary of int": (dictionary(pa.array([3], pa.uint8())), {"int": 3, "float": 3.0}),
    "dictionary of time": (dictionary(pa.array([2], pa.timestamp("ms"))), {"int": 2_000_000}),
    "dictionary of bool": (dictionary(pa.array([True])), {"bool": True}),
    "dictionary of bytes": (dictionary(pa.array([b"a"])), {}),
    **{
        f"dictionary of {kind} by {index}": (
            dictionary(pa.array(["ä"], kind), index),
            {"text": "ä"},
        )
        for kind in (pa.string(), pa.large_string(), pa.string_view())
        for index in (pa.int8(), pa.uint32(), pa.int64())
    },
}
# What these do not have, or cannot be given.
NOT_IN_PARQUET = {"interval", "union", "runs", "list_view<item: string>", "dictionary of null"}
NOT_IN_POLARS = {*NOT_IN_PARQUET, "decimal256(5, 2)", "dictionary of bytes"}
READ_AS_A_VALUE = {
    *("int8", "int64", "uint64", "float", "double", "bool", "string", "large_string"),
    *("timestamp[s]", "timestamp[ms, tz=UTC]"),
}


def read(make: Any, *, optional: bool = True) -> dict[str, Any]:
    """Return what a column is as each kind of field that takes it; all others must name it."""
    found: dict[str, Any] = {}
    refusals: list[str] = []
    for kind, of in KINDS.items():
        shape = RecordShape(Schema("r", (Field("x", of, optional),)))
        try:
            source: Source = make(shape)
            batches = list(source.batches())
        except SchemaError as error:
            refusals.append(str(error))
            continue
        rows = [row["x"] for batch in batches for row in batch.records.to_pylist()]
        refused = [bad for batch in batches for bad in batch.rejected]
        for batch in batches:
            batch.records.validate(full=True)
        if optional:
            assert (rows[1:], refused) == ([None], [])
        else:
            assert [(bad.offset, bad.reason) for bad in refused] == [(1, "x is empty")]
            assert refused[0].raw == b'{"x": null}'
        found[kind] = rows[0]
    assert all("column 'x' of" in refusal for refusal in refusals), refusals
    return found


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_becomes_its_field_or_is_refused_by_name(name: str, tmp_path: Path) -> None:
    column, expected = COLUMNS[name]
    table = pa.table({"x": column})
    assert read(lambda shape: MemorySource(table.to_batches(), shape)) == expected
    twice = pa.concat_tables([table, table]).combine_chunks().slice(2)
    assert read(lambda shape: IteratorSource(iter([twice]), shape)) == expected
    required = {} if None in expected.values() else expected
    assert read(lambda shape: MemorySource([table], shape), optional=False) == required
    if name not in NOT_IN_PARQUET and "string_view by" not in name:
        path = tmp_path / "x.parquet"
        pq.write_table(table, path)
        assert read(lambda shape: ParquetSource(path, shape)) == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_a_frame_is_what_it_is_in_a_table(name: str) -> None:
    column, expected = COLUMNS[name]
    table = pa.table({"x": column})
    frames: list[Any] = [table.to_pandas(types_mapper=pd.ArrowDtype)]
    if name not in NOT_IN_POLARS:
        frames.append(pl.from_arrow(table))
    for frame in frames:
        assert read(lambda shape, frame=frame: MemorySource([frame], shape)) == expected


@pytest.mark.parametrize("name", COLUMNS)
def test_a_value_of_arrow_is_a_record_or_refused(name: str) -> None:
    column, expected = COLUMNS[name]
    for kind, of in KINDS.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("x", column.type)])) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays([column[:1]], ["x"]))
        values = ArrowValues(RecordShape(Schema("r", (Field("x", of, optional=True),))))
        batch = values.batch(pa.array([sink.getvalue().to_pybytes()]))
        refused = [bad.reason for bad in batch.rejected]
        rows = [row["x"] for row in batch.records.to_pylist()]
        if kind in expected and name in READ_AS_A_VALUE:
            assert (rows, refused) == ([expected[kind]], [])
        elif refused:
            assert refused[0] in (OTHER_COLUMNS, NOT_ONE)
        else:
            assert rows == [expected[kind]]


def frames() -> Iterator[tuple[Any, Any]]:
    """Yield frames as people make them, with their rows or the message of their refusal."""
    rows = [("a", 1), ("b", None)]
    text = pl.Series("k", ["a", "b"])
    for kind in (pl.Categorical, pl.Enum(["b", "a"]), pl.String):
        yield pl.DataFrame({"k": text.cast(kind), "n": [1, None]}), rows
    yield pl.DataFrame({"k": text, "n": [None, None]}), [("a", None), ("b", None)]
    yield pd.DataFrame({"k": pd.Categorical(["a", "b"]), "n": pd.array([1, None], "Int64")}), rows
    yield pd.DataFrame({"k": ["a"], "n": pd.Series([None], dtype=object)}), [("a", None)]
    yield pd.DataFrame({"k": ["a"], "n": [1], "other": [1 + 2j]}), [("a", 1)]
    yield pd.DataFrame({"k": ["a", "b"], "n": [1.0, None]}), rows
    for floats in ("Float64", "double[pyarrow]"):
        yield pd.DataFrame({"k": ["a", "b"], "n": pd.array([1.0, None], floats)}), rows
        other = pd.array([1.5], floats)
        yield pd.DataFrame({"k": ["a"], "n": other}), "column 'n' of the DataFrame is double"
    for lost in (1.5, 2.0**53 + 2, float("inf")):
        yield pd.DataFrame({"k": ["a"], "n": [lost]}), "column 'n' of the DataFrame is double"
    yield pd.DataFrame({"k": [], "n": []}), []
    yield pl.DataFrame({"k": [], "n": []}), []
    yield pd.DataFrame({"k": ["a", 3], "n": [1, 2]}), "column 'k' of the DataFrame: Expected bytes"
    yield pd.DataFrame({"k": ["a"], "n": [1 + 2j]}), "column 'n' of the DataFrame: Unsupported"
    yield pd.DataFrame({"k": ["a"], "n": [2**70]}), "column 'n' of the DataFrame: .* too large"
    surrogate = pd.Series(["\ud800"], dtype=object)
    yield pd.DataFrame({"k": surrogate, "n": [1]}), "column 'k' of the DataFrame: .*surrogates"
    wide = pl.Series([1]).cast(pl.Int128)
    yield pl.DataFrame({"k": ["a"], "n": [1], "other": wide}), [("a", 1)]
    said = "column 'n' of the DataFrame: Arrow has no type for Int128: cast it"
    yield pl.DataFrame({"k": ["a"], "n": wide}), said
    yield pd.DataFrame([["a", "b"]], columns=["k", "k"]), "columns of the same name"
    yield pd.DataFrame({"k": ["a"], "n": [1.5]}), "column 'n' of the DataFrame is double"
    yield pd.Series(["a"], name="k"), "the Series has no columns with names"


@pytest.mark.parametrize(("frame", "expected"), list(frames()))
def test_frames_as_people_make_them_are_rows_or_an_error_with_the_column(
    frame: Any, expected: Any
) -> None:
    shape = RecordShape(Schema("r", (Field("k", String()), Field("n", Int(), optional=True))))
    if isinstance(expected, str):
        with pytest.raises((SchemaError, InputError), match=expected):
            MemorySource([frame], shape)
        return
    batches = MemorySource([frame], shape).batches()
    assert [tuple(r.values()) for batch in batches for r in batch.records.to_pylist()] == expected
