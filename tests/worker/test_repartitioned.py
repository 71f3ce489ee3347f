"""Clusters with repartitioned sources: senders and receivers die, and move by plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.decisions import commands as cmd
from ripple.task.repartition.lane import Section
from ripple.task.repartition.reading import LogReading
from tests.worker import trials
from tests.worker.seen import Seen, Story, run_story

SENDER, RECEIVER = 0, -1  # the stages in front come first


def dies(which: int) -> Story:
    """Return a story in which an owner is killed while its lanes have more to come."""

    async def story(seen: Seen) -> None:
        await asyncio.sleep(2)
        number = which % len(seen.shares)
        name, restored = seen.owner(number), len(seen.restored(number))
        seen.cluster.host(name).kill()
        await seen.until(lambda: len(seen.restored(number)) > restored, "nobody goes on")
        seen.scene.start(name)

    return story


def moves(which: int) -> Story:
    """Return a story in which a partition moves by plan."""

    async def story(seen: Seen) -> None:
        number = which % len(seen.shares)
        former = seen.owner(number)
        (other,) = (name for name in seen.scene.workers if name != former)
        seen.scene.command(cmd.Move(number, other, "by hand"))
        await seen.until(lambda: seen.shares[number].owner == f"{other}/0", "it does not move")

    return story


def test_cut_lane_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a lane has lost are missed at the next commit of their receiver."""
    read = LogReading.next

    def cut(self: LogReading, lane: int) -> Section | None:
        section = read(self, lane)
        if section is None or not section.rows.num_rows:
            return section
        return replace(section, rows=section.rows.slice(0, section.rows.num_rows - 1))

    monkeypatch.setattr(LogReading, "next", cut)
    with pytest.raises(AssertionError, match="I1: partition"):
        run_story(dies(SENDER), trials.both_moved, seed=1, partitions=2)


@pytest.mark.parametrize("which", [SENDER, RECEIVER])
@pytest.mark.parametrize("happens", [dies, pytest.param(moves, marks=pytest.mark.services)])
def test_result_is_that_of_one_process(happens: Callable[[int], Story], which: int) -> None:
    trial = trials.both_moved if happens is dies else trials.quotes_moved
    run_story(happens(which), trial, seed=1, partitions=2, alongside=True)
