"""A query of Nexmark, as a pipeline and as SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ripple as rp


@dataclass(frozen=True, slots=True)
class Query:
    """A pipeline over bids, and the SQL with the same rows.

    pipeline: with an output ``rows``; columns have the same names as in the SQL.
    sql: for DuckDB, over the tables ``person``, ``auction`` and ``bid``, of which the column
    ``place`` is the row number. differs: the difference from the published SQL, in words; empty if
    none. topics: those that it reads.
    """

    name: str
    title: str
    pipeline: Callable[[], rp.Pipeline]
    sql: str
    differs: str = ""
    topics: tuple[str, ...] = ("bid",)


def reading(name: str, record: type) -> rp.Pipeline:
    """Return the beginning of a pipeline: the bids, with the fields of a record."""
    return rp.Pipeline(name).source("bid", record)
