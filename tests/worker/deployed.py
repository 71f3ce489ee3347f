"""A simulated cluster beside which a generation of other code warms up, serves, and goes back."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coordinator.decisions.limits import Limits
from coordinator.service.handlers import Handlers
from coordinator.service.shell import Shell
from ripple.connectors.log.sink import changes_in, committed_in, newest_committer, topic_for
from ripple.control.assignment import ATTEMPTS_MAX
from ripple.control.assignment.generations import Serving, ServingChain, newest_version
from ripple.core import cut as cuts
from ripple.core.errors import RippleError
from ripple.core.events import PartitionFailed
from ripple.core.row_ops import OP
from ripple.storage.log import LogError, Topic
from ripple.testing.cluster.scene import PRODUCER, RARELY, SETTINGS, Shape
from ripple.testing.cluster.trial import ClusterTrial
from ripple.testing.cluster.truth import Truth
from ripple.testing.cluster.worker import SimWorker, of_generation, on_disk, topic_of
from ripple.testing.crash.source import TOPIC
from ripple.testing.reference.interpreter import same_row
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.disk import CAPACITY_BYTES
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.testing.sim.world import sim_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.core.events import Event
    from ripple.testing.sim.cluster import SimCluster
    from ripple.testing.sim.store import SimStore
    from ripple.testing.sim.world import SimWorld

LIMIT_S = 300.0
PAUSE_MS_MAX = 400
STEP_MS_MAX = 2000
TROUBLES = 5


class DeployedScene:
    """Two generations: coordinators and workers of each, their common input and outputs."""

    def __init__(
        self,
        cluster: SimCluster,
        truths: tuple[Truth, Truth],
        shape: Shape,
        partitions: int | None = None,
    ) -> None:
        """Start nothing yet. partitions: of the other generation's first stage."""
        self.cluster, self.truths, self.shape = cluster, truths, shape
        self._firsts = (shape.partitions, partitions or shape.partitions)
        self.failed: list[str] = []
        self._broken: Exception | None = None
        self._is_healed = False
        world = sim_world()
        truths[0].source.install(world, whole=False)
        self.disk = world.disk
        self.disk.sound = TOPIC
        self.workers = {
            f"w{generation}{number}": self._worker(f"w{generation}{number}", generation)
            for generation in (1, 2)
            for number in (1, 2)
        }
        cluster.always(self._look)

    def _worker(self, name: str, generation: int) -> SimWorker:
        return SimWorker(
            name,
            self.disk,
            [f"c{generation}:9200"],
            self.truths[generation - 1],
            settings=RARELY if self.shape.rarely else SETTINGS,
            on_event=self._on_event,
            on_version=lambda _: None,
            connected=lambda _, __: lambda _: None,
            limits=self.shape.limits,
            generation=generation,
        )

    def _on_event(self, process: Any, partition: int, epoch: int | None, event: Event) -> None:
        if isinstance(event, PartitionFailed):
            self.failed.append(f"{process.name}: {partition}, epoch {epoch}: {event.error!r}")
            self.cluster.note(self.failed[-1])
            if not isinstance(event.error, OSError | RippleError):
                self._broken = event.error

    def _look(self) -> None:
        if self._broken is not None:
            raise self._broken

    def machines_of(self, generation: int) -> list[str]:
        """Return the names of a generation's machines."""
        return [f"c{generation}", *(f"w{generation}{number}" for number in (1, 2))]

    def start(self, *names: str) -> None:
        """Start the machines that are stopped."""
        for name in names:
            host = self.cluster.host(name)
            if host.is_running or (name == PRODUCER and self.is_produced):
                continue
            if name == PRODUCER:
                host.start(self._produce)
            elif name in self.workers:
                host.start(self.workers[name].main)
            else:
                host.start(self._coordinator(name))

    def _coordinator(self, name: str) -> Callable[[SimWorld], Any]:
        async def main(world: SimWorld) -> None:
            own = of_generation(world, int(name[1:]))
            shell = Shell(own, Limits(partitions=self._firsts[int(name[1:]) - 1]), peers=[])
            assert own.control is not None
            await own.control.serve(f"{name}:9200", Handlers(shell).service)
            await shell.run()

        return main

    async def _produce(self, world: SimWorld) -> None:
        own = on_disk(world, self.disk)
        await self.truths[0].source.produce(
            own, pause_ms_max=lambda: 20 if self._is_healed else PAUSE_MS_MAX
        )
        self.cluster.witness[PRODUCER] = True

    def heal(self) -> None:
        """End all faults."""
        self._is_healed = True
        self.cluster.heal()
        for worker in self.workers.values():
            for disk in worker.disks:
                disk.capacity_bytes = CAPACITY_BYTES

    # The record.

    @property
    def store(self) -> SimStore:
        """The store, without faults."""
        return self.cluster.store.next(Effects(0, Planned(()), Trace()), 0)

    async def serve(self, generation: int) -> Serving:
        """Let a generation serve, as the command does."""
        self._grow()
        record = ServingChain(self.store, f"by-hand-{generation}")
        while True:
            now = await record.newest()
            world = of_generation(replace(sim_world(), store=self.store), now.generation)
            after = now.next(generation, await newest_version(world.store))
            if await record.put(now, after):
                return after

    def _grow(self) -> None:
        """Let each output take the numbers of writers of all generations."""
        counts: dict[str, set[int]] = {}
        for truth in self.truths:
            for output, stage, _ in self.places(truth):
                counts.setdefault(output, set()).add(truth.counts(self._first(truth))[stage])
        for output, found in counts.items():
            schema = self.truths[0].schemas[output]
            topic = topic_for(self.disk, topic_of(output), schema, min(found))
            for count in sorted(found):
                topic = topic.divided(count)

    # The outputs.

    def _first(self, truth: Truth) -> int:
        """Return the partitions of the first stage of a generation's truth."""
        return self._firsts[self.truths.index(truth)]

    def places(self, truth: Truth) -> list[tuple[str, int, int]]:
        """Return output, stage and number of each partition with outputs."""
        counts = truth.counts(self._first(truth))
        return [
            (output, stage, number)
            for stage, count in counts.items()
            for output in (truth.outputs_of(stage) if stage >= 0 else ())
            for number in range(count)
        ]

    def lagging(self, generation: int, above: int) -> list[str]:
        """Return what a generation has not written to its end, with epochs above."""
        truth, found = self.truths[generation - 1], []
        for output, stage, number in self.places(truth):
            with suppress(LogError, OSError):
                topic = Topic.open(self.disk, topic_of(output))
                commit = committed_in(topic, number)
                owner = newest_committer(topic, number)
                end = truth.end_of(stage, number, self._first(truth))
                is_at_end = commit is not None and dict(commit.cut) == end
                if is_at_end and owner > above * ATTEMPTS_MAX:
                    continue
            found.append(f"{output}/{number}")
        return found

    async def until(
        self, is_so: Callable[[], bool], why: Callable[[], str], limit_s: float = LIMIT_S
    ) -> None:
        """Wait; raise AssertionError where it takes too long."""
        began = self.cluster.loop.time()
        while not is_so():
            assert self.cluster.loop.time() - began < limit_s, f"{why()}; {self.failed[-5:]}"
            await asyncio.sleep(0.2)

    async def complete(self, generation: int, above: int, limit_s: float = LIMIT_S) -> None:
        """Wait until a generation has written all to the outputs, and compare them."""
        await self.until(
            lambda: self.is_produced and not self.lagging(generation, above),
            lambda: f"{self.lagging(generation, above)} are behind",
            limit_s,
        )
        self.compare(generation)

    @property
    def is_produced(self) -> bool:
        """Whether the whole input is there."""
        return bool(self.cluster.witness.get(PRODUCER, False))

    def has_shown(self, topic_of: Callable[[str], str]) -> bool:
        """Return whether each output has been committed somewhere."""
        found = {output: False for output, _, _ in self.places(self.truths[0])}
        for output, _, number in self.places(self.truths[0]):
            with suppress(LogError, OSError):
                topic = Topic.open(self.disk, topic_of(output))
                found[output] = found[output] or bool(committed_in(topic, number))
        return all(found.values())

    def table(self, output: str) -> dict[Any, Any]:
        """Return a reader's rows of an output, by key; each key is in one partition."""
        topic, whole = Topic.open(self.disk, topic_of(output)), dict[Any, Any]()
        for number in range(topic.partitions):
            end, found = 10**9, dict[Any, Any]()
            before: Any = {}
            for cut, rows, _ in changes_in(topic, number, end):
                read = set(map(cuts.source_of, cut))
                known = {name: at for name, at in before.items() if cuts.source_of(name) in read}
                assert cuts.has_reached(cut, known), f"{output}: {before} {cut}"
                before = cut or before
                for row in rows.to_pylist():
                    op = row.pop(OP)
                    key = tuple(row[name] for name in self.truths[0].identity[output])
                    if op == "remove":
                        assert key in found, f"output {output!r}: {key} was not there"
                        del found[key]
                    else:
                        found[key] = row
            twice = found.keys() & whole.keys()
            assert not twice, f"output {output!r}: {twice} are in several partitions"
            whole |= found
        return whole

    def compare(self, generation: int) -> None:
        """Raise AssertionError unless the outputs are those of a generation's code."""
        for output, expected in self.truths[generation - 1].tables.items():
            found = self.table(output)
            for key in [*expected, *(key for key in found if key not in expected)]:
                one, other = found.get(key), expected.get(key)
                is_same = one is not None and other is not None and same_row(one, other)
                assert is_same, (
                    f"output {output!r}, key {key!r}: the cluster has {one}, a fresh evaluation of "
                    f"generation {generation} {other}"
                )


