"""What the nodes of a plan keep, as `ripple plan` and the dashboard say it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import ripple as rp
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.drawing import drawing
from ripple.model.pipeline.keeping import keeping


@rp.record
class Trade:
    symbol: str
    size: int
    timestamp_ns: rp.Timestamp


@dataclass
class Seen:
    n: int = 0


def nothing(state: Seen, row: object) -> None:
    """Change nothing."""


TRADES = Pipeline("p").source("trades", Trade)
BY = TRADES.partition("by", key="symbol")
N = rp.count()
FIRST = TRADES.distinct("first", "symbol", within="10min", lateness="2s")
BARS = BY.window("w", rp.Tumbling("1min"), lateness="5s").fold("bars", n=N)
ACTIVE = BY.fold("active", n=N, ttl="7d")
TABLE = Pipeline("p").table("held", Trade, key="symbol").partition("q", key="size")


@pytest.mark.parametrize(
    ("pipeline", "said"),
    [
        (BY.fold("all", n=N), {"all": "no row is late; a key for ever"}),
        (BARS, {"bars": "lateness 5s; a window until the watermark is 5s past its end"}),
        (
            ACTIVE.partition("q", key=()).fold("total", n=rp.sum("n")),
            {
                "active": "lateness 1min, ttl 168h; a key's row until the watermark is 168h past "
                "its last event, its state for 1min more",
                "total": "no row is late; one row as long as 'active' has rows of it",
            },
        ),
        (
            BARS.partition("q", key=["window_start_ns", "n"]).fold("each", m=N),
            {"each": "no row is late; a key until its window in 'bars' is over"},
        ),
        (
            BARS.partition("q", key="symbol").fold("sums", m=N),
            {"sums": "no row is late; a key for ever: rows of windows that are over stay in it"},
        ),
        (
            BARS.finals("final"),
            {"final": "no row is late; nothing: a row is kept by 'bars' until it is final"},
        ),
        (
            FIRST.distinct("again", "size", within=1)
            .partition("q", key="size")
            .window("v", rp.Tumbling("1h"))
            .fold("hours", n=N),
            {
                "first": "lateness 2s; a row until the watermark is 2s past it, and the time of a "
                "key's last one for 10min more",
                "again": "no row is late; a row until the watermark is past it, and the time of a "
                "key's last one for 1ns more",
                "hours": "no row is late; a window until the watermark is at its end",
            },
        ),
        (
            TRADES.scan("s", "symbol", state=Seen, step=nothing, into=Seen, settled=True).scan(
                "t", "symbol", state=Seen, step=nothing, into=Seen, settled=True, ttl="1d"
            ),
            {
                "s": "lateness 1min; a row until the watermark is 1min past it, and the state of a "
                "key for ever",
                "t": "no row is late, ttl 24h; a row until the watermark is past it, and the state "
                "of a key until then, 24h after its last row",
            },
        ),
        (
            TABLE.fold("per", n=N),
            {
                "held.newest": "no row is late; a key until it is deleted; where several inputs "
                "are read, its deletion for ever",
                "per": "no row is late; a key as long as 'held.newest' has rows of it",
            },
        ),
    ],
)
def test_each_fold_and_waiting_node_says_what_it_keeps(
    pipeline: Pipeline, said: dict[str, str]
) -> None:
    plan = pipeline.sink("out").plan()
    found = {one.name: one.text for one in keeping(plan)}
    assert found.items() >= said.items()
    assert {node["id"]: node["keeps"] for node in drawing(plan)["nodes"] if node["keeps"]} == found


def test_rows_that_come_by_the_watermark_beside_events_may_be_late() -> None:
    other = TRADES.source("more", Trade)
    mixed = rp.union("mixed", FIRST, other).partition("q", key="symbol")
    plan = mixed.window("v", rp.Tumbling("1h"), lateness="3s").fold("n", n=N).sink("out").plan()
    assert {one.name: one.lateness_ns for one in keeping(plan)} == {
        "first": 2 * 10**9,
        "n": 3 * 10**9,
    }


def test_a_join_with_rows_of_both_sides_alone_keeps_both_longer() -> None:
    other = TRADES.source("others", Trade)
    rows = TRADES.join_interval(
        "near", other, on="symbol", within=("-5s", "2s"), how="full", lateness="1s", emit="final"
    )
    (one,) = keeping(rows.sink("out").plan())
    assert one.keeps == (
        "rows of both sides until the watermark of 'trades' is 6s past it, and that of 'others' 3s "
        "past it; then a row of 'trades' for 2s more, and one of 'others' for 5s"
    )
