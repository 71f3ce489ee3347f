"""Each query's rows before its time: Ripple's in batches, DuckDB's and Polars' at once.

Ripple reads row by row, in the order of arrival, and could be asked at any time; DuckDB and Polars
have all rows at once, and sort them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from bench.market.data import ROWS, Tables, tables
from bench.market.queries import QUERIES
from bench.market.query import Query, connected, digest, frames, rows_of
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns

EVENTS = 20_000 if QUICK else ROWS
ROUNDS = 2 if QUICK else 3
SIZES = (1_000, 16_384)


def measure() -> list[Row]:
    given = tables(EVENTS)
    connection, framed = connected(given), frames(given)
    rows: list[Row] = []
    for query in QUERIES.values():
        ours = {f"batches of {size:,}": partial(query.ripple, given, size) for size in SIZES}
        peers: dict[str, Callable[[], Any]] = {}
        if query.sql is not None:
            peers["DuckDB, once"] = partial(query.duckdb, connection)
        if query.polars is not None:
            peers["Polars, once"] = partial(_polars, query, framed)
        _check(query, given, {**ours, **peers})
        rows += _figures(query, given, ours, peers)
    return rows


def _polars(query: Query, framed: Any) -> pa.Table:
    assert query.polars is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot see that groups are sorted
        return query.polars(framed).to_arrow()


def _check(query: Query, given: Tables, calls: dict[str, Callable[[], Any]]) -> None:
    """Exit unless all have the oracle's rows, and it has those that are pinned."""
    wanted = digest(query.wanted(given))
    if ROWS == EVENTS and wanted != query.digest:
        sys.exit(f"market: the oracle of {query.name} has rows of {wanted}, not {query.digest}")
    for name, call in calls.items():
        found = digest(rows_of(call()))
        if found != wanted:
            sys.exit(f"market: {query.name}, {name}: other rows than the oracle's")


def _figures(
    query: Query,
    given: Tables,
    ours: dict[str, Callable[[], Any]],
    peers: dict[str, Callable[[], Any]],
) -> Iterator[Row]:
    """Yield rates of input rows."""
    count = sum(len(given[name]) for name in query.reads) / 1e6
    best = cpu_in_turns({**ours, **peers}, ROUNDS)
    for name in ours:
        title = f"{query.name} {query.title}, {name}"
        if not peers:
            yield Row(title, count / best[name], "M rows/s a core")
        for peer in peers:
            rate, other = count / best[name], count / best[peer]
            yield Row(title, rate, "M rows/s a core", peer, other)
