"""A pipeline that asks: no two calls give the same answer, and each is noted in a file."""

import asyncio
import os
import time

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    timestamp_ns: rp.Timestamp


@rp.record(version=1)
class Grade:
    grade: int


async def grade(trade):
    await asyncio.sleep(0.002 + trade.size % 7 / 500)
    given = (time.time_ns() + os.getpid()) % 10**13  # whose sums fit
    with open(os.environ["CALLS"], "a") as calls:
        print(trade.size, given, file=calls)
    if trade.size % 50 == 0:
        raise ConnectionError("no route")
    return {"grade": given}


def over(output):
    """Return the pipeline with an output for the rows."""
    start = rp.Pipeline("graded").source("trades", Trade, out_of_order="1ms")
    graded = start.ask("grade", grade, into=Grade, retries=0, concurrency=4)
    sums = graded.partition("by-symbol", key="symbol").fold(
        "sums", n=rp.count(), of=rp.sum("grade")
    )
    return graded.sink(output, key="symbol").also(sums.sink(f"{output}-sums"))


pipeline = over("graded")
again = over("again")
