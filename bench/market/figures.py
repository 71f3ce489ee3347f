"""Each query's rows before its time: Ripple's in batches, DuckDB's and Polars' at once, and csp's.

Ripple reads row by row, in the order of arrival, and could be asked at any time; DuckDB and Polars
have all rows at once, and sort them; csp is given the trades of each symbol in their order.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.market.data import ROWS, Tables, tables
from bench.market.queries import QUERIES
from bench.market.query import Query, connected, digest, frames, rows_of
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns

EVENTS = 20_000 if QUICK else ROWS
ROUNDS = 2 if QUICK else 3
SIZES = (1_000, 16_384)
UNIT = "M rows/s a core"
CSP = "csp==0.19.1"
OF_CSP = ("m3", "m4", "m5", "m6")
SCRIPT = Path(__file__).with_name("csp_peer.py")


def measure() -> list[Row]:
    given = tables(EVENTS)
    connection, framed = connected(given), frames(given)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(given["trades"], f"{folder}/trades.parquet")
        for query in QUERIES.values():
            ours = {f"batches of {size:,}": partial(query.ripple, given, size) for size in SIZES}
            peers: dict[str, Callable[[], Any]] = {}
            if query.sql is not None:
                peers["DuckDB, once"] = partial(query.duckdb, connection)
            if query.polars is not None:
                peers["Polars, once"] = partial(_polars, query, framed)
            wanted = _wanted(query, given)
            _check(query, wanted, {**ours, **peers})
            best = cpu_in_turns({**ours, **peers}, ROUNDS)
            others = {name: best[name] for name in peers}
            if query.name in OF_CSP:
                others["csp"] = min(_csp(query, Path(folder), wanted) for _ in range(ROUNDS))
            rows += _figures(query, given, {name: best[name] for name in ours}, others)
    return rows


def _polars(query: Query, framed: Any) -> pa.Table:
    assert query.polars is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot see that groups are sorted
        return query.polars(framed).to_arrow()


def _csp(query: Query, folder: Path, wanted: str) -> float:
    """Return the processor seconds of csp, after a comparison of the rows."""
    from tests.deploy.tools import of_python  # noqa: PLC0415 - the others do without it

    out = folder / "rows.parquet"
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), query.name, str(folder), str(out)],
        env={**os.environ, "PYTHONPATH": str(of_python(CSP))},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"market: {query.name}, csp: {ended.stderr.strip()}")
    _check(query, wanted, {"csp": partial(pq.read_table, out)})
    return float(ended.stdout.split()[-1])


def _wanted(query: Query, given: Tables) -> str:
    """Return the digest of the oracle's rows; exit if it is not the pinned one."""
    wanted = digest(query.wanted(given))
    if ROWS == EVENTS and wanted != query.digest:
        sys.exit(f"market: the oracle of {query.name} has rows of {wanted}, not {query.digest}")
    return wanted


def _check(query: Query, wanted: str, calls: dict[str, Callable[[], Any]]) -> None:
    """Exit unless all have the oracle's rows."""
    for name, call in calls.items():
        if digest(rows_of(call())) != wanted:
            sys.exit(f"market: {query.name}, {name}: other rows than the oracle's")


def _figures(
    query: Query, given: Tables, ours: dict[str, float], others: dict[str, float]
) -> Iterator[Row]:
    """Yield rates of input rows, of seconds by name."""
    count = sum(len(given[name]) for name in query.reads) / 1e6
    for name, seconds in ours.items():
        title = f"{query.name} {query.title}, {name}"
        if not others:
            yield Row(title, count / seconds, UNIT)
        for other, taken in others.items():
            yield Row(title, count / seconds, UNIT, other, count / taken)
