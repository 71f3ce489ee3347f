"""Nexmark's queries (https://github.com/nexmark/nexmark) as pipelines, each with its SQL.

query       a query: pipeline and SQL
records     bids
rows        each row by itself: q0, q1, q2, q10, q14, q21, q22
windows     windows of time: q5, q7, q11, q12
reports     groups of all time: q15 to q19
joins       of tables, with a constant, as of event time: q3, q4, q6, q8, q9, q13, q20, q23
"""

from __future__ import annotations

from bench.nexmark.queries import joins, reports, rows, windows
from bench.nexmark.queries.query import Query

QUERIES: dict[str, Query] = {
    query.name: query
    for query in sorted(
        (*rows.QUERIES, *windows.QUERIES, *reports.QUERIES, *joins.QUERIES),
        key=lambda query: int(query.name[1:]),
    )
}
