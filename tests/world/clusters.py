"""Small programs for simulated machines, and a way to run a scenario of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ripple.testing import Run, SimCluster, SimWorld, on_cluster, repeat, sim_world
from ripple.world import Stream
from tests.run_by import run_by

HOUR = 3600.0
Main = Callable[[SimWorld], Awaitable[Any]]


def simulate(scenario: Any, seed: int = 0, plan: str = "") -> Run:
    """Run a scenario of a cluster; raise its error."""
    done = repeat(on_cluster(scenario), seed=seed, plan=plan)
    if done.error is not None:
        raise done.error
    return done


def run_in_world(test: Callable[[SimWorld], Awaitable[None]]) -> None:
    world = sim_world()
    world.loop.run_until_complete(test(world))


simulated = run_by(simulate, "cluster", "seed")
in_sim_world = run_by(run_in_world, "world")


def serving(address: str, serve: Callable[[Stream], Awaitable[None]]) -> Main:
    """Return a program that serves connections for ever."""

    async def main(world: SimWorld) -> None:
        await world.network.listen(address, serve)
        await asyncio.Event().wait()

    return main


async def idle(world: SimWorld) -> None:
    """Do nothing, for ever."""
    await asyncio.Event().wait()


async def echo(stream: Stream) -> None:
    while data := await stream.read(1000):
        await stream.write(data)


class Ends:
    """Two machines, ``a`` connected to ``b``, whose ends the scenario holds itself."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.a = cluster.host("a")
        self.b = cluster.host("b")
        self.at_a: Stream
        self.at_b: Stream

    async def connect(self) -> None:
        accepted: asyncio.Future[Stream] = asyncio.get_running_loop().create_future()

        async def serve(stream: Stream) -> None:
            if not accepted.done():
                accepted.set_result(stream)
            await asyncio.Event().wait()

        self.b.start(serving("b:9000", serve))
        self.a.start(idle)
        await asyncio.sleep(1)
        self.at_a = await self.in_a(self.a.world.network.connect("b:9000"))
        self.at_b = await accepted

    async def in_a(self, doing: Any, seconds: float = HOUR) -> Any:
        return await on(self.a, doing, seconds)

    async def in_b(self, doing: Any, seconds: float = HOUR) -> Any:
        return await on(self.b, doing, seconds)


async def on(host: Any, doing: Any, seconds: float = HOUR) -> Any:
    """Do something in a task of a machine's process; raise what it raises, or TimeoutError."""
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            result = await doing
        except Exception as error:
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    task = host.world.loop.create_task(work())
    try:
        return await asyncio.wait_for(done, seconds)
    finally:
        task.cancel()


def run_simulated(main: Callable[[SimWorld], Awaitable[Any]], seeds: int) -> None:
    async def live(world: SimWorld) -> None:
        await main(world)

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        host = cluster.host("here")
        host.start(live)
        await host.ended()

    for seed in range(seeds):
        error = repeat(scenario, seed=seed).error
        if error is not None:
            raise error
