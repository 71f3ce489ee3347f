"""A cluster over topics, its checkpoints in S3, while broker, store and workers fail at random.

    python -m tests.services.kafka_chaos --events 60 --trades 300000

Trades are written to a topic meanwhile. A reader of committed records must see, of each key, each
state once and in order; cut records must rise; and in the end the tables of all outputs must be
those of one process that nobody has disturbed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.services.kafka import Broker
from tests.services.kafka_kill_nine import ripple
from tests.services.kafka_topics import Topics
from tests.services.proxy import Proxy
from tests.services.s3 import S3Proxy
from tests.services.server import Server

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = ROOT / "examples" / "portfolio.py"
OUTPUTS = ("by-symbol", "total")
CUTS = ("portfolio.cuts", "portfolio.1.cuts")
PARTITIONS, WORKERS, SYMBOLS = 4, 3, 40
END_S = 300.0
AT_ONCE = 500


@dataclass(frozen=True)
class Plan:
    """What is to be done. pause_s: the longest between two events."""

    trades: int = 300_000
    events: int = 60
    seed: int = 0
    pause_s: float = 6.0


@dataclass
class Done:
    """What was done, and what was seen."""

    events: Counter[str] = field(default_factory=Counter)
    records: int = 0
    cuts: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        return f"{self.seconds:.0f} s: {what}; {self.records} records of {self.cuts} cuts: the same"


class Up(Server):
    """``ripple cluster up`` from the topic of trades; ``until_end`` lets it end at its end."""

    stop_s = 90.0

    def __init__(self, folder: Path, topics: str, environment: dict[str, str]) -> None:
        super().__init__(folder)
        self.until_end = False
        self._topics = topics
        self._environment = environment

    @property
    def variables(self) -> dict[str, str]:
        """Return what its processes are told beside."""
        return {**self._environment, "PYTHONPATH": str(ROOT)}

    def command(self) -> list[str]:
        """Return what to run."""
        sinks = [f"--sink={name}={self._topics}/{name}" for name in OUTPUTS]
        return ripple(
            *("cluster", "up", str(PIPELINE), "--source", f"{self._topics}/trades?key=symbol"),
            *(*sinks, "--dir", "cluster", "--store", "s3://chaos/state", "--free-ports"),
            *("--workers", str(WORKERS), *(["--until-end"] if self.until_end else [])),
        )

    def answers(self) -> bool:
        """Say that it does: what it makes is looked at in the end."""
        return True

    def workers(self) -> list[int]:
        """Return the processes of workers that are there now."""
        asked = ["ps", "-o", "pid=,args=", "--ppid", str(self.pid)]
        lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return [int(line.split()[0]) for line in lines.splitlines() if " -m worker " in line]


class Chaos:
    """All that may fail, and how."""

    def __init__(self, broker: Broker, store: S3Proxy, proxy: Proxy, up: Up, seed: int) -> None:
        self._broker, self._store, self._proxy, self._up = broker, store, proxy, up
        self._chance = random.Random(seed)
        self.acts: dict[str, Callable[[], Awaitable[None]]] = {
            "broker killed": lambda: self._killed(broker),
            "broker frozen": lambda: self._frozen(broker),
            "store killed": lambda: self._killed(store),
            "store frozen": lambda: self._frozen(store),
            "store slow": self._slow,
            "store erroring": self._erroring,
            "worker killed": self._worker_killed,
        }

    async def _killed(self, server: Server) -> None:
        server.kill()
        await asyncio.sleep(self._chance.uniform(0, 3))
        await asyncio.to_thread(server.start)

    async def _frozen(self, server: Server) -> None:
        server.pause()
        try:
            await asyncio.sleep(self._chance.uniform(0.5, 5))
        finally:
            server.resume()

    async def _slow(self) -> None:
        self._proxy.delay_s = 0.5
        await asyncio.sleep(self._chance.uniform(1, 4))
        self._proxy.delay_s = 0.0

    async def _erroring(self) -> None:
        self._proxy.answer(503, "SlowDown", self._chance.randint(1, 20))
        self._proxy.lose_replies(self._chance.randint(1, 5))
        await asyncio.sleep(self._chance.uniform(0, 2))

    async def _worker_killed(self) -> None:
        for pid in self._chance.sample(found, 1) if (found := self._up.workers()) else []:
            os.kill(pid, signal.SIGKILL)


async def write(bootstrap: str, count: int, seconds: float, chance: random.Random) -> None:
    """Write trades, spread over so many seconds; what a broker loses is sent again, once."""
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, request_timeout_ms=120_000
    ) as producer:
        began_s = time.monotonic()
        for first in range(0, count, AT_ONCE):
            sent = []
            for number in range(first, min(count, first + AT_ONCE)):
                row = {
                    "symbol": f"S{chance.randrange(SYMBOLS)}",
                    "price": chance.randrange(1, 100_000) / 100,
                    "size": chance.randint(1, 500),
                    "timestamp_ns": 1_700_000_000_000_000_000 + number * 1_000_000,
                    "venue": "X",
                }
                value = json.dumps(row).encode()
                sent.append(await producer.send("trades", value, row["symbol"].encode()))
            await asyncio.gather(*sent)
            ahead_s = seconds * first / count - (time.monotonic() - began_s)
            await asyncio.sleep(max(0.0, ahead_s))


async def written(bootstrap: str, count: int, seconds: float, seed: int) -> None:
    """Let a process of its own write, which nothing here can hold up."""
    text = (
        "import asyncio, random; from tests.services.kafka_chaos import write; "
        f"asyncio.run(write({bootstrap!r}, {count}, {seconds}, random.Random({seed})))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", text, cwd=ROOT, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert await process.wait() == 0, "the trades were not written"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


Records = dict[int, list[tuple[bytes, bytes | None]]]


async def read(bootstrap: str, topic: str) -> Records:
    """Return what a reader of committed records sees, by partition."""
    async with AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False
    ) as consumer:
        async with Topics(bootstrap) as topics:
            (told,) = await topics.described(topic)
        places = [TopicPartition(topic, number) for number in range(told)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        found: Records = {place.partition: [] for place in places}
        for place in places:
            while await consumer.position(place) < ends[place]:
                for records in (await consumer.getmany(place, timeout_ms=1000)).values():
                    found[place.partition] += [(one.key, one.value) for one in records]
        return found


def table(records: Records) -> dict[bytes, Any]:
    """Return the rows that are left."""
    found: dict[bytes, Any] = {}
    for part in records.values():
        for key, value in part:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = json.loads(value)
    return found


def check_order(records: Records) -> None:
    """Raise unless each key's turnover grows with each of its records: once, and in order."""
    newest: dict[bytes, float] = {}
    for part in records.values():
        for key, value in part:
            turnover = json.loads(value or b"{}")["turnover"]
            assert turnover > newest.get(key, -1.0), f"{key!r}: {turnover} behind {newest[key]}"
            newest[key] = turnover


