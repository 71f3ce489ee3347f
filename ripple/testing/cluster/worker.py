"""A whole worker on a simulated machine: its supervisor, its membership, its engine processes."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.connectors.commit_group import Groups, SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.kafka.cuts import stage_of
from ripple.connectors.kafka.group import KafkaGroup
from ripple.connectors.kafka.group_partition import GroupPartition
from ripple.connectors.log.grown import look_at_part, sink_of_part
from ripple.connectors.log.opening import check_divided
from ripple.connectors.log.sink import committed_in, topic_for, written_in
from ripple.control.assignment import AssignmentChain, Candidate
from ripple.control.assignment.generations import FIRST, ServingChain, prefix_of
from ripple.storage.log import Topic
from ripple.storage.store import RetryingStore
from ripple.task.endpoints import NONE_DIVIDED
from worker.backpressure import Intake
from worker.backpressure import Limits as QueueLimits
from worker.engine.context import ProcessContext
from worker.engine.exchange import ExchangePort
from worker.engine.generation import ALONE, Generation, Standing
from worker.engine.hosting import runner_of
from worker.engine.identity import code_of, delta_addresses
from worker.engine.routes import Routes
from worker.engine.runtime import Runtime
from worker.engine.serving import serve
from worker.supervisor.membership import Membership
from worker.supervisor.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.connectors.connector import Carried, Part
    from ripple.connectors.contract import Commit
    from ripple.connectors.inputs import Inputs
    from ripple.connectors.log.sink import LogSink
    from ripple.control.assignment import Assignment
    from ripple.core.events import Event
    from ripple.engine.operators.division import Division
    from ripple.exchange.exchange import Exchange
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.session import Session
    from ripple.model.pipeline.new_division import NewDivision
    from ripple.task.settings import Settings
    from ripple.task.standby import Look
    from ripple.testing.cluster.truth import Truth
    from ripple.testing.sim.disk import SimDisk
    from ripple.testing.sim.world import SimWorld
    from ripple.world.broker import Broker
    from ripple.world.ports import ObjectStore
    from worker.engine.runner import Runner

    Listener = Callable[["Process", int, int | None, Event], None]

DELTAS_PORT = 9101
# So small that one turn of reading may exceed them.
TIGHT_QUEUES = QueueLimits(outboxes=1000, divided=500, uncommitted=3)


class End:
    """One end of a pipe in memory; messages travel as bytes."""

    def __init__(self) -> None:
        self._given: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.other: End = self
        self._is_closed = False

    @classmethod
    def pair(cls) -> tuple[End, End]:
        """Return both ends of a new pipe."""
        one, other = cls(), cls()
        one.other, other.other = other, one
        return one, other

    async def read(self) -> bytes | None:
        """Return the next message, None when the other side is gone."""
        return await self._given.get()

    async def write(self, message: bytes) -> None:
        """Send a message."""
        if self._is_closed or self.other._is_closed:
            raise BrokenPipeError
        self.other._given.put_nowait(message)

    def close(self) -> None:
        """Let the other side see an end."""
        if not self._is_closed:
            self._is_closed = True
            self.other._given.put_nowait(None)


class Child:
    """An engine process as tasks of its machine; see ``worker.supervisor.slot.Engine``."""

    def __init__(self, work: Callable[[End], Awaitable[int]]) -> None:
        self.pipe, theirs = End.pair()
        self._task = asyncio.ensure_future(work(theirs))

    async def wait(self) -> str:
        """Wait until it has ended; return how."""
        await asyncio.wait([self._task])
        return "killed" if self._task.cancelled() else f"with exit code {self._task.result()}"

    def dump(self) -> None:
        """Do nothing: there is no reader."""

    def kill(self) -> None:
        """End it at once."""
        self._task.cancel()


class Ends:
    """The input's topic and one topic for each output, on a disk that all machines share."""

    def __init__(
        self,
        world: SimWorld,
        truth: Truth,
        batch_rows: int,
        topics: Callable[[str], str | None] | None = None,
    ) -> None:
        """Open ends. topics: returns the topic of an output, None where it is not written."""
        self._world = world
        self._truth = truth
        self._batch_rows = batch_rows
        self._topic_of = topics or topic_of

    def counts(self) -> tuple[tuple[str, int], ...]:
        """Return how many partitions each source has, by name."""
        return self._truth.source.counts

    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Return the inputs of each source, by name."""
        return self._truth.source.by_source

    def divisions(self) -> tuple[Division, ...]:
        """Return the divisions of the plan beside repartitioned sources, as topics tell no key."""
        return self._truth.front.divisions

    @property
    def repartitioned(self) -> Mapping[str, NewDivision]:
        """The repartitioned sources, with their fields."""
        return self._truth.front.keys

    def inputs(self, part: Part, divided: Mapping[str, Inputs] = NONE_DIVIDED) -> Inputs:
        """Return a partition's inputs. divided: of repartitioned sources."""
        for name, count in self.counts():
            if name not in divided:
                check_divided(name, count, part.of)
        source, disk = self._truth.source, self._world.disk
        return source.opened(disk, self._batch_rows, follow=True, part=part, divided=divided)

    def inputs_of(self, source: str, part: Part) -> Inputs:
        """Return the inputs of one source for a partition that divides its records anew."""
        check_divided(source, dict(self.counts())[source], part.of)
        disk, rows = self._world.disk, self._batch_rows
        opened = self._truth.source.opened_by_source(disk, rows, follow=True, part=part)
        return opened[source]

    def outputs(
        self,
        part: Part,
        epoch: int,
        stage: int | str | None = 0,
        *,
        carried: Carried | None = None,
        reads: bool = True,
    ) -> ReadableGroup:
        """Return the outputs of a partition of a stage."""
        del reads
        world, plan = self._world, self._truth.plan
        schemas = self._truth.schemas

        def open_sink(name: str, path: str) -> LogSink:
            topic = topic_for(world.disk, path, schemas[name], part.of)
            owner = Owner(plan.name, name)
            return sink_of_part(topic, part, world.clock, owner, epoch=epoch, guards=world.guards)

        paths = self._paths(stage) if isinstance(stage, int) else {}
        openers = {name: partial(open_sink, name, path) for name, path in paths.items()}

        def read(path: str, mark: str | None) -> Iterator[tuple[pa.RecordBatch, str]]:
            if world.disk.exists(f"{path}/topic"):
                yield from written_in(Topic.open(world.disk, path), part.number, mark)

        alone = SinkGroup(
            openers,
            world.executor,
            looks=self._looks(paths, part, epoch),
            reads={name: partial(read, path) for name, path in paths.items()},
        )
        if carried is None:
            return alone
        assert world.broker is not None
        target = GroupPartition(plan.name, part, stage_of(stage))
        lanes = KafkaGroup(
            world.broker, target, {}, clock=world.clock, carried=carried, guards=world.guards
        )
        return Groups([alone, lanes])

    def reached(self, part: Part) -> Look:
        """Return the reader of the committed cut of a partition's outputs."""
        disk = self._world.disk
        topics: dict[str, Topic] = {}

        def of(path: str) -> Commit | None:
            if path not in topics and disk.exists(f"{path}/topic"):
                topics[path] = Topic.open(disk, path)
            return committed_in(topics[path], part.number) if path in topics else None

        async def look() -> dict[str, Commit | None]:
            return {name: of(path) for name, path in self._paths(0).items()}

        return look

    def _paths(self, stage: int) -> dict[str, str]:
        """Return the topic of each output of a stage that is written at present."""
        found = {name: self._topic_of(name) for name in self._truth.outputs_of(stage)}
        return {name: path for name, path in found.items() if path is not None}

    def _looks(self, paths: Mapping[str, str], part: Part, epoch: int) -> list[Callable[[], int]]:
        """Return what looks at the outputs before they are opened, as the live ones do."""
        if self._topic_of is topic_of:
            return []
        disk, plan = self._world.disk, self._truth.plan

        def look(name: str, path: str) -> int:
            if not disk.exists(f"{path}/topic"):
                return 0
            owner = Owner(plan.name, name)
            return look_at_part(Topic.open(disk, path), part, owner, name, epoch=epoch)

        return [partial(look, name, path) for name, path in paths.items()]


