"""DuckDB: the whole file at once, on all processors; its rows are the reference for others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.nexmark.engines.script import main
from bench.nexmark.queries import QUERIES
from bench.nexmark.results import expected


def rows(query: str, folder: Path) -> pa.Table:
    """Return the rows of a query over a folder's events."""
    return expected(QUERIES[query].sql, folder)


if __name__ == "__main__":
    main(rows, pq.write_table)
