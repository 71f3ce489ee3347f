"""Arguments of the wrong kind, everywhere: an error of ours with the given and the wanted value.

Every parameter of everything public is given everything in ``VALUES``. What a parameter takes is
written beside it; the rest must be refused by a ``RippleError`` that says which parameter it is and
shows the value.
"""

from __future__ import annotations

import datetime as dt
import decimal
import inspect
import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.arguments import shown
from ripple.model.aggregate.contract import Aggregate, call_of
from ripple.model.schema.columns import records_of
from ripple.model.schema.types import Case, Field, Int, Int64, List, Option, Record, Variant


class Thing:
    """An object that is nothing in particular."""


def nothing(*_: object) -> None:
    """Take anything, and return nothing."""


async def answer(*_: object) -> None:
    """Take anything, and answer nothing."""


@rp.record(version=1)
class Asked:
    """A row without the fields of In."""

    z: int


@rp.record(version=1)
class In:
    k: str
    n: int
    x: float
    t: rp.Timestamp


VALUES: dict[str, Any] = {
    "none": None, "true": True, "false": False, "zero": 0, "three": 3, "minus": -1, "half": 0.5,
    "huge": 1 << 70, "endless": 10**5000, "nan": math.nan, "inf": math.inf, "complex": 1j,
    "decimal": decimal.Decimal(1), "np_int": np.int64(3), "np_float": np.float64(0.5),
    "np_time": np.datetime64(1, "s"), "span": dt.timedelta(1), "empty": "", "digit": "3",
    "word": "abc", "words": "a b", "half_pair": "\ud800", "bytes": b"x", "no_list": [], "ints": [1],
    "texts": ["a"], "no_tuple": (), "tuple": (1,), "no_dict": {}, "dict": {"a": 1}, "set": {1},
    "range": range(3), "array": np.array([1, 2]), "table": pa.table({"a": [1]}), "thing": Thing(),
    "class": Thing, "int": int, "function": nothing, "dots": ..., "expr": rp.col("x"),
    "count": rp.count(), "tumbling": rp.Tumbling("1s"), "trigger": rp.OnCount(1),
    "cutoff": rp.Cutoff.ALWAYS, "record": In, "type": Int64(), "schema": rp.schema_of(In),
    "field": Field("a", Int()),
}  # fmt: skip
FUNCTIONS = "class int function record"
TEXTS = "digit word words"
PLAIN = f"none true false zero three minus half nan inf empty np_float decimal bytes {TEXTS}"

LENGTH_MAX = 400  # of a message

SOURCE = rp.Pipeline("p").source("s", In)
ASKING = SOURCE.map("asked", nothing, into=Asked)
POSITIVE = SOURCE.filter("positive", rp.col("n") > 0)
KEYED = SOURCE.partition("g", key="k")
FOLDED = KEYED.fold("f", a=rp.sum("n"))
COUNTED = KEYED.fold("c", a=rp.count())
PLAN = FOLDED.sink("o").plan()
OTHER = SOURCE.source("other", In)
NO_RECORDS = records_of([], PLAN.source.fields)
GRAPH = rp.Graph()
CELL = GRAPH.leaf(1)
PRICES = GRAPH.column({"x": float, "n": int})


def folded(aggregate: Any) -> rp.Plan:
    return KEYED.fold("f", a=aggregate).sink("o").plan()


def trading(**changed: Any) -> rp.TradingSessions:
    return rp.TradingSessions(table=[{"open": 0, "close": 5}], **changed)


def percentile(q: Any) -> Any:
    """Take a share of one for what it is, and say what is more likely meant."""
    is_share = isinstance(q, float) and 0 < q < 1
    with pytest.warns(UserWarning, match="per cent: say") if is_share else nullcontext():
        return rp.percentile("x", q)


def rolling_percentile(q: Any) -> Any:
    is_share = isinstance(q, float) and 0 < q < 1
    with pytest.warns(UserWarning, match="per cent: say") if is_share else nullcontext():
        return rp.rolling_percentile("x", 3, q)


def custom(**changed: Any) -> rp.Plan:
    given = {"init": lambda: 0, "add": lambda s, x: s, "result": lambda s: s, "type": int}
    return folded(rp.custom("n", **{**given, **changed}))


def joined(**changed: Any) -> rp.Pipeline:
    given = {"on": "k", "emit": "final", **changed}
    return SOURCE.join_asof(given.pop("name", "j"), given.pop("right", SOURCE), **given)


@dataclass
class Counting:
    n: int = 0


def scan(**changed: Any) -> rp.Pipeline:
    given = {"state": Counting, "step": nothing, "into": Counting, "settled": True, **changed}
    return SOURCE.scan(given.pop("name", "sc"), given.pop("key", "k"), **given)


def position(quantity: Any = "n", price: Any = "n", **changed: Any) -> rp.Pipeline:
    of = rp.Position(quantity, price, **{"method": "fifo", **changed})
    return SOURCE.scan("sc", "k", step=of)


def running(function: Any) -> rp.Pipeline:
    return SOURCE.scan("sc", "k", settled=True, y=function)


def book(**changed: Any) -> rp.Pipeline:
    given = {"side": "k", "price": "n", "size": "n", "begins": "empty", **changed}
    step = rp.OrderBook(**{"sequence": "n", "rule": "dense", **given})
    return SOURCE.scan("sc", "t", settled=True, step=step)


def record(annotation: Any = int, **options: Any) -> rp.Schema:
    cls = type("A", (), {"__annotations__": {"a": annotation}})
    return rp.schema_of(rp.record(**options)(cls))


def schema(kind: Any = Int(), **changed: Any) -> rp.Schema:  # noqa: B008  # a value
    given = {"name": "a", "fields": (Field("a", kind),), **changed}
    return rp.Schema(**given)


def summed() -> Any:
    return GRAPH.incr_fold([CELL], 0, nothing, nothing)


