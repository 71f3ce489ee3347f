"""What a later stage that comes back writes: what its readers lack, and nothing else."""

from __future__ import annotations

import pyarrow as pa

from ripple.model.schema.types import Field, String
from ripple.task.published_rows import PublishedRows

KEY = (Field("k", String()),)


def table(**rows: object) -> pa.Table:
    """Return rows by key, each of a number, which may be none, and a list."""
    columns = {
        "k": pa.array(rows),
        "x": pa.array([row[0] for row in rows.values()], pa.float64()),  # type: ignore[index]
        "l": pa.array([row[1] for row in rows.values()], pa.list_(pa.int64())),  # type: ignore[index]
    }
    return pa.table(columns)


def test_rows_that_readers_have_bit_for_bit_are_not_written_again() -> None:
    nan = float("nan")
    shown = PublishedRows(KEY)
    shown.there(table(a=(1.0, [1]), b=(nan, [1, 2]), c=(0.0, []), d=(None, None), e=(5.0, [5])))
    changes = table(a=(2.0, [1]), e=(None, None), f=(6.0, [6])).to_batches()[0]
    ops = pa.array(["set", "remove", "set"])
    shown.changed([changes.add_column(0, "op", ops)])
    now = table(a=(2.0, [1]), b=(nan, [1, 3]), c=(-0.0, []), d=(None, None), e=(5.0, [5]))
    assert shown.settled(now).column("k").to_pylist() == ["b", "c", "e"]
    assert shown.left().column("k").to_pylist() == ["f"]


def test_only_the_newest_rows_are_kept() -> None:
    shown = PublishedRows(KEY)
    for turn in range(300):
        shown.there(table(**{f"k{at}": (turn + at, None) for at in range(1000)}))
    assert sum(rows.num_rows for rows in shown._rows) < 100_000
    now = table(k7=(306.0, None), k8=(306.0, None), new=(1.0, None))
    assert shown.settled(now).column("k").to_pylist() == ["k8", "new"]


def test_rows_of_which_only_the_key_is_known_are_written_again() -> None:
    shown = PublishedRows(KEY)
    shown.changed([pa.record_batch([["set", "set"], ["a", "b"]], ["op", "k"])])
    assert shown.settled(table(a=(1.0, [1]))).column("k").to_pylist() == ["a"]
    assert shown.left().column("k").to_pylist() == ["b"]


def test_one_total_is_there_or_not() -> None:
    shown = PublishedRows(())
    shown.there(pa.table({"x": [1.0]}))
    total = pa.table({"x": [2.0]})
    assert shown.settled(total.select([])).num_rows == 0
    assert shown.left().num_rows == 0
    shown.there(pa.table({"x": [1.0]}))
    assert shown.settled(total).column("x").to_pylist() == [2.0]
