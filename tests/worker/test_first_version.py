"""A cluster whose store was lost begins above the epochs that its outputs know."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

import ripple as rp
from coordinator.decisions.limits import Limits
from coordinator.decisions.planning import Facts, next_version
from ripple.connectors.connector import Part
from ripple.connectors.locate import open_sink
from ripple.control.assignment import AssignmentChain, Candidate, Stage, empty, epoch_of
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import PartitionWriter
from ripple.storage.store import MemoryStore
from ripple.task.repartition.topics import lanes_into
from ripple.world import live_world
from tests.control.assignment.examples import CODE
from worker.first_version import begin_above

if TYPE_CHECKING:
    from pathlib import Path


@rp.record(version=1)
class Event:
    k: str
    n: int


PLAN = (
    rp.Pipeline("p")
    .source("s", Event)
    .partition("by", key="k")
    .fold("f", n=rp.sum("n"))
    .partition("all", key=())
    .fold("g", n=rp.sum("n"))
    .sink("o", of="f")
).plan()


def an_output(folder: Path, store: MemoryStore) -> None:
    place = f"log:{folder}/o"
    open_sink(place, PLAN, "o", continues=True, epoch=epoch_of(3, 2), part=Part(1, 2)).close()


def a_checkpoint(folder: Path, store: MemoryStore) -> None:
    world = live_world(folder)
    owner = Checkpoints(store, "p", 1).claim(world.clock, world.random, epoch=epoch_of(3, 0))
    asyncio.run(owner)


def a_lane(folder: Path, _: MemoryStore) -> None:
    world = live_world(folder)
    topic = lanes_into(PLAN, 1, 2).open(world.disk)
    PartitionWriter(topic, 1, world.clock, epoch=epoch_of(3, 7)).close()


def nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("what", "before"), [(an_output, 3), (a_checkpoint, 3), (a_lane, 3), (nothing, 0)]
)
def test_first_version_is_above_owners_that_are_known(
    what: object, before: int, tmp_path: Path
) -> None:
    store, said = MemoryStore(), []
    assert callable(what)
    what(tmp_path, store)

    async def begin() -> int:
        chain = AssignmentChain(store)
        for _ in range(2):  # two workers, and once more after a restart
            await begin_above(
                chain,
                PLAN,
                {"o": f"log:{tmp_path}/o"},
                store=store,
                world=live_world(tmp_path),
                home=None,
                stopping=asyncio.Event(),
                say=said.append,
            )
        return (await chain.newest()).newest_number

    assert asyncio.run(begin()) == before
    assert len(said) == bool(before)


def test_version_that_follows_none_gives_epochs_above_those_before() -> None:
    joining = Candidate(id="w", nonce="n", code=CODE)
    limits = Limits(partitions=2)
    first = next_version(empty([Stage("main", 2)]), 3, Facts(joining=(joining,)), limits)
    assert first is not None
    assert first.version == 4
    assert {share.since for share in first.shares} == {4}
    assert first.cause.startswith("no version before 4 can be read")
