"""The outputs that a statement reads, found by the parser before they are fetched."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.core.extras import needed

with needed("query", "SQL over outputs"):
    import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HOMES = {(), ("main",), ("temp", "main"), ("temp",)}  # schemas of the outputs, in lower case
_EXPLAINS = re.compile(r"\s*explain(\s+analyze)?\b", re.IGNORECASE)
# Functions with a query or table name as text argument.
_BY_TEXT = ("query", "query_table")


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that a statement reads.

    SQL ignores case; of names that differ only by case, the exact match counts, if there is one. A
    statement that cannot be parsed, or whose tables are unknown before it runs, reads all names
    that occur in it: too many do no harm. Raises InputError for an unquoted name with a dot.
    """
    names = list(names)
    read = _read(sql)
    if read is None:
        return [name for name in names if _stands(name, sql)]
    whole = {".".join(path).lower(): path for path in read if tuple(path[:-1]) not in _HOMES}
    for name in names:
        if name.lower() in whole:
            raise InputError(f'the name of the output {name} has a dot: quote it, as "{name}"')
    asked = {path[-1] for path in read if tuple(part.lower() for part in path[:-1]) in _HOMES}
    exact = asked.intersection(names)
    others = {name.lower() for name in asked} - {name.lower() for name in exact}
    return [name for name in names if name in exact or name.lower() in others]


def reads_others(sql: str, names: Iterable[str]) -> bool:
    """Return whether a statement may read other tables than its own and those of these names.

    One with a syntax error reads none, so that the error is told at once.
    """
    parsed = _parsed(sql)
    if parsed is None or parsed["error"]:
        return parsed is None or parsed["error_type"] != "parser"
    read, known = _tables(parsed["statements"]), {name.lower() for name in names}
    for node in _nodes(parsed["statements"]):
        known.update(own["key"].lower() for own in node.get("cte_map", {}).get("map", ()))
    return read is None or any(path[-1].lower() not in known for path in read)


def _read(sql: str) -> list[list[str]] | None:
    """Return the names of the tables that a statement reads; None if unknown."""
    parsed = _parsed(sql)
    return None if parsed is None or parsed["error"] else _tables(parsed["statements"])


def _parsed(sql: str) -> dict[str, Any] | None:
    """Return a statement as DuckDB's parser has it, or its error; None without an answer."""
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as connection:
        bare = _EXPLAINS.sub("", sql, count=1)
        try:
            (text,) = connection.execute("SELECT json_serialize_sql(?)", [bare]).fetchall()[0]
            parsed: dict[str, Any] = json.loads(text)
        except (duckdb.Error, RecursionError, MemoryError):
            return None
    return parsed


def _tables(parsed: object) -> list[list[str]] | None:
    found: list[list[str]] = []
    for node in _nodes(parsed):
        if node.get("type") in {"BASE_TABLE", "SHOW_REF"} and node.get("table_name"):
            path = [node.get(part) or "" for part in ("catalog_name", "schema_name", "table_name")]
            found.append([part for part in path if part])
        elif node.get("function_name") in _BY_TEXT:
            return None
    return found


def _nodes(parsed: object) -> Iterator[dict[str, Any]]:
    """Yield all objects of a document, at any depth."""
    left = [parsed]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            yield one
            left += one.values()
        elif isinstance(one, list):
            left += one


def _stands(name: str, sql: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE) is not None
