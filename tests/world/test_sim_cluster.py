"""Machines of the simulated world: started, killed, paused, switched off; each run repeats."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from ripple.core.errors import RippleError
from ripple.testing import (
    SimCluster,
    SimulationError,
    SimWorld,
    enumerate_crashes,
    explore,
    on_cluster,
    repeat,
)
from tests.examples import EXAMPLES, THINNED
from tests.world.clusters import echo, idle, on, serving, simulate, simulated

LINES = 5


async def count(world: SimWorld) -> None:
    """Add a line to a file every second, and tell it to a server which may be gone."""
    world.disk.make_folder("lines")
    file = world.disk.open("lines/all", create=True)
    while file.size() < LINES:
        file.append(b"x")
        file.sync()
        try:
            async with asyncio.timeout(5):
                stream = await world.network.connect("server:1")
                await stream.write(b"tell")
                await stream.read(4)
                stream.close()
        except OSError:
            pass
        await world.store.put_if_absent(f"told/{file.size()}", b"")
        await world.clock.sleep(1)


@on_cluster
async def telling(cluster: SimCluster, seed: int) -> None:
    """Two machines count and tell a third; whatever dies is started again."""
    programs = {"server": serving("server:1", echo), "one": count, "two": count}

    def lines(name: str) -> bytes:
        return cluster.host(name).disk.image().get("lines/all", b"")

    for second in range(3600):
        for name, program in programs.items():
            if not cluster.host(name).is_running and len(lines(name)) < LINES:
                cluster.host(name).start(program)
        await asyncio.sleep(1)
        if second == 100:
            cluster.heal()
        if second > 100 and not (cluster.host("one").is_running or cluster.host("two").is_running):
            break
    for name in ("one", "two"):
        assert len(lines(name)) >= LINES


PLAN = "0.8:kill_after:0 0.9:kill_after:0 0.20:kill_before:0"


def test_same_seed_gives_the_same_run() -> None:
    traces = set()
    for seed in range(5):
        first, second = (repeat(telling, seed=seed, plan=PLAN) for _ in "ab")
        assert first.error is None
        assert first.trace.lines == second.trace.lines
        assert len(first.trace.lines) > 50
        traces.add(first.trace.digest())
    assert len(traces) == 5


@pytest.mark.services
def test_same_seed_gives_the_same_run_in_every_process() -> None:
    code = (
        "from tests.world.test_sim_cluster import *\n"
        "print(repeat(telling, seed=7, plan=PLAN).trace.digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert digests == {repeat(telling, seed=7, plan=PLAN).trace.digest() + "\n"}


def test_random_runs_suffer_every_fault_of_the_network_and_repeat() -> None:
    report = explore(telling, seeds=range(60 * EXAMPLES // THINNED))
    for kind in ("net_refused", "net_cut", "net_reset", "net_vanish", "net_stall", "power_torn"):
        assert report.landed[kind], kind
    again = explore(telling, seeds=range(60 * EXAMPLES // THINNED))
    assert str(again) == str(report)


def test_every_effect_of_every_machine_can_be_its_last() -> None:
    report = enumerate_crashes(telling, every=THINNED)
    assert report.landed["kill_before"] > 50 // THINNED


@simulated
async def test_killed_machine_keeps_its_files_and_loses_its_memory(cluster: SimCluster) -> None:
    host = cluster.host("a")
    seen: list[int] = []

    async def main(world: SimWorld) -> None:
        file = world.disk.open("file", create=True)
        seen.append(file.size())
        file.append(b"abc")
        await asyncio.Event().wait()

    host.start(main)
    await asyncio.sleep(1)
    host.kill()
    host.kill()
    assert not host.is_running
    host.restart()
    await asyncio.sleep(1)
    host.switch_off(salt=0)
    host.start(main)
    await asyncio.sleep(1)
    assert seen == [0, 3, 0]


@simulated
async def test_neighbours_of_a_killed_machine_go_on(cluster: SimCluster) -> None:
    turns = dict.fromkeys("ab", 0)

    def ticking(name: str) -> object:
        async def main(world: SimWorld) -> None:
            while True:
                await world.clock.sleep(1)
                turns[name] += 1

        return main

    for name in turns:
        cluster.host(name).start(ticking(name))
    await asyncio.sleep(10.5)
    cluster.host("a").kill()
    await asyncio.sleep(10)
    assert turns["a"] in (10, 11)
    assert turns["b"] in (20, 21)


@simulated
async def test_dead_process_has_no_more_effects(cluster: SimCluster) -> None:
    async def main(world: SimWorld) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            world.disk.open("trace", create=True)

    host = cluster.host("a")
    host.start(main)
    await asyncio.sleep(1)
    host.kill()
    await asyncio.sleep(1)
    assert host.disk.image() == {}


@simulated
async def test_paused_process_misses_its_timers_and_then_has_them_all(cluster: SimCluster) -> None:
    times: list[float] = []

    async def main(world: SimWorld) -> None:
        for number in range(1, 4):
            asyncio.get_running_loop().call_later(10 * number, tick, world)
        await asyncio.Event().wait()

    def tick(world: SimWorld) -> None:
        times.append(world.clock.monotonic_ns() / 1e9)

    host = cluster.host("a")
    host.start(main)
    await asyncio.sleep(15)
    host.pause()
    await asyncio.sleep(60)
    assert len(times) == 1
    host.resume()
    await asyncio.sleep(0.1)
    assert times == pytest.approx([10, 75, 75], abs=0.1)


def test_clocks_differ_drift_and_jump() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        a, b = (cluster.host(name).start(idle).clock for name in "ab")
        ahead = a.now_ns() - b.now_ns()
        assert ahead
        await asyncio.sleep(10_000)
        assert 0 < abs(a.monotonic_ns() - b.monotonic_ns()) < 10_000 * 400_000
        before = a.monotonic_ns()
        cluster.host("a").jump(-7200)
        assert a.now_ns() - b.now_ns() < ahead - 7100e9
        assert a.monotonic_ns() >= before

    for seed in range(5):
        simulate(scenario, seed)


@simulated
async def test_slow_process_takes_time_for_each_step(cluster: SimCluster) -> None:
    done: list[float] = []

    async def main(world: SimWorld) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        done.append(cluster.loop.time())

    a, b = cluster.host("a"), cluster.host("b")
    a.start(main)
    a.slow_down(0.5)
    b.start(main)
    await a.ended()
    await b.ended()
    assert done[0] < 1
    assert done[1] > 49


@simulated
async def test_process_that_ends_tells_how(cluster: SimCluster) -> None:
    async def main(world: SimWorld) -> None:
        await world.clock.sleep(1)
        if cluster.is_disturbed:
            raise RippleError("gave up")

    host = cluster.host("a")
    host.start(main)
    await host.ended()
    assert host.error is None
    cluster.network.cut("a", "b")
    host.restart()
    await host.ended()
    assert isinstance(host.error, RippleError)


@pytest.mark.parametrize("error", [RippleError("without cause"), ValueError("a bug")])
def test_error_without_cause_fails_the_run(error: Exception) -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        if isinstance(error, ValueError):
            cluster.network.cut("a", "b")

        async def main(world: SimWorld) -> None:
            raise error

        cluster.host("a").start(main)
        await cluster.host("a").ended()

    with pytest.raises(type(error), match=str(error)):
        simulate(scenario)


def test_bug_in_serving_a_connection_fails_the_run() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        async def serve(stream: object) -> None:
            raise KeyError("a bug")

        cluster.host("b").start(serving("b:1", serve))
        a = cluster.host("a")
        a.start(idle)
        await asyncio.sleep(1)
        await on(a, a.world.network.connect("b:1"))
        await asyncio.sleep(1)

    with pytest.raises(KeyError, match="a bug"):
        simulate(scenario)


def test_error_of_the_scenario_is_no_death_of_a_machine() -> None:
    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        cluster.network.cut("a", "b")
        raise OSError("of the scenario")

    with pytest.raises(SimulationError, match="the scenario failed"):
        explore(scenario, seeds=range(1))


def test_invariant_is_asked_after_every_step_of_every_machine() -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        turns = 0

        def invariant() -> None:
            assert turns < 3, "too many turns"

        async def main(world: SimWorld) -> None:
            nonlocal turns
            while True:
                await world.clock.sleep(1)
                turns += 1

        cluster.always(invariant)
        cluster.host("a").start(main)
        await asyncio.sleep(100)

    with pytest.raises(AssertionError, match="too many turns"):
        simulate(scenario)
