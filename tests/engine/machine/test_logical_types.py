"""Dates, times and decimals in steps, folds and functions, as the plain reference has them."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

import ripple as rp
from ripple.model.expression import col
from ripple.testing import check_pipeline

D = decimal.Decimal
NOTHING = D(0)
Price = Annotated[D, rp.Decimal(12, 4)]


@rp.record
class Trade:
    name: str
    day: dt.date
    at: dt.datetime
    price: Price
    due: dt.date | None = None
    fee: Price | None = None


@rp.record
class Moved:
    day: dt.date
    at: dt.datetime
    price: Price


@dataclass
class Count:
    rows: int = 0


BEGIN = dt.datetime(2026, 1, 31, 23, 59, tzinfo=dt.UTC)
EVENTS: list[dict[str, Any]] = [
    {
        "name": "ab"[at % 2],
        "day": dt.date(2026, 1, 29) + dt.timedelta(at * 7 % 5),
        "at": BEGIN + dt.timedelta(seconds=at * 5 % 31),
        "price": D(at * 12345 % 70_001) / 10_000,
        "due": None if at % 3 else dt.date(1969, 12, 31),
        "fee": None if at % 4 else D(at) / 100,
    }
    for at in range(24)
]


def moved(trade: Trade) -> Moved:
    return Moved(day=trade.day + dt.timedelta(1), at=trade.at, price=trade.price * 2)


def each(trade: Trade) -> Iterator[Moved]:
    yield moved(trade)
    if trade.due is not None:
        yield Moved(day=trade.due, at=trade.at, price=D(1))


def whole(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        "day": columns["day"] + np.timedelta64(1, "D"),
        **{n: columns[n] for n in ("at", "price")},
    }


def stepped(state: Count, trade: Trade) -> Moved:
    state.rows += 1
    return Moved(day=trade.day + dt.timedelta(state.rows), at=trade.at, price=trade.price)


@dataclass
class Best:
    day: dt.date = dt.date(1970, 1, 1)
    at: dt.datetime | None = None
    paid: Annotated[D, rp.Decimal(15, 4)] = NOTHING


@dataclass
class BestSoFar:
    day: dt.date
    at: dt.datetime | None
    paid: Annotated[D, rp.Decimal(15, 4)]
    text: str


def improved(best: Best, trade: Trade) -> BestSoFar:
    if trade.price == 0:
        raise ValueError("nothing is paid")
    best.day = max(best.day, trade.day)
    best.at = trade.at if trade.due is None else best.at
    best.paid += trade.price + (D("1e12") if trade.fee == 0 else 0)
    return BestSoFar(best.day, best.at, best.paid, str(best.paid))


RUNNING: dict[str, Any] = {
    "day_before": rp.lag("day"),
    "fee_before": rp.lag("fee", 2),
    "last_at": rp.cum_max("at"),
    "first_due": rp.cum_min("due"),
    "paid": rp.cum_sum("fee"),
    "large": rp.cum_sum("much"),
    "of_three": rp.rolling_sum("much", 3),
    "top": rp.rolling_max("price", 3),
    "soonest": rp.rolling_min("day", 2),
    "by_value": rp.bar("price", every=D("8.5")),
    "by_fee": rp.bar("fee", every=D("0.1"), split=True),
}


def total() -> Any:
    return rp.custom(
        "price",
        init=lambda: D(0),
        add=lambda s, x: s + x,
        result=lambda s: s,
        type=rp.Decimal(18, 4),
    )


TRADES = rp.Pipeline("trades").source("trades", Trade, out_of_order="1min")
BY_DAY = TRADES.partition("by-day", key="day")
PIPELINES = {
    "folds": BY_DAY.fold("of-day", n=rp.count(), sum=rp.sum("price"), last=rp.max("at"))
    .derive("more", week=col("day").dt.truncate("1w"), mean=col("sum").divide(col("n"), scale=3))
    .partition("by-week", key="week")
    .fold("of-week", sum=rp.sum("mean"), best=rp.arg_max("mean", ["day", "last"])),
    "rows": TRADES.partition("by-price", key=["name", "price"]).fold(
        "rows", last=rp.last_row(["due", "fee"]), top=rp.top_rows(2, "fee", ["at", "due"])
    ),
    "sessions": BY_DAY.window("runs", rp.Session("3s")).fold(
        "run", sum=rp.sum("fee"), dues=rp.count_distinct("due"), last=rp.max("at")
    ),
    "numbers": TRADES.derive("number", days=col("day").cast(int), ns=col("at").cast(int)),
    "map": TRADES.map("moved", moved, into=Moved),
    "flat_map": TRADES.flat_map("each", each, into=Moved),
    "batch": TRADES.map("whole", whole, into=Moved, batch=True),
    "scan": TRADES.scan("steps", key="name", state=Count, step=stepped, into=Moved, settled=True),
    "state": TRADES.scan(
        "best", key="name", state=Best, step=improved, into=BestSoFar, settled=True, ttl="20s"
    ),
    "eager": TRADES.scan("best", key="name", state=Best, step=improved, into=BestSoFar),
    "running": TRADES.derive("more", much=col("price") * 10**13).scan(
        "running", key="name", settled=True, **RUNNING
    ),
    "aggregate": TRADES.partition("by-name", key="name").fold("total", of=total()),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_equal_their_reference(name: str) -> None:
    pipeline = PIPELINES[name].sink("out")
    check_pipeline(pipeline, EVENTS, batch_sizes=(1, 7, 100), restarts=(10,))


@rp.record
class Large:
    name: str
    at: dt.datetime
    paid: Annotated[D, rp.Decimal(38, 4)]
    fee: Annotated[D, rp.Decimal(19, 2)] | None = None


@rp.record
class Doubled:
    paid: Annotated[D, rp.Decimal(38, 4)]
    at: dt.datetime


@dataclass
class Paid:
    all: Annotated[D, rp.Decimal(38, 4)] = NOTHING


LARGE: list[dict[str, Any]] = [
    {
        "name": "ab"[at % 2],
        "at": BEGIN + dt.timedelta(seconds=at * 5 % 31),
        "paid": D((at * 7919 % 41 - 20) * 47 * 10**34) / 10_000,
        "fee": None if at % 4 else D(at * 43 * 10**16) / 100,
    }
    for at in range(24)
]


def doubled(row: Large) -> Doubled:
    return Doubled(paid=row.paid * 2, at=row.at)


def paid(state: Paid, row: Large) -> Doubled:
    state.all = row.paid + state.all
    return Doubled(paid=state.all, at=row.at)


LARGES = rp.Pipeline("larges").source("larges", Large, out_of_order="1min")
OF_NAME = LARGES.partition("by-name", key="name")
WIDE = {
    "folds": OF_NAME.fold(
        "of-name", sum=rp.sum("paid"), fees=rp.sum("fee"), top=rp.max("paid"), low=rp.min("fee")
    )
    .derive("more", mean=col("fees").divide(3, scale=4), twice=col("sum") + col("sum"))
    .derive("key", best=col("top").fill_null(0))
    .partition("by-top", key="best")
    .fold("of-top", all=rp.sum("mean"), first=rp.arg_max("mean", ["name", "low"])),
    "key": LARGES.partition("by-paid", key="paid").fold(
        "of-paid", rows=rp.count(), dues=rp.count_distinct("fee"), last=rp.last_row(["fee"])
    ),
    "sessions": OF_NAME.window("runs", rp.Session("3s")).fold(
        "run", sum=rp.sum("paid"), last=rp.last("paid")
    ),
    "map": LARGES.map("doubled", doubled, into=Doubled),
    "scan": LARGES.scan("steps", key="name", state=Paid, step=paid, into=Doubled, settled=True),
    "numbers": LARGES.derive("n", whole=col("paid").round(0), text=col("paid").cast(str)),
}


@pytest.mark.parametrize("name", WIDE)
def test_wide_decimals_equal_their_reference(name: str) -> None:
    check_pipeline(WIDE[name].sink("out"), LARGE, batch_sizes=(1, 7, 100), restarts=(10,))