def near(**changed: Any) -> rp.Pipeline:
    given = {"on": "k", "within": (0, 1), "emit": "final", **changed}
    return SOURCE.join_interval(given.pop("name", "j"), given.pop("right", OTHER), **given)


def paired(**changed: Any) -> rp.Pipeline:
    given = {"on": "k", **changed}
    return FOLDED.join(given.pop("name", "j"), given.pop("right", COUNTED), **given)


class P(NamedTuple):
    """A parameter: what gives it a value, the names of what it takes, what messages call it."""

    give: Callable[[Any], Any]
    takes: str = ""
    says: str = ""


EXPRESSION = "expression|does not fit into 64 bits"
INPUT = "must be the name of a field|name of a column must|there is no field"
FIELDS = f"fields are names of fields|name the fields to show|{INPUT}"


def of_join(verb: str, join: Callable[..., Any], right: str) -> dict[str, P]:
    """Return the parameters that all joins have; ``right`` is what messages call the right side."""
    rows = {
        "name": P(lambda v: join(name=v), "digit word"),
        "right": P(lambda v: join(right=v), "", right),
        "on": P(lambda v: join(on=(v,)), "", f"on|key|{INPUT}"),
        "left_on": P(
            lambda v: join(on=None, left_on=(v,), right_on="k"), "", f"left_on|key|{INPUT}"
        ),
        "right_on": P(
            lambda v: join(on=None, left_on="k", right_on=(v,)), "", f"right_on|key|{INPUT}"
        ),
        "how": P(lambda v: join(how=v)),
        "suffix": P(lambda v: join(suffix=v), "digit word"),
    }
    return {f"Pipeline.{verb}({parameter})": row for parameter, row in rows.items()}


