"""Your pipeline, crashed at every effect of its task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ripple.core.arguments import need_whole
from ripple.core.errors import InputError
from ripple.testing.crash.scenario import CrashScenario
from ripple.testing.exploring import Report, enumerate_crashes, explore

if TYPE_CHECKING:
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.check import Happening
    from ripple.testing.sim.faults import Faults


def crash_test(
    pipeline: Pipeline | Plan | CrashScenario,
    events: Iterable[Happening] = (),
    *,
    inputs: Sequence[str] | None = None,
    seeds: Iterable[int] = range(100),
    enumerated: Iterable[int] = (0,),
    pairs: int = 20,
    every: int = 1,
    faults: Faults | None = None,
    without: tuple[str, ...] = (),
) -> Report:
    """Run a pipeline from a log to files and logs with checkpoints, and crash it.

    First undisturbed, held to the reference. Then it is killed, and its machine loses power, at
    every effect (before, within and after it) of the arrangements that the seeds ``enumerated``
    stand for (or by every second one of these crashes: ``every=2``), and ``pairs`` times once more
    during recovery; then random faults strike the runs of
    ``seeds``. In the end outputs, dead letters and digests must be those of the undisturbed run.

    events, inputs: as ``check_pipeline`` takes them; some 10 to 30 events are enough. Raises
    InputError where nothing would be tried: without events, or without any seed; Divergence where
    the undisturbed run differs from the reference, and SimulationError, which names the seed, the
    shortest trace and how to repeat it: with a command, if ``pipeline`` is a
    :class:`CrashScenario` that has a name in a module.
    """
    scenario = pipeline
    if not isinstance(scenario, CrashScenario):
        scenario = CrashScenario(scenario, events, inputs=inputs)
    need_whole("crash_test: every", every, 1, InputError)
    need_whole("crash_test: pairs", pairs, 0, InputError)
    report = Report()
    for seed in enumerated:
        report += enumerate_crashes(scenario, seed=seed, pairs=pairs, every=every, without=without)
    report += explore(scenario, seeds=seeds, faults=faults, without=without)
    return report.of_something()
