"""Clusters at work, and what their owners have said."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ripple.control.assignment import Share, worker_of
from ripple.core.events import Event, Restored
from ripple.testing import ClusterTrial, SimCluster, on_cluster, repeat
from ripple.testing.cluster.scene import ClusterScene, Shape
from tests.run_by import run_by

Story = Callable[["Seen"], Awaitable[None]]


class Seen:
    """A cluster at work, and what its owners have said: when, where, of which epoch."""

    def __init__(self, cluster: SimCluster, trial: ClusterTrial, shape: Shape) -> None:
        self.cluster = cluster
        self.said: list[tuple[float, str, int, int | None, Event]] = []
        self.scene = ClusterScene(cluster, trial.truth, shape)
        on_event = self.scene.watch.on_event

        def note(process: Any, partition: int, epoch: int | None, event: Event) -> None:
            self.said.append((cluster.loop.time(), process.name, partition, epoch, event))
            on_event(process, partition, epoch, event)

        self.scene.watch.on_event = note  # type: ignore[method-assign]
        for worker in self.scene.workers.values():
            worker.on_event = note

    @property
    def shares(self) -> tuple[Share, ...]:
        newest = self.scene.newest
        assert newest is not None
        return newest.shares

    def owner(self, partition: int) -> str:
        owner = self.shares[partition].owner
        assert owner is not None
        return worker_of(owner)

    async def until(self, is_so: Callable[[], bool], why: str, seconds: float = 300) -> None:
        began = self.cluster.loop.time()
        while not is_so():
            assert self.cluster.loop.time() - began < seconds, why
            await asyncio.sleep(0.01)

    async def owned(self) -> None:
        """Wait until everything is owned by somebody who is live."""
        live = "are not live"
        await self.until(
            lambda: (
                self.scene.newest is not None
                and "live" not in (self.scene.problem or "")
                and "is of" not in (self.scene.problem or "")
            ),
            live,
        )

    def restored(self, partition: int) -> list[tuple[float, int | None]]:
        """Return when owners of a partition came to go on, and their epochs."""
        return [
            (at, epoch)
            for at, _, number, epoch, event in self.said
            if number == partition and isinstance(event, Restored)
        ]


def run_story(
    story: Story,
    trial: ClusterTrial,
    *,
    seed: int = 0,
    without: tuple[str, ...] = (),
    **shape: Any,
) -> None:
    """Let a story happen to a cluster, which then comes to what one process makes."""

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        seen = Seen(cluster, trial, Shape(**{"workers": 2, "coordinators": 1, **shape}))
        seen.scene.start()
        await seen.owned()
        cluster.disturb()
        await story(seen)
        seen.scene.heal()
        await seen.scene.come_to_rest()
        await trial.compare(seen.scene)

    done = repeat(scenario, seed=seed, without=without)
    if done.error is not None:
        raise done.error


def told(trial: ClusterTrial, **shape: Any) -> Callable[..., Any]:
    return run_by(lambda story: run_story(story, trial, **shape), "seen")