TABLE: dict[str, P] = {
    # Aggregates
    **{
        f"{name}(x)": P(lambda v, name=name: folded(getattr(rp, name)(v)), "expr", INPUT)
        for name in (
            *("sum", "mean", "variance", "variance_pop", "stddev", "stddev_pop", "min", "max"),
            *("first", "last", "ohlc", "median", "count_distinct"),
        )
    },
    "count(x)": P(lambda v: folded(rp.count(v)), "none expr", INPUT),
    "vwap(price)": P(lambda v: folded(rp.vwap(v, "n")), "expr", INPUT),
    "vwap(size)": P(lambda v: folded(rp.vwap("n", v)), "expr", INPUT),
    "variance(ddof)": P(lambda v: folded(rp.variance("x", ddof=v)), "zero three np_int"),
    "stddev(ddof)": P(lambda v: folded(rp.stddev("x", ddof=v)), "zero three np_int"),
    "top_k(x)": P(lambda v: folded(rp.top_k(v, 1)), "expr", INPUT),
    "top_k(k)": P(lambda v: folded(rp.top_k("x", v)), "three np_int"),
    **{
        f"{name}(fields)": P(lambda v, name=name: folded(getattr(rp, name)(v)), "expr", FIELDS)
        for name in ("first_row", "last_row")
    },
    **{
        f"{name}(by)": P(lambda v, name=name: folded(getattr(rp, name)(v, "x")), "expr", INPUT)
        for name in ("arg_min", "arg_max")
    },
    **{
        f"{name}(fields)": P(lambda v, name=name: folded(getattr(rp, name)("n", v)), "expr", FIELDS)
        for name in ("arg_min", "arg_max")
    },
    "top_rows(n)": P(lambda v: folded(rp.top_rows(v, "x", "n")), "three np_int"),
    "top_rows(by)": P(lambda v: folded(rp.top_rows(1, v, "n")), "expr", INPUT),
    "top_rows(fields)": P(lambda v: folded(rp.top_rows(1, "n", v)), "expr", FIELDS),
    "percentile(x)": P(lambda v: folded(rp.percentile(v, 50)), "expr", INPUT),
    "percentile(q)": P(lambda v: folded(percentile(v)), "zero three half decimal np_int np_float"),
    "percentile(method)": P(lambda v: folded(rp.percentile("x", 5, method=v))),
    "custom(inputs)": P(
        lambda v: folded(rp.custom(v, init=int, add=nothing, result=nothing, type=int)),
        "expr",
        INPUT,
    ),
    "custom(init)": P(lambda v: custom(init=v), FUNCTIONS),
    "custom(add)": P(lambda v: custom(add=v), FUNCTIONS),
    "custom(result)": P(lambda v: custom(result=v), FUNCTIONS),
    "custom(remove)": P(lambda v: custom(remove=v), f"none {FUNCTIONS}"),
    "custom(merge)": P(lambda v: custom(merge=v), f"none {FUNCTIONS}"),
    "custom(type)": P(lambda v: custom(type=v), "int type"),
    "custom(name)": P(lambda v: custom(name=v), TEXTS),
    "Accumulator(aggregate)": P(rp.Accumulator, "count"),
    "Accumulator(types)": P(lambda v: rp.Accumulator(rp.sum("x"), v), "none no_tuple"),
    "Accumulator(retractable)": P(
        lambda v: rp.Accumulator(rp.count(), retractable=v), "true false"
    ),
    "Accumulator.add()": P(
        rp.Accumulator(rp.sum("x")).add,
        "zero three minus half nan inf np_int np_float huge",
        "a value",
    ),
    "check_inverse(aggregate)": P(lambda v: rp.check_inverse(v, []), "count"),
    "check_inverse(values)": P(
        lambda v: rp.check_inverse(rp.count("x"), v, types=(Int64(),), rounds=1),
        "no_list ints no_tuple tuple range",
        "values must be|a value must be",
    ),
    "check_inverse(types)": P(
        lambda v: rp.check_inverse(rp.sum("x"), [0.5], types=v, rounds=1), "none no_tuple"
    ),
    "check_inverse(rounds)": P(
        lambda v: rp.check_inverse(rp.count(), [()], rounds=v), "three np_int"
    ),
    "check_inverse(seed)": P(
        lambda v: rp.check_inverse(rp.sum("x"), [0.5], rounds=1, seed=v), "zero three np_int"
    ),
    # Windows
    "Tumbling(size)": P(rp.Tumbling, "three np_int"),
    "Tumbling(zone)": P(lambda v: rp.Tumbling("1d", zone=v), "none"),
    "Tumbling(offset)": P(lambda v: rp.Tumbling("1d", zone="UTC", offset=v), "none zero"),
    "TradingSessions(name)": P(
        lambda v: rp.TradingSessions(v, "2024", "2025"), "", "name|calendar"
    ),
    "TradingSessions(start)": P(
        lambda v: rp.TradingSessions(start=v, table=[{"open": 0, "close": 5}]), "none"
    ),
    "TradingSessions(end)": P(
        lambda v: rp.TradingSessions(end=v, table=[{"open": 0, "close": 5}]), "none"
    ),
    "TradingSessions(table)": P(lambda v: rp.TradingSessions(table=v), "", "table"),
    "TradingSessions(every)": P(lambda v: trading(every=v), "none three np_int"),
    "TradingSessions(breaks)": P(lambda v: trading(breaks=v), ""),
    "TradingSessions(outside)": P(lambda v: trading(outside=v), ""),
    "Sliding(size)": P(lambda v: rp.Sliding(v, 1), "three np_int"),
    "Sliding(slide)": P(lambda v: rp.Sliding(100, v), "three np_int"),
    "Session(gap)": P(rp.Session, "three np_int"),
    "OnInterval(interval)": P(rp.OnInterval, "three np_int"),
    "OnCount(count)": P(rp.OnCount, "three np_int"),
    # Pipelines
    "Pipeline(name)": P(rp.Pipeline, "digit word"),
    "Pipeline.source(name)": P(lambda v: rp.Pipeline("p").source(v, In), "digit word"),
    "Pipeline.source(record)": P(lambda v: rp.Pipeline("p").source("s", v), "record schema"),
    "Pipeline.source(topic)": P(
        lambda v: rp.Pipeline("p").source("s", In, topic=v), f"none {TEXTS}"
    ),
    "Pipeline.source(time)": P(
        lambda v: rp.Pipeline("p").source("s", In, time=v), "none", f"event time|{INPUT}"
    ),
    "Pipeline.source(key)": P(
        lambda v: rp.Pipeline("p").source("s", In, key=v), "none no_list no_tuple", f"key|{INPUT}"
    ),
    "Pipeline.source(out_of_order)": P(
        lambda v: rp.Pipeline("p").source("s", In, out_of_order=v), "zero three np_int"
    ),
    "Pipeline.source(reject_future)": P(
        lambda v: rp.Pipeline("p").source("s", In, reject_future=v), "none zero three np_int"
    ),
    "Pipeline.source(idle)": P(lambda v: rp.Pipeline("p").source("s", In, idle=v), "none"),
    "Pipeline.table(name)": P(lambda v: rp.Pipeline("p").table(v, In, key="k"), "digit word"),
    "Pipeline.table(record)": P(lambda v: rp.Pipeline("p").table("s", v, key="k"), "record schema"),
    "Pipeline.table(key)": P(lambda v: rp.Pipeline("p").table("s", In, key=v), "", f"key|{INPUT}"),
    "Pipeline.table(topic)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", topic=v), f"none {TEXTS}"
    ),
    "Pipeline.table(deleted)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", deleted=v),
        "none",
        f"deleted|{INPUT}",
    ),
    "Pipeline.table(format)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", format=v), "none"
    ),
    "Pipeline.table(truncate)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", truncate=v), ""
    ),
    "Pipeline.table(time)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", time=v), "none", f"event time|{INPUT}"
    ),
    "Pipeline.table(out_of_order)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", time="t", out_of_order=v),
        "zero three np_int",
    ),
    "Pipeline.table(reject_future)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", time="t", reject_future=v),
        "none zero three np_int",
    ),
    "Pipeline.table(idle)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", time="t", idle=v), "none"
    ),
    "Pipeline.table(ttl)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", time="t", ttl=v), "none three np_int"
    ),
    "Pipeline.versions(name)": P(
        lambda v: rp.Pipeline("p").table("s", In, key="k", time="t").versions(v), "digit word"
    ),
    "Pipeline.derive(name)": P(lambda v: SOURCE.derive(v, z=rp.col("n")), "digit word"),
    "Pipeline.derive(fields)": P(
        lambda v: SOURCE.derive("d", z=v),
        "true false zero three minus half nan inf np_float expr decimal bytes",
        "z",
    ),
    "Pipeline.filter(name)": P(lambda v: SOURCE.filter(v, rp.col("n") > 0), "digit word"),
    "Pipeline.filter(condition)": P(lambda v: SOURCE.filter("f", v)),
    "Pipeline.map(name)": P(lambda v: SOURCE.map(v, nothing, into=In), "digit word"),
    "Pipeline.map(function)": P(lambda v: SOURCE.map("m", v, into=In), FUNCTIONS),
    "Pipeline.map(into)": P(lambda v: SOURCE.map("m", nothing, into=v), "record schema"),
    "Pipeline.map(batch)": P(lambda v: SOURCE.map("m", nothing, into=In, batch=v), "true false"),
    "Pipeline.flat_map(name)": P(lambda v: SOURCE.flat_map(v, nothing, into=In), "digit word"),
    "Pipeline.flat_map(function)": P(lambda v: SOURCE.flat_map("m", v, into=In), FUNCTIONS),
    "Pipeline.flat_map(into)": P(lambda v: SOURCE.flat_map("m", nothing, into=v), "record schema"),
    "Pipeline.also(other)": P(SOURCE.sink("o").also, "", "also takes another branch"),
    "Pipeline.partition(name)": P(lambda v: SOURCE.partition(v, key="k"), "digit word"),
    "Pipeline.partition(key)": P(lambda v: SOURCE.partition("g", key=v), "", f"key|{INPUT}"),
    "Pipeline.partition(partitions)": P(
        lambda v: FOLDED.partition("g2", key="k", partitions=v), "none three"
    ),
    "Pipeline.partition(via)": P(lambda v: FOLDED.partition("g2", key="k", via=v), "none"),
    "Pipeline.window(name)": P(lambda v: KEYED.window(v, rp.Tumbling("1s")), "digit word"),
    "Pipeline.window(assigner)": P(lambda v: KEYED.window("w", v), "tumbling"),
    "Pipeline.window(trigger)": P(
        lambda v: KEYED.window("w", rp.Tumbling(1), trigger=v), "none trigger"
    ),
    "Pipeline.window(lateness)": P(
        lambda v: KEYED.window("w", rp.Tumbling(1), lateness=v), "none zero three np_int"
    ),
    "Pipeline.window(future)": P(
        lambda v: KEYED.window("w", rp.Tumbling(1), future=v), "zero three np_int"
    ),
    "Pipeline.fold(name)": P(lambda v: KEYED.fold(v, n=rp.count()), "digit word"),
    "Pipeline.fold(unnamed)": P(lambda v: KEYED.fold("f", v, n=rp.count()), "", "aggregate|as in"),
    "Pipeline.fold(aggregates)": P(lambda v: KEYED.fold("f", n=v), "count", "an aggregate"),
    "Pipeline.sink(name)": P(FOLDED.sink, "digit word"),
    "Pipeline.sink(topic)": P(lambda v: FOLDED.sink("o", topic=v), f"none {TEXTS}"),
    "Pipeline.sink(key)": P(
        lambda v: SOURCE.sink("o", key=v), "none no_list no_tuple", "the key|no field|a column"
    ),
    "Pipeline.scan(name)": P(lambda v: scan(name=v), "digit word"),
    "Pipeline.scan(key)": P(lambda v: scan(key=v), "", f"key|{INPUT}"),
    "Pipeline.scan(state)": P(lambda v: scan(state=v), "", "state"),
    "Pipeline.scan(step)": P(lambda v: scan(step=v), FUNCTIONS, "step"),
    "Pipeline.scan(into)": P(lambda v: scan(into=v), "record schema"),
    "Pipeline.scan(settled)": P(lambda v: scan(settled=v), "true false", "settled"),
    "Pipeline.scan(show)": P(lambda v: scan(show=v, settled=False), "", "show"),
    "Pipeline.scan(version_of)": P(lambda v: scan(version_of=v), "none", f"version_of|{INPUT}"),
    "Pipeline.scan(timers)": P(lambda v: scan(timers=v), "none", "timers"),
    "Pipeline.scan(lateness)": P(lambda v: scan(lateness=v), "none zero three np_int"),
    "Pipeline.scan(window)": P(
        lambda v: SOURCE.scan("sc", "k", settled=True, window=v, y=rp.mean("x")), "", "window"
    ),
    "Last(rows)": P(rp.Last, "three np_int", "Last: rows"),
    "Pipeline.scan(columns)": P(
        lambda v: SOURCE.scan("sc", "k", settled=True, y=v), "", "a running value|window"
    ),
    **{
        f"OrderBook({name})": P(lambda v, name=name: book(**{name: v}), takes, says)
        for name, takes, says in (
            ("side", "", f"side (is missing|takes)|{INPUT}"),
            ("price", "expr", f"price is missing|{INPUT}"),
            ("size", "expr", f"size is missing|{INPUT}"),
            ("action", "none", f"action takes|{INPUT}"),
            ("order", "none", f"action is missing|{INPUT}"),
            ("sequence", "", f"sequence (is missing|takes)|{INPUT}"),
            ("rule", "", "rule"),
            ("previous", "none", "previous"),
            ("last", "none", f"last takes|{INPUT}"),
            ("show", "", "show"),
            ("depth", "three np_int", "depth"),
            ("begins", "", "begins"),
            ("strict", "true false", "strict"),
            ("checksum", "none", f"give both|{INPUT}"),
            ("checksum_rule", "none", "checksum"),
            ("venue_depth", "none three np_int", "venue_depth"),
        )
    },
    "cum_sum(x)": P(lambda v: running(rp.cum_sum(v)), "", f"adds integers|{INPUT}"),
    "bar(x)": P(lambda v: running(rp.bar(v, every=2)), "none expr", INPUT),
    "bar(every)": P(lambda v: running(rp.bar("x", every=v)), "half three np_float huge endless"),
    "bar(split)": P(lambda v: running(rp.bar("n", every=2, split=v)), "true false", "split"),
    "lag(x)": P(lambda v: running(rp.lag(v)), "expr", INPUT),
    "Position(quantity)": P(position, "", f"{INPUT}|are exact|quantity must be"),
    "Position(price)": P(lambda v: position(price=v), "", f"{INPUT}|are exact"),
    "Position(method)": P(lambda v: position(method=v), "", "method"),
    "Position(fee)": P(lambda v: position(fee=v), "none", f"{INPUT}|are exact"),
    "Position(busted)": P(lambda v: position(busted=v), "none", f"{INPUT}|is no bool"),
    "Position(money)": P(lambda v: position(money=v), "none", "money"),
    "Position(split)": P(lambda v: position(split=v), "none", "split"),
    "Position(lots)": P(lambda v: position(lots=v), "three np_int", "lots"),
    "lag(n)": P(lambda v: running(rp.lag("x", v)), "three np_int"),
    "LiveTable(rows)": P(lambda v: rp.LiveTable(rows=v), "three np_int", "rows"),
    "LiveTable(by)": P(lambda v: rp.LiveTable(by=v), f"{TEXTS} none", "by"),
    "LiveTable(line)": P(lambda v: rp.LiveTable(line=v), f"{TEXTS} none", "line"),
    "ema(x)": P(lambda v: running(rp.ema(v, span=3)), "expr", INPUT),
    "ema(span)": P(lambda v: running(rp.ema("x", span=v)), "three huge", "span"),
    "ema(alpha)": P(lambda v: running(rp.ema("x", alpha=v)), "half np_float", "alpha"),
    "ema(half_life)": P(lambda v: running(rp.ema("x", half_life=v)), "three np_int", "half_life"),
    **{
        f"{name}(x)": P(lambda v, name=name: running(getattr(rp, name)(v)), "expr", INPUT)
        for name in ("cum_max", "cum_min")
    },
    **{
        f"{name}({what})": P(
            (lambda v, name=name: running(getattr(rp, name)(v, 3)))
            if what == "x"
            else (lambda v, name=name: running(getattr(rp, name)("x", v))),
            "expr" if what == "x" else "three np_int",
            INPUT if what == "x" else "n must be",
        )
        for name in (
            *("rolling_sum", "rolling_mean", "rolling_max", "rolling_min"),
            *("rolling_median", "rolling_variance", "rolling_stddev"),
        )
        for what in ("x", "n")
    },
    "rolling_percentile(x)": P(lambda v: running(rp.rolling_percentile(v, 3, 50)), "expr", INPUT),
    "rolling_percentile(n)": P(
        lambda v: running(rp.rolling_percentile("x", v, 50)), "three np_int", "n must be"
    ),
    "rolling_percentile(q)": P(
        lambda v: running(rolling_percentile(v)), "zero three half np_int np_float decimal"
    ),
    "rolling_variance(ddof)": P(
        lambda v: running(rp.rolling_variance("x", 3, ddof=v)), "zero three np_int"
    ),
    "rolling_stddev(ddof)": P(
        lambda v: running(rp.rolling_stddev("x", 3, ddof=v)), "zero three np_int"
    ),
    "Pipeline.scan(ttl)": P(lambda v: scan(ttl=v), "none three np_int"),
    "Pipeline.ask(name)": P(lambda v: ASKING.ask(v, answer, into=In), "digit word"),
    "Pipeline.ask(function)": P(lambda v: ASKING.ask("a", v, into=In), "", "an async function"),
    "Pipeline.ask(into)": P(lambda v: ASKING.ask("a", answer, into=v), "record schema"),
    "Pipeline.ask(timeout)": P(lambda v: ASKING.ask("a", answer, into=In, timeout=v), ""),
    "Pipeline.ask(retries)": P(lambda v: ASKING.ask("a", answer, into=In, retries=v), "zero three"),
    "Pipeline.ask(concurrency)": P(
        lambda v: ASKING.ask("a", answer, into=In, concurrency=v), "three"
    ),
    "Pipeline.distinct(name)": P(lambda v: SOURCE.distinct(v, "k", within=1), "digit word"),
    "Pipeline.distinct(key)": P(lambda v: SOURCE.distinct("d", v, within=1), "", f"key|{INPUT}"),
    "Pipeline.distinct(within)": P(
        lambda v: SOURCE.distinct("d", "k", within=v), "zero three np_int"
    ),
    "Pipeline.distinct(lateness)": P(
        lambda v: SOURCE.distinct("d", "k", within=1, lateness=v), "none zero three np_int"
    ),
    "Pipeline.distinct(emit)": P(lambda v: SOURCE.distinct("d", "k", within=1, emit=v)),
    "Pipeline.distinct(ttl)": P(
        lambda v: SOURCE.distinct("d", "k", within=1, ttl=v), "none", "leave ttl= out"
    ),
    **of_join("join_interval", near, "the right side"),
    "Pipeline.join_interval(within)": P(lambda v: near(within=v)),
    "Pipeline.join_interval(lateness)": P(lambda v: near(lateness=v), "none zero three np_int"),
    "Pipeline.join_interval(emit)": P(lambda v: near(emit=v)),
    **of_join("join_asof", joined, "the right side"),
    "Pipeline.join_asof(strategy)": P(lambda v: joined(strategy=v)),
    "Pipeline.join_asof(tolerance)": P(lambda v: joined(tolerance=v), "none zero three np_int"),
    "Pipeline.join_asof(allow_exact_matches)": P(
        lambda v: joined(allow_exact_matches=v), "true false"
    ),
    "Pipeline.join_asof(lateness)": P(lambda v: joined(lateness=v), "none zero three np_int"),
    "Pipeline.join_asof(emit)": P(lambda v: joined(emit=v)),
    **of_join("join", paired, "another branch of the pipeline"),
    "Pipeline.finals(name)": P(
        lambda v: KEYED.window("w", rp.Tumbling(1)).fold("f", n=rp.count()).finals(v), "digit word"
    ),
    "clock(name)": P(lambda v: rp.clock(v, every="1s", since=0), TEXTS),
    "clock(every)": P(lambda v: rp.clock("t", every=v, since=0), ""),
    "clock(since)": P(lambda v: rp.clock("t", every="1s", since=v), "zero three"),
    "clock(follow)": P(lambda v: rp.clock("t", every="1s", since=0, follow=v), "true false"),
    "constant(name)": P(lambda v: rp.constant(v, [{"k": "a"}], key="k"), "digit word"),
    "constant(table)": P(lambda v: rp.constant("c", v, key="a"), "table", "it takes|row"),
    "constant(key)": P(lambda v: rp.constant("c", [{"k": "a"}], key=(v,)), "", f"key|{INPUT}"),
    "union(name)": P(lambda v: rp.union(v, SOURCE, POSITIVE), "digit word"),
    "union(branches)": P(lambda v: rp.union("u", SOURCE, v), ""),
    "Pipeline.sink(of)": P(lambda v: FOLDED.sink("o", of=v), "none", "of must be|there is no fold"),
    "Pipeline.migrate(fold)": P(lambda v: FOLDED.migrate(v, nothing, from_digest="0" * 32)),
    "Pipeline.migrate(function)": P(
        lambda v: FOLDED.migrate("f", v, from_digest="0" * 32), FUNCTIONS
    ),
    "Pipeline.migrate(from_digest)": P(lambda v: FOLDED.migrate("f", nothing, from_digest=v)),
    # Records and schemas
    "record(cls)": P(
        lambda v: rp.record(type("Fresh", (v,), {}) if v is Thing else v), "none class", "record"
    ),
    "record(version)": P(lambda v: record(version=v), "three np_int"),
    "record(name)": P(lambda v: record(name=v), f"none {TEXTS}"),
    "record(doc)": P(lambda v: record(doc=v), f"none {TEXTS}"),
    "record(a field's type)": P(record, "int record", "A.a"),
    "schema_of(cls)": P(rp.schema_of, "record", "is not a record class"),
    "schema_of(name)": P(lambda v: rp.schema_of(In, name=v), f"none {TEXTS}"),
    "schema_of(version)": P(lambda v: rp.schema_of(In, version=v), "none three np_int"),
    "Schema(name)": P(lambda v: schema(name=v), TEXTS),
    "Schema(fields)": P(lambda v: schema(fields=v), "no_tuple"),
    "Schema(version)": P(lambda v: schema(version=v), "three np_int"),
    "Schema(doc)": P(lambda v: schema(doc=v), f"none empty {TEXTS}"),
    "Schema(fields' items)": P(lambda v: schema(fields=(v,)), "field", "fields must"),
    "Field(name)": P(lambda v: schema(fields=(Field(v, Int()),)), TEXTS),
    "Field(type)": P(schema, "type"),
    "Field(optional)": P(lambda v: schema(fields=(Field("a", Int(), v),)), "true false"),
    "Field(doc)": P(lambda v: schema(fields=(Field("a", Int(), doc=v),)), f"none empty {TEXTS}"),
    "Option(of)": P(lambda v: schema(Option(v)), "type", "a.a"),
    "List(of)": P(lambda v: schema(List(v)), "type", "a.a"),
    "Record(fields)": P(lambda v: schema(Record(v)), "no_tuple"),
    "Variant(cases)": P(lambda v: schema(Variant(v)), "no_tuple"),
    "Case(name)": P(lambda v: schema(Variant((Case(v),))), TEXTS),
    "Case(args)": P(lambda v: schema(Variant((Case("A", v),))), "no_tuple", "args|a.a: the type"),
    # Expressions
    "col(name)": P(rp.col, TEXTS),
    "lit(value)": P(rp.lit, PLAIN, EXPRESSION),
    "when(condition)": P(rp.when, "expr", "when takes"),
    "when.then(value)": P(rp.when(rp.col("n") > 0).then, f"expr {PLAIN}", EXPRESSION),
    "when.otherwise(value)": P(
        rp.when(rp.col("n") > 0).then(1).otherwise, f"expr {PLAIN}", EXPRESSION
    ),
    "concat_str(first)": P(lambda v: rp.concat_str(v, "-"), f"expr {PLAIN}", EXPRESSION),
    "concat_str(second)": P(lambda v: rp.concat_str("-", v), f"expr {PLAIN}", EXPRESSION),
    "concat_str(separator)": P(
        lambda v: rp.concat_str("a", "b", separator=v), f"empty {TEXTS}", "separator"
    ),
    "least(first)": P(lambda v: rp.least(v, 1), f"expr {PLAIN}", EXPRESSION),
    "least(second)": P(lambda v: rp.least(1, v), f"expr {PLAIN}", EXPRESSION),
    "greatest(first)": P(lambda v: rp.greatest(v, 1), f"expr {PLAIN}", EXPRESSION),
    "greatest(second)": P(lambda v: rp.greatest(1, v), f"expr {PLAIN}", EXPRESSION),
    "coalesce(first)": P(lambda v: rp.coalesce(v, 1), f"expr {PLAIN}", EXPRESSION),
    "coalesce(second)": P(lambda v: rp.coalesce(rp.col("x"), v), f"expr {PLAIN}", EXPRESSION),
    "Expr +": P(lambda v: rp.col("n") + v, f"expr {PLAIN}", EXPRESSION),
    "+ Expr": P(lambda v: v + rp.col("n"), f"expr {PLAIN}", EXPRESSION),
    "Expr ==": P(lambda v: rp.col("n") == v, f"expr {PLAIN}", EXPRESSION),
    "Expr &": P(lambda v: rp.col("n") & v, f"expr {PLAIN}", EXPRESSION),
    "Decimal(precision)": P(rp.Decimal, "three np_int"),
    "Decimal(scale)": P(lambda v: rp.Decimal(9, v), "zero three np_int"),
    "Expr.cast(to)": P(rp.col("n").cast, "int", "cast"),
    "Expr.fill_null(value)": P(rp.col("n").fill_null, f"expr {PLAIN}", EXPRESSION),
    "Expr.is_in(values)": P(rp.col("n").is_in, "ints texts tuple range", "is_in"),
    "Expr.is_in(values' items)": P(lambda v: rp.col("n").is_in([v]), PLAIN, EXPRESSION),
    "Expr.starts_with(prefix)": P(rp.col("k").starts_with, f"empty {TEXTS}", "starts_with"),
    "Expr.ends_with(suffix)": P(rp.col("k").ends_with, f"empty {TEXTS}", "ends_with"),
    "Expr.contains(part)": P(rp.col("k").contains, f"empty {TEXTS}", "contains"),
    "Expr.bind(fields)": P(rp.col("n").bind, "", "field"),
    # The graph
    "Graph(now)": P(rp.Graph, f"none {FUNCTIONS}"),
    "Cutoff(rule)": P(rp.Cutoff, "", "a cutoff is"),
    "Cutoff(equals)": P(lambda v: rp.Cutoff(rp.Cutoff.ALWAYS.rule, v), "none"),
    "Cutoff.equal(equals)": P(rp.Cutoff.equal, FUNCTIONS),
    **{
        f"Graph.{method}({option})": P(
            lambda v, make=make, option=option: make(**{option: v}), takes
        )
        for method, make in {
            "leaf": lambda **o: GRAPH.leaf(1, **o),
            "map": lambda **o: GRAPH.map(CELL, lambda v: v, **o),
            "map2": lambda **o: GRAPH.map2(CELL, CELL, nothing, **o),
            "map_n": lambda **o: GRAPH.map_n([CELL], nothing, **o),
            "fold": lambda **o: GRAPH.fold([CELL], 0, nothing, **o),
            "incr_fold": lambda **o: GRAPH.incr_fold([CELL], 0, nothing, nothing, **o),
            "bind": lambda **o: GRAPH.bind(CELL, lambda _: CELL, **o),
        }.items()
        for option, takes in {
            "equal": f"none {FUNCTIONS}",
            "cutoff": "none cutoff",
            "name": f"none {TEXTS}",
            "serializer": f"none {FUNCTIONS}",
        }.items()
    },
    "Graph.map(parent)": P(lambda v: GRAPH.map(v, nothing), "", "parent"),
    "Graph.map(function)": P(lambda v: GRAPH.map(CELL, v), "int function", "function"),
    "Graph.map(batch)": P(lambda v: GRAPH.map(PRICES, lambda _: [], batch=v), "true false"),
    "Graph.map(schema)": P(
        lambda v: GRAPH.map(PRICES, nothing, schema=v), "none int record schema type"
    ),
    "Graph.map2(first)": P(lambda v: GRAPH.map2(v, CELL, nothing)),
    "Graph.map2(second)": P(lambda v: GRAPH.map2(CELL, v, nothing)),
    "Graph.map2(function)": P(lambda v: GRAPH.map2(CELL, CELL, v), "function"),
    "Graph.map_n(parents)": P(lambda v: GRAPH.map_n(v, nothing), "no_list no_tuple"),
    "Graph.map_n(function)": P(lambda v: GRAPH.map_n([CELL], v), "int function"),
    "Graph.fold(parents)": P(lambda v: GRAPH.fold(v, 0, nothing), "no_list no_tuple"),
    "Graph.fold(function)": P(lambda v: GRAPH.fold([CELL], 0, v), "function"),
    "Graph.incr_fold(parents)": P(
        lambda v: GRAPH.incr_fold(v, 0, nothing, nothing), "no_list no_tuple"
    ),
    "Graph.incr_fold(add)": P(
        lambda v: GRAPH.incr_fold([CELL], 0, v, nothing), "function", "add|function"
    ),
    "Graph.incr_fold(remove)": P(lambda v: GRAPH.incr_fold([CELL], 0, nothing, v), FUNCTIONS),
    "Graph.incr_fold(approximate)": P(
        lambda v: GRAPH.incr_fold([CELL], 0, nothing, nothing, approximate=v), "true false"
    ),
    "Graph.bind(parent)": P(lambda v: GRAPH.bind(v, nothing)),
    "Graph.bind(function)": P(lambda v: GRAPH.bind(CELL, v), "", "function"),
    "Graph.remove(node)": P(GRAPH.remove, "", "not in this graph"),
    "Graph.output(node)": P(GRAPH.output, "", "not in this graph"),
    "Cell.observe(callback)": P(CELL.observe, FUNCTIONS),
    "MapN.add_parent(parent)": P(lambda v: GRAPH.map_n([CELL], nothing).add_parent(v)),
    "MapN.remove_parent(parent)": P(lambda v: GRAPH.map_n([CELL], nothing).remove_parent(v)),
    "IncrFold.add_parent(parent)": P(lambda v: summed().add_parent(v)),
    "IncrFold.remove_parent(parent)": P(lambda v: summed().remove_parent(v)),
    # Columns
    "Graph.column(schema)": P(GRAPH.column, "int record schema type"),
    "Graph.column(schema's fields)": P(
        lambda v: GRAPH.column({"a": v}), "int record type", "schema: a"
    ),
    "Graph.column(key)": P(lambda v: GRAPH.column(float, key=v), "int type"),
    "Graph.column(key's parts)": P(lambda v: GRAPH.column(float, key=(str, v)), "int type", "key"),
    "Graph.column(name)": P(lambda v: GRAPH.column(float, name=v), f"none {TEXTS}"),
    "Column.set(key)": P(lambda v: GRAPH.column(float).set(v, 1.0), f"empty {TEXTS}"),
    "Column.set(row)": P(
        lambda v: GRAPH.column(float).set("A", v),
        "zero three minus half nan inf np_int np_float huge",
        "'value'",
    ),
    "Column.set(fields)": P(
        lambda v: GRAPH.column({"a": int}).set("A", a=v), "zero three minus np_int", "'a'"
    ),
    "Column.apply(keys)": P(lambda v: GRAPH.column(float).apply(v, [0.5]), "texts", "key|values"),
    "Column.apply(values)": P(
        lambda v: GRAPH.column(float).apply(["A"], v), "ints tuple", "'value'|field"
    ),
    "Column.apply(arrays)": P(
        lambda v: GRAPH.column({"a": int}).apply(["A"], a=v), "ints tuple", "'a'"
    ),
    "Column.get(key)": P(PRICES.get, f"empty {TEXTS}"),
    "key in Column": P(lambda v: v in PRICES, f"empty {TEXTS}", "key"),
    "Column.remove(key)": P(PRICES.remove, f"empty {TEXTS}"),
    "Column.remove_all(keys)": P(PRICES.remove_all, "no_list no_tuple texts", "key"),
    "Column.sum(field)": P(PRICES.sum, "", "field"),
    "Column.count(field)": P(PRICES.count, "none", "field"),
    "Column.min(field)": P(PRICES.min, "", "field"),
    "Column.max(field)": P(PRICES.max, "", "field"),
    "Column.mean(field)": P(PRICES.mean, "", "field"),
    "Column.fold(what)": P(PRICES.fold, "count", "must be an aggregate"),
    "Column.fold(add)": P(lambda v: PRICES.fold(0, v, nothing), FUNCTIONS),
    "Column.fold(remove)": P(lambda v: PRICES.fold(0, nothing, v), FUNCTIONS),
    "Column.fold(approximate)": P(
        lambda v: PRICES.fold(0, nothing, nothing, approximate=v), "true false"
    ),
    "Column.sum(name)": P(lambda v: PRICES.sum("x", name=v), f"none {TEXTS}"),
    "Column.sum(equal)": P(lambda v: PRICES.sum("x", equal=v), f"none {FUNCTIONS}"),
    "Column.sum(cutoff)": P(lambda v: PRICES.sum("x", cutoff=v), "none cutoff"),
    "Column.sum(serializer)": P(lambda v: PRICES.sum("x", serializer=v), f"none {FUNCTIONS}"),
    # The engine
    "Engine(plan)": P(rp.Engine),
    "Engine(partition)": P(lambda v: rp.Engine(PLAN, v), "zero three np_int"),
    "Engine(retractions)": P(lambda v: rp.Engine(PLAN, retractions=v), "true false"),
    "Engine(staged)": P(lambda v: rp.Engine(PLAN, staged=v), "true false"),
    "Engine(finals)": P(lambda v: rp.Engine(PLAN, finals=v), "true false"),
    "Engine(inputs)": P(lambda v: rp.Engine(PLAN, inputs=v), "none texts"),
    "Engine(start)": P(lambda v: rp.Engine(PLAN, start=v), "no_dict"),
    "Engine.restore(plan)": P(lambda v: rp.Engine.restore(v, rp.Engine(PLAN).snapshot())),
    "Engine.restore(snapshot)": P(lambda v: rp.Engine.restore(PLAN, v)),
    "Engine.apply(source)": P(lambda v: rp.Engine(PLAN).apply(v, NO_RECORDS, 0), "", "input"),
    "Engine.apply(batch)": P(
        lambda v: rp.Engine(PLAN).apply("s", v, 1),
        "no_list no_tuple",
        "apply takes|lacks the fields|batch of 0",
    ),
    "Engine.advance(source)": P(lambda v: rp.Engine(PLAN).advance(v, 1, 0), "", "input"),
    "Engine.table(output)": P(lambda v: rp.Engine(PLAN).table(v)),
}


