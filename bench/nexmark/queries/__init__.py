"""Nexmark's queries (https://github.com/nexmark/nexmark) as pipelines, each with its SQL.

query       a query: pipeline and SQL
records     bids
rows        each row by itself: q0, q1, q2, q10, q14, q21, q22
windows     windows of time: q5, q7, q11, q12
reports     groups of all time: q15 to q19
joins       joins of tables, and as of event time: q3, q4, q8, q9, q20
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

NOT_YET = {
    "q6": "takes means over the last ten rows of a group: no fold has a table's last rows",
    "q13": "joins a table as of now, which depends on the order of reading",
    "q23": "joins bids, auctions and persons: it is not written",
}
"""The other queries, and why."""
