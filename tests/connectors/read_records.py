"""Rows in each kind of place, and the records that a source reads there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ripple.connectors.locate import open_source
from ripple.model.batch import Batch
from ripple.model.records import nested_checks_of, schema_of
from ripple.task.one_shot import at_once, entries

Given: TypeAlias = Sequence[Mapping[str, Any]]


def csv_file(folder: Path, rows: Given) -> str:
    values = (["" if one is None else str(one) for one in row.values()] for row in rows)
    (folder / "rows.csv").write_text("".join(f"{','.join(row)}\n" for row in values))
    return str(folder / "rows.csv")


def json_file(folder: Path, rows: Given) -> str:
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(folder / "rows.jsonl")


def parquet_file(folder: Path, rows: Given) -> str:
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return str(folder / "rows.parquet")


PLACES: dict[str, Callable[[Path, Given], Any]] = {
    "csv": csv_file,
    "jsonl": json_file,
    "parquet": parquet_file,
    "list": lambda _, rows: list(rows),
    "iterator": lambda _, rows: iter(rows),
    "table": lambda _, rows: pa.Table.from_pylist(rows),
}


def nested_places(table_of: Callable[[Given], pa.Table]) -> dict[str, Callable[[Path, Given], Any]]:
    """Return the places of rows with lists or maps: JSON in cells of CSV, else their types."""

    def csv_of(folder: Path, rows: Given) -> str:
        def cell(value: Any) -> str:
            return "" if value is None else '"' + json.dumps(value).replace('"', '""') + '"'

        lines = (",".join(map(cell, row.values())) for row in rows)
        (folder / "rows.csv").write_text("".join(f"{line}\n" for line in lines))
        return str(folder / "rows.csv")

    def parquet_of(folder: Path, rows: Given) -> str:
        pq.write_table(table_of(rows), folder / "rows.parquet")
        return str(folder / "rows.parquet")

    return PLACES | {
        "csv": csv_of,
        "parquet": parquet_of,
        "table": lambda _, rows: table_of(rows),
    }


def read(place: Any, cls: type, batch_rows: int = 2) -> list[Batch]:
    """Return the records of a one-shot run."""
    inputs = open_source(
        place, schema_of(cls), name="rows", checks=nested_checks_of(cls), batch_rows=batch_rows
    )
    try:
        return [one for one in entries(inputs, batch_rows) if isinstance(one, Batch)]
    finally:
        at_once(inputs.close())


def rows_of(batches: Sequence[Batch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.records.to_pylist()]


def rows_and_causes(place: Any, cls: type) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the records, and the causes of the rejected ones."""
    found = read(place, cls)
    return rows_of(found), [bad.cause for batch in found for bad in batch.rejected]
