"""The dead letters of a partition as one owner after the other has them, in a store on a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

from ripple.connectors.letter import Letter
from ripple.storage.store import DiskStore
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.log import DeadLetterLog, letters_in
from ripple.testing import SimWorld
from ripple.world import Clock, Disk, LiveClock, LiveRandom, Random

_EPOCHS = count(1)
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Owned(NamedTuple):
    """Letters, and how they get into the store."""

    log: DeadLetterLog
    flush: Callable[[], None]
    place: HintStore


@contextmanager
def owned(
    disk: Disk,
    pipeline: str,
    partition: int = 0,
    *,
    version: str = "v1",
    clock: Clock | None = None,
    random: Random | None = None,
    run: Run = asyncio.run,
    guards: Callable[[str], bool] = lambda _: True,
) -> Iterator[Owned]:
    """Give the letters to their next owner; at the end what was written is in the store."""
    store = DiskStore(disk, random or LiveRandom(), guards=guards)
    place = HintStore(store, pipeline, partition, random=random or LiveRandom(), guards=guards)
    run(place.open(next(_EPOCHS)))
    log = DeadLetterLog(
        place.letters(),
        pipeline=pipeline,
        version=version,
        clock=clock or LiveClock(),
        guards=guards,
    )
    yield Owned(log, lambda: run(place.flush()), place)
    log.sync()  # as before the last commit
    run(place.close())


def kept(
    disk: Disk, pipeline: str, *, run: Run = asyncio.run, superseded: bool = False
) -> list[Letter]:
    """Return the letters of partition 0 that count."""
    found = run(letters_in(DiskStore(disk), pipeline, superseded=superseded))
    assert not found.damage
    letters: list[Letter] = found.letters
    return letters


def simulated(world: SimWorld) -> dict[str, Any]:
    """Return what ``owned`` takes to be in a simulated world."""
    return {
        "clock": world.clock,
        "random": world.random,
        "run": world.loop.run_until_complete,
        "guards": world.guards,
    }
