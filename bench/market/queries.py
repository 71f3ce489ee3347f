"""All queries, by name."""

from __future__ import annotations

from bench.market import books, folds, joins, positions
from bench.market.query import Query

QUERIES: dict[str, Query] = {
    query.name: query
    for query in sorted(
        (*joins.QUERIES, *folds.QUERIES, *books.QUERIES, *positions.QUERIES),
        key=lambda one: (int(one.name[1:].removesuffix("b")), one.name),
    )
}