def check_cuts(records: Records) -> int:
    """Raise unless cut records rise, by partition; return how many there are."""
    for part in records.values():
        cuts = [json.loads(value or b"") for _, value in part]
        numbers = [(cut["epoch"], cut["number"]) for cut in cuts]
        assert numbers == sorted(set(numbers)), numbers
        reached = [sum(sum(one["cut"].values()) for one in cut["outputs"].values()) for cut in cuts]
        assert reached == sorted(reached), reached
    return sum(map(len, records.values()))


async def disturb(plan: Plan, folder: Path, say: Callable[[str], None]) -> Done:
    """Do it all. Raises AssertionError, which says what is not as it must be."""
    began_s, done, chance = time.monotonic(), Done(), random.Random(plan.seed)
    with Broker(folder / "kafka") as broker, S3Proxy(folder / "s3") as store:
        await asyncio.to_thread(store.make_bucket, "chaos")
        async with Topics(broker.bootstrap) as topics:
            await topics.create("trades", PARTITIONS)
        async with Proxy(f"127.0.0.1:{store.port}") as proxy:
            given = {**store.environment, "RIPPLE_S3_ENDPOINT": f"http://{proxy.address}"}
            up = Up(folder / "up", f"kafka:{broker.bootstrap}", given)
            writing: asyncio.Task[None] | None = None
            try:
                up.start()
                chaos = Chaos(broker, store, proxy, up, plan.seed)
                seconds = plan.events * plan.pause_s / 2
                writing = asyncio.create_task(
                    written(broker.bootstrap, plan.trades, seconds, plan.seed)
                )
                await asyncio.sleep(5.0)
                names = list(chaos.acts)
                for number in range(plan.events):
                    # Each of them in turn first, then any.
                    name = names[number] if number < len(names) else chance.choice(names)
                    say(name)
                    await chaos.acts[name]()
                    done.events[name] += 1
                    await asyncio.sleep(chance.uniform(0, plan.pause_s))
                    assert up.is_running, "the cluster has ended:\n" + up.log.read_text()[-6000:]
                await writing
                await asyncio.to_thread(up.stop)
                up.until_end = True
                up.start()
                say("all is written")
                ends = time.monotonic() + END_S
                while up.is_running:
                    assert time.monotonic() < ends, up.log.read_text()[-6000:]
                    await asyncio.sleep(0.2)
            finally:
                if writing is not None:
                    writing.cancel()
                await asyncio.to_thread(up.stop)
        await asyncio.to_thread(_alone, folder, broker.bootstrap)
        for output in OUTPUTS:
            made = await read(broker.bootstrap, output)
            alone = await read(broker.bootstrap, f"alone-{output}")
            check_order(made)
            assert table(made) == table(alone), output
            assert made
            done.records += sum(map(len, made.values()))
        done.cuts = sum([check_cuts(await read(broker.bootstrap, topic)) for topic in CUTS])
    done.seconds = time.monotonic() - began_s
    return done


def _alone(folder: Path, bootstrap: str) -> None:
    """Let one process make the same of the topic."""
    text = PIPELINE.read_text()
    (folder / "alone.py").write_text(text.replace('Pipeline("portfolio")', 'Pipeline("alone")'))
    sinks = [f"--sink={name}=kafka:{bootstrap}/alone-{name}" for name in OUTPUTS]
    given = ["--source", f"kafka:{bootstrap}/trades", *sinks, "--checkpoint-dir", "alone-state"]
    ended = subprocess.run(
        ripple("run", "alone.py", *given),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def main() -> int:
    """Run as a command; return 0 if nobody who reads has noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("trades", 300_000), ("events", 60), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    plan = Plan(options.trades, options.events, options.seed)

    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    with tempfile.TemporaryDirectory(prefix="ripple-chaos-") as folder:
        say(str(asyncio.run(disturb(plan, Path(folder), say))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