@pytest.mark.parametrize("parameter", TABLE)
def test_wrong_argument_is_refused_by_name(parameter: str) -> None:
    give, takes, says = TABLE[parameter]
    says = says or parameter.partition("(")[2].removesuffix(")")
    taken = []
    for name, value in VALUES.items():
        try:
            give(value)
        except rp.RippleError as error:
            said = str(error)
        else:
            taken.append(name)
            continue
        assert re.search(says, said), f"{name}: {said}"
        assert any(text in said for text in _texts(value)), f"{name}: {said}"
        assert len(said) < LENGTH_MAX, f"{name}: {said}"
    assert sorted(taken) == sorted(takes.split())


def _texts(value: Any) -> list[str]:
    """Return what may stand in a message for a value: itself, its name, or one of its items."""
    texts = [shown(value), shown((value,)), *([value] if isinstance(value, str) else [])]
    if value is None:
        texts += ["is missing", "of which field?", "0 alone"]
    if isinstance(value, pa.Table):
        texts += ["2 dimensions", "it has ['a']"]
    if isinstance(value, rp.Expr):
        texts += [repr(value.value)]
    if isinstance(value, Aggregate):
        texts += [call_of(value)]
    if callable(value):
        texts += [getattr(value, "__name__", ""), "the function of"]
    if isinstance(value, (str, bytes, list, tuple, dict, set, range, np.ndarray)):
        texts += [f"an array of {value.dtype}"] if isinstance(value, np.ndarray) else []
        items = [*value, *(value.values() if isinstance(value, dict) else ())]
        texts += [text for item in items for text in (shown(item), str(item))] or [""]
    return texts


