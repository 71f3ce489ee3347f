"""Pipelines of every shape, crashed at every effect: nobody who reads their outputs can tell."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ripple.core.errors import InputError, SchemaError
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.testing import (
    CrashScenario,
    Faults,
    SimulationError,
    check_pipeline,
    cluster_test,
    crash_test,
    enumerate_crashes,
    explore,
    repeat,
)
from ripple.testing.__main__ import main
from ripple.testing.naming import find, name_of
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SAMPLED, THINNED
from tests.task import scenarios

if TYPE_CHECKING:
    from ripple.model.pipeline.builder import Pipeline
    from ripple.testing import SimWorld

SEEDS_FILE = Path(__file__).parent / "remembered_seeds.txt"
REMEMBERED = [
    int(line.partition(" ")[0])
    for line in SEEDS_FILE.read_text().splitlines()
    if not line.startswith("#")
]
FRESH = 13 * 6 * EXAMPLES // THINNED  # of each shape three
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_outputs_do_not_tell_of_a_crash_at_any_effect(part: int) -> None:
    """In parts, so that processes can share them."""
    first, every = part * THINNED, PARTS * THINNED
    pairs = EXAMPLES if part < 2 else 0
    report = enumerate_crashes(scenarios.short, first=first, every=every, pairs=pairs)
    assert report.lives > report.runs > 70


def test_every_shape_survives_random_faults() -> None:
    explore(scenarios.any_shape, seeds=REMEMBERED)
    report = explore(scenarios.any_shape, seeds=range(FRESH))
    assert len(report.landed) > 9, report


def test_rows_that_cannot_be_computed_survive_random_faults() -> None:
    report = explore(scenarios.any_shape_dividing, seeds=range(0, FRESH, 3))
    # Which kinds of faults land is held to above, over three times as many runs.
    assert report.landed.total() > 40, report


def test_two_inputs_survive_random_faults() -> None:
    explore(scenarios.two_inputs, seeds=range(24 * EXAMPLES // SAMPLED))


# Where the search begins: the seed that found it out when this was written.
SAFEGUARDS = {
    "fsync_file": 0,
    "fsync_folder": 6,
    "lock": 8,
    "muted_replay": 8,
    "source_sync": 18,
    "letter_once": 8,
    "letter_sync": 5,
    "commit_first": 19,
    "torn_tail_cut": 59,
    "folder_sync": 18,
    "data_sync": 0,
    "record_sync": 0,
    "record_name_sync": 0,
    "truncation": 60,
    "cut_in_frame": 52,
}


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    assert first_failure(scenarios.refused, safeguard, SAFEGUARDS[safeguard]) is not None


def first_failure(scenario: CrashScenario, safeguard: str, start: int = 0) -> int | None:
    """Return the first seed whose run fails without ``safeguard``; nothing is shrunk."""
    for seed in (start, *range(1000)):
        faults = Drawn(seed, Faults())
        if run(scenario, seed, faults, check=scenario.check, without=(safeguard,)).error:
            return seed
    return None


@pytest.mark.parametrize("guards", [(), ("digest_check",)])
def test_code_that_computes_something_else_is_refused(guards: tuple[str, ...]) -> None:
    """The function of a user returns something else in the second life."""
    lives = [0]

    def drifting(row: Any) -> Any:
        return replace(row, size=row.size + lives[0])

    def drift(pipeline: Pipeline) -> Pipeline:
        return pipeline.map("drifting", drifting, into=Tick)

    scenario = CrashScenario(scenarios.pipeline(before=drift), scenarios.EVENTS)

    async def live(world: SimWorld, seed: int) -> None:
        lives[0] = world.effects.life
        await scenario(world, seed)

    # Killed after a commit and before the first checkpoint, so that all is computed again.
    lines = repeat(live, seed=0).trace.lines
    place = next(line for line in lines if "/state" in line).partition(" ")[0]
    plan = f"{place}:kill_before:0"
    done = repeat(live, seed=0, plan=plan, without=guards)
    assert isinstance(done.error, SnapshotError if guards == () else AssertionError), done.error
    if not guards:
        assert "say --rebuild sums (to ripple run; workers" in str(done.error)


def test_failure_of_a_scenario_with_a_name_can_be_repeated_by_it() -> None:
    with pytest.raises(SimulationError) as caught:
        crash_test(scenarios.running, enumerated=(), seeds=range(10), without=("data_sync",))
    (command,) = [line for line in str(caught.value).splitlines() if "repeat with" in line]
    *_, name, seed_option, seed, without_option, without, plan_option, plan = shlex.split(command)
    assert (name, without) == ("tests.task.scenarios:running", "data_sync")
    assert (seed_option, without_option, plan_option) == ("--seed", "--without", "--plan")
    again = repeat(find(name), seed=int(seed), plan=plan, without=(without,))
    assert type(again.error) is type(caught.value.run.error)


def test_failure_of_a_scenario_in_a_file_of_a_user_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "from tests.task.scenarios import EVENTS, pipeline\n"
        "from ripple.testing import CrashScenario\n"
        "survives = CrashScenario(pipeline(), EVENTS)\n"
    )
    name = f"{tmp_path}/user.py:survives"
    assert name_of(find(name)) == name
    assert main([name, "--seed", "3"]) == 0


def test_crash_test_without_events_or_sizes_is_refused() -> None:
    pipeline = scenarios.pipeline()
    for test in (crash_test, cluster_test):
        with pytest.raises(InputError, match="there are no events"):
            test(pipeline, [])
    with pytest.raises(InputError, match="there are no events"):
        check_pipeline(pipeline, iter(()))
    check_pipeline(pipeline, [])  # as a property may draw it
    with pytest.raises(InputError, match="no batch size"):
        check_pipeline(pipeline, scenarios.EVENTS, ())
    with pytest.raises(InputError, match="a batch size must be a whole number from 1 on, not 0"):
        check_pipeline(pipeline, scenarios.EVENTS, (0,))
    check_pipeline(pipeline, scenarios.EVENTS[:3], restarts=(0, 3))
    with pytest.raises(
        InputError, match="a restart after 99 events, and there are 3: it would not"
    ):
        check_pipeline(pipeline, scenarios.EVENTS[:3], restarts=iter([99]))
    with pytest.raises(InputError, match="a restart must be a whole number from 0 on, not None"):
        check_pipeline(pipeline, scenarios.EVENTS, restarts=(None,))  # type: ignore[arg-type]
    first = scenarios.EVENTS[0]
    absent = {name: value for name, value in first.items() if name != "size"}
    for strange, why in (
        (absent, r"an event has no field 'size', it has symbol, .*: give None"),
        (3, "an event is 3: events are mappings by field name"),
        ({**first, "price": "much"}, "the field 'price' must be a float, not 'much'"),
        ({**first, "price": 10**400}, "which no float of 64 bits is"),
    ):
        with pytest.raises((InputError, SchemaError), match=why):
            check_pipeline(pipeline, [first, strange])
    with pytest.raises(InputError, match="every must be a whole number from 1 on, not 0"):
        crash_test(scenarios.running, every=0)
    with pytest.raises(InputError, match="nothing was tried: give at least one seed"):
        crash_test(scenarios.running, seeds=(), enumerated=())


def test_failure_without_a_name_says_what_to_call() -> None:
    nameless = CrashScenario(scenarios.pipeline(), scenarios.EVENTS)
    with pytest.raises(
        SimulationError, match=r"repeat\(CrashScenario\(<pipeline test>, \.\.\.\), seed="
    ):
        crash_test(nameless, enumerated=(), seeds=range(10), without=("data_sync",))
