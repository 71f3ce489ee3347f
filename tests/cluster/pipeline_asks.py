"""Trades with the answer of a service that is slow, refuses some trades and hangs on others."""

import asyncio

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    venue: str
    timestamp_ns: rp.Timestamp


@rp.record(version=1)
class Rating:
    grade: str


async def rate(trade):
    await asyncio.sleep(0.002)
    if trade.price == 150:
        raise ConnectionError("no route")
    if trade.price == 160:
        await asyncio.Event().wait()
    return Rating(f"G{trade.size % 3}")


trades = rp.Pipeline("rated").source("trades", Trade, out_of_order="50ms")
rated = trades.filter("sized", rp.col("size") > 0).ask(
    "rating", rate, into=Rating, timeout="150ms", retries=1
)
by_symbol = rated.partition("by-symbol", key="symbol").fold(
    "sums", n=rp.count(), size=rp.sum("size"), first=rp.first("grade")
)
by_grade = rated.partition("by-grade", key=("symbol", "grade")).fold("grades", n=rp.count())
over = by_grade.partition("over", key="grade", partitions=2).fold(
    "over-all", n=rp.sum("n"), symbols=rp.count(), middle=rp.median("n")
)
bars = rated.partition("bar", key="symbol").window("w", rp.Tumbling("100ms"), lateness="1s")
bars = bars.fold("bars", n=rp.count(), size=rp.sum("size"))
times = bars.partition("times", key="window_start_ns", partitions=2)
pipeline = (
    rated.sink("shown")
    .also(by_symbol.sink("sums-out"))
    .also(over.sink("over-out"))
    .also(times.fold("by-time", size=rp.sum("size"), of=rp.count()).sink("times-out"))
)