# What is only looked at, never made by users, or takes anything; and parameters that hold nothing
# a user could get wrong.
# Those of ``collect`` have a test in tests/task/test_collect.py.
# Those of ``field`` have a table in tests/model/schema/test_checks.py, those of ``Task`` one in
# tests/task/test_task.py.
NOT_MADE = {
    *(
        "Changes",
        "Constant",
        "Plan",
        "Report",
        "Snapshot",
        "Tick",
        "Timestamp",
        "Expr",
        "run",
        "collect",
        "Result",
        "Change",
        "arun",
        "changes",
        "Stream",
        "MemorySink",
        "Task",
        "field",
    ),
}
ANYTHING = {"self", "value", "init", "more"}


def _parameters() -> list[str]:
    found = []
    for name in rp.__all__:
        made = getattr(rp, name)
        is_error = isinstance(made, type) and issubclass(made, Exception)
        if name in NOT_MADE or is_error or made is rp.Graph:  # which is compiled
            continue
        taking = made.__init__ if made is rp.Engine else made  # its __new__ passes all on
        found += [f"{name}({each})" for each in inspect.signature(taking).parameters]
    for cls in (rp.Pipeline, rp.Graph):
        for name, method in vars(cls).items():
            if not name.startswith("_") and inspect.isfunction(method):
                signature = inspect.signature(method)
                found += [f"{cls.__name__}.{name}({each})" for each in signature.parameters]
    return [one for one in found if one.partition("(")[2].removesuffix(")") not in ANYTHING]


def test_every_public_parameter_is_in_the_table() -> None:
    assert not [parameter for parameter in _parameters() if parameter not in TABLE]
