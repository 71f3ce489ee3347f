"""Write trades to a topic of Kafka, keyed by symbol: something to look at.

``python examples/feed.py broker:9092 trades --count 10000 --rate 500``

The same trades on every run, as CSV, for ``kafka:.../trades?format=csv&key=symbol``; ``--print``
shows them instead.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from itertools import count, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SYMBOLS = ("AAPL", "AMZN", "GOOG", "INTC", "META", "MSFT", "NFLX", "NVDA", "ORCL", "TSLA")
VENUES = ("ARCA", "BATS", "NSDQ")
FIRST_NS = 1_700_000_000_000_000_000
APART_NS = 100_000_000


def trades() -> Iterator[tuple[str, str]]:
    """Yield symbol and line of trade after trade."""
    for i in count():
        symbol = SYMBOLS[i * 7 % len(SYMBOLS)]
        price = 100 + i * 37 % 101 / 10
        line = f"{symbol},{price},{100 * (1 + i % 7)},{FIRST_NS + i * APART_NS},{VENUES[i % 3]}"
        yield symbol, line


async def feed(brokers: str, topic: str, wanted: int | None, rate: float) -> None:
    """Write so many trades, for ever without a number, at most so many a second."""
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415 - --print needs no Kafka

    producer = AIOKafkaProducer(bootstrap_servers=brokers, linger_ms=20)
    await producer.start()
    began = time.monotonic()
    try:
        for done, (symbol, line) in enumerate(islice(trades(), wanted)):
            await producer.send(topic, line.encode(), symbol.encode())
            ahead = done / rate - (time.monotonic() - began)
            if ahead > 0.01:
                await asyncio.sleep(ahead)
    finally:
        await producer.stop()


def main() -> None:
    """Run from the shell."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("brokers", help="HOST:PORT, separated by commas")
    parser.add_argument("topic")
    parser.add_argument("--count", type=int, help="how many; without it, for ever")
    parser.add_argument("--rate", type=float, default=500.0, help="a second (%(default)s)")
    parser.add_argument("--print", action="store_true", help="to standard output alone")
    options = parser.parse_args()
    if options.print:
        for _, line in islice(trades(), options.count):
            print(line)
        return
    asyncio.run(feed(options.brokers, options.topic, options.count, options.rate))


if __name__ == "__main__":
    main()
