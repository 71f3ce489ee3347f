"""What the rows of an as-of join that are not final refuse; their matches: tests of row tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ripple.engine.graph.column import InputColumn
from ripple.engine.graph.node import Graph
from ripple.engine.kernels.open_rows import OpenRows
from ripple.engine.kernels.row_order import Near
from ripple.engine.kernels.stored import Stored
from ripple.engine.operators.passed_rows import Parts
from ripple.model.keys.index import KeyIndex
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Field, Int

SCHEMA = pa.schema({name: pa.int64() for name in ("number", "slot", "time", "place")})
FIELD = Field("number", Int())


def held(*numbers: int) -> Stored:
    """Return rows of one key, each with its number as its time."""
    rows = Stored(SCHEMA, Parts)
    each = np.array(numbers, np.int64)
    rows.add([each, np.zeros_like(each), each, np.arange(len(each))], len(each))
    return rows


def opened() -> OpenRows:
    near = Near("backward", is_strict=False, tolerance_ns=None)
    return OpenRows(
        Stored(SCHEMA, Parts),
        Stored(SCHEMA, Parts),
        ("slot", "time", "place"),
        near,
        is_inner=False,
        deleted=None,
        shown=[(False, "number")],
        typed=lambda field, numbers: (numbers, None),
    )


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_a_row_shows_its_match_and_a_later_better_one() -> None:
    rows, keys = opened(), key_space([FIELD])
    column = InputColumn(Graph(), (), keys, [("number", "int", True)])
    rows.take(True, held(3), 1, None, None, ints(0))
    rows.look()
    rows.take(False, held(5, 2), 2, None, None, ints(0, 0))
    slots = keys.slots([pa.array([7, 8])])
    rows.show_at(slots, keys.capacity)
    rows.show(column)
    ((values, valid),) = column.rows(slots)
    assert (values.tolist(), valid.tolist()) == ([3, 0], [1, 0])

    rows.take(True, held(4, 1), 2, None, None, ints(0, 0))
    rows.look()
    assert rows.changed().tolist() == slots.tolist()
    assert rows.matched(slots)[2].tolist() == [1, 2]
    assert rows.end_below(5, ends=False).tolist() == [slots[1]]
    rows.leave(slots[1:])
    with pytest.raises(IndexError, match=f"slot {slots[1]} shows no row"):
        rows.leave(slots[1:])
    with pytest.raises(IndexError, match=f"slot {slots[1]} shows no row"):
        rows.matched(slots)
    assert rows.drop(4, 4, True, 1).tolist() == [True]
    assert (rows.left.count, rows.right.count) == (1, 1)


def test_rows_without_keys_or_room_are_refused() -> None:
    rows = opened()
    with pytest.raises(IndexError, match="2 rows of 1"):
        rows.take(True, held(1), 2, None, None, ints(0, 0))
    with pytest.raises(TypeError, match="need the keys of their slots, or slots"):
        rows.take(True, held(1), 1, None, None, None)
    with pytest.raises(IndexError, match="slot 0 is outside"):
        rows.take(True, held(1), 1, KeyIndex(), KeyIndex(), None)
