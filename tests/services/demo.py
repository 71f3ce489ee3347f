"""A broker, an object store, three workers, trades, and a consumer that shows what comes of them.

    make demo-kafka, or python -m tests.services.demo

All of it is in a folder that goes with it; Ctrl+C ends everything. The market goes twenty times as
fast as the clock, so that a minute is over every three seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition

from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics
from tests.services.missing import MissingError
from tests.services.s3 import S3Proxy
from tests.services.server import Server

ROOT = Path(__file__).resolve().parent.parent.parent
PARTITIONS, WORKERS = 6, 3
SYMBOLS = ("AAPL", "AMZN", "GOOG", "IBM", "META", "MSFT", "NFLX", "NVDA", "ORCL", "TSLA")
TRADES_A_SECOND, TURNS_A_SECOND, TIMES_FASTER = 5_000, 20, 20
MINUTE_NS = 60_000_000_000
OUTPUTS = ("vwap", "portfolio")
CLEAR = "\x1b[H\x1b[J"


class Workers(Server):
    """``ripple cluster up`` over topics, its checkpoints in the store; it has its own log."""

    def __init__(self, folder: Path, broker: Broker, store: S3Proxy, partitions: int) -> None:
        super().__init__(folder)
        self._topics = f"kafka:{broker.bootstrap}"
        self._store = store
        self._partitions = partitions

    @property
    def variables(self) -> dict[str, str]:
        """Return what tells the processes where the store is."""
        return {**self._store.environment, "PYTHONPATH": str(ROOT)}

    def command(self) -> list[str]:
        """Return what to run."""
        up = [sys.executable, "-m", "ripple.cli.main", "cluster", "up"]
        sinks = [one for name in OUTPUTS for one in ("--sink", f"{name}={self._topics}/{name}")]
        return [
            *(
                *up,
                str(ROOT / "examples/market.py"),
                "--source",
                f"{self._topics}/trades?key=symbol",
            ),
            *(*sinks, "--dir", "cluster", "--store", "s3://demo/state", "--free-ports"),
            *("--workers", str(WORKERS), "--processes", "1", "--partitions", str(self._partitions)),
        ]

    def answers(self) -> bool:
        """Say that it does: whether it works is seen in its topics."""
        return True


async def trade(bootstrap: str) -> None:
    """Write trades, for ever."""
    chance = random.Random(1)
    prices = {symbol: chance.uniform(50, 500) for symbol in SYMBOLS}
    began_s, market_ns = time.monotonic(), time.time_ns() // MINUTE_NS * MINUTE_NS
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        while True:
            now_ns = market_ns + int((time.monotonic() - began_s) * 1e9) * TIMES_FASTER
            for _ in range(TRADES_A_SECOND // TURNS_A_SECOND):
                symbol = chance.choice(SYMBOLS)
                prices[symbol] *= 1 + chance.gauss(0, 0.0002)
                row = {
                    "symbol": symbol,
                    "price": round(prices[symbol], 2),
                    "size": chance.randint(1, 500),
                    "timestamp_ns": now_ns - chance.randint(0, 1_000_000_000),
                    "venue": chance.choice(("XNAS", "XNYS")),
                }
                key, value = symbol.encode(), json.dumps(row).encode()
                await producer.send("trades", value, key, timestamp_ms=now_ns // 1_000_000)
            await asyncio.sleep(1 / TURNS_A_SECOND)


@dataclass
class Seen:
    """What a reader of committed records has got. minutes: by start, then by symbol.

    wanted: how many records are enough, with some of each output.
    """

    wanted: int = sys.maxsize
    minutes: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    portfolio: dict[str, Any] = field(default_factory=dict)
    records: int = 0

    def take(self, topic: str, value: bytes | None) -> None:
        """Take a record; a tombstone takes away what is not shown here."""
        self.records += 1
        row = json.loads(value) if value else None
        if row and topic == "vwap":
            self.minutes.setdefault(row["window_start_ns"], {})[row["symbol"]] = row
            for old in sorted(self.minutes)[:-3]:
                del self.minutes[old]
        elif row:
            self.portfolio = row

    @property
    def is_enough(self) -> bool:
        """Whether what was wanted was seen."""
        return self.records >= self.wanted and bool(self.minutes and self.portfolio)

    def lines(self) -> list[str]:
        """Return what is shown."""
        if not self.records:
            return ["The workers begin, and the first minute is under way: some twenty seconds."]
        found = [f"{self.records:,} committed records of {' and '.join(OUTPUTS)}", ""]
        if self.minutes:
            start = max(self.minutes)
            clock = time.strftime("%H:%M", time.gmtime(start / 1e9))
            found.append(f"VWAP of the minute from {clock} (the market's own time)")
            for symbol, row in sorted(self.minutes[start].items()):
                found.append(f"  {symbol:<6}{row['vwap']:>12.4f}{row['volume']:>12,}")
        if self.portfolio:
            volume, rows = self.portfolio["volume"], self.portfolio["rows"]
            found += ["", "Portfolio: all symbols, all minutes that are over"]
            found.append(f"  turnover {self.portfolio['turnover']:,.2f}, volume {volume:,}")
            found.append(f"  of {rows:,} minutes of a symbol")
        return found


async def show(bootstrap: str, seen: Seen) -> None:
    """Read what is committed, and show it twice a second, until it is enough."""
    is_screen = sys.stdout.isatty()
    last: list[str] = []
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        consumer.assign([KafkaPartition(topic, n) for topic in OUTPUTS for n in range(PARTITIONS)])
        shown_s = 0.0
        while True:
            for place, records in (await consumer.getmany(timeout_ms=500)).items():
                for record in records:
                    seen.take(place.topic, record.value)
            if seen.is_enough or time.monotonic() - shown_s >= (0.5 if is_screen else 5.0):
                shown_s = time.monotonic()
                lines = [*([CLEAR] if is_screen else []), *seen.lines()]
                lines += ["", "Ctrl+C ends everything."] if is_screen else [""]
                if lines != last:
                    sys.stdout.write("\n".join([*lines, ""]))
                    sys.stdout.flush()
                last = lines
            if seen.is_enough:
                return


async def watch(workers: Workers) -> None:
    """Return when the workers are not there any more."""
    while workers.is_running:
        await asyncio.sleep(0.2)


async def run(bootstrap: str, workers: Workers, seconds: float | None, seen: Seen) -> None:
    """Write and show until a signal, or for so long. Raises AssertionError if workers end."""
    loop, ends = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ends.set)
    doing = [asyncio.create_task(trade(bootstrap)), asyncio.create_task(show(bootstrap, seen))]
    doing.append(asyncio.create_task(watch(workers)))
    told = asyncio.create_task(ends.wait())
    await asyncio.wait([*doing, told], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    failed = [one for one in doing if one.done()]
    for one in (*doing, told):
        one.cancel()
    await asyncio.gather(*doing, told, return_exceptions=True)
    for one in failed:
        one.result()
    assert seen.is_enough or not failed, f"the workers have ended:\n{workers.log.read_text()}"


async def made(bootstrap: str) -> None:
    """Make the topics that are there before the workers."""
    async with Topics(bootstrap) as topics:
        for topic in ("trades", *OUTPUTS):
            await topics.create(topic, PARTITIONS)


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return 0, or 1 with a line that says what cannot be had."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, help="end after so long; by default on Ctrl+C")
    parser.add_argument("--records", type=int, help="end after so many records of results")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="ripple-demo-"))
    seen = Seen(options.records or sys.maxsize)

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it tells of each topic that is new

    def say(line: str) -> None:
        sys.stderr.write(f"demo: {line}\n")

    try:
        with ExitStack() as held:
            say("a broker of Kafka and a store of objects (fetched once, into the cache)")
            broker = held.enter_context(Broker(folder / "kafka"))
            store = held.enter_context(S3Proxy(folder / "s3"))
            store.make_bucket("demo")
            asyncio.run(made(broker.bootstrap))
            say(f"{WORKERS} workers, whose lines go to {folder}/cluster-up/server.log")
            workers = Workers(folder / "cluster-up", broker, store, PARTITIONS)
            held.enter_context(workers)
            held.callback(say, "ending in good order")
            with suppress(KeyboardInterrupt):
                asyncio.run(run(broker.bootstrap, workers, options.seconds, seen))
        say("all of it has ended")
    except MissingError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
