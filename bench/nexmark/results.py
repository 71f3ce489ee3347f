"""Rows of results, and differences between two engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from ripple.connectors.contract import BasicSink, Commit
from ripple.core.row_ops import OP, OP_REMOVE, place_of_op

SHOWN = 5
TOPICS = ("person", "auction", "bid")


class Changes(BasicSink):
    """Collects the batches of a run."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002
        self.batches.append(changes)


def table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Return the rows at the end of all changes: the last of each key, or all events."""
    rows = pa.Table.from_batches(batches)
    at = place_of_op(rows.schema)
    if at < 0:
        return rows
    keys = ", ".join(f'"{name}"' for name in rows.column_names[:at])
    with duckdb.connect() as connection:
        connection.register("changes", rows.append_column("place", pa.array(range(len(rows)))))
        return connection.sql(
            f"SELECT * EXCLUDE ({OP}, place) FROM "
            f"(SELECT * FROM changes QUALIFY row_number() OVER "
            f"(PARTITION BY {keys} ORDER BY place DESC) = 1) WHERE {OP} <> {OP_REMOVE}"
        ).to_arrow_table()


def expected(sql: str, folder: Path) -> pa.Table:
    """Return DuckDB's rows of a query over a folder's Parquet files."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it would be printed
        for topic in TOPICS:
            file = folder / f"{topic}.parquet"
            connection.execute(
                f"CREATE VIEW {topic} AS SELECT *, make_timestamp_ns(date_time) AS moment, "
                f"file_row_number AS place FROM read_parquet('{file}', file_row_number = true)"
            )
        return connection.sql(sql).to_arrow_table()


def differences(found: pa.Table, wanted: pa.Table) -> list[str]:
    """Return a line for each row with unequal counts in the two tables.

    Compared are the columns of ``wanted``. The lines after the first few are left out, and counted.
    """
    missing = set(wanted.column_names) - set(found.column_names)
    if missing:
        return [f"no column {', '.join(sorted(missing))}"]
    with duckdb.connect() as connection:
        connection.register("found", found.select(wanted.column_names))
        connection.register("wanted", wanted)
        lines = []
        for sign, one, other in (("+", "found", "wanted"), ("-", "wanted", "found")):
            rows = connection.sql(
                f"FROM {one} EXCEPT ALL FROM {other} ORDER BY ALL"
            ).to_arrow_table()
            lines += [f"{sign} {row}" for row in rows.slice(0, SHOWN).to_pylist()]
            if len(rows) > SHOWN:
                lines.append(f"{sign} and {len(rows) - SHOWN} more")
    return lines
