"""A cluster over topics, its checkpoints in S3, while broker, store and workers fail at random.

    python -m tests.services.kafka_chaos --events 60 --trades 300000 --brokers 3

Of three brokers each has a copy of everything, and others lead once one is killed or frozen. Trades
are written to a topic meanwhile. A reader of committed records must see, of each key, each state
once and in order; cut records must rise; and in the end the tables of all outputs must be those of
one process that nobody has disturbed.
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
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.client import AIOKafkaClient

from tests.patience import PATIENCE_S
from tests.services.kafka import Broker, Brokers
from tests.services.kafka_kill_nine import ripple
from tests.services.kafka_reader import Row, check_cuts, check_order, read, table
from tests.services.kafka_topics import Topics
from tests.services.proxy import Proxy
from tests.services.s3 import S3Proxy
from tests.services.server import Server

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS, WORKERS, SYMBOLS = 4, 3, 40
NOBODY = -1
AT_ONCE = 500


@dataclass(frozen=True)
class Story:
    """What is computed, and which topics of cut records that has."""

    name: str
    pipeline: Path
    outputs: tuple[str, ...]
    cuts: tuple[str, ...]


PORTFOLIO = Story(
    "portfolio",
    ROOT / "examples" / "portfolio.py",
    ("by-symbol", "total"),
    ("portfolio.cuts", "portfolio.1.cuts"),
)
# Where records change partition through topics.
VENUES = Story(
    "venues",
    ROOT / "tests" / "services" / "pipeline_venues.py",
    ("by-second", "ever"),
    ("venues.records.cuts", "venues.cuts", "venues.1.cuts"),
)
STORIES = {story.name: story for story in (PORTFOLIO, VENUES)}


@dataclass(frozen=True)
class Plan:
    """What is to be done. pause_s: the longest between two events. brokers: how many there are."""

    trades: int = 300_000
    events: int = 60
    seed: int = 0
    pause_s: float = 6.0
    brokers: int = 1
    story: Story = PORTFOLIO


@dataclass
class Done:
    """What was done, and what was seen. moves: of partitions, from one leader to another."""

    events: Counter[str] = field(default_factory=Counter)
    records: int = 0
    cuts: int = 0
    moves: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        what = ", ".join(f"{count} {name}" for name, count in sorted(self.events.items()))
        seen = f"{self.records} records of {self.cuts} cuts: the same"
        return f"{self.seconds:.0f} s: {what}; {self.moves} leaders moved; {seen}"


class Up(Server):
    """``ripple cluster up`` from the topic of trades; ``until_end`` lets it end at its end."""

    def __init__(
        self, folder: Path, story: Story, topics: str, environment: dict[str, str]
    ) -> None:
        super().__init__(folder)
        self.until_end = False
        self._story = story
        self._topics = topics
        self._environment = environment

    @property
    def variables(self) -> dict[str, str]:
        """Return what its processes are told beside."""
        return {**self._environment, "PYTHONPATH": str(ROOT)}

    def command(self) -> list[str]:
        """Return what to run."""
        sinks = [f"--sink={name}={self._topics}/{name}" for name in self._story.outputs]
        source = f"{self._topics}/trades?key=symbol"
        return ripple(
            *("cluster", "up", str(self._story.pipeline), "--source", source),
            *(*sinks, "--dir", "cluster", "--store", "s3://chaos/state", "--free-ports"),
            *("--workers", str(WORKERS), *(["--until-end"] if self.until_end else [])),
        )

    def answers(self) -> bool:
        """Say that it does: what it makes is looked at in the end."""
        return True

    async def is_at_work(self) -> None:
        """Wait until all workers have joined: one that cannot begin is a user's error."""
        async with asyncio.timeout(PATIENCE_S):
            while self.log.read_text().count(" has joined, as") < WORKERS:
                assert self.is_running, self.log.read_text()[-6000:]
                await asyncio.sleep(0.2)

    def workers(self) -> list[int]:
        """Return the processes of workers that are there now."""
        asked = ["ps", "-o", "pid=,args=", "--ppid", str(self.pid)]
        lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return [int(line.split()[0]) for line in lines.splitlines() if " -m worker " in line]


