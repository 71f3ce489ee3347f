"""The loop of a task: entries in, changes out. The same in one-shot and durable runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.inputs import NO_ORIGINALS, OriginalInputs
from ripple.core.causes import Causes
from ripple.core.events import Committed, Ended, EventListener, Refused, Stabilized, no_listener
from ripple.core.frozen import frozen
from ripple.engine.machine import Engine
from ripple.model.batch import Batch, Marker, Rejected
from ripple.task.notices import ExceptionNotices

if TYPE_CHECKING:
    import asyncio

    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs, Original
    from ripple.core.cut import Cut
    from ripple.engine.machine import Changes
    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.task.drive import Drive
    from ripple.task.edges import Publisher
    from ripple.task.lanes import Lanes
    from ripple.task.outputs import Outputs
    from ripple.task.report import Report
    from ripple.task.settings import Settings
    from ripple.task.tracing import Traces


class DeadLetterQueue(Protocol):
    """Takes the records that were refused. counts: how many it has kept, by cause."""

    @property
    def counts(self) -> Counter[str]:
        """How many it has kept, by cause."""
        ...

    def write(
        self,
        name: str,
        rejected: Iterable[Rejected],
        batch: Batch,
        originals: Mapping[int, Original] = NO_ORIGINALS,
    ) -> object:
        """Keep the rejected records of a batch of input ``name``.

        originals: by offset, the records in the form of their source.
        """
        ...

    def sync(self) -> None:
        """Make them durable, before a cut that includes them is committed."""
        ...


class InFlightNotes(Protocol):
    """Notes of the records in flight, for the next task after a crash."""

    def begin(self, name: str, first_offset: int, next_offset: int) -> None:
        """Note that these records are about to be applied."""
        ...

    def stabilizing(self, cut: Cut) -> None:
        """Note that the views are about to be stabilized at ``cut``."""
        ...

    def blamed(self) -> AbstractContextManager[None]:
        """Attribute any error within to the records in flight."""
        ...

    def idle(self) -> None:
        """Note that nothing is in flight."""
        ...


@frozen
class TaskSpec:
    """The arguments of every kind of task.

    emit: is given events. stop: asked between two batches whether to end in good order. watch:
    called after each batch. staged: whether to compute the plan's first stage alone. sends:
    publishes the state edge. lanes: the event edge to the next stage. engine: the class that
    computes. division: how the input is partitioned, if known. intake: None for no limit. traces:
    None without tracing.
    """

    plan: Plan
    inputs: Inputs
    outputs: CommitGroup
    settings: Settings
    report: Report
    emit: EventListener
    stop: Callable[[], bool]
    watch: Callable[[Engine, Report], None]
    staged: bool = False
    sends: Publisher | None = None
    lanes: Lanes | None = None
    engine: type[Engine] = Engine
    division: Division | None = None
    intake: IntakeGate | None = None
    traces: Traces | None = None


class IntakeGate(Protocol):
    """Says when there is too much at work to take in more."""

    async def admits(self) -> bool:
        """Return whether to take in more, after a wait where less is to be taken in.

        If not, the caller does due work and asks again: this waits a moment then, too.
        """
        ...


async def _nothing() -> None:
    pass


class TaskLoop:
    """Takes entries, writes their changes, and commits.

    Invariants: ``is_stabilized``: the views, and the written rows, are at the engine's cut;
    ``cut`` is the one of the last stabilization. At most one commit is in progress, and the
    committed cut is one that the engine has reached.
    """

    def __init__(
        self,
        drive: Drive,
        parts: TaskSpec,
        outputs: Outputs,
        letters: DeadLetterQueue,
        notes: InFlightNotes | None = None,
        *,
        flush: Callable[[], Awaitable[None]] = _nothing,
        guards: Callable[[str], bool],
        now_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """Resume from the cut of the drive's engine, whose views are stabilized.

        notes: None where no task follows after a crash. flush: makes notes, and dead letters up to
        the last sync, available to the next owner. now_ns: a clock, to measure commits.
        """
        self.engine = drive.engine
        self.cut: Cut = drive.engine.cut
        self.outputs = outputs
        self.report = parts.report
        self.is_stabilized = True
        self.work_ns = 0  # that taking batches took
        self._drive = drive
        self._inputs = parts.inputs
        self._letters = letters
        self._notes = notes
        self._flush = flush
        self._guards = guards
        self._now_ns = now_ns
        self._emit = parts.emit
        self._noticed = ExceptionNotices(parts.emit, drive.engine.counters)
        self._watch = parts.watch
        self._traces = parts.traces
        self._committed: Cut = {}
        self._lettered: Cut = {}  # up to this cut the next owner finds the dead letters
        self._rows_reported = self._rows_traced = 0
        self._committing: asyncio.Task[None] | None = None
        self.report.rejected = letters.counts

    async def take(self, name: str, entry: Batch | Marker) -> None:
        """Stabilize the views at the end of one batch and write the changes."""
        started_ns, traces = self._now_ns(), self._traces
        if traces is not None:
            traces.begin(name, entry, self._inputs)
        await self.apply(name, entry)
        if self._notes is None:
            began_ns = self._now_ns()
            self._give(self._drive.stabilize(), began_ns)
        else:
            await self.stabilize()
        if traces is not None:
            traces.end(self.outputs.rows_out - self._rows_traced)
            self._rows_traced = self.outputs.rows_out
        self.report.stabilizations += 1
        self.report.events += entry.span if isinstance(entry, Batch) else 1
        self.watch()
        self.work_ns += self._now_ns() - started_ns

    async def apply(self, name: str, entry: Batch | Marker) -> None:
        """Apply a batch or a marker; rejected records become dead letters."""
        self.is_stabilized = False
        if self._notes is None or isinstance(entry, Marker):
            rejected = self._drive.apply(name, entry)
        else:
            rejected, parts = self._drive.parts(name, entry)
            for piece, part in parts:
                self._notes.begin(piece.input, piece.first_offset, piece.next_offset)
                await self._flush()
                with self._notes.blamed():
                    rejected += self._drive.apply_part(name, part)
        if rejected and isinstance(entry, Batch):
            if self._notes is not None:
                self._notes.idle()  # a disk that is full is no record's fault
            originals: Mapping[int, Original] = NO_ORIGINALS
            if isinstance(self._inputs, OriginalInputs):
                originals = self._inputs.originals(name, [bad.offset for bad in rejected])
            self._letters.write(name, rejected, entry, originals)
            causes = Causes()
            for bad in rejected:
                causes.add(bad.cause)
            self._emit(Refused(name, causes))
            self._noticed.refused(name, len(rejected), rejected[-1].cause)

    async def stabilize(self) -> None:
        """Stabilize the views; write the changes to the outputs that lack them."""
        await self._write(self._drive.stabilize)

    async def close(self) -> None:
        """Declare the end of all inputs: windows end, and the resulting changes are written."""
        self.report.watermark_ns = self.engine.watermark_ns
        changes = await self._write(self._drive.close)
        self.report.stabilizations += any(rows.num_rows for rows in changes.outputs.made.values())
        self.watch()

    async def _write(self, stabilize: Callable[[], Changes]) -> Changes:
        if self._notes is None:
            began_ns = self._now_ns()
            changes = stabilize()
        else:
            self._notes.stabilizing(self.engine.cut)
            await self._flush()
            began_ns = self._now_ns()
            with self._notes.blamed():
                changes = stabilize()
            self._notes.idle()
        self._give(changes, began_ns)
        return changes

    def _give(self, changes: Changes, began_ns: int) -> None:
        """Write what the views, which are up, have changed. began_ns: when that was begun."""
        if self._emit is not no_listener:  # of every batch
            self._emit(Stabilized(self.engine, self._now_ns() - began_ns))
        self.is_stabilized = True
        self.cut = changes.cut
        self.outputs.write(changes, self.engine)
        self.report.rows_out = self.outputs.rows_out

    def watch(self) -> None:
        """Show how far it has come."""
        self.report.count(self.engine.counters)
        self._watch(self.engine, self.report)

    async def commit(self) -> None:
        """Make every output's data durable, with the cut that they reach."""
        await self.begin_commit(lambda: None)
        await self.committed()

    async def begin_commit(self, wake: Callable[[], None]) -> None:
        """Begin to commit, after the previous commit; later entries belong to a later commit.

        wake: called when it is done, or has failed. Outputs that take nothing while they commit
        have committed when this returns.
        """
        await self.committed()
        cut = self.engine.cut
        if self._committed == cut:
            return
        self._noticed.look(self.engine)
        began_ns = self._now_ns()
        if self._guards("letter_sync"):
            self._letters.sync()
            await self._flush()
            self._lettered = cut
        if self._guards("source_sync"):
            await self._inputs.sync()
        written, digests = self.outputs.rows_out, self.engine.digests
        commit = self.outputs.commit(self.engine)

        async def act() -> None:
            await commit
            self._committed = cut
            self.report.commits += 1
            seconds = (self._now_ns() - began_ns) / 1e9
            rows, self._rows_reported = written - self._rows_reported, written
            self._emit(Committed(cut, rows, seconds, digests))

        if not self.outputs.commits_beside:
            await act()
            return
        import asyncio  # noqa: PLC0415 - slow, and only outputs that others wait for need it

        self._committing = asyncio.create_task(act())

        def done(_: object) -> None:
            commit.close()  # it may have been cancelled before it began
            wake()

        self._committing.add_done_callback(done)

    @property
    def is_committing(self) -> bool:
        """Whether a commit is under way. Raises what one that has failed did."""
        if self._committing is not None and self._committing.done():
            task, self._committing = self._committing, None
            task.result()
        return self._committing is not None

    async def committed(self) -> None:
        """Wait until no commit is under way. Raises what it has failed with."""
        if self._committing is not None:
            import asyncio  # noqa: PLC0415 - likewise

            await asyncio.wait([self._committing])
            assert not self.is_committing

    async def abandon(self) -> None:
        """Give up a commit that is under way: the run has failed."""
        task, self._committing = self._committing, None
        if task is not None:
            import asyncio  # noqa: PLC0415 - likewise

            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def is_committed(self) -> bool:
        """Whether the outputs have committed all that was taken in."""
        return self.is_stabilized and self._committed == self.engine.cut

    @property
    def uncommitted_rows(self) -> int:
        """How many rows were written since the last commit."""
        return self.outputs.rows_out - self._rows_reported

    @property
    def is_whole(self) -> bool:
        """Whether all work is in the engine, the stored dead letters, and given to the outputs."""
        return self.is_stabilized and self._lettered == self.engine.cut

    def end(self) -> None:
        """Report how it stands at the end."""
        self.report.watermark_ns = self.report.watermark_ns or self.engine.watermark_ns
        self.report.uncomputable = self.engine.uncomputable
        self.report.cut, self.report.digest = self.engine.cut, self.engine.digest
        self._emit(Ended(self.report.cut, self.report.digest))
