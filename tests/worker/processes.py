"""Processes of workers in the simulator: machines that share a disk, and an assignment by hand."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import ripple.aggregate as ra
from ripple.assignment import Assignment, Code, Member, Share, Stage
from ripple.batch import Batch
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.places import check_divided
from ripple.connectors.log.sink import LogSink, committed_in, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.text.cut_record import Owner
from ripple.engine import Engine
from ripple.errors import RippleError
from ripple.events import PartitionFailed
from ripple.expression import col
from ripple.log import PartitionReader, Topic
from ripple.ops import with_named_ops
from ripple.partition.group import SinkGroup
from ripple.partition.settings import Settings
from ripple.schema.columns import records_of
from ripple.store import DiskStore, RetryingStore
from ripple.testing import SimDisk, sim_world
from ripple.testing.crash_source import TOPIC, CrashSource
from ripple.window import Tumbling
from tests.engine.ticks import keyed
from tests.partition import scenarios
from worker.input_partition import Site
from worker.runtime import Runtime
from worker.stages import sinks_of, stage_counts

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.connector import Part
    from ripple.events import Event
    from ripple.pipeline.plan import Plan
    from ripple.testing import SimWorld
    from ripple.world.ports import World

PARTITIONS, INPUTS = 2, 4


def grouped(pipeline: Any) -> Any:
    return pipeline.derive("grouped", group=col("timestamp_ns") % 5)


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


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A pipeline over the source. divides: whether its records are divided anew."""

    plan: Plan
    divides: bool = False

    @property
    def code(self) -> Code:
        stages = stage_counts(self.plan, divides=self.divides)
        return Code(self.plan.name, "plan", self.plan.topology_hash, 1, stages=stages)


CASE = Case(PLAN)


# Its records are divided anew, and then once more, when windows are over but their group is not.
DIVIDED = Case(
    keyed(
        Tumbling(50),
        None,
        lateness=30,
        reject_future=150,
        before=grouped,
        by=("size", "group"),
        partitions=3,
    )
    .fold("sums", n=ra.count(), total=ra.sum("price"), last=ra.last("symbol"))
    .partition("over-all", key="group", partitions=2)
    .fold("all", middle=ra.median("n"), windows=ra.count(), total=ra.sum("total"))
    .sink("rows", of="sums")
    .sink("ever", of="all")
    .plan(),
    divides=True,
)


class LogEnds:
    """The log on a world's disk as both ends of the pipeline."""

    def __init__(self, world: World, plan: Plan = PLAN) -> None:
        self._world = world
        self._plan = plan

    def counts(self) -> tuple[tuple[str, int], ...]:
        return ((NAME, INPUTS),)

    def inputs(self, part: Part) -> LogInputs:
        check_divided(TOPIC, INPUTS, part.of)
        own = {name: at for at, name in enumerate(NAMES) if at % part.of == part.number}
        shape = RecordShape(PLAN.source.schema, PLAN.source.checks)
        topic = Topic.open(self._world.disk, TOPIC)
        return LogInputs(topic, own, shape, SETTINGS.batch_rows, follow=True)

    def outputs(self, part: Part, epoch: int, stage: int = 0) -> SinkGroup:
        plan = self._plan

        def open_sink(name: str) -> LogSink:
            world, output = self._world, plan.output(name)
            schema = schema_of_output(plan, output)
            topic = topic_for(world.disk, f"{name}-log", schema, part.of)
            owner = Owner(plan.name, name)
            return LogSink(topic, part.number, world.clock, owner, epoch=epoch, guards=world.guards)

        sinks = {name: partial(open_sink, name) for name in sorted(sinks_of(plan, stage))}
        return SinkGroup(sinks, self._world.executor)

    def reached(self, part: Part) -> Callable[[], dict[str, Any]]:
        disk = self._world.disk

        def committed(name: str) -> Any:
            if not disk.exists(f"{name}-log/topic"):
                return None
            return committed_in(Topic.open(disk, f"{name}-log"), part.number)

        return lambda: {name: committed(name) for name in sorted(sinks_of(self._plan, 0))}


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


def runtime_of(
    world: SimWorld, process: str, tell: Callable[[Event], None], case: Case = CASE
) -> Runtime:
    """Return the engine of a process. What fails without a reason is a bug."""

    def told(_: int, event: Event) -> None:
        if isinstance(event, PartitionFailed) and not isinstance(
            event.error, OSError | RippleError
        ):
            raise AssertionError(f"{process} failed") from event.error
        tell(event)

    store = RetryingStore(DiskStore(world.disk, world.random), world.clock, world.random)

    def site(partitions: int) -> Site:
        ends = LogEnds(world, case.plan)
        return Site(world, case.plan, store, ends, partitions, SETTINGS, told, process)

    return Runtime(process, site)


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


def tables_of(disk: SimDisk, plan: Plan) -> dict[str, list[str]]:
    """Return per output the rows that all partitions' changes make, in no partition's order."""
    found = {}
    for output in plan.outputs:
        if not disk.exists(f"{output.name}-log/topic"):
            return {}
        count = Topic.open(disk, f"{output.name}-log").partitions
        changes = [row for part in range(count) for row in rows_of(disk, part, output.name)]
        found[output.name] = left_of(plan, output.of, changes)
    return found


@cache
def tables_alone(case: Case) -> dict[str, list[str]]:
    """Return the same of one engine that reads all inputs."""
    plan = case.plan
    engine = Engine(plan, inputs=NAMES)
    changes: dict[str, list[Any]] = {output.name: [] for output in plan.outputs}

    def settle() -> None:
        for name, rows in engine.stabilize().outputs.items():
            changes[name] += with_named_ops(rows).to_pylist()

    for name, happened in SOURCE.events.items():
        for at, event in enumerate(happened):
            if isinstance(event, scenarios.Marker):
                engine.advance(name, event.watermark_ns, at + 1)
            else:
                engine.apply(name, records_of([event], plan.source.fields), at + 1)
        settle()
    found = {one.name: left_of(plan, one.of, changes[one.name]) for one in plan.outputs}
    assert all(len(rows) > 3 for rows in found.values())
    return found


def left_of(plan: Plan, of: str, changes: list[Any]) -> list[str]:
    """Return the rows that changes leave, in the order of their texts."""
    fold, left = plan.fold(of), {}
    for row in changes:
        op, key = row.pop("op"), tuple(row[name] for name in fold.identity)
        if op == "remove":
            left.pop(key, None)
        else:
            left[key] = repr(row)
    return sorted(left.values())
