"""The same job without Ripple: ``python -m bench.peers PEER FILE [WINDOW_NS]``, rows on stdout.

The loops read as streams do and write the rows that each 1,000 trades changed (with windows: the
rows of the window that ended; they rely on trades in order of time). Polars and DuckDB read the
whole file and write once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

BATCH_ROWS = 1_000
FIELDS = ("symbol", "price", "size", "timestamp_ns", "venue")


def plain(path: str, window_ns: int) -> None:
    """A dict of sums."""
    state: dict[str, list[Any]] = {}
    open_start = None
    for lines in _line_batches(path):
        changed = {}
        for line in lines:
            symbol, price, size, time, _ = line.split(",")
            if window_ns:
                start = int(time) // window_ns * window_ns
                if start != open_start:
                    _write_sums(state, f"{open_start},")
                    state.clear()
                    open_start = start
            volume = int(size)
            sums = state.get(symbol)
            if sums is None:
                state[symbol] = sums = [0.0, 0, 0]
            sums[0] += float(price) * volume
            sums[1] += volume
            sums[2] += 1
            changed[symbol] = sums
        if not window_ns:
            _write_sums(changed, "")
    if window_ns:
        _write_sums(state, f"{open_start},")


def each(path: str, window_ns: int) -> None:
    """A dict of sums, and a row a trade."""
    assert not window_ns
    state: dict[str, list[Any]] = {}
    for lines in _line_batches(path):
        rows = []
        for line in lines:
            symbol, price, size, _, _ = line.split(",")
            volume = int(size)
            sums = state.get(symbol)
            if sums is None:
                state[symbol] = sums = [0.0, 0, 0]
            sums[0] += float(price) * volume
            sums[1] += volume
            sums[2] += 1
            rows.append(f"{symbol},{sums[0] / sums[1]:.4f},{sums[1]},{sums[2]}\n")
        sys.stdout.write("".join(rows))


def numpy(path: str, window_ns: int) -> None:
    """Arrays of sums by symbol number."""
    import numpy as np  # noqa: PLC0415 - a peer loads only what it needs

    assert not window_ns
    numbers: dict[str, int] = {}
    names: list[str] = []
    sums = np.zeros((3, 64))
    for lines in _line_batches(path):
        symbols, prices, sizes, _, _ = zip(*(line.split(",") for line in lines), strict=True)
        at = np.array([numbers.setdefault(symbol, len(numbers)) for symbol in symbols])
        names.extend(islice(numbers, len(names), None))
        while len(numbers) > sums.shape[1]:
            sums = np.concatenate((sums, np.zeros_like(sums)), axis=1)
        volumes = np.array(sizes, np.int64)
        changed, local = np.unique(at, return_inverse=True)
        count = len(changed)
        sums[0, changed] += np.bincount(local, np.array(prices, float) * volumes, count)
        sums[1, changed] += np.bincount(local, volumes, count)
        sums[2, changed] += np.bincount(local, None, count)
        notional, volume, trade_count = sums[:, changed]
        columns = ((notional / volume).tolist(), volume.tolist(), trade_count.tolist())
        sys.stdout.write(
            "".join(
                f"{names[i]},{vwap:.4f},{total:.0f},{trades:.0f}\n"
                for i, vwap, total, trades in zip(changed.tolist(), *columns, strict=True)
            )
        )


def polars(path: str, window_ns: int) -> None:
    """One lazy query; POLARS_MAX_THREADS says on how many cores."""
    import polars as pl  # noqa: PLC0415 - a peer loads only what it needs

    types = dict(zip(FIELDS, (pl.String, pl.Float64, pl.Int64, pl.Int64, pl.String), strict=True))
    keys = [pl.col("symbol")]
    if window_ns:
        keys.append((pl.col("timestamp_ns") // window_ns * window_ns).alias("window_start_ns"))
    volume = pl.col("size").sum()
    (
        pl.scan_csv(path, has_header=False, schema=types)
        .group_by(keys)
        .agg(
            ((pl.col("price") * pl.col("size")).sum() / volume).alias("vwap"),
            volume.alias("total_volume"),
            pl.len().alias("trade_count"),
        )
        .collect(engine="streaming")
        .write_csv(sys.stdout.buffer, include_header=False, float_precision=4)
    )


def duckdb(path: str, window_ns: int) -> None:
    """One query."""
    import duckdb as db  # noqa: PLC0415 - a peer loads only what it needs

    start = f"timestamp_ns // {window_ns} * {window_ns}, " if window_ns else ""
    types = ("VARCHAR", "DOUBLE", "BIGINT", "BIGINT", "VARCHAR")
    columns = dict(zip(FIELDS, types, strict=True))  # DuckDB writes a struct as Python a dict
    db.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    rows = db.sql(
        f"SELECT symbol, {start}sum(price * size) / sum(size), sum(size), count(*) "
        f"FROM read_csv('{path}', header = false, columns = {columns}) GROUP BY ALL"
    ).fetchall()
    sys.stdout.write("".join(_line(row) for row in rows))


def _line_batches(path: str) -> Iterator[list[str]]:
    with open(path) as file:
        while lines := list(islice(file, BATCH_ROWS)):
            yield lines


def _write_sums(state: dict[str, list[Any]], start: str) -> None:
    sys.stdout.write(
        "".join(f"{s},{start}{n / v:.4f},{v},{count}\n" for s, (n, v, count) in state.items())
    )


def _line(row: tuple[Any, ...]) -> str:
    *keys, vwap, volume, count = row
    return f"{','.join(map(str, keys))},{vwap:.4f},{volume},{count}\n"


PEERS = {"plain": plain, "a row a trade": each, "numpy": numpy, "polars": polars, "duckdb": duckdb}

if __name__ == "__main__":
    PEERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
