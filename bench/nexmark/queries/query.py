"""A query of Nexmark, as a pipeline and as SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ripple as rp


@dataclass(frozen=True, slots=True)
class Query:
    """A pipeline over bids, and the SQL with the same rows.

    pipeline: has the output ``rows``, whose columns have the names of those of the SQL.
    sql: what DuckDB makes of the table ``bid``, whose ``place`` numbers the bids.
    differs: from the published SQL, in words; empty where it does not.
    """

    name: str
    title: str
    pipeline: Callable[[], rp.Pipeline]
    sql: str
    differs: str = ""


def reading(name: str, record: type) -> rp.Pipeline:
    """Return the beginning of a pipeline: the bids, with the fields of a record."""
    return rp.Pipeline(name).source("bid", record)
