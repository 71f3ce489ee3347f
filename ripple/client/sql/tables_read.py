"""Which outputs a statement asks for, before they are there: the parser says."""

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

_HOMES = {(), ("main",), ("temp", "main"), ("temp",)}  # where outputs are, in lower case
_EXPLAINS = re.compile(r"\s*explain(\s+analyze)?\b", re.IGNORECASE)
# Functions that take what they read as a text.
_BY_TEXT = ("query", "query_table")


def mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """Return those of ``names`` that a statement reads.

    SQL does not mind the case of names; of several that differ by it alone, those that stand there
    letter by letter are meant, if any does. A statement that is none, or whose tables nobody can
    tell before it is asked, reads all whose names stand in it: some too many do no harm. Raises
    InputError for a name with a dot that is not quoted.
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


def _read(sql: str) -> list[list[str]] | None:
    """Return the tables that a statement reads, as they are named there; None if none can tell."""
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as connection:
        bare = _EXPLAINS.sub("", sql, count=1)
        try:
            (text,) = connection.execute("SELECT json_serialize_sql(?)", [bare]).fetchall()[0]
            told = json.loads(text)
        except (duckdb.Error, RecursionError, MemoryError):
            return None
    return None if told["error"] else _tables(told["statements"])


def _tables(told: object) -> list[list[str]] | None:
    found: list[list[str]] = []
    for node in _nodes(told):
        if node.get("type") in {"BASE_TABLE", "SHOW_REF"} and node.get("table_name"):
            path = [node.get(part) or "" for part in ("catalog_name", "schema_name", "table_name")]
            found.append([part for part in path if part])
        elif node.get("function_name") in _BY_TEXT:
            return None
    return found


def _nodes(told: object) -> Iterator[dict[str, Any]]:
    """Yield all objects of a document, however deep it is."""
    left = [told]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            yield one
            left += one.values()
        elif isinstance(one, list):
            left += one


def _stands(name: str, sql: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sql, re.IGNORECASE) is not None
