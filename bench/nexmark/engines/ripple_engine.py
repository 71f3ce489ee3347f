"""Ripple: one process, views and changes every 1,000 records, as ``ripple run`` has it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

import ripple as rp
from bench.nexmark.data import events
from bench.nexmark.queries import QUERIES
from bench.nexmark.results import Changes, table

FEW = 1_000


def changes(query: str, folder: Path) -> Changes:
    """Run a query over a folder's bids."""
    sink = Changes()
    rp.run(QUERIES[query].pipeline(), source=str(folder / "bid.parquet"), sink=sink)
    return sink


def main(query: str, folder: str, out: str) -> None:
    changes(query, events(FEW))  # all imports, before the clock starts
    started = time.process_time()
    found = changes(query, Path(folder))
    print(time.process_time() - started)
    pq.write_table(table(found.batches), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
