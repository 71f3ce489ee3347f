"""The search finds what it should, finds nothing where nothing is, and repeats to the letter."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from ripple.testing import (
    Faults,
    Scenario,
    SimulationError,
    SimWorld,
    enumerate_crashes,
    explore,
    repeat,
)
from ripple.testing.__main__ import main
from ripple.testing.sim.faults import CLUSTER_KINDS, FAULTS_OF, KINDS
from tests.examples import EXAMPLES, SAMPLED
from tests.patience import PATIENCE_S
from tests.world import scenarios

RIGHT = [scenarios.temp_and_rename, scenarios.counting_workers, scenarios.one_winner]


@pytest.mark.parametrize("scenario", RIGHT)
def test_right_program_survives_every_crash(scenario: Scenario) -> None:
    report = enumerate_crashes(scenario, pairs=20 * EXAMPLES // SAMPLED)
    assert report.lives > report.runs > 30


@pytest.mark.parametrize("scenario", RIGHT)
def test_right_program_survives_random_faults(scenario: Scenario) -> None:
    explore(scenario, seeds=range(100 * EXAMPLES // SAMPLED))


def test_every_kind_of_fault_lands() -> None:
    landed = set()
    for scenario in RIGHT:
        landed |= set(explore(scenario, seeds=range(200)).landed)
    assert landed == set(KINDS)


ABLATIONS = [
    (scenarios.temp_and_rename, "fsync_file", "torn"),
    (scenarios.temp_and_rename, "fsync_folder", "was promised"),
    (scenarios.counting_workers, "fsync_file", "AssertionError"),
    (scenarios.counting_workers, "fsync_folder", "AssertionError"),
    (scenarios.one_winner, "put_if_absent", "two winners"),
]


@pytest.mark.parametrize(("scenario", "safeguard", "words"), ABLATIONS)
@pytest.mark.parametrize(
    "search",
    [
        lambda scenario, without: explore(scenario, seeds=range(1000), without=without),
        lambda scenario, without: enumerate_crashes(scenario, without=without),
    ],
    ids=["explore", "enumerate"],
)
def test_missing_safeguard_is_found_out(
    search: Callable[..., object], scenario: Scenario, safeguard: str, words: str
) -> None:
    with pytest.raises(SimulationError, match=words):
        search(scenario, (safeguard,))


def test_scenario_may_switch_its_own_safeguards_off() -> None:
    def careless(world: SimWorld, seed: int) -> None:
        scenarios.temp_and_rename(world.without("fsync_folder"), seed)

    with pytest.raises(SimulationError):
        enumerate_crashes(careless)


def test_check_sees_what_survived() -> None:
    def write(world: SimWorld, seed: int) -> None:
        file = world.disk.open("a", create=True)
        file.append(b"1")
        world.witness["written"] = True

    def is_there(world: SimWorld, seed: int) -> None:
        if world.witness.get("written"):
            assert world.disk.read_bytes("a", length_max=9), "lost"

    explore(write, seeds=range(5), faults=Faults(kinds=()), check=is_there)

    def write_and_go_on(world: SimWorld, seed: int) -> None:
        write(world, seed)
        world.disk.make_folder("more")

    with pytest.raises(SimulationError, match="a"):
        enumerate_crashes(write_and_go_on, check=is_there)


def test_invariant_is_asked_after_every_effect() -> None:
    def scenario(world: SimWorld, seed: int) -> None:
        def small() -> None:
            assert len(world.disk.list("")) < 3, "too many files"

        world.always(small)
        for name in "abc":
            world.disk.open(name, create=True).close()

    with pytest.raises(SimulationError, match="too many files"):
        enumerate_crashes(scenario)


def test_error_without_a_fault_is_a_bug() -> None:
    def scenario(world: SimWorld, seed: int) -> None:
        world.disk.read_bytes("absent", length_max=1)

    with pytest.raises(SimulationError, match="FileNotFoundError"):
        explore(scenario, seeds=[1])


def test_scenario_that_never_finishes_is_a_bug() -> None:
    async def waits(world: SimWorld, seed: int) -> None:
        await asyncio.Event().wait()

    async def turns(world: SimWorld, seed: int) -> None:
        while True:
            await world.clock.sleep(3600)

    for scenario in (waits, turns):
        with pytest.raises(SimulationError, match="SimulationStuckError"):
            explore(scenario, seeds=[1])


def test_failure_tells_how_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SimulationError) as caught:
        explore(scenarios.temp_and_rename, seeds=range(1000), without=("fsync_file",))
    message = str(caught.value)
    run = caught.value.run
    # The shortest that is possible: one power cut.
    assert len(run.faults) == 1
    command = message.splitlines()[-1].removeprefix("repeat with: python -m ripple.testing ")
    words = command.replace("'", "").split()
    with pytest.raises(AssertionError) as repeated:
        main(words)
    assert str(repeated.value) == str(run.error)
    assert f"trace {run.trace.digest()}" in capsys.readouterr().out


def test_run_is_a_function_of_its_seed() -> None:
    program = """
import hashlib
from ripple.testing import *
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from tests.world import scenarios
for scenario in (scenarios.temp_and_rename, scenarios.counting_workers, scenarios.one_winner):
    digests = [run(scenario, seed, Drawn(seed, Faults())).trace.digest() for seed in range(10)]
    assert len(set(digests)) > 5
    print(scenario.__name__, hashlib.sha256("".join(digests).encode()).hexdigest())
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": salt},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for salt in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 3


def test_seeds_choose_different_schedules() -> None:
    orders = set()

    async def scenario(world: SimWorld, seed: int) -> None:
        order: list[int] = []

        async def turn(number: int) -> None:
            await asyncio.sleep(0)
            order.append(number)

        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(turn(number))
        orders.add(tuple(order))

    explore(scenario, seeds=range(100))
    assert len(orders) == 6


def test_listed_fault_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="'fire' is no fault"):
        repeat(scenarios.temp_and_rename, seed=0, plan="0.1:fire:0")
    assert set(CLUSTER_KINDS) == {kind for kinds in FAULTS_OF.values() for kind in kinds}


def test_command_tries_seeds_in_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    scenario = "tests.world.scenarios:temp_and_rename"
    command = [sys.executable, "-m", "ripple.testing", scenario, "--seeds", "32", "--jobs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert "seeds 30 to 31: 2 runs" in done.stdout
    assert main([scenario, "--seeds", "200", "--without", "fsync_file"]) == 1
    assert "repeat with: python -m ripple.testing" in capsys.readouterr().out
