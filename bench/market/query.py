"""A query: its pipeline, and the same by an oracle and by the peers that can say it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import duckdb
import polars as pl
import pyarrow as pa

import ripple as rp
from bench.market.data import Tables

Rows: TypeAlias = list[tuple[Any, ...]]
Polars: TypeAlias = Callable[[dict[str, pl.DataFrame]], pl.DataFrame]


@dataclass(frozen=True)
class Query:
    """A query of the market.

    reads: the tables, in the order of the pipeline's sources. columns: the names in a row.
    pipeline: made from the tables, for inputs beside its sources. digest: of the rows at the
    default number of events. sql: DuckDB's form, over the tables with a column ``off``, the row's
    place. polars: Polars' form, over frames with it. plain: the form in plain Python, the oracle
    where SQL says nothing.
    """

    name: str
    title: str
    reads: tuple[str, ...]
    columns: tuple[str, ...]
    pipeline: Callable[[Tables], rp.Pipeline]
    digest: str
    sql: str | None = None
    polars: Polars | None = None
    plain: Callable[[dict[str, Rows]], Rows] | None = None

    def ripple(self, tables: Tables, batch_rows: int = 16_384) -> pa.Table:
        """Return the rows of Ripple: those at the end."""
        sources = {name.removesuffix("_twice"): tables[name] for name in self.reads}
        source = sources if len(sources) > 1 else next(iter(sources.values()))
        found = rp.collect(self.pipeline(tables), source, batch_rows=batch_rows)
        rows = found.table().select(self.columns)
        return rows.cast(pa.schema([(one.name, _plain_type(one.type)) for one in rows.schema]))

    def wanted(self, tables: Tables) -> Rows:
        """Return the oracle's rows."""
        if self.plain is not None:
            return self.plain({name: rows_of(tables[name]) for name in tables})
        return rows_of(self.duckdb(connected(tables)))

    def duckdb(self, connection: duckdb.DuckDBPyConnection) -> pa.Table:
        """Return DuckDB's rows."""
        assert self.sql is not None
        return connection.sql(self.sql).to_arrow_table()


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return an integer's type for a decimal: all amounts are whole here."""
    return pa.int64() if pa.types.is_decimal(kind) else kind


def connected(tables: Tables) -> duckdb.DuckDBPyConnection:
    """Return DuckDB with the tables in its own memory, and each row's place in ``off``."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    for name, table in tables.items():
        placed = table.append_column("off", pa.array(range(len(table))))
        connection.register("given", placed)
        connection.execute(f"CREATE TABLE {name} AS FROM given")
        connection.unregister("given")
    return connection


def frames(tables: Tables) -> dict[str, pl.DataFrame]:
    """Return the tables as frames of Polars, with each row's place in ``off``."""
    return {name: pl.from_arrow(table).with_row_index("off") for name, table in tables.items()}


def rows_of(table: pa.Table) -> Rows:
    """Return rows as tuples of Python's values."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def digest(rows: Rows) -> str:
    """Return a digest that does not depend on the order of rows."""
    found = hashlib.sha256()
    for row in sorted(map(repr, rows)):
        found.update(row.encode())
    return found.hexdigest()[:16]
