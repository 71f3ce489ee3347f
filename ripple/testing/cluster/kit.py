"""Your pipeline, on a cluster to which anything may happen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ripple.testing.cluster.trial import ClusterTrial
from ripple.testing.exploring import Report, explore

if TYPE_CHECKING:
    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.testing.check import Happening
    from ripple.testing.sim.faults import Faults


def cluster_test(
    pipeline: Pipeline | Plan | ClusterTrial,
    events: Iterable[Happening] = (),
    *,
    inputs: Sequence[str] | None = None,
    seeds: Iterable[int] = range(20),
    faults: Faults | None = None,
    without: tuple[str, ...] = (),
) -> Report:
    """Run a pipeline on simulated clusters of real coordinators and workers, and disturb them.

    Each seed is a cluster: of 1 or 2 coordinators, 2 to 5 workers, 4 to 12 partitions where the
    pipeline allows it. Machines are killed, stopped, slowed down and cut off each other; workers
    join and leave, partitions are moved; disks, the store and connections fail. Then all is healed,
    and must come to rest with every event taken in: the rows of each output must be, key by key and
    bit by bit, those of a run in one process, and at each commit before, a partition's digests
    those of a fresh evaluation.

    events: as ``check_pipeline`` takes them; some 50 to 300. inputs: the partitions of the log,
    where each event comes with its own; by default they are spread by their key. seeds take about a
    second each. Raises SimulationError, which names the seed, the faults,
    the difference, and how to repeat it: with a command, if ``pipeline`` is a :class:`ClusterTrial`
    that has a name in a module. Raises InputError without events or seeds, PlanError where the key
    of an event is computed, and ModuleNotFoundError without ``ripple-stream[cluster]``.
    """
    trial = pipeline if isinstance(pipeline, ClusterTrial) else None
    if trial is None:
        trial = ClusterTrial(pipeline, events, inputs=inputs)  # type: ignore[arg-type]
    return explore(trial, seeds=seeds, faults=faults, without=without).of_something()
