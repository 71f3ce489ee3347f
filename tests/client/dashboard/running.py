"""A cluster that people have started with a dashboard, over trades that keep coming."""

from __future__ import annotations

import math
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ripple.storage.log import Topic
from ripple.storage.log.body import columns_of
from ripple.storage.log.router import TopicWriter
from ripple.world import LiveClock, LiveDisk
from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.cluster import ripple
from tests.cluster.up import Started
from tests.patience import PATIENCE_S

PIPELINE = Path(__file__).parent / "market.py"
OUTPUTS = {"vwap": "vwap", "venue-volume": "venues", "turnover": "turnover"}
PARTITIONS = 8
SYMBOLS = [f"{a}{b}{c}" for a in "ABCDEGHN" for b in "AFMRT" for c in "CLPX"]
VENUES = ("ARCA", "BATS", "IEX", "NSDQ", "NYSE")


class Feed:
    """Appends trades until it is told to end: some late, some that no pipeline takes."""

    def __init__(self, topic: Path, rate: float, symbols: Sequence[str] = SYMBOLS) -> None:
        self._topic = topic
        self._symbols = symbols
        self._rate = rate
        self._chance = random.Random(1)
        self._prices = {name: self._chance.uniform(20, 400) for name in symbols}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        topic = Topic.open(LiveDisk(str(self._topic.parent)), self._topic.name)
        schema = columns_of(topic.schema)
        with TopicWriter(topic, LiveClock(), holder="feed") as writer:
            while not self._ending.wait(0.1):
                swing = 1 + 0.4 * math.sin(time.monotonic() / 7)
                rows = [self._trade() for _ in range(round(self._rate / 10 * swing))]
                columns = dict(zip(schema.names, zip(*rows, strict=True), strict=True))
                for batch in pa.table(columns, schema=schema).to_batches():
                    writer.append(batch)
                writer.sync()

    def _trade(self) -> tuple[str, float, int, int, str]:
        chance = self._chance
        symbol = chance.choice(self._symbols[:60] if chance.random() < 0.7 else self._symbols)
        self._prices[symbol] *= 1 + chance.gauss(0, 0.0004)
        size = -5 if chance.random() < 0.0007 else chance.choice((5, 10, 50, 100, 200, 500))
        price = math.inf if chance.random() < 0.0002 else round(self._prices[symbol], 2)
        late_ns = chance.randrange(10**11) if chance.random() < 0.0004 else 0
        if chance.random() < 0.0002:
            late_ns = -(10**15)  # of a clock that is days ahead
        return symbol, price, size, time.time_ns() - late_ns, chance.choice(VENUES)


class Running(Started):
    """The cluster."""

    def __init__(
        self,
        folder: Path,
        rate: float,
        *,
        pipeline: Path = PIPELINE,
        outputs: Mapping[str, str] = OUTPUTS,
        symbols: Sequence[str] = SYMBOLS,
    ) -> None:
        ripple(
            "log",
            "create",
            "--schema",
            "trade",
            folder / "trades",
            "--partitions",
            PARTITIONS,
            "--key",
            "symbol",
        )
        self._rate = rate
        self._symbols = symbols
        self._trades = folder / "trades"
        self.begin_feed()
        self._said = folder / "said"
        sinks = (f"{name}=log:{folder / topic}" for name, topic in outputs.items())
        with self._said.open("w") as said:
            self.process = subprocess.Popen(
                [
                    *(*RIPPLE, "cluster", "up", str(pipeline), "--free-ports"),
                    *("--source", f"log:{folder / 'trades'}", "--dir", str(folder / "state")),
                    *(flag for sink in sinks for flag in ("--sink", sink)),
                    *("--dashboard", "0", "--dashboard-allow-commands"),
                ],
                cwd=ROOT,
                stderr=said,
            )

    def begin_feed(self) -> None:
        """Let trades come."""
        self.feed = Feed(self._trades, self._rate, self._symbols)
        self.feed.start()

    def kill(self, name: str) -> None:
        """Kill a process; it is started again."""
        number = re.findall(rf"{name} +\| process (\d+)", self.said)[-1]
        subprocess.run(["kill", "-9", number], check=True)

    def engine_of(self, name: str) -> int:
        """Return the process id of a worker's first engine process."""
        number = re.findall(rf"{name} +\| process (\d+)", self.said)[-1]
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        return int(children[0])


@contextmanager
def running(folder: Path, rate: float = 1000.0, **more: Any) -> Iterator[tuple[Running, str]]:
    """Start one; yield it and where its dashboard is."""
    cluster = Running(folder, rate, **more)
    try:
        url = cluster.says(r"the dashboard at (http://\S+)")[1]
        yield cluster, url
    finally:
        cluster.feed.end()
        cluster.process.send_signal(signal.SIGINT)
        try:
            cluster.process.wait(PATIENCE_S)
        finally:
            cluster.process.kill()
