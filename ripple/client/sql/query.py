"""Sandboxed SQL over tables in memory."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from ripple.core.errors import InputError, LimitError
from ripple.core.extras import needed

with needed("query", "SQL over outputs"):
    import duckdb

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MEMORY_MIB = 512
TIMEOUT_S = 30.0
MESSAGE_CHARACTERS_MAX = 400
PIECE_ROWS = 8192  # of a result
_LISTED = "ripple query --list (for guests of a gateway: list_flights)"
_ABSENT = re.compile(r"Table with name (.+?) does not exist")
_NO_TABLE = re.compile(r'Referenced table "(.+?)" not found')
_LISTS = re.compile(r"\s*show\s+(all\s+)?tables\b", re.IGNORECASE)
_ASKS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


def query(
    sql: str,
    tables: Mapping[str, pa.Table],
    *,
    timeout_s: float = TIMEOUT_S,
    memory_mib: int = MEMORY_MIB,
    rows_max: int | None = None,
    bytes_max: int | None = None,
    threads: int | None = None,
    parameters: Sequence[object] | None = (),
) -> pa.Table:
    """Return the result of one statement over ``tables``, by name; its first ``rows_max`` rows.

    It has no access to files, network, Python or settings. Enumerations are returned as text.
    parameters: for the placeholders; None for nulls, as many as needed. Raises InputError for an
    invalid statement, LimitError for a result above ``bytes_max`` or too much memory, TimeoutError
    after ``timeout_s``.
    """
    limits: dict[str, str | bool | int | float | list[str]] = {"memory_limit": f"{memory_mib}MiB"}
    if threads is not None:
        limits["threads"] = threads
    connection = duckdb.connect(":memory:", config=limits)
    is_late = threading.Event()

    def interrupt() -> None:
        is_late.set()
        connection.interrupt()

    timer = threading.Timer(timeout_s, interrupt)
    try:
        _check_apart(tables)
        for name, table in tables.items():
            connection.register(name, table)
        for setting in (
            "python_enable_replacements = false",
            "temp_directory = ''",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        statement = _question(connection, sql)
        values = dict.fromkeys(statement.named_parameters) if parameters is None else parameters
        timer.start()
        relation = connection.sql(sql, params=values or None)
        if relation is None:
            raise InputError("the statement returns no rows")
        return _bounded(relation if rows_max is None else relation.limit(rows_max), bytes_max)
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        raise LimitError(
            f"it needs more than the {memory_mib} MiB allowed: select less, or raise the limit "
            "(ripple query --memory, sql_memory_mib of a gateway)"
        ) from error
    except duckdb.Error as error:
        if is_late.is_set():
            raise TimeoutError(f"no answer within {timeout_s:g} s") from error
        raise InputError(_explained(error, tables)[:MESSAGE_CHARACTERS_MAX]) from error
    finally:
        timer.cancel()
        connection.close()


def _explained(error: duckdb.Error, tables: Mapping[str, pa.Table]) -> str:
    """Return DuckDB's message in a line, with the remedy where we know one."""
    text = " ".join(str(error).split())
    if absent := _ABSENT.search(text):  # DuckDB would suggest its own names
        return f"no output {absent[1]}: {_LISTED} shows the outputs"
    if absent := _NO_TABLE.search(text):
        columns = (name for table in tables.values() for name in table.schema.names)
        for name in columns:
            if name.startswith(f"{absent[1]}."):
                return f'{text} (a column with a dot is put in double quotes: SELECT "{name}")'
    if 'at or near "-"' in text:
        return f'{text} (a name with a hyphen is put in double quotes: FROM "vwap-1m")'
    return text


def _bounded(relation: duckdb.DuckDBPyRelation, bytes_max: int | None) -> pa.Table:
    """Return the rows, fetched in pieces, so that no more than the limit is held."""
    reader = relation.to_arrow_reader(PIECE_ROWS)
    schema = pa.schema([field.with_type(_plain(field.type)) for field in reader.schema])
    found, size = [], 0
    for batch in reader:
        size += batch.nbytes
        if bytes_max is not None and size > bytes_max:
            raise LimitError(f"the result has more than {bytes_max:,} bytes: select less")
        found.append(batch)
    return pa.Table.from_batches(found, reader.schema).cast(schema)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without dictionaries, whose changes not all clients understand."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _check_apart(names: Iterable[str]) -> None:
    """Raise InputError if SQL would confuse two outputs."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise InputError(
                f"the outputs {other} and {name} differ only by case, which SQL ignores: "
                "query one of them at a time"
            )


def _question(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise InputError("give one statement")
    if statements[0].type not in _ASKS:
        kind = statements[0].type.name
        raise InputError(f"{kind} is not allowed: outputs are read-only; use SELECT")
    if _LISTS.match(sql):  # only tables of the statement are loaded
        raise InputError(f"SQL does not list outputs here: use {_LISTED}")
    return statements[0]
