"""A pipeline's real task in the simulated world, compared with an undisturbed run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text import cut_record
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.files.text.file import FileSink
from ripple.connectors.files.text.sink import TextFormat, TextLines
from ripple.connectors.log.sink import LogSink, schema_of_output, topic_for
from ripple.core.row_ops import OP
from ripple.engine.machine import Engine
from ripple.model.batch import Batch
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.input_names import answers_of, markers_of
from ripple.model.schema.logical.showing import Showing
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.log import PartitionReader, Topic
from ripple.storage.store import DiskStore
from ripple.task.asks.answer_log import AnswerLog
from ripple.task.dead_letters.log import letters_in
from ripple.task.durable_task import DurableTask
from ripple.task.marker_log import MarkerLog
from ripple.task.settings import Settings
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing.crash.judge import BATCH_ROWS, Judge, read_of
from ripple.testing.crash.onlooker import Onlooker, Place
from ripple.testing.crash.source import TOPIC, CrashSource
from ripple.testing.sim.disk import SimDisk
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.testing.sim.world import SimWorld, sim_world
from ripple.world.errors import DiskLockedError

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.connectors.contract import Sink
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.task.report import Report
    from ripple.testing.check import Happening
    from ripple.testing.reference.steps import Row
    from ripple.world.ports import ObjectStore

LENGTH_BYTES_MAX = 1 << 24
FORMAT, EVENTS = TextFormat("csv", removes="mark"), TextFormat("csv")


class Variant(NamedTuple):
    """Which of several arrangements a seed stands for.

    logs_first: whether the first output goes to a log and the next one to a file, in turn.
    alongside: whether the source log is written while it is read; then all outputs go to logs,
    because the end of a batch depends on timing. in_store: checkpoints are in an object store.
    rival: a second process tries to be the owner too. eager: checkpoints come more often than
    commits, and are copied in one step, not a few rows between batches.
    """

    logs_first: bool
    alongside: bool
    in_store: bool
    rival: bool
    eager: bool

    @classmethod
    def of(cls, seed: int) -> Variant:
        """Return a seed's variant: every combination comes within 32 seeds in a row."""
        alongside = bool(seed & 2)
        return cls(
            logs_first=bool(seed & 1) or alongside,
            alongside=alongside,
            in_store=alongside and bool(seed & 4),
            rival=bool(seed & 8),
            eager=bool(seed & 16),
        )


