"""Pipelines with joins of tables, drawn at random, and records for them."""

from __future__ import annotations

from random import Random
from typing import Any

import ripple as rp
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.nodes import DELETED

INPUTS = ("trades/0", "trades/1", "rates", "regions")


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str | None
    price: float | None
    size: int
    t: rp.Timestamp


@rp.record(version=1)
class Rate:
    venue: str
    region: int | None
    rate: float


@rp.record(version=1)
class Region:
    region: int
    owner: str | None
    symbol: str | None
    t: rp.Timestamp


def happened(random: Random, count: int) -> list[tuple[str, Any]]:
    """Return records of all inputs, as they are read."""
    return [_one(random, random.choice(INPUTS)) for _ in range(count)]


def _one(random: Random, name: str) -> tuple[str, Any]:
    venue, symbol = random.choice(["x", "y", "z", None]), random.choice(["a", "b", "c", "d"])
    if name == "rates":
        rate = random.choice([1.0, 2.0, -0.0, 0.0, float("nan")])
        row = {"venue": venue, "region": random.choice([1, 2, 3, None]), "rate": rate}
    elif name == "regions":
        owner, said = random.choice(["a", "z", None]), random.choice([symbol, None])
        row = {"region": random.randint(1, 4), "owner": owner, "symbol": said}
        row |= {"t": random.randint(0, 60)}
    else:
        price, t = random.choice([1.0, 2.5, None]), random.randint(0, 60)
        return name, {
            "symbol": symbol,
            "venue": venue,
            "price": price,
            "size": random.randint(-1, 2),
            "t": t,
        }
    return name, row | {DELETED: random.choice([True, None, None, None])}


def random_joins(random: Random) -> Pipeline:
    """Return a pipeline of up to three joins, one perhaps of another's rows, with folds above."""
    p = rp.Pipeline("joined")
    trades = p.source("trades", Trade, time="t", out_of_order=5)
    rates = p.table("rates", Rate, key="venue")
    if random.random() < 0.3:
        rates = rates.filter("positive", rp.col("rate") > 0)
    ttl = random.choice([None, None, 20])
    regions = p.table("regions", Region, key="region", time="t", out_of_order=10, ttl=ttl)
    by_symbol = _by_symbol(random, trades)
    pool = [*by_symbol, *_windows(random, trades)]
    random.shuffle(pool)
    rows, key = pool[0]
    how = random.choice(["inner", "left", "right", "full"])
    other = next((table for table, its in pool[1:] if its == key), rows)
    rows = _stepped(random, rows.join("same", other, on=key, how=how, suffix="_same"), "same")
    whole = [_sunk(random, rows, key, "same")]
    if key == ["symbol"]:
        tables = [rows, *(table for table, its in pool if its == key)]
        having = [one for one in tables if "venue" in [field.name for field in one.fields]]
        named = random.choice(having)
        more = named.join("rated", rates, on="venue", how=random.choice(["inner", "left"]))
        if random.random() < 0.5:
            more = more.join("placed", regions, on="region", how="left", suffix="_placed")
        whole.append(_sunk(random, more, key, "rated"))
    if random.random() < 0.5:
        where = rates.join("where", regions, on="region", how=random.choice(["inner", "left"]))
        whole.append(_sunk(random, where, ["venue"], "where"))
    if random.random() < 0.6:
        whole.append(_many(random, rates, regions, by_symbol))
    random.shuffle(whole)
    first, *others = whole
    for one in others:
        first = first.also(one)
    return first


def _many(
    random: Random, rates: Pipeline, regions: Pipeline, by: list[tuple[Pipeline, list[str]]]
) -> Pipeline:
    """Return a join by fields that are the key of neither side, perhaps with another above."""
    newest, by_pair = by[0][0], by[3][0]
    whole = by_pair.partition("p6", key=()).fold("whole", most=rp.arg_max("size", "place"))
    left, right, on = random.choice(
        [
            (rates, rates, ("region", "region")),
            (regions, newest, ("owner", "venue")),
            (newest, regions, (("symbol", "venue"), ("symbol", "owner"))),
            (regions, by_pair, ("symbol", "symbol")),
            (by_pair, newest, ("place", "venue")),
            (by_pair, by_pair, ("place", "place")),
            (whole, regions, ("most", "symbol")),
            (regions, whole, ("owner", "most")),
        ]
    )
    how = random.choice(["inner", "left", "right", "full"])
    some = left.join("many", right, left_on=on[0], right_on=on[1], how=how, suffix="_many")
    some = _stepped(random, some, "many")
    key = [field.name for field in some.sink("rows").plan().fold("many").key]
    return _sunk(random, some, key, "many")


def _by_symbol(random: Random, trades: Pipeline) -> list[tuple[Pipeline, list[str]]]:
    newest = trades.partition("p1", key="symbol").fold(
        "newest", n=rp.count(), venue=rp.last("venue"), total=rp.sum("price")
    )
    found = [(newest, ["symbol"])]
    ttl = {"ttl": 20} if random.random() < 0.3 else {}
    large = trades.filter("large", rp.col("size") > 0).partition("p2", key="symbol")
    some = large.fold("some", size=rp.sum("size"), **ttl).filter("odd", rp.col("size") % 2 == 1)
    found.append((some, ["symbol"]))
    pairs = trades.derive("at", place=rp.col("venue").fill_null("-"))
    by_pair = pairs.partition("p3", key=("symbol", "place")).fold("pairs", size=rp.sum("size"))
    best = by_pair.partition("p4", key="symbol").fold("best", most=rp.arg_max("size", "place"))
    found.append((best, ["symbol"]))
    both = pairs.partition("p5", key=("place", "symbol")).fold("both", least=rp.min("price"))
    return [*found, (by_pair, ["symbol", "place"]), (both, ["place", "symbol"])]


def _windows(random: Random, trades: Pipeline) -> list[tuple[Pipeline, list[str]]]:
    found = []
    window = random.choice([rp.Tumbling(10), rp.Sliding(12, 5)])
    trigger = random.choice([None, rp.OnEveryElement()])
    for at, size in enumerate((0, 1)):
        some = trades.filter(f"f{at}", rp.col("size") >= size).partition(f"w{at}", key="symbol")
        bars = some.window(f"window{at}", window, lateness=4, trigger=trigger)
        found.append(
            (
                bars.fold(f"bars{at}", n=rp.count(), size=rp.sum("size")),
                ["symbol", "window_start_ns"],
            )
        )
    return found


def _numbers(rows: Pipeline) -> list[str]:
    return [field.name for field in rows.fields if field.name in ("n", "size", "region")]


def _stepped(random: Random, rows: Pipeline, name: str) -> Pipeline:
    """Return rows, perhaps with a step of which some cannot be computed."""
    numbers = _numbers(rows)
    if numbers and random.random() < 0.4:
        return rows.derive(f"{name}-step", ratio=10 // rp.col(numbers[0]))
    return rows


def _sunk(random: Random, rows: Pipeline, key: list[str], name: str) -> Pipeline:
    """Return rows with a sink, and with a fold above them."""
    numbers = _numbers(rows)
    fields = [field.name for field in rows.fields if field.name not in key]
    top = rows.partition(f"{name}-all", key=random.choice([(), key[0]])).fold(
        f"{name}-total",
        rows_there=rp.count(),
        values=rp.count_distinct(random.choice(fields)),
        first_key=rp.min(numbers[0]) if numbers else rp.count(),
    )
    return rows.sink(f"{name}-rows").also(top.sink(f"{name}-totals"))
