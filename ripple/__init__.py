"""Ripple keeps keyed views of event streams up to date by recomputing only what changed.

A pipeline is written once (``Pipeline``, record classes, column expressions, aggregates) and run
by ``run`` in this process, once or so that a restart resumes; ``Task`` is such a durable run in a
program's event loop. Below them are an ``Engine``, one partition as a state machine, and the
incremental ``Graph`` that both the engine and notebooks use.

A name is imported when it is first used, so that a command which only tells its version need not
wait for NumPy and Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.lazy import imported

if TYPE_CHECKING:
    from ripple import spark as spark
    from ripple.core.errors import (
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
    from ripple.engine.graph.cutoff import Cutoff
    from ripple.engine.machine import Changes, Engine, Snapshot
    from ripple.model.aggregate import (
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
    from ripple.model.aggregate.custom import custom
    from ripple.model.expression import Expr, col, greatest, least, lit, when
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.model.records import schema_of
    from ripple.model.records.record import Timestamp, field, record
    from ripple.model.schema import Schema
    from ripple.model.window import (
        OnCount,
        OnEveryElement,
        OnInterval,
        OnWatermark,
        Session,
        Sliding,
        Tumbling,
    )
    from ripple.notebook.graph import Graph
    from ripple.task.report import Report
    from ripple.task.run import run
    from ripple.task.task import Task

__version__ = "0.1.0"

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
    "Task",
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
    "ripple.model.aggregate": (
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
    "ripple.model.aggregate.custom": ("custom",),
    "ripple.engine.machine": ("Changes", "Engine", "Snapshot"),
    "ripple.core.errors": (
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
    "ripple.model.expression": ("Expr", "col", "greatest", "least", "lit", "when"),
    "ripple.engine.graph.cutoff": ("Cutoff",),
    "ripple.notebook.graph": ("Graph",),
    "ripple.task.report": ("Report",),
    "ripple.model.pipeline.builder": ("Pipeline",),
    "ripple.model.pipeline.plan": ("Plan",),
    "ripple.task.run": ("run",),
    "ripple.task.task": ("Task",),
    "ripple.model.records": ("schema_of",),
    "ripple.model.records.record": ("Timestamp", "field", "record"),
    "ripple.model.schema": ("Schema",),
    "ripple.model.window": (
        "OnCount",
        "OnEveryElement",
        "OnInterval",
        "OnWatermark",
        "Session",
        "Sliding",
        "Tumbling",
    ),
}
# Modules that users reach by attribute, as where a field declares its checks.
_MODULES = {"errors": "ripple.core.errors", "schema": "ripple.model.schema"}
_HOME_OF = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}


if not TYPE_CHECKING:  # to a type checker, a name that is not above is a mistake
    __getattr__ = imported(__name__, _HOME_OF, _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_MODULES})
