"""Each query's rows before its time: of Ripple, DuckDB and Polars at once, csp and Pathway.

Ripple reads row by row, in the order of arrival, and could be asked at any time; DuckDB and Polars
have all rows at once, and sort them; csp is given the trades of each symbol in their order. Pathway
takes fewer rows, as a stream. Quix Streams has no row: it reads topics of Kafka alone.
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
import pyarrow.csv
import pyarrow.parquet as pq

from bench import join_peers, kafka_peers
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
OF_PATHWAY = ("m2", "m7", "m10")  # the others ask for an order of rows of one time, or by row
FEW = 20_000  # rows a table for Pathway, which takes minutes for more
WITHIN_S = 120
HERE = Path(__file__).parent


def measure() -> list[Row]:
    given, few = tables(EVENTS), tables(FEW)
    connection, framed = connected(given), frames(given)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(given["trades"], f"{folder}/trades.parquet")
        few_in = Path(folder, "few")
        few_in.mkdir()
        for name in ("trades", "quotes", "fills", "rates"):
            pq.write_table(few[name], few_in / f"{name}.parquet")
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
            if query.name in OF_PATHWAY:
                rows += _beside_pathway(query, few, few_in)
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
        [sys.executable, str(HERE / "csp_peer.py"), query.name, str(folder), str(out)],
        env={**os.environ, "PYTHONPATH": str(of_python(CSP))},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"market: {query.name}, csp: {ended.stderr.strip()}")
    _check(query, wanted, {"csp": partial(pq.read_table, out)})
    return float(ended.stdout.split()[-1])


def _beside_pathway(query: Query, few: Tables, folder: Path) -> Iterator[Row]:
    """Yield our rate beside that of Pathway on fewer rows; why not, on stderr."""
    out = folder / "changes.csv"
    try:
        ended = subprocess.run(
            [kafka_peers.python(), HERE / "pathway_peer.py", query.name, folder, out],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"market: {query.name}, Pathway has no row: {error}", file=sys.stderr)
        return
    if ended.returncode:
        why = (ended.stderr.strip().splitlines() or ["?"])[-1]
        print(f"market: {query.name}, Pathway has no row: {why}", file=sys.stderr)
        return
    options = pa.csv.ConvertOptions(null_values=["None", ""])
    shown = join_peers.at_the_end(pa.csv.read_csv(out, convert_options=options))
    ours = partial(query.ripple, few, SIZES[0])
    wanted = digest(query.wanted(few))
    _check(query, wanted, {"Pathway": partial(shown.select, query.columns), "few rows": ours})
    count = sum(len(few[name]) for name in query.reads) / 1e6
    own, theirs = cpu_in_turns({"": ours}, ROUNDS)[""], float(ended.stdout.split()[-1])
    title = f"{query.name} {query.title}, {FEW:,} rows a table"
    yield Row(title, count / own, UNIT, "Pathway", count / theirs)


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