class Chaos:
    """All that may fail, and how."""

    def __init__(self, brokers: Brokers, store: S3Proxy, proxy: Proxy, up: Up, seed: int) -> None:
        self._brokers, self._store, self._proxy, self._up = brokers, store, proxy, up
        self._chance = random.Random(seed)
        self.moves = 0
        self.acts: dict[str, Callable[[], Awaitable[None]]] = {
            "broker killed": lambda: self._killed(self._any_broker()),
            "broker frozen": lambda: self._frozen(self._any_broker()),
            "store killed": lambda: self._killed(store),
            "store frozen": lambda: self._frozen(store),
            "store slow": self._slow,
            "store erroring": self._erroring,
            "worker killed": self._worker_killed,
        }
        if len(brokers.brokers) > 1:
            self.acts["leader killed"] = self._leader_killed
            self.acts["leader frozen"] = self._leader_frozen

    def _any_broker(self) -> Broker:
        return self._chance.choice(self._brokers.brokers)

    async def _leader_killed(self) -> None:
        led = await leaders(self._brokers.bootstrap, "trades")
        await self._killed(self._leader(led), until=lambda: self._moved(led))

    async def _leader_frozen(self) -> None:
        """Freeze a leader until others lead; it comes back believing that it does."""
        led = await leaders(self._brokers.bootstrap, "trades")
        broker = self._leader(led)
        broker.pause()
        try:
            await self._moved(led)
        finally:
            broker.resume()

    def _leader(self, led: Mapping[int, int]) -> Broker:
        return self._brokers.brokers[led[0] - 1]

    async def _moved(self, before: Mapping[int, int]) -> None:
        """Wait until others lead what the first one's leader did. Raises TimeoutError."""
        former = before[0]
        others = [one for one in self._brokers.brokers if one is not self._leader(before)]
        bootstrap = ",".join(broker.bootstrap for broker in others)
        async with asyncio.timeout(PATIENCE_S):
            while {former, NOBODY} & set((await leaders(bootstrap, "trades")).values()):
                await asyncio.sleep(0.2)
        self.moves += sum(leader == former for leader in before.values())

    async def _killed(
        self, server: Server, until: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        server.kill()
        if until is not None:
            await until()
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
                    "venue": f"V{number % 7}",
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


async def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """Return who leads each partition of a topic, by number; -1 where nobody does."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    await client.bootstrap()
    try:
        await client.set_topics([topic])
        numbers = client.cluster.partitions_for_topic(topic) or ()
        return {
            number: client.cluster.leader_for_partition(KafkaPartition(topic, number))
            for number in sorted(numbers)
        }
    finally:
        await client.close()


def grows(before: Row | None, row: Row) -> bool:
    """Return whether a key's turnover has grown, as it does with each trade."""
    return before is None or row["turnover"] > before["turnover"]


async def disturb(plan: Plan, folder: Path, say: Callable[[str], None]) -> Done:
    """Do it all. Raises AssertionError, which says what is not as it must be."""
    began_s, done, chance = time.monotonic(), Done(), random.Random(plan.seed)
    brokers = Brokers(folder / "kafka", plan.brokers)
    with brokers, S3Proxy(folder / "s3") as store:
        await asyncio.to_thread(store.make_bucket, "chaos")
        async with Topics(brokers.bootstrap) as topics:
            await topics.create("trades", PARTITIONS, copies=plan.brokers)
        async with Proxy(f"127.0.0.1:{store.port}") as proxy:
            given = {**store.environment, "RIPPLE_S3_ENDPOINT": f"http://{proxy.address}"}
            up = Up(folder / "up", plan.story, f"kafka:{brokers.bootstrap}", given)
            writing: asyncio.Task[None] | None = None
            try:
                up.start()
                chaos = Chaos(brokers, store, proxy, up, plan.seed)
                seconds = plan.events * plan.pause_s / 2
                writing = asyncio.create_task(
                    written(brokers.bootstrap, plan.trades, seconds, plan.seed)
                )
                await up.is_at_work()
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
                ends = time.monotonic() + PATIENCE_S
                while up.is_running:
                    assert time.monotonic() < ends, up.log.read_text()[-6000:]
                    await asyncio.sleep(0.2)
            finally:
                if writing is not None:
                    writing.cancel()
                await asyncio.to_thread(up.stop)
        await asyncio.to_thread(_alone, plan.story, folder, brokers.bootstrap)
        for output in plan.story.outputs:
            made = await read(brokers.bootstrap, output)
            alone = await read(brokers.bootstrap, f"alone-{output}")
            check_order(output, made, grows)
            assert table(made) == table(alone), output
            assert made
            done.records += sum(map(len, made.values()))
        done.moves = chaos.moves
        for topic in plan.story.cuts:
            done.cuts += len(check_cuts(await read(brokers.bootstrap, topic)))
    done.seconds = time.monotonic() - began_s
    return done


def _alone(story: Story, folder: Path, bootstrap: str) -> None:
    """Let one process make the same of the topic."""
    text = story.pipeline.read_text()
    (folder / "alone.py").write_text(text.replace(f'Pipeline("{story.name}")', 'Pipeline("alone")'))
    sinks = [f"--sink={name}=kafka:{bootstrap}/alone-{name}" for name in story.outputs]
    given = ["--source", f"kafka:{bootstrap}/trades", *sinks, "--checkpoint-dir", "alone-state"]
    ended = subprocess.run(
        ripple("run", "alone.py", *given),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def main() -> int:
    """Run as a command; return 0 if nobody who reads has noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("trades", 300_000), ("events", 60), ("seed", 0), ("brokers", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--story", choices=STORIES, default="portfolio")
    options = parser.parse_args()
    story = STORIES[options.story]
    plan = Plan(options.trades, options.events, options.seed, brokers=options.brokers, story=story)

    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    with tempfile.TemporaryDirectory(prefix="ripple-chaos-") as folder:
        say(str(asyncio.run(disturb(plan, Path(folder), say))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
