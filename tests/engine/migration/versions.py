"""Versions of one pipeline, each some edits away from another, for runs that change their code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from operator import ne

import pyarrow as pa
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.records.record import field, record
from ripple.model.window import OnCount, OnEveryElement, Session, Tumbling
from tests.engine.machine.trades import Row, Trade, batch_of


@record(version=1, name="trade")
class Small(Trade):
    """A trade that is small enough."""

    size: int = field(lt=7)


@record(version=1, name="trade")
class Tiny(Trade):
    """A trade that is even smaller."""

    size: int = field(lt=4)


RECORDS = {"any": Trade, "small": Small, "tiny": Tiny}
AGGREGATES = {
    "total": ra.sum("price"),
    "volume": ra.sum("size"),
    "high": ra.max("price"),
    "best": ra.top_k("size", 2),
    "closed": ra.last("size"),
}
WINDOWS = {
    "none": None,
    "short": (Tumbling(50), None, 40),
    "long": (Tumbling(100), None, 40),
    "later": (Tumbling(50), None, 90),
    "eager": (Tumbling(50), OnEveryElement(), 40),
    "counted": (Tumbling(50), OnCount(3), 40),
    "sessions": (Session(30), None, 40),
}
OVER_WINDOWS = {"short", "long", "later", "eager", "counted"}  # sessions move: no key


@dataclass(frozen=True)
class Version:
    """What one version of the code says; each member is a place where an edit can be made."""

    checked: str = "any"
    reject_future: int | None = None
    filtered: int | None = None
    derived: str | None = None
    fold: str = "by-symbol"
    key: str = "symbol"
    window: str = "none"
    aggregates: tuple[str, ...] = ("total", "volume")
    step: int | None = None
    above: str | None = "totals"
    above_key: str = "count"
    above_step: int | None = None
    top: bool = False
    shown: tuple[str, ...] = ("rows", "sums")
    out_of_order: int = 10

    def plan(self) -> Plan:
        """Return the plan of this version."""
        line = Pipeline("test").source(
            "trades",
            RECORDS[self.checked],
            out_of_order=self.out_of_order,
            reject_future=self.reject_future,
        )
        if self.filtered is not None:
            line = line.filter("large", col("size") >= self.filtered)
        if self.derived is not None:
            line = line.derive(self.derived, notional=col("price") * col("size"))
        line = line.partition("p", key=self.key)
        if (window := WINDOWS[self.window]) is not None:
            assigner, trigger, lateness = window
            line = line.window("w", assigner, trigger=trigger, lateness=lateness)
        chosen = {name: AGGREGATES[name] for name in self.aggregates}
        line = line.fold(self.fold, count=ra.count(), volume_=ra.sum("size"), **chosen)
        if self.step is not None:
            line = line.derive("more", scaled=col("count") * self.step)
        if self.above is not None:
            over_window = self.above_key == "window_start_ns" and self.window in OVER_WINDOWS
            key = "window_start_ns" if over_window else "count"
            line = line.partition("q", key=key)
            line = line.fold(self.above, n=ra.count(), s=ra.sum("volume_"), h=ra.max("volume_"))
            if self.above_step is not None:
                line = line.filter("some", col("s") > self.above_step)
            if self.top:
                line = line.partition("r", key=()).fold("whole", all=ra.sum("s"))
        sinks = {
            "rows": self.fold,
            "sums": self.above,
            "top": "whole" if self.top and self.above else None,
        }
        wanted = [name for name in self.shown if sinks[name]] or ["rows"]
        for name in wanted:
            line = line.sink(name, of=sinks[name])
        return line.plan()


def _subsets(names: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(names), unique=True, max_size=4).map(tuple)


EDITS = {
    "checked": st.sampled_from(list(RECORDS)),
    "reject_future": st.sampled_from([None, 0, 100]),
    "filtered": st.sampled_from([None, 2, 5]),
    "derived": st.sampled_from([None, "notional", "worth"]),
    "fold": st.sampled_from(["by-symbol", "vwap"]),
    "key": st.sampled_from(["symbol", "size"]),
    "window": st.just("none") | st.sampled_from(list(WINDOWS)),
    "aggregates": _subsets(list(AGGREGATES)),
    "step": st.sampled_from([None, 2, 3]),
    "above": st.sampled_from(["totals", None, "totals", "sums-by-count"]),
    "above_key": st.sampled_from(["count", "window_start_ns"]),
    "above_step": st.sampled_from([None, 0, 9]),
    "top": st.booleans(),
    "shown": st.sampled_from([("rows",), ("sums",), ("rows", "sums"), ("rows", "sums", "top")]),
    "out_of_order": st.sampled_from([10, 20]),
}
versions = st.builds(Version, **EDITS)


@st.composite
def edited(draw: st.DrawFn, edits_max: int = 1) -> list[Version]:
    """Return versions, each of which differs from the one before in a place or two."""
    history = [draw(versions)]
    for _ in range(draw(st.integers(1, edits_max))):
        last = history[-1]
        places = draw(st.lists(st.sampled_from(list(EDITS)), min_size=1, max_size=2, unique=True))
        edits = {
            place: draw(EDITS[place].filter(partial(ne, getattr(last, place)))) for place in places
        }
        history.append(replace(last, **edits))
    return history


def fed(engine: Engine, events: list[Row], cuts: int = 3) -> Engine:
    """Feed what the engine has not seen of ``events``, in some batches."""
    start = engine.cut["trades"]
    size = max(1, (len(events) - start) // cuts)
    for at in range(start, len(events), size):
        part = events[at : at + size]
        engine.apply("trades", batch_of(part), at + len(part))
        engine.stabilize()
    engine.stabilize()
    return engine


def shown(engine: Engine) -> dict[str, pa.Table]:
    """Return every output's rows, in the order of their keys."""
    tables = {output.name: engine.table(output.name) for output in engine.plan.outputs}
    for name, table in tables.items():
        keys = engine.plan.fold(next(o.of for o in engine.plan.outputs if o.name == name)).identity
        tables[name] = table.sort_by([(key, "ascending") for key in keys]) if keys else table
    return tables
