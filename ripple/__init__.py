"""Ripple keeps keyed views of event streams up to date by recomputing only changed parts.

A pipeline is written once (``Pipeline``, record classes, column expressions, aggregates) and run
by ``run`` in this process, once or so that a restart resumes; ``Task`` is such a durable run in a
program's event loop. Below them are an ``Engine``, one partition as a state machine, and the
incremental ``Graph`` that both the engine and notebooks use.

A name is imported when it is first used, so that a command which only tells its version need not
wait for NumPy and Arrow.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ripple.core.lazy import imported
from ripple.core.uncompiled import Uncompiled

if TYPE_CHECKING:
    from ripple import spark as spark
    from ripple.client.live import LiveTable as LiveTable
    from ripple.connectors.clock import Tick as Tick
    from ripple.connectors.clock import clock as clock
    from ripple.connectors.memory import MemorySink as MemorySink
    from ripple.connectors.stream import Stream as Stream
    from ripple.core.asked import asked as asked
    from ripple.core.errors import DeltaError as DeltaError
    from ripple.core.errors import GraphError as GraphError
    from ripple.core.errors import InputError as InputError
    from ripple.core.errors import LimitError as LimitError
    from ripple.core.errors import LostRecordsWarning as LostRecordsWarning
    from ripple.core.errors import NodeError as NodeError
    from ripple.core.errors import OutputError as OutputError
    from ripple.core.errors import PlanError as PlanError
    from ripple.core.errors import RippleError as RippleError
    from ripple.core.errors import SchemaError as SchemaError
    from ripple.engine.graph.cutoff import Cutoff as Cutoff
    from ripple.engine.machine import Changes as Changes
    from ripple.engine.machine import Engine as Engine
    from ripple.engine.machine import Snapshot as Snapshot
    from ripple.model.aggregate import Accumulator as Accumulator
    from ripple.model.aggregate import arg_max as arg_max
    from ripple.model.aggregate import arg_min as arg_min
    from ripple.model.aggregate import check_inverse as check_inverse
    from ripple.model.aggregate import count as count
    from ripple.model.aggregate import count_distinct as count_distinct
    from ripple.model.aggregate import first as first
    from ripple.model.aggregate import first_row as first_row
    from ripple.model.aggregate import last as last
    from ripple.model.aggregate import last_row as last_row
    from ripple.model.aggregate import max as max  # noqa: A004 - users write rp.max; nothing here uses the builtin
    from ripple.model.aggregate import mean as mean
    from ripple.model.aggregate import median as median
    from ripple.model.aggregate import min as min  # noqa: A004 - likewise
    from ripple.model.aggregate import ohlc as ohlc
    from ripple.model.aggregate import percentile as percentile
    from ripple.model.aggregate import stddev as stddev
    from ripple.model.aggregate import stddev_pop as stddev_pop
    from ripple.model.aggregate import sum as sum  # noqa: A004 - likewise
    from ripple.model.aggregate import top_k as top_k
    from ripple.model.aggregate import top_rows as top_rows
    from ripple.model.aggregate import variance as variance
    from ripple.model.aggregate import variance_pop as variance_pop
    from ripple.model.aggregate import vwap as vwap
    from ripple.model.aggregate.custom import custom as custom
    from ripple.model.expression import Expr as Expr
    from ripple.model.expression import coalesce as coalesce
    from ripple.model.expression import col as col
    from ripple.model.expression import concat_str as concat_str
    from ripple.model.expression import greatest as greatest
    from ripple.model.expression import least as least
    from ripple.model.expression import lit as lit
    from ripple.model.expression import when as when
    from ripple.model.pipeline.builder import Pipeline as Pipeline
    from ripple.model.pipeline.constant import Constant as Constant
    from ripple.model.pipeline.constant import constant as constant
    from ripple.model.pipeline.plan import Plan as Plan
    from ripple.model.pipeline.union import union as union
    from ripple.model.records import schema_of as schema_of
    from ripple.model.records.record import Timestamp as Timestamp
    from ripple.model.records.record import field as field
    from ripple.model.records.record import record as record
    from ripple.model.running import OrderBook as OrderBook
    from ripple.model.running import Position as Position
    from ripple.model.running import bar as bar
    from ripple.model.running import cum_max as cum_max
    from ripple.model.running import cum_min as cum_min
    from ripple.model.running import cum_sum as cum_sum
    from ripple.model.running import ema as ema
    from ripple.model.running import lag as lag
    from ripple.model.running import rolling_max as rolling_max
    from ripple.model.running import rolling_mean as rolling_mean
    from ripple.model.running import rolling_median as rolling_median
    from ripple.model.running import rolling_min as rolling_min
    from ripple.model.running import rolling_percentile as rolling_percentile
    from ripple.model.running import rolling_stddev as rolling_stddev
    from ripple.model.running import rolling_sum as rolling_sum
    from ripple.model.running import rolling_variance as rolling_variance
    from ripple.model.schema import Decimal as Decimal
    from ripple.model.schema import Schema as Schema
    from ripple.model.window import Last as Last
    from ripple.model.window import OnCount as OnCount
    from ripple.model.window import OnEveryElement as OnEveryElement
    from ripple.model.window import OnInterval as OnInterval
    from ripple.model.window import OnWatermark as OnWatermark
    from ripple.model.window import Session as Session
    from ripple.model.window import Sliding as Sliding
    from ripple.model.window import TradingSessions as TradingSessions
    from ripple.model.window import Tumbling as Tumbling
    from ripple.notebook.graph import Graph as Graph
    from ripple.task.beside_a_loop import Change as Change
    from ripple.task.beside_a_loop import arun as arun
    from ripple.task.beside_a_loop import changes as changes
    from ripple.task.collect import collect as collect
    from ripple.task.report import Report as Report
    from ripple.task.result import Result as Result
    from ripple.task.run import run as run
    from ripple.task.task import Task as Task

__version__ = "0.1.0"

# Where each of them lives: what type checkers read above, said to the interpreter.
_NAMES_BY_HOME = {
    "ripple": ("spark",),
    "ripple.client.live": ("LiveTable",),
    "ripple.model.aggregate": (
        "Accumulator",
        "arg_max",
        "arg_min",
        "check_inverse",
        "count",
        "count_distinct",
        "first",
        "first_row",
        "last",
        "last_row",
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
        "top_rows",
        "variance",
        "variance_pop",
        "vwap",
    ),
    "ripple.model.aggregate.custom": ("custom",),
    "ripple.engine.machine": ("Changes", "Engine", "Snapshot"),
    "ripple.core.asked": ("asked",),
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
    "ripple.model.expression": (
        "Expr",
        "coalesce",
        "col",
        "concat_str",
        "greatest",
        "least",
        "lit",
        "when",
    ),
    "ripple.engine.graph.cutoff": ("Cutoff",),
    "ripple.notebook.graph": ("Graph",),
    "ripple.task.beside_a_loop": ("Change", "arun", "changes"),
    "ripple.task.collect": ("collect",),
    "ripple.task.report": ("Report",),
    "ripple.task.result": ("Result",),
    "ripple.model.pipeline.builder": ("Pipeline",),
    "ripple.model.pipeline.constant": ("Constant", "constant"),
    "ripple.model.pipeline.plan": ("Plan",),
    "ripple.model.pipeline.union": ("union",),
    "ripple.connectors.clock": ("Tick", "clock"),
    "ripple.connectors.memory": ("MemorySink",),
    "ripple.connectors.stream": ("Stream",),
    "ripple.task.run": ("run",),
    "ripple.task.task": ("Task",),
    "ripple.model.records": ("schema_of",),
    "ripple.model.records.record": ("Timestamp", "field", "record"),
    "ripple.model.running": (
        "OrderBook",
        "Position",
        "bar",
        "cum_max",
        "cum_min",
        "cum_sum",
        "ema",
        "lag",
        "rolling_max",
        "rolling_mean",
        "rolling_min",
        "rolling_median",
        "rolling_percentile",
        "rolling_stddev",
        "rolling_variance",
        "rolling_sum",
    ),
    "ripple.model.schema": ("Decimal", "Schema"),
    "ripple.model.window": (
        "Last",
        "OnCount",
        "OnEveryElement",
        "OnInterval",
        "OnWatermark",
        "Session",
        "Sliding",
        "TradingSessions",
        "Tumbling",
    ),
}
# Modules that users reach by attribute, as where a field declares its checks.
_MODULES = {"errors": "ripple.core.errors", "schema": "ripple.model.schema"}
_HOME_OF = {name: home for home, names in _NAMES_BY_HOME.items() for name in names}
__all__ = [name for name in sorted(_HOME_OF) if name != "spark"]

sys.meta_path.append(Uncompiled)

if not TYPE_CHECKING:  # to a type checker, a name that is not above is a mistake
    __getattr__ = imported(__name__, _HOME_OF, _MODULES, hints="ripple.model.other_names")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF, *_MODULES})
