"""Ripple keeps keyed views of event streams up to date by recomputing only what changed.

A pipeline is written once (``Pipeline``, record classes, column expressions, aggregates) and run
by ``run`` in this process. Below it are an ``Engine``, one partition as a state machine, and the
incremental ``Graph`` that both the engine and notebooks use.
"""

from __future__ import annotations

from ripple.aggregate import (
    Accumulator,
    check_inverse,
    count,
    count_distinct,
    custom,
    first,
    last,
    max,  # noqa: A004 - users write rp.max; nothing here uses the builtin
    mean,
    median,
    min,  # noqa: A004 - likewise
    ohlc,
    percentile,
    stddev,
    stddev_pop,
    sum,  # noqa: A004 - likewise
    top_k,
    variance,
    variance_pop,
    vwap,
)
from ripple.engine import Changes, Engine, Snapshot
from ripple.errors import (
    DeltaError,
    GraphError,
    InputError,
    LimitError,
    NodeError,
    OutputError,
    PlanError,
    RippleError,
    SchemaError,
)
from ripple.expression import Expr, col, greatest, least, lit, when
from ripple.graph.cutoff import Cutoff
from ripple.graph.graph import Graph
from ripple.pipeline import Pipeline
from ripple.plan import Plan
from ripple.runner import Report, Runner, run
from ripple.schema import Schema, Timestamp, field, record, schema_of
from ripple.window import (
    OnCount,
    OnEveryElement,
    OnInterval,
    OnWatermark,
    Session,
    Sliding,
    Tumbling,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "Accumulator",
    "Changes",
    "Cutoff",
    "DeltaError",
    "Engine",
    "Expr",
    "Graph",
    "GraphError",
    "InputError",
    "LimitError",
    "NodeError",
    "OnCount",
    "OnEveryElement",
    "OnInterval",
    "OnWatermark",
    "OutputError",
    "Pipeline",
    "Plan",
    "PlanError",
    "Report",
    "RippleError",
    "Runner",
    "Schema",
    "SchemaError",
    "Session",
    "Sliding",
    "Snapshot",
    "Timestamp",
    "Tumbling",
    "check_inverse",
    "col",
    "count",
    "count_distinct",
    "custom",
    "field",
    "first",
    "greatest",
    "last",
    "least",
    "lit",
    "max",
    "mean",
    "median",
    "min",
    "ohlc",
    "percentile",
    "record",
    "run",
    "schema_of",
    "stddev",
    "stddev_pop",
    "sum",
    "top_k",
    "variance",
    "variance_pop",
    "vwap",
    "when",
]
