"""The newest rows of a stream, in bounded memory."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.engine.edges.newest_rows import MERGED, NewestRows

SCHEMA = pa.schema([("at", pa.int64()), ("text", pa.string())])


def made(first: int, count: int, text: str = "") -> pa.RecordBatch:
    return pa.record_batch([list(range(first, first + count)), [text] * count], schema=SCHEMA)


def ats(rows: pa.RecordBatch) -> Any:
    return rows.column("at").to_pylist()


@pytest.mark.parametrize("sizes", [(1,), (1, 3, 7), (50, 99), (1, 400)])
def test_newest_rows_are_kept_and_complete_after_begins(sizes: tuple[int, ...]) -> None:
    random, newest = Random(repr(sizes)), NewestRows(SCHEMA, {"i": 0}, 100, 1 << 20)
    at, shown = 0, list[int]()
    for _ in range(400):
        given, count = newest.count, random.choice(sizes)
        rows, at = made(at, count), at + count
        gone = newest.add(rows, {"i": at})
        kept = ats(newest.rows())
        assert kept == list(range(max(0, at - 100), at))
        assert newest.complete_from["i"] >= kept[0]
        assert newest.complete_from["i"] <= at
        lost = [one for each in gone for one in ats(each.rows)]
        assert lost == [one for one in shown if one not in kept]
        shown = kept
        after = newest.after(given)
        assert (after is None) == (count > 100)
        assert after is None or ats(after) == list(range(at - count, at))
        assert newest._rows < 200 + max(sizes)
        assert len(newest._pieces) <= 8 * MERGED
    assert newest.after(newest.count - 101) is None
    if max(sizes) < 8:  # complete, so a subscriber that lags a little misses no row
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


def test_slices_of_a_large_batch_are_as_good_as_small_ones() -> None:
    newest, large = NewestRows(SCHEMA, {}, 1000, 1 << 20), made(0, 20_000, "x" * 100)
    for at in range(0, 20_000, 50):
        newest.add(large.slice(at, 50), {"i": at + 50})
    assert ats(newest.rows()) == list(range(19_000, 20_000))
    assert newest.rows().nbytes < newest._bytes < 1 << 20


def test_small_pieces_are_merged_and_large_ones_stay() -> None:
    newest = NewestRows(SCHEMA, {"i": 0}, 10_000, 1 << 20)
    for at in range(12_000):
        newest.add(made(at, 1), {"i": at + 1})
    assert len(newest._pieces) < 8 * MERGED
    assert ats(newest.rows()) == list(range(2000, 12_000))
    assert 2000 <= newest.complete_from["i"] < 3000
    large = [made(at, 600) for at in range(3)]
    for one in large:
        newest.add(one, {"i": 20_000})
    assert [piece.rows for piece in newest._pieces][-3:] == large


class Looked:
    """Rows that note when they are made."""

    def __init__(self, first: int, count: int, text: str) -> None:
        self._rows = made(first, count, text)
        self.num_rows, self.nbytes, self.times = count, self._rows.nbytes, 0
        self.shared_nbytes = 0

    def made(self) -> pa.RecordBatch:
        self.times += 1
        return self._rows

    def joined(self, others: Any) -> Any:
        del others
        raise AssertionError("they are large")


def test_large_batches_are_made_at_the_first_read() -> None:
    newest = NewestRows(SCHEMA, {"i": 0}, 1000, 10_000)
    batches = [Looked(at * 500, 500, "x" * 100) for at in range(20)]
    for at, one in enumerate(batches):
        newest.add(one, {"i": 500 * at + 500})
    assert [one.times for one in batches] == [0] * 20
    kept = ats(newest.rows())
    assert 0 < len(kept) < 100
    assert kept[-1] == 9999
    assert newest._bytes <= 20_000
    assert newest.complete_from == {"i": 10_000}
    assert newest.after(10_000 - len(kept)) == newest.rows()
    assert newest.after(9000) is None
    newest.add(Looked(10_000, 1, ""), {"i": 10_001})
    assert ats(newest.rows()) == [*kept, 10_000]
    assert [one.times for one in batches] == [0] * 19 + [1]
