"""Stored rows: given back as they came, nulls for missing ones, and in the order of waiting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.kernels.stored import Stored, Waiting, gathered
from ripple.engine.operators.passed_rows import Parts
from ripple.model.schema.exported import Lent
from tests.examples import EXAMPLES, SAMPLED

SCHEMA = pa.schema(
    {
        "number": pa.int64(),
        "price": pa.float64(),
        "flag": pa.bool_(),
        "text": pa.string(),
        "several": pa.list_(pa.int64()),
    }
)
INT64 = st.integers(-(2**63), 2**63 - 1)

rows = st.lists(
    st.tuples(
        st.none() | INT64,
        st.none() | st.floats(allow_nan=False),
        st.none() | st.booleans(),
        st.none() | st.text(max_size=40),
        st.none() | st.lists(INT64, max_size=3),
    ),
    max_size=12,
)


def batch_of(some: list[Any]) -> pa.RecordBatch:
    columns = zip(*some, strict=True) if some else ([] for _ in SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(parts=st.lists(rows, max_size=4), cut=st.integers(0, 5), data=st.data())
def test_rows_are_given_back_as_they_came(parts: list[Any], cut: int, data: st.DataObject) -> None:
    stored, held = Stored(SCHEMA, Parts), []
    for some in parts:
        batch = batch_of(some).slice(cut)
        some = some[cut:]  # noqa: PLW2901
        if some and data.draw(st.booleans()):
            others = Stored(SCHEMA.append(pa.field("more", pa.bool_())), Parts)
            others.add([*batch.columns, pa.nulls(len(some), pa.bool_())], len(some))
            at = data.draw(st.lists(st.integers(0, len(some) - 1), max_size=6))
            stored.add_some(others, np.array(at, np.int64))
            some = [some[one] for one in at]  # noqa: PLW2901
        else:
            stored.add(batch.columns, batch.num_rows)
        held += some
        if held and data.draw(st.booleans()):
            kept = sorted(data.draw(st.sets(st.integers(0, len(held) - 1))))
            stored.keep(np.array(kept, np.int64))
            held = [held[at] for at in kept]
        assert stored.count == len(held)

    at = data.draw(st.lists(st.integers(-1, len(held) - 1), max_size=20))
    made = gathered(SCHEMA, len(at), [(stored, SCHEMA.names, np.array(at, np.int64))])
    found = made.arrow()
    found.validate(full=True)
    assert found.equals(batch_of([held[one] if one >= 0 else (None,) * 5 for one in at]))


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(runs=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 50)), min_size=1, max_size=5))
def test_rows_in_a_row_are_kept(runs: list[tuple[int, int]]) -> None:
    kept: list[int] = []
    for gap, length in runs:
        first = gap + (kept[-1] if kept else -1)
        kept += range(first, first + length)
    count = kept[-1] + 2
    schema = pa.schema({"number": pa.int64(), "some": pa.int64(), "text": pa.string()})
    some = [None if at % 3 == 0 else at for at in range(count)]
    texts = [str(at) * (at % 4) for at in range(count)]
    columns = [pa.array(range(count), pa.int64()), pa.array(some, pa.int64()), pa.array(texts)]
    stored = Stored(schema, Parts)
    stored.add(columns, count)
    stored.keep(np.array(kept))
    found = gathered(schema, len(kept), [(stored, schema.names, np.arange(len(kept)))]).arrow()
    assert found.columns == [column.take(pa.array(kept)) for column in columns]


@pytest.mark.parametrize("at", [-2, 1])
def test_other_numbers_are_refused(at: int) -> None:
    stored = Stored(SCHEMA, Parts)
    stored.add(batch_of([(1, 1.0, True, "a", [])]).columns, 1)
    with pytest.raises(IndexError):
        gathered(SCHEMA, 1, [(stored, SCHEMA.names, np.array([at]))])
    with pytest.raises(IndexError):
        stored.words("number", np.array([at]))
    with pytest.raises(IndexError):
        Stored(SCHEMA, Parts).add_some(stored, np.array([at]))
    with pytest.raises(ValueError, match="do not rise"):
        stored.keep(np.array([0, 0]))


def test_a_column_of_another_type_or_length_is_refused() -> None:
    stored = Stored(pa.schema({"number": pa.int64(), "text": pa.string()}), Parts)
    with pytest.raises(TypeError):
        stored.add([pa.array([1]), pa.array([1])], 1)
    with pytest.raises(TypeError):
        stored.add([pa.array([1]), np.array([1])], 1)
    with pytest.raises(TypeError):
        stored.add([Lent.of(pa.array(["a"])), pa.array(["a"])], 1)
    with pytest.raises(ValueError, match="one value for each"):
        stored.add([pa.array([1]), pa.array(["a", "b"])], 1)
    assert stored.count == 0


@pytest.mark.parametrize("name", ["flag", "text", "several"])
def test_numbers_of_another_column_are_refused(name: str) -> None:
    stored = Stored(SCHEMA, Parts)
    stored.add(batch_of([(1, 1.0, True, "a", [])]).columns, 1)
    with pytest.raises(TypeError, match=f"column '{name}' is .*, no number"):
        stored.words(name)
    with pytest.raises(TypeError, match="no number"):
        Waiting(stored, "number", name)


class Failing(Parts):
    """A column that has no memory for more values, and cannot be given out."""

    is_full = False

    def add(self, more: pa.Array) -> None:
        if self.is_full:
            raise MemoryError
        super().add(more)

    def take(self, at: Any) -> Any:
        return super().take(at) if pa.types.is_list(self._kind) else object()


def test_columns_of_different_lengths_take_no_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    stored, some = Stored(SCHEMA, Failing), batch_of([(1, 1.0, True, "a", [2])])
    stored.add(some.columns, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Failing, "is_full", True)
        with pytest.raises(MemoryError):
            stored.add(some.columns, 1)
    with pytest.raises(RuntimeError, match="none can follow"):
        stored.add(some.columns, 1)
    found = gathered(SCHEMA, 1, [(stored, SCHEMA.names, np.array([0]))])
    assert found.arrow() == some


def test_a_column_that_cannot_be_given_leaves_no_memory_of_others() -> None:
    schema = pa.schema({"several": pa.list_(pa.int64()), "other": pa.binary()})
    stored, several = Stored(schema, Failing), pa.array([list(range(1000))], schema.types[0])
    stored.add([several, pa.array([b"a"])], 1)
    before = pa.total_allocated_bytes()
    with pytest.raises(AttributeError):
        gathered(schema, 1, [(stored, schema.names, np.array([0]))])
    assert pa.total_allocated_bytes() == before


def pairs(stored: Stored, numbers: Any) -> list[tuple[int, int]]:
    """The times and places of rows."""
    columns = (stored.words(name, numbers).tolist() for name in ("time", "place"))
    return list(zip(*columns, strict=True))


times = st.lists(st.lists(st.sampled_from([-(2**63), -1, 0, 1, 2, 3, 2**63 - 1]), max_size=9))


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(turns=times, marks=st.lists(st.integers(-2, 4), min_size=1, max_size=9), keeps=st.booleans())
def test_rows_leave_by_time_place_and_number(
    turns: list[list[int]], marks: list[int], *, keeps: bool
) -> None:
    stored = Stored(pa.schema({"time": pa.int64(), "place": pa.int64()}), Parts)
    waiting, held = Waiting(stored, "time", "place"), []
    for turn, some in enumerate([*turns, []]):
        places = np.array([(7 * at) % 3 for at in range(len(some))], np.int64)
        stored.add([np.array(some, np.int64), places], len(some))
        waiting.add()
        held += zip(some, places.tolist(), strict=True)
        held.sort()  # stable: of one place in the order in which they came
        assert pairs(stored, waiting.numbers()) == held
        mark = marks[turn % len(marks)] if turn < len(turns) else 2**63 - 1
        found = waiting.take_below(mark)
        taken = [row for row in held if row[0] < mark]
        held = held[len(taken) :]
        assert pairs(stored, found) == taken
        assert waiting.count == len(held)
        if keeps:
            assert len(waiting.keep(found[:1])) == len(held) + len(found[:1]) == stored.count