class SimLanes(NamedTuple):
    """Lanes in topics of the broker that all machines can reach: a LaneHome."""

    world: SimWorld
    name: str = "kafka:sim"

    def place(self, topic: str) -> str:
        """Return the place of a topic."""
        return f"kafka:sim:1/{topic}"

    def broker(self) -> Broker:
        """Return the broker as the machine sees it."""
        assert self.world.broker is not None
        return self.world.broker


async def _key() -> bytes:
    """Return the one key that all processes of the cluster share."""
    return bytes(32)


class Process:
    """One engine process: its tasks, and its connections to others."""

    def __init__(
        self, worker: SimWorker, world: SimWorld, slot: int, generation: Generation
    ) -> None:
        self.name = f"{worker.name}/{slot}"
        self.world = world
        self.generation = generation
        self._worker = worker
        self.port: ExchangePort | None = None
        routes, truth = Routes(), worker.truth
        if truth.is_spread:
            self.port = ExchangePort(
                world,
                self.name,
                truth.plan,
                routes.route,
                routes.partitions,
                address=worker.addresses[f"deltas/{slot}"],
                key=_key,
                insecure=True,
                limits=worker.limits,
            )
            self._watch_connections(self.port.exchange)

        def moved(assignment: Assignment) -> None:
            routes.update(assignment)
            if self.port is not None:
                self.port.refresh()

        tight = None if worker.limits is None else TIGHT_QUEUES
        intake = Intake(world.clock, limits=tight)
        if self.port is not None:
            exchange = self.port.exchange
            intake.watch(lambda: {"outboxes": exchange.waiting_bytes})
        self.runtime = Runtime(self.name, self._context(intake), host=self._host, moved=moved)

    def _watch_connections(self, exchange: Exchange) -> None:
        """Let the watch check each connection after every event on it."""
        make = exchange.session

        def session(
            now_ns: int, dirty: Callable[[], None], expects: str = "", **others: Any
        ) -> Session:
            look = self._worker.connected(self.name, exchange.limits)

            def looked() -> None:
                dirty()
                look(made)

            made = make(now_ns, looked, expects, **others)
            return made

        exchange.session = session  # type: ignore[method-assign]

    async def run(self, pipe: End) -> int:
        """Work until the supervisor ends it."""
        beside = []
        if self.generation is not ALONE:
            watch = self.generation.watch(self.world.clock, self.runtime.renew)
            beside.append(asyncio.ensure_future(watch))
        if self.port is not None:
            await self.port.open()
            beside.append(asyncio.ensure_future(self.port.run()))
        try:
            return await serve(pipe, self.runtime, self.world.clock, self._worker.said.append)
        finally:
            for one in beside:
                one.cancel()
            if beside:
                await asyncio.wait(beside)

    def _context(self, intake: Intake) -> ProcessContext:
        world, worker = self.world, self._worker
        topics = None if self.generation is ALONE else partial(topic_now, self.generation)
        return ProcessContext(
            world,
            worker.truth.plan,
            RetryingStore(world.store, world.clock, world.random),
            Ends(world, worker.truth, worker.settings.batch_rows, topics),
            worker.settings,
            exchange=None if self.port is None else self.port.exchange,
            intake=intake,
            home=SimLanes(world) if worker.truth.has_broker else None,
            generation=self.generation,
        )

    def _host(self, context: ProcessContext, assignment: Assignment, partition: int) -> Runner:
        """Host a partition, and emit its events with its epoch at that time."""
        made: list[Runner] = []

        def emit(_: int, event: Event) -> None:
            self._worker.on_event(self, partition, made[0].health.epoch, event)

        made.append(runner_of(replace(context, emit=emit), assignment, partition))
        return made[0]


