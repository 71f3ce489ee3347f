"""A partition at work: entries in, changes out. The same in a plain run and in a life for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.inputs import NO_ORIGINALS, OriginalInputs
from ripple.core.causes import Causes
from ripple.core.events import Committed, Ended, Refused, Stabilized, Tell, untold
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
        """Keep what was refused of a batch of input ``name``.

        originals: by offset, records as they were where they came from.
        """
        ...

    def sync(self) -> None:
        """Make durable what was kept, before a cut that includes it is committed."""
        ...


class InFlightNotes(Protocol):
    """Takes down what is in flight, for whoever comes after a death."""

    def begin(self, name: str, first_offset: int, next_offset: int) -> None:
        """Note that these records are about to be applied."""
        ...

    def stabilizing(self, cut: Cut) -> None:
        """Note that the views are about to be brought up to ``cut``."""
        ...

    def blamed(self) -> AbstractContextManager[None]:
        """Surround what may raise by the doing of what is in flight."""
        ...

    def idle(self) -> None:
        """Note that nothing is in flight."""
        ...


@frozen
class TaskSpec:
    """What a life is given: the same for every kind of life.

    tell: takes what happens. stop: asked between two batches whether to end in good order. watch:
    called after each batch. staged: whether to compute the plan's first stage alone. sends: who
    follows it. lanes: through which log the next stage reads what it has. engine: which one it is.
    division: how the input is divided, where that is known. intake: None where all is taken in.
    traces: None where nobody follows events.
    """

    plan: Plan
    inputs: Inputs
    outputs: CommitGroup
    settings: Settings
    report: Report
    tell: Tell
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
        """Return whether more may be taken in, after a wait where less is to be.

        Whoever may not does what is due, and asks again: this waits a moment then, too.
        """
        ...


async def _nothing() -> None:
    pass


class TaskLoop:
    """What takes entries, writes what they change, and commits.

    Invariants: ``is_up`` says whether the views, and what was written, are at the engine's cut;
    ``cut`` is that up to which they were brought last. At most one commit is under way, and what
    was committed is a cut that the engine has come through.
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
        """Go on from the cut of the drive's engine, whose views are up.

        notes: None where nobody comes after a death. flush: lets notes, and letters up to the last
        sync, be there for the next owner.
        now_ns: a clock, to tell how long commits take; none where nobody asks.
        """
        self.engine = drive.engine
        self.cut: Cut = drive.engine.cut
        self.outputs = outputs
        self.report = parts.report
        self.is_up = True
        self.work_ns = 0  # that taking batches took
        self._drive = drive
        self._inputs = parts.inputs
        self._letters = letters
        self._notes = notes
        self._flush = flush
        self._guards = guards
        self._now_ns = now_ns
        self._tell = parts.tell
        self._noticed = ExceptionNotices(parts.tell, drive.engine.counters)
        self._watch = parts.watch
        self._traces = parts.traces
        self._committed: Cut = {}
        self._lettered: Cut = {}  # up to where letters are where the next owner finds them
        self._rows_told = self._rows_traced = 0
        self._committing: asyncio.Task[None] | None = None
        self.report.rejected = letters.counts

    async def take(self, name: str, entry: Batch | Marker) -> None:
        """Bring the views up to the end of one batch and write what changed."""
        started_ns, traces = self._now_ns(), self._traces
        if traces is not None:
            traces.begin(name, entry, self._inputs)
        await self.apply(name, entry)
        if self._notes is None:
            began_ns = self._now_ns()
            self._give(self._drive.bring_up(), began_ns)
        else:
            await self.bring_up()
        if traces is not None:
            traces.end(self.outputs.rows_out - self._rows_traced)
            self._rows_traced = self.outputs.rows_out
        self.report.stabilizations += 1
        self.report.events += entry.span if isinstance(entry, Batch) else 1
        self.watch()
        self.work_ns += self._now_ns() - started_ns

    async def apply(self, name: str, entry: Batch | Marker) -> None:
        """Take in a batch or a marker; what is refused becomes letters."""
        self.is_up = False
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
            self._tell(Refused(name, causes))
            self._noticed.refused(name, len(rejected), rejected[-1].cause)

    async def bring_up(self) -> None:
        """Bring the views up to the engine's cut; write what changed to the outputs lacking it."""
        await self._write(self._drive.bring_up)

    async def close(self) -> None:
        """Declare that no input goes on: windows end, and what that changed is written."""
        self.report.watermark_ns = self.engine.watermark_ns
        changes = await self._write(self._drive.close)
        self.report.stabilizations += any(rows.num_rows for rows in changes.outputs.made.values())
        self.watch()

    async def _write(self, bring_up: Callable[[], Changes]) -> Changes:
        if self._notes is None:
            began_ns = self._now_ns()
            changes = bring_up()
        else:
            self._notes.stabilizing(self.engine.cut)
            await self._flush()
            began_ns = self._now_ns()
            with self._notes.blamed():
                changes = bring_up()
            self._notes.idle()
        self._give(changes, began_ns)
        return changes

    def _give(self, changes: Changes, began_ns: int) -> None:
        """Write what the views, which are up, have changed. began_ns: when that was begun."""
        if self._tell is not untold:  # of every batch
            self._tell(Stabilized(self.engine, self._now_ns() - began_ns))
        self.is_up = True
        self.cut = changes.cut
        self.outputs.write(changes, self.engine)
        self.report.rows_out = self.outputs.rows_out

    def watch(self) -> None:
        """Show how far it has come."""
        self.report.count(self.engine.counters)
        self._watch(self.engine, self.report)

    async def commit(self) -> None:
        """Let every output's data, with the cut that they reach, survive whatever happens."""
        await self.begin_commit(lambda: None)
        await self.committed()

    async def begin_commit(self, wake: Callable[[], None]) -> None:
        """Begin to commit, once the commit before is done; what is taken next is of a later one.

        wake: called when it is done, or has failed. Outputs that can take nothing while they commit
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
            rows, self._rows_told = written - self._rows_told, written
            self._tell(Committed(cut, rows, seconds, digests))

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
        return self.is_up and self._committed == self.engine.cut

    @property
    def uncommitted_rows(self) -> int:
        """How many rows were written since the last commit."""
        return self.outputs.rows_out - self._rows_told

    @property
    def is_whole(self) -> bool:
        """Whether all that was done is in the engine, the letters, and given to the outputs."""
        return self.is_up and self._lettered == self.engine.cut

    def end(self) -> None:
        """Report how it stands at the end."""
        self.report.watermark_ns = self.report.watermark_ns or self.engine.watermark_ns
        self.report.uncomputable = self.engine.uncomputable
        self.report.cut, self.report.digest = self.engine.cut, self.engine.digest
        self._tell(Ended(self.report.cut, self.report.digest))
