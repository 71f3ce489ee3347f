"""Streams of events, as Spark reads them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from ripple.spark.parcel import Parcel
from ripple.spark.streaming.hints import HintReceiver
from ripple.spark.streaming.stream import Stream
from ripple.spark.streaming.turn import Turn

SOURCE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    t: rp.Timestamp

source = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order="4ns")
keyed = source.partition("by", key="symbol")

def shown(pipeline):
    return pipeline.fold("rows", n=rp.count(), vwap=rp.vwap("price", "size"),
                         last=rp.last("price")).sink("out")

running = shown(keyed)
tumbling = shown(keyed.window("w", rp.Tumbling("20ns"), lateness="6ns"))
session = shown(keyed.window("w", rp.Session("5ns"), lateness="6ns"))
counted = shown(keyed.window("w", rp.Sliding("20ns", "7ns"), lateness="6ns", trigger=rp.OnCount(3)))
total = (keyed.window("w", rp.Tumbling("20ns"), lateness="6ns").fold("rows", n=rp.count())
         .partition("all", key=()).fold("total", n=rp.sum("n")).sink("out"))
large = source.filter("large", rp.col("size") > 2)
branches = large.sink("events").also(tumbling).also(
    large.partition("l", key="symbol").fold("last", price=rp.last("price")).sink("last-out"))
elsewhere = shown(rp.Pipeline("p").source("trades", Trade, time="t", key="size")
    .partition("by", key="size"))
distinct = source.distinct("once", key="size", within="5ns").sink("out")
others = tumbling.also(large.partition("z", key="size").fold("by-size", n=rp.count()).sink("sizes"))
"""
ROWS = 1200


def stream_of(file: str, folder: str, partitions: int, **more: Any) -> Stream:
    given: dict[str, Any] = {
        "source": f"log:{folder}/trades",
        "sinks": {"out": f"log:{folder}/out"},
        "store": f"{folder}/state",
        "batch_rows": 50,
        "keep": 3,
        **more,
    }
    parcel = Parcel.of(file, lambda plan: b"", has_markers=True, has_tables=True)
    return Stream.of(parcel, partitions=partitions, **given)


def nobody(stream: Stream) -> HintReceiver:
    """Return who hears nothing, with a token that other processes of a test have, too."""
    return HintReceiver("127.0.0.1", 9, stream.store)


def turns(stream: Stream, steps: int) -> Iterator[Turn]:
    """Yield turns up to the end of the source, in so many micro-batches."""
    end = stream.bounds()[1]
    names = list(end)
    for step in range(1, steps + 1):
        for number in range(stream.partitions):
            own = names[number :: stream.partitions]
            stop = {name: end[name] * step // steps for name in own}
            yield Turn(stream, number, stop, nobody(stream))


def events(count: int) -> list[dict[str, Any]]:
    chance = Random(3)
    return [
        {
            "symbol": f"S{chance.randrange(9)}",
            "price": chance.choice([0.1, 0.2, 1e17, -1e17, 2.5]),
            "size": chance.randrange(1, 5),
            "t": max(0, at - chance.choice([0, 0, 3, 15])),
        }
        for at in range(count)
    ]
