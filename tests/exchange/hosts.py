"""Simulated machines on which real lives follow each other over the simulated network.

The logs are on one disk that all machines share, the checkpoints in the world's store. Who owns
which partition is a table here, which all machines read: what the assignment is in a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from ripple.client.outputs import Endpoints
from ripple.client.outputs.discovery import Endpoint
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.sink import LogSink, schema_of_output
from ripple.connectors.record_shape import RecordShape
from ripple.core.credentials import Credentials
from ripple.core.cut import is_within
from ripple.core.errors import RippleError
from ripple.core.events import Committed, Event, PartitionFailed
from ripple.core.row_ops import OP
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.exchange.exchange import Route
from ripple.exchange.limits import ExchangeLimits
from ripple.model.batch import Batch
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.topology import outputs_of, stages_of
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import PartitionReader, PartitionWriter, Topic
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimCluster, SimDisk, SimWorld, sim_world
from ripple.world.ports import World
from tests.engine.machine.staged import Spread
from worker.engine.context import ProcessContext
from worker.engine.exchange import ExchangePort
from worker.engine.hosting import subscribed
from worker.engine.runner import Runner
from worker.engine.workload import StageWork

END_NS = 10**6  # after all windows of the trades
SETTINGS = Settings(
    batch_rows=4,
    replay_rows=8,
    commit_interval_ns=100_000_000,
    checkpoint_interval_ns=350_000_000,
    snapshot_rows=64,
    keep=2,
)
Place = tuple[int, int]  # stage and number
KEY = bytes(32)
READS = Credentials(KEY).of_reader(10**12)


async def key() -> bytes:
    return KEY


class Pipeline:
    """A pipeline, its input, what is expected of it, and what machines need to work on it."""

    def __init__(self, plan: Plan, events: list[dict[str, Any]], partitions: int) -> None:
        self.plan = plan
        self.shares = Spread(plan, events, partitions, Random(0)).shares
        self.stages = stages_of(plan)
        self.counts = [stage.partitions or partitions for stage in self.stages]
        self.places = [(stage, n) for stage, count in enumerate(self.counts) for n in range(count)]
        self.disk = SimDisk()
        self.schema = pa.schema(arrow_fields(plan.source.fields))
        self.outputs = {
            stage.number: [one for one in plan.outputs if one.of in stage.folds]
            for stage in self.stages
        }
        self._create()
        self._fresh: dict[Any, Engine | Follower] = {}

    def _create(self) -> None:
        clock = sim_world().clock
        schema, count = self.plan.source.schema, len(self.shares)
        topic = Topic.create(self.disk, "input", schema, partitions=count)
        self.writers = [PartitionWriter(topic, number, clock) for number in range(count)]
        for stage, outputs in self.outputs.items():
            for output in outputs:
                schema = schema_of_output(self.plan, output)
                Topic.create(self.disk, f"out/{output.name}", schema, partitions=self.counts[stage])

    def write(self, number: int, count: int) -> None:
        """Append up to so many events to an input partition."""
        writer, share = self.writers[number], self.shares[number]
        piece = share[writer.next_offset : writer.next_offset + count]
        if piece:
            writer.append(pa.RecordBatch.from_pylist(piece, self.schema))

    def write_all(self) -> None:
        """Append what is left, and what ends all windows."""
        for number, share in enumerate(self.shares):
            self.write(number, len(share))
            if self.writers[number].next_offset == len(share):
                self.writers[number].mark(END_NS)

    def number_of(self, place: Place) -> int:
        """Return the number of a partition among all, as an assignment has it."""
        return self.places.index(place)

    def sinks(self, world: World, place: Place, epoch: int) -> SinkGroup:
        stage, number = place

        def open_sink(name: str) -> LogSink:
            topic = Topic.open(world.disk, f"out/{name}")
            owner = Owner(self.plan.name, name)
            guards = world.guards
            return LogSink(topic, number, world.clock, owner, epoch=epoch, guards=guards)

        names = [output.name for output in self.outputs[stage]]
        return SinkGroup({name: partial(open_sink, name) for name in names})

    # --- what must come out ---

    def fresh(self, place: Place, cut: dict[str, int]) -> Engine | Follower:
        """Return a partition computed from nothing, with each sender at its entry of the cut."""
        key = place, tuple(sorted(cut.items()))
        if key not in self._fresh:
            made = self._first(*place, cut) if place[0] == 0 else self._later(place, cut)
            made.stabilize()
            self._fresh[key] = made
        return self._fresh[key]

    def _first(self, stage: int, number: int, cut: dict[str, int]) -> Engine:
        assert stage == 0
        engine, (offset,) = Engine(self.plan, number, staged=True), cut.values()
        share = self.shares[number][:offset]
        rows = pa.RecordBatch.from_pylist(share, self.schema)
        engine.apply(self.plan.source.name, rows, len(share))
        if offset > len(share):
            engine.advance(self.plan.source.name, END_NS, offset)
        return engine

    def _later(self, place: Place, cut: dict[str, int]) -> Follower:
        stage, number = place
        senders = [str(sender) for sender in range(self.counts[stage - 1])]
        engine = Follower(self.plan, stage, senders, number)
        for sender in senders:
            prefix = f"{sender}/"
            of = {n.removeprefix(prefix): o for n, o in cut.items() if n.startswith(prefix)}
            upstream = self.fresh((stage - 1, int(sender)), of)
            engine.follow(sender, 1, upstream.table_for(number))
        return engine

    def expected(self) -> dict[str, list[str]]:
        """Return per output the rows that one process leaves in a sink."""
        names = [str(number) for number in range(len(self.shares))]
        engine = Engine(self.plan, inputs=names)
        left: dict[str, dict[Any, Any]] = {output.name: {} for output in self.plan.outputs}

        def settle() -> None:
            for output, rows in engine.stabilize().outputs.items():
                self._fold(left[output], output, rows.to_pylist(), {2})

        for name, share in zip(names, self.shares, strict=True):
            engine.apply(name, pa.RecordBatch.from_pylist(share, self.schema), len(share))
        settle()
        for name, share in zip(names, self.shares, strict=True):
            engine.advance(name, END_NS, len(share) + 1)
        settle()
        return {output: sorted(map(repr, rows.values())) for output, rows in left.items()}

    def _fold(self, left: dict[Any, Any], output: str, rows: list[Any], remove: set[Any]) -> None:
        of = next(one.of for one in self.plan.outputs if one.name == output)
        fold = self.plan.fold(of)
        key = [field.name for field in fold.key]
        if fold.window is not None:
            key.append("window_start_ns")
        for row in rows:
            op = row.pop(OP)
            at = tuple(row[name] for name in key)
            if op in remove:
                left.pop(at, None)
            else:
                left[at] = row

    def found(self) -> dict[str, list[str]]:
        """Return per output the rows that readers have, of all partitions."""
        found = {}
        for stage, outputs in self.outputs.items():
            for output in outputs:
                rows: list[Any] = []
                for number in range(self.counts[stage]):
                    left: dict[Any, Any] = {}
                    topic = Topic.open(self.disk, f"out/{output.name}")
                    with PartitionReader(topic, number) as reader:
                        for entry in reader.read():
                            assert isinstance(entry, Batch)
                            listed = entry.records.to_pylist()
                            self._fold(left, output.name, listed, {"remove"})
                    rows += left.values()
                found[output.name] = sorted(map(repr, rows))
        return found


class Hosts:
    """Machines that own partitions of a pipeline."""

    def __init__(
        self,
        cluster: SimCluster,
        pipeline: Pipeline,
        count: int,
        *,
        limits: ExchangeLimits | None = None,
        settings: Settings = SETTINGS,
    ) -> None:
        self.cluster, self.pipeline = cluster, pipeline
        self.names = [f"h{n}" for n in range(count)]
        self.limits, self.settings = limits, settings
        self.owners: dict[Place, tuple[str, int]] = {}
        self.version = 0
        self.reached: dict[Place, dict[str, int]] = {}
        self.is_over = False
        self.failures: list[str] = []
        self.judged = 0
        self.random = Random(cluster.seed)

    def assign(self, place: Place, name: str) -> None:
        """Give a partition to a machine, under a higher epoch."""
        self.version += 1
        self.owners[place] = name, self.version * 1024

    def start(self) -> None:
        for at, place in enumerate(self.pipeline.places):
            self.assign(place, self.names[at % len(self.names)])
        for name in self.names:
            self.cluster.host(name).start(self.main(name))

    def main(self, name: str) -> Any:
        async def main(world: SimWorld) -> None:
            await Machine(self, name, world).run()

        return main

    def route(self, stage: int, number: int) -> Route:
        name, epoch = self.owners[stage, number]
        return Route(name, f"{name}:1", epoch)

    def on_event(self, place: Place, event: Event) -> None:
        """Judge what a life says."""
        if isinstance(event, PartitionFailed):
            self.failures.append(f"{place}: {event.error!r}")
            if not isinstance(event.error, OSError | RippleError):
                raise event.error
        if isinstance(event, Committed):
            cut = dict(event.cut)
            before = self.reached.get(place, {})
            if not is_within(before, cut) and not is_within(cut, before):
                raise AssertionError(f"{place}: {before} and then {cut}")
            if place[0]:
                assert is_within(before, cut), f"{place}: {before} fell to {cut}"
            self.reached[place] = cut
            self.judged += 1
            fresh = self.pipeline.fresh(place, cut).digests
            assert dict(event.digests) == fresh, f"{place} at {cut}"

    def whole_cuts(self, end: Mapping[int, int]) -> dict[Place, dict[str, int]]:
        """Return the cut of each partition where the inputs are read up to there."""
        source = self.pipeline.plan.source.name
        whole: dict[Place, dict[str, int]] = {}
        for stage, number in self.pipeline.places:
            if stage == 0:
                whole[stage, number] = {source: end[number]}
            else:
                whole[stage, number] = {
                    f"{n}/{name}": offset
                    for n in range(self.pipeline.counts[stage - 1])
                    for name, offset in whole[stage - 1, n].items()
                }
        return whole

    @property
    def is_done(self) -> bool:
        """Whether every partition has committed all there is."""
        end = {n: len(share) + 1 for n, share in enumerate(self.pipeline.shares)}
        return all(self.reached.get(place) == cut for place, cut in self.whole_cuts(end).items())

    @property
    def is_up_to_date(self) -> bool:
        """Whether every partition has committed what was written by now."""
        end = {n: writer.next_offset for n, writer in enumerate(self.pipeline.writers)}
        return all(self.reached.get(place) == cut for place, cut in self.whole_cuts(end).items())


class Machine:
    """A process that hosts whatever the table says is its own."""

    def __init__(self, hosts: Hosts, name: str, world: SimWorld) -> None:
        self.hosts, self.name = hosts, name
        self.pipeline = hosts.pipeline
        # The same files, as a process of this machine sees them.
        disk = SimDisk(world.effects, hosts.pipeline.disk._names)
        self.world: World = replace(world, disk=disk, removed=hosts.cluster.removed)
        self.port = ExchangePort(
            self.world, name, self.pipeline.plan, hosts.route,
            lambda stage: self.pipeline.counts[stage],
            address=f"{name}:1", key=key, insecure=True, limits=hosts.limits,
        )  # fmt: skip
        self.running: dict[Place, tuple[int, asyncio.Task[None]]] = {}
        self.later: dict[Place, tuple[int, Runner]] = {}
        self.ending: list[Runner] = []

    async def run(self) -> None:
        await self.port.open()
        connecting = asyncio.create_task(self.port.run())
        version = -1
        while not self.hosts.is_over:
            for place, (name, epoch) in self.hosts.owners.items():
                host = self.host_later if place[0] else self.host
                host(place, epoch if name == self.name else None)
            if version != self.hosts.version:
                version = self.hosts.version
                self.port.refresh()
            if connecting.done():
                connecting.result()
            await self.world.clock.sleep(0.1)

    def host(self, place: Place, epoch: int | None) -> None:
        epoch_now, task = self.running.get(place, (None, None))
        if task is not None and (task.done() or epoch_now != epoch):
            if not task.done():
                task.cancel()
                return
            del self.running[place]
            if not task.cancelled() and task.exception() is not None:
                self.failed(place, task.exception())
                if self.hosts.owners[place] == (self.name, epoch):
                    self.hosts.assign(place, self.name)  # another attempt needs another epoch
                return
        if epoch is not None and place not in self.running:
            self.running[place] = epoch, asyncio.create_task(self.live(place, epoch))

    def failed(self, place: Place, error: BaseException | None) -> None:
        self.hosts.failures.append(f"{place}: {error!r}")
        if not isinstance(error, OSError | RippleError):
            assert error is not None
            raise error

    async def live(self, place: Place, epoch: int) -> None:
        stage, number = place
        exchange = self.port.exchange
        checkpoints = Checkpoints(
            self.world.store, self.pipeline.plan.name, self.pipeline.number_of(place)
        )  # type: ignore[arg-type]  # there is a store
        outputs = self.pipeline.sinks(self.world, place, epoch)
        topic = Topic.open(self.world.disk, "input")
        shape = RecordShape(self.pipeline.plan.source.schema)
        source = {self.pipeline.plan.source.name: number}
        inputs = LogInputs(topic, source, shape, self.hosts.settings.batch_rows, follow=True)
        shows = outputs_of(self.pipeline.plan, stage)
        sending = exchange.send(stage, number, epoch, inputs.wake, shows)
        state = DurableState(checkpoints, self.world, Ownership(epoch=epoch))
        first = PartitionTask(
            TaskSpec(self.pipeline.plan, inputs, outputs, staged=True, sends=sending),
            state,
            TaskContext(settings=self.hosts.settings, emit=partial(self.hosts.on_event, place)),
        )
        try:
            await first.run()
        finally:
            if sending is not None:
                exchange.stop_sending(sending)

    def host_later(self, place: Place, epoch: int | None) -> None:
        epoch_now, hosted = self.later.get(place, (None, None))
        if hosted is not None and epoch_now != epoch:
            if self.hosts.random.random() < 0.5:
                hosted.leave()
            else:
                hosted.drop()
            del self.later[place]
            self.ending.append(hosted)
        if epoch is not None and place not in self.later:
            hosted = self.runner(place)
            self.later[place] = epoch, hosted
            hosted.own(epoch // 1024)

    def runner(self, place: Place) -> Runner:
        (stage, number), pipeline = place, self.pipeline
        partition, exchange = pipeline.number_of(place), self.port.exchange
        emit = partial(self.hosts.on_event, place)
        context = ProcessContext(
            self.world, pipeline.plan, self.world.store, None,  # type: ignore[arg-type]  # no inputs
            self.hosts.settings, exchange=exchange,
        )  # fmt: skip
        work = StageWork(
            context=context, partition=partition, stage=stage, number=number,
            shows=outputs_of(pipeline.plan, stage), senders=pipeline.counts[stage - 1],
            outputs=partial(pipeline.sinks, self.world, place),
            upstream=partial(subscribed, exchange, stage, number),
        )  # fmt: skip
        return Runner(self.world.clock, partition, emit, work)


def endpoints_of(hosts: Hosts) -> Endpoints:
    """Return what a coordinator would say."""
    stages: list[list[Endpoint | None]] = [[] for _ in hosts.pipeline.counts]
    for stage, number in hosts.pipeline.places:
        route = hosts.route(stage, number)
        stages[stage].append(Endpoint(route.process, route.address, route.epoch))
    return Endpoints(tuple(map(tuple, stages)), hosts.version, credential=READS)
