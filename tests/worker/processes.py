"""Processes of workers in the simulator: machines that share a disk, and an assignment by hand."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import ripple.model.aggregate as ra
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.opening import check_divided
from ripple.connectors.log.sink import LogSink, committed_in, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.control.assignment import Assignment, Code, Member, Share, Stage
from ripple.core.errors import RippleError
from ripple.core.events import PartitionFailed
from ripple.model.batch import Batch
from ripple.model.pipeline.topology import outputs_of
from ripple.model.window import Tumbling
from ripple.storage.log import PartitionReader, Topic
from ripple.storage.store import DiskStore, RetryingStore
from ripple.task.settings import Settings
from ripple.testing import SimDisk, sim_world
from ripple.testing.crash.source import TOPIC, CrashSource
from tests.engine.machine.ticks import keyed
from tests.task import scenarios
from worker.engine.context import ProcessContext
from worker.engine.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.connectors.connector import Part
    from ripple.core.events import Event
    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.testing import SimWorld
    from ripple.world.ports import World

PARTITIONS, INPUTS = 2, 4


PLAN = (
    keyed(Tumbling(50), None, lateness=30)
    .fold("sums", n=ra.count(), total=ra.sum("price"), best=ra.max("size"))
    .sink("rows", of="sums")
).plan()
NAME = PLAN.source.name
NAMES = tuple(f"{NAME}/{number}" for number in range(INPUTS))
SETTINGS = Settings(
    batch_rows=4, replay_rows=8, commit_batches=1, checkpoint_batches=3, snapshot_rows=4, keep=2
)


def events(count: int) -> list[Any]:
    """Ticks of all input partitions in turn, and their ends."""
    made: list[Any] = [
        (NAMES[at % INPUTS], event)
        for at, event in enumerate(scenarios.events(count))
        if not isinstance(event, scenarios.Marker)
    ]
    return made + [scenarios.Marker(name, 10_000) for name in NAMES]


SOURCE = CrashSource(PLAN, events(120), NAMES)


class LogEnds:
    """The log on a world's disk as both ends of the pipeline."""

    def __init__(self, world: World, plan: Plan = PLAN) -> None:
        self._world = world
        self._plan = plan

    def counts(self) -> tuple[tuple[str, int], ...]:
        return ((NAME, INPUTS),)

    def divisions(self) -> tuple[Division, ...]:
        return ()

    def inputs(self, part: Part) -> LogInputs:
        check_divided(TOPIC, INPUTS, part.of)
        own = {name: at for at, name in enumerate(NAMES) if at % part.of == part.number}
        shape = RecordShape(PLAN.source.schema, PLAN.source.checks)
        topic = Topic.open(self._world.disk, TOPIC)
        return LogInputs(topic, own, shape, SETTINGS.batch_rows, follow=True)

    def outputs(self, part: Part, epoch: int, stage: int | None = 0, **_: object) -> SinkGroup:
        plan = self._plan

        def open_sink(name: str) -> LogSink:
            world, output = self._world, plan.output(name)
            schema = schema_of_output(plan, output)
            topic = topic_for(world.disk, f"{name}-log", schema, part.of)
            owner = Owner(plan.name, name)
            return LogSink(topic, part.number, world.clock, owner, epoch=epoch, guards=world.guards)

        sinks = {name: partial(open_sink, name) for name in sorted(outputs_of(plan, stage))}
        return SinkGroup(sinks, self._world.executor)

    def reached(self, part: Part) -> Callable[[], Awaitable[dict[str, Any]]]:
        disk = self._world.disk

        def committed(name: str) -> Any:
            if not disk.exists(f"{name}-log/topic"):
                return None
            return committed_in(Topic.open(disk, f"{name}-log"), part.number)

        async def look() -> dict[str, Any]:
            return {name: committed(name) for name in sorted(outputs_of(self._plan, 0))}

        return look


def new_disk(*, whole: bool = True) -> SimDisk:
    """Return a disk with the input, for all machines; or without records, which are to come."""
    world = sim_world()
    SOURCE.install(world, whole=whole)
    return world.disk


def on_disk(world: SimWorld, disk: SimDisk) -> SimWorld:
    """Return a machine's world with a disk that others have, too."""
    own = copy.copy(disk)
    own.effects = world.effects
    return replace(world, disk=own)


def runtime_of(world: SimWorld, process: str, emit: Callable[[Event], None]) -> Runtime:
    """Return the engine of a process. What fails without a reason is a bug."""

    def on_event(_: int, event: Event) -> None:
        if isinstance(event, PartitionFailed) and not isinstance(
            event.error, OSError | RippleError
        ):
            raise AssertionError(f"{process} failed") from event.error
        emit(event)

    store = RetryingStore(DiskStore(world.disk, world.random), world.clock, world.random)

    context = ProcessContext(world, PLAN, store, LogEnds(world), SETTINGS, on_event)
    return Runtime(process, context)


CODE = Code(PLAN.name, "plan", PLAN.topology_hash, 1)


def given(
    version: int,
    *shares: Share | tuple[Any, ...],
    starts: int = 0,
    slots: dict[str, tuple[int, ...]] | None = None,
) -> Assignment:
    """Return a version of the assignment: whose each partition is, of workers that never leave."""
    workers = ("a", "b", "c")
    return Assignment(
        version=version,
        cause="by hand",
        stages=(Stage("main", len(shares)),),
        shares=tuple(one if isinstance(one, Share) else Share(*one) for one in shares),
        members=tuple(
            Member(
                id=name,
                incarnation=1,
                nonce=name,
                addresses=(),
                starts=(slots or {}).get(name, (starts if name == "a" else 0,)),
                code=CODE,
            )
            for name in workers
        ),
    )


def table_of(rows: list[Any]) -> dict[Any, str]:
    """Return what changes add up to."""
    found: dict[Any, str] = {}
    for row in rows:
        key = (row["symbol"], row["window_start_ns"])
        if row["op"] == "remove":
            del found[key]
        else:
            found[key] = repr({name: value for name, value in row.items() if name != "op"})
    return found


def rows_of(disk: SimDisk, part: int, output: str = "rows") -> list[Any]:
    """Return what a partition has written, as somebody reads it."""
    topic = Topic.open(disk, f"{output}-log")
    with PartitionReader(topic, part) as reader:
        entries = [entry for entry in reader.read() if isinstance(entry, Batch)]
    return [row for entry in entries for row in entry.records.to_pylist()]
