"""Owners of partitions that commit all the time and replace each other, while brokers are killed.

    python -m tests.services.kafka_owners --kills 30 --brokers 3

Nothing but the group of outputs is at work, so that each kill strikes a transaction of every
partition in some state: a chaos of a whole cluster has one of those in minutes. A reader of
committed records must see each row of each partition once and in order.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ripple.connectors.connector import Part
from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.kafka.settings import Security
from ripple.core.errors import OutputError
from ripple.storage.fenced import FencedError
from ripple.world.broker import TopicPartition
from tests.patience import PATIENCE_S
from tests.services.kafka import Brokers
from tests.services.kafka_numbers import commit_rows, group_of, opened
from tests.services.kafka_reader import Row, check_cuts, check_order, read, table
from tests.services.kafka_topics import Topics

PARTITIONS, KEYS, OUTPUT_PARTITIONS = 6, 20, 4
OWNER_S_MAX = 15.0


@dataclass
class Owners:
    """The owners of all partitions, one after the other, and sometimes two at a time."""

    bootstrap: str
    chance: random.Random
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    done: Counter[str] = field(default_factory=Counter)

    async def follow_each_other(self, part: int) -> None:
        """Let a partition be owned until ``stop``; the last owner ends with its last commit."""
        lives: set[asyncio.Task[None]] = set()
        last: asyncio.Task[None] | None = None
        epoch = 0
        while not self.stop.is_set():
            epoch += 1
            begun = asyncio.Event()
            if last is not None and self.chance.random() < 0.5:
                last.cancel()
            last = asyncio.create_task(self._own(part, epoch, begun))
            lives.add(last)
            await begun.wait()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), self.chance.uniform(0.5, OWNER_S_MAX))
        async with asyncio.timeout(PATIENCE_S):
            for result in await asyncio.gather(*lives, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result

    async def _own(self, part: int, epoch: int, begun: asyncio.Event) -> None:
        broker = KafkaBroker(self.bootstrap, Security())
        whose = GroupPartition("owned", Part(part, PARTITIONS))
        group = group_of(broker, whose, "out", TopicPartition("numbers", part))
        keys = range(part * KEYS, (part + 1) * KEYS)
        try:
            number = await self._begin(group, epoch)
            begun.set()
            while not self.stop.is_set():
                number += 1
                await commit_rows(group, number, keys)
                self.done["commits"] += 1
                await asyncio.sleep(self.chance.choice((0, 0.005, 0.02, 0.1)))
        except FencedError:
            self.done["fenced"] += 1
        finally:
            begun.set()
            await group.close()

    async def _begin(self, group: KafkaGroup, epoch: int) -> int:
        """Return how many commits there are; brokers that are away are waited for."""
        while True:
            with suppress(OutputError):  # after 15 s of patience
                found = await opened(group, epoch)
                self.done["owners"] += 1
                return found


async def strike(brokers: Brokers, kills: int, owners: Owners, say: Callable[[str], None]) -> None:
    """Kill a broker so many times, and freeze one now and then."""
    chance, killed = owners.chance, 0
    longest_s = 1 if len(brokers.brokers) == 1 else 4  # until others lead
    while killed < kills:
        await asyncio.sleep(chance.uniform(0.5, 4))
        broker = chance.choice(brokers.brokers)
        if chance.random() < 0.7:
            killed += 1
            broker.kill()
            await asyncio.sleep(chance.choice((0, 0.3, longest_s)))
            await asyncio.to_thread(broker.start)
            say(f"{killed} kills: {dict(owners.done)}")
        else:
            owners.done["freezes"] += 1
            broker.pause()
            await asyncio.sleep(chance.choice((0.5, 2, 2 * longest_s)))
            broker.resume()


def counts(before: Row | None, row: Row) -> bool:
    """Return whether a row is of the commit behind that of the row before."""
    return bool(row["count"] == 1 + (0 if before is None else before["count"]))


async def check(bootstrap: str) -> tuple[int, int]:
    """Raise AssertionError unless all is there once; return how many records and cuts there are."""
    made = await read(bootstrap, "out")
    check_order("out", made, counts)
    assert len(table(made)) == PARTITIONS * KEYS
    cuts = check_cuts(await read(bootstrap, "owned.cuts"))
    return sum(map(len, made.values())), len(cuts)


async def disturb(
    folder: Path, count: int, kills: int, seed: int, say: Callable[[str], None]
) -> str:
    """Do it all. Raises AssertionError, which says what is not as it must be."""
    with Brokers(folder, count) as brokers:
        async with Topics(brokers.bootstrap) as topics:
            await topics.create("numbers", PARTITIONS, copies=count)
            await topics.create("out", OUTPUT_PARTITIONS, copies=count)
        owners = Owners(brokers.bootstrap, random.Random(seed))
        lives = [asyncio.create_task(owners.follow_each_other(part)) for part in range(PARTITIONS)]
        await strike(brokers, kills, owners, say)
        owners.stop.set()
        await asyncio.gather(*lives)
        records, cuts = await check(brokers.bootstrap)
    return f"{dict(owners.done)}; {records} records of {cuts} cuts: each once"


def main() -> int:
    """Run as a command; return 0 if nobody who reads has noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, default in (("kills", 30), ("seed", 0), ("brokers", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()

    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    with tempfile.TemporaryDirectory(prefix="ripple-owners-") as folder:
        done = disturb(Path(folder), options.brokers, options.kills, options.seed, say)
        say(asyncio.run(done))
    return 0


if __name__ == "__main__":
    sys.exit(main())
