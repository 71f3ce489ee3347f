"""The newest rows of a stream, in bounded memory."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.engine.edges.newest_rows import PIECES_MAX, NewestRows

SCHEMA = pa.schema([("at", pa.int64()), ("text", pa.string())])


def made(first: int, count: int, text: str = "") -> pa.RecordBatch:
    return pa.record_batch([list(range(first, first + count)), [text] * count], schema=SCHEMA)


def ats(rows: pa.RecordBatch) -> Any:
    return rows.column("at").to_pylist()


@pytest.mark.parametrize("sizes", [(1,), (1, 3, 7), (50, 99), (1, 400)])
def test_newest_rows_are_kept_and_none_after_begins_is_missing(sizes: tuple[int, ...]) -> None:
    random, newest = Random(repr(sizes)), NewestRows(SCHEMA, {"i": 0}, 100, 1 << 20)
    at, shown = 0, list[int]()
    for _ in range(3 * PIECES_MAX):
        given, count = newest.count, random.choice(sizes)
        rows, at = made(at, count), at + count
        gone = newest.add(rows, {"i": at})
        kept = ats(newest.rows())
        assert kept == list(range(max(0, at - 100), at))
        assert newest.complete_from["i"] >= kept[0]
        assert newest.complete_from["i"] <= at
        lost = [one for batch in gone for one in ats(batch)]
        assert lost == [one for one in shown if one not in kept]
        shown = kept
        after = newest.after(given)
        assert (after is None) == (count > 100)
        assert after is None or ats(after) == list(range(at - count, at))
        assert newest._rows <= 200
        assert len(newest._pieces) <= PIECES_MAX + 1
    assert newest.after(newest.count - 101) is None
    if max(sizes) < 8:  # all rows since are there, so those who lag a little miss none
        assert newest.complete_from["i"] <= at - 90


def test_rows_take_no_more_bytes_than_twice_the_limit() -> None:
    newest = NewestRows(SCHEMA, {}, 1_000_000, 10_000)
    for count in (1, 5, 90, 3, 2):
        newest.add(made(0, count, "x" * 500), {"i": 1})
        rows = newest.rows()
        assert rows.get_total_buffer_size() <= 20_000
        assert newest._bytes <= 20_000
    newest.add(made(7, 1, "x" * 50_000), {"i": 2})  # one row is always there
    assert ats(newest.rows()) == [7]
    assert newest.begins == {"i": 1}