@dataclass(slots=True)
class Outcome:
    """The outputs of a complete run. files, logs: by output."""

    files: dict[str, bytes] = field(default_factory=dict)
    logs: dict[str, list[pa.RecordBatch]] = field(default_factory=dict)
    dead_letters: list[tuple[str, int, str | None]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    digest: str = ""


class CrashScenario:
    """A scenario for ``explore`` and ``enumerate_crashes``: one task of a pipeline over its events.

    The seed chooses the arrangement (:class:`Variant`) and the schedule. ``check`` holds the disk's
    invariants after any crash.
    """

    def __init__(
        self,
        pipeline: Pipeline | Plan,
        events: Iterable[Happening],
        *,
        inputs: Sequence[str] | None = None,
    ) -> None:
        """Run once undisturbed. Raises Divergence where that differs from the reference.

        events, inputs: as ``check_pipeline`` takes them. Raises InputError without events.
        """
        self.plan = pipeline.plan() if isinstance(pipeline, Pipeline) else pipeline
        names = inputs or [source.name for source in self.plan.sources]
        self.source = CrashSource(self.plan, events, names)
        self._judge = Judge(self.plan, self.source)
        # A seed's variant decides; the outputs differ between these two.
        # No input has the answers of services, so runs that ask are compared with their logs only.
        firsts = () if self.plan.asks else (False, True)
        self._expected = {first: self._undisturbed(first) for first in firsts}
        self._judge.close()
        for outcome in self._expected.values():
            self._hold_logs(outcome)
        if self._expected:
            self._check_files()

    def __repr__(self) -> str:
        return f"CrashScenario(<pipeline {self.plan.name}>, ...)"

    async def __call__(self, world: SimWorld, seed: int) -> None:
        """Run one incarnation."""
        variant = Variant.of(seed)
        self.source.install(world, whole=not variant.alongside)
        # After a failed sync a writer removes records that a reader may have used already; a task
        # cannot resume then, and says so.
        world.disk.sound = TOPIC
        onlooker = self._onlooker(world, variant)
        onlooker.look()
        world.always(onlooker.look)
        tasks = await asyncio.gather(
            *(self._run(world, variant) for _ in range(1 + variant.rival)),
            *(self.source.produce(world) for _ in range(variant.alongside)),
        )
        finished = [task for task in tasks if task is not None]
        assert finished, "of two tasks each was refused because of the other"
        await self._compare(world, variant, finished[-1])

    def check(self, world: SimWorld, seed: int) -> None:
        """Check the disk as any process finds it after a crash."""
        self._onlooker(world, Variant.of(seed)).look()
        end_of = cache(partial(self.source.end_of, world.disk))
        for place in self._places(Variant.of(seed)):
            record = cut_record.read(world.disk, place.record)
            reached = record.reached.cut if record and record.reached else {}
            for name, offset in read_of(reached).items():
                end = end_of(name)
                assert end >= offset, f"{place.record} has reached {offset}, the log {end}"

    # --- running ---

    async def _run(
        self, world: SimWorld, variant: Variant, learn: bool = False
    ) -> DurableTask | None:
        """Return the task after it has ended gracefully, None if another had the lock."""
        plan, end = self.plan, self.source.end
        store = DiskStore(world.disk, world.random, guards=world.guards)

        def is_done() -> bool:
            if task.report.restored is None or read_of(task.engine.cut) != end:
                return False
            if isinstance(task.engine, Engine) and task.engine.asked_size[0]:
                return False
            # Where all may be idle, the clock ends every window, and lets every row follow.
            all_idle = all(source.idle_ns is not None for source in plan.sources)
            return not (all_idle and task.engine.waiting_count)

        def watch(engine: Engine, report: Report) -> None:
            if report.stabilizations == 0:
                return  # a replay, which has not stabilized
            if learn:
                self._judge.learn(engine)
            else:
                self._judge.check(engine, on_grid=not (variant.alongside or self.plan.asks))

        inputs = self.source.opened(world.disk, BATCH_ROWS, follow=variant.alongside)
        checkpoints = Checkpoints(
            world.store if variant.in_store else store,
            plan.name,
            entries_kept=2,
            executor=world.executor,
            guards=world.guards,
        )
        task = DurableTask(
            TaskSpec(plan, inputs, self._outputs(world, variant)),
            checkpoints,
            world,
            TaskContext(
                settings=Settings(
                    batch_rows=BATCH_ROWS,
                    replay_rows=2 * BATCH_ROWS,
                    commit_batches=4 if variant.eager else 2,
                    checkpoint_batches=2 if variant.eager else 3,
                    snapshot_rows=1000 if variant.eager else 2,
                    keep=2,
                ),
                stop=lambda: variant.alongside and is_done(),
                watch=watch,
            ),
        )

        try:
            await task.run()
        except DiskLockedError:
            if not variant.rival:
                raise
            return None
        restored = task.report.restored
        assert restored is not None
        self._judge.check_digest(restored.cut, restored.digest)
        return task

    def _outputs(self, world: SimWorld, variant: Variant) -> SinkGroup:
        return SinkGroup(
            {
                output.name: partial(
                    self._open_sink, world, output, is_log=self._is_log(at, variant)
                )
                for at, output in enumerate(self.plan.outputs)
            },
            world.executor,
        )

    def _is_log(self, at: int, variant: Variant) -> bool:
        alone = variant.alongside or bool(self.plan.asks)
        return alone or (at % 2 == 0) == variant.logs_first

    def _open_sink(self, world: SimWorld, output: Output, *, is_log: bool) -> Sink:
        owner = Owner(self.plan.name, output.name)
        if is_log:
            schema = schema_of_output(self.plan, output)
            topic = topic_for(world.disk, _log_of(output.name), schema)
            return LogSink(topic, 0, world.clock, owner, guards=world.guards)
        columns = [member.name for member in output.fields]
        path, form = _file_of(output.name), EVENTS
        if not output.is_stream:
            columns, form = [OP, *columns], FORMAT
        return FileSink(world.disk, path, form, owner, columns, guards=world.guards)

    # --- judging ---

    def _undisturbed(self, logs_first: bool) -> Outcome:
        world = sim_world()
        variant = Variant(logs_first, alongside=False, in_store=False, rival=False, eager=False)
        self.source.install(world, whole=True)
        task = world.loop.run_until_complete(self._run(world, variant, learn=True))
        assert task is not None
        outcome: Outcome = world.loop.run_until_complete(self._outcome(world, variant, task))
        return outcome

    async def _compare(self, world: SimWorld, variant: Variant, task: DurableTask) -> None:
        found = await self._outcome(world, variant, task)
        if (variant.alongside and self.plan.is_idle) or self.plan.asks:
            await self._compare_recorded(world, variant, task, found)
            return
        expected = self._expected[variant.logs_first]
        assert found.digest == expected.digest, "the digest is not that of an undisturbed run"
        assert found.counters == expected.counters
        assert found.dead_letters == expected.dead_letters, f"dead letters: {found.dead_letters}"
        if variant.alongside:
            self._hold_logs(found)
            return
        for name, data in expected.files.items():
            assert found.files[name] == data, f"the file of output {name!r}: {found.files[name]!r}"
        for name, rows in expected.logs.items():
            same = repr(_rows(found.logs[name])) == repr(_rows(rows))  # so that a NaN is a NaN
            assert same, f"the log of output {name!r}: {_rows(found.logs[name])}"

    async def _compare_recorded(
        self, world: SimWorld, variant: Variant, task: DurableTask, found: Outcome
    ) -> None:
        """Compare with the reference over the records, markers and answers read."""
        store = self._left(world, variant)[1]
        log = MarkerLog(store, self.plan.name)
        await log.read()
        judge, at = Judge(self.plan, self.source), 0
        while at < task.engine.cut.get(markers_of(0), 0):
            marker = log.after(at)
            assert marker is not None, f"the log of markers ends at {at}: {task.engine.cut}"
            judge.take(marker)
            at = marker.next_offset
        answers, at = AnswerLog(store, self.plan.name), 0
        await answers.read()
        while at < task.engine.cut.get(answers_of(0), 0):
            await answers.load(at)
            recorded = answers.after(at)
            assert recorded is not None, f"the log of answers ends at {at}: {task.engine.cut}"
            judge.take_answers(recorded)
            at = recorded.end
        judge.close()
        assert isinstance(task.engine, Engine)
        judge.hold(task.engine)
        for output, batches in found.logs.items():
            judge.hold_log(output, _rows(batches))

    def _hold_logs(self, outcome: Outcome) -> None:
        for output, batches in outcome.logs.items():
            self._judge.hold_log(output, _rows(batches))

    def _check_files(self) -> None:
        """Raise unless the file of one variant equals the log of the other."""
        for one, other in ((False, True), (True, False)):
            for output, data in self._expected[one].files.items():
                lines = TextLines(TextFormat("csv", removes="skip"), output)
                # a log has the numbers of dates, times and decimals, a file their texts
                shown = Showing(self.plan.output(output).fields)
                batches = map(shown, self._expected[other].logs[output])
                written = b"".join(lines.of(batch, is_first=False) for batch in batches)
                assert data == written, f"the file of output {output!r}: {data!r}"

    async def _outcome(self, world: SimWorld, variant: Variant, task: DurableTask) -> Outcome:
        disk, store = self._left(world, variant)
        dead_letters, damage = await letters_in(store, self.plan.name)
        assert not damage, damage
        outcome = Outcome(
            counters=task.engine.counters.as_dict(),
            digest=task.engine.digest,
            dead_letters=[(one.input, one.offset, one.step) for one in dead_letters],
        )
        for output in self.plan.outputs:
            name = output.name
            path = _file_of(name)
            if disk.exists(path):
                outcome.files[name] = disk.read_bytes(path, length_max=LENGTH_BYTES_MAX)
            if disk.exists(f"{_log_of(name)}/topic"):
                outcome.logs[name] = _batches(disk, _log_of(name))
        return outcome

    def _left(self, world: SimWorld, variant: Variant) -> tuple[SimDisk, ObjectStore]:
        """Return the disk and the store as the next process finds them."""
        untouched = Effects(0, Planned(()), Trace())
        disk = world.disk.after_exit(untouched)
        return disk, world.store.copy(untouched) if variant.in_store else DiskStore(disk)

    def _onlooker(self, world: SimWorld, variant: Variant) -> Onlooker:
        manifest = f"{prefix_of(self.plan.name, 0)}manifest"
        return Onlooker(
            world,
            self._places(variant),
            manifest,
            in_store=variant.in_store,
            one_way=not (self.plan.is_idle or self.plan.asks),
        )

    def _places(self, variant: Variant) -> list[Place]:
        places = []
        for at, output in enumerate(self.plan.outputs):
            if self._is_log(at, variant):
                places.append(Place(f"{_log_of(output.name)}/0/output.cut"))
            else:
                path = _file_of(output.name)
                expected = self._expected[variant.logs_first].files[output.name]
                places.append(Place(f"{path}.cut", path, expected))
        return places


def _file_of(output: str) -> str:
    return f"{output}.csv"


def _log_of(output: str) -> str:
    return f"{output}-log"


def _batches(disk: SimDisk, path: str) -> list[pa.RecordBatch]:
    with PartitionReader(Topic.open(disk, path), 0) as reader:
        return [entry.records for entry in reader.read() if isinstance(entry, Batch)]


def _rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    return [row for batch in batches for row in batch.to_pylist()]
