"""Each query's rows before its time: Ripple's, the peers' and the batch engines', in one run."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.nexmark.data import events
from bench.nexmark.engines import OTHERS, RIPPLE, Engine, EngineError
from bench.nexmark.published import feldera
from bench.nexmark.queries import QUERIES
from bench.nexmark.queries.query import Query
from bench.nexmark.results import differences, expected
from bench.row import Row, at_least
from bench.timing import QUICK
from tests.services.missing import MissingError

EVENTS = int(os.environ.get("RIPPLE_BENCH_EVENTS") or (100_000 if QUICK else 1_000_000))
EVENTS_OF_PEERS = min(EVENTS, 20_000 if QUICK else 100_000)
ROUNDS = 1 if QUICK else 2
AIM = at_least(0.5)
OF_FELDERA = at_least(3, of_ratio=True)
OF_BEST_PEER = at_least(10, of_ratio=True)
UNIT = "M events/s a core"


class WrongError(Exception):
    """Ripple's rows differ from the SQL's."""


def measure() -> list[Row]:
    names = os.environ.get("RIPPLE_BENCH_QUERIES", "")
    chosen = names.split(",") if names else list(QUERIES)
    rows: list[Row] = []
    try:
        events(EVENTS)
        with tempfile.TemporaryDirectory() as folder:
            for name in chosen:
                rows += _rows(QUERIES[name], Path(folder))
    except (EngineError, MissingError, WrongError) as error:
        sys.exit(f"nexmark: {error}")
    return rows


def _rows(query: Query, folder: Path) -> Iterator[Row]:
    title = f"{query.name} {query.title}"
    ours = _rate(RIPPLE, query, folder)
    seconds = _count(EVENTS, query.topics) / ours / 1e6
    yield Row(f"{title}, processor", seconds, "s")
    others = {engine: rate for engine in OTHERS if (rate := _rate_of_other(engine, query, folder))}
    peers = [rate for engine, rate in others.items() if engine.is_peer]
    for engine, rate in others.items():
        is_best_peer = engine.is_peer and rate == max(peers)
        aim = OF_BEST_PEER if is_best_peer else AIM if engine is OTHERS[0] else None
        yield Row(title, ours, UNIT, engine.name, rate, aim)
    if published := feldera(query.name):
        yield Row(title, ours, UNIT, "Feldera, published", published, OF_FELDERA)


def _rate_of_other(engine: Engine, query: Query, folder: Path) -> float | None:
    if query.name in engine.cannot:
        _say(f"{query.name}: {engine.name} is not measured")
        return None
    try:
        return _rate(engine, query, folder)
    except (EngineError, MissingError, WrongError) as error:
        _say(str(error))
        return None


def _rate(engine: Engine, query: Query, folder: Path) -> float:
    """Return millions of bids a processor second, after a check of the rows."""
    count = EVENTS_OF_PEERS if engine.is_peer else EVENTS
    wanted = _wanted(query.sql, count)
    best = float("inf")
    for _ in range(1 if engine.is_peer else ROUNDS):
        seconds, found = engine.run(query.name, events(count), folder / "rows.parquet")
        best = min(best, seconds)
        lines = differences(found, wanted)
        if lines:
            said = "\n".join(lines)
            raise WrongError(f"{query.name}: {engine.name} differs from the SQL:\n{said}")
    rate = _count(count, query.topics) / best / 1e6
    _say(
        f"{query.name}: {engine.name} has the {len(wanted):,} rows of the SQL; "
        f"{best:.2f} s of the processor, {rate:.3g} M events/s a core"
    )
    return rate


@lru_cache(maxsize=2)  # of a query: over all events, and over those of the peers
def _wanted(sql: str, events_made: int) -> pa.Table:
    return expected(sql, events(events_made))


@cache
def _count(events_made: int, topics: tuple[str, ...]) -> int:
    """Return the number of events of the topics that a query reads."""
    files = (pq.ParquetFile(events(events_made) / f"{topic}.parquet") for topic in topics)
    return sum(file.metadata.num_rows for file in files)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
