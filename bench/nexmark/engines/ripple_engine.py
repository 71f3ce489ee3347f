"""Ripple: one process, views and changes every 1,000 records, as ``ripple run`` has it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

import ripple as rp
from bench.nexmark.engines.script import main
from bench.nexmark.queries import QUERIES
from bench.nexmark.results import Changes, table


def changes(query: str, folder: Path) -> Changes:
    """Run a query over a folder's events."""
    sink = Changes()
    asked = QUERIES[query]
    places = {topic: str(folder / f"{topic}.parquet") for topic in asked.topics}
    rp.run(asked.pipeline(), source=places, sink=sink)
    return sink


def write(sink: Changes, out: str) -> None:
    """Write the rows that the changes come to."""
    pq.write_table(table(sink.batches), out)


if __name__ == "__main__":
    main(changes, write)
