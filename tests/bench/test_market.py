"""The market's queries, in short: Ripple, DuckDB and Polars have the oracle's rows."""

from __future__ import annotations

import hashlib
import warnings

import pytest

from bench.market.data import tables
from bench.market.queries import QUERIES
from bench.market.query import connected, digest, frames, rows_of

ROWS = 2_000
GIVEN = tables(ROWS, symbols=5)


@pytest.mark.parametrize("name", QUERIES)
def test_all_have_the_rows_of_the_oracle(name: str) -> None:
    query = QUERIES[name]
    wanted = sorted(map(repr, query.wanted(GIVEN)))
    assert len(wanted) > 1
    for batch_rows in (7, 1_000):
        assert sorted(map(repr, rows_of(query.ripple(GIVEN, batch_rows)))) == wanted
    if query.sql is not None:
        assert sorted(map(repr, rows_of(query.duckdb(connected(GIVEN))))) == wanted
    if query.polars is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of groups that it takes to be sorted
            assert sorted(map(repr, query.polars(frames(GIVEN)).rows())) == wanted


def test_the_events_are_the_same_everywhere() -> None:
    found = {
        name: hashlib.sha256(repr([one.to_pylist() for one in table.columns]).encode()).hexdigest()
        for name, table in GIVEN.items()
    }
    assert {name: one[:8] for name, one in found.items()} == {
        "trades": "b78a520b",
        "trades_twice": "4db30312",
        "quotes": "d5cbf7f2",
        "fills": "fed7ecd0",
        "rates": "bcc0fdee",
        "splits": "2160da16",
        "halts": "e52f257f",
        "book": "6522098f",
    }
    times = GIVEN["trades"]["timestamp_ns"].to_pylist()
    assert times != sorted(times)


def test_a_digest_is_of_rows_and_not_of_their_order() -> None:
    rows = [(1, "a"), (2, None)]
    assert digest(rows) == digest(rows[::-1]) != digest([(1, "a"), (2, "b")])