class SimWorker:
    """One worker, run after run of its machine.

    processes: the engine processes that the present run has started, newest last. stopping: set it
    to stop the worker. has_completed: whether it then has ended gracefully. generation: None where
    there is one for ever.
    """

    def __init__(
        self,
        name: str,
        disk: SimDisk,
        coordinators: Sequence[str],
        truth: Truth,
        *,
        settings: Settings,
        on_event: Listener,
        on_version: Callable[[Assignment], None],
        connected: Callable[[str, ExchangeLimits], Callable[[Session], None]],
        slots: int = 1,
        limits: ExchangeLimits | None = None,
        generation: int | None = None,
    ) -> None:
        self.name = name
        self.generation = generation
        self.truth, self.settings, self.limits = truth, settings, limits
        self.on_event, self._on_version, self.connected = on_event, on_version, connected
        self.addresses: Mapping[str, str] = delta_addresses(name, DELTAS_PORT, slots)
        self.disks: list[SimDisk] = []
        self.supervisor: Supervisor | None = None
        self.stopping: asyncio.Event | None = None
        self.has_completed: bool | None = None
        self.children: list[Child] = []
        self.processes: list[Process] = []
        self.said: list[str] = []
        self._disk = disk
        self._coordinators = tuple(coordinators)
        self._slots = slots
        front = truth.front
        self._code = code_of(truth.plan, divides=front.is_chain, repartitioned=front.keys)

    @property
    def is_stopping(self) -> bool:
        """Whether the present run, or the last if there is none, was asked to stop."""
        return self.stopping is not None and self.stopping.is_set()

    async def main(self, world: SimWorld) -> None:
        """Be a worker until ``stopping`` is set."""
        generation = ALONE
        if self.generation is not None:
            shared = RetryingStore(world.store, world.clock, world.random)
            generation = Generation(self.generation, ServingChain(shared))
            world = of_generation(world, self.generation)
        own = on_disk(world, self._disk)
        self.disks.append(own.disk)
        self.has_completed = None
        self.children, self.processes = [], []

        async def spawn(slot: int) -> Child:
            self.processes.append(Process(self, own, slot, generation))
            self.children.append(Child(self.processes[-1].run))
            return self.children[-1]

        self.supervisor = supervisor = Supervisor(
            self.name, self._slots, spawn, own.clock, hung_after_s=30, say=self.said.append
        )

        def read_version(assignment: Assignment, incarnation: int | None) -> None:
            self._on_version(assignment)
            supervisor.heard(assignment, incarnation)

        membership = Membership(
            own,
            AssignmentChain(RetryingStore(own.store, own.clock, own.random), guards=own.guards),
            self._coordinators,
            self._candidate,
            supervisor.report,
            read_version,
            checkpoint=supervisor.store,
        )
        self.stopping = asyncio.Event()
        await supervisor.run(membership, self.stopping)
        self.has_completed = await supervisor.stop(move_away_s=25, stop_s=29, reason="by hand")

    def _candidate(self, nonce: str) -> Candidate:
        return Candidate(
            id=self.name,
            nonce=nonce,
            addresses=tuple(sorted(self.addresses.items())),
            processes=self._slots,
            code=self._code,
            inputs=self.truth.source.counts,
        )


