"""DuckDB: the whole file at once, on all processors; its rows are the reference for others."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from bench.nexmark.data import events
from bench.nexmark.engines.ripple_engine import FEW
from bench.nexmark.queries import QUERIES
from bench.nexmark.results import expected


def main(query: str, folder: str, out: str) -> None:
    sql = QUERIES[query].sql
    expected(sql, events(FEW) / "bid.parquet")
    started = time.process_time()
    rows = expected(sql, Path(folder) / "bid.parquet")
    print(time.process_time() - started)
    pq.write_table(rows, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
