"""A pipeline on a simulated cluster, as a scenario: its outputs equal those of one process."""

from __future__ import annotations

import asyncio
from functools import cached_property
from itertools import chain
from math import gcd
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_one_division
from ripple.model.pipeline.input_names import inputs_by_source
from ripple.task.endpoints import has_one
from ripple.testing.check import NO_EVENTS, as_text
from ripple.testing.cluster.front import repartitioned_in_trials
from ripple.testing.cluster.input import spread
from ripple.testing.cluster.truth import Truth
from ripple.testing.reference.interpreter import same_row
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.cluster import on_cluster
from ripple.testing.sim.faults import CLUSTER_KINDS, Faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ripple.model.pipeline.plan import Plan
    from ripple.testing.check import Happening
    from ripple.testing.cluster.scene import ClusterScene, Shape
    from ripple.testing.sim.cluster import SimCluster
    from ripple.testing.sim.world import SimWorld

TROUBLES = 8
STEP_MS_MAX = 3000
BEGIN_S = 10.0
# A cluster that begins has some 300 effects.
RARER = 16
PARTITIONS_MAX = 12
FIRST_MAX = 6


class ClusterTrial:
    """A scenario for ``explore`` and ``repeat``: coordinators, workers and their faults.

    The seed chooses their numbers, the partitions of the first stage, the disturbances, and the
    schedule.
    """

    faults = Faults(kinds=CLUSTER_KINDS, rarer=RARER)
    shrink_runs = 12

    def __init__(
        self,
        pipeline: Pipeline | Plan,
        events: Iterable[Happening],
        *,
        inputs: Sequence[str] | None = None,
        has_broker: bool = False,
    ) -> None:
        """Divide the events; the results of one process are computed for the first run.

        has_broker: stages hand records to each other through topics of a broker, not through logs.
        events: as ``check_pipeline`` takes them. inputs: the partitions of the log, where each
        event comes with its own; by default events are spread by their key. Raises InputError
        without events, PlanError where that is computed, ModuleNotFoundError without
        ``ripple-stream[cluster]``.
        """
        with needed("cluster", "a simulated cluster"):
            import ripple.testing.cluster.scene  # noqa: F401, PLC0415 - needed by a trial alone
        plan = pipeline.plan() if isinstance(pipeline, Pipeline) else pipeline
        is_one = inputs is not None and has_one(map(len, inputs_by_source(plan, inputs).values()))
        if is_one or not repartitioned_in_trials(plan):
            need_one_division(plan, "a cluster", is_one=is_one)
        self.plan, self._is_one = plan, is_one
        events = list(events)
        if not events:
            raise InputError(NO_EVENTS)
        self._source, self._has_broker = spread(plan, events, inputs), has_broker

    @cached_property
    def truth(self) -> Truth:
        """The results of one process. A module may name many trials, of which few are run."""
        has_broker, is_one = self._has_broker, self._is_one
        return Truth(self.plan, self._source, has_broker=has_broker, is_one=is_one)

    def __repr__(self) -> str:
        return f"ClusterTrial(<pipeline {self.plan.name}>, ...)"

    async def __call__(self, world: SimWorld, seed: int) -> None:
        """Run once."""
        await on_cluster(self._run)(world, seed)

    def shape_of(self, seed: int) -> Shape:
        """Return how large the cluster of a seed is."""
        from ripple.testing.cluster.scene import TIGHT, Shape  # noqa: PLC0415 - as above

        chance = Chance(seed, "shape")
        return Shape(
            workers=2 + chance.below(4),
            coordinators=1 + chance.below(2),
            partitions=chance.pick(self._choices()),
            slots=1 + (chance.below(4) == 0),
            alongside=chance.below(4) > 0,
            limits=TIGHT if chance.flip() else None,
            rarely=chance.flip(),
        )

    def _choices(self) -> list[int]:
        """Return the divisors of every source's inputs: partitions of the first stage."""
        truth = self.truth
        keys = truth.front.keys if len(truth.front.keys) < len(self.plan.sources) else ()
        inputs = gcd(*(count for name, count in truth.source.counts if name not in keys))
        counts = [count for count in range(1, inputs + 1) if inputs % count == 0]
        if len(truth.counts(1)) == 1 and not truth.is_one:
            return [count for count in counts if count >= 4] or counts[-1:]
        fitting = [count for count in counts if sum(truth.counts(count).values()) <= PARTITIONS_MAX]
        return [count for count in fitting if 2 <= count <= FIRST_MAX] or counts[:1]

    async def _run(self, cluster: SimCluster, seed: int) -> None:
        from ripple.testing.cluster.scene import ClusterScene  # noqa: PLC0415 - as above
        from ripple.testing.cluster.trouble import Trouble  # noqa: PLC0415

        chance = Chance(seed, "trouble")
        scene = ClusterScene(cluster, self.truth, self.shape_of(seed))
        scene.start()
        trouble = Trouble(scene, chance)
        # Most trouble is for a cluster that is at work; some for one that begins.
        if chance.below(4):
            await scene.at_work(BEGIN_S)
        try:
            for _ in range(TROUBLES):
                await asyncio.sleep(chance.below(STEP_MS_MAX) / 1000)
                scene.watch.chain.look()
                trouble.step()
                scene.start()
            scene.heal()
            await scene.come_to_rest()
            await self.compare(scene)
        except AssertionError as error:
            error.add_note(f"{scene.shape}; what happened: {', '.join(trouble.done) or 'nothing'}")
            raise

    async def compare(self, scene: ClusterScene) -> None:
        """Raise AssertionError with the first key that differs from one process."""
        truth = scene.truth
        for output, expected in truth.tables.items():
            found = scene.tables(output)
            for key in [*expected, *(key for key in found if key not in expected)]:
                one, other = found.get(key), expected.get(key)
                if one is None or other is None or not same_row(one, other):
                    raise AssertionError(
                        f"output {output!r}, key {key!r}: the cluster has {_shown(one)}, one "
                        f"process {_shown(other)}"
                    )
        for output in truth.events:
            written = scene.events(output)
            for number, events in enumerate(written):
                self._compare_events(output, number, events, scene.shape.partitions)
            _compare_all(output, chain.from_iterable(truth.events[output].values()), written)
        for output, rows in truth.rows.items():
            self._compare_rows(output, rows, scene.events(output))
        dead_letters = await scene.dead_letters()
        assert dead_letters == truth.dead_letters, (
            f"dead letters: {dead_letters ^ truth.dead_letters}"
        )

    def _compare_rows(
        self, output: str, rows: Sequence[Any], found: Sequence[Sequence[Any]]
    ) -> None:
        """Raise AssertionError unless each row is there once, and final rows in their order."""
        expected = list(map(as_text, rows))
        _compare_all(output, rows, found)
        finals = {node.name for node in self.plan.finals}
        if finals.issuperset(self.plan.roots_of(self.plan.output(output).of)):
            for number, each in enumerate(found):
                left = iter(expected)
                for row in map(as_text, each):
                    assert row in left, f"output {output!r}, partition {number}: {row} is too late"

    def _compare_events(
        self, output: str, number: int, rows: Sequence[Any], partitions: int
    ) -> None:
        """Raise AssertionError unless each event of a partition is there once, in order."""
        found = list(map(as_text, rows))
        share = self.truth.share_of(output, number, partitions)
        for name, own in share.items():
            left = iter(found)
            for event in map(as_text, own):
                assert event in left, (
                    f"output {output!r}, partition {number}: {event} of {name} is not there, or "
                    f"not in its order: {found}"
                )
        expected = sum(map(len, share.values()))
        assert len(found) == expected, (
            f"output {output!r}, partition {number}: {len(found)} events, not {expected}: {found}"
        )


def _compare_all(output: str, rows: Iterable[Any], found: Iterable[Iterable[Any]]) -> None:
    """Raise AssertionError unless all partitions together have the rows of one process."""
    expected = sorted(map(as_text, rows))
    whole = sorted(as_text(row) for each in found for row in each)
    assert whole == expected, f"output {output!r}: the cluster has {whole}, one process {expected}"


def _shown(row: Any) -> str:
    return "no row" if row is None else repr(row)
