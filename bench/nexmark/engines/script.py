"""A script that runs a query: of few events first, then of those to measure."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench.nexmark.data import events

FEW = 1_000

T = TypeVar("T")


def main(compute: Callable[[str, Path], T], write: Callable[[T, str], object]) -> None:
    """Run ``SCRIPT QUERY FOLDER OUT``.

    compute: a query over a folder's events; it alone is measured. write: its rows, to Parquet.
    """
    query, folder, out = sys.argv[1:]
    compute(query, events(FEW))  # imports what it uses
    started = time.process_time()
    found = compute(query, Path(folder))
    seconds = time.process_time() - started
    write(found, out)
    # Last, since DuckDB draws its progress where writing takes seconds.
    print(f"\n{seconds}")
