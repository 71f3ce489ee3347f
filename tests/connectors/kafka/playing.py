"""Readers of topics at a simulated broker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ripple.connectors.formats.csv import CsvValues
from ripple.connectors.inputs import Signal
from ripple.connectors.kafka import inputs as module
from ripple.connectors.kafka.inputs import KafkaInputs
from ripple.connectors.record_shape import RecordShape
from ripple.model.batch import Batch
from ripple.model.schema.types import Field, Int, Schema
from ripple.testing import SimCluster, SimWorld, on_cluster, repeat
from ripple.testing.sim.broker import SimBroker
from ripple.world.broker import Record, TopicPartition
from tests.run_by import run_by

VALUES = CsvValues(RecordShape(Schema("number", (Field("x", Int()),))))
A, B, C = (TopicPartition("in", number) for number in range(3))
ROWS = 10


@dataclass
class Port:
    """What a test gives another face: all else is the port's."""

    port: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.port, name)


class Present(Port):
    """A consumer of a broker that is never away, and says no more than it is asked."""

    losses, away_s = 0, 0.0

    @property
    def stable_ends(self) -> dict[TopicPartition, int]:
        return {}


@dataclass
class Reader(Port):
    """The simulated broker's port, with connections that cost nothing."""

    opened: int = 0

    def topic_id(self, topic: str) -> str:
        return ""

    def consumer(self, *, ahead: bool = True) -> Present:
        return Present(self.port.consumer(ahead=ahead))

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None:
        self.opened -= 1


def play(scene: Callable[[SimBroker, SimWorld], Awaitable[None]], partitions: int = 3) -> None:
    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        cluster.broker.create("in", partitions)

        async def main(world: SimWorld) -> None:
            await scene(cluster.broker, world)

        cluster.host("here").start(main)
        await cluster.host("here").ended()

    async def at_once(what: Callable[..., Any], *args: Any) -> Any:
        return what(*args)

    with pytest.MonkeyPatch.context() as patch:  # simulated time knows no threads
        patch.setattr(module.asyncio, "to_thread", at_once)
        error = repeat(scenario, seed=1).error
    if error is not None:
        raise error


played = run_by(play, "broker", "world")


def written(broker: SimBroker, place: TopicPartition, numbers: Sequence[int]) -> None:
    broker.append(place, [Record(None, b"%d" % number, 1000 + number) for number in numbers])


def inputs_of(world: SimWorld, count: int = 3, **how: Any) -> KafkaInputs:
    names = {f"in/{number}": TopicPartition("in", number) for number in range(count)}
    return KafkaInputs(Reader(world.broker), names, VALUES, ROWS, **how)


async def all_of(
    inputs: KafkaInputs, cut: dict[str, int], stop=None, rows: int = ROWS, looked=lambda *_: None
) -> list:
    """Return (input, first, next offset, numbers) of each batch up to the end.

    looked: is called with the input and the offsets of each.
    """
    await inputs.open(cut, rows, stop)
    found = []
    cut = dict(cut)
    while (entry := inputs.next(cut)) is not Signal.ENDED:
        if entry is Signal.WAITING:
            await inputs.more()
            continue
        name, batch = entry
        assert isinstance(batch, Batch)
        found.append((name, cut[name], batch.next_offset, batch.records.column(0).to_pylist()))
        assert batch.next_offset > cut[name]
        looked(name, batch.offsets().tolist())
        cut[name] = batch.next_offset
    return found