class DeployTrial(ClusterTrial):
    """A trial that begins with other code, which the trial's own comes after; perhaps and back."""

    def __init__(
        self,
        pipeline: Any,
        events: list[Any],
        before: Any,
        partitions: tuple[int, int] | None = None,
    ) -> None:
        """Take both. partitions: of the first stages before and after."""
        super().__init__(pipeline, events)
        self._before, self._partitions = before.plan(), partitions

    @cached_property
    def truth_before(self) -> Truth:
        """The results of the pipeline with which the cluster begins."""
        return Truth(self._before, self.truth.source)

    async def _run(self, cluster: SimCluster, seed: int) -> None:
        chance = Chance(seed, "trouble")
        first = chance.pick([2, 3])
        before, after = self._partitions or (first, first)
        shape = Shape(partitions=before, rarely=chance.flip())
        scene = DeployedScene(cluster, (self.truth_before, self.truth), shape, after)
        scene.start(PRODUCER, *scene.machines_of(1))
        await asyncio.sleep(chance.below(STEP_MS_MAX) / 1000)
        scene.start(*scene.machines_of(2))
        machines = [*scene.machines_of(1), *scene.machines_of(2), PRODUCER]
        serving, above, done = 1, 0, list[str]()
        for step in range(TROUBLES):
            await asyncio.sleep(chance.below(2 * STEP_MS_MAX) / 1000)
            if step in (1, 3) and (step == 1 or chance.flip()):
                serving = 3 - serving
                above = (await scene.serve(serving)).above
                done.append(f"generation {serving} serves")
            elif chance.below(3):
                name = chance.pick(machines[:-1])
                cluster.host(name).kill()
                done.append(f"{name} dies")
                await asyncio.sleep(chance.below(STEP_MS_MAX) / 1000)
            scene.start(*machines)
        scene.heal()
        scene.start(*machines)
        try:
            await scene.complete(serving, above)
        except AssertionError as error:
            error.add_note(f"{shape}; what happened: {', '.join(done)}")
            raise
