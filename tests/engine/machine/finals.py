"""Pipelines with the final rows of windows as streams, and all that may follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ripple as rp
import ripple.model.aggregate as ra
from ripple.model.pipeline.builder import Pipeline
from tests.engine.machine.ticks import Tick


@rp.record
class Bar:
    symbol: str
    size: int
    part: int
    window_end_ns: int


def parts(bar: Any) -> list[dict[str, Any]]:
    if bar.n == 3:
        raise ValueError("three events")
    return [{**vars(bar), "part": part} for part in range(bar.n % 4)]


def bars(start: Pipeline, assigner: Any, trigger: Any, lateness: int | None) -> Pipeline:
    keyed = start.partition("p", key="symbol").window(
        "w", assigner, trigger=trigger, lateness=lateness
    )
    return keyed.fold("bars", n=ra.count(), size=ra.sum("size"), price=ra.last("price"))


# Ways from final rows to sinks, each with names of its own.
def shown(final: Pipeline) -> Pipeline:
    return final.sink("final-out")


def strict(final: Pipeline) -> Pipeline:
    """Refuse rows, which are lost in all branches of the stream."""
    return final.derive("d1", share=10 // (rp.col("n") - 2)).sink("shares")


def running(final: Pipeline) -> Pipeline:
    kept = final.filter("f2", rp.col("n") > 1).partition("p2", key="symbol")
    names = {"first": ra.first("n"), "last": ra.last("n"), "top": ra.top_rows(2, "size", "n")}
    return kept.fold("running", **names, all=ra.sum("n")).sink("running-out")


def tied(final: Pipeline) -> Pipeline:
    """Let rows of one window, which have one time, be told apart by their keys."""
    keyed = final.partition("p3", key="window_end_ns")
    return keyed.fold("tied", a=ra.first("symbol"), z=ra.last("symbol")).sink("tied-out")


def windowed(final: Pipeline) -> Pipeline:
    keyed = final.partition("p4", key="symbol").window("w4", rp.Sliding(120, 60))
    fold = keyed.fold("above", n=ra.sum("n"), highest=ra.max("size"))
    above = fold.derive("d4", twice=rp.col("n") * 2)
    over = above.partition("all", key=()).fold("total", n=ra.sum("n"))
    return above.sink("above-out").also(over.sink("total-out")).also(again(above))


def again(above: Pipeline) -> Pipeline:
    final = above.finals("above-final")
    keyed = final.partition("p5", key="symbol").window("w5", rp.Session(150))
    return keyed.fold("last", twice=ra.sum("twice")).sink("last-out").also(final.sink("tapped"))


def multiplied(final: Pipeline) -> Pipeline:
    made = final.flat_map("parts", parts, into=Bar)
    some = made.filter("f6", rp.col("part") != 1)
    both = rp.union("both", made, some)
    keyed = both.partition("p6", key="part")
    fold = keyed.fold("parted", n=ra.count(), z=ra.last("symbol"), size=ra.first("size"))
    return made.sink("made-out").also(both.sink("both-out")).also(fold.sink("parted-out"))


@dataclass
class Trend:
    n: int = 0
    last: int = 0


@rp.record
class Step:
    change: int
    n: int


def follow(trend: Trend, bar: Any) -> Step | None:
    if bar.n == 3:
        raise ValueError("three events")
    trend.n += 1
    trend.last, before = bar.size, trend.last
    return None if trend.n % 5 == 4 else Step(change=bar.size - before, n=trend.n)


def rolled(final: Pipeline) -> Pipeline:
    """Add running values to final rows, and take these in order again."""
    made = final.scan(
        "rolled",
        "symbol",
        settled=True,
        ttl=500,
        mean=rp.rolling_mean("size", 3),
        ema=rp.ema("n", span=3),
        before=rp.lag("window_end_ns"),
    )
    steps = made.scan("steps", "symbol", state=Trend, step=follow, into=Step, settled=True)
    strictly = steps.derive("d7", share=10 // (rp.col("n") - 2))
    keyed = strictly.partition("p7", key="symbol").window("w7", rp.Tumbling(200))
    fold = keyed.fold("stepped", n=ra.count(), last=ra.last("change"))
    whole = made.sink("rolled-out").also(steps.sink("steps-out")).also(strictly.sink("strict-out"))
    return whole.also(fold.sink("stepped-out"))


def divided(final: Pipeline) -> Pipeline:
    """Divide final rows, of which the first of each window end have one place."""
    made = final.scan("cut", "symbol", settled=True, bar=rp.bar("n", every=2, split=True))
    keyed = made.partition("p8", key=["symbol", "bar"])
    fold = keyed.fold("by-bar", n=ra.sum("n"), ends=ra.last("window_end_ns"))
    return made.sink("cut-out").also(fold.sink("by-bar-out"))


def at_once(final: Pipeline) -> Pipeline:
    """Show the last row of each key."""
    said: dict[str, Any] = {"state": Trend, "step": follow, "into": Step}
    return final.scan("newest", "symbol", **said, show="last", ttl=300).sink("newest-out")


WAYS = [shown, strict, running, tied, windowed, multiplied, rolled, divided, at_once]


def pipeline_of(base: Pipeline, ways: list[Any]) -> Pipeline:
    """Return the branches of ``ways`` after the final rows of ``base``, which is shown itself."""
    final = base.finals("final")
    whole = base.sink("bars-out")
    for way in ways:
        whole = whole.also(way(final))
    return whole


@rp.record
class Sized:
    symbol: str
    size: int
    timestamp_ns: rp.Timestamp


def sized(row: Any) -> dict[str, Any]:
    return {"symbol": row.symbol, "size": row.n, "timestamp_ns": row.window_end_ns}


def grow(trend: Trend, row: Sized) -> Step:
    trend.n += 1
    trend.last += row.size
    return Step(change=trend.last, n=trend.n)


def among_events(*, more: bool) -> Pipeline:
    """Return a pipeline that unites final rows with events, of another source too if ``more``."""
    start = Pipeline("test")
    events = start.source("ticks", Tick, out_of_order=10)
    others = start.source("more", Tick, out_of_order=3) if more else events
    size = others.filter("sized", rp.col("size") > 0).map("cut", _cut, into=Sized)
    base = bars(events, rp.Tumbling(50), None, 20)
    final = base.finals("final").map("as-sized", sized, into=Sized)
    mixed = rp.union("mixed", size, final)
    fold = mixed.partition("pm", key="symbol").fold(
        "m", n=ra.count(), first=ra.first("size"), last=ra.last("size")
    )
    keyed = mixed.partition("pw", key="symbol").window("wm", rp.Tumbling(70), lateness=30)
    window = keyed.fold("mw", n=ra.count(), last=ra.last_row(["size"]))
    said: dict[str, Any] = {"state": Trend, "step": grow, "into": Step, "lateness": 15}
    scanned = mixed.scan("scanned", "symbol", settled=True, **said)
    return (
        mixed.sink("mixed-out")
        .also(scanned.sink("scanned-out"))
        .also(fold.sink("m-out"))
        .also(window.sink("mw-out"))
        .also(base.sink("bars-out"))
    )


def _cut(row: Any) -> dict[str, Any]:
    return {"symbol": row.symbol or "none", "size": row.size, "timestamp_ns": row.timestamp_ns}
