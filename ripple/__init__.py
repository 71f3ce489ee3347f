"""Ripple keeps keyed views of event streams up to date by recomputing only what changed.

A pipeline is written once (``Pipeline``, record classes, column expressions, aggregates) and run
by ``run`` in this process. Below it are an ``Engine``, one partition as a state machine, and the
incremental ``Graph`` that both the engine and notebooks use.

A name is imported when it is first used, so that a command which only tells its version need not
wait for NumPy and Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.lazily import imported

if TYPE_CHECKING:
    from ripple import spark as spark
    from ripple.aggregate import (
        Accumulator,
        check_inverse,
        count,
        count_distinct,
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
    from ripple.aggregate.custom import custom
    from ripple.engine import Changes, Engine, Snapshot
    from ripple.errors import (
        DeltaError,
        GraphError,
        InputError,
        LimitError,
        LostRecordsWarning,
        NodeError,
        OutputError,
        PlanError,
        RippleError,
        SchemaError,
    )
    from ripple.expression import Expr, col, greatest, least, lit, when
    from ripple.graph.cutoff import Cutoff
    from ripple.notebook.graph import Graph
    from ripple.partition.report import Report
    from ripple.pipeline.builder import Pipeline
    from ripple.pipeline.plan import Plan
    from ripple.records import schema_of
    from ripple.records.record import Timestamp, field, record
    from ripple.runner import run
    from ripple.schema import Schema
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
    "LostRecordsWarning",
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

# Where each of them lives: what type checkers read above, said to the interpreter.
_NAMES_BY_HOME = {
    "ripple": ("spark",),  # not in __all__: a star must not hide a session of that name
    "ripple.aggregate": (
        "Accumulator",
        "check_inverse",
        "count",
        "count_distinct",
        "first",
        "last",
        "max",
        "mean",
        "median",
        "min",
        "ohlc",
        "percentile",
        "stddev",
        "stddev_pop",
        "sum",
        "top_k",
        "variance",
        "variance_pop",
        "vwap",
    ),
    "ripple.aggregate.custom": ("custom",),
    "ripple.engine": ("Changes", "Engine", "Snapshot"),
    "ripple.errors": (
        "DeltaError",
        "GraphError",
        "InputError",
        "LimitError",
        "LostRecordsWarning",
        "NodeError",
        "OutputError",
        "PlanError",
        "RippleError",
        "SchemaError",
    ),
    "ripple.expression": ("Expr", "col", "greatest", "least", "lit", "when"),
    "ripple.graph.cutoff": ("Cutoff",),
    "ripple.notebook.graph": ("Graph",),
    "ripple.partition.report": ("Report",),
    "ripple.pipeline.builder": ("Pipeline",),
    "ripple.pipeline.plan": ("Plan",),
    "ripple.runner": ("run",),
    "ripple.records": ("schema_of",),
    "ripple.records.record": ("Timestamp", "field", "record"),
    "ripple.schema": ("Schema",),
    "ripple.window": (
        "OnCount",
        "OnEveryElement",
        "OnInterval",
        "OnWatermark",
        "Session",
        "Sliding",
        "Tumbling",
    ),
}
_HOME_OF = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}


if not TYPE_CHECKING:  # to a type checker, a name that is not above is a mistake
    __getattr__ = imported(__name__, _HOME_OF)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