def topic_of(output: str) -> str:
    """Return the topic that an output is written to."""
    return f"out/{output}"


def preview_of(generation: int, output: str) -> str:
    """Return the topic of an output of a generation that does not serve yet."""
    return f"g{generation}/{output}"


def topic_now(generation: Generation, output: str) -> str | None:
    """Return the topic that a generation writes an output to at present."""
    if generation.standing is Standing.SERVES:
        return topic_of(output)
    is_new = generation.standing is Standing.PREVIEW
    return preview_of(generation.number, output) if is_new else None


class _Prefixed:
    """The part of a store below a prefix."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._store, self._prefix = store, f"{prefix}/"

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        return await self._store.put_if_absent(self._prefix + name, data)

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        return await self._store.get(self._prefix + name, length_max=length_max)

    async def list(self, prefix: str) -> list[str]:
        names = await self._store.list(self._prefix + prefix)
        return [name.removeprefix(self._prefix) for name in names]

    async def delete(self, name: str) -> None:
        await self._store.delete(self._prefix + name)


def of_generation(world: SimWorld, generation: int) -> SimWorld:
    """Return a machine's world with the store of a generation."""
    if generation == FIRST:
        return world
    store: Any = _Prefixed(world.store, prefix_of(generation))
    return replace(world, store=store)


def on_disk(world: SimWorld, disk: SimDisk) -> SimWorld:
    """Return a machine's world with a disk that machines share, but not its locks."""
    own = copy.copy(disk)
    own.effects, own.removed, own._locks = world.effects, world.removed, {}
    return replace(world, disk=own)
