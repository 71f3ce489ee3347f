"""Ticks of a websocket into a pipeline: a client of your own, where ``ws:`` does not do.

``python -m examples.ticks ws://localhost:8765`` prints each change until the server ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator

from websockets.asyncio.client import connect

import ripple as rp


@rp.record(version=1)
class Tick:
    """A price of an instrument; at: nanoseconds since 1970."""

    symbol: str
    price: float = rp.field(gt=0, finite=True)
    at: rp.Timestamp


pipeline = (
    rp.Pipeline("ticks")
    .source("ticks", Tick)
    .partition("by-symbol", key="symbol")
    .fold("range", low=rp.min("price"), high=rp.max("price"), ticks=rp.count())
    .sink("ranges")
)


async def ranges(uri: str) -> AsyncIterator[rp.Change]:
    """Yield the changes of the ranges of a server's ticks, as they come."""
    stream = rp.Stream(Tick)

    async def push() -> None:
        try:
            async with connect(uri) as server:
                async for message in server:
                    await stream.apush(json.loads(message))
        finally:
            stream.close()

    pushing = asyncio.create_task(push())
    try:
        async for change in rp.changes(pipeline, stream):
            yield change
        await pushing
    finally:
        pushing.cancel()


async def main(uri: str) -> None:
    """Print the changes."""
    async for change in ranges(uri):
        print(change.row)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
