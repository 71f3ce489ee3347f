"""The columnar algebra against the row form: same keys, same deltas, same refusals."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple.engine.changes as rows_form
from ripple.core.errors import DeltaError, SchemaError
from ripple.core.row_ops import OP
from ripple.engine.changes import FieldRemove, FieldSet, Final, Patch, Remove, Set, Table
from ripple.engine.changes import columns as columns_form
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import CLEARED, Layout
from ripple.model.schema.types import (
    Bool,
    Field,
    Int64,
    Schema,
    String,
)
from tests.engine.changes.convert import of_rows, to_rows
from tests.engine.changes.strategies import (
    LAYOUT,
    ROW,
    frozen,
    keyed_deltas,
    records,
    tables,
    unordered,
)


@st.composite
def keyed_records(draw, scene):
    layout, fields, parts = scene
    table = {}
    for part in draw(st.lists(parts, max_size=5, unique=True)):
        record = dict(zip(layout.keys, part, strict=True)) | draw(records(fields))
        table[part[0] if len(part) == 1 else part] = record
    return table


def schema_of(scene):
    layout, fields, _ = scene
    key_types = {pa.string(): String(), pa.int64(): Int64(), pa.bool_(): Bool()}
    keys = [Field(k, key_types[layout.table.field(k).type]) for k in layout.keys]
    return Schema("row", (*keys, *fields))


def batch_of(layout, table):
    """The table as rows, by the slowest way."""
    sets = of_rows(layout, [(key, Set(value)) for key, value in table.items()])
    return sets.select(layout.table.names).cast(layout.table)


def table_of(layout, batch):
    """The rows as a table, by the slowest way."""
    out = {}
    for row in batch.to_pylist():
        key = tuple(row[name] for name in layout.keys)
        out[key[0] if len(key) == 1 else key] = {k: v for k, v in row.items() if v is not None}
    return out


FAILED = object()


def attempt(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except DeltaError:
        return FAILED


@given(st.data())
def test_row_and_columnar_deltas_convert_into_each_other(data):
    scene = data.draw(tables())
    deltas = data.draw(keyed_deltas(scene))
    assert unordered(to_rows(scene[0], of_rows(scene[0], deltas.items()))) == unordered(
        deltas.items()
    )


@given(st.data(), st.integers(0, 5))
def test_diff_of_tables_is_the_diff_of_their_rows(data, patch_threshold):
    scene = data.draw(tables())
    layout, schema = scene[0], schema_of(scene)
    old, new = data.draw(keyed_records(scene)), data.draw(keyed_records(scene))
    batch = columns_form.diff(
        layout, batch_of(layout, old), batch_of(layout, new), patch_threshold=patch_threshold
    )
    expected = {}
    for key in [*old, *new]:
        before, after = old.get(key, rows_form.ABSENT), new.get(key, rows_form.ABSENT)
        delta = rows_form.diff(before, after, schema=schema, patch_threshold=patch_threshold)
        if delta != Patch():
            expected[key] = delta
    assert unordered(to_rows(layout, batch)) == unordered(expected.items())
    after = columns_form.apply(layout, batch_of(layout, old), batch)
    assert frozen(table_of(layout, after)) == frozen(new)


@given(st.data())
def test_apply_to_a_column_table_is_apply_to_each_row(data):
    scene = data.draw(tables())
    layout = scene[0]
    column_table, row_table = ColumnTable(layout), Table(schema_of(scene))
    for _ in range(4):
        deltas = data.draw(keyed_deltas(scene, known=row_table))
        batch = of_rows(layout, deltas.items())
        by_row = attempt(row_table.apply, deltas.items())
        by_column = attempt(column_table.apply, batch)
        assert by_row is by_column
        column_table.check_invariants()
        assert frozen(table_of(layout, column_table.rows())) == frozen(dict(row_table))
        assert len(column_table) == len(row_table)
        if by_column is not FAILED:
            column_table.apply(batch)  # twice is once
            assert frozen(table_of(layout, column_table.rows())) == frozen(dict(row_table))
    copy = ColumnTable(layout)
    copy.apply(column_table.snapshot())
    assert frozen(table_of(layout, copy.rows())) == frozen(dict(row_table))


@given(st.data())
def test_compose_of_batches_is_compose_of_each_key(data):
    scene = data.draw(tables())
    layout, schema = scene[0], schema_of(scene)
    first = data.draw(keyed_deltas(scene))
    second = data.draw(keyed_deltas(scene, known=first))
    batch = attempt(
        columns_form.compose,
        layout,
        of_rows(layout, first.items()),
        of_rows(layout, second.items()),
    )
    expected = dict(first)
    for key, delta in second.items():
        composed = delta
        if key in first:
            composed = attempt(rows_form.compose, first[key], delta, schema=schema)
        expected[key] = composed
    if FAILED in expected.values():
        assert batch is FAILED
    else:
        assert unordered(to_rows(layout, batch)) == unordered(expected.items())
        assert [key for key, _ in to_rows(layout, batch)] == list(expected)


def deltas_of(**columns):
    """A batch of two rows, a Set of A and a Patch of B, with some columns replaced."""
    base = {
        "symbol": pa.array(["A", "B"]),
        OP: pa.array([0, 1], pa.int8()),
        "price": pa.array([2.0, 2.0]),
        "size": pa.array([2, None], pa.int64()),
        "open": pa.array([2.0, None]),
        "venue": pa.array([None, None], pa.string()),
        CLEARED + "venue": pa.array([False, True]),
    }
    columns = {name: held for name, held in (base | columns).items() if held is not None}
    return pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])


def held_table():
    table = ColumnTable(LAYOUT)
    table.apply(of_rows(LAYOUT, [("A", Set(ROW)), ("B", Set(ROW | {"symbol": "B"}))]))
    return table


def test_batch_of_a_set_and_a_patch_is_applied():
    table = held_table()
    table.apply(deltas_of())
    assert table.rows().to_pylist() == [
        {"symbol": "A", "price": 2.0, "size": 2, "open": 2.0, "venue": None},
        {"symbol": "B", "price": 2.0, "size": 1, "open": 0.5, "venue": None},
    ]


def test_final_row_leaves_the_table():
    table = held_table()
    table.apply(of_rows(LAYOUT, [("A", Final(ROW)), ("Z", Final(ROW | {"symbol": "Z"}))]))
    table.check_invariants()
    assert table.rows().column("symbol").to_pylist() == ["B"]


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (Set(ROW), "'A': a Set follows a Final"),
        (Remove(), "'A': a Remove follows a Final"),
        (Patch((FieldSet("price", 1.0),)), "'A': a Patch follows a Final"),
        (Final(ROW | {"venue": "Y"}), "'A': a Final follows a Final"),
        (Final({name: held for name, held in ROW.items() if name != "venue"}), "'A': a Final"),
    ],
)
def test_only_the_same_final_follows_a_final(after, message):
    final = of_rows(LAYOUT, [("A", Final(ROW)), ("B", Remove())])
    again = of_rows(LAYOUT, [("C", Remove()), ("B", Remove()), ("A", Final(ROW))])
    nothing = of_rows(LAYOUT, [("A", Patch())])
    composed = columns_form.compose(LAYOUT, final, columns_form.compose(LAYOUT, nothing, again))
    composed = columns_form.compose(LAYOUT, composed, nothing)
    assert to_rows(LAYOUT, composed) == [("A", Final(ROW)), ("B", Remove()), ("C", Remove())]
    with pytest.raises(DeltaError, match=message):
        columns_form.compose(LAYOUT, final, of_rows(LAYOUT, [("C", Remove()), ("A", after)]))


def test_columns_that_nothing_changes_may_be_left_out():
    table = held_table()
    batch = pa.record_batch({"symbol": ["B"], "price": [3.0], OP: pa.array([1], pa.int8())})
    table.apply(batch)
    assert table.rows().to_pylist()[1] == ROW | {"symbol": "B", "price": 3.0}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"symbol": pa.array(["A", "Z"])}, "'Z': a Patch of a key that is absent"),
        ({"symbol": pa.array(["A", "A"])}, "'A': the key occurs twice"),
        ({"symbol": pa.array(["Z", "Z"])}, "'Z': the key occurs twice"),
        ({"symbol": pa.array(["A", None])}, "'symbol' of these deltas has nulls"),
        ({"symbol": None}, "lack their column 'symbol'"),
        ({OP: None}, "lack their column 'op'"),
        ({OP: pa.array([0, 4], pa.int8())}, "'B': there is no operation 4"),
        ({OP: pa.array([0, -1], pa.int8())}, "'B': there is no operation -1"),
        ({OP: pa.array([0, None], pa.int8())}, "'op' of these deltas has nulls"),
        ({OP: pa.array([0, 2], pa.int8())}, "'B': a Remove holds a value of the field 'price'"),
        ({OP: pa.array([0, 3], pa.int8())}, "'B': a Final leaves the required field 'size'"),
        ({OP: pa.array([0, 0], pa.int8())}, "'B': a Set leaves the required field 'size'"),
        ({"price": pa.array([None, 2.0])}, "'A': a Set leaves the required field 'price'"),
        ({"price": None}, "'A': a Set leaves the required field 'price'"),
        ({"pirce": pa.array([1.0, 1.0])}, "no field 'pirce'"),
        ({"price": pa.array([1, 1])}, "'price' is double, but the deltas hold int64"),
        ({"venue": pa.array(["X", "Y"])}, "'B': a Patch both sets and clears"),
        ({CLEARED + "venue": pa.array([True, True])}, "'A': a Set .*'venue'"),
        ({CLEARED + "venue": pa.array([None, True])}, "has nulls"),
    ],
)
def test_batch_that_does_not_fit_leaves_the_table_unchanged(columns, message):
    table = held_table()
    before = table.rows()
    with pytest.raises(DeltaError, match=message):
        table.apply(deltas_of(**columns))
    table.check_invariants()
    assert table.rows().equals(before)
    table.apply(deltas_of())


@pytest.mark.parametrize(
    ("schema", "keys"),
    [
        (pa.schema([]), ()),
        (pa.schema([("a", pa.int64())]), ("b",)),
        (pa.schema([("a", pa.int64())]), ("a", "a")),
        (pa.schema([("a", pa.float64())]), ("a",)),
        (pa.schema([("a", pa.int64()), (OP, pa.int8())]), ("a",)),
        (pa.schema([("a", pa.int64()), (CLEARED + "a", pa.int8())]), ("a",)),
        (pa.schema([("a", pa.int64()), ("b", pa.int8()), ("b", pa.int8())]), ("a",)),
        (pa.schema([("a", pa.int64()), ("b", pa.dictionary(pa.int8(), pa.string()))]), ("a",)),
    ],
)
def test_layout_that_cannot_be_is_refused(schema, keys):
    with pytest.raises(SchemaError):
        Layout(schema, keys)


@pytest.mark.parametrize(
    "delta",
    [
        Patch((FieldSet("symbol", "B"),)),
        Patch((FieldSet("nope", 1),)),
        Patch((FieldSet("price", "1"),)),
        Patch((FieldSet("price", None),)),
        Patch((FieldRemove("price"),)),
        Set(ROW | {"symbol": "B"}),
        Set({"symbol": "A"}),
    ],
)
def test_row_delta_without_a_columnar_form_is_refused(delta):
    with pytest.raises(DeltaError):
        of_rows(LAYOUT, [("A", delta)])


def test_same_key_twice_in_a_table_is_refused():
    twice = pa.concat_batches([held_table().rows()] * 2)
    with pytest.raises(DeltaError, match="'A' occurs twice"):
        columns_form.diff(LAYOUT, twice, twice)


def test_sliced_batches_apply_like_whole_ones():
    n = 1000
    rng = np.random.default_rng(7)
    whole = pa.record_batch(
        {
            "symbol": [f"S{i}" for i in range(n)],
            OP: pa.array(np.zeros(n, np.int8)),
            "price": rng.random(n),
            "size": pa.array(range(n)),
            "open": rng.random(n),
            "venue": pa.array([None if i % 3 else f"V{i}" for i in range(n)]),
            CLEARED + "venue": pa.array([False] * n),
        }
    )
    table, sliced = ColumnTable(LAYOUT), ColumnTable(LAYOUT)
    table.apply(whole)
    for start in range(0, n, 77):
        sliced.apply(whole.slice(start, 77))
    assert sliced.rows().equals(table.rows())


def test_dead_values_of_a_text_column_are_dropped():
    table = held_table()
    for i in range(6000):
        table.apply(
            pa.record_batch({"symbol": ["A"], OP: pa.array([1], pa.int8()), "venue": [f"V{i}"]})
        )
    assert table._columns[-1].spare_rows <= 4100
    assert table.rows().column("venue").to_pylist() == ["V5999", "X"]


def test_float_bits_survive_and_decide():
    old = held_table().rows()
    zero = batch_of(LAYOUT, {"A": ROW | {"price": 0.0}})
    minus = batch_of(LAYOUT, {"A": ROW | {"price": -0.0}})
    nan = batch_of(LAYOUT, {"A": ROW | {"price": math.nan}})
    assert columns_form.diff(LAYOUT, zero, minus).num_rows == 1
    assert columns_form.diff(LAYOUT, nan, nan).num_rows == 0
    applied = columns_form.apply(LAYOUT, old, columns_form.diff(LAYOUT, old, nan))
    assert math.isnan(applied.column("price")[0].as_py())


def test_pandas_and_polars_show_a_patch_as_a_row_with_gaps():
    batch = LAYOUT.conform(deltas_of())
    frame = batch.to_pandas()
    assert list(frame.columns) == [
        "symbol", "op", "price", "size", "open", "venue", "_cleared.venue",
    ]  # fmt: skip
    assert pd.isna(frame["size"][1])
    assert pl.from_arrow(batch).filter(pl.col("op") == 1)["price"].to_list() == [2.0]
