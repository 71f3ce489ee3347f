"""A view's changes against a dictionary of rows, and its digest against a fresh one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ripple.connectors.files.text.sink import TextFormat, TextLines
from ripple.core.row_ops import OP_REMOVE, OP_SET
from ripple.engine.graph.canonical import Form
from ripple.engine.graph.column import InputColumn
from ripple.engine.graph.node import Graph
from ripple.engine.kernels.view import View
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Field, Int64, String

STORED = [
    ("price", "float", True),
    ("size", "int", False),
    ("open", "bool", True),
    ("tags", Form(pa.string()), True),
]
KEY = pa.schema([("name", pa.string()), ("id", pa.int64())])
VALUE = pa.schema(
    [("price", pa.float64()), ("size", pa.int64()), ("open", pa.bool_()), ("tags", pa.string())]
)
LINES = TextFormat(removes="mark")
NAMES = ["", "a", "key of more than sixteen bytes", "ä", "b", "c"]
KEYS = [(name, number) for number in range(12) for name in NAMES]
rows = st.tuples(
    st.none() | st.floats(allow_nan=False),
    st.integers(-(2**63), 2**63 - 1),
    st.none() | st.booleans(),
    st.none() | st.text(max_size=3),
)
writes = st.dictionaries(st.integers(0, len(KEYS) - 1), st.none() | rows, max_size=70)


def write(column: InputColumn, slots: Any, batch: dict[int, Any]) -> None:
    """Write rows by key, and erase those that are None."""
    put = {key: row for key, row in batch.items() if row is not None}
    if put:
        price, size, is_open, tags = zip(*put.values(), strict=True)
        column.write(
            slots[list(put)],
            [
                np.array([0.0 if p is None else p for p in price]),
                np.array(size, np.int64),
                np.array([bool(o) for o in is_open]),
                list(tags),
            ],
            [
                np.array([p is not None for p in price]),
                None,
                np.array([o is not None for o in is_open]),
                np.array([t is not None for t in tags]),
            ],
        )
    column.erase(slots[[key for key in batch if key not in put]])


def told(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """Return rows as tuples; -0.0 and 0.0 are told apart by their text."""
    return [tuple(map(repr, row.values())) for row in batch.to_pylist()]


@given(steps=st.lists(writes, max_size=5), in_order=st.booleans())
def test_changes_are_the_rows_that_differ_and_what_they_were(
    *, steps: list[dict[int, Any]], in_order: bool
) -> None:
    graph = Graph()
    space = key_space([Field("name", String()), Field("id", Int64())])
    columns = [pa.array([key[at] for key in KEYS]) for at in range(2)]
    slots = space.slots(columns)
    space.adopt(slots)
    hashes = dict(zip(KEYS, space.hashes(slots).tolist(), strict=True))
    column = InputColumn(graph, (), space, STORED)
    view = View(column, (KEY, VALUE), retractions=True, in_order=in_order)
    model: dict[int, Any] = {}
    for batch in steps:
        before = dict(model)
        write(column, slots, batch)
        graph.stabilize()
        model |= batch
        model = {key: row for key, row in model.items() if row is not None}
        changed = [k for k in batch if repr(before.get(k)) != repr(model.get(k))]
        nothing = (None,) * len(VALUE)
        expected = {
            tuple(
                map(
                    repr,
                    (*KEYS[k], OP_SET if k in model else OP_REMOVE, *model.get(k, nothing)),
                )
            )
            for k in changed
        }
        made = view.take()
        lines = TextLines(LINES, "lines")
        as_made = lines.of(made, is_first=False)
        got = made.arrow()
        assert as_made == lines.of(got, is_first=False) == lines.of(made, is_first=False)
        got.validate(full=True)
        assert set(told(got)) == expected
        assert got.num_rows == len(changed)
        gone = view.take_retracted()
        gone.validate(full=True)
        were = [k for k in changed if k in before]
        assert sorted(told(gone)) == sorted(tuple(map(repr, (*KEYS[k], *before[k]))) for k in were)
        keys = list(zip(got["name"].to_pylist(), got["id"].to_pylist(), strict=True))
        if not in_order:
            assert keys == sorted(keys, key=hashes.__getitem__)
        left = [key for key in keys if key in {KEYS[k] for k in were}]
        assert list(zip(gone["name"].to_pylist(), gone["id"].to_pylist(), strict=True)) == left
        assert view.digest == view.live_digest()
        assert sorted(told(view.table())) == sorted(
            tuple(map(repr, (*KEYS[k], *row))) for k, row in model.items()
        )
    if not model:
        assert view.digest == 0


def test_a_batch_outlives_what_made_it() -> None:
    graph = Graph()
    space = key_space([Field("name", String()), Field("id", Int64())])
    slots = space.slots([pa.array(["a", "b"]), pa.array([1, 2])])
    column = InputColumn(graph, (), space, STORED)
    view = View(column, (KEY, VALUE), retractions=False, in_order=True)
    write(column, slots, {0: (1.0, 2, None, "x"), 1: (None, 3, True, None)})
    graph.stabilize()
    tags = view.take().arrow()["tags"]
    del graph, space, column, view
    assert tags.to_pylist() == ["x", None]
